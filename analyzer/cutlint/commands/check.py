"""``cutlint check``."""

from __future__ import annotations

import gc
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cutlint.commands import options
from cutlint.formats import FORMATS

if TYPE_CHECKING:
    from cutlint.report import Report
    from cutlint.run import Outcome


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", type=click.Path())
@options.checkout
@options.generate
@options.arch
@options.targets
@click.option("--select", default="", metavar="LIST", help="Rules to apply, by id or its beginning (default: all).")
@click.option("--ignore", default="", metavar="LIST", help="Rules to leave out.")
@options.rule_folders
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note", "never"]),
    help="Least severity that makes the exit code 1 (default: error).",
)
@click.option(
    "--engine",
    type=click.Choice(["model", "clang", "both"]),
    default="model",
    show_default=True,
    help="Who computes footprints: arithmetic, libclang over the checkout's own headers, or both, compared.",
)
@options.cuda_include
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@options.output
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="List the facts of every instantiation in JSON, not only of those with findings. HTML always has all.",
)
@click.option(
    "--diff",
    "patching",
    is_flag=True,
    help="Print, in place of the report, the launcher change after which everything fits, as a patch for git apply. "
    "Nothing is applied.",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Findings in this file are known: only new ones are shown and count.",
)
@click.option(
    "--write-baseline",
    "new_baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the findings of this run there; they are then known.",
)
@click.option("--statistics", is_flag=True, help="End the text with counts: files, invocations, findings of each rule.")
def check(
    sources: tuple[str, ...],
    checkout: str | None,
    generate: bool,
    arch: str,
    targets: tuple[str, ...],
    select: str,
    ignore: str,
    rule_folders: tuple[Path, ...],
    fail_on: str | None,
    engine: str,
    cuda_include: Path | None,
    form: str,
    output: Path | None,
    everything: bool,
    patching: bool,
    baseline: Path | None,
    new_baseline: Path | None,
    statistics: bool,
) -> None:
    """Check generated instantiations.

    SOURCE is a FlashInfer or TensorRT-LLM checkout, a flashinfer package's folder, a folder or a file of generated .cu, or a
    release to download, written flashinfer-python==0.7.4. Without one: the checkout around the current folder, else the
    installed flashinfer.
    """
    import msgspec

    from cutlint import settings as setting
    from cutlint.progress import shown
    from cutlint.run import check as run
    from cutlint.sources import Request

    if baseline is not None and new_baseline is not None:
        raise click.UsageError("--write-baseline takes all findings of the run, so --baseline says nothing beside it")
    if statistics and form != "text":
        raise click.UsageError("--statistics goes with --format text; JSON always has the counts, in 'summary'")
    if patching and (form != "text" or statistics or everything):
        raise click.UsageError("--diff prints a patch, no report: leave out --format, --all and --statistics")
    found = setting.find(Path.cwd())
    given: dict[str, Any] = {
        "select": options.words(select),
        "ignore": options.words(ignore),
        "target": targets,
        "fail_on": fail_on,
    }
    settings = msgspec.structs.replace(found.settings, **{name: value for name, value in given.items() if value})
    found = msgspec.structs.replace(found, settings=settings)
    everything = everything or form == "html"
    request = Request(
        sources=sources,
        checkout=checkout,
        generate=generate,
        archs=options.archs(arch),
        engine=engine,
        cuda_include=cuda_include,
        regions=everything or engine == "both",
        cwd=Path.cwd(),
    )
    gc.disable()  # there are next to no cycles in a run, and looking for them takes a tenth of its time
    with shown() as progress:
        outcome = run(request, found, rule_folders, everything, progress, patching, baseline, new_baseline)
    if patching:
        _patch(outcome, output)
    else:
        _write(outcome.report, form, output, statistics)
    for error in outcome.errors:
        click.echo(f"error: {error}", err=True)
    failed = setting.fails(outcome.report.findings, settings.fail_on)
    sys.exit(2 if outcome.errors else 1 if failed else 0)


def _patch(outcome: Outcome, output: Path | None) -> None:
    """The patches to `output` or standard output, what they do to standard error."""
    from cutlint.printable import printable

    options.write("".join(patch.text for _, patch in outcome.patches), output)
    for root, patch in outcome.patches:
        for note in patch.notes:
            click.echo(f"{printable(patch.launcher)}: {printable(note)}", err=True)
        if patch.text:
            click.echo(f"not applied; to apply it: git -C {shlex.quote(printable(str(root)))} apply FILE", err=True)
    if not outcome.patches:
        click.echo("nothing to change: no kernel needs more shared memory than it may have", err=True)


def _write(report: Report, form: str, output: Path | None, statistics: bool) -> None:
    if form != "text":
        from cutlint.formats import render

        options.write(render(report, form), output)
        return
    from cutlint.formats import text

    if output is None:
        from rich.console import Console

        text.draw(report, Console(highlight=False, markup=False, emoji=False), statistics)
    else:
        options.write(text.render(report, statistics), output)
