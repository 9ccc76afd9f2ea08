"""What the mixed-input kernels of Sm90 have in common: narrow weights as A, widened in registers, with scales.

Follows the operands' part of cutlass_extensions/gemm/collective/builders/sm90_gmma_builder_mixed_input.inl and
..._interleaved.inl, which agree in it.
"""

from __future__ import annotations

import msgspec

from cutlint.config import KernelConfig, Operand, element_bits
from cutlint.footprint import gmma, sm90
from cutlint.footprint.records import Budget, Refused, Unmodelled


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


def budget(config: KernelConfig, capacity: int, reserved: int, stage: int, alignment: int) -> Budget:
    """Capacity and carveout in multiples of `alignment`, divided by a stage of `stage` bytes."""
    count = config.stage_count
    whole = (capacity - reserved) // alignment * alignment + reserved
    if count.stages is not None:
        return Budget(whole, reserved, 0, stage, count.stages)
    carveout = -(-(count.carveout or 0) // alignment) * alignment
    return Budget(whole, reserved, carveout, stage, int((whole - reserved - carveout) / stage))
