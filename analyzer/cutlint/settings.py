"""Configuration: ``[tool.cutlint]`` of pyproject.toml, or cutlint.toml, from the current folder upwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Literal

import msgspec

from cutlint.errors import CutlintError
from cutlint.records import SEVERITIES, Finding, Severity
from cutlint.rules import Rule
from cutlint.toml import read_toml

FailOn = Literal["error", "warning", "note", "never"]


class Allow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Findings that do not count: of `rule` (one word or several, as in `select`), and with `where` only those about
    instantiations for which this condition holds (see `cutlint.where`). `expires` is the last day on which that is so."""

    rule: str | tuple[str, ...]
    reason: str
    where: str | None = None
    expires: date | None = None

    @property
    def words(self) -> tuple[str, ...]:
        return (self.rule,) if isinstance(self.rule, str) else self.rule


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """What a configuration file can say. `select` and `ignore` hold rule ids or their beginnings (``CUT1``) or ``ALL``;
    `per_file_ignores` maps a gitignore-style pattern of files to such a list, `severity` such a word to how severe these
    rules' findings are."""

    select: tuple[str, ...] = ("ALL",)
    ignore: tuple[str, ...] = ()
    per_file_ignores: dict[str, tuple[str, ...]] = {}
    target: tuple[str, ...] = ()
    fail_on: FailOn = "error"
    severity: dict[str, Severity] = {}
    allow: tuple[Allow, ...] = ()


class Found(msgspec.Struct, frozen=True):
    """Settings and the folder of the file that they are from, which its patterns are relative to; `file` is that file."""

    settings: Settings
    folder: Path
    file: Path | None = None


def find(folder: Path) -> Found:
    """The settings of the nearest configuration file at `folder` or above; the defaults without one.

    Raises:
        CutlintError: for a file that says something cutlint does not know.
    """
    for each in (folder, *folder.parents):
        own, project = each / "cutlint.toml", each / "pyproject.toml"
        if own.is_file():
            return Found(_convert(read_toml(own), own), each, own)
        if project.is_file():
            tools = read_toml(project).get("tool")
            if isinstance(tools, dict) and "cutlint" in tools:
                return Found(_convert(tools["cutlint"], project), each, project)
    return Found(Settings(), folder)


def _convert(content: object, path: Path) -> Settings:
    try:
        settings = msgspec.convert(content, Settings)
    except msgspec.ValidationError as error:
        raise CutlintError(f"{path}: {error}") from None
    for number, each in enumerate(settings.allow, 1):
        if not each.reason.strip():
            raise CutlintError(f"{path}: allow entry {number} gives no reason")
        if not each.words:
            raise CutlintError(f"{path}: allow entry {number} names no rule")
    return settings


def selected(rules: Iterable[Rule], select: Sequence[str], ignore: Sequence[str]) -> tuple[Rule, ...]:
    """The rules that `select` names and `ignore` does not; the longer match wins, as in ruff.

    Raises:
        CutlintError: for a word that matches no rule.
    """
    listed = tuple(rules)
    for word in (*select, *ignore):
        if word != "ALL" and not any(rule.id.startswith(word) for rule in listed):
            raise CutlintError(f"no rule matches '{word}'; see `cutlint rules`")
    return tuple(rule for rule in listed if _longest(rule.id, select) > _longest(rule.id, ignore))


def with_severity(rules: Iterable[Rule], severity: Mapping[str, Severity]) -> tuple[Rule, ...]:
    """The rules, as severe as `severity` wants them; the longer match wins.

    Raises:
        CutlintError: for a word that matches no rule.
    """
    listed = tuple(rules)
    selected(listed, tuple(severity), ())
    return tuple(_with_severity(rule, severity) for rule in listed)


def _with_severity(rule: Rule, severity: Mapping[str, Severity]) -> Rule:
    words = [word for word in severity if word == "ALL" or rule.id.startswith(word)]
    best = max(words, key=lambda word: 0 if word == "ALL" else len(word), default=None)
    return rule if best is None else msgspec.structs.replace(rule, severity=severity[best])


def named(words: Sequence[str], rule: str) -> str | None:
    """The first of `words` (ids, their beginnings, or ``ALL``) that names `rule`."""
    return next((word for word in words if word == "ALL" or rule.startswith(word)), None)


def _longest(rule: str, words: Sequence[str]) -> int:
    return max(
        (0 if word == "ALL" else len(word) for word in words if word == "ALL" or rule.startswith(word)), default=-1
    )


def without_ignored_files(
    findings: Iterable[Finding], ignores: dict[str, tuple[str, ...]], rules: Sequence[Rule], cwd: Path, folder: Path
) -> list[Finding]:
    """The findings that no entry of ``per-file-ignores`` takes away. Its patterns are relative to `folder`; a file that
    lies elsewhere (in a release, or generated for the run) is matched as it is reported.

    Raises:
        CutlintError: for a pattern that is none, or a word that matches no rule.
    """
    if not ignores:
        return list(findings)
    from pathspec import GitIgnoreSpec

    specs = []
    for pattern, words in ignores.items():
        selected(rules, words, ())
        try:
            specs.append((GitIgnoreSpec.from_lines([pattern]), words))
        except ValueError as error:
            raise CutlintError(f"per-file-ignores: '{pattern}' is no pattern: {error}") from None
    return [
        finding
        for finding in findings
        if not any(
            _longest(finding.rule, words) >= 0 and spec.match_file(name)
            for spec, words in specs
            for name in _names(finding.file, cwd, folder)
        )
    ]


def _names(file: str, cwd: Path, folder: Path) -> set[str]:
    path = cwd / file
    return {file, path.relative_to(folder).as_posix()} if path.is_relative_to(folder) else {file}


def fails(findings: Iterable[Finding], fail_on: FailOn) -> bool:
    """Whether any finding that counts is at least as severe as `fail_on`."""
    if fail_on == "never":
        return False
    least = SEVERITIES.index(fail_on)
    return any(SEVERITIES.index(each.severity) >= least for each in findings if each.suppressed is None)
