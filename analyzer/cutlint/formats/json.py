"""The report as JSON: everything, for other programs (reports/cutlint.schema.json)."""

from __future__ import annotations

from cutlint.printable import json_document
from cutlint.report import Report


def render(report: Report) -> str:
    """The report as indented JSON, the same bytes for the same report."""
    return json_document(report)
