"""Swizzled shared-memory tiles: which atom CUTLASS picks, and how it must be aligned.

Follows ``ss_smem_selector`` and ``rs_smem_selector`` (gemm/collective/builders/sm90_common.inl), the atoms of
cute/arch/mma_sm90_gmma.hpp and ``alignment_for_swizzle`` (cutlass/detail/layout.hpp).
"""

from __future__ import annotations

import msgspec


class Atom(msgspec.Struct, frozen=True):
    """A swizzle atom: its name in CuTe, its extent along the contiguous mode in bits, its alignment in bytes, and the B of
    its ``Swizzle<B, 4, 3>``."""

    name: str
    bits: int
    alignment: int
    swizzle: int = 0


# Swizzle<B, 4, 3> spans 2^(B + 4 + 3) bytes; an atom is 8 rows of 16, 32, 64 or 128 bytes
ATOMS = (
    Atom("SW128", 1024, 1024, 3),
    Atom("SW64", 512, 512, 2),
    Atom("SW32", 256, 256, 1),
    Atom("INTER", 128, 128, 0),
)


def select(extent: int, element_bits: int) -> Atom | None:
    """The widest atom whose contiguous extent divides `extent` elements; None where CUTLASS has none."""
    for atom in ATOMS:
        if extent % (atom.bits // element_bits) == 0:
            return atom
    return None
