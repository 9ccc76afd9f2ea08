"""From what the user names to the files that matter: launchers, CUTLASS, generator, generated files."""

# os.path answers False where pathlib raises: no permission, a name that no file can have.
# ruff: noqa: PTH110, PTH112, PTH113

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cutlint.errors import CutlintError
from cutlint.records import Checkout, Problem
from cutlint.walk import SKIPPED, Search, files

if TYPE_CHECKING:
    from packaging.requirements import Requirement

PACKAGE = "flashinfer-python"
_KERNELS = "tensorrt_llm/kernels/cutlass_kernels"
_GENERATORS = ("jit/gemm/cutlass/generate_kernels.py", "jit/cutlass_gemm/generate_kernels.py")

# In a checkout, third-party trees as well: thousands of files, no instantiations.
_SKIPPED = SKIPPED | {"3rdparty", "_deps", "cccl", "cutlass", "site-packages", "spdlog", "venv"}


def _has_folder(path: str, name: str) -> bool:
    return f"{os.sep}{name}{os.sep}" in path


_EVERY_CU = Search(".cu", accepts=lambda path: True)
_LAUNCHERS = Search(".inl", accepts=lambda path: _has_folder(path, "launchers"))
# The other .cu files of a checkout, also those below csrc/generated, hold no instantiations.
_GENERATED = Search(
    ".cu",
    accepts=lambda path: path.endswith(".generated.cu") or _has_folder(path, "cutlass_instantiations"),
    skips=lambda name: name.startswith(".") or name in _SKIPPED,
)


def is_generated(path: Path) -> bool:
    """Whether a checkout's file `path` is, by its name or folder, one that a generator writes."""
    return path.suffix == _GENERATED.suffix and _GENERATED.accepts(str(path))


class _Layout(msgspec.Struct, frozen=True):
    """Where one kind of checkout keeps its things; ``cutlass`` and ``generators`` by preference."""

    root: Path
    kernels: Path
    cutlass: tuple[Path, ...]
    generators: tuple[Path, ...]
    advice: str  # when CUTLASS is in none of its places


def find(source: Path, label: str) -> tuple[Checkout, list[Problem]]:
    """Recognise ``source`` and collect what cutlint needs of it.

    In: a FlashInfer or TensorRT-LLM checkout, an installed or unpacked flashinfer package (the folder
    ``flashinfer`` or its parent), a folder of generated ``.cu`` files, or one such file; and its ``label``
    for people. Out: the checkout, every list sorted, and what is missing or could not be read. Links
    below ``source`` are not followed to outside of it. Raises CutlintError when there is nothing to check.
    """
    if not os.path.exists(source):
        raise CutlintError(f"no such file or folder: {label}")
    if not os.path.isdir(source):
        return _single_file(source, label), []
    layout = _layout_for(source)
    return _from_layout(layout, label) if layout else _from_folder(source, label)


def enclosing(cwd: Path) -> Path | None:
    """The nearest checkout or package that the folder ``cwd`` is in or is; None without one."""
    start = cwd.resolve()
    return next((folder for folder in (start, *start.parents) if _layout_at(folder)), None)


def installed() -> Path | None:
    """The folder of the installed package ``flashinfer``, found without importing it; None without one."""
    from importlib.util import find_spec

    try:
        spec = find_spec("flashinfer")
    except (ImportError, ValueError, AttributeError):  # a broken finder or a half-made module of that name
        return None
    folders = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    return next((folder for folder in folders if _layout_for(folder)), None)


def default_source(cwd: Path | None = None) -> Path:
    """What to check when nothing is named: the checkout around ``cwd``, else the installed package.

    Raises CutlintError when there is neither.
    """
    found = enclosing(cwd or Path.cwd()) or installed()
    if found is None:
        raise CutlintError(
            "nothing to check: this folder is in no FlashInfer or TensorRT-LLM checkout, and no flashinfer "
            f"package is installed beside cutlint; name a folder, a .cu file or a release ({PACKAGE}==0.7.4)"
        )
    return found


def resolve(source: str | None, *, cwd: Path | None = None) -> Path | Requirement:
    """What a word of the command line means: an existing path, or a release to fetch.

    In: the word, or None for the default source as seen from ``cwd``. Out: a path that exists, else a
    requirement on flashinfer-python with a version specifier. Raises CutlintError when it is neither.
    """
    if source is None:
        return default_source(cwd)
    if source and os.path.exists(source):
        return Path(source)
    requirement = _requirement(source)
    if requirement is None:
        raise CutlintError(f"no such file or folder: {source!s}; a release is written {PACKAGE}==0.7.4")
    return requirement


def cu_files(top: Path, problems: list[Problem]) -> list[Path]:
    """Every ``.cu`` file below the folder ``top``, sorted; what could not be read goes to ``problems``."""
    return files(top, top, _EVERY_CU, problems)


def _requirement(text: str) -> Requirement | None:
    """``text`` as a plain requirement on flashinfer-python with a specifier, else None."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None
    plain = requirement.specifier and not (requirement.url or requirement.extras or requirement.marker)
    return requirement if plain and canonicalize_name(requirement.name) == PACKAGE else None


def _layout_for(source: Path) -> _Layout | None:
    """The layout of ``source``; its parent's when it is the Python package inside a git checkout.

    The latter is where an editable install points to, and its data folder is links to the checkout's.
    """
    here = source.resolve()
    if here.name == "flashinfer":
        parent = _git_layout(here.parent)
        if parent is not None:
            return parent
    return _layout_at(source)


def _layout_at(folder: Path) -> _Layout | None:
    candidates = (
        _git_layout(folder),
        _package_layout(folder),
        _package_layout(folder / "flashinfer"),
        _tensorrt_llm_layout(folder),
    )
    return next((layout for layout in candidates if layout), None)


def _git_layout(root: Path) -> _Layout | None:
    kernels = root / "csrc/nv_internal" / _KERNELS
    if not os.path.isdir(kernels):
        return None
    return _Layout(
        root=root,
        kernels=kernels,
        cutlass=(root / "3rdparty/cutlass/include",),
        generators=tuple(root / "flashinfer" / place for place in _GENERATORS),
        advice="run `git submodule update --init 3rdparty/cutlass`",
    )


def _package_layout(root: Path) -> _Layout | None:
    kernels = root / "data/csrc/nv_internal" / _KERNELS
    if not os.path.isdir(kernels):
        return None
    return _Layout(
        root=root,
        kernels=kernels,
        cutlass=(root / "data/cutlass/include",),
        generators=tuple(root / place for place in _GENERATORS),
        advice="the package is incomplete: install or unpack it again",
    )


def _tensorrt_llm_layout(root: Path) -> _Layout | None:
    kernels = root / "cpp" / _KERNELS
    if not os.path.isdir(kernels):
        return None
    return _Layout(
        root=root,
        kernels=kernels,
        cutlass=(root / "3rdparty/cutlass/include", root / "cpp/build/_deps/cutlass-src/include"),
        generators=(),  # a script of its CMake build, which needs CUTLASS's own Python package
        advice="run `git submodule update --init 3rdparty/cutlass`, or CMake's configure step",
    )


def _from_layout(layout: _Layout, label: str) -> tuple[Checkout, list[Problem]]:
    problems: list[Problem] = []
    launchers = files(layout.kernels, layout.root, _LAUNCHERS, problems)
    if not launchers:
        problems.append(Problem(str(layout.kernels), "holds no launcher (launchers/*.inl)"))
    cutlass = next((path for path in layout.cutlass if os.path.isfile(path / "cutlass/version.h")), None)
    if cutlass is None:
        message = f"CUTLASS is not there (cutlass/version.h); {layout.advice}"
        problems.append(Problem(str(layout.cutlass[0]), message))
    checkout = Checkout(
        label=label,
        root=layout.root,
        launchers=tuple(launchers),
        cutlass=cutlass,
        generator=next((path for path in layout.generators if os.path.isfile(path)), None),
        generated=tuple(files(layout.root, layout.root, _GENERATED, problems)),
    )
    return checkout, problems


def _from_folder(source: Path, label: str) -> tuple[Checkout, list[Problem]]:
    problems: list[Problem] = []
    generated = cu_files(source, problems)
    if not generated:
        unread = f" ({problems[0].file}: {problems[0].message})" if problems else ""
        inside = enclosing(source)
        hint = f"it lies in the checkout {inside}: name that" if inside else "name a checkout or .cu files"
        raise CutlintError(f"nothing to check in {label}{unread}: no checkout and no .cu file; {hint}")
    return Checkout(label=label, root=source, generated=tuple(generated)), problems


def _single_file(source: Path, label: str) -> Checkout:
    if not os.path.isfile(source):
        raise CutlintError(f"{label} is neither a file nor a folder; name a checkout, a folder or a .cu file")
    if source.suffix != ".cu":
        raise CutlintError(f"{label} is not a .cu file; name a generated .cu file, or the checkout's folder")
    return Checkout(label=label, root=source.parent, generated=(source,))


def display_path(path: Path | str, roots: Sequence[Path]) -> str:
    """A path as people and editors want it: relative to the first of `roots` that it lies below, else whole."""
    whole = Path(path)
    for root in roots:
        if whole.is_relative_to(root):
            whole = whole.relative_to(root)
            break
    return os.fsencode(whole.as_posix()).decode("utf-8", "replace")  # a name need not be UTF-8, a report is
