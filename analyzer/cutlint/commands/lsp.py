"""``cutlint lsp``."""

from __future__ import annotations

from pathlib import Path

import click

from cutlint.commands import options
from cutlint.errors import CutlintError


@click.command()
@options.checkout
@options.targets
@options.rule_folders
def lsp(checkout: str | None, targets: tuple[str, ...], rule_folders: tuple[Path, ...]) -> None:
    """Serve an editor: diagnostics, bytes and headroom above each invocation, the byte map under the cursor.

    Speaks the Language Server Protocol on standard input and output; editors start it themselves.
    """
    import logging

    try:
        from cutlint.editor.server import create
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise CutlintError("cutlint lsp needs pygls: pip install 'cutlint[lsp]'") from None
    from cutlint.editor.session import Options

    logging.basicConfig(level=logging.ERROR, format="cutlint: %(message)s")
    create(Options(checkout, rule_folders, targets)).start_io()
