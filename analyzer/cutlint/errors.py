"""The one exception that cutlint shows to people, and what other programs said, made fit for its message."""

from __future__ import annotations


class CutlintError(Exception):
    """cutlint could not do its job.

    The message is written for people: what is wrong and what to do next. The command line prints it without a
    traceback and exits with 2.
    """


def last_line(output: bytes, prefix: str = "") -> str:
    """The last line of a program's ``output`` that is not blank and starts with ``prefix``; "" without one.

    At most 500 characters, and no control characters, which could reach a terminal.
    """
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines()]
    last = next((line for line in reversed(lines) if line and line.startswith(prefix)), "")
    return "".join(filter(str.isprintable, last))[:500]
