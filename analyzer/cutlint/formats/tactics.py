"""The list of tactics for people: one table a target and pair of types, tactics of one fate in one line."""

from __future__ import annotations

from collections.abc import Sequence

from cutlint.printable import printable
from cutlint.tactics import TacticReport, TacticsReport, types

_HEAD = ("tile", "fusion", "SwapAB", "cluster", "epilogue", "stages", "bytes", "verdict")
_RIGHT = frozenset({"stages", "bytes"})


def render(report: TacticsReport) -> str:
    """The report as plain text."""
    lines = [", ".join(map(printable, report.sources))]
    for target in report.targets:
        of_target = [each for each in report.tactics if each.target == target]
        limit = f", {of_target[0].limit:,} B of shared memory per block" if of_target else ""
        lines += ["", f"{target}{limit}"]
        for name in dict.fromkeys(types(each) for each in of_target):
            lines += ["", *_table(name, [each for each in of_target if types(each) == name])]
        lines += ["", _closing(report, target, of_target)]
        for each in report.unused:
            if each.target == target:
                lines.append(f"{printable(each.runner)}: none of its {each.tactics:,} tactics is dispatched here")
    lines += [f"not understood: {printable(problem)}" for problem in report.problems]
    return "\n".join(lines) + "\n"


def _closing(report: TacticsReport, target: str, tactics: Sequence[TacticReport]) -> str:
    skipped = sum(each.skip for each in tactics)
    unknown = sum(each.verdict == "unknown" for each in tactics)
    parts = [f"{skipped:,} of {len(tactics):,} tactics to skip"]
    if unknown:
        parts.append(f"{unknown:,} not known")
    others = report.others.get(target, 0)
    if others:
        parts.append(f"{others:,} Ampere-style ones not judged")
    return f"{target}: " + ", ".join(parts)


def _table(name: str, tactics: Sequence[TacticReport]) -> list[str]:
    groups: dict[tuple[str, ...], list[TacticReport]] = {}
    for each in tactics:
        groups.setdefault(_row(each), []).append(each)
    outputs = "/".join(dict.fromkeys(each.output for each in tactics))
    rows = [
        (*key[:3], _clusters(group), *key[3:])
        for key, group in sorted(groups.items(), key=lambda item: _order(item[1][0]))
    ]
    widths = [max(len(row[column]) for row in (_HEAD, *rows)) for column in range(len(_HEAD))]
    lines = [f"{name}→{outputs}: {len(tactics):,} tactics"]
    for row in (_HEAD, *rows):
        cells = [
            text.rjust(width) if head in _RIGHT else text.ljust(width)
            for text, width, head in zip(row, widths, _HEAD, strict=True)
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines


def _row(each: TacticReport) -> tuple[str, ...]:
    verdict = each.verdict if not each.reason else f"{each.verdict}: {printable(each.reason)}"
    return (
        f"{each.tile.m}×{each.tile.n}×{each.tile.k_bytes}B",
        each.fusion,
        str(each.swap_ab).lower(),
        each.epilogue_schedule,
        "" if each.stages is None else str(each.stages),
        "" if each.total is None else f"{each.total:,}",
        verdict,
    )


def _order(each: TacticReport) -> tuple[object, ...]:
    return (each.tile.m, each.tile.n, each.tile.k_bytes, each.fusion, each.swap_ab, each.epilogue_schedule)


def _clusters(group: Sequence[TacticReport]) -> str:
    """The clusters of a line: fixed ones, or those chosen at launch with how many SMs share an MMA."""
    names = dict.fromkeys(
        "×".join(map(str, each.cluster))
        if each.dynamic_cluster is None
        else "×".join(map(str, each.dynamic_cluster)) + f" ({each.cluster[0]}SM)"
        for each in group
    )
    return ", ".join(names)
