"""Sm90: grouped GEMM of narrow weights and wider activations (W4A16, W4A8), the mixed-input launcher's.

Mirrors, in cutlass_extensions/gemm/, collective/builders/sm90_gmma_builder_mixed_input.inl (which stages fit),
collective/sm90_mma_array_tma_gmma_rs_warpspecialized_mixed_input_.hpp with its ..._prescale.hpp twin (the mainloop's
storage), and kernel/sm90_gemm_array_tma_single_warpgroup_persistent.hpp.
"""

from __future__ import annotations

from msgspec.structs import replace

from cutlint.config import SINGLE_WARPGROUP, KernelConfig
from cutlint.cutlass import Cutlass
from cutlint.footprint import kernel_sm90, mixed_sm90, sm90, sm90_packed
from cutlint.footprint.layout import EMPTY, Layout
from cutlint.footprint.parts import TENSOR_MAP, pipeline
from cutlint.footprint.records import Budget, Footprint, Refused, Unmodelled, need_two_stages

# Weights to a scale (DefaultWeightScaleGroupSize in cutlass_extensions/detail/collective/mixed_input_utils.hpp)
GROUP = {"float_e2m1_t": 32, "int4b_t": 128}
FOLD_M, FOLD_K = 64, 128  # rows and columns of weights whose scales are stored together

_SCHEDULES = ("KernelPtrArrayTmaWarpSpecializedCooperative", "KernelPtrArrayTmaWarpSpecializedPingpong")
_KERNELS = ("GemmUniversalPrecomputedScheduler", SINGLE_WARPGROUP)


def footprint(config: KernelConfig, cutlass: Cutlass) -> tuple[Footprint, Layout]:
    """The footprint, without regions, and the laid-out SharedStorage of a grouped mixed-input kernel.

    Raises:
        Refused: where CUTLASS's types cannot be formed.
        Unmodelled: for other kernels and schedules.
    """
    if config.kernel == "GemmUniversal" and config.schedule in _SCHEDULES:
        return sm90_packed.footprint(config, cutlass)
    if config.schedule not in _SCHEDULES or config.kernel not in _KERNELS:
        raise Unmodelled(f"no model for the mixed-input kernel {config.kernel} with {config.schedule}")
    if config.epilogue.prebuilt_d:
        raise Unmodelled("no model for a mixed-input epilogue with tensor maps of D that are built beforehand")
    parts = mixed_sm90.operands(config)
    scales = _scales(config, parts)
    epi = sm90.epilogue(config.epilogue)
    divided = _budget(config, cutlass, parts, scales)
    stages = divided.stages
    need_two_stages(divided)
    alignments = (parts.a.atom().alignment, parts.b.atom().alignment)
    # scales of activations and zero points of the kernel that scales first: arrays of nothing, which take a byte each
    others = [EMPTY, EMPTY] if config.scale_mode == "kPreMmaE8M0" else []
    tensors = mixed_sm90.tensors(parts, stages, scales, others, alignments)
    barriers = pipeline("mainloop barriers", stages)
    shared = kernel_sm90.precomputed_storage(tensors, barriers, epi, config.schedule.endswith("Pingpong"))
    sizes = mixed_sm90.figures(shared, tensors, barriers, epi, parts, config.schedule, divided)
    if config.kernel == SINGLE_WARPGROUP:
        sizes = replace(
            sizes,
            epilogue=epi.tensors.size,
            threads=kernel_sm90.WARP_GROUP,
            epilogue_tile=None,
            stages_c=None,
            stages_d=None,
            accumulator_registers=parts.a.rows * parts.b.rows // kernel_sm90.WARP_GROUP,
        )
    return sizes, shared


def _scales(config: KernelConfig, parts: mixed_sm90.Operands) -> int:
    """Bytes of a stage's scales.

    Raises:
        Refused: where they cannot be stored folded.
    """
    m, _, k = config.mma_tile
    group = GROUP.get(config.a.element)
    if group is None:
        raise Refused(f"{config.a.element}: Folded weight scale is only defined for MXFP4 and INT4 weights.")
    if k % group:
        raise Refused(f"K = {k}: Folded weight-scale storage requires TileK to cover complete scale groups.")
    if parts.zero_bits:
        raise Refused("Folded weight scale storage does not support zero-point.")
    if m % FOLD_M:
        raise Refused(f"M = {m}: Folded weight scale requires TileShapeM to be a multiple of 64.")
    if k % FOLD_K:
        raise Refused(f"K = {k}: Folded weight scale requires TileShapeK to be a multiple of 128.")
    return parts.scale_bits * m * k // group // 8


def _budget(config: KernelConfig, cutlass: Cutlass, parts: mixed_sm90.Operands, scales: int) -> Budget:
    """``compute_stage_count_or_override_folded_weight_scale``, which never gives less than two stages."""
    stage = parts.a.stage + parts.b.stage + scales
    found = sm90.budget(config, cutlass.sm90_capacity, 2 * TENSOR_MAP, stage, parts.alignment)
    return found if config.stage_count.stages is not None else replace(found, stages=max(2, found.stages))
