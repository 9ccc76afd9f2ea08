"""A source to its instantiations with configurations and footprints: the stages from reading to sizing, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from cutlint import instantiations as reading
from cutlint import launcher as launchers
from cutlint.config import KernelConfig
from cutlint.cutlass import Cutlass
from cutlint.footprint.records import Footprint
from cutlint.headers import Headers
from cutlint.launcher import Launcher
from cutlint.records import Checkout, Instantiation, Location, Problem
from cutlint.sizing import Sizer

Progress = Callable[[int, int], None]


class Analyzed(msgspec.Struct, frozen=True):
    """One instantiation with what is known of it. `unknown` says why there is no footprint; `sizer` re-evaluates it
    with other arguments, None where no launcher is known; `where` is the place in the launcher that was not understood."""

    instantiation: Instantiation
    launcher: str | None
    arguments: dict[str, str]
    config: KernelConfig | None
    footprint: Footprint | None
    unknown: str | None
    sizer: Sizer | None
    where: Location | None = None


class Analysis(msgspec.Struct, frozen=True):
    """What one source holds. `files` counts the generated files read; `launchers` and `cutlass` (the include folder) are
    what they were sized with."""

    checkout: Checkout
    cutlass: Path | None
    files: int
    launchers: tuple[Launcher, ...]
    instantiations: tuple[Analyzed, ...]
    problems: tuple[Problem, ...]


def analyze(source: Checkout, base: Checkout, progress: Progress = lambda done, total: None) -> Analysis:
    """Read and size the generated files of `source` with the launchers and the CUTLASS of `base` (often the same).

    Never raises for what the files say; what could not be read or understood is in `problems`.
    """
    found, problems = _launchers(base)
    macros = frozenset(found)
    sizers = {name: Sizer(each, Cutlass(base.cutlass)) for name, each in found.items()} if base.cutlass else {}
    listed: list[Instantiation] = []
    total = len(source.generated)
    for done, path in enumerate(source.generated):
        progress(done, total)
        in_file, wrong = reading.read(path, macros)
        listed.extend(in_file)
        problems.extend(wrong)
        if not in_file and not wrong and (total == 1 or path.name.endswith(".generated.cu")):
            problems.append(Problem(str(path), "holds no instantiation that cutlint knows"))
    progress(total, total)
    analyzed = [_analyze(each, found, sizers, base, problems) for each in listed]
    problems.extend(_unsized(analyzed))
    return Analysis(source, base.cutlass, total, tuple(found.values()), tuple(analyzed), tuple(problems))


def _launchers(base: Checkout) -> tuple[dict[str, Launcher], list[Problem]]:
    found: dict[str, Launcher] = {}
    problems: list[Problem] = []
    for path in base.launchers:
        read, wrong = launchers.read(path, Headers(path, base.root))
        problems.extend(wrong)
        for each in read:
            found.setdefault(each.name, each)
    return found, problems


def _analyze(
    instantiation: Instantiation,
    found: dict[str, Launcher],
    sizers: dict[str, Sizer],
    base: Checkout,
    problems: list[Problem],
) -> Analyzed:
    launcher = found.get(instantiation.name)
    if launcher is None:
        reason = _no_launcher(instantiation.name, base)
        return Analyzed(instantiation, None, {}, None, None, reason, None)
    bound = launcher.bind(instantiation)
    if isinstance(bound, Problem):
        problems.append(bound)
        return Analyzed(instantiation, launcher.path, {}, None, None, bound.message, None)
    sizer = sizers.get(instantiation.name)
    if sizer is None:
        reason = (
            f"{base.label} has no CUTLASS headers (cutlass/version.h); name a checkout that has them with --checkout"
        )
        return Analyzed(instantiation, launcher.path, bound, None, None, reason, None)
    sized = sizer.size(bound)
    where = (
        None
        if sized.offset is None
        else Location(launcher.path, launcher.range_at(sized.offset), "evaluation stopped here")
    )
    return Analyzed(instantiation, launcher.path, bound, sized.config, sized.footprint, sized.reason, sizer, where)


def _no_launcher(name: str, base: Checkout) -> str:
    if not base.launchers:
        return f"no launcher is at hand for {name}; name a checkout that has it with --checkout"
    if name.startswith("INSTANTIATE_"):
        return f"no launcher of {base.label} defines {name}"
    return f"cutlint has no model of {name} yet"


def _unsized(analyzed: Sequence[Analyzed]) -> list[Problem]:
    """One problem for all instantiations of a launcher that have no figure for the same reason. Those whose arguments do
    not match the launcher's parameters have a problem each already."""
    groups: dict[tuple[str, str, Location | None], list[Instantiation]] = {}
    for each in analyzed:
        if each.unknown is not None and (each.arguments or each.launcher is None):
            groups.setdefault((each.instantiation.name, each.unknown, each.where), []).append(each.instantiation)
    problems = []
    for (name, reason, where), members in groups.items():
        count = "1 instantiation" if len(members) == 1 else f"{len(members):,} instantiations"
        related = () if where is None else (where,)
        first = members[0]
        problems.append(Problem(str(first.file), f"{count} of {name} not sized: {reason}", first.range, related))
    return problems


def duplicates(analyzed: Sequence[Analyzed]) -> dict[int, Instantiation]:
    """For each instantiation that repeats an earlier one (same name, arguments and guard): its index and the first."""
    first: dict[tuple[str, tuple[str, ...], str | None], Instantiation] = {}
    found: dict[int, Instantiation] = {}
    for index, each in enumerate(analyzed):
        key = (each.instantiation.name, each.instantiation.arguments, each.instantiation.guard)
        if key in first:
            found[index] = first[key]
        else:
            first[key] = each.instantiation
    return found


def display_path(path: Path | str, roots: Sequence[Path]) -> str:
    """A path as people and editors want it: relative to the first of `roots` that it lies below, else whole."""
    whole = Path(path)
    for root in roots:
        if whole.is_relative_to(root):
            return whole.relative_to(root).as_posix()
    return whole.as_posix()
