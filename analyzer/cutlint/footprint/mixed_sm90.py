"""What the mixed-input kernels of Sm90 have in common: narrow weights as A, widened in registers, with scales.

Follows the operands' part of cutlass_extensions/gemm/collective/builders/sm90_gmma_builder_mixed_input.inl and
..._interleaved.inl, which agree in it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cutlint.config import KernelConfig, Operand, element_bits
from cutlint.footprint import gmma, kernel_sm90, sm90
from cutlint.footprint.epilogue_sm90 import Epilogue
from cutlint.footprint.layout import EMPTY, Layout, leaf, struct
from cutlint.footprint.parts import operand
from cutlint.footprint.records import Budget, Footprint, Refused, Unmodelled


class Operands(msgspec.Struct, frozen=True):
    """A stage's parts: the tiles of A and B, their alignment (the larger one of their swizzles), bits of a scale and of a
    zero point (0: none)."""

    a: gmma.Operand
    b: gmma.Operand
    alignment: int
    scale_bits: int
    zero_bits: int


def operands(config: KernelConfig) -> Operands:
    """A and B, after the builders' static_asserts.

    Raises:
        Refused: where CUTLASS's types cannot be formed.
        Unmodelled: where the scales belong to B, or an operand is not contiguous along K.
    """
    cluster = sm90.check_operands(config)
    if config.a.scale is None or config.b.scale is not None:
        raise Unmodelled("no model for a mixed-input kernel whose scaled operand is not A")
    if config.a.layout.rstrip("*") != "RowMajor" or config.b.layout.rstrip("*") != "ColumnMajor":
        raise Unmodelled("no model for a mixed-input kernel with an operand that is not contiguous along K")
    if config.a.bits >= config.b.bits:
        raise Refused(f"{config.a.element} is not narrower than {config.b.element}, so there is nothing to widen")
    m, n, k = config.mma_tile
    gmma.check_operator(config.b, config.b, config.accumulator, config.mma_tile)
    a = gmma.Operand(config.a.element, config.a.bits, m, k, False)
    b = gmma.Operand(config.b.element, config.b.bits, n, k, False)
    alignments = [each.atom().alignment for each in (a, b)]
    if min(alignments) < 128:
        raise Refused("Require at least 128B alignment")
    sm90.check_divides(config.mma_tile, cluster, "the cluster")
    return Operands(a, b, max(alignments), element_bits(config.a.scale), _bits(config.a))


def _bits(operand: Operand) -> int:
    return 0 if operand.zero is None else element_bits(operand.zero)


def unfolded_scales(config: KernelConfig, parts: Operands) -> tuple[int, int]:
    """Bytes of a stage's scales and of its zero points, where each row of the tile has one element of each.

    Raises:
        Refused: where TMA could not load them.
    """
    m = config.mma_tile[0]
    scales, zeros = parts.scale_bits * config.a.packed_scales * m // 8, parts.zero_bits * m // 8
    for name, size in (("Scale", scales), ("Zero", zeros)):
        if size % 128:
            raise Refused(f"{size} B of a stage: {name} bytes must be a multiple of 128")
    return scales, zeros


def tensors(
    parts: Operands, stages: int, scales: int, others: Sequence[Layout], alignments: tuple[int, int], align: int = 1
) -> Layout:
    """The mainloop's ``TensorStorage``: `scales` are bytes of a stage, `others` the members behind them, `alignments` those
    of A and B."""
    align_a, align_b = alignments
    return struct(
        [
            operand("mainloop.A", "A", stages * parts.a.rows * parts.a.k, parts.a.bits, align_a),
            operand("mainloop.B", "B", stages * parts.b.rows * parts.b.k, parts.b.bits, align_b),
            leaf("mainloop.scales", "scales", stages * scales, 16),
            *others,
        ],
        align,
    )


def zeros(size: int) -> Layout:
    """``smem_zero``, of `size` bytes. An array of nothing takes a byte."""
    return leaf("mainloop.zeros", "zeros", size, 16) if size else EMPTY


def figures(
    shared: Layout,
    mainloop: Layout,
    barriers: Layout,
    epilogue: Epilogue,
    parts: Operands,
    schedule: str,
    divided: Budget,
) -> Footprint:
    """The footprint of a kernel of two MMA warp groups, which share a tile unless the `schedule` is pingpong."""
    warp_groups = 1 if schedule.endswith("Pingpong") else 2
    return Footprint(
        engine="model",
        total=shared.size,
        mainloop=struct([mainloop, barriers]).size,
        epilogue=epilogue.shared.size,
        mainloop_tensors=mainloop.size,
        epilogue_tensors=epilogue.tensors.size,
        stages=divided.stages,
        threads=kernel_sm90.THREADS,
        epilogue_tile=epilogue.tile,
        stages_c=epilogue.policy.stages_c,
        stages_d=epilogue.policy.stages_d,
        align=shared.align,
        accumulator_registers=parts.a.rows * parts.b.rows // (warp_groups * kernel_sm90.WARP_GROUP),
        budget=divided,
    )
