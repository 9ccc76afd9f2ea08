"""``cutlint tactics``: what the autotuner is offered on each target, and what becomes of it.

The records are what other programs read (reports/cutlint-tactics.schema.json is made from them).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec

from cutlint import __version__
from cutlint.analysis import Analysis, Analyzed
from cutlint.dispatch.reach import Reach
from cutlint.dispatch.records import Tactic
from cutlint.dispatch.subjects import element, location, running, says
from cutlint.errors import CutlintError
from cutlint.printable import json_document, json_schema
from cutlint.records import Location, Paths
from cutlint.report import Tool
from cutlint.targets import Target
from cutlint.verdicts import FAILING, Fate, fate

SCHEMA_VERSION = "1.1"
Verdict = Literal[Fate, "not-dispatched", "not-instantiated"]
SKIPPED: tuple[Verdict, ...] = (*FAILING, "not-dispatched", "not-instantiated")


class Extents(msgspec.Struct, frozen=True):
    """A tile as tactics have it: M and N in elements, K in bytes."""

    m: int
    n: int
    k_bytes: int


class TacticReport(msgspec.Struct, frozen=True):
    """One tactic of one runner on one target.

    A skip list is made of those with `skip`, told apart by `activation`, `weight`, `output`, `tile`, `fusion`, `swap_ab`,
    `cluster`, `dynamic_cluster` and the schedules. `index` is the position in what the runner's ``getConfigs`` returns for
    the second GEMM of a layer. `total` and `stages` are the kernel's shared memory in bytes and its pipeline stages,
    `limit` what a block may have; null where there is no figure. `reason` says why a tactic fails, `offered` and `kernel`
    where it is listed and instantiated.
    """

    target: str
    runner: str
    activation: str
    weight: str
    output: str
    block_scaling: str
    index: int
    tile: Extents
    cluster: tuple[int, int, int]
    dynamic_cluster: tuple[int, int, int] | None
    mainloop_schedule: str
    epilogue_schedule: str
    fusion: str
    swap_ab: bool
    verdict: Verdict
    skip: bool
    total: int | None
    limit: int
    stages: int | None
    reason: str
    offered: Location
    kernel: Location | None


class Unused(msgspec.Struct, frozen=True):
    """A runner none of whose tactics is dispatched on a target: the host code does not use it there."""

    target: str
    runner: str
    tactics: int


class TacticsReport(msgspec.Struct, frozen=True):
    """The tactics of all runners on all targets asked for. `others` counts, by target, offered configurations that are
    Ampere-style kernels, compiled inside the dispatch code: cutlint does not judge them. `problems` is what was not
    understood; with any, the lists may not be whole."""

    schema_version: str
    tool: Tool
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    tactics: tuple[TacticReport, ...]
    unused: tuple[Unused, ...]
    others: dict[str, int]
    problems: tuple[str, ...]


def build(
    results: Sequence[tuple[Analysis, Paths, Reach]], targets: Sequence[Target], skipped_only: bool = False
) -> TacticsReport:
    """The report for `targets`; `skipped_only`: only tactics that fail.

    Raises:
        CutlintError: when none of the targets runs any of the kernels.
    """
    tactics: list[TacticReport] = []
    unused: list[Unused] = []
    others: dict[str, int] = {}
    problems: list[str] = []
    asked: list[str] = []
    for analysis, paths, reach in results:
        used = running(reach)
        archs = {each.config.arch for each in analysis.instantiations if each.config is not None}
        for target in targets:
            if not archs & set(target.runs):
                continue
            sm = int(target.compute_capability.replace(".", ""))
            of_target = [tactic for tactic in reach.routes.tactics if tactic.sm == sm]
            name = target.compute_capability
            asked.append(name)
            others[name] = others.get(name, 0) + reach.routes.others.get(sm, 0)
            tactics.extend(
                _tactic(each, target, analysis, reach, paths) for each in of_target if (each.runner, sm) in used
            )
            unused.extend(_unused(of_target, name, reach, used))
        problems.extend(f"{paths(each.file)}: {each.message}" for each in reach.problems)
    if not asked:
        names = ", ".join(target.compute_capability for target in targets)
        raise CutlintError(f"none of the kernels is built for {names}, so nothing is offered there")
    return TacticsReport(
        schema_version=SCHEMA_VERSION,
        tool=Tool("cutlint", __version__),
        sources=tuple(analysis.checkout.label for analysis, _, _ in results),
        targets=tuple(dict.fromkeys(asked)),
        tactics=tuple(each for each in tactics if each.skip or not skipped_only),
        unused=tuple(unused),
        others=others,
        problems=tuple(dict.fromkeys(problems)),
    )


def _unused(tactics: Sequence[Tactic], target: str, reach: Reach, used: set[tuple[int, int]]) -> Iterator[Unused]:
    counts: dict[int, int] = {}
    for each in tactics:
        if (each.runner, each.sm) not in used:
            counts[each.runner] = counts.get(each.runner, 0) + 1
    for runner, count in counts.items():
        yield Unused(target, reach.routes.runners[runner].name, count)


def _tactic(tactic: Tactic, target: Target, analysis: Analysis, reach: Reach, paths: Paths) -> TacticReport:
    runner = reach.routes.runners[tactic.runner]
    kernel = kernel_of(tactic, analysis, reach)
    verdict, reason = _verdict(tactic, kernel, target, reach)
    footprint = None if kernel is None else kernel.footprint
    m, n, k = tactic.tile
    offered = location(tactic.offered, word=tactic.label)
    return TacticReport(
        target=target.compute_capability,
        runner=runner.name,
        activation=element(runner.activation),
        weight=element(runner.weight),
        output=element(runner.output),
        block_scaling=runner.scaling,
        index=tactic.index,
        tile=Extents(m, n, k),
        cluster=tactic.cluster,
        dynamic_cluster=tactic.dynamic_cluster,
        mainloop_schedule=tactic.mainloop,
        epilogue_schedule=tactic.epilogue,
        fusion=tactic.fusion,
        swap_ab=tactic.swap_ab,
        verdict=verdict,
        skip=verdict in SKIPPED,
        total=None if footprint is None else footprint.total,
        limit=target.limit,
        stages=None if footprint is None else footprint.stages,
        reason=reason,
        offered=msgspec.structs.replace(offered, file=paths(offered.file)),
        kernel=None if kernel is None else Location(paths(str(kernel.instantiation.file)), kernel.instantiation.range),
    )


def kernel_of(tactic: Tactic, analysis: Analysis, reach: Reach) -> Analyzed | None:
    """The instantiation that a tactic runs."""
    indices = reach.instantiated.get(tactic.calls[0], ()) if len(tactic.calls) == 1 else ()
    return analysis.instantiations[indices[0]] if indices else None


def _verdict(tactic: Tactic, kernel: Analyzed | None, target: Target, reach: Reach) -> tuple[Verdict, str]:
    if not tactic.calls:
        if tactic.runner in reach.routes.partial:
            return "unknown", "the dispatch code is not understood in full"
        return "not-dispatched", says(tactic.refused) or "no case leads to a launcher"
    if kernel is None:
        if len(tactic.calls) > 1:
            return "unknown", f"one of {len(tactic.calls)} kernels, depending on the problem"
        return "not-instantiated", f"{reach.routes.calls[tactic.calls[0]].launcher} is not instantiated for it"
    return fate(kernel, target.limit)


def to_json(report: TacticsReport) -> str:
    """The report as indented JSON, the same bytes for the same report."""
    return json_document(report)


def schema() -> dict[str, Any]:
    """The JSON Schema of the report."""
    return json_schema("cutlint tactics", SCHEMA_VERSION, TacticsReport)


def types(tactic: TacticReport) -> str:
    """``MXFP8×MXFP4``."""
    prefix = "MX" if tactic.block_scaling == "MXFPX" else ""
    return f"{prefix}{tactic.activation}×{prefix}{tactic.weight}"
