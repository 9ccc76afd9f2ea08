"""Sm90: grouped mixed-input GEMM whose scales are packed arrays, one to a row and stage: flashinfer up to 0.6.

Mirrors the same files of cutlass_extensions/gemm/collective/ as `sm90_mixed`, as they were then, with CUTLASS's own grouped
kernel and ``compute_stage_count_or_override_single_affine_transformed_input`` of its sm90_gmma_builder.inl.
"""

from __future__ import annotations

from cutlint.config import KernelConfig
from cutlint.cutlass import Cutlass
from cutlint.footprint import kernel_sm90, mixed_sm90, sm90
from cutlint.footprint.layout import Layout
from cutlint.footprint.parts import TENSOR_MAP, pipeline, tensor_maps
from cutlint.footprint.records import Footprint, need_two_stages

_MAPS = 4  # A, B, scales, zero points


def footprint(config: KernelConfig, cutlass: Cutlass) -> tuple[Footprint, Layout]:
    """The footprint, without regions, and the laid-out SharedStorage of a grouped mixed-input kernel of that time.

    Raises:
        Refused: where CUTLASS's types cannot be formed.
        Unmodelled: as for `sm90_mixed`.
    """
    parts = mixed_sm90.operands(config)
    scales, zeros = mixed_sm90.unfolded_scales(config, parts)
    epi = sm90.epilogue(config.epilogue)
    stage = parts.a.stage + parts.b.stage + scales + zeros
    divided = sm90.budget(config, cutlass.sm90_capacity, _MAPS * TENSOR_MAP, stage, parts.alignment)
    need_two_stages(divided)
    alignments = (parts.a.atom().alignment, parts.b.atom().alignment)
    others = [mixed_sm90.zeros(divided.stages * zeros)]
    tensors = mixed_sm90.tensors(parts, divided.stages, scales, others, alignments)
    barriers = pipeline("mainloop barriers", divided.stages)
    maps = tensor_maps("mainloop.tensor maps A, B, scale, zero", _MAPS)
    pingpong = config.schedule.endswith("Pingpong")
    storage = kernel_sm90.pingpong_storage if pingpong else kernel_sm90.shared_storage
    shared = storage(tensors, barriers, maps, epi)
    return mixed_sm90.figures(shared, tensors, barriers, epi, parts, config.schedule, divided), shared
