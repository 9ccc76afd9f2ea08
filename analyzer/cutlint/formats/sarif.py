"""The report as SARIF 2.1.0, for GitHub code scanning and editors.

Follows the OASIS standard (sarif-v2.1.0-errata01) and GitHub's "SARIF support for code scanning": GitHub matches alerts by
``primaryLocationLineHash`` alone, links the related locations that a message names, and refuses a run of more than 25,000
results or a file of more than 10 MB as gzip packs it. What is left out for that is said in a notification.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from cutlint.printable import json_document, markdown, printable
from cutlint.records import SEVERITIES, Finding, Location, Range, Suppression
from cutlint.report import Report, RuleReport
from cutlint.wording import advice, count, counts, gone, headline

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
RESULTS = 25_000  # GitHub refuses a run with more,
PACKED = 10_000_000  # and a larger file (bytes, packed),
SHOWN = 5_000  # and shows that many results, the most severe
DESCRIPTION = 1024  # characters of a rule's description that GitHub takes
GENERATED = "%GENERATED%"
_PROBLEM = {"error": "error", "warning": "warning", "note": "recommendation"}  # GitHub's names

Json = dict[str, Any]


def render(report: Report) -> str:
    """The report as one SARIF run, the most severe findings first, within GitHub's limits."""
    findings = sorted(report.findings, key=lambda each: (each.suppressed is not None, -SEVERITIES.index(each.severity)))
    kept = min(len(findings), RESULTS)
    while True:
        text = _log(report, findings[:kept], findings[kept:])
        size = _packed(text)
        if size <= PACKED or kept == 0:
            return text
        kept = min(kept - 1, kept * PACKED // size * 9 // 10)


def _packed(text: str) -> int:
    data = text.encode()
    return len(data) if len(data) <= PACKED else len(gzip.compress(data, 6))


def _log(report: Report, findings: Sequence[Finding], left: Sequence[Finding]) -> str:
    return json_document({"$schema": SCHEMA, "version": "2.1.0", "runs": [_run(report, findings, left)]})


def _run(report: Report, findings: Sequence[Finding], left: Sequence[Finding]) -> Json:
    bases = _bases(report.files)
    rules = {rule.id: index for index, rule in enumerate(report.rules)}
    results = [_result(each, report, bases, rules) for each in findings]
    if any(each.suppressed for each in report.findings):  # then every result has to say (3.27.23)
        for result in results:
            result.setdefault("suppressions", [])
    if report.baseline is not None:
        for each, result in zip(findings, results, strict=True):
            known = each.suppressed is not None and each.suppressed.kind == "baseline"
            result["baselineState"] = "unchanged" if known else "new"
    driver = {
        "name": report.tool.name,
        "version": report.tool.version,
        "semanticVersion": report.tool.version,
        "rules": [_rule(each) for each in report.rules],
    }
    return {
        "tool": {"driver": driver},
        "invocations": [_invocation(report, len(findings), left)],
        "columnKind": "utf16CodeUnits",
        "originalUriBaseIds": _base_ids(report, bases),
        "results": results,
    }


def _invocation(report: Report, results: int, left: Sequence[Finding]) -> Json:
    """Whether the whole job was done, and what of its outcome is not to be seen; `left` are findings without a result."""
    notes = [("error", printable(each)) for each in report.errors]
    if left:
        what = counts(Counter(each.severity for each in left))
        limits = f"{RESULTS:,} results a run and {PACKED:,} B a packed file"
        notes.append(("warning", f"{count(len(left), 'finding')} left out ({what}), for GitHub takes {limits}"))
    if gone(report):
        notes.append(("note", gone(report)))
    if results > SHOWN:
        notes.append(("note", f"GitHub shows {SHOWN:,} of these {results:,} results, the most severe"))
    return {
        "executionSuccessful": not report.errors,
        "toolExecutionNotifications": [{"level": level, "message": {"text": text}} for level, text in notes],
    }


def _rule(rule: RuleReport) -> Json:
    text = rule.help or rule.summary
    first = " ".join(rule.help.partition("\n\n")[0].split())
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": _cut(rule.summary)},
        "fullDescription": {"text": _cut(f"{rule.summary}. {first}".strip())},
        "help": {"text": text, "markdown": "\n".join(map(markdown, text.splitlines()))},
        "defaultConfiguration": {"level": rule.severity},
        "properties": {"problem.severity": _PROBLEM[rule.severity]},
    }


def _cut(text: str) -> str:
    return text if len(text) <= DESCRIPTION else text[: DESCRIPTION - 1] + "…"


def _result(finding: Finding, report: Report, bases: dict[str, str], rules: dict[str, int]) -> Json:
    sentences = [headline(finding), *advice(finding)]
    text = ". ".join(each.removesuffix(".") for each in sentences) + "."
    if "](" in text:
        text = _escaped(text)
    labels = [_escaped(printable(where.message)) or "this place" for where in finding.related]
    if labels:
        text += " See: " + "; ".join(f"[{label}]({index})" for index, label in enumerate(labels, 1)) + "."
    result: Json = {
        "ruleId": finding.rule,
        "level": finding.severity,
        "message": {"text": text},
        "locations": [_location(Location(finding.file, finding.range), report, bases)],
        "partialFingerprints": {
            "primaryLocationLineHash": finding.fingerprint,  # the only one that GitHub looks at
            "cutlint/v1": finding.fingerprint,
        },
        "properties": {"targets": list(finding.targets), "subject": printable(finding.subject)},
    }
    if finding.rule in rules:
        result["ruleIndex"] = rules[finding.rule]
    if finding.related:
        result["relatedLocations"] = [
            {"id": index, **_location(where, report, bases)} for index, where in enumerate(finding.related, 1)
        ]
    if finding.suppressed is not None:
        result["suppressions"] = [_suppression(finding.suppressed)]
    return result


def _escaped(text: str) -> str:
    """`text` with its brackets as themselves, not as those of a link (3.11.6)."""
    return text.replace("[", "\\[").replace("]", "\\]")


def _suppression(why: Suppression) -> Json:
    reason = printable(why.reason) or ("known from the baseline" if why.kind == "baseline" else "no reason given")
    return {
        "kind": "inSource" if why.kind == "inline" else "external",
        "status": "accepted",
        "justification": reason,
    }


def _location(where: Location, report: Report, bases: dict[str, str]) -> Json:
    physical = {"artifactLocation": _artifact(where.file, report, bases), "region": _region(where.range)}
    return {"physicalLocation": physical, **({"message": {"text": printable(where.message)}} if where.message else {})}


def _region(where: Range) -> dict[str, int]:
    return {
        "startLine": where.start.line + 1,
        "startColumn": where.start.character + 1,
        "endLine": where.end.line + 1,
        "endColumn": where.end.character + 1,
    }


def _artifact(file: str, report: Report, bases: dict[str, str]) -> dict[str, str]:
    if file.startswith("/"):
        return {"uri": "file://" + quote(file)}
    whole = report.files.get(file)
    return {"uri": quote(file), "uriBaseId": GENERATED if whole is None else bases[_base(file, whole)]}


def _base(file: str, whole: str) -> str:
    """The folder that `file`, whose whole path is `whole`, is relative to."""
    return whole.removesuffix(file).rstrip("/") or "/"


def _bases(files: dict[str, str | None]) -> dict[str, str]:
    """An identifier for each folder that files are relative to, the one of most files first."""
    counts = Counter(_base(file, whole) for file, whole in files.items() if whole and not file.startswith("/"))
    folders = sorted(counts, key=lambda folder: (-counts[folder], folder))
    return {folder: f"%SRCROOT{'' if index == 1 else index}%" for index, folder in enumerate(folders, 1)}


def _base_ids(report: Report, bases: dict[str, str]) -> Json:
    ids: Json = {name: {"uri": PurePosixPath(folder).as_uri().rstrip("/") + "/"} for folder, name in bases.items()}
    if any(whole is None and not file.startswith("/") for file, whole in report.files.items()):
        text = "Files that generate_kernels.py wrote for this run, and that are gone after it"
        ids[GENERATED] = {"description": {"text": text}}
    return ids
