"""The report for people: findings of the same cause together, each with what it needs and what would fit."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from cutlint.printable import printable
from cutlint.records import Finding
from cutlint.report import Report
from cutlint.wording import count, counts, gone, groups, place, uncounted

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = {"error": 8, "warning": 4, "note": 3}  # places listed for one cause before the rest is counted
_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}


def render(report: Report, statistics: bool = False) -> str:
    """The report as plain text, without colour; with `statistics`, how many there are of everything at the end."""
    from rich.console import Console

    text = io.StringIO()
    draw(
        report, Console(file=text, highlight=False, markup=False, emoji=False, color_system=None, width=160), statistics
    )
    return text.getvalue()


def draw(report: Report, console: Console, statistics: bool = False) -> None:
    """Write the report to `console` (colour and width are its own business), with `statistics` if wanted."""
    from rich.text import Text

    for source in report.sources:
        cutlass = f", CUTLASS {source.cutlass}" if source.cutlass else ""
        counts = f"{count(source.files, 'file')}, {count(source.instantiations, 'instantiation')}"
        console.print(Text(f"{printable(source.label)}{cutlass}: {counts}"), soft_wrap=True)
    for group in groups([each for each in report.findings if each.suppressed is None]):
        console.print()
        _group(group, console)
    console.print()
    console.print(Text(_closing(report)), soft_wrap=True)
    if statistics:
        console.print(Text("\n" + "\n".join(_statistics(report))), soft_wrap=True)


def _group(group: list[Finding], console: Console) -> None:
    from rich.text import Text

    first = group[0]
    head = Text.assemble((f"{first.severity}[{first.rule}]", _STYLES[first.severity]), " ", printable(first.message))
    console.print(head, soft_wrap=True)
    shown = SHOWN[first.severity]
    for finding in group[:shown]:
        console.print(
            Text.assemble("  ", (place(finding), "bold"), f"  {printable(finding.subject)}" if finding.subject else ""),
            soft_wrap=True,
        )
    if len(group) > shown:
        console.print(Text(f"  and {len(group) - shown:,} more (--format json lists them all)"), soft_wrap=True)
    if first.detail:
        console.print(Text.assemble(("  why: ", "bold"), printable(first.detail)), soft_wrap=True)
    for index, fix in enumerate(first.fixes):
        console.print(
            Text.assemble(("  fits: " if index == 0 else "        ", "bold green"), printable(fix.title)),
            soft_wrap=True,
        )
        if fix.edit is not None:
            edit = f"          {place(fix.edit.where)}  {printable(fix.edit.line)}"
            console.print(Text(edit), soft_wrap=True)
    for where in first.related:
        console.print(Text.assemble(("  see: ", "bold"), f"{place(where)}  {printable(where.message)}"), soft_wrap=True)


def _closing(report: Report) -> str:
    summary = report.summary
    found = ", ".join(each for each in (counts(summary.findings).capitalize(), uncounted(report)) if each)
    sized = f"{summary.sized + summary.refused:,} of {count(summary.instantiations, 'instantiation')} sized"
    targets = ", ".join(target.compute_capability for target in report.targets)
    closing = f"{found}. {sized}" + (f", checked against {targets}." if targets else ".")
    return "\n".join(each for each in (closing, gone(report)) if each)


def _statistics(report: Report) -> list[str]:
    """Counts that add up: the indented ones to the one above them."""
    summary = report.summary
    names = {rule.id: f"{rule.id} {rule.name}" for rule in report.rules}
    rows = [
        ("Files", summary.files),
        ("  read", summary.files - summary.unread_files),
        ("  not read", summary.unread_files),
        ("Invocations found", summary.instantiations + summary.unread),
        ("  evaluated", summary.sized),
        ("  refused by the compiler", summary.refused),
        ("  not understood", summary.not_sized + summary.unread),
        ("Findings that count", sum(summary.rules.values())),
        *((f"  {printable(names.get(rule, rule))}", number) for rule, number in summary.rules.items()),
        ("Findings suppressed", summary.suppressed),
        ("Findings in the baseline", summary.known),
    ]
    width = max(len(label) for label, _ in rows)
    figures = max(len(f"{number:,}") for _, number in rows)
    return [f"{label:<{width}}  {number:>{figures},}" for label, number in rows]
