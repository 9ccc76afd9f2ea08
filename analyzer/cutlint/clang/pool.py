"""Worker processes that answer orders, as many at a time as there are workers."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import IO

from cutlint.clang import wire
from cutlint.clang.records import Answer, Failure, Order, Setup
from cutlint.errors import last_line

TIMEOUT = 900.0  # seconds for one order; the longest takes a few


class Pool:
    """Up to `jobs` worker processes, each started when it is needed and told the `setup` first.

    A worker that ends before it has answered is replaced and asked again, once.
    """

    def __init__(self, jobs: int, setup: Setup) -> None:
        self._setup = setup
        self._threads = ThreadPoolExecutor(jobs, thread_name_prefix="cutlint-clang")
        self._own = threading.local()
        self._workers: list[_Worker] = []
        self._closed = False

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        for worker in list(self._workers):
            worker.end()
        self._threads.shutdown(cancel_futures=True)

    def ask(self, order: Order) -> Future[Answer]:
        """The answer to come; a Failure if libclang could not do it."""
        return self._threads.submit(self._answer, order)

    def configure(self, setup: Setup) -> None:
        """Have all that is asked from now on done with another `setup`."""
        self._setup = setup

    def _answer(self, order: Order) -> Answer:
        said = ""
        for _ in range(2):
            if self._closed:
                return Failure("interrupted")
            worker: _Worker | None = getattr(self._own, "worker", None)
            if worker is None:
                worker = self._own.worker = _Worker()
                self._workers.append(worker)
            answer = worker.ask(order, self._setup)
            if answer is not None:
                return answer
            said = worker.end()
            self._own.worker = None
        return Failure(f"its process ended{f': {said}' if said else ''}")


class _Worker:
    def __init__(self) -> None:
        self._setup: Setup | None = None
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        path = os.pathsep.join(str(Path(each).absolute()) for each in sys.path)  # what this process imports from
        self._process = subprocess.Popen(
            [sys.executable, "-m", "cutlint.clang.evaluate"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=tempfile.gettempdir(),
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # an interrupt is for this process, which ends its workers
        )

    def ask(self, order: Order, setup: Setup) -> Answer | None:
        """The answer, or None when the process has ended."""
        timer = threading.Timer(TIMEOUT, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            if setup != self._setup:
                if self._exchange(setup) is None:
                    return None
                self._setup = setup
            return self._exchange(order)
        except OSError:
            return None
        finally:
            timer.cancel()

    def _exchange(self, order: Order) -> Answer | None:
        wire.send(_open(self._process.stdin), order)
        return wire.receive_answer(_open(self._process.stdout))

    def end(self) -> str:
        """End the process; the last thing that it said on standard error."""
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()
        with contextlib.suppress(OSError, ValueError):
            self._errors.seek(0)
            return last_line(self._errors.read())
        return ""


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # both are pipes
    return pipe
