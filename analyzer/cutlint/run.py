"""One run of ``cutlint check``: from what the user named to a report."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import msgspec

from cutlint import baseline as baselines
from cutlint import report as reporting
from cutlint import rules as ruling
from cutlint import settings as setting
from cutlint import suppress
from cutlint import targets as targeting
from cutlint.analysis import Analysis, analyze
from cutlint.checkout import display_path
from cutlint.dispatch.reach import Reach, reach
from cutlint.errors import CutlintError
from cutlint.findings import collect, numbered
from cutlint.patch import Patch, patches
from cutlint.records import Finding
from cutlint.report import BaselineReport, Report
from cutlint.rules import Rule
from cutlint.settings import Found
from cutlint.sources import Progress, Request, open_source
from cutlint.spelling import Spelling
from cutlint.targets import Target

Result = tuple[Analysis, Spelling]


class Outcome(msgspec.Struct, frozen=True):
    """A report and what kept part of the job from being done (sources that could not be used). `patches` are for the
    launchers, with the folder that each applies in, where they were asked for."""

    report: Report
    errors: tuple[str, ...]
    patches: tuple[tuple[Path, Patch], ...] = ()


def check(
    request: Request,
    configured: Found,
    rule_folders: Sequence[Path] = (),
    everything: bool = False,
    progress: Progress = lambda what, done, total: None,
    patching: bool = False,
    baseline: Path | None = None,
    new_baseline: Path | None = None,
) -> Outcome:
    """Run all stages over every source; `everything`: report every instantiation, not only those with findings; `patching`:
    look for changes of the launchers. What is in the file `baseline` does not count; `new_baseline` is written, and then
    nothing counts that is in it.

    Raises:
        CutlintError: when no source at all could be analysed, the settings make no sense, or `baseline` is none.
    """
    standard = standard_of(configured, rule_folders)
    before = None if baseline is None else baselines.read(baseline)
    with contextlib.ExitStack() as stack:
        results, errors = gather(request, stack, progress)
        findings = judge(results, standard, request, progress)
        checked = _checked(results, standard.targets)
        errors = (*errors, *_not_done(results, standard.targets))
        if new_baseline is not None:
            if errors:
                raise CutlintError("\n".join((*errors, f"{new_baseline} is not written: part of the job was not done")))
            before, baseline = baselines.of(findings), new_baseline
            baselines.write(new_baseline, before)
        compared = None
        if before is not None:
            findings, gone = baselines.apply(findings, before, [rule.id for rule in standard.rules])
            compared = BaselineReport(_spelled(request)(str(baseline)), len(before.findings), gone)
        report = reporting.build(
            results,
            checked,
            standard.rules,
            findings,
            everything,
            errors,
            configured.settings.fail_on,
            compared,
            _own(configured, request),
        )
        changes = _patches(results, standard, findings, progress) if patching else ()
    return Outcome(report, errors, changes)


def _patches(
    results: Sequence[Result], standard: Standard, findings: Sequence[Finding], progress: Progress
) -> tuple[tuple[Path, Patch], ...]:
    """Launcher changes for what the findings that suggest changes are about."""
    progress("looking for a patch", 0, 0)
    suggesting = {rule.id for rule in standard.rules if rule.suggest}
    places = {(each.file, each.range) for each in findings if each.rule in suggesting and each.suppressed is None}
    found: list[tuple[Path, Patch]] = []
    for analysis, paths in results:
        concerned = [
            each
            for each in analysis.instantiations
            if (paths(str(each.instantiation.file)), each.instantiation.range) in places
        ]
        found += [(analysis.base.root, patch) for patch in patches(analysis, standard.targets, concerned)]
    return tuple(found)


def _own(configured: Found, request: Request) -> dict[str, str]:
    """The configuration's file, as findings name it, with its whole path."""
    return {} if configured.file is None else {_spelled(request)(str(configured.file)): str(configured.file)}


class Standard(msgspec.Struct, frozen=True):
    """What a run judges by: the settings, every rule `known`, the `rules` that are selected, and the GPUs."""

    configured: Found
    known: tuple[Rule, ...]
    rules: tuple[Rule, ...]
    targets: tuple[Target, ...]


def standard_of(configured: Found, rule_folders: Sequence[Path] = ()) -> Standard:
    """The rules and targets that the settings select.

    Raises:
        CutlintError: when the settings make no sense, or a rule is none.
    """
    settings = configured.settings
    known = setting.with_severity(ruling.load(rule_folders), settings.severity)
    rules = setting.selected(known, settings.select, settings.ignore)
    targets = targeting.find(settings.target) if settings.target else targeting.known()
    return Standard(configured, known, rules, targets)


def judge(
    results: Sequence[Result],
    standard: Standard,
    request: Request,
    progress: Progress = lambda what, done, total: None,
) -> list[Finding]:
    """The findings on what was analysed for `request`, as the settings want them."""
    rules, targets, configured = standard.rules, standard.targets, standard.configured
    groups = [
        (collect(analysis, rules, targets, paths, _reach(analysis, rules, targets, progress)), analysis, paths)
        for analysis, paths in results
    ]
    whole = not request.sources or not all((request.cwd / name).is_file() for name in request.sources)
    judging = suppress.Ruling(standard.known, rules, date.today(), whole)
    decided = suppress.decide(groups, configured, judging, request.texts, _spelled(request))
    found = setting.without_ignored_files(
        decided, configured.settings.per_file_ignores, standard.known, request.cwd, configured.folder
    )
    return numbered(found)


def _spelled(request: Request) -> Callable[[str], str]:
    """How the configuration's own file is written for people."""
    return lambda path: display_path(path, (request.cwd,))


def _reach(analysis: Analysis, rules: Sequence[Rule], targets: Sequence[Target], progress: Progress) -> Reach | None:
    """What the host code does with the instantiations, if any rule asks for that."""
    if not any(rule.scope in ruling.REACH or "called" in rule.when for rule in rules):
        return None
    progress("following the dispatch code", 0, 0)
    return reach(analysis, targets)


def _not_done(results: Sequence[Result], targets: Sequence[Target]) -> list[str]:
    """Sources of which nothing was checked: that is no clean result."""
    errors = []
    for analysis, _ in results:
        every = analysis.instantiations
        sized = [each for each in every if each.footprint is not None and each.config is not None]
        label = analysis.checkout.label
        if every and not sized:
            errors.append(f"{label}: not one of {len(every):,} instantiations could be sized; see CUT902 for why")
        elif sized and not any(
            set(target.runs) & {each.config.arch for each in sized if each.config} for target in targets
        ):
            names = ", ".join(target.compute_capability for target in targets)
            errors.append(f"{label}: none of its kernels runs on {names}")
    return errors


def gather(
    request: Request, stack: contextlib.ExitStack, progress: Progress = lambda what, done, total: None
) -> tuple[list[Result], tuple[str, ...]]:
    """The analysis of every source that could be used, and why others could not.

    Raises:
        CutlintError: when none could.
    """
    results: list[Result] = []
    errors: list[str] = []
    for name in request.sources or (None,):
        try:
            results.append(analyzed(name, request, stack, progress))
        except CutlintError as error:
            errors.append(str(error))
    if not results:
        raise CutlintError("\n".join(errors))
    return results, tuple(errors)


def analyzed(name: str | None, request: Request, stack: contextlib.ExitStack, progress: Progress) -> Result:
    """The analysis of the source that the user calls `name`, and how its paths are written.

    Raises:
        CutlintError: when it cannot be used.
    """
    source = open_source(name, request, stack, progress)
    return analyze(source, request, progress), source.paths


def _checked(results: Sequence[Result], targets: Sequence[Target]) -> tuple[Target, ...]:
    """Those of `targets` that run any of the kernels."""
    sized = [each for analysis, _ in results for each in analysis.instantiations if each.footprint is not None]
    archs = {each.config.arch for each in sized if each.config is not None}
    return tuple(target for target in targets if archs & set(target.runs))
