"""Findings as an editor's diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lsprotocol import types

from cutlint.editor.positions import Columns
from cutlint.printable import printable
from cutlint.records import Finding
from cutlint.wording import advice, headline

SOURCE = "cutlint"
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}

Open = Callable[[str], tuple[str, Columns]]  # a file as findings name it: its URI and its positions


def diagnostics(findings: Sequence[Finding], columns: Columns, related: Open | None) -> list[types.Diagnostic]:
    """One diagnostic a finding of the text that `columns` is of. `related`: how to name other files, None for an editor
    that shows no related places."""
    return [
        types.Diagnostic(
            range=columns.to_editor(each.range),
            severity=_SEVERITIES[each.severity],
            code=each.rule,
            source=SOURCE,
            message="\n".join((headline(each), *advice(each))),
            related_information=_related(each, related) if related is not None else None,
        )
        for each in findings
    ]


def _related(finding: Finding, related: Open) -> list[types.DiagnosticRelatedInformation]:
    found = []
    for where in finding.related:
        uri, columns = related(where.file)
        location = types.Location(uri, columns.to_editor(where.range))
        found.append(types.DiagnosticRelatedInformation(location, printable(where.message)))
    return found
