"""What the rules on reachability judge: calls without an instantiation, tactics in groups, decisions of filters."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from cutlint.analysis import Analysis, Analyzed
from cutlint.dispatch.reach import Reach, built
from cutlint.dispatch.records import Call, Filtered, Runner, Tactic
from cutlint.dispatch.routes import line_range
from cutlint.dispatch.values import Place
from cutlint.evaluate import CUTLASS_ELEMENT
from cutlint.footprint.records import Footprint
from cutlint.names import SHORT_ELEMENTS
from cutlint.records import Location, Position, Range
from cutlint.targets import Target

_START = Range(Position(0, 0), Position(0, 0))


class Gap(msgspec.Struct, frozen=True):
    """Calls of one launcher by one runner for one tile (None: for all its tiles), of which `missing` out of `variants`
    are not instantiated in any of `files` generated files. `where` is the tile's case, or the runner's own
    instantiation."""

    launcher: str
    runner: str
    types: str
    tile: str | None
    variants: int
    missing: int
    files: int
    where: Location
    related: tuple[Location, ...]

    @property
    def subject(self) -> str:
        return self.runner if self.tile is None else f"tile {self.tile}"

    @property
    def identity(self) -> str:
        """What it is about, without counts: it tells the finding again."""
        return "\0".join((self.launcher, self.runner, self.tile or ""))


class Tile(msgspec.Struct, frozen=True):
    """Tactics that one line of host code offers for one tile and meet the same fate, on `targets` (compute
    capabilities, `names` for people) that give a block `limit` bytes.

    Where the dispatch code takes them (`dispatched`), `footprint` is that of their kernels; where not, `refused` is
    what it says.
    """

    label: str
    types: str
    fusion: str
    swap_ab: str
    epilogue: str
    variants: int
    targets: tuple[str, ...]
    names: str
    limit: int
    dispatched: bool
    refused: str
    footprint: Footprint
    where: Location
    related: tuple[Location, ...]

    @property
    def subject(self) -> str:
        return f"tile {self.label}, {self.variants:,} tactic{'' if self.variants == 1 else 's'}"

    @property
    def identity(self) -> str:
        """What it is about, without counts: it tells the finding again."""
        return "\0".join((self.label, self.types, self.fusion, self.swap_ab, self.epilogue, self.refused))


class Decision(msgspec.Struct, frozen=True):
    """What a host-side filter decided of one tile, and what its kernels need: of `variants`, `fitting` fit."""

    function: str
    label: str
    types: str
    kept: bool
    variants: int
    fitting: int
    least: int
    most: int
    targets: tuple[str, ...]
    names: str
    limit: int
    where: Location
    related: tuple[Location, ...]

    @property
    def subject(self) -> str:
        return f"tile {self.label}"

    @property
    def identity(self) -> str:
        """What it is about, without counts: it tells the finding again."""
        return "\0".join((self.function, self.label, self.types, str(self.kept)))


def location(place: Place, message: str = "", word: str = "") -> Location:
    return Location(place.path, line_range(place, word) or _START, message)


def types_of(runner: Runner) -> str:
    """``FP8×FP4``, with MX where the scale factors are."""
    prefix = "MX" if runner.scaling == "MXFPX" else ""
    return f"{prefix}{element(runner.activation)}×{prefix}{element(runner.weight)}"


def element(name: str) -> str:
    return SHORT_ELEMENTS.get(CUTLASS_ELEMENT.get(name, name), name)


def gaps(reach: Reach, analysis: Analysis) -> list[Gap]:
    """The calls that are not instantiated: by tile, or of a whole runner in one where it has none at all."""
    groups: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for number, call in enumerate(reach.routes.calls):
        if built(call) in reach.judged:
            groups.setdefault((built(call), call.runners), []).append(number)
    found: list[Gap] = []
    for (_, runners), numbers in groups.items():
        missing = [number for number in numbers if number not in reach.instantiated]
        if len(missing) == len(numbers):
            found.append(_gap(reach, analysis, runners, numbers, missing, None))
            continue
        by_case: dict[tuple[Place | None, str | None], list[int]] = {}
        for number in numbers:
            call = reach.routes.calls[number]
            by_case.setdefault((call.case, call.label), []).append(number)
        for some in by_case.values():
            lost = [number for number in some if number not in reach.instantiated]
            if lost:
                found.append(_gap(reach, analysis, runners, some, lost, reach.routes.calls[some[0]]))
    return found


def _gap(
    reach: Reach,
    analysis: Analysis,
    runners: tuple[int, ...],
    numbers: list[int],
    missing: list[int],
    tile: Call | None,
) -> Gap:
    runner = reach.routes.runners[runners[0]]
    first = reach.routes.calls[missing[0]]
    called = location(first.place, f"{first.launcher} is called here")
    instantiated = location(runner.place, f"{runner.name} is instantiated here")
    where = instantiated if tile is None or tile.case is None else location(tile.case)
    related = (called,) if where is instantiated else (called, instantiated)
    return Gap(
        launcher=first.launcher,
        runner=runner.name,
        types=f"{types_of(runner)}→{element(runner.output)}",
        tile=None if tile is None else tile_name(tile.label),
        variants=len(numbers),
        missing=len(missing),
        files=analysis.files,
        where=where,
        related=related,
    )


def tile_name(label: str | None) -> str:
    """``CtaShape128x256x64B`` as ``128×256×64B``: K is in bytes there."""
    match = re.fullmatch(r"\D*(\d+x\d+x\d+B?)(_\w+)?", label or "")
    return (label or "any tile") if match is None else match.group(1).replace("x", "×")


def running(reach: Reach) -> set[tuple[int, int]]:
    """The runners and compute capabilities (as numbers) on which anything that they offer is dispatched: on others the
    host code does not use them."""
    return {(tactic.runner, tactic.sm) for tactic in reach.routes.tactics if tactic.calls}


def tiles(reach: Reach, analysis: Analysis, targets: Sequence[Target]) -> list[Tile]:
    """The tactics of all runners that are used, in groups with one fate."""
    used = running(reach)
    by_sm = {int(each.compute_capability.replace(".", "")): each for each in targets}
    groups: dict[tuple[object, ...], list[Tactic]] = {}
    for tactic in reach.routes.tactics:
        if (tactic.runner, tactic.sm) not in used or tactic.sm not in by_sm:
            continue
        if not tactic.calls and tactic.runner in reach.routes.partial:
            continue
        runner = reach.routes.runners[tactic.runner]
        limit = by_sm[tactic.sm].limit
        fate: tuple[object, ...]
        if tactic.calls:
            kernel = _kernel(reach, analysis, tactic)
            if kernel is None or kernel.footprint is None:
                continue
            fate = (tactic.fusion, tactic.swap_ab, tactic.epilogue, kernel.footprint.total, kernel.footprint.stages)
        else:
            fate = (tactic.refused, tactic.refused_at)
        key = (tactic.offered, tactic.label, types_of(runner), limit, bool(tactic.calls), fate)
        groups.setdefault(key, []).append(tactic)
    return [_tile(reach, analysis, group, by_sm) for group in groups.values()]


def _kernel(reach: Reach, analysis: Analysis, tactic: Tactic) -> Analyzed | None:
    """The instantiation that a tactic runs, where there is one."""
    indices = reach.instantiated.get(tactic.calls[0], ()) if tactic.calls else ()
    return analysis.instantiations[indices[0]] if indices else None


def _tile(reach: Reach, analysis: Analysis, group: list[Tactic], by_sm: dict[int, Target]) -> Tile:
    first = group[0]
    kernel = _kernel(reach, analysis, first)
    runners = list(dict.fromkeys(reach.routes.runners[each.runner] for each in group))
    outputs = "/".join(dict.fromkeys(element(each.output) for each in runners))
    names = tuple(dict.fromkeys(by_sm[each.sm].compute_capability for each in group))
    related: list[Location] = []
    if kernel is not None:
        one = kernel.instantiation
        related.append(Location(str(one.file), one.range, "the kernel is instantiated here"))
        case = reach.routes.calls[first.calls[0]].case
        if case is not None:
            related.append(location(case, "the tile is dispatched here"))
    elif first.refused_at is not None and first.refused_at.path:
        related.append(location(first.refused_at, "the dispatch code refuses it here"))
    return Tile(
        label=tile_name(first.label),
        types=f"{types_of(runners[0])}→{outputs}",
        fusion=_one({each.fusion for each in group}),
        swap_ab=_one({str(each.swap_ab).lower() for each in group}),
        epilogue=_one({each.epilogue for each in group}),
        variants=len({(each.runner, each.index) for each in group}),
        targets=names,
        names=" and ".join(names),
        limit=by_sm[first.sm].limit,
        dispatched=bool(first.calls),
        refused=says(first.refused),
        footprint=kernel.footprint if kernel is not None and kernel.footprint is not None else Footprint("none"),
        where=location(first.offered, word=first.label),
        related=tuple(related),
    )


def _one(values: set[str]) -> str:
    return values.pop() if len(values) == 1 else "any"


def says(text: str | None) -> str:
    """The first sentence of what a throw says, its placeholders left out."""
    words = " ".join(re.sub(r"%\w+", "…", text or "").split())
    words = re.sub(r"\s*\(…(?:,\s*…)*\)", "", words)
    return re.sub(r"^[…\s]+", "", re.split(r"(?<=\S)\.\s", words)[0]).rstrip(". ")


def decisions(reach: Reach, analysis: Analysis, targets: Sequence[Target]) -> list[Decision]:
    """What filters that look at shared memory decided, with what the kernels of the tile need."""
    by_sm = {int(each.compute_capability.replace(".", "")): each for each in targets}
    groups: dict[tuple[object, ...], list[Filtered]] = {}
    for each in reach.routes.filtered:
        if each.sm in by_sm:
            runner = reach.routes.runners[each.runner]
            key = (each.place, each.label, types_of(runner), each.kept, by_sm[each.sm].limit)
            groups.setdefault(key, []).append(each)
    found: list[Decision] = []
    for group in groups.values():
        first = group[0]
        runners = {each.runner for each in group}
        kernels = [
            analysis.instantiations[index]
            for number, call in enumerate(reach.routes.calls)
            if call.label == first.label and runners & set(call.runners)
            for index in reach.instantiated.get(number, ())
        ]
        archs = set(by_sm[first.sm].runs)
        sized = [each for each in kernels if each.config is not None and each.config.arch in archs]
        totals = [each.footprint.total for each in sized if each.footprint is not None and each.footprint.total]
        if not totals:
            continue
        limit = by_sm[first.sm].limit
        names = tuple(dict.fromkeys(by_sm[each.sm].compute_capability for each in group))
        one = sized[0].instantiation
        found.append(
            Decision(
                function=first.function,
                label=tile_name(first.label),
                types=types_of(reach.routes.runners[first.runner]),
                kept=first.kept,
                variants=len(totals),
                fitting=sum(total <= limit for total in totals),
                least=min(totals),
                most=max(totals),
                targets=names,
                names=" and ".join(names),
                limit=limit,
                where=location(first.place),
                related=(Location(str(one.file), one.range, "one of its kernels is instantiated here"),),
            )
        )
    return found
