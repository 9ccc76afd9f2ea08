"""Sm80: the fused MoE kernel, multistage with cp.async. It also runs on 8.6, 8.9 and, as a fallback, 12.x.

Mirrors cutlass_extensions/gemm/kernel/fused_moe_kernel_traits.cuh and ``kSmemSize`` of fused_moe_kernel.cuh. All of its
shared memory is dynamic.
"""

from __future__ import annotations

from cutlint.config import KernelConfig
from cutlint.cutlass import Cutlass
from cutlint.evaluate import Type
from cutlint.footprint.layout import Layout, leaf, struct
from cutlint.footprint.records import Footprint, Refused, Unmodelled

THREADS = 128  # kThreadCount
_NARROW = 16  # rows of the tile for few tokens, for which the kernel is built a second time

# Tags whose activation has a gate (EpilogueRouting with is_gate, isGateActivation)
_GATED = frozenset({"EpilogueOpDefaultSilu", "EpilogueOpDefaultFtGelu"})


def footprint(config: KernelConfig, cutlass: Cutlass) -> tuple[Footprint, Layout]:
    """The footprint, without regions, and the laid-out SharedStorage of a fused Sm80 kernel.

    Raises:
        Refused: where a static_assert of the kernel's traits fails.
        Unmodelled: where it is not known whether the activation has a gate.
    """
    m, n, k = config.mma_tile
    stages = config.stage_count.stages
    routed = config.epilogue.fusion
    if stages is None or routed is None or routed.name != "EpilogueRouting" or len(routed.arguments) != 2:
        raise Unmodelled("the activation of the fused Sm80 kernel is not known")
    gated = isinstance(routed.arguments[0], Type) and routed.arguments[0].name in _GATED and bool(routed.arguments[1])
    columns = n // 2 if gated else n
    shared = _storage(config, m, columns, k, stages, gated)
    if k >= 64:  # use_m16
        narrow = _storage(config, _NARROW, columns, k, stages, gated)
        shared = narrow if narrow.size > shared.size else shared
    sizes = Footprint(
        engine="model",
        total=shared.size,
        stages=stages,
        threads=THREADS,
        align=shared.align,
        accumulator_registers=m * columns * (2 if gated else 1) // THREADS,
    )
    return sizes, shared


def _storage(config: KernelConfig, m: int, n: int, k: int, stages: int, gated: bool) -> Layout:
    """``Fused_Moe_Kernel_traits_sm80<...>::SharedStorage``, after its static_asserts."""
    if k < 64 and m == _NARROW:
        k = 64
    for name, extent, multiple in (("TileM_", m, 16), ("TileN_", n, 32), ("TileK_", k, 32)):
        if extent % multiple:
            raise Refused(f"{name} % {multiple} == 0 fails for {extent}")
    if stages < 2:
        raise Refused(f"{stages} stages: Stages >= 2")
    block_k = 64 if m == _NARROW else 32
    if k % block_k:
        raise Refused(f"K = {k} is no multiple of the {block_k} columns of a swizzle atom")
    bits = config.a.bits  # smem_fc1_weight is of the input's element too
    sizes = [("mainloop.A", "A", m * k * stages), ("mainloop.B", "B", n * k * stages), ("output", "D", m * n)]
    if gated:
        sizes.insert(1, ("mainloop.B of the gate", "B", n * k * stages))
    return struct([leaf(name, kind, elements * bits // 8, 16) for name, kind, elements in sizes], align=128)
