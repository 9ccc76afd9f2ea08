"""Work spread over all cores, with results in order."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

CHUNKS = 8  # for each core, so that no core waits long for another
LEAST = 64  # items below which starting processes costs more than it saves

_function: Callable[[Any], Any] | None = None


def spread(function: Callable[[Sequence[Item]], Result], items: Sequence[Item]) -> Iterator[Result]:
    """`function` of consecutive chunks of `items`, in their order; in forked processes where that pays.

    `function` may refer to anything, as the processes are copies of this one; its results are sent back by pickle.
    """
    cores = _cores()
    if cores < 2 or len(items) < LEAST:
        yield function(items)
        return
    size = -(-len(items) // (cores * CHUNKS))
    chunks = [items[start : start + size] for start in range(0, len(items), size)]
    global _function
    _function = function
    try:
        with multiprocessing.get_context("fork").Pool(cores) as pool:
            yield from pool.imap(_call, chunks)
    finally:
        _function = None


def _call(chunk: Sequence[Any]) -> Any:
    assert _function is not None  # set before the process was forked
    return _function(chunk)


def _cores() -> int:
    """How many cores this process may use; 1 where it cannot fork."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
