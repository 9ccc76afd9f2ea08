"""``cutlint fit``."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from cutlint.commands import options


@click.command()
@click.argument("source", required=False, type=click.Path())
@click.option("--target", required=True, metavar="NAME", help="The GPU, e.g. rtx-5090, gb10, 12.0.")
@click.option(
    "--act", required=True, metavar="TYPE", help="Activations' element type: e2m1, e4m3, bf16, … or FP4, FP8, BF16."
)
@click.option("--weight", required=True, metavar="TYPE", help="Weights' element type.")
@click.option(
    "--fusion",
    type=click.Choice(["none", "finalize", "activation"], case_sensitive=False),
    default="none",
    show_default=True,
    help="What the epilogue does.",
)
@options.checkout
@options.generate
@options.cuda_include
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@options.output
def fit(
    source: str | None,
    target: str,
    act: str,
    weight: str,
    fusion: str,
    checkout: str | None,
    generate: bool,
    cuda_include: Path | None,
    form: str,
    output: Path | None,
) -> None:
    """Search the tiles, SwapAB and stage counts that fit a GPU, beyond those instantiated; the best first.

    SOURCE is as for check. Ranked by operand reuse (FLOP per byte of A and B staged), then by stages. The best are
    checked with the clang engine where headers are at hand.
    """
    from cutlint import fitting
    from cutlint import targets as targeting
    from cutlint.progress import shown
    from cutlint.run import analyzed
    from cutlint.sources import Request

    (chosen,) = targeting.find([target])
    request = Request(checkout=checkout, generate=generate, cwd=Path.cwd())
    with contextlib.ExitStack() as stack, shown() as progress:
        analysis, _ = analyzed(source, request, stack, progress)
        report = fitting.search(analysis, chosen, act, weight, fusion, cuda_include=cuda_include, progress=progress)
    if form == "json":
        text = fitting.to_json(report)
    else:
        from cutlint.formats.fit import render

        text = render(report)
    options.write(text, output, for_people=form == "text")
