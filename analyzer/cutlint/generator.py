"""The generated ``.cu`` files of a checkout, written by its own ``generate_kernels.py`` in a child process.

This executes code of the checkout, with the user's rights; cutlint does it only when asked to.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import msgspec

from cutlint.checkout import cu_files
from cutlint.errors import CutlintError, last_line
from cutlint.records import Checkout, Problem

# What FlashInfer's generator takes; whatever it is asked for, it writes its Sm80 and fpA_intB files as well.
ARCHS = (90, 100, 103, 120)
_TAIL = 64 * 1024  # bytes kept of what the child writes to stderr
_ENVIRONMENT = ("PATH", "SYSTEMROOT", "LANG", "LC_ALL")  # nothing in which a secret could be

# The generator imports its neighbours, and up to release 0.6.11 a function from a package above it that needs
# torch and CUDA. So its package and those above are stubs, and the function says that CUDA is new enough.
_DRIVER = """
import importlib, sys, types
folder, out, archs = sys.argv[1:]
name = ""
for part in ("flashinfer", "jit", "gemm", "cutlass"):
    name = name + "." + part if name else part
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = []
    cpp_ext = sys.modules[name + ".cpp_ext"] = types.ModuleType(name + ".cpp_ext")
    cpp_ext.is_cuda_version_at_least = lambda version: True
package.__path__ = [folder]
importlib.import_module(name + ".generate_kernels").generate_gemm_operations(out, archs)
"""


@contextlib.contextmanager
def generated(checkout: Checkout, archs: Sequence[int] = ARCHS, *, timeout: float = 120) -> Iterator[Checkout]:
    """``checkout`` with freshly generated files in place of those it had, for as long as the context lasts.

    In: a checkout with a generator, compute capabilities out of ``ARCHS``, and a limit in seconds. The files
    lie in a folder ``cutlass_instantiations`` below a temporary one, as in FlashInfer's JIT cache. Raises
    CutlintError when the checkout has no generator, or when that fails, hangs or writes nothing.
    """
    if checkout.generator is None:
        raise CutlintError(
            f"{checkout.label} has no generate_kernels.py to run; name the folder of its generated .cu files"
        )
    if unknown := [arch for arch in archs if arch not in ARCHS]:
        raise CutlintError(f"cannot generate for {unknown[0]}; known: {', '.join(map(str, ARCHS))}")
    if not archs:
        raise CutlintError(f"no architecture to generate for; known: {', '.join(map(str, ARCHS))}")
    with _temporary_folder() as temporary:
        out = temporary / "cutlass_instantiations"
        out.mkdir()
        _run(checkout.generator.resolve(), out, archs, temporary, timeout)
        problems: list[Problem] = []
        files = cu_files(out, problems)
        if problems or not files:
            reason = f"left {problems[0].file}: {problems[0].message}" if problems else "wrote no .cu file"
            raise CutlintError(f"{checkout.generator} {reason}")
        yield msgspec.structs.replace(checkout, generated=tuple(files))


@contextlib.contextmanager
def _temporary_folder() -> Iterator[Path]:
    try:
        folder = TemporaryDirectory(prefix="cutlint-", ignore_cleanup_errors=True)
    except OSError as error:
        raise CutlintError(f"cannot make a temporary folder: {error}; set TMPDIR to another") from error
    with folder as name:
        yield Path(name).resolve()


def _run(generator: Path, out: Path, archs: Sequence[int], cwd: Path, timeout: float) -> None:
    command = [sys.executable, "-I", "-B", "-X", "utf8", "-c", _DRIVER]
    command += [str(generator.parent), str(out), ";".join(map(str, archs))]
    try:
        child = subprocess.Popen(
            command,
            cwd=cwd,
            env=_environment(cwd),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise CutlintError(f"cannot start {sys.executable} to run {generator}: {error}") from error
    assert child.stderr is not None
    tail = bytearray()
    reader = threading.Thread(target=_keep_tail, args=(child.stderr, tail), daemon=True)
    reader.start()
    try:
        status = child.wait(timeout)
    except subprocess.TimeoutExpired as error:
        raise CutlintError(f"{generator} did not end within {timeout:g} s and was stopped") from error
    finally:
        _kill(child)
        reader.join(timeout=1)
    if status != 0:
        raise CutlintError(f"{generator} failed: {last_line(bytes(tail)) or f'exit code {status}'}")


def _environment(temporary: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    return {**kept, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))}


def _keep_tail(stream: IO[bytes], tail: bytearray) -> None:
    with stream:
        while chunk := os.read(stream.fileno(), _TAIL):
            tail += chunk
            del tail[:-_TAIL]


def _kill(child: subprocess.Popen[bytes]) -> None:
    """End ``child`` and whatever it has started, which may outlive it."""
    if sys.platform == "win32":
        child.kill()
    else:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()
