"""The report as workflow commands of GitHub Actions: an annotation in the pull request for each finding that counts.

Follows "Workflow commands for GitHub Actions" and the escapes of actions/toolkit (core/src/command.ts). GitHub shows ten
annotations of each kind a step and drops the rest without a word; the log has them all.
"""

from __future__ import annotations

from cutlint.printable import printable
from cutlint.records import SEVERITIES, Finding
from cutlint.report import Report
from cutlint.wording import advice, counts, gone, headline, seen, uncounted

SHOWN = 10  # of each kind, in a step
_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def render(report: Report) -> str:
    """One line a finding, the most severe first, and a last one with the counts."""
    names = {rule.id: rule.name for rule in report.rules}
    counted = [each for each in report.findings if each.suppressed is None]
    lines = [_command("error", {"title": "cutlint"}, printable(error)) for error in report.errors]
    for each in sorted(counted, key=lambda each: -SEVERITIES.index(each.severity)):
        lines.append(_annotation(each, names.get(each.rule, "")))
    return "\n".join([*lines, _closing(report), *filter(None, [gone(report)])]) + "\n"


def _annotation(finding: Finding, name: str) -> str:
    start, end = finding.range.start, finding.range.end
    properties = {
        "title": f"{finding.rule} {name}".strip(),
        "file": printable(finding.file),
        "line": str(start.line + 1),
    }
    if end.line == start.line:  # GitHub takes columns for a single line only
        properties |= {"col": str(start.character + 1), "endColumn": str(end.character + 1)}
    else:
        properties["endLine"] = str(end.line + 1)
    message = "\n".join([headline(finding), *advice(finding), *seen(finding)])
    return _command(_COMMANDS[finding.severity], properties, message)


def _command(name: str, properties: dict[str, str], message: str) -> str:
    given = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in properties.items())
    return f"::{name} {given}::{_escaped(message)}"


def _escaped(text: str, further: str = "") -> str:
    for each in f"%\r\n{further}":
        text = text.replace(each, f"%{ord(each):02X}")
    return text


def _closing(report: Report) -> str:
    summary = report.summary
    text = f"cutlint: {counts(summary.findings)}"
    if uncounted(report):
        text += f", {uncounted(report)}"
    if any(number > SHOWN for number in summary.findings.values()):
        text += f"; GitHub shows {SHOWN} annotations of each kind, this log has them all"
    return text
