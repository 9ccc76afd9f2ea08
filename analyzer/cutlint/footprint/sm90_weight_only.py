"""Sm90: dense GEMM of interleaved narrow weights and wider activations, the fpA_intB launcher's.

Mirrors cutlass_extensions/gemm/collective/builders/sm90_gmma_builder_interleaved.inl,
``compute_stage_count_or_override_single_affine_transformed_input`` of CUTLASS's sm90_gmma_builder.inl (which stages fit) and
cutlass_extensions/gemm/collective/sm90_mma_interleaved_tma_gmma_rs_warpspecialized_mixed_input.hpp (the mainloop's storage).
"""

from __future__ import annotations

from cutlint.config import KernelConfig
from cutlint.cutlass import Cutlass
from cutlint.footprint import kernel_sm90, mixed_sm90, sm90
from cutlint.footprint.layout import EMPTY, Layout, leaf, round_up, struct
from cutlint.footprint.parts import operand, pipeline
from cutlint.footprint.records import Footprint, Refused, Unmodelled, need_two_stages

STAGE_ALIGNMENT = 128
_ALIGNED_STRUCT = (
    256  # cute::aligned_struct aligns up to here; beyond it is an empty class (cute/container/alignment.hpp)
)

_SCHEDULES = ("KernelTmaWarpSpecializedCooperative", "KernelTmaWarpSpecializedPingpong")


def footprint(config: KernelConfig, cutlass: Cutlass) -> tuple[Footprint, Layout]:
    """The footprint, without regions, and the laid-out SharedStorage of a weight-only dense kernel.

    Raises:
        Refused: where CUTLASS's types cannot be formed.
        Unmodelled: for other kernels and schedules.
    """
    if config.schedule not in _SCHEDULES or config.kernel != "GemmUniversal":
        raise Unmodelled(f"no model for the weight-only kernel {config.kernel} with {config.schedule}")
    parts = mixed_sm90.operands(config)
    m = config.mma_tile[0]
    scales, zeros = parts.scale_bits * m // 8, parts.zero_bits * m // 8
    for name, size in (("Scale", scales), ("Zero", zeros)):
        if size % 128:
            raise Refused(f"{size} B of a stage: {name} bytes must be a multiple of 128")
    epi = sm90.epilogue(config.epilogue)
    stage = round_up(parts.a.stage + parts.b.stage + scales + zeros, STAGE_ALIGNMENT) + pipeline("", 1).size
    divided = mixed_sm90.budget(config, cutlass.sm90_capacity, 0, stage, STAGE_ALIGNMENT)
    stages = divided.stages
    need_two_stages(divided)
    tensors = struct(
        [
            operand("mainloop.A", "A", stages * parts.a.rows * parts.a.k, parts.a.bits, 16),
            operand("mainloop.B", "B", stages * parts.b.rows * parts.b.k, parts.b.bits, 16),
            leaf("mainloop.scales", "scales", stages * scales, 16),
            leaf("mainloop.zeros", "zeros", stages * zeros, 16) if zeros else EMPTY,
        ],
        align=parts.alignment if parts.alignment <= _ALIGNED_STRUCT else 1,
    )
    barriers = pipeline("mainloop barriers", stages)
    pingpong = config.schedule.endswith("Pingpong")
    shared = kernel_sm90.dense_storage(tensors, barriers, epi, pingpong)
    sizes = Footprint(
        engine="model",
        total=shared.size,
        mainloop=struct([tensors, barriers]).size,
        epilogue=epi.shared.size,
        mainloop_tensors=tensors.size,
        epilogue_tensors=epi.tensors.size,
        stages=stages,
        threads=kernel_sm90.THREADS,
        epilogue_tile=epi.tile,
        stages_c=epi.policy.stages_c,
        stages_d=epi.policy.stages_d,
        align=shared.align,
        accumulator_registers=parts.a.rows * parts.b.rows // ((1 if pingpong else 2) * kernel_sm90.WARP_GROUP),
        budget=divided,
    )
    return sizes, shared
