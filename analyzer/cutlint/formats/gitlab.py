"""The report as GitLab's code quality report (a JSON array, after the Code Climate issue), of the findings that count.

GitLab compares the fingerprints of two branches, so a finding keeps its own when lines move.
"""

from __future__ import annotations

from typing import Any

from cutlint.printable import json_document, printable
from cutlint.records import Finding
from cutlint.report import Report
from cutlint.wording import fits, headline

SEVERITY = {"error": "critical", "warning": "minor", "note": "info"}


def render(report: Report) -> str:
    """The JSON array, in the order of the report. What could not be done has no place in it: the exit code is 2 then."""
    issues = [_issue(each) for each in report.findings if each.suppressed is None]
    return json_document(issues)


def _issue(finding: Finding) -> dict[str, Any]:
    start, end = finding.range.start, finding.range.end
    return {
        "description": ". ".join(line for line in (headline(finding), fits(finding)) if line),
        "check_name": finding.rule,
        "fingerprint": finding.fingerprint,
        "severity": SEVERITY[finding.severity],
        "location": {"path": printable(finding.file), "lines": {"begin": start.line + 1, "end": end.line + 1}},
    }
