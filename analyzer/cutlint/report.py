"""The report: a versioned, typed record of one run, and its JSON.

These types are what other programs read (reports/cutlint.schema.json is made from them); they are apart from the
records that the stages pass along, so that those can change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cutlint import __version__
from cutlint.analysis import Analysis, Analyzed
from cutlint.baseline import Known
from cutlint.config import KernelConfig
from cutlint.cutlass import Cutlass
from cutlint.findings import decided, passed_over, subject, types
from cutlint.footprint.records import Footprint, Unmodelled
from cutlint.printable import json_schema
from cutlint.records import Finding, Location, Paths, Range, Severity
from cutlint.rules import Rule
from cutlint.settings import FailOn
from cutlint.spelling import Spelling
from cutlint.targets import Target

SCHEMA_VERSION = "1.5"


class Tool(msgspec.Struct, frozen=True):
    name: str
    version: str


class SourceReport(msgspec.Struct, frozen=True):
    """One source: as the user named it, the folder it stands for, its CUTLASS and how much was found."""

    label: str
    root: str
    cutlass: str | None
    launchers: tuple[str, ...]
    files: int
    instantiations: int


class TargetReport(msgspec.Struct, frozen=True):
    """A GPU checked against: `limit` is the opt-in limit of shared memory per block in bytes, `runs` the architecture tags
    (``Sm120``) whose kernels are built for it, `aliases` product names."""

    name: str
    compute_capability: str
    limit: int
    runs: tuple[str, ...]
    aliases: tuple[str, ...]


class RuleReport(msgspec.Struct, frozen=True):
    """A rule that was applied: what it finds, and at length why that matters and what helps."""

    id: str
    name: str
    severity: Severity
    summary: str
    help: str


class ConfigReport(msgspec.Struct, frozen=True):
    """What the launcher asks CUTLASS for. Tiles and clusters are [M, N, K] in elements and CTAs; a cluster mode chosen at
    run time is null unless the arguments name it. `types` is activation × weight → output in short."""

    arch: str
    types: str
    cta_tile: tuple[int, int, int]
    mma_tile: tuple[int, int, int]
    cluster: tuple[int | None, int | None, int | None]
    dynamic_cluster: bool
    swap_ab: bool
    fusion: str
    block_scaling: str | None
    element_a: str
    element_b: str
    element_scale: str | None
    element_c: str
    element_d: str
    element_output: str
    element_accumulator: str
    kernel_schedule: str
    resolved_schedule: str | None
    stage_count: str
    epilogue_schedule: str


class InstantiationReport(msgspec.Struct, frozen=True):
    """One instantiation. `config` and `footprint` are null where they are not known; `unknown` then says why.
    `subject` is how findings call it, `decisions` where the launcher decides its stage count and its schedule, `skipped`
    whether the launcher passes over a kernel that needs the limit or more. `compared` is the clang engine's footprint
    when both engines ran."""

    file: str
    range: Range
    name: str
    subject: str
    launcher: str | None
    decisions: tuple[Location, ...]
    skipped: bool
    guard: str | None
    arguments: dict[str, str]
    config: ConfigReport | None
    footprint: Footprint | None
    compared: Footprint | None
    unknown: str | None


class Summary(msgspec.Struct, frozen=True):
    """Counts that add up: instantiations = sized + refused + not_sized; findings that count by severity and by rule, and
    how many more are suppressed or known from the baseline. `unread_files` of the files could not be read, and `unread`
    further invocations in the others."""

    files: int
    unread_files: int
    instantiations: int
    unread: int
    sized: int
    refused: int
    not_sized: int
    findings: dict[str, int]
    rules: dict[str, int]
    suppressed: int
    known: int


class BaselineReport(msgspec.Struct, frozen=True):
    """The baseline that the run was compared with: how many findings it has, and those `gone`, which no longer occur."""

    file: str
    findings: int
    gone: tuple[Known, ...]


class Report(msgspec.Struct, frozen=True):
    """`files` has the whole path of every file that a finding or a decision of a launcher is in, null for one that was
    generated for this run only or that two sources have. `errors` say what part of the job could not be done, `fail_on` from
    which severity on findings fail the run."""

    schema_version: str
    tool: Tool
    sources: tuple[SourceReport, ...]
    targets: tuple[TargetReport, ...]
    rules: tuple[RuleReport, ...]
    instantiations: tuple[InstantiationReport, ...]
    findings: tuple[Finding, ...]
    files: dict[str, str | None]
    errors: tuple[str, ...]
    fail_on: FailOn
    baseline: BaselineReport | None
    summary: Summary


def build(
    analyses: Sequence[tuple[Analysis, Spelling]],
    targets: Sequence[Target],
    rules: Sequence[Rule],
    findings: Sequence[Finding],
    everything: bool,
    errors: Sequence[str] = (),
    fail_on: FailOn = "error",
    baseline: BaselineReport | None = None,
    others: Mapping[str, str] | None = None,
) -> Report:
    """The report of one run with `rules`. Instantiations are listed if a finding is about them, or all of them with
    `everything`. `errors` are what kept part of the job from being done; `others` are further files that findings name,
    with their whole paths."""
    concerned = {(finding.file, finding.range) for finding in findings}
    listed = [
        _instantiation(each, paths)
        for analysis, paths in analyses
        for each in analysis.instantiations
        if everything or (paths(str(each.instantiation.file)), each.instantiation.range) in concerned
    ]
    return Report(
        schema_version=SCHEMA_VERSION,
        tool=Tool("cutlint", __version__),
        sources=tuple(source_report(analysis, paths) for analysis, paths in analyses),
        targets=tuple(target_report(each) for each in targets),
        rules=tuple(RuleReport(each.id, each.name, each.severity, each.summary, each.help.strip()) for each in rules),
        instantiations=tuple(listed),
        findings=tuple(findings),
        files=_files(findings, listed, [paths for _, paths in analyses], others or {}),
        errors=tuple(errors),
        fail_on=fail_on,
        baseline=baseline,
        summary=_summary([analysis for analysis, _ in analyses], findings),
    )


def schema() -> dict[str, Any]:
    """The JSON Schema of the report."""
    return json_schema("cutlint report", SCHEMA_VERSION, Report)


def _files(
    findings: Sequence[Finding],
    listed: Sequence[InstantiationReport],
    spellings: Sequence[Spelling],
    others: Mapping[str, str],
) -> dict[str, str | None]:
    named = {each.file for each in findings} | {where.file for each in findings for where in each.related}
    named |= {where.file for each in listed for where in each.decisions}
    found: dict[str, str | None] = {}
    for shown in sorted(named):
        whole = {each.whole(shown) for each in spellings if each.knows(shown)}
        whole |= {others[shown]} if shown in others else set()
        found[shown] = whole.pop() if len(whole) == 1 else None
    return found


def source_report(analysis: Analysis, paths: Paths) -> SourceReport:
    """One source as reports have it."""
    checkout = analysis.checkout
    return SourceReport(
        label=checkout.label,
        root=str(checkout.root),
        cutlass=cutlass_version(analysis),
        launchers=tuple(sorted({paths(each.path) for each in analysis.launchers})),
        files=analysis.files,
        instantiations=len(analysis.instantiations),
    )


def cutlass_version(analysis: Analysis) -> str | None:
    if analysis.cutlass is None:
        return None
    try:
        return ".".join(map(str, Cutlass(analysis.cutlass).version))
    except Unmodelled:
        return None


def target_report(each: Target) -> TargetReport:
    runs = tuple(f"Sm{arch}" for arch in each.runs)
    return TargetReport(each.name, each.compute_capability, each.limit, runs, each.aliases)


def _instantiation(each: Analyzed, paths: Paths) -> InstantiationReport:
    return InstantiationReport(
        file=paths(str(each.instantiation.file)),
        range=each.instantiation.range,
        name=each.instantiation.name,
        subject=subject(each),
        launcher=None if each.launcher is None else paths(each.launcher),
        decisions=decided(each, paths),
        skipped=passed_over(each),
        guard=each.instantiation.guard,
        arguments=each.arguments,
        config=None if each.config is None else _config(each.config, each.arguments),
        footprint=_with_regions(each),
        compared=each.compared,
        unknown=each.unknown,
    )


def _with_regions(each: Analyzed) -> Footprint | None:
    """The footprint; its regions made now if the analysis left them out."""
    footprint = each.footprint
    if footprint is None or footprint.regions or footprint.total is None or each.config is None or each.sizer is None:
        return footprint
    return msgspec.structs.replace(footprint, regions=each.sizer.footprint(each.config, regions=True).regions)


def _config(config: KernelConfig, arguments: dict[str, str]) -> ConfigReport:
    return ConfigReport(
        arch=f"Sm{config.arch}",
        types=types(config),
        cta_tile=config.cta_tile,
        mma_tile=config.mma_tile,
        cluster=_cluster(config, arguments),
        dynamic_cluster=config.dynamic_cluster,
        swap_ab=config.swap_ab,
        fusion=config.fusion,
        block_scaling=config.block_scaling,
        element_a=config.a.element,
        element_b=config.b.element,
        element_scale=config.a.scale,
        element_c=config.epilogue.c.element,
        element_d=config.epilogue.d.element,
        element_output=config.epilogue.output_element,
        element_accumulator=config.accumulator,
        kernel_schedule=config.schedule,
        resolved_schedule=config.resolved_schedule,
        stage_count=str(config.stage_count),
        epilogue_schedule=config.epilogue.schedule,
    )


def _cluster(config: KernelConfig, arguments: dict[str, str]) -> tuple[int | None, int | None, int | None]:
    """The cluster shape; where the kernel leaves it to run time, what the launcher's cluster parameters say."""
    named = [text for name, text in arguments.items() if re.fullmatch(r"(CGA|CLUSTER)_?[MNK]_?", name, re.I)]
    if config.dynamic_cluster and len(named) == 3 and all(text.isdecimal() for text in named):
        m, n, k = (int(text) for text in named)
        return m, n, k
    return config.cluster


def _summary(analyses: Sequence[Analysis], findings: Sequence[Finding]) -> Summary:
    every = [each for analysis in analyses for each in analysis.instantiations]
    refused = sum(each.footprint is not None and each.footprint.refused is not None for each in every)
    sized = sum(each.footprint is not None for each in every) - refused
    severities = {"error": 0, "warning": 0, "note": 0}
    rules: dict[str, int] = {}
    counted = [finding for finding in findings if finding.suppressed is None]
    for finding in counted:
        severities[finding.severity] += 1
        rules[finding.rule] = rules.get(finding.rule, 0) + 1
    known = sum(each.suppressed is not None and each.suppressed.kind == "baseline" for each in findings)
    unread = [problem.unread for analysis in analyses for problem in analysis.problems]
    return Summary(
        files=sum(analysis.files for analysis in analyses),
        unread_files=unread.count("file"),
        instantiations=len(every),
        unread=unread.count("invocation"),
        sized=sized,
        refused=refused,
        not_sized=len(every) - sized - refused,
        findings=severities,
        rules=dict(sorted(rules.items())),
        suppressed=len(findings) - len(counted) - known,
        known=known,
    )
