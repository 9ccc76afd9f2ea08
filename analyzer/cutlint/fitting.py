"""``cutlint fit``: the kernels that fit a GPU for given types and fusion, also those that nobody instantiates yet.

The records are what other programs read (reports/cutlint-fit.schema.json is made from them).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from cutlint import __version__, edits
from cutlint.analysis import Analysis, Analyzed, prepare
from cutlint.config import KernelConfig, Shape, StageCount
from cutlint.errors import CutlintError
from cutlint.findings import types
from cutlint.fit import Knobs, changed, knobs, most_stages, runs
from cutlint.footprint.records import Footprint
from cutlint.launcher import Launcher
from cutlint.names import SHORT_ELEMENTS
from cutlint.printable import json_document, json_schema
from cutlint.report import Tool
from cutlint.sizing import Sizer
from cutlint.sources import Progress
from cutlint.targets import Target

SCHEMA_VERSION = "1.0"
_M = (64, 128, 192, 256)
_N = (8, 16, 32, 64, 96, 128, 160, 192, 224, 256)
_K_BYTES = (32, 64, 128, 256, 512)  # of the wider operand
REGISTERS = 255  # a thread can have no more
_FUSIONS = ("NONE", "FINALIZE", "ACTIVATION")
CHECKED = 5  # answers that the clang engine is asked about

Cluster = tuple[int | None, int | None, int | None]
Checked = Literal["agrees", "differs", "not asked"]


class Option(msgspec.Struct, frozen=True):
    """A kernel that fits. Tiles and clusters are in elements and CTAs, a cluster mode chosen at run time null.

    `reuse` is operand reuse: floating-point operations per byte of A and B staged for them, as loaded from global memory
    (before 4-bit operands are widened), cluster multicast aside. `stage_count` is ``automatic`` where CUTLASS chooses
    `stages` by the launcher as it is, else what the launcher must say for it. `outputs` and `clusters` are those that fit
    alike. `instantiated`: the source has it, for all outputs and clusters, with these stages. `total` is in bytes;
    `accumulator_registers` are 32-bit registers a thread for the accumulators, where the architecture keeps them there.
    `clang` says what the compiler's front end makes of it, `clang_says` its figures where they differ. `arguments` are the
    launcher's.
    """

    types: str
    outputs: tuple[str, ...]
    fusion: str
    tile: Shape
    clusters: tuple[Cluster, ...]
    swap_ab: bool
    kernel_schedule: str
    stages: int
    stage_count: str
    total: int
    reuse: float
    accumulator_registers: int | None
    instantiated: bool
    clang: Checked
    clang_says: str
    arguments: dict[str, str]


class FitReport(msgspec.Struct, frozen=True):
    """What fits the target, the best first: by reuse, then stages, then bytes, those whose accumulators spill last. `tried`
    kernels were evaluated: `over` do not fit with any stage count, `refused` do not compile, `unknown` could not be sized.
    `limit` is in bytes. `not_checked` says why the clang engine was not asked, if it was not."""

    schema_version: str
    tool: Tool
    source: str
    target: str
    limit: int
    options: tuple[Option, ...]
    tried: int
    over: int
    refused: int
    unknown: int
    not_checked: str


class _Found(msgspec.Struct, frozen=True):
    """A kernel that fits, before what is alike is put together."""

    sizer: Sizer
    config: KernelConfig
    footprint: Footprint
    automatic: bool
    arguments: dict[str, str]
    instantiated: bool


_Series = tuple[Sizer, dict[str, str], KernelConfig, Knobs]


def search(
    analysis: Analysis,
    target: Target,
    act: str,
    weight: str,
    fusion: str,
    *,
    cuda_include: Path | None = None,
    progress: Progress = lambda what, done, total: None,
) -> FitReport:
    """The kernels of the analysed source's launchers that fit `target`, for activations of type `act`, weights of type
    `weight` (``e2m1``, ``FP4``, ``float_e2m1_t``; case does not matter) and a `fusion` (NONE, FINALIZE, ACTIVATION).

    Tiles of M 64 to 256, N 8 to 256 and K of 32 to 512 bytes, SwapAB and stage counts are searched with the model, with the
    clusters, schedules and outputs that the source instantiates for these types. The clang engine is asked about the best
    `CHECKED` answers where its headers are at hand; `cuda_include` is where CUDA's are, if not to be looked for.

    Raises:
        CutlintError: when no kernel of these types is instantiated for the target, with those that are.
    """
    series = _series(analysis, target, act, weight, fusion)
    counts = {"tried": 0, "over": 0, "refused": 0, "unknown": 0}
    present = {_key(one.sizer, one.arguments) for one in analysis.instantiations if one.sizer is not None}
    found: list[_Found] = []
    for done, each in enumerate(series):
        progress("searching", done, len(series))
        found.extend(_search(each, target.limit, present, counts))
    ranked = sorted(_together(found), key=_rank)
    options, not_checked = _checked(ranked, analysis, cuda_include, progress)
    return FitReport(
        schema_version=SCHEMA_VERSION,
        tool=Tool("cutlint", __version__),
        source=analysis.checkout.label,
        target=target.compute_capability,
        limit=target.limit,
        options=tuple(options),
        not_checked=not_checked,
        **counts,
    )


def _series(analysis: Analysis, target: Target, act: str, weight: str, fusion: str) -> list[_Series]:
    """One instantiation of each kind (all but tile and SwapAB alike), with the fusion asked for."""
    mine = [each for each in analysis.instantiations if each.config is not None and each.config.arch in target.runs]
    chosen = [each for each in mine if _is(each, act, weight)]
    if not chosen:
        known = ", ".join(sorted({types(each.config).split("→")[0] for each in mine if each.config is not None}))
        raise CutlintError(
            f"no kernel for {act} activations and {weight} weights is instantiated for {target.compute_capability}; "
            f"there are {known or 'none at all'}"
        )
    found: dict[object, _Series] = {}
    turns: dict[str, Knobs] = {}
    for each in chosen:
        assert each.sizer is not None and each.config is not None  # _is has looked
        name = each.sizer.launcher.name
        if name not in turns:
            turns[name] = knobs(each.sizer, each.arguments, each.config)
        for arguments in _fused(each, fusion):
            kind = (name, *_fixed(arguments, turns[name]).items())
            config = None if kind in found else each.sizer.size(arguments, regions=False).config
            if config is not None and config.fusion == fusion.upper():
                found[kind] = (each.sizer, arguments, config, turns[name])
    if not found:
        fusions = ", ".join(sorted({each.config.fusion for each in chosen if each.config is not None}))
        raise CutlintError(f"the launcher makes no kernel of these types with the fusion {fusion}; there are {fusions}")
    return list(found.values())


def _is(each: Analyzed, act: str, weight: str) -> bool:
    config = each.config
    if config is None or each.sizer is None:
        return False
    first, second = (config.b, config.a) if config.swap_ab else (config.a, config.b)
    return _named(first.element, act) and _named(second.element, weight)


def _named(element: str, name: str) -> bool:
    """Whether a person may call the CUTLASS type `element` `name`."""
    short = element.removesuffix("_t")
    return name.lower() in {
        element.lower(), short.lower(), short.removeprefix("float_").lower(), SHORT_ELEMENTS.get(element, "").lower(),
    }  # fmt: skip


def _fused(each: Analyzed, fusion: str) -> Iterator[dict[str, str]]:
    """The arguments as they are, then with each of them that names a fusion naming the one asked for."""
    yield each.arguments
    for name, text in each.arguments.items():
        if text in _FUSIONS and text != fusion.upper():
            yield {**each.arguments, name: fusion.upper()}


def _fixed(arguments: dict[str, str], turn: Knobs) -> dict[str, str]:
    """The arguments that a search leaves as they are."""
    varied = {turn.swap, *(knob[0] for knob in turn.tile if knob is not None)}
    return {name: text for name, text in arguments.items() if name not in varied}


def _search(series: _Series, limit: int, present: set[object], counts: dict[str, int]) -> Iterator[_Found]:
    """What of one series fits, with the stages that CUTLASS chooses, or with more or fewer where only that fits or is
    better."""
    sizer, arguments, config, turn = series
    widest = max(config.a.bits, config.b.bits)
    tiles = [(m, n, size * 8 // widest) for m in _M for n in _N for size in _K_BYTES]
    for tile in dict.fromkeys((config.cta_tile, *tiles)):
        for swap in (config.swap_ab, not config.swap_ab):
            others = changed(arguments, turn, config, tile, swap)
            if others is None:
                continue
            sized = sizer.size(others, regions=False)
            counts["tried"] += 1
            if sized.config is None or sized.footprint is None:
                counts["unknown"] += 1
            elif sized.config.stage_count == StageCount() or sized.footprint.fails_in_nvcc is not None:
                counts["refused"] += 1  # already the epilogue, or for a reason other than stages
            else:
                yield from _best(sizer, others, sized.config, sized.footprint, limit, present, counts)


def _best(
    sizer: Sizer,
    arguments: dict[str, str],
    config: KernelConfig,
    footprint: Footprint,
    limit: int,
    present: set[object],
    counts: dict[str, int],
) -> Iterator[_Found]:
    there = _key(sizer, arguments) in present
    if runs(footprint, limit):
        yield _Found(sizer, config, footprint, True, arguments, there)
        stages = StageCount(stages=(footprint.stages or 0) + 1)
        if not runs(sizer.footprint(msgspec.structs.replace(config, stage_count=stages)), limit):
            return
    other = most_stages(sizer, config, limit)
    if other is not None:
        yield _Found(sizer, config, other, False, arguments, False)
    elif not runs(footprint, limit):
        counts["refused" if footprint.refused is not None else "over"] += 1


def _key(sizer: Sizer, arguments: dict[str, str]) -> object:
    return (sizer.launcher.name, *arguments.items())


def reuse(config: KernelConfig) -> float:
    """Floating-point operations per byte of A and B loaded for one tile of the MMA, 2·M·N·K / ((M·bits of A + N·bits of
    B)·K / 8). Where two SMs share an MMA, it is theirs together."""
    m, n, _ = config.mma_tile
    return 16 * m * n / (m * config.a.bits + n * config.b.bits)


def _together(found: Sequence[_Found]) -> list[tuple[_Found, Option]]:
    """Those that differ in outputs and clusters only, as one."""
    groups: dict[object, list[_Found]] = {}
    for each in found:
        config, footprint = each.config, each.footprint
        alike = (config.cta_tile, config.swap_ab, config.schedule, footprint.stages, footprint.total, each.automatic)
        groups.setdefault((types(config).split("→")[0], *alike), []).append(each)
    return [(group[0], _option(group)) for group in groups.values()]


def _option(group: Sequence[_Found]) -> Option:
    first = group[0]
    config, footprint = first.config, first.footprint
    assert footprint.stages is not None and footprint.total is not None  # it runs
    return Option(
        types=types(config).split("→")[0],
        outputs=tuple(dict.fromkeys(types(each.config).split("→")[1] for each in group)),
        fusion=config.fusion,
        tile=config.cta_tile,
        clusters=tuple(dict.fromkeys(each.config.cluster for each in group)),
        swap_ab=config.swap_ab,
        kernel_schedule=config.schedule,
        stages=footprint.stages,
        stage_count="automatic" if first.automatic else f"StageCount<{footprint.stages}>",
        total=footprint.total,
        reuse=round(reuse(config), 1),
        accumulator_registers=footprint.accumulator_registers,
        instantiated=all(each.instantiated for each in group),
        clang="not asked",
        clang_says="",
        arguments=first.arguments,
    )


def _rank(each: tuple[_Found, Option]) -> tuple[object, ...]:
    option = each[1]
    return (spills(option), -option.reuse, -option.stages, option.total, option.tile, option.swap_ab)


def spills(option: Option) -> bool:
    """Whether the accumulators alone need more registers than a thread can have."""
    return option.accumulator_registers is not None and option.accumulator_registers >= REGISTERS


def _checked(
    ranked: Sequence[tuple[_Found, Option]], analysis: Analysis, cuda_include: Path | None, progress: Progress
) -> tuple[list[Option], str]:
    """The options, the best with what the clang engine says of them; and why it was not asked, if so."""
    options = [option for _, option in ranked]
    waiting: dict[tuple[str, str], list[int]] = {}
    for index, (found, option) in enumerate(ranked[:CHECKED]):
        waiting.setdefault((found.sizer.launcher.name, option.stage_count), []).append(index)
    for (_, count), indices in waiting.items():
        launcher = _written(ranked[indices[0]][0].sizer.launcher, count, options[indices[0]].stages, analysis)
        if launcher is None:
            continue
        try:
            from cutlint.clang.engine import evaluate

            items = [options[index].arguments for index in indices]
            told = lambda done, total: progress("checking with libclang", done, total)  # noqa: E731
            footprints = evaluate(launcher, analysis.base, items, cuda_include=cuda_include, progress=told)
        except CutlintError as error:
            return options, str(error)
        for index, footprint in zip(indices, footprints, strict=True):
            options[index] = _compared(options[index], footprint)
    return options, ""


def _written(launcher: Launcher, count: str, stages: int, analysis: Analysis) -> Launcher | None:
    """The launcher as it must be for the stage count; None where cutlint cannot edit it so."""
    if count == "automatic":
        return launcher
    edit = edits.with_stages(launcher, stages)
    if edit is None:
        return None
    sizers = prepare(analysis.base, {Path(launcher.path): edits.applied(launcher.data, edit)}).sizers
    return sizers[launcher.name].launcher if launcher.name in sizers else None


def _compared(option: Option, footprint: Footprint) -> Option:
    if (footprint.total, footprint.stages) == (option.total, option.stages):
        return msgspec.structs.replace(option, clang="agrees")
    says = footprint.refused or f"{footprint.stages} stages, {footprint.total} B"
    return msgspec.structs.replace(option, clang="differs", clang_says=says)


def to_json(report: FitReport) -> str:
    """The report as indented JSON, the same bytes for the same report."""
    return json_document(report)


def schema() -> dict[str, Any]:
    """The JSON Schema of the report."""
    return json_schema("cutlint fit", SCHEMA_VERSION, FitReport)
