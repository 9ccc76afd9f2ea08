"""Writing files so that nobody ever sees half of one, and telling their contents apart."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path

from cutlint.errors import CutlintError


def write(path: Path, text: str) -> None:
    """Put `text` into the file `path`, replacing it at once; surrogates are bytes that are not UTF-8.

    Raises:
        CutlintError: when the folder does not exist or cannot be written to.
    """
    try:
        if path.exists() and not path.is_file():  # /dev/stdout, a pipe: cannot be replaced
            path.write_text(text, encoding="utf-8", errors="surrogateescape")
            return
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise CutlintError(f"{path} cannot be written: {error.strerror or error}") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="surrogateescape") as stream:
            stream.write(text)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        Path(temporary).chmod(mode)
        Path(temporary).replace(path)
    except OSError as error:
        Path(temporary).unlink(missing_ok=True)
        raise CutlintError(f"{path} cannot be written: {error.strerror or error}") from None


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
