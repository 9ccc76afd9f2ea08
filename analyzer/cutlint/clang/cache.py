"""What the engine keeps in the user's cache folder: results, and precompiled headers.

Everything is written beside its place and moved there whole, and carries a digest of itself. What is damaged or cannot be
read or written is as good as absent: it costs time. Several processes may use the same folder.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from cutlint.clang.records import Precompiled
from cutlint.files import sha256
from cutlint.footprint.records import Footprint

_DIGEST = 32
_KEPT_HEADERS = 4  # precompiled headers, 50 MB each, beyond which those go that were not used for
_UNUSED = 24 * 3600.0  # so many seconds

_RESULTS = msgspec.msgpack.Decoder(dict[str, Footprint])


class Results:
    """Footprints by key, in files of `folder` that are only ever added."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self) -> dict[str, Footprint]:
        found: dict[str, Footprint] = {}
        for path in sorted(self._folder.glob("*.msgpack")):
            data = read(path)
            try:
                found.update({} if data is None else _RESULTS.decode(data))
            except msgspec.DecodeError:
                data = None
            if data is None:
                with contextlib.suppress(OSError):
                    path.unlink()
        return found

    def add(self, results: Mapping[str, Footprint]) -> None:
        data = msgspec.msgpack.encode(results)
        write(self._folder / f"{hashlib.sha256(data).hexdigest()[:32]}.msgpack", data)


def read(path: Path) -> bytes | None:
    """What `write` has put there; None if it is absent or damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content = data[_DIGEST:]
    return content if hashlib.sha256(content).digest() == data[:_DIGEST] else None


def write(path: Path, content: bytes) -> bool:
    """Put `content` with its digest in place of the file `path`; whether it could be done."""
    return _replace(path, hashlib.sha256(content).digest() + content)


def _replace(path: Path, data: bytes) -> bool:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=".partial-", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError:
        return False
    return True


class KnownHeader(msgspec.Struct, frozen=True):
    """A precompiled header's file name and digest, and what was found when it was made."""

    file: str
    digest: str
    made: Precompiled


class HeaderStore:
    """Precompiled headers by key, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def source(self, key: str, text: str) -> Path | None:
        """A file with the header's text; None when the folder cannot be written to. It stays as it is, for a precompiled
        header depends on it."""
        path, data = self._folder / f"{key}.h", text.encode("utf-8", "surrogateescape")
        with contextlib.suppress(OSError):
            if path.read_bytes() == data:
                return path
        return path if _replace(path, data) else None

    def get(self, key: str) -> tuple[Path, Precompiled] | None:
        data = read(self._folder / f"{key}.known")
        if data is None:
            return None
        try:
            known = msgspec.msgpack.decode(data, type=KnownHeader)
            path = self._folder / known.file
            if sha256(path) != known.digest:
                return None
            os.utime(path)  # used
        except (OSError, msgspec.DecodeError):
            return None
        return path, known.made

    def target(self, key: str) -> Path:
        """Where to make the precompiled header: a name of its own, which `keep` makes known."""
        handle, name = tempfile.mkstemp(prefix=f"{key}-", suffix=".pch", dir=self._folder)
        os.close(handle)
        return Path(name)

    def keep(self, key: str, path: Path, made: Precompiled) -> None:
        known = KnownHeader(path.name, sha256(path), made)
        write(self._folder / f"{key}.known", msgspec.msgpack.encode(known))
        self._drop_unused()

    def _drop_unused(self) -> None:
        with contextlib.suppress(OSError):
            by_use = sorted(self._folder.glob("*.pch"), key=lambda each: each.stat().st_mtime, reverse=True)
            for path in by_use[_KEPT_HEADERS:]:
                if time.time() - path.stat().st_mtime > _UNUSED:
                    path.unlink()
