"""Sm90: dense GEMM of interleaved narrow weights and wider activations, the fpA_intB launcher's.

Mirrors cutlass_extensions/gemm/collective/builders/sm90_gmma_builder_interleaved.inl,
``compute_stage_count_or_override_single_affine_transformed_input`` of CUTLASS's sm90_gmma_builder.inl (which stages fit) and
cutlass_extensions/gemm/collective/sm90_mma_interleaved_tma_gmma_rs_warpspecialized_mixed_input.hpp (the mainloop's storage).
"""

from __future__ import annotations

from cutlint.config import KernelConfig
from cutlint.cutlass import Cutlass
from cutlint.footprint import kernel_sm90, mixed_sm90, sm90
from cutlint.footprint.layout import Layout
from cutlint.footprint.parts import pipeline
from cutlint.footprint.records import Footprint, Unmodelled, need_two_stages

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
    scales, zeros = mixed_sm90.unfolded_scales(config, parts)
    epi = sm90.epilogue(config.epilogue)
    divided = sm90.budget(config, cutlass.sm90_capacity, 0, parts.a.stage + parts.b.stage + scales + zeros)
    need_two_stages(divided)
    align = parts.alignment if parts.alignment <= _ALIGNED_STRUCT else 1
    others = [mixed_sm90.zeros(divided.stages * zeros)]
    tensors = mixed_sm90.tensors(parts, divided.stages, scales, others, (16, 16), align)
    barriers = pipeline("mainloop barriers", divided.stages)
    shared = kernel_sm90.dense_storage(tensors, barriers, epi, config.schedule.endswith("Pingpong"))
    return mixed_sm90.figures(shared, tensors, barriers, epi, parts, config.schedule, divided), shared
