"""Unpacking what cutlint needs of a wheel, without trust in it."""

from __future__ import annotations

import re
import shutil
import stat
import zlib
from collections.abc import Sequence
from pathlib import Path
from zipfile import BadZipFile, ZipFile, ZipInfo

from cutlint.errors import CutlintError

MAX_MEMBER = 64 * 2**20  # bytes of one unpacked file
MAX_TOTAL = 2 * 2**30  # bytes of all of them
MAX_COUNT = 50_000  # files
MANIFEST = "cutlint-manifest-2.txt"  # a line for each file: its size in bytes and its path; 2: what NEEDED became
NEEDED = (  # as in a .gitignore
    "/flashinfer/data/csrc/nv_internal/**",
    "/flashinfer/data/csrc/**/*.inl",
    "/flashinfer/data/include/**",
    "/flashinfer/data/spdlog/include/**",
    "/flashinfer/data/cutlass/include/**",
    "/flashinfer/data/cutlass/tools/util/include/**",
    "/flashinfer/jit/gemm/cutlass/*.py",
    "/flashinfer/jit/cutlass_gemm/*.py",
    "/*.dist-info/METADATA",
)


def unpack(wheel: Path, folder: Path) -> int:
    """Write the members that match ``NEEDED`` below ``folder``, which must be new or empty, and a manifest.

    Out: how many files. Raises CutlintError, before anything is written, for a wheel with a member that could
    land outside of ``folder`` or that is too large, and for one that is damaged; OSError when writing fails.
    """
    try:
        with ZipFile(wheel) as archive:
            members = _needed(archive.infolist(), wheel.name)
            folder.mkdir(exist_ok=True)
            for member in members:
                target = folder / member.filename
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, target.open("xb") as sink:
                    shutil.copyfileobj(source, sink, 2**20)
    except (BadZipFile, EOFError, NotImplementedError, RuntimeError, zlib.error) as error:
        raise CutlintError(f"{wheel.name} is damaged ({error}); fetch it again") from error
    lines = [f"{member.file_size} {member.filename}\n" for member in members]
    (folder / MANIFEST).write_text("".join(lines), encoding="utf-8")
    return len(members)


def intact(folder: Path) -> bool:
    """Whether ``folder`` holds what its manifest says: every file, in its size (contents are not read)."""
    try:
        lines = (folder / MANIFEST).read_text(encoding="utf-8").split("\n")
        entries = [line.split(" ", 1) for line in lines[:-1]]
        return bool(entries) and all((folder / path).stat().st_size == int(size) for size, path in entries)
    except (OSError, ValueError):
        return False


def _needed(members: Sequence[ZipInfo], wheel: str) -> list[ZipInfo]:
    from pathspec import GitIgnoreSpec

    for member in members:
        if reason := _hostile(member):
            raise CutlintError(f"{wheel} is refused: its member {member.filename!r} {reason}")
    spec = GitIgnoreSpec.from_lines(NEEDED)
    needed = [member for member in members if not member.is_dir() and spec.match_file(member.filename)]
    for member in needed:
        if member.file_size > MAX_MEMBER:
            raise CutlintError(f"{wheel} is refused: {member.filename} has over {MAX_MEMBER} bytes")
    if len(needed) > MAX_COUNT or sum(member.file_size for member in needed) > MAX_TOTAL:
        raise CutlintError(f"{wheel} is refused: over {MAX_COUNT} files or {MAX_TOTAL} bytes to unpack")
    if len({member.filename.casefold() for member in needed}) < len(needed):
        raise CutlintError(f"{wheel} is refused: it has two members of one name")
    if not any("/nv_internal/" in member.filename for member in needed):
        raise CutlintError(f"{wheel} has no flashinfer/data/csrc/nv_internal; try another release")
    return needed


def _hostile(member: ZipInfo) -> str | None:
    """Why unpacking ``member`` could write somewhere else, or None."""
    for name in (member.filename, member.orig_filename):  # zipfile mends some names
        if not name or re.search(r"[\\:\x00-\x1f]", name):
            return "has a drive, a backslash or a control character in its name"
        if name.startswith("/") or ".." in name.split("/"):
            return "leads out of its folder"
    kind = stat.S_IFMT(member.external_attr >> 16)
    return "is not a regular file" if kind not in (0, stat.S_IFREG, stat.S_IFDIR) else None
