"""What the user named, made ready to be analysed: found or fetched, generated if asked, with launcher and CUTLASS."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from cutlint import checkout as checkouts
from cutlint.errors import CutlintError
from cutlint.generator import ARCHS, generated
from cutlint.records import Checkout, Problem
from cutlint.spelling import Spelling

Progress = Callable[[str, int, int], None]


class Request(msgspec.Struct, frozen=True):
    """What to check and with what. Empty `sources` mean the checkout around `cwd`, or the installed package; `regions`:
    whether the regions of every footprint are wanted. `texts` is what an editor holds, by whole path: generated files and
    launchers are read from there first."""

    sources: tuple[str, ...] = ()
    checkout: str | None = None
    generate: bool = False
    archs: tuple[int, ...] = tuple(ARCHS)
    engine: str = "model"
    cuda_include: Path | None = None
    regions: bool = False
    cwd: Path = Path()
    texts: dict[Path, bytes] = {}


class Source(msgspec.Struct, frozen=True):
    """One source: `found` has the generated files, `base` the launchers and CUTLASS (often the same checkout), `paths`
    spells a path for people."""

    found: Checkout
    base: Checkout
    problems: tuple[Problem, ...]
    paths: Spelling


def open_source(name: str | None, request: Request, stack: contextlib.ExitStack, progress: Progress) -> Source:
    """The source that the user calls `name`. What was generated for it lasts as long as `stack`.

    Raises:
        CutlintError: when there is nothing to analyse, with what to do.
    """
    found, problems, is_release = _find(name, request, progress)
    base, wrong, base_is_release = lender(found, request, progress) or (found, [], is_release)
    problems = [*problems, *wrong]
    made = request.generate or is_release
    if made:
        progress("running generate_kernels.py", 0, 0)
        found = stack.enter_context(generated(found, request.archs))
    if not found.generated:
        raise CutlintError(
            f"{found.label} holds no generated .cu files. With --generate cutlint makes them: that runs the checkout's own "
            "generate_kernels.py, so use it on code you trust; or name the folder of files already generated"
        )
    if not base.launchers:
        raise CutlintError(
            f"{found.label} holds generated files but no launcher (.inl) to read them with; name the FlashInfer checkout, "
            "package or release they come from: --checkout PATH or --checkout flashinfer-python==VERSION"
        )
    releases = [each for each, yes in ((found, is_release), (base, base_is_release)) if yes]
    roots = _roots(found, releases, request.cwd)
    passing = _folder_made(found) if made else None
    return Source(found, base, tuple(problems), Spelling(roots, passing))


def _roots(found: Checkout, releases: Sequence[Checkout], cwd: Path) -> tuple[Path, ...]:
    """The folders that paths are written relative to, by preference: a release's own, what was generated, the current."""
    folder = _folder_made(found)
    made = () if folder is None else (folder,)
    return (*(release.root for release in releases), *(made if found in releases else ()), cwd, *made)


def _folder_made(found: Checkout) -> Path | None:
    """The folder that generators write to, if the generated files lie below one."""
    parents = [each for path in found.generated[:1] for each in path.parents if each.name == "cutlass_instantiations"]
    return parents[0] if parents else None


def _find(source: str | None, request: Request, progress: Progress) -> tuple[Checkout, list[Problem], bool]:
    resolved = checkouts.resolve(source, cwd=request.cwd)
    if isinstance(resolved, Path):
        whole = Path(os.path.abspath(request.cwd / resolved))  # noqa: PTH100 - links stay as they are
        found, problems = checkouts.find(whole, source or str(resolved))
        return found, problems, False
    from cutlint.fetch import fetch

    folder = fetch(str(resolved), progress=lambda message: progress(message, 0, 0))
    found, problems = checkouts.find(folder, str(resolved))
    return found, problems, True


def lender(
    found: Checkout, request: Request, progress: Progress = lambda what, done, total: None
) -> tuple[Checkout, list[Problem], bool] | None:
    """The checkout that lends launcher and CUTLASS to `found`, its problems, and whether it is a release; None where `found`
    has its own.

    Raises:
        CutlintError: when the one that the request names is not there.
    """
    if request.checkout is not None:
        return _find(request.checkout, request, progress)
    return None if found.launchers else (_around(found, request), [], False)


def _around(found: Checkout, request: Request) -> Checkout:
    """The checkout that lends launcher and CUTLASS to files that lie apart: around them, else the default source."""
    inside = checkouts.enclosing(found.root if found.root.is_dir() else found.root.parent)
    try:
        folder = inside or checkouts.default_source(request.cwd)
        return checkouts.find(folder, str(folder))[0]
    except CutlintError:
        return found
