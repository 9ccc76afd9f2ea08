"""Sm103: ultra block-scaled FP4 grouped GEMM (10.3).

Mirrors gemm/collective/builders/sm103_blockscaled_umma_builder.inl (which stages fit),
gemm/collective/sm103_blockscaled_mma_array_warpspecialized.hpp (the mainloop's storage) and
cutlass/detail/sm103_blockscaled_layout.hpp. A and B are staged 128 bytes of K at a time, so a K tile of 768 takes three
stages; scale factors have a pipeline of their own, with four buffers to a K tile (two, if 32 elements share one).
"""

from __future__ import annotations

import re

from cutlint.config import EpilogueConfig, KernelConfig
from cutlint.cutlass import Cutlass
from cutlint.footprint import epilogue_sm100, kernel_sm100, tensor_memory
from cutlint.footprint.epilogue_sm100 import Epilogue
from cutlint.footprint.layout import Layout, round_up, struct
from cutlint.footprint.parts import SCALE_COLUMNS, SCALE_ROWS, ScaleFactors, operand, pipeline, tensor_maps
from cutlint.footprint.records import Budget, Footprint, Refused, Unmodelled
from cutlint.footprint.sm100 import ALIGNMENT, check_capacity, check_cluster, scale_storage

TILE_K = 768
STAGE_K = 128  # bytes of K in a stage of A and B

_SCHEDULE = re.compile(r"KernelPtrArrayTmaWarpSpecialized[12]SmBlockScaledMxNvf4UltraVs(16|32)Sm103\w*")


def footprint(config: KernelConfig, cutlass: Cutlass) -> tuple[Footprint, Layout]:
    """The footprint, without regions, and the laid-out SharedStorage of an Sm103 kernel.

    Raises:
        Refused: where CUTLASS's types cannot be formed.
        Unmodelled: for kernels other than grouped, ultra block-scaled ones.
    """
    schedule = _SCHEDULE.fullmatch(config.schedule)
    if schedule is None or not config.grouped:
        raise Unmodelled(f"no model for an Sm103 kernel of {config.op_class} scheduled by {config.schedule}")
    epi = epilogue_sm100.epilogue(config.epilogue, cutlass.sm100_epilogue_any_width)
    vector = int(schedule.group(1))
    _check_mainloop(config)
    m, n, k = config.cta_tile
    n_share = n // 2 if config.two_sm else n
    scales = (_scales(m, k, vector), _scales(n if n == SCALE_ROWS else 2 * SCALE_ROWS, k, vector))
    accumulators, scheduler = 1 if n == 256 else 2, cutlass.sm103_scheduler_stages
    reserved = cutlass.sm103_reserved(accumulators, scheduler)
    budget, stages_sf = _budget(config, (cutlass.sm100_capacity, reserved), (m + n_share) * STAGE_K, scales)
    stages = budget.stages
    tensors = struct(
        [
            operand("mainloop.A", "A", stages * m * STAGE_K, 8, ALIGNMENT),
            operand("mainloop.B", "B", stages * n_share * STAGE_K, 8, ALIGNMENT),
            *scale_storage(scales, stages_sf),
        ],
        align=128,
    )
    barriers = struct([pipeline("mainloop barriers", stages), pipeline("mainloop scale-factor barriers", stages_sf)])
    maps = struct([tensor_maps("mainloop.tensor maps A, B, SFA, SFB", 4)], align=128)
    shared = kernel_sm100.shared_storage_sm103(tensors, barriers, maps, epi, accumulators, scheduler)
    check_capacity(shared, budget, cutlass.sm103_asserts_capacity)
    columns = tensor_memory.block_scaled((m, n, _buffer_k(k, vector)), accumulators, epi.tile[1], vector)
    return kernel_sm100.report(shared, (tensors, maps), epi, budget, kernel_sm100.SM103_WARPS, columns, stages_sf)


def epilogue(config: EpilogueConfig) -> Epilogue:
    """``CollectiveBuilder<arch::Sm103, ...>`` of the epilogue, an alias of Sm100's."""
    return epilogue_sm100.epilogue(config)


def _check_mainloop(config: KernelConfig) -> None:
    """The builder's and the mainloop's static_asserts."""
    a, b, (m, n, k) = config.a, config.b, config.mma_tile
    if a.scale is None or b.scale is None:
        raise Refused("the operands carry no scale factors: Could not build a collective for given parameters.")
    for each in (a, b):
        if each.bits * each.alignment % 128:
            raise Refused("an operand is not aligned to 16 bytes: Could not build a collective for given parameters.")
    if k != TILE_K:
        raise Refused(f"K = {k} (the launcher triples it): TileShape_K should 768 for MMA kernels")
    if a.layout.rstrip("*") != "RowMajor" or b.layout.rstrip("*") != "ColumnMajor":
        raise Refused("Only K major inputs are supported")
    for each, name in ((a, "A"), (b, "B")):
        if each.element != "float_e2m1_t":
            raise Refused(f"{each.element} is not FP4: Incorrect type for {name} matrix")
    if a.scale not in ("float_ue8m0_t", "float_ue4m3_t"):
        raise Refused(f"{a.scale} cannot scale: Incorrect scale factor type")
    if a.scale != b.scale:
        raise Refused("SFA and SFB data types should be the same")
    if m not in (128, 256):
        raise Refused(f"M = {m} is neither 128 nor 256: Invalid TileShape_M.")
    if n % 64 or n > 256:
        raise Refused(f"N = {n} is not a multiple of 64 up to 256: Invalid TileShape_N.")
    if not config.two_sm and m != 128:
        raise Refused(f"one SM cannot compute M = {m}: MMA M-mode size should be 128 for 1 CTA cluster MMA.")
    check_cluster(config)
    if n not in (128, 192, 256):
        raise Refused(f"N = {n}: Cta N should be one of 128/192/256")
    if config.cta_tile[0] != SCALE_ROWS:  # TMA_SFA: a block of scale factors has 128 rows
        raise Refused(
            f"a CTA's {config.cta_tile[0]} rows are no block of scale factors: "
            "TMA requires CTA_Tile and SLayout top-level size equivalence."
        )


def _scales(rows: int, k: int, vector: int) -> ScaleFactors:
    """One buffer of an operand's scale factors: ``sm103_sfa_smem_atom_layout``, ``sm103_sfb_smem_atom_layout``; blocks
    of 128 rows by 4 scale factors, without holes."""
    size = round_up(rows, SCALE_ROWS) * round_up(_buffer_k(k, vector) // vector, SCALE_COLUMNS)
    return ScaleFactors(vector, [(size, 1)], [(vector, 0)])


def _buffer_k(k: int, vector: int) -> int:
    """Elements of K whose scale factors one buffer holds."""
    return k // (4 if vector == 16 else 2)


def _budget(
    config: KernelConfig, space: tuple[int, int], operands: int, scales: tuple[ScaleFactors, ...]
) -> tuple[Budget, int]:
    """``sm103_compute_stage_count_or_override_blockscaled``: stages of A and B with as many buffers of scale factors; what
    those leave goes to further buffers. `space` is the capacity and what the kernel takes of it."""
    if config.stage_count.stages is not None:
        raise Refused("StageCount<N> gives one number where Sm103's builder takes two: Index out of range")
    capacity, reserved = space
    carveout = config.stage_count.carveout or 0
    barriers = pipeline("", 1).size
    buffer = barriers + sum(each.stage for each in scales)
    stage = operands + barriers + buffer
    left = capacity - reserved - carveout
    stages = int(left / stage)  # C++ division truncates toward zero
    budget = Budget(capacity, reserved, carveout, stage, stages)
    return budget, stages + int((left - stages * stage) / buffer)
