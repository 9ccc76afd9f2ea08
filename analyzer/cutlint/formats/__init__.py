"""Report → text, one module a format. Each has ``render(report) -> str``; text for people also draws on a terminal."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cutlint.report import Report

# The modules of this package, as --format names them
FORMATS = ("text", "json", "sarif", "github", "gitlab", "junit", "markdown", "html")


def render(report: Report, form: str) -> str:
    """The report in the format `form`, one of FORMATS."""
    result: str = import_module(f"{__name__}.{form}").render(report)
    return result
