"""What findings say, in one line and at length, and which of them say the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cutlint.printable import printable
from cutlint.records import SEVERITIES, Finding, Location

if TYPE_CHECKING:
    from cutlint.report import Report


def headline(finding: Finding) -> str:
    """The finding in one line: what it is about, where it is about something, and what is the matter."""
    known = not finding.subject or finding.subject in finding.message
    return printable(finding.message if known else f"{finding.subject}: {finding.message}")


def place(where: Finding | Location) -> str:
    """``file:line:column``, counted from one, as compilers write it."""
    start = where.range.start
    return f"{printable(where.file)}:{start.line + 1}:{start.character + 1}"


def fits(finding: Finding) -> str:
    """What would fit, in one line; nothing where that is not known."""
    return "Fits: " + "; ".join(printable(fix.title) for fix in finding.fixes) if finding.fixes else ""


def advice(finding: Finding) -> tuple[str, ...]:
    """Why, and what would fit: one line each, none where nothing is known."""
    why = f"Why: {printable(finding.detail)}" if finding.detail else ""
    return tuple(line for line in (why, fits(finding)) if line)


def seen(finding: Finding) -> tuple[str, ...]:
    """The related places, one line each."""
    return tuple(f"See: {place(where)} {printable(where.message)}".rstrip() for where in finding.related)


def groups(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings that say the same for the same reason and with the same way out, the most severe first."""
    found: dict[tuple[str, ...], list[Finding]] = {}
    for each in findings:
        key = (each.rule, each.message, each.detail, *(fix.title for fix in each.fixes))
        found.setdefault(key, []).append(each)
    return sorted(found.values(), key=lambda group: (-SEVERITIES.index(group[0].severity), group[0].rule))


def count(number: int, noun: str) -> str:
    """``1 file``, ``2,020 files``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def counts(findings: dict[str, int]) -> str:
    """How many findings of each severity, the most severe first: ``9 errors, 20 warnings``; ``no findings``."""
    parts = [count(findings[name], name) for name in reversed(SEVERITIES) if findings.get(name)]
    return ", ".join(parts) or "no findings"


def uncounted(report: Report) -> str:
    """How many findings do not count: ``3 suppressed, 12 in the baseline``; nothing where there are none."""
    summary = report.summary
    parts = [f"{summary.suppressed:,} suppressed"] if summary.suppressed else []
    if summary.known:
        parts.append(f"{summary.known:,} in the baseline")
    return ", ".join(parts)


def gone(report: Report) -> str:
    """What of the baseline no longer occurs, in a sentence; nothing where all of it does."""
    if report.baseline is None or not report.baseline.gone:
        return ""
    number = len(report.baseline.gone)
    verb = "occurs" if number == 1 else "occur"
    rules = dict.fromkeys(printable(each.rule) for each in report.baseline.gone)
    return (
        f"{count(number, 'finding')} of {printable(report.baseline.file)} no longer {verb} ({', '.join(rules)}): "
        "write it again with --write-baseline"
    )
