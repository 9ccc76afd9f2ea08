"""The command line. Exit codes as ruff's: 0 clean, 1 findings at or above --fail-on, 2 the job could not be done."""

from __future__ import annotations

import contextlib
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cutlint import __version__
from cutlint.errors import CutlintError

if TYPE_CHECKING:
    from cutlint.report import Report

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


_rule_folders = click.option(
    "--rules",
    "rule_folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A folder of further rules; repeatable.",
)


@click.group(context_settings=CONTEXT)
@click.version_option(__version__, prog_name="cutlint")
def cli() -> None:
    """Find CUTLASS MoE GEMM instantiations that will not run, by exact shared memory, before anything is built."""


@cli.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option(
    "--checkout",
    metavar="PATH|RELEASE",
    help="Where launcher and CUTLASS come from, for generated files that lie apart.",
)
@click.option(
    "--generate",
    is_flag=True,
    help="Make the generated files first. This executes the checkout's own generate_kernels.py, isolated in a child "
    "process and a temporary folder. A release such as flashinfer-python==0.7.4 implies it.",
)
@click.option(
    "--arch",
    default="",
    metavar="LIST",
    help="Architectures to generate for, e.g. 90,120 (default: all). Generators may write some others all the same.",
)
@click.option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME",
    help="GPU to check against, e.g. rtx-5090, gb10, 12.0; repeatable. Default: all that run the kernels.",
)
@click.option("--select", default="", metavar="LIST", help="Rules to apply, by id or its beginning (default: all).")
@click.option("--ignore", default="", metavar="LIST", help="Rules to leave out.")
@_rule_folders
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
@click.option(
    "--cuda-include",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="CUDA headers for --engine clang (default: CUDA_HOME, else the wheels of cutlint[clang]).",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the report there instead of to standard output.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="List the facts of every instantiation in JSON, not only of those with findings.",
)
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

    found = setting.find(Path.cwd())
    given: dict[str, Any] = {"select": _words(select), "ignore": _words(ignore), "target": targets, "fail_on": fail_on}
    settings = msgspec.structs.replace(found.settings, **{name: value for name, value in given.items() if value})
    found = msgspec.structs.replace(found, settings=settings)
    request = Request(
        sources=sources,
        checkout=checkout,
        generate=generate,
        archs=_archs(arch),
        engine=engine,
        cuda_include=cuda_include,
        regions=everything or engine == "both",
        cwd=Path.cwd(),
    )
    with shown() as progress:
        outcome = run(request, found, rule_folders, everything, progress)
    _write(outcome.report, form, output)
    for error in outcome.errors:
        click.echo(f"error: {error}", err=True)
    failed = setting.fails(outcome.report.findings, settings.fail_on)
    sys.exit(2 if outcome.errors else 1 if failed else 0)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _archs(text: str) -> tuple[int, ...]:
    from cutlint.generator import ARCHS

    words = _words(text)
    wrong = [word for word in words if not word.isdecimal() or int(word) not in ARCHS]
    if wrong:
        raise CutlintError(f"unknown architecture '{wrong[0]}'; known: {', '.join(map(str, ARCHS))}")
    return tuple(int(word) for word in words) or tuple(ARCHS)


def _write(report: Report, form: str, output: Path | None) -> None:
    from cutlint.report import to_json

    if output is None:
        if form == "json":
            click.echo(to_json(report), nl=False)
            return
        from rich.console import Console

        from cutlint.text import render

        render(report, Console(highlight=False, markup=False, emoji=False))
        return
    from cutlint.files import write

    if form == "json":
        write(output, to_json(report))
        return
    from rich.console import Console

    from cutlint.text import render

    text = io.StringIO()
    render(report, Console(file=text, highlight=False, markup=False, emoji=False, color_system=None, width=160))
    write(output, text.getvalue())


@cli.command("map")
@click.argument("source", required=False)
@click.option("--where", metavar="EXPR", help="Which instantiations, e.g. 'cta_m == 128 and fusion == \"FINALIZE\"'.")
@click.option("--checkout", metavar="PATH|RELEASE", help="As for check.")
@click.option("--generate", is_flag=True, help="As for check: executes the checkout's own generate_kernels.py.")
@click.option("--target", "targets", multiple=True, metavar="NAME", help="As for check.")
@click.option("--engine", type=click.Choice(["model", "clang"]), default="model", show_default=True)
@click.option("--cuda-include", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="As for check.")
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


@cli.command()
@_rule_folders
def rules(rule_folders: tuple[Path, ...]) -> None:
    """List the rules."""
    from cutlint.rules import load

    for rule in load(rule_folders):
        click.echo(f"{rule.id}  {rule.severity:8} {rule.name:26} {rule.summary}")


@cli.command()
@click.argument("rule")
@_rule_folders
def explain(rule: str, rule_folders: tuple[Path, ...]) -> None:
    """Say what RULE (an id such as CUT101, or a name) finds, why, and what to do."""
    from cutlint.rules import load

    known = load(rule_folders)
    for each in known:
        if rule.upper() == each.id or rule.lower() == each.name:
            click.echo(f"{each.id} {each.name} ({each.severity})\n\n{each.summary}.\n\n{each.help.strip()}")
            if each.sources:
                click.echo("\nSources:\n" + "\n".join(f"  {source}" for source in each.sources))
            return
    raise CutlintError(f"no rule '{rule}'; there are {', '.join(each.id for each in known)}")


@cli.command()
def targets() -> None:
    """List the GPUs cutlint knows, with the shared memory a block may have."""
    from cutlint.targets import known

    for each in known():
        aliases = f"  {', '.join(each.aliases)}" if each.aliases else ""
        click.echo(f"{each.name:7} {each.compute_capability:>4}  {each.limit:>7,} B{aliases}")


def main() -> None:
    """The entry point: errors become messages, never tracebacks."""
    for stream in (sys.stdout, sys.stderr):  # a report is written even where × cannot be
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        cli(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except CutlintError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        sys.exit(2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(2)
    except OSError as error:
        click.echo(f"error: {error.strerror or error}", err=True)
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.close()  # or Python says at exit that it cannot be flushed
        sys.exit(2)


if __name__ == "__main__":
    main()
