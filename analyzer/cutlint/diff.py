"""``cutlint diff``: what another release or checkout changes, instantiation by instantiation.

The records are what other programs read (reports/cutlint-diff.schema.json is made from them).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal

import msgspec

from cutlint import __version__
from cutlint.analysis import Analysis, Analyzed
from cutlint.causes import causes
from cutlint.errors import CutlintError
from cutlint.findings import subject
from cutlint.identity import paired
from cutlint.printable import json_document, json_schema
from cutlint.records import Location, Paths
from cutlint.report import SourceReport, TargetReport, Tool, source_report, target_report
from cutlint.targets import Target, built_for
from cutlint.verdicts import FAILING, Fate, fate

SCHEMA_VERSION = "1.0"
Status = Literal["added", "removed", "changed"]


class Side(msgspec.Struct, frozen=True):
    """One instantiation in one of the sources: `total` bytes of shared memory and pipeline `stages`, null where there is
    no figure, and what becomes of it on each target that runs it (by compute capability). `reason` says why it fails or is
    not known."""

    place: Location
    total: int | None
    stages: int | None
    verdicts: dict[str, Fate]
    reason: str


class Change(msgspec.Struct, frozen=True):
    """An instantiation that only one source has, or that takes other bytes or stages or has another verdict.

    `name` is the launcher's macro or function template, `arguments` are as the newer source that has it spells them.
    `newly_fails` are the targets on which it fails in the new source and did not, or was not there, in the old;
    `no_longer_fails` the other way round. `causes` say what is different that decides its bytes, as far as that is known.
    """

    status: Status
    name: str
    subject: str
    arguments: tuple[str, ...]
    old: Side | None
    new: Side | None
    newly_fails: tuple[str, ...]
    no_longer_fails: tuple[str, ...]
    causes: tuple[str, ...]


class LauncherChange(msgspec.Struct, frozen=True):
    """A launcher of both sources whose statements up to the kernel type are not the same, white space aside."""

    name: str
    file: str
    removed: tuple[str, ...]
    added: tuple[str, ...]


class DiffSummary(msgspec.Struct, frozen=True):
    """Counts that add up: old = removed + changed + same, new = added + changed + same. Of those that are the `same`,
    `not_sized` have no figure in one source or in both: that they are there is all that is known.
    `newly_failing` and `no_longer_failing` count
    instantiations."""

    old: int
    new: int
    added: int
    removed: int
    changed: int
    same: int
    not_sized: int
    newly_failing: int
    no_longer_failing: int


class DiffReport(msgspec.Struct, frozen=True):
    """What is different between two sources. `problems` is what could not be read or understood in either."""

    schema_version: str
    tool: Tool
    old: SourceReport
    new: SourceReport
    targets: tuple[TargetReport, ...]
    launchers: tuple[LauncherChange, ...]
    changes: tuple[Change, ...]
    problems: tuple[str, ...]
    summary: DiffSummary


def build(
    old: tuple[Analysis, Paths], new: tuple[Analysis, Paths], targets: Sequence[Target], ask: Sequence[str] = ()
) -> DiffReport:
    """What `new` changes against `old`, judged for those of `targets` that run any of the kernels. `ask` are the names of
    targets that the user asked for, if any.

    Raises:
        CutlintError: when targets were asked for and none runs any of the kernels.
    """
    (before, old_paths), (after, new_paths) = old, new
    archs = {each.config.arch for each in (*before.instantiations, *after.instantiations) if each.config is not None}
    checked = tuple(target for target in targets if archs & set(target.runs))
    if ask and not checked:
        raise CutlintError(f"none of the kernels of either source runs on {', '.join(ask)}")
    both, gone, come = paired(before.instantiations, after.instantiations)
    changes = [_change("removed", _side(each, checked, old_paths), None, each) for each in gone]
    changes += [_change("added", None, _side(each, checked, new_paths), each) for each in come]
    not_sized = 0
    for one, other in both:
        first, second = _side(one, checked, old_paths), _side(other, checked, new_paths)
        known = _known(first) and _known(second)
        if not known and not _failing(first, second) and not _failing(second, first):
            not_sized += 1
        elif (first.total, first.stages, first.verdicts) != (second.total, second.stages, second.verdicts):
            why = causes(one.config, one.footprint, other.config, other.footprint)
            changes.append(_change("changed", first, second, other, why))
    problems = [
        f"{analysis.checkout.label}: {paths(each.file)}: {each.message}"
        for analysis, paths in (old, new)
        for each in analysis.problems
    ]
    return DiffReport(
        schema_version=SCHEMA_VERSION,
        tool=Tool("cutlint", __version__),
        old=source_report(before, old_paths),
        new=source_report(after, new_paths),
        targets=tuple(target_report(each) for each in checked),
        launchers=tuple(_launchers(before, after, new_paths)),
        changes=tuple(changes),
        problems=tuple(dict.fromkeys(problems)),
        summary=DiffSummary(
            old=len(before.instantiations),
            new=len(after.instantiations),
            added=len(come),
            removed=len(gone),
            changed=len(changes) - len(come) - len(gone),
            same=len(both) - (len(changes) - len(come) - len(gone)),
            not_sized=not_sized,
            newly_failing=sum(bool(each.newly_fails) for each in changes),
            no_longer_failing=sum(bool(each.no_longer_fails) for each in changes),
        ),
    )


def _side(each: Analyzed, targets: Sequence[Target], paths: Paths) -> Side:
    verdicts: dict[str, Fate] = {}
    reasons: list[str] = [each.unknown] if each.unknown is not None else []
    for target in built_for(each.config.arch, targets) if each.config is not None else ():
        verdict, reason = fate(each, target.limit)
        verdicts[target.compute_capability] = verdict
        reasons += [reason] if reason else []
    footprint = each.footprint
    return Side(
        place=Location(paths(str(each.instantiation.file)), each.instantiation.range),
        total=None if footprint is None else footprint.total,
        stages=None if footprint is None else footprint.stages,
        verdicts=verdicts,
        reason="; ".join(dict.fromkeys(reasons)),
    )


def _change(status: Status, old: Side | None, new: Side | None, of: Analyzed, why: tuple[str, ...] = ()) -> Change:
    return Change(
        status=status,
        name=of.instantiation.name,
        subject=subject(of),
        arguments=of.instantiation.arguments,
        old=old,
        new=new,
        newly_fails=_failing(new, old),
        no_longer_fails=_failing(old, new) if new is not None else (),
        causes=why,
    )


def _known(side: Side) -> bool:
    return side.total is not None or "refused-by-compiler" in side.verdicts.values()


def _failing(here: Side | None, there: Side | None) -> tuple[str, ...]:
    """The targets on which an instantiation fails `here` and not `there`."""
    failing = [] if here is None else [name for name, verdict in here.verdicts.items() if verdict in FAILING]
    others = {} if there is None else there.verdicts
    return tuple(name for name in failing if others.get(name) not in FAILING)


def _launchers(before: Analysis, after: Analysis, paths: Paths) -> Iterator[LauncherChange]:
    known = {each.name: each for each in before.launchers}
    for new in after.launchers:
        old = known.get(new.name)
        if old is None or old.statements == new.statements:
            continue
        removed: list[str] = []
        added: list[str] = []
        for what, a, b, c, d in SequenceMatcher(None, old.statements, new.statements, autojunk=False).get_opcodes():
            if what != "equal":
                removed += old.statements[a:b]
                added += new.statements[c:d]
        yield LauncherChange(new.name, paths(new.path), tuple(removed), tuple(added))


def to_json(report: DiffReport) -> str:
    """The report as indented JSON, the same bytes for the same report."""
    return json_document(report)


def schema() -> dict[str, Any]:
    """The JSON Schema of the report."""
    return json_schema("cutlint diff", SCHEMA_VERSION, DiffReport)
