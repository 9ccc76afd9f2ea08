"""``cutlint diff``."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import click

from cutlint.commands import options


@click.command()
@click.argument("old", type=click.Path())
@click.argument("new", type=click.Path())
@options.checkout
@options.generate
@options.arch
@options.targets
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@options.output
def diff(
    old: str,
    new: str,
    checkout: str | None,
    generate: bool,
    arch: str,
    targets: tuple[str, ...],
    form: str,
    output: Path | None,
) -> None:
    """Say what NEW changes against OLD: instantiations that come and go, their bytes, stages and verdicts, and why.

    OLD and NEW are sources as for check: checkouts, folders, or releases such as flashinfer-python==0.7.4. The exit
    code is 1 if anything fails in NEW that did not fail, or was not there, in OLD.
    """
    from cutlint import diff as differing
    from cutlint import targets as targeting
    from cutlint.progress import shown
    from cutlint.run import analyzed
    from cutlint.sources import Request

    request = Request(checkout=checkout, generate=generate, archs=options.archs(arch), cwd=Path.cwd())
    chosen = targeting.find(targets) if targets else targeting.known()
    with contextlib.ExitStack() as stack, shown() as progress:
        before, after = (analyzed(name, request, stack, progress) for name in (old, new))
        report = differing.build(before, after, chosen, targets)
    if form == "json":
        text = differing.to_json(report)
    else:
        from cutlint.formats import diff as rendering

        text = rendering.render(report) if form == "text" else rendering.markdown_comment(report)
    options.write(text, output, for_people=form == "text")
    sys.exit(1 if report.summary.newly_failing else 0)
