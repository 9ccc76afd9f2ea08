"""``cutlint map``."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from cutlint.commands import options


@click.command("map")
@click.argument("source", required=False, type=click.Path())
@click.option("--where", metavar="EXPR", help="Which instantiations, e.g. 'cta_m == 128 and fusion == \"FINALIZE\"'.")
@options.checkout
@options.generate
@options.targets
@click.option("--engine", type=click.Choice(["model", "clang"]), default="model", show_default=True)
@options.cuda_include
def byte_map(
    source: str | None,
    where: str | None,
    checkout: str | None,
    generate: bool,
    targets: tuple[str, ...],
    engine: str,
    cuda_include: Path | None,
) -> None:
    """Show an instantiation's shared memory byte by byte: offset, size, what it is, holes, total, limit.

    SOURCE is as for check, or file.cu:LINE for the instantiation at that line.
    """
    from cutlint import bytemap
    from cutlint import targets as targeting
    from cutlint.progress import shown
    from cutlint.run import gather
    from cutlint.sources import Request

    name, line = bytemap.place(source) if source is not None else (None, None)
    request = Request(
        sources=() if name is None else (name,),
        checkout=checkout,
        generate=generate,
        engine=engine,
        cuda_include=cuda_include,
        regions=True,
        cwd=Path.cwd(),
    )
    chosen = targeting.find(targets) if targets else targeting.known()
    with contextlib.ExitStack() as stack:
        with shown() as progress:
            results, _ = gather(request, stack, progress)
        text = bytemap.render(bytemap.select(results, where, line), chosen)
    click.echo(text, nl=False)
