"""Options that several commands have, and how their values are read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from cutlint.errors import CutlintError

Command = TypeVar("Command", bound=Callable[..., Any])


def _option(*names: str, **how: Any) -> Callable[[Command], Command]:
    return click.option(*names, **how)


checkout = _option(
    "--checkout",
    metavar="PATH|RELEASE",
    help="Where launcher and CUTLASS come from, for generated files that lie apart.",
)
generate = _option(
    "--generate",
    is_flag=True,
    help="Make the generated files first. This executes the checkout's own generate_kernels.py, isolated in a child "
    "process and a temporary folder. A release such as flashinfer-python==0.7.4 implies it.",
)
arch = _option(
    "--arch",
    default="",
    metavar="LIST",
    help="Architectures to generate for, e.g. 90,120 (default: all). Generators may write some others all the same.",
)
targets = _option(
    "--target",
    "targets",
    multiple=True,
    metavar="NAME",
    help="GPU to check against, e.g. rtx-5090, gb10, 12.0; repeatable. Default: all that run the kernels.",
)
cuda_include = _option(
    "--cuda-include",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="CUDA headers for the clang engine (default: CUDA_HOME, else the wheels of cutlint[clang]).",
)
rule_folders = _option(
    "--rules",
    "rule_folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="A folder of further rules; repeatable.",
)
output = _option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the result there instead of to standard output.",
)


def words(text: str) -> tuple[str, ...]:
    """The parts of a comma-separated list."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def archs(text: str) -> tuple[int, ...]:
    """The architectures of a comma-separated list, all for an empty one.

    Raises:
        CutlintError: for one that is not known.
    """
    from cutlint.generator import ARCHS

    given = words(text)
    wrong = [word for word in given if not word.isdecimal() or int(word) not in ARCHS]
    if wrong:
        raise CutlintError(f"unknown architecture '{wrong[0]}'; known: {', '.join(map(str, ARCHS))}")
    return tuple(int(word) for word in given) or tuple(ARCHS)


def write(text: str, output: Path | None, for_people: bool = False) -> None:
    """`text` to the file `output`, replaced as a whole, or to standard output: in UTF-8, or as a terminal wants it
    `for_people`."""
    if output is None:
        click.echo(text if for_people else text.encode(errors="surrogateescape"), nl=False)
    else:
        from cutlint.files import write as replace

        replace(output, text)
