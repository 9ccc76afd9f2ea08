"""Which findings do not count: allowed in the configuration, or by a comment in the file; and what is wrong with that."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path

import msgspec

from cutlint import nolint
from cutlint.analysis import Analysis, Analyzed
from cutlint.findings import START, fingerprint
from cutlint.instantiations import MAX_BYTES
from cutlint.nolint import Directive
from cutlint.records import Finding, Position, Range, Suppression
from cutlint.rules import Rule, judge, say
from cutlint.settings import Allow, Found, named, selected
from cutlint.spelling import Spelling
from cutlint.where import condition

OURS = "CUT"  # ids that begin so are meant for cutlint, whether there is such a rule or not


class Suppressing(msgspec.Struct, frozen=True):
    """An `allow` entry or a comment as the rules on suppressions see it: `unused` are its words that suppressed nothing
    (only some of them: `partly`), `unheard` those of them that name no rule; `expired` since when, with how many findings
    that count `again`; `unmatched` the part of a block that lacks the other."""

    text: str
    unused: tuple[str, ...] = ()
    partly: bool = False
    unheard: tuple[str, ...] = ()
    expired: str = ""
    again: int = 0
    unmatched: str = ""


class Judged(msgspec.Struct, frozen=True):
    """A suppression with the place where it is written, and what tells it again in a later run."""

    facts: Suppressing
    file: str
    range: Range
    about: str


class Ruling(msgspec.Struct, frozen=True):
    """What suppressions are judged by: every rule `known`, those that were `applied`, the day, and whether more than single
    files were looked at (`whole`), so that an unused entry of the configuration means something."""

    known: tuple[Rule, ...]
    applied: tuple[Rule, ...]
    today: date
    whole: bool = True


Group = tuple[Sequence[Finding], Analysis, Spelling]


def decide(
    groups: Sequence[Group], configured: Found, ruling: Ruling, texts: Mapping[Path, bytes], paths: Callable[[str], str]
) -> list[Finding]:
    """The findings of every source, those that do not count marked so, and further ones on the suppressions themselves,
    which can be ignored but not suppressed. `texts` stand in for files, `paths` spells the configuration's.

    Raises:
        CutlintError: for an `allow` entry that makes no sense.
    """
    allows = configured.settings.allow
    conditions = [_condition(number, each, ruling) for number, each in enumerate(allows, 1)]
    used: set[tuple[int, str]] = set()
    expired: Counter[int] = Counter()
    result: list[Finding] = []
    judged: list[Judged] = []
    about_instantiations = {rule.id for rule in ruling.known if rule.scope == "instantiation"}
    for findings, analysis, spelled in groups:
        places = {
            (spelled(str(each.instantiation.file)), each.instantiation.range): each for each in analysis.instantiations
        }
        comments = _comments(findings, analysis, spelled, texts)
        hits: set[tuple[str, int, str]] = set()
        for finding in findings:
            about = places.get((finding.file, finding.range)) if finding.rule in about_instantiations else None
            reason = _by_comment(finding, comments.get(finding.file, ()), hits)
            for index, (allow, holds) in enumerate(zip(allows, conditions, strict=True)):
                word = named(allow.words, finding.rule)
                if word is None or not (holds is None or (about is not None and holds(about))):
                    continue
                if allow.expires is not None and allow.expires < ruling.today:
                    expired[index] += reason is None
                else:
                    used.add((index, word))
                    reason = reason or Suppression("configuration", allow.reason)
            result.append(finding if reason is None else msgspec.structs.replace(finding, suppressed=reason))
        judged += _judged_comments(comments, hits, ruling)
    judged += _judged_entries(configured, used, expired, ruling, paths)
    return [*result, *_findings(judged, ruling)]


def _condition(number: int, allow: Allow, ruling: Ruling) -> Callable[[Analyzed], bool] | None:
    selected(ruling.known, allow.words, ())
    return None if allow.where is None else condition(allow.where, f"allow entry {number}: where")


def _comments(
    findings: Sequence[Finding], analysis: Analysis, paths: Spelling, texts: Mapping[Path, bytes]
) -> dict[str, list[Directive]]:
    """The directives of generated files, launchers, and the other files that findings are in, as these are shown."""
    files = {paths(str(path)): Path(path) for path in (*analysis.checkout.generated, *analysis.base.launchers)}
    for finding in findings:
        if finding.file not in files and paths.knows(finding.file):
            whole = paths.whole(finding.file)
            if whole is not None:
                files[finding.file] = Path(whole)
    found = {}
    for shown, path in sorted(files.items()):
        directives = nolint.scan(_text(path, texts))
        if directives:
            found[shown] = directives
    return found


def _text(path: Path, texts: Mapping[Path, bytes]) -> bytes:
    """The text of a file; nothing of one that cannot be read as text, of which CUT902 speaks."""
    if path in texts:
        return texts[path]
    try:
        return path.read_bytes() if path.is_file() and path.stat().st_size <= MAX_BYTES else b""
    except OSError:
        return b""


def _by_comment(
    finding: Finding, directives: Sequence[Directive], hits: set[tuple[str, int, str]]
) -> Suppression | None:
    """The first comment that suppresses `finding`; all that do are noted in `hits`."""
    reason = None
    for index, each in enumerate(directives):
        if not each.unmatched and each.covers(finding.range):
            word = each.word_for(finding.rule)
            if word is not None:
                hits.add((finding.file, index, word))
                reason = reason or Suppression("inline", each.reason)
    return reason


def _judged_comments(
    comments: Mapping[str, Sequence[Directive]], hits: set[tuple[str, int, str]], ruling: Ruling
) -> list[Judged]:
    judged = []
    for file, directives in comments.items():
        for index, each in enumerate(directives):
            ours = [word for word in each.words or () if _ours(word, ruling)]
            if each.unmatched:
                if each.words is None or "*" in each.words or ours:
                    judged.append(Judged(Suppressing(each.text, unmatched=each.kind), file, each.range, each.text))
                continue
            unused = [
                word
                for word in ours
                if (file, index, word) not in hits
                and _applied(ruling, lambda rule, word=word: nolint.names(word, rule))  # type: ignore[misc]
            ]
            unheard = [word for word in unused if not any(nolint.names(word, rule.id) for rule in ruling.known)]
            facts = Suppressing(each.text, tuple(unused), len(unused) < len(each.words or ()), tuple(unheard))
            judged.append(Judged(facts, file, each.range, each.text))
    return judged


def _ours(word: str, ruling: Ruling) -> bool:
    """Whether a word in parentheses is meant for cutlint: it names a rule or looks like one's id."""
    if not word.strip("*"):
        return False
    return word.startswith(OURS) or any(nolint.names(word, rule.id) for rule in ruling.known)


def _applied(ruling: Ruling, named: Callable[[str], bool]) -> bool:
    """Whether every rule that is named was applied in this run."""
    return {rule.id for rule in ruling.known if named(rule.id)} <= {rule.id for rule in ruling.applied}


def _judged_entries(
    configured: Found,
    used: set[tuple[int, str]],
    expired: Counter[int],
    ruling: Ruling,
    paths: Callable[[str], str],
) -> list[Judged]:
    """The entries of the configuration."""
    if configured.file is None:
        return []
    file, lines = paths(str(configured.file)), _lines(configured.file)
    judged = []
    for index, allow in enumerate(configured.settings.allow):
        text = f"allow entry {index + 1} ({', '.join(allow.words)}{'' if allow.where is None else f' where {allow.where}'})"
        where = lines[index] if len(lines) == len(configured.settings.allow) else START
        about = "\0".join((*allow.words, allow.where or ""))
        if allow.expires is not None and allow.expires < ruling.today:
            facts = Suppressing(text, expired=allow.expires.isoformat(), again=expired[index])
        else:
            unused = tuple(
                word
                for word in allow.words
                if ruling.whole
                and (index, word) not in used
                and _applied(ruling, lambda rule, word=word: named((word,), rule) is not None)  # type: ignore[misc]
            )
            facts = Suppressing(text, unused, len(unused) < len(allow.words))
        judged.append(Judged(facts, file, where, about))
    return judged


def _lines(file: Path) -> list[Range]:
    """Where the entries' headers stand in the configuration file, as far as they are written as such."""
    lines = file.read_text(encoding="utf-8").split("\n")
    header = re.compile(r"\s*\[\[\s*(tool\s*\.\s*cutlint\s*\.\s*)?allow\s*\]\]")
    return [
        Range(Position(number, 0), Position(number, len(line.rstrip().encode("utf-16-le")) // 2))
        for number, line in enumerate(lines)
        if header.match(line)
    ]


def _findings(judged: Sequence[Judged], ruling: Ruling) -> list[Finding]:
    found = []
    for rule in ruling.applied:
        if rule.scope == "suppression":
            for index in judge(rule, [{"suppression": each.facts} for each in judged]):
                each = judged[index]
                message = say(rule, {"suppression": each.facts})
                mark = fingerprint(rule, each.file, each.about)
                found.append(Finding(rule.id, rule.severity, message, each.file, each.range, fingerprint=mark))
    return found
