"""Progress on standard error, only on a terminal, and only once a run takes more than a second."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

DELAY = 1.0


@contextlib.contextmanager
def shown() -> Iterator[Callable[[str, int, int], None]]:
    """A function to tell what is going on (what, done, total; total 0: unknown), for as long as the context lasts."""
    if not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    started, width = time.monotonic(), 0

    def tell(what: str, done: int, total: int) -> None:
        nonlocal width
        if time.monotonic() - started < DELAY:
            return
        line = f"{what} {done:,}/{total:,}" if total else what
        line = "".join(filter(str.isprintable, line))[:100]
        sys.stderr.write("\r" + line.ljust(width))
        sys.stderr.flush()
        width = len(line)

    try:
        yield tell
    finally:
        if width:
            sys.stderr.write("\r" + " " * width + "\r")
            sys.stderr.flush()
