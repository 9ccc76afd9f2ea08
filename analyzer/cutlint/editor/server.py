"""The language server: what an editor sends over standard input, and what it is told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from lsprotocol import types
from pygls import uris
from pygls.lsp.server import LanguageServer

from cutlint import __version__
from cutlint.editor.diagnostics import diagnostics
from cutlint.editor.hover import hover
from cutlint.editor.lens import lenses
from cutlint.editor.positions import UTF16, Columns, as_data
from cutlint.editor.session import Options, Seen, Session, findings
from cutlint.errors import CutlintError
from cutlint.records import Location

DEBOUNCE = 0.1  # seconds of rest after a change before files are analysed
WATCHED = "**/*.{cu,inl,h,hpp,cuh,cpp,toml}"

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")


class Server(LanguageServer):
    """One editor's session. Analyses run one at a time in a thread of their own, so that the editor is always heard."""

    def __init__(self, options: Options) -> None:
        super().__init__("cutlint", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
        self._session = Session(options)
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="cutlint")
        self._waiting: set[str] = set()  # URIs of open files to analyse again
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._said: str | None = None

    def shutdown(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)
        super().shutdown()  # type: ignore[no-untyped-call]

    def refresh(self, which: Iterable[str], delay: float = DEBOUNCE) -> None:
        """Analyse the files `which` (URIs) again after `delay` seconds without a further change."""
        self._waiting.update(which)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(delay, self._start)

    def refresh_all(self, delay: float = DEBOUNCE) -> None:
        self.refresh(self.workspace.text_documents, delay)

    def changed(self, uri: str, delay: float = DEBOUNCE) -> None:
        """The text of `uri` is another: that file's answers are, and every one's if it is not a generated file."""
        if _is_cu(uri):
            self.refresh([uri], delay)
        else:
            self.refresh_all(delay)

    def forget(self) -> None:
        """Files on the disk have changed."""
        self._worker.submit(self._session.forget)
        self.refresh_all()

    async def answer(self, uri: str, make: Callable[[Seen], _Answer]) -> _Answer | None:
        """What `make` says of the open file `uri` as it is now; None where cutlint has nothing to say of it."""
        path = _path(uri)
        if path is None or uri not in self.workspace.text_documents:
            return None
        texts, cwd = self._texts(), self._folder(path)

        def work() -> _Answer | None:
            seen = self._session.look(path, texts, cwd)
            return None if seen is None else make(seen)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, work)
        except CutlintError as error:
            self._say(str(error))
            return None

    def columns(self, path: Path, seen: Seen) -> Columns:
        """Positions in a file, in the encoding agreed on, as it was when `seen` was."""
        return Columns(self.workspace.position_encoding or UTF16, lambda: _read(path, seen.request.texts))

    def link(self, place: Location) -> str:
        return f"{_uri(Path(place.file))}#L{place.range.start.line + 1}"

    def _start(self) -> None:
        which, self._waiting = sorted(self._waiting), set()
        task = asyncio.get_running_loop().create_task(self._publish(which))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _publish(self, which: Iterable[str]) -> None:
        for uri in which:
            document = self.workspace.text_documents.get(uri)
            if document is None:
                continue
            version = document.version
            try:
                found = await self.answer(uri, self._diagnostics) or []
            except Exception as error:  # a fault of cutlint's own must not end the session
                _log.exception("analysis of %s failed", uri)
                self._say(f"the analysis of {uri} failed: {error!r}")
                found = []
            now = self.workspace.text_documents.get(uri)
            if now is not None and now.version == version:
                self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, found, version))
        workspace = self.client_capabilities.workspace
        if workspace is not None and workspace.code_lens is not None and workspace.code_lens.refresh_support:
            self.workspace_code_lens_refresh(None)

    def _diagnostics(self, seen: Seen) -> list[types.Diagnostic]:
        def related(shown: str) -> tuple[str, Columns]:
            path = Path(seen.paths.whole(shown) or shown)
            return _uri(path), self.columns(path, seen)

        document = self.client_capabilities.text_document
        publish = document.publish_diagnostics if document is not None else None
        shows = publish is not None and publish.related_information
        return diagnostics(findings(seen), self.columns(seen.path, seen), related if shows else None)

    def _texts(self) -> dict[Path, bytes]:
        """The text of every open file, by its path as the editor names it and with links resolved."""
        found: dict[Path, bytes] = {}
        for uri, document in self.workspace.text_documents.items():
            path = _path(uri)
            if path is not None:
                found[path] = found[path.resolve()] = as_data(document.source)
        return found

    def _folder(self, path: Path) -> Path | None:
        """The innermost of the editor's folders around `path`."""
        folders = [_path(uri) for uri in self.workspace.folders] or [_path(self.workspace.root_uri or "")]
        around = [folder for folder in folders if folder is not None and path.is_relative_to(folder)]
        return max(around, key=lambda folder: len(folder.parts), default=None)

    def _say(self, message: str) -> None:
        """Tell the user, once for as long as it stays the same."""
        if message != self._said:
            self._said = message
            self.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"cutlint: {message}"))


def create(options: Options) -> Server:
    """A server that is ready to be started."""
    server = Server(options)

    @server.feature(types.INITIALIZED)
    def _initialized(_: types.InitializedParams) -> None:
        workspace = server.client_capabilities.workspace
        watching = workspace.did_change_watched_files if workspace is not None else None
        if watching is not None and watching.dynamic_registration:
            watch = types.DidChangeWatchedFilesRegistrationOptions([types.FileSystemWatcher(WATCHED)])
            registration = types.Registration("files", types.WORKSPACE_DID_CHANGE_WATCHED_FILES, watch)
            server.client_register_capability(types.RegistrationParams([registration]))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def _opened(params: types.DidOpenTextDocumentParams) -> None:
        server.changed(params.text_document.uri, 0)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def _changed(params: types.DidChangeTextDocumentParams) -> None:
        server.changed(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE)
    def _saved(params: types.DidSaveTextDocumentParams) -> None:
        if _is_cu(params.text_document.uri):
            server.refresh([params.text_document.uri], 0)
        else:
            server.forget()

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def _closed(params: types.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))
        server.changed(uri)

    @server.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def _files_changed(_: types.DidChangeWatchedFilesParams) -> None:
        server.forget()

    @server.feature(types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def _folders_changed(_: types.DidChangeWorkspaceFoldersParams) -> None:
        server.forget()

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def _hover(params: types.HoverParams) -> types.Hover | None:
        document = server.client_capabilities.text_document
        formats = document.hover.content_format if document is not None and document.hover is not None else None
        in_markdown = types.MarkupKind.Markdown in (formats or ())
        return await server.answer(
            params.text_document.uri,
            lambda seen: hover(
                seen.instantiations,
                params.position,
                seen.standard.targets,
                server.columns(seen.path, seen),
                server.link,
                in_markdown,
            ),
        )

    @server.feature(types.TEXT_DOCUMENT_CODE_LENS)
    async def _lens(params: types.CodeLensParams) -> list[types.CodeLens] | None:
        return await server.answer(
            params.text_document.uri,
            lambda seen: lenses(seen.instantiations, seen.standard.targets, server.columns(seen.path, seen)),
        )

    return server


def _path(uri: str) -> Path | None:
    """The file that a URI names, None for anything else (a file that was never saved, one inside Git)."""
    name = uris.to_fs_path(uri) if uri.startswith("file:") else None
    return Path(name) if name and "\0" not in name else None


def _is_cu(uri: str) -> bool:
    path = _path(uri)
    return path is not None and path.suffix == ".cu"


def _uri(path: Path) -> str:
    return uris.from_fs_path(str(path)) or ""


def _read(path: Path, texts: dict[Path, bytes]) -> bytes:
    try:
        return texts[path] if path in texts else path.read_bytes()
    except OSError:
        return b""
