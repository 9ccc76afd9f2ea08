"""What a finding says, in one line and at length, for the formats that do not lay it out themselves."""

from __future__ import annotations

from cutlint.printable import printable
from cutlint.records import Finding


def headline(finding: Finding) -> str:
    """The finding in one line: what it is about, where it is about something, and what is the matter."""
    known = not finding.subject or finding.subject in finding.message
    return printable(finding.message if known else f"{finding.subject}: {finding.message}")


def place(finding: Finding) -> str:
    """``file:line:column``, counted from one, as compilers write it."""
    start = finding.range.start
    return f"{printable(finding.file)}:{start.line + 1}:{start.character + 1}"


def advice(finding: Finding) -> tuple[str, ...]:
    """Why, and what would fit: one line each, none where nothing is known."""
    lines = [f"Why: {printable(finding.detail)}"] if finding.detail else []
    if finding.fixes:
        lines.append("Fits: " + "; ".join(printable(fix.title) for fix in finding.fixes))
    return tuple(lines)
