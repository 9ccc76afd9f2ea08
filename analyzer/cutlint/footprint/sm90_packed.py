"""Sm90: grouped mixed-input GEMM whose scales are packed arrays, one to a row and stage: flashinfer up to 0.6.

Mirrors the same files of cutlass_extensions/gemm/collective/ as `sm90_mixed`, as they were then, with CUTLASS's own grouped
kernel and ``compute_stage_count_or_override_single_affine_transformed_input`` of its sm90_gmma_builder.inl.
"""

from __future__ import annotations

from cutlint.config import KernelConfig
from cutlint.cutlass import Cutlass
from cutlint.footprint import kernel_sm90, mixed_sm90, sm90
from cutlint.footprint.layout import EMPTY, Layout, aligned, leaf, round_up, struct
from cutlint.footprint.parts import TENSOR_MAP, operand, pipeline, tensor_maps
from cutlint.footprint.records import Footprint, Refused, need_two_stages

_MAPS = 4  # A, B, scales, zero points


def footprint(config: KernelConfig, cutlass: Cutlass) -> tuple[Footprint, Layout]:
    """The footprint, without regions, and the laid-out SharedStorage of a grouped mixed-input kernel of that time.

    Raises:
        Refused: where CUTLASS's types cannot be formed.
        Unmodelled: as for `sm90_mixed`.
    """
    parts = mixed_sm90.operands(config)
    m = config.mma_tile[0]
    scales, zeros = parts.scale_bits * config.a.packed_scales * m // 8, parts.zero_bits * m // 8
    for name, size in (("Scale", scales), ("Zero", zeros)):
        if size % 128:
            raise Refused(f"{size} B of a stage: {name} bytes must be a multiple of 128")
    epi = sm90.epilogue(config.epilogue)
    stage = round_up(parts.a.stage + parts.b.stage + scales + zeros, parts.alignment) + pipeline("", 1).size
    divided = mixed_sm90.budget(config, cutlass.sm90_capacity, _MAPS * TENSOR_MAP, stage, parts.alignment)
    stages = divided.stages
    need_two_stages(divided)
    tensors = struct(
        [
            operand("mainloop.A", "A", stages * parts.a.rows * parts.a.k, parts.a.bits, parts.a.atom().alignment),
            operand("mainloop.B", "B", stages * parts.b.rows * parts.b.k, parts.b.bits, parts.b.atom().alignment),
            leaf("mainloop.scales", "scales", stages * scales, 16),
            leaf("mainloop.zeros", "zeros", stages * zeros, 16) if zeros else EMPTY,
        ]
    )
    barriers = pipeline("mainloop barriers", stages)
    maps = aligned(tensor_maps("mainloop.tensor maps A, B, scale, zero", _MAPS), 64)
    pingpong = config.schedule.endswith("Pingpong")
    storage = kernel_sm90.pingpong_storage if pingpong else kernel_sm90.shared_storage
    shared = storage(tensors, barriers, maps, epi)
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
