"""The host code of a checkout: the files that list tactics and dispatch them, read for the architectures that are built."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from cutlint.dispatch.program import Program
from cutlint.records import Checkout, Problem

MAX_BYTES = 4 * 2**20
RUNNER = "MoeGemmRunner"  # the class whose members list tactics and dispatch them, in all releases

_INSTANCE = re.compile(rb"\btemplate\s+class\s+(\w+::)*MoeGemmRunner\b")
_ALIAS = re.compile(r"^using\s+(\w+)\s*=\s*([\w:]+)\s*;", re.M)


def host_files(base: Checkout) -> list[Path]:
    """The files of host code beside the launchers of `base`, sorted; empty where there are none."""
    found: set[Path] = set()
    for launcher in base.launchers:
        dispatch, kernels = launcher.parent.parent, launcher.parent.parent.parent
        runners = [path for path in dispatch.glob("*.cu") if _instantiates(path)]
        if not runners:
            continue
        folders = ((dispatch, "*.h"), (launcher.parent, "*.h"), (kernels, "*heuristic*.cpp"))
        listed = [path for folder, pattern in folders for path in folder.glob(pattern)]
        extensions = kernels.parent.parent / "cutlass_extensions/include/cutlass_extensions"
        for folder, names in (
            (kernels / "include", ("common.h", "moe_gemm_kernels.h")),
            (extensions, ("gemm_configs.h",)),
        ):
            listed.extend(folder / name for name in names)
        found.update(runners, (path for path in listed if path.is_file() and path.stat().st_size <= MAX_BYTES))
    return sorted(found)


def _instantiates(path: Path) -> bool:
    """Whether the file `path` instantiates runners."""
    try:
        return path.is_file() and path.stat().st_size <= MAX_BYTES and _INSTANCE.search(path.read_bytes()) is not None
    except OSError:
        return False


def read_program(
    files: Sequence[Path], launchers: Iterable[Path], archs: frozenset[int]
) -> tuple[Program, dict[str, str]]:
    """The host code `files` as a build for `archs` sees it, and the type aliases of the launchers' files."""
    program = Program()
    decide = defined(archs)
    for path in files:
        try:
            program.add(str(path), path.read_bytes(), decide)
        except OSError as error:
            program.problems.append(Problem(str(path), f"cannot be read: {error.strerror or error}"))
    return program, _aliases(launchers)


def _aliases(launchers: Iterable[Path]) -> dict[str, str]:
    """``using SafeFP4 = Fp4Type;`` and the like, the first of each name: a build with every feature sees that."""
    found: dict[str, str] = {}
    for path in launchers:
        try:
            text = path.read_text("utf-8", "replace")
        except OSError:
            continue
        for name, meaning in _ALIAS.findall(text):
            found.setdefault(name, meaning)
    return found


def defined(archs: frozenset[int]) -> Callable[[str], bool | None]:
    """Which macros a build for `archs` defines: all features, and of the ``COMPILE_`` switches those of `archs`."""

    def decide(name: str) -> bool | None:
        if name == "FAST_BUILD":
            return False
        for word, arch in (("HOPPER", 90), ("SM103", 103), ("SM120", 120), ("BLACKWELL", 100)):
            if name.startswith("COMPILE_") and word in name:
                return arch in archs
        known = ("ENABLE_", "USING_", "COMPILE_", "CUTLASS_ARCH_", "__GNUC__", "__CUDACC__")
        return True if name.startswith(known) else None

    return decide
