"""The report as JSON: everything, for other programs (reports/cutlint.schema.json)."""

from __future__ import annotations

import msgspec

from cutlint.report import Report


def render(report: Report) -> str:
    """The report as indented JSON, the same bytes for the same report."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"
