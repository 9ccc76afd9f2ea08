"""One run of ``cutlint check``: from what the user named to a report."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import msgspec

from cutlint import checkout as checkouts
from cutlint import report as reporting
from cutlint import rules as ruling
from cutlint import settings as setting
from cutlint import targets as targeting
from cutlint.analysis import Analysis, analyze, display_path
from cutlint.errors import CutlintError
from cutlint.findings import Paths, collect
from cutlint.generator import ARCHS, generated
from cutlint.records import Checkout, Finding, Problem
from cutlint.report import Report
from cutlint.settings import Settings
from cutlint.targets import Target

Progress = Callable[[str, int, int], None]


class Request(msgspec.Struct, frozen=True):
    """What to check and how. Empty `sources` mean the checkout around `cwd`, or the installed package."""

    sources: tuple[str, ...] = ()
    checkout: str | None = None
    generate: bool = False
    archs: tuple[int, ...] = tuple(ARCHS)
    rule_folders: tuple[Path, ...] = ()
    everything: bool = False
    cwd: Path = Path()


class Outcome(msgspec.Struct, frozen=True):
    """A report and what kept part of the job from being done (sources that could not be used)."""

    report: Report
    errors: tuple[str, ...]


def check(request: Request, settings: Settings, progress: Progress = lambda what, done, total: None) -> Outcome:
    """Run all stages over every source.

    Raises:
        CutlintError: when no source at all could be analysed, or the settings make no sense.
    """
    rules = setting.selected(ruling.load(request.rule_folders), settings.select, settings.ignore)
    targets = targeting.find(settings.target) if settings.target else targeting.known()
    errors: list[str] = []
    results: list[tuple[Analysis, Paths]] = []
    findings: list[Finding] = []
    with contextlib.ExitStack() as stack:
        for source in request.sources or (None,):
            try:
                analysis, paths = _analyze(source, request, stack, progress)
            except CutlintError as error:
                errors.append(str(error))
                continue
            results.append((analysis, paths))
            findings.extend(collect(analysis, rules, targets, paths))
        if not results:
            raise CutlintError("\n".join(errors))
        findings = setting.without_ignored_files(findings, settings.per_file_ignores)
        checked = _checked(results, targets, bool(settings.target))
        report = reporting.build(results, checked, findings, request.everything)
    return Outcome(report, tuple(errors))


def _checked(results: Sequence[tuple[Analysis, Paths]], targets: Sequence[Target], named: bool) -> tuple[Target, ...]:
    """The targets of the run: those the user named, or those that run any of the kernels."""
    sized = [each for analysis, _ in results for each in analysis.instantiations if each.footprint is not None]
    archs = {each.config.arch for each in sized if each.config is not None}
    return tuple(target for target in targets if named or archs & set(target.runs))


def _analyze(
    source: str | None, request: Request, stack: contextlib.ExitStack, progress: Progress
) -> tuple[Analysis, Paths]:
    found, problems, is_release = _find(source, request, progress)
    base = found
    if request.checkout is not None:
        base, wrong, _ = _find(request.checkout, request, progress)
        problems = [*problems, *wrong]
    elif not found.launchers:
        base = _around(found, request)
    if request.generate or is_release:
        progress("running generate_kernels.py", 0, 0)
        found = stack.enter_context(generated(found, request.archs))
    if not found.generated:
        raise CutlintError(
            f"{found.label} holds no generated .cu files. With --generate cutlint makes them: that runs the checkout's own "
            "generate_kernels.py, so use it on code you trust; or name the folder of files already generated"
        )
    if not base.launchers:
        raise CutlintError(
            f"{found.label} holds generated files but no launcher (.inl) to read them with; name the FlashInfer checkout, "
            "package or release they come from: --checkout PATH or --checkout flashinfer-python==VERSION"
        )
    analysis = analyze(found, base, lambda done, total: progress("reading", done, total))
    if problems:
        analysis = msgspec.structs.replace(analysis, problems=(*problems, *analysis.problems))
    roots = _roots(found, base, request.cwd, is_release)
    return analysis, cache(lambda path: display_path(path, roots))


def _roots(found: Checkout, base: Checkout, cwd: Path, is_release: bool) -> tuple[Path, ...]:
    """The folders that paths are written relative to, by preference."""
    folders = [root if root.is_dir() else root.parent for root in (found.root, base.root)]
    generated_in = [
        each for path in found.generated[:1] for each in path.parents if each.name == "cutlass_instantiations"
    ]
    return (*folders, *generated_in, cwd) if is_release else (cwd, *generated_in, *folders)


def _find(source: str | None, request: Request, progress: Progress) -> tuple[Checkout, list[Problem], bool]:
    resolved = checkouts.resolve(source, cwd=request.cwd)
    if isinstance(resolved, Path):
        found, problems = checkouts.find(resolved, source or str(resolved))
        return found, problems, False
    from cutlint.fetch import fetch

    folder = fetch(str(resolved), progress=lambda message: progress(message, 0, 0))
    found, problems = checkouts.find(folder, str(resolved))
    return found, problems, True


def _around(found: Checkout, request: Request) -> Checkout:
    """The checkout that lends launcher and CUTLASS to files that lie apart: around them, else the default source."""
    inside = checkouts.enclosing(found.root if found.root.is_dir() else found.root.parent)
    try:
        folder = inside or checkouts.default_source(request.cwd)
        return checkouts.find(folder, str(folder))[0]
    except CutlintError:
        return found
