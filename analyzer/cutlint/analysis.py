"""A source to its instantiations with configurations and footprints: the stages from reading to sizing, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from cutlint import instantiations as reading
from cutlint import launchers
from cutlint.config import KernelConfig
from cutlint.cores import spread
from cutlint.cutlass import Cutlass
from cutlint.footprint.records import Footprint
from cutlint.headers import Headers
from cutlint.launcher import Launcher
from cutlint.records import Checkout, Instantiation, Location, Problem
from cutlint.sizing import Sizer
from cutlint.sources import Progress, Request, Source


class Analyzed(msgspec.Struct, frozen=True):
    """One instantiation with what is known of it. `unknown` says why there is no footprint; `sizer` re-evaluates it
    with other arguments, None where no launcher is known; `where` is the place in the
    launcher that was not understood; `compared` is the clang engine's footprint when both engines run."""

    instantiation: Instantiation
    launcher: str | None
    arguments: dict[str, str]
    config: KernelConfig | None
    footprint: Footprint | None
    unknown: str | None
    sizer: Sizer | None
    where: Location | None = None
    compared: Footprint | None = None


class Prepared(msgspec.Struct, frozen=True):
    """The launchers of a checkout by name, what sizes their instantiations over its CUTLASS, and what could not be read: the
    same for all its generated files."""

    launchers: dict[str, Launcher]
    sizers: dict[str, Sizer]
    problems: tuple[Problem, ...]


class Analysis(msgspec.Struct, frozen=True):
    """What one source holds. `files` counts the generated files read; `launchers` and `cutlass` (the include folder) are
    what they were sized with, from the checkout `base`."""

    checkout: Checkout
    base: Checkout
    cutlass: Path | None
    files: int
    launchers: tuple[Launcher, ...]
    instantiations: tuple[Analyzed, ...]
    problems: tuple[Problem, ...]


def prepare(base: Checkout, texts: Mapping[Path, bytes]) -> Prepared:
    """Read the launchers of `base`; `texts` stand in for files (see `Request`)."""
    found, problems = _launchers(base, texts)
    cutlass = base.cutlass
    sizers = {name: Sizer(each, Cutlass(cutlass)) for name, each in found.items()} if cutlass else {}
    return Prepared(found, sizers, tuple(problems))


def analyze(
    source: Source,
    request: Request,
    progress: Progress = lambda what, done, total: None,
    prepared: Prepared | None = None,
) -> Analysis:
    """Read the generated files of `source` and size them with its launchers and CUTLASS, by the engine asked for.
    `prepared`: these launchers, where they are at hand.

    What the files say never raises; what could not be read or understood is in `problems`.

    Raises:
        CutlintError: when the clang engine is asked for and cannot work here.
    """
    prepared = prepared or prepare(source.base, request.texts)
    found, sizers = prepared.launchers, prepared.sizers
    problems = [*source.problems, *prepared.problems]
    cutlass = source.base.cutlass
    files = source.found.generated
    analyzed: list[Analyzed] = []

    def work(paths: Sequence[Path]) -> tuple[int, list[Analyzed], list[Problem]]:
        return len(paths), *_files(paths, found, sizers, source.base, request)

    done = 0
    progress("reading", done, len(files))
    for count, some, wrong in spread(work, files):
        done += count
        progress("reading", done, len(files))
        analyzed.extend(_with_sizer(each, sizers) for each in some)
        problems.extend(wrong)
    problems = _empty_together(problems)
    if request.engine != "model":
        analyzed = _by_clang(analyzed, source.base, request, progress)
    problems.extend(_unsized(analyzed))
    return Analysis(
        source.found, source.base, cutlass, len(files), tuple(found.values()), tuple(analyzed), tuple(problems)
    )


UNSIZED = "not sized:"
NOTHING = "no instantiation that cutlint knows"
EMPTY = f"holds {NOTHING}"


def _empty_together(problems: list[Problem]) -> list[Problem]:
    """The files without instantiations as one problem."""
    empty = [each for each in problems if each.message == EMPTY]
    if len(empty) < 2:
        return problems
    named = ", ".join(Path(each.file).name for each in empty[:5])
    more = f" and {len(empty) - 5:,} more" if len(empty) > 5 else ""
    together = Problem(empty[0].file, f"{len(empty):,} files hold {NOTHING}: {named}{more}", about=EMPTY)
    return [*(each for each in problems if each.message != EMPTY), together]


def _by_clang(analyzed: Sequence[Analyzed], base: Checkout, request: Request, progress: Progress) -> list[Analyzed]:
    """The same instantiations with the clang engine's footprints, in place of the model's or beside them."""
    from cutlint.clang.engine import evaluate

    result = list(analyzed)
    by_launcher: dict[str, list[int]] = {}
    for index, each in enumerate(analyzed):
        if each.sizer is not None:
            by_launcher.setdefault(each.sizer.launcher.name, []).append(index)
    for indices in by_launcher.values():
        sizer = analyzed[indices[0]].sizer
        assert sizer is not None  # they were chosen so
        items = [analyzed[index].arguments for index in indices]
        told = lambda done, total: progress("evaluating with libclang", done, total)  # noqa: E731
        footprints = evaluate(sizer.launcher, base, items, cuda_include=request.cuda_include, progress=told)
        for index, footprint in zip(indices, footprints, strict=True):
            result[index] = _with_clang(analyzed[index], footprint, request.engine == "both")
    return result


def _with_clang(each: Analyzed, footprint: Footprint, both: bool) -> Analyzed:
    if both:
        return msgspec.structs.replace(each, compared=footprint)
    known = each.footprint
    if known is not None and footprint.refused is None:  # what a compiler does not say
        extra = ("envelope", "budget", "accumulator_registers", "tensor_memory_columns")
        footprint = msgspec.structs.replace(footprint, **{name: getattr(known, name) for name in extra})
    return msgspec.structs.replace(each, footprint=footprint, unknown=None)


def _launchers(base: Checkout, texts: Mapping[Path, bytes]) -> tuple[dict[str, Launcher], list[Problem]]:
    found: dict[str, Launcher] = {}
    problems: list[Problem] = []
    twice: set[str] = set()
    for path in base.launchers:
        read, wrong = launchers.read(path, Headers(path, base.root, texts), texts.get(path))
        problems.extend(wrong)
        for each in read:
            if each.name in found or each.name in twice:
                twice.add(each.name)
                found.pop(each.name, None)
                message = f"{each.name} is defined by another launcher too; which one counts is not known"
                problems.append(Problem(each.path, message, each.range_at(None)))
            else:
                found[each.name] = each
    return found, problems


def _with_sizer(each: Analyzed, sizers: dict[str, Sizer]) -> Analyzed:
    sizer = sizers.get(each.instantiation.name) if each.arguments else None
    return each if sizer is None else msgspec.structs.replace(each, sizer=sizer)


def _files(
    paths: Sequence[Path],
    found: dict[str, Launcher],
    sizers: dict[str, Sizer],
    base: Checkout,
    request: Request,
) -> tuple[list[Analyzed], list[Problem]]:
    """What the files `paths` hold, without sizers (another process may be asking)."""
    analyzed: list[Analyzed] = []
    problems: list[Problem] = []
    macros = frozenset(name for name, each in found.items() if each.is_macro)
    for path in paths:
        text = request.texts.get(path)
        listed, wrong = reading.read(path, macros) if text is None else reading.scan(path, text, macros)
        problems.extend(wrong)
        if not listed and not wrong:
            problems.append(Problem(str(path), EMPTY))
        analyzed.extend(_analyze(each, found, sizers, base, request.regions, problems) for each in listed)
    return analyzed, problems


def _analyze(
    instantiation: Instantiation,
    found: dict[str, Launcher],
    sizers: dict[str, Sizer],
    base: Checkout,
    regions: bool,
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
    sized = sizer.size(bound, regions)
    where = (
        None
        if sized.offset is None
        else Location(launcher.path, launcher.range_at(sized.offset), "evaluation stopped here")
    )
    return Analyzed(instantiation, launcher.path, bound, sized.config, sized.footprint, sized.reason, None, where)


def _no_launcher(name: str, base: Checkout) -> str:
    if not base.launchers:
        return f"no launcher is at hand for {name}; name a checkout that has it with --checkout"
    return f"no launcher of {base.label} that could be read defines {name}"


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
        problems.append(
            Problem(
                str(first.file), f"{count} of {name} {UNSIZED} {reason}", first.range, related, about=f"{name} {reason}"
            )
        )
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
