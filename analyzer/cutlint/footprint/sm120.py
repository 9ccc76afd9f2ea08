"""Sm120: block-scaled grouped GEMM on the Blackwell workstation architectures (12.0, 12.1).

Mirrors gemm/collective/builders/sm120_blockscaled_mma_builder.inl (which stages fit),
gemm/collective/sm120_blockscaled_mma_array_tma.hpp (the mainloop's storage) and
epilogue/collective/builders/sm120_builder.inl (the epilogue's tile and stages).
"""

from __future__ import annotations

from functools import lru_cache

from cutlint.config import EpilogueConfig, KernelConfig
from cutlint.cutlass import Cutlass
from cutlint.footprint import epilogue_sm90, kernel_sm90
from cutlint.footprint.epilogue_sm90 import Epilogue, Policy
from cutlint.footprint.layout import Layout, aligned, round_up, struct
from cutlint.footprint.parts import (
    SCALE_COLUMNS,
    SCALE_ROWS,
    ScaleFactors,
    operand,
    pipeline,
    scale_factors,
    tensor_maps,
)
from cutlint.footprint.records import Budget, Footprint, Refused, Unmodelled, need_two_stages
from cutlint.footprint.swizzle import select

TILE = (64, 32)  # sm120_compute_tile_shape_or_override, EpilogueTileAuto
MMA_THREADS = 256  # AtomLayout 4×2×1 of warps: cooperative, two warp groups

_EPILOGUE_SCHEDULES = frozenset(
    {
        "EpilogueScheduleAuto",
        "TmaWarpSpecialized",
        "TmaWarpSpecializedCooperative",
        "PtrArrayTmaWarpSpecializedPingpong",
        "PtrArrayTmaWarpSpecializedCooperative",
    }
)
_COOPERATIVE = frozenset({"KernelScheduleAuto", "KernelPtrArrayTmaWarpSpecializedCooperative"})


def footprint(config: KernelConfig, cutlass: Cutlass) -> tuple[Footprint, Layout]:
    """The footprint, without regions, and the laid-out SharedStorage of an Sm120 kernel.

    Raises:
        Refused: where CUTLASS's types cannot be formed.
        Unmodelled: for kernels other than grouped, block-scaled and cooperative ones.
    """
    if config.op_class != "OpClassBlockScaledTensorOp" or not config.grouped:
        raise Unmodelled(f"no model for an Sm120 kernel of {config.op_class} that is not grouped and block-scaled")
    if config.schedule not in _COOPERATIVE:
        raise Unmodelled(f"no model for the Sm120 kernel schedule {config.schedule}")
    vector = _check_mainloop(config)
    epi = epilogue(config.epilogue)
    m, n, k = config.mma_tile
    bits_a, bits_b = _allocation_bits(config)
    mma_scales = (64 if bits_a == 4 else 32) // vector  # SM120_16x8x64_TN_VS, SM120_16x8x32_TN_VS
    scales_a = scale_factors(m, k, vector, mma_scales)
    scales_b = scale_factors(max(n, SCALE_ROWS) if cutlass.sm120_pads_scales_of_b else n, k, vector, mma_scales)
    budget = _budget(config, cutlass, m * k * bits_a // 8 + n * k * bits_b // 8 + scales_a.stage + scales_b.stage)
    stages = budget.stages
    need_two_stages(budget)
    stored_b = (
        _stored_scales_of_b(scales_b, stages, n, k) if cutlass.sm120_pads_scales_of_b else scales_b.stored(stages)
    )
    tensors = struct(
        [
            operand("mainloop.A", "A", stages * m * k, bits_a, 1024),
            operand("mainloop.B", "B", stages * n * k, bits_b, 1024),
            operand("mainloop.SFA", "SFA", scales_a.stored(stages), 8, 16),
            operand("mainloop.SFB", "SFB", stored_b, 8, 16),
        ],
        align=128,
    )
    barriers = pipeline("mainloop barriers", stages)
    maps = struct([tensor_maps("mainloop.tensor maps A, B, SFA, SFB", 4)], align=128)
    shared = kernel_sm90.shared_storage(tensors, barriers, maps, epi)
    sizes = Footprint(
        engine="model",
        total=shared.size,
        mainloop=struct([tensors, maps, aligned(barriers, 16)]).size,
        epilogue=epi.shared.size,
        mainloop_tensors=tensors.size,
        epilogue_tensors=epi.tensors.size,
        stages=stages,
        threads=MMA_THREADS + kernel_sm90.WARP_GROUP,
        epilogue_tile=epi.tile,
        stages_c=epi.policy.stages_c,
        stages_d=epi.policy.stages_d,
        align=shared.align,
        fails_in_nvcc=_fails_in_nvcc(m, n, cutlass.sm120_pads_scales_of_b),
        accumulator_registers=m * n // MMA_THREADS,
        budget=budget,
    )
    return sizes, shared


@lru_cache(maxsize=4096)  # asked for the carveout, then for the kernel
def epilogue(config: EpilogueConfig) -> Epilogue:
    """``CollectiveBuilder<arch::Sm120, ...>`` of the epilogue: the subtile, and how often it is staged."""
    if config.schedule not in _EPILOGUE_SCHEDULES:
        raise Refused(
            f"no Sm120 epilogue for {config.schedule}: Could not build a collective epilogue for given parameters"
        )
    m, n, _ = config.mma_tile
    tile = config.tile or TILE
    for extent, part in ((m, tile[0]), (n, tile[1])):
        if extent % part and part % extent:
            raise Refused(
                f"the epilogue tile {tile[0]}×{tile[1]} does not divide the CTA tile {m}×{n}: Static shape_div failure"
            )
    count = max(1, m // tile[0]) * max(1, n // tile[1])
    reuse = config.c.bits == config.d.bits and config.d.bits > 8
    stages_d = min(count, 2)
    stages_c = max(min(count, 2), stages_d + 1) if reuse else stages_d
    warp_groups = 2  # GetNumEpilogueWarpGroups: 2 for every schedule above
    return epilogue_sm90.epilogue(config, config.mma_tile, tile, Policy(stages_c, stages_d, reuse, warp_groups))


def _fails_in_nvcc(m: int, n: int, padded: bool) -> str | None:
    """``to_underlying_arguments`` makes TMA descriptors of the scale factors, which must be whole blocks of rows: seen with
    nvcc for M = 64 and 192 and N = 96. Where B's are `padded`, tiles of fewer columns share a block if they divide it."""
    if m % SCALE_ROWS == 0 and (n % SCALE_ROWS == 0 or (padded and SCALE_ROWS % n == 0)):
        return None
    extent, name = (m, "M") if m % SCALE_ROWS else (n, "N")
    return (
        f"{name} = {extent} cuts a block of {SCALE_ROWS} scale factors: "
        "TMA requires CTA_Tile and SLayout top-level size equivalence"
    )


def _stored_scales_of_b(scales: ScaleFactors, stages: int, n: int, k: int) -> int:
    """B's scale factors, divided by the tile where that is narrower than a block (``SmemLayoutSFB``). The compiler
    forms the divided layout for wider tiles as well, and so refuses those it cannot divide."""
    try:
        divided = scales.stored(stages, (n, k))
    except Refused as error:
        raise Refused(
            f"B's scale factors, blocks of {SCALE_ROWS} columns by {SCALE_COLUMNS * scales.vector} of K, "
            f"cannot be divided into a tile of {n}×{k}: {error}"
        ) from None
    return divided if n < SCALE_ROWS else scales.stored(stages)


def _check_mainloop(config: KernelConfig) -> int:
    """The builder's and the mainloop's static_asserts, in their order; returns the scale factors' vector size."""
    m, n, k = config.mma_tile
    a, b = config.a, config.b
    if a.scale is None or b.scale is None or a.scale_vector is None or b.scale_vector is None:
        raise Refused("the operands carry no scale factors that the Sm120 builder knows")
    for each in (a, b):
        if each.bits * each.alignment % 128:
            raise Refused("an operand is not aligned to 16 bytes: Could not build a collective for given parameters")
    if a.scale != b.scale:
        raise Refused("Scale factor types for A and B must be the same")
    if a.scale_vector != b.scale_vector:
        raise Refused("Scale factor vector size for A and B must be the same")
    if (a.bits, b.bits) != (4, 4) and a.scale != "float_ue8m0_t":
        raise Refused(f"{a.scale} cannot scale {a.element} and {b.element}: MX_F4F6F8 only supports ue8m0 SF type")
    if a.layout.rstrip("*") != "RowMajor" or b.layout.rstrip("*") != "ColumnMajor":
        raise Refused("Only TN layout is supported")
    if config.dynamic_cluster:
        raise Refused("Cluster has to be static")
    if config.cluster != (1, 1, 1):
        raise Refused("no programmatic multicast on this arch: the cluster must be 1×1×1")
    if n < 32:
        raise Refused(f"Invalid tile shape N: {n} is below 32")
    bits_a, bits_b = _allocation_bits(config)
    for bits in (bits_a, bits_b):
        if select(k, bits) is None:
            raise Refused(
                f"K = {k} is no multiple of the smallest shared-memory atom: No shared memory copy atom can be selected"
            )
    if m % 8 or n % 8:
        raise Refused("SmemLayoutAtom must evenly divide tile shape")
    return a.scale_vector


def _allocation_bits(config: KernelConfig) -> tuple[int, int]:
    """Bits an element takes in shared memory: a byte for every type under the MXF8F6F4 instruction, which runs
    unless both operands are 4 bits wide (``select_instr`` in builders/sm1xx_common.inl)."""
    return (4, 4) if config.a.bits == config.b.bits == 4 else (8, 8)


def _budget(config: KernelConfig, cutlass: Cutlass, tensors: int) -> Budget:
    """``sm100_compute_stage_count_or_override_blockscaled``: a stage is its tensors and its barriers, these rounded up."""
    stage = tensors + round_up(pipeline("", 1).size, 128)
    capacity, reserved = cutlass.sm120_capacity, cutlass.sm120_reserved
    count = config.stage_count
    if count.stages is not None:
        return Budget(capacity, reserved, 0, stage, count.stages)
    carveout = count.carveout or 0
    left = capacity - reserved - carveout
    return Budget(capacity, reserved, carveout, stage, int(left / stage))  # C++ division truncates toward zero
