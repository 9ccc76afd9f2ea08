"""Rules over analyses: the findings, which of them count, and their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from cutlint import fit
from cutlint.analysis import Analysis, Analyzed, duplicates
from cutlint.compare import differences
from cutlint.config import KernelConfig
from cutlint.cutlass import Cutlass
from cutlint.dispatch.reach import Reach
from cutlint.dispatch.subjects import Decision, Gap, Tile, decisions, gaps, tiles
from cutlint.footprint.records import Footprint
from cutlint.launcher import Launcher
from cutlint.names import SHORT_ELEMENTS
from cutlint.records import Finding, Fix, Instantiation, Location, Paths, Position, Problem, Range
from cutlint.rules import Rule, judge, say
from cutlint.sizing import Sized
from cutlint.targets import Target, built_for

START = Range(Position(0, 0), Position(0, 0))


class Limits(msgspec.Struct, frozen=True):
    """Targets that allow the same, as a rule sees them: `names` is how they are written, in bytes what they allow."""

    limit: int
    per_sm: int
    reserved: int
    names: str
    targets: tuple[str, ...]


def collect(
    analysis: Analysis, rules: Sequence[Rule], targets: Sequence[Target], paths: Paths, reach: Reach | None = None
) -> list[Finding]:
    """Every finding of `rules` on one analysis, judged for `targets`; those on reachability need `reach`. `paths`
    spells a path for people. Fingerprints may be equal (see `numbered`)."""
    found: list[Finding] = []
    rows = _instantiation_rows(analysis, targets, paths, reach)
    problems = [*analysis.problems, *(reach.problems if reach is not None else ())]
    subjects = {} if reach is None else _subjects(analysis, targets, reach)
    for rule in rules:
        if rule.scope in ("gap", "tactic", "filter"):
            found.extend(_on_reach(rule, subjects.get(rule.scope, ()), paths))
        elif rule.scope == "instantiation":
            found.extend(_on_instantiations(rule, rows, analysis, paths))
        elif rule.scope == "launcher":
            launchers = [{"launcher": each} for each in analysis.launchers]
            found.extend(_on_launcher(rule, analysis.launchers[index], paths) for index in judge(rule, launchers))
        elif rule.scope == "checkout":
            facts = _checkout_facts(analysis)
            if judge(rule, [facts]):
                where = paths(
                    str(analysis.cutlass / "cutlass" / "version.h" if analysis.cutlass else analysis.checkout.root)
                )
                mark = fingerprint(rule, where, "")
                found.append(Finding(rule.id, rule.severity, say(rule, facts), where, START, fingerprint=mark))
        elif rule.scope == "problem":
            facts_of = [{"problem": each} for each in problems]
            found.extend(_on_problem(rule, problems[index], paths) for index in judge(rule, facts_of))
    return sorted(_merged(found), key=_order)


def _checkout_facts(analysis: Analysis) -> dict[str, Any]:
    """`cutlass`: the version and whether the models were checked on it; `sized`: how many figures depend on that."""
    by_model = [
        each.footprint for each in analysis.instantiations if each.footprint and each.footprint.engine == "model"
    ]
    cutlass: dict[str, Any] = {"version": None, "checked": True}
    if analysis.cutlass is not None and by_model:
        cutlass = {"version": ".".join(map(str, Cutlass(analysis.cutlass).version)), "checked": by_model[0].checked}
    return {"checkout": analysis.checkout, "cutlass": cutlass, "sized": len(by_model)}


def _order(finding: Finding) -> tuple[str, str, int, int]:
    return (finding.rule, finding.file, finding.range.start.line, finding.range.start.character)


def _merged(found: Sequence[Finding]) -> list[Finding]:
    """Findings that differ only in their targets, as one."""
    by_place: dict[tuple[str, str, Range, str, str], Finding] = {}
    for each in found:
        key = (each.rule, each.file, each.range, each.message, each.subject)
        before = by_place.get(key)
        if before is not None:
            targets = before.targets + tuple(name for name in each.targets if name not in before.targets)
            each = msgspec.structs.replace(before, targets=targets)
        by_place[key] = each
    return list(by_place.values())


def fingerprint(rule: Rule, file: str, about: str) -> str:
    """What tells a finding of `rule` in `file` again: `about` says of what it is, without lines."""
    return sha256("\0".join((rule.id, file, about)).encode(errors="surrogateescape")).hexdigest()[:32]


def numbered(findings: Sequence[Finding]) -> list[Finding]:
    """The findings with a number at the end of a fingerprint that was there before, so that each has its own."""
    seen: dict[str, int] = {}
    result = []
    for each in findings:
        count = seen[each.fingerprint] = seen.get(each.fingerprint, 0) + 1
        result.append(each if count == 1 else msgspec.structs.replace(each, fingerprint=f"{each.fingerprint}-{count}"))
    return result


def limits(arch: int, targets: Sequence[Target]) -> list[Limits]:
    """Those of `targets` that run ``Sm<arch>`` kernels, the ones that allow the same put together."""
    groups: dict[tuple[int, int, int], list[str]] = {}
    for each in built_for(arch, targets):
        groups.setdefault((each.limit, each.per_sm, each.reserved), []).append(each.compute_capability)
    return [Limits(*key, names=" and ".join(names), targets=tuple(names)) for key, names in groups.items()]


_NO_CONFIG = Footprint("none")


def _instantiation_rows(
    analysis: Analysis, targets: Sequence[Target], paths: Paths, reach: Reach | None
) -> list[dict[str, Any]]:
    repeated = duplicates(analysis.instantiations)
    by_arch: dict[int, list[Limits]] = {}
    rows: list[dict[str, Any]] = []
    for index, each in enumerate(analysis.instantiations):
        arch = each.config.arch if each.config is not None else None
        if arch is not None and arch not in by_arch:
            by_arch[arch] = limits(arch, targets)
        first = repeated.get(index)
        for limit in by_arch[arch] if arch is not None else [Limits(0, 0, 0, "", ())]:
            rows.append(
                {
                    "config": each.config,
                    "footprint": each.footprint or _NO_CONFIG,
                    "target": limit,
                    "arguments": each.arguments,
                    "duplicate": None if first is None else _place(paths(str(first.file)), first.range),
                    "differences": () if each.compared is None else differences(each.footprint, each.compared),
                    "skipped": passed_over(each),
                    "called": reach is None or index not in reach.uncalled,
                    "fits": None,
                    "analyzed": each,
                }
            )
    return rows


def _place(path: str, where: Range) -> str:
    return f"{path}:{where.start.line + 1}:{where.start.character + 1}"


def _on_instantiations(
    rule: Rule, rows: Sequence[Mapping[str, Any]], analysis: Analysis, paths: Paths
) -> list[Finding]:
    found = []
    for index in judge(rule, rows):
        row = rows[index]
        each: Analyzed = row["analyzed"]
        facts = dict(row)
        fits = fit.Fits(None, ())
        if rule.suggest and each.sizer is not None:
            fits = fit.suggest(each.sizer, each.arguments, Sized(each.config, each.footprint), row["target"].limit)
        facts["fits"] = fits
        file = paths(str(each.instantiation.file))
        found.append(
            Finding(
                rule=rule.id,
                severity=rule.severity,
                message=say(rule, facts),
                file=file,
                range=each.instantiation.range,
                targets=row["target"].targets,
                related=decided(each, paths) if rule.suggest else (),
                fixes=tuple(_shown(each, paths) for each in fits.fixes),
                detail=say(rule, facts, detail=True),
                subject=subject(each),
                fingerprint=fingerprint(rule, file, _identity(each.instantiation)),
            )
        )
    return found


def _shown(fix: Fix, paths: Paths) -> Fix:
    """The fix with its launcher's path as people see it."""
    if fix.edit is None:
        return fix
    where = msgspec.structs.replace(fix.edit.where, file=paths(fix.edit.where.file))
    return msgspec.structs.replace(fix, edit=msgspec.structs.replace(fix.edit, where=where))


def _subjects(
    analysis: Analysis, targets: Sequence[Target], reach: Reach
) -> dict[str, Sequence[Gap | Tile | Decision]]:
    return {
        "gap": gaps(reach, analysis),
        "tactic": tiles(reach, analysis, targets),
        "filter": decisions(reach, analysis, targets),
    }


def _on_reach(rule: Rule, subjects: Sequence[Gap | Tile | Decision], paths: Paths) -> list[Finding]:
    """Findings on what is offered, dispatched and instantiated, each with the places that contradict one another."""
    found = []
    for index in judge(rule, [{rule.scope: each} for each in subjects]):
        each = subjects[index]
        facts: dict[str, Any] = {rule.scope: each}
        file, text = paths(each.where.file), say(rule, facts)
        related = tuple(msgspec.structs.replace(where, file=paths(where.file)) for where in each.related)
        found.append(
            Finding(
                rule=rule.id,
                severity=rule.severity,
                message=text,
                file=file,
                range=each.where.range,
                targets=() if isinstance(each, Gap) else each.targets,
                related=related,
                detail=say(rule, facts, detail=True),
                subject=each.subject,
                fingerprint=fingerprint(rule, file, each.identity),
            )
        )
    return found


def _identity(each: Instantiation) -> str:
    return "\0".join((each.name, *each.arguments, each.guard or ""))


def passed_over(each: Analyzed) -> bool:
    """Whether the launcher passes the kernel over where it needs the limit or more."""
    return each.sizer is not None and each.sizer.launcher.skips_over_limit


def decided(each: Analyzed, paths: Paths) -> tuple[Location, ...]:
    """Where the launcher decides the stage count and the schedule."""
    if each.sizer is None:
        return ()
    found = [each.sizer.launcher.location(name, message) for name, message in each.sizer.launcher.decisions]
    return tuple(msgspec.structs.replace(where, file=paths(where.file)) for where in found if where is not None)


def _on_launcher(rule: Rule, launcher: Launcher, paths: Paths) -> Finding:
    message = say(rule, {"launcher": launcher})
    file = paths(launcher.path)
    mark = fingerprint(rule, file, launcher.name)
    return Finding(rule.id, rule.severity, message, file, launcher.range_at(None), fingerprint=mark)


def _on_problem(rule: Rule, problem: Problem, paths: Paths) -> Finding:
    related = tuple(msgspec.structs.replace(each, file=paths(each.file)) for each in problem.related)
    message = say(rule, {"problem": problem})
    file = paths(problem.file)
    mark = fingerprint(rule, file, message if problem.about is None else problem.about)
    return Finding(rule.id, rule.severity, message, file, problem.range or START, related=related, fingerprint=mark)


def subject(each: Analyzed) -> str:
    """The instantiation in a few words: architecture, types, CTA tile, cluster where there is one, fusion, SwapAB."""
    config = each.config
    if config is None:
        return each.instantiation.name
    words = [f"Sm{config.arch}", types(config), "×".join(map(str, config.cta_tile))]
    if config.dynamic_cluster:
        words.append("dynamic cluster")
    elif config.cluster != (1, 1, 1):
        words.append("cluster " + "×".join(map(str, config.cluster)))
    words += [config.fusion, f"SwapAB={str(config.swap_ab).lower()}"]
    return " ".join(words)


def types(config: KernelConfig) -> str:
    """Activation and weight, and the output: ``FP8×FP4→BF16``, with MX where the scale factors are ue8m0."""
    first, second = (config.b, config.a) if config.swap_ab else (config.a, config.b)
    names = [
        ("MX" if each.scale == "float_ue8m0_t" else "") + SHORT_ELEMENTS.get(each.element, each.element)
        for each in (first, second)
    ]
    output = config.epilogue.output_element
    return f"{names[0]}×{names[1]}→{SHORT_ELEMENTS.get(output, output)}"
