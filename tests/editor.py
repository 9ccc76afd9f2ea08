"""An editor in a few lines: a client that starts the server as editors do, and remembers what it was told."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

PATIENCE = 60  # seconds until a test gives up waiting

RELATED = types.PublishDiagnosticsClientCapabilities(related_information=True)
MARKDOWN = types.HoverClientCapabilities(content_format=[types.MarkupKind.Markdown, types.MarkupKind.PlainText])


def capabilities(*encodings: types.PositionEncodingKind, plain: bool = False) -> types.ClientCapabilities:
    return types.ClientCapabilities(
        general=types.GeneralClientCapabilities(position_encodings=list(encodings) or None),
        text_document=types.TextDocumentClientCapabilities(
            publish_diagnostics=None if plain else RELATED, hover=None if plain else MARKDOWN
        ),
        workspace=types.WorkspaceClientCapabilities(
            code_lens=types.CodeLensWorkspaceClientCapabilities(refresh_support=not plain),
            did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(dynamic_registration=not plain),
        ),
    )


class Editor:
    """An editor that has the folder `root` open."""

    def __init__(self, client: LanguageClient, root: Path) -> None:
        self.client = client
        self.root = root
        self.published: dict[str, list[types.PublishDiagnosticsParams]] = {}
        self.messages: list[str] = []
        self.registered: list[str] = []
        self.refreshed = 0
        self._news = asyncio.Condition()
        client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(partial(self._publish))
        client.feature(types.WINDOW_SHOW_MESSAGE)(partial(self._message))
        client.feature(types.CLIENT_REGISTER_CAPABILITY)(partial(self._register))
        client.feature(types.WORKSPACE_CODE_LENS_REFRESH)(partial(self._refresh))

    async def _publish(self, params: types.PublishDiagnosticsParams) -> None:
        async with self._news:
            self.published.setdefault(params.uri, []).append(params)
            self._news.notify_all()

    async def _message(self, params: types.ShowMessageParams) -> None:
        async with self._news:
            self.messages.append(params.message)
            self._news.notify_all()

    async def _register(self, params: types.RegistrationParams) -> None:
        self.registered += [each.method for each in params.registrations]

    async def _refresh(self, *_: Any) -> None:
        async with self._news:
            self.refreshed += 1
            self._news.notify_all()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with self._news:
            await asyncio.wait_for(self._news.wait_for(holds), PATIENCE)

    async def until_published(self, path: Path, seen: int, version: int | None = None) -> list[types.Diagnostic]:
        """The diagnostics of `path` that came after the first `seen` reports of it (and of that version)."""
        uri = path.as_uri()

        def found() -> list[types.PublishDiagnosticsParams]:
            later = self.published.get(uri, [])[seen:]
            return [each for each in later if version is None or each.version == version]

        await self.until(lambda: bool(found()))
        return list(found()[-1].diagnostics)

    async def until_said(self, path: Path, codes: list[str]) -> None:
        """Wait until these are the codes of the diagnostics of `path`."""
        uri = path.as_uri()
        await self.until(lambda: [each.code for each in self.published[uri][-1].diagnostics] == codes)

    def count(self, path: Path) -> int:
        return len(self.published.get(path.as_uri(), []))

    def open(self, path: Path, text: str | None = None) -> None:
        text = path.read_text(encoding="utf-8") if text is None else text
        item = types.TextDocumentItem(path.as_uri(), "cuda-cpp", 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    async def opened(self, path: Path, text: str | None = None) -> list[types.Diagnostic]:
        seen = self.count(path)
        self.open(path, text)
        return await self.until_published(path, seen)

    def change(self, path: Path, text: str, version: int = 2) -> None:
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(version, path.as_uri()),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    async def changed(self, path: Path, text: str, version: int = 2) -> list[types.Diagnostic]:
        seen = self.count(path)
        self.change(path, text, version)
        return await self.until_published(path, seen, version)

    def save(self, path: Path) -> None:
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(path.as_uri())))

    def close(self, path: Path) -> None:
        self.client.text_document_did_close(
            types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(path.as_uri()))
        )

    async def lenses(self, path: Path) -> list[tuple[int, str]]:
        """Lines, counted from zero, and what stands above them."""
        params = types.CodeLensParams(types.TextDocumentIdentifier(path.as_uri()))
        found = await self.client.text_document_code_lens_async(params) or []
        return [(each.range.start.line, each.command.title) for each in found if each.command]

    async def hover(self, path: Path, line: int, character: int) -> types.Hover | None:
        where = types.Position(line, character)
        params = types.HoverParams(types.TextDocumentIdentifier(path.as_uri()), where)
        return await self.client.text_document_hover_async(params)


@asynccontextmanager
async def editor(
    root: Path, *words: str, has: types.ClientCapabilities | None = None, environment: dict[str, str] | None = None
) -> AsyncIterator[Editor]:
    """An editor with a server, which must have ended well when the editor is gone."""
    client = LanguageClient("an editor", "1")
    mine = Editor(client, root)
    await client.start_io(sys.executable, "-m", "cutlint.cli", "lsp", *words, cwd=root, env=environment)
    await client.initialize_async(
        types.InitializeParams(
            capabilities=has or capabilities(),
            root_uri=root.as_uri(),
            workspace_folders=[types.WorkspaceFolder(root.as_uri(), root.name)],
        )
    )
    client.initialized(types.InitializedParams())
    server = client._server
    try:
        yield mine
        await asyncio.wait_for(client.shutdown_async(None), PATIENCE)
        client.exit(None)
        assert await asyncio.wait_for(server.wait(), PATIENCE) == 0
        assert (await server.stderr.read()).decode() == ""
    finally:
        if server.returncode is None:
            server.kill()
        await client.stop()
