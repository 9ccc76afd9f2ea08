"""cutlint: exact shared-memory lint of CUTLASS MoE GEMM instantiations, before anything is built.

`check` is the Python interface. It gives the records that ``cutlint check --format json --all`` writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from cutlint.report import Report

__all__ = ["__version__", "check"]
__version__ = "0.1.0"


def check(
    *sources: str | Path,
    checkout: str | Path | None = None,
    target: Sequence[str] = (),
    select: Sequence[str] = ("ALL",),
    ignore: Sequence[str] = (),
    engine: Literal["model", "clang", "both"] = "model",
    generate: bool = False,
) -> Report:
    """Check generated instantiations, as ``cutlint check`` does, without a configuration file.

    Each of `sources` is a FlashInfer or TensorRT-LLM checkout, a flashinfer package's folder, a folder or a file of
    generated .cu, or a release to download (``"flashinfer-python==0.7.4"``); without any, the checkout around the current
    folder or the installed flashinfer. `checkout` has launchers and CUTLASS where the source has none. `target` names GPUs
    (``"rtx-5090"``, ``"12.0"``; all by default), `select` and `ignore` rules by id or its beginning, `engine` who computes
    footprints. `generate` runs the checkout's own ``generate_kernels.py``; nothing of a checkout runs without it, but a
    release named by requirement implies it.

    The report lists every instantiation: sizes are in bytes of shared memory per thread block (``sizeof`` the kernel's
    SharedStorage, what a launch asks for), tiles in elements as (M, N, K), positions zero-based. A figure that is not known
    is None, with the reason in ``unknown``; what the compiler refuses has ``footprint.refused``. ``report.errors`` says
    which sources could not be used.

    Raises:
        CutlintError: when no source could be analysed, or a name of a target or rule is not known; what to do is in it.
    """
    from cutlint.run import check as run
    from cutlint.settings import Found, Settings
    from cutlint.sources import Request

    cwd = Path.cwd()
    request = Request(
        sources=tuple(str(each) for each in sources),
        checkout=None if checkout is None else str(checkout),
        generate=generate,
        engine=engine,
        regions=True,
        cwd=cwd,
    )
    settings = Settings(select=tuple(select), ignore=tuple(ignore), target=tuple(target))
    return run(request, Found(settings, cwd), everything=True).report
