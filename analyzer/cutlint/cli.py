"""The command line. Exit codes as ruff's: 0 clean, 1 findings at or above --fail-on, 2 the job could not be done."""

from __future__ import annotations

import contextlib
import io
import sys

import click

from cutlint import __version__
from cutlint.commands.check import check
from cutlint.commands.diff import diff
from cutlint.commands.fit import fit
from cutlint.commands.lsp import lsp
from cutlint.commands.map import byte_map
from cutlint.commands.show import explain, rules, targets
from cutlint.commands.tactics import tactics
from cutlint.errors import CutlintError

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=CONTEXT)
@click.version_option(__version__, prog_name="cutlint")
def cli() -> None:
    """Find CUTLASS MoE GEMM instantiations that will not run, by exact shared memory, before anything is built."""


for command in (check, byte_map, tactics, fit, diff, lsp, rules, explain, targets):
    cli.add_command(command)


def main() -> None:
    """The entry point: errors become messages, never tracebacks."""
    for stream in (sys.stdout, sys.stderr):  # a report is written even where × cannot be
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        cli(prog_name="cutlint", standalone_mode=False)
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
