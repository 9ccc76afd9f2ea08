"""``cutlint map``: one kernel's shared memory byte by byte, in the manner of pahole."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cutlint.analysis import Analyzed
from cutlint.errors import CutlintError
from cutlint.findings import limits, subject
from cutlint.footprint.layout import Region
from cutlint.printable import printable
from cutlint.run import Result
from cutlint.spelling import Spelling
from cutlint.targets import Target
from cutlint.where import condition

SHOWN = 3  # different maps printed before the rest is counted
_STAGED = frozenset({"A", "B", "SFA", "SFB"})


def select(results: Sequence[Result], where: str | None, line: int | None) -> list[tuple[Analyzed, Spelling]]:
    """The instantiations for which the expression `where` holds, or which stand at the one-based `line`.

    Raises:
        CutlintError: when the expression is none, or nothing is selected.
    """
    every = [(each, paths) for analysis, paths in results for each in analysis.instantiations]
    if line is not None:
        every = [
            pair
            for pair in every
            if pair[0].instantiation.range.start.line <= line - 1 <= pair[0].instantiation.range.end.line
        ]
    if where is not None:
        holds = condition(where, "--where")
        every = [pair for pair in every if holds(pair[0])]
    if not every:
        raise CutlintError("no instantiation is selected; see `cutlint check --format json --all` for what there is")
    return every


def render(selected: Sequence[tuple[Analyzed, Spelling]], targets: Sequence[Target]) -> str:
    """The byte maps of the selected instantiations, equal ones once."""
    groups: dict[str, list[tuple[Analyzed, Spelling]]] = {}
    for each, paths in selected:
        groups.setdefault(layout(each, targets), []).append((each, paths))
    parts = []
    for text, members in list(groups.items())[:SHOWN]:
        (first, paths), others = members[0], len(members) - 1
        start = first.instantiation.range.start
        place = f"{printable(paths(str(first.instantiation.file)))}:{start.line + 1}:{start.character + 1}"
        more = f"  and {others:,} more with the same map" if others else ""
        parts.append(f"{printable(subject(first))}\n{place}{more}\n{text}")
    if len(groups) > SHOWN:
        parts.append(f"{len(groups) - SHOWN:,} other maps are not shown; narrow the selection with --where")
    return "\n\n".join(parts) + "\n"


def layout(each: Analyzed, targets: Sequence[Target]) -> str:
    """The byte map of one instantiation with its total and the limits, or why there is none; some lines, indented."""
    footprint = each.footprint
    if footprint is None:
        return f"  not sized: {printable(each.unknown or '')}"
    if footprint.refused is not None or footprint.total is None:
        return f"  does not compile: {printable(footprint.refused or '')}"
    lines = [f"  {'offset':>9}  {'size':>9}  what"]
    lines += [_line(region, footprint.stages) for region in footprint.regions]
    holes = sum(region.size for region in footprint.regions if region.kind == "padding")
    lines.append(
        f"  {'':9}  {footprint.total:>9,}  total: {footprint.stages} stages, {holes:,} B of padding, "
        f"aligned to {footprint.align:,} B ({footprint.engine} engine)"
    )
    for limit in limits(each.config.arch, targets) if each.config is not None else ():
        left = limit.limit - footprint.total
        verdict = f"{left:,} B of headroom" if left >= 0 else f"{-left:,} B over: does not run"
        lines.append(f"  {'':9}  {limit.limit:>9,}  limit on {limit.names}: {verdict}")
    return "\n".join(lines)


def _line(region: Region, stages: int | None) -> str:
    what = "/* hole */" if region.kind == "padding" else region.name
    if region.kind in _STAGED and stages and region.size % stages == 0:
        what += f"  ({stages} stages of {region.size // stages:,})"
    return f"  {region.offset:>9,}  {region.size:>9,}  {printable(what)}"


def place(source: str) -> tuple[str, int | None]:
    """``file.cu:LINE`` taken apart; any other source as it is."""
    match = re.fullmatch(r"(.+\.cu):(\d+)(?::\d+)?", source)
    return (match.group(1), int(match.group(2))) if match else (source, None)
