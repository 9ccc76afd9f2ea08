"""``cutlint tactics``."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import click

from cutlint.commands import options


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", type=click.Path())
@options.checkout
@options.generate
@options.arch
@options.targets
@click.option(
    "--skip", "skipped_only", is_flag=True, help="List only the tactics that fail, as a list of what to skip."
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@options.output
def tactics(
    sources: tuple[str, ...],
    checkout: str | None,
    generate: bool,
    arch: str,
    targets: tuple[str, ...],
    skipped_only: bool,
    form: str,
    output: Path | None,
) -> None:
    """List the tactics that the autotuner is offered on a GPU, and which of them will fail there, and why.

    SOURCE is as for check; it must have its host code (cutlass_heuristic.cpp and the dispatch headers).
    """
    from cutlint import tactics as listing
    from cutlint import targets as targeting
    from cutlint.dispatch.reach import reach
    from cutlint.errors import CutlintError
    from cutlint.progress import shown
    from cutlint.run import gather
    from cutlint.sources import Request

    request = Request(sources=sources, checkout=checkout, generate=generate, archs=options.archs(arch), cwd=Path.cwd())
    chosen = targeting.find(targets) if targets else targeting.known()
    found = []
    with contextlib.ExitStack() as stack, shown() as progress:
        results, errors = gather(request, stack, progress)
        for analysis, paths in results:
            progress("following the dispatch code", 0, 0)
            reached = reach(analysis, chosen)
            if reached is None:
                raise CutlintError(
                    f"{analysis.base.label} has no host code that lists tactics (moe_gemm/*.cu with MoeGemmRunner, "
                    "cutlass_heuristic.cpp); name a checkout that has it with --checkout"
                )
            found.append((analysis, paths, reached))
        report = listing.build(found, chosen, skipped_only)
    if form == "json":
        text = listing.to_json(report)
    else:
        from cutlint.formats.tactics import render

        text = render(report)
    options.write(text, output, for_people=form == "text")
    for error in errors:
        click.echo(f"error: {error}", err=True)
    sys.exit(2 if errors else 0)
