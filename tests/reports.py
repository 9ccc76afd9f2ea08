"""Reports made for tests of the formats: what a run would say, without the run."""

from __future__ import annotations

from typing import Any

import msgspec

from cutlint.records import Finding, Fix, Location, Position, Range, Severity
from cutlint.report import BaselineReport, Report, RuleReport, SourceReport, Summary, TargetReport, Tool
from cutlint.settings import FailOn

LAUNCHER = "csrc/launcher.inl"
FILE = "gemm/kernels.cu"


def span(line: int, character: int, end_line: int, end_character: int) -> Range:
    return Range(Position(line, character), Position(end_line, end_character))


def finding(index: int = 0, severity: Severity = "error", **changes: Any) -> Finding:
    """A finding at line 10 + `index` of FILE, with a related place in LAUNCHER."""
    made = Finding(
        rule={"error": "CUT101", "warning": "CUT402", "note": "CUT102"}[severity],
        severity=severity,
        message="needs 102,400 B of shared memory per block",
        file=FILE,
        range=span(9 + index, 8, 12 + index, 36),
        targets=("12.0", "12.1"),
        related=(Location(LAUNCHER, span(499, 6, 501, 67), "the stage count is decided here"),),
        fixes=(Fix("swap-ab", "SwapAB=true: 2 stages, 74,752 B", 74752, 2),),
        detail="CUTLASS divides 83,536 B by 27,776 B a stage",
        subject="Sm120 FP4×FP4→FP16 128×256×128",
        fingerprint=f"{index:032x}",
    )
    return msgspec.structs.replace(made, **changes)


def report(
    *findings: Finding,
    errors: tuple[str, ...] = (),
    fail_on: FailOn = "error",
    baseline: BaselineReport | None = None,
    **files: str | None,
) -> Report:
    """A report of `findings` from the folder /work/repo; `files` may say where else a file lies."""
    named = {each.file for each in findings} | {where.file for each in findings for where in each.related}
    rules = [
        RuleReport(
            "CUT101", "over-limit", "error", "Too large", "At launch, StageCount<N> fails.\n\nWhat helps: less."
        ),
        RuleReport("CUT102", "at-limit", "note", "Just fits", "Nothing to do."),
        RuleReport("CUT402", "not-dispatched", "warning", "Offered for nothing", "Probed and skipped."),
    ]
    counted = [each for each in findings if each.suppressed is None]
    known = sum(each.suppressed is not None and each.suppressed.kind == "baseline" for each in findings)
    by_rule: dict[str, int] = {}
    for each in sorted(counted, key=lambda each: each.rule):
        by_rule[each.rule] = by_rule.get(each.rule, 0) + 1
    return Report(
        schema_version="1.5",
        tool=Tool("cutlint", "0.1.0"),
        sources=(SourceReport("repo", "/work/repo", "4.5.0", (LAUNCHER,), 2, 12),),
        targets=(TargetReport("sm_120", "12.0", 101376, ("Sm120",), ("rtx-5090",)),),
        rules=tuple(rules),
        instantiations=(),
        findings=findings,
        files={name: files.get(name, f"/work/repo/{name}") for name in sorted(named)},
        errors=errors,
        fail_on=fail_on,
        baseline=baseline,
        summary=Summary(
            files=2,
            unread_files=0,
            instantiations=12,
            unread=0,
            sized=9,
            refused=2,
            not_sized=1,
            findings={name: sum(each.severity == name for each in counted) for name in ("error", "warning", "note")},
            rules=by_rule,
            suppressed=len(findings) - len(counted) - known,
            known=known,
        ),
    )
