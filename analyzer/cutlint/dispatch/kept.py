"""What the host code says, kept in the user's cache folder: following it takes seconds, and text does not change."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from cutlint import __version__
from cutlint.clang.cache import read, write
from cutlint.dispatch.hosts import host_files, read_program
from cutlint.dispatch.records import Hosted
from cutlint.dispatch.routes import follow
from cutlint.fetch import cache_folder
from cutlint.records import Checkout

_HOSTED = msgspec.msgpack.Decoder(Hosted)


def read_hosts(base: Checkout, archs: frozenset[int], sms: Sequence[int]) -> Hosted | None:
    """What the host code of `base` says to a build for `archs` on the compute capabilities `sms`; None without host code."""
    files = host_files(base)
    if not files:
        return None
    path = cache_folder() / "dispatch" / f"{_key([*files, *base.launchers], archs, sms)}.msgpack"
    data = read(path)
    if data is not None:
        try:
            return _HOSTED.decode(data)
        except msgspec.DecodeError:
            pass  # damaged: costs time
    program, aliases = read_program(files, base.launchers, archs)
    hosted = follow(program, aliases, sms)
    write(path, msgspec.msgpack.encode(hosted))
    return hosted


def _key(files: Sequence[Path], archs: frozenset[int], sms: Sequence[int]) -> str:
    """A digest of everything that the answer depends on: the files and their places, what is built, and this program."""
    digest = hashlib.sha256(f"{__version__} {sorted(archs)} {list(sms)}".encode())
    own = sorted(Path(__file__).parent.glob("*.py"))
    for path in (*own, *files):
        try:
            data = path.read_bytes()
        except OSError:
            data = b""
        digest.update(f"\0{path}\0{len(data)}\0".encode("utf-8", "surrogateescape"))
        digest.update(data)
    return digest.hexdigest()[:32]
