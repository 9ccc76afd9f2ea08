"""The report as Markdown for a comment on a pull request: a table of what was found, one row a cause.

Within the 65,536 characters that GitHub takes; what is left out is said. GitLab takes more.
"""

from __future__ import annotations

from collections import Counter

from cutlint.printable import markdown
from cutlint.records import Finding
from cutlint.report import Report
from cutlint.wording import count, counts, gone, groups, place, uncounted

LIMIT = 65_536  # characters of a comment
PLACES = 4  # listed in a row before the rest is counted
_CELL = 1_000  # characters of a text in a cell
_RESERVED = 500  # for the lines below the table
_HEAD = ("| | Rule | What | What fits | Where |", "|---|---|---|---|---|")  # long paths at the end


def render(report: Report) -> str:
    """The comment: a heading with the counts, the table, and what is not in it."""
    lines = [f"### cutlint: {counts(report.summary.findings)}", ""]
    for source in report.sources:
        cutlass = f", CUTLASS {markdown(source.cutlass)}" if source.cutlass else ""
        lines.append(f"{markdown(source.label)}{cutlass}: {count(source.instantiations, 'instantiation')}  ")
    lines += [f"**Not done:** {_short(error)}  " for error in report.errors]
    rows, left = _rows(report, LIMIT - _RESERVED - len("\n".join(lines)))
    if rows:
        lines += ["", *_HEAD, *rows]
    lines += ["", *_closing(report, left)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _rows(report: Report, room: int) -> tuple[list[str], list[Finding]]:
    """The rows that fit into `room` characters, and the findings of those that do not."""
    names = {rule.id: rule.name for rule in report.rules}
    every = groups([each for each in report.findings if each.suppressed is None])
    room -= sum(len(line) + 1 for line in _HEAD)
    rows: list[str] = []
    for index, group in enumerate(every):
        row = _row(group, names.get(group[0].rule, ""))
        room -= len(row) + 1
        if room < 0:
            return rows, [each for later in every[index:] for each in later]
        rows.append(row)
    return rows, []


def _row(group: list[Finding], name: str) -> str:
    first = group[0]
    places = [f"<code>{_short(place(each))}</code> {_subject(each)}".rstrip() for each in group[:PLACES]]
    if len(group) > PLACES:
        places.append(f"and {len(group) - PLACES:,} more")
    fits = "<br>".join(_short(fix.title) for fix in first.fixes)
    rule = f"{markdown(first.rule)} {markdown(name)}".rstrip()
    return f"| **{first.severity}** | {rule} | {_short(first.message)} | {fits} | {'<br>'.join(places)} |"


def _subject(finding: Finding) -> str:
    return "" if finding.subject in finding.message else _short(finding.subject)


def _short(text: str) -> str:
    return markdown(text if len(text) <= _CELL else text[: _CELL - 1] + "…")


def _closing(report: Report, left: list[Finding]) -> list[str]:
    lines = []
    if left:
        by_severity = counts(Counter(each.severity for each in left))
        lines.append(f"Left out, for a comment holds {LIMIT:,} characters: {by_severity}.  ")
    if uncounted(report):
        lines.append(f"Not listed: {uncounted(report)}.  ")
    if gone(report):
        lines.append(f"{markdown(gone(report))}.  ")
    targets = ", ".join(markdown(target.compute_capability) for target in report.targets)
    if targets:
        lines.append(f"Checked against {targets}.")
    return lines
