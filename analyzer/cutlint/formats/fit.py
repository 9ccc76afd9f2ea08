"""What fits a GPU, for people: a table, the best first."""

from __future__ import annotations

from collections.abc import Sequence

from cutlint.fitting import REGISTERS, FitReport, Option, spills
from cutlint.printable import printable
from cutlint.wording import count

SHOWN = 20  # options listed before the rest is counted
_HEAD = ("types", "fusion", "tile", "SwapAB", "cluster", "stages", "bytes", "FLOP/B", "", "clang")
_RIGHT = frozenset({"stages", "bytes", "FLOP/B"})


def render(report: FitReport) -> str:
    """The report as plain text."""
    lines = [
        f"{printable(report.source)}: what fits {report.limit:,} B of shared memory per block on {report.target}",
        "",
    ]
    rows = [_HEAD, *(_row(each) for each in report.options[:SHOWN])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            text.rjust(width) if head in _RIGHT else text.ljust(width)
            for text, width, head in zip(row, widths, _HEAD, strict=True)
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    if len(report.options) > SHOWN:
        lines.append(f"  and {len(report.options) - SHOWN:,} more (--format json lists them all)")
    return "\n".join((*lines, "", *_closing(report))) + "\n"


def _row(each: Option) -> tuple[str, ...]:
    clang = f"differs: {each.clang_says}" if each.clang == "differs" else each.clang if each.clang == "agrees" else ""
    return (
        printable(f"{each.types}→{'/'.join(each.outputs)}"),
        printable(each.fusion),
        "×".join(map(str, each.tile)),
        str(each.swap_ab).lower(),
        _clusters(each),
        str(each.stages),
        f"{each.total:,}",
        f"{each.reuse:.1f}",
        ", ".join(_remarks(each)),
        printable(clang),
    )


def _remarks(each: Option) -> list[str]:
    remarks = ["instantiated"] if each.instantiated else []
    if each.stage_count != "automatic":
        remarks.append(f"with {each.stage_count}")
    if spills(each):
        remarks.append(f"accumulators need {each.accumulator_registers} registers of {REGISTERS}")
    return remarks


def _clusters(each: Option) -> str:
    names = ["dynamic" if None in cluster else "×".join(map(str, cluster)) for cluster in each.clusters]
    return ", ".join(dict.fromkeys(names))


def _closing(report: FitReport) -> Sequence[str]:
    lines = [
        f"{count(report.tried, 'kernel')} tried: {report.over:,} are too large with every stage count, "
        f"{report.refused:,} do not compile, {report.unknown:,} could not be sized."
    ]
    if report.not_checked:
        lines.append(f"Not checked with the clang engine: {printable(report.not_checked)}")
    return lines
