"""What the tensor cores of Sm100 and Sm103 take: swizzled shared-memory tiles, and which MMA shapes there are.

Mirrors ``sm100_smem_selector`` and ``sm100_make_*_tiled_mma`` (gemm/collective/builders/sm100_common.inl), the atoms of
cute/arch/mma_sm100_umma.hpp and ``tile_to_mma_shape`` (cute/atom/mma_traits_sm100.hpp).
"""

from __future__ import annotations

from functools import cache

import msgspec

from cutlint.footprint import cute
from cutlint.footprint.cute import Mode
from cutlint.footprint.records import Refused
from cutlint.footprint.swizzle import Atom, select

# Swizzle<2, 5, 2>: what 4-byte elements need where M or N is contiguous
_WIDE = Atom("SW128_32B", 1024, 512)

# Swizzle<B, M, S> of each atom
_SWIZZLE = {"SW128": (3, 4, 3), "SW64": (2, 4, 3), "SW32": (1, 4, 3), "INTER": (0, 4, 3), "SW128_32B": (2, 5, 2)}


class Operand(msgspec.Struct, frozen=True):
    """A stage of A or B in one CTA: `rows` by `k` elements of `bits` bits, contiguous along the rows if `mn_major`.

    `instruction_k` is the number of elements of K that one MMA instruction takes.
    """

    name: str
    rows: int
    k: int
    bits: int
    mn_major: bool
    instruction_k: int

    @property
    def stage(self) -> int:
        """Bytes of one stage."""
        return self.rows * self.k * self.bits // 8

    def atom(self) -> Atom:
        """The swizzle atom.

        Raises:
            Refused: where no atom divides the tile.
        """
        return atom(self.mn_major, self.bits, self.rows, self.k, f"{self.name}'s")

    def layout(self, run: int) -> list[Mode]:
        """A stage's layout, ((MMA_MN, MMA_K), MMA_MNs, MMA_Ks): atoms of `run` contiguous elements, side by side first
        along the mode that is not contiguous."""
        if self.mn_major:
            rows = [(run, 1), _mode(self.rows // run, run * self.k)]
            return [*rows, (self.instruction_k, run), _mode(self.k // self.instruction_k, run * self.instruction_k)]
        inner, outer = min(run, self.instruction_k), max(run, self.instruction_k)
        instruction = [(inner, 1), _mode(self.instruction_k // inner, self.rows * run)]
        return [(self.rows, run), *instruction, _mode(run // inner, inner), _mode(self.k // outer, self.rows * outer)]


def atom(mn_major: bool, bits: int, mn: int, k: int, whose: str) -> Atom:
    """The swizzle atom of a tile of `mn` by `k` elements of `bits` bits each, contiguous along `mn` or along `k`.

    Raises:
        Refused: where CUTLASS has none. `whose` says whose tile it is.
    """
    for extent, name in ((mn, "BLK_MN0"), (k, "BLK_K0")):
        if extent % 8:
            raise Refused(f"{whose} tile is {mn}×{k}: {name} must be a multiple of 8.")
    if mn_major and bits == 32:
        if mn % (_WIDE.bits // bits):
            words = "for mn-major tf32 operands, SW128_32B is the only available smem layout"
            raise Refused(f"{whose} tile is {mn}×{k}: {words}")
        return _WIDE
    found = select(mn if mn_major else k, bits)
    if found is None:
        words = (
            "BLK_MN0 must be a multiple of size<0>(UMMA::Layout_MN_INTER_Atom<ElementType>{})"
            if mn_major
            else "BLK_K0 must be a multiple of size<1>(UMMA::Layout_K_INTER_Atom<ElementType>{})"
        )
        raise Refused(f"no swizzle atom divides {whose} tile of {mn}×{k}: {words}")
    return found


@cache
def check_slice(operand: Operand, stages: int) -> None:
    """``SmemLayoutA{}(_,_,_,0)``, a type that the mainloop's Params need.

    CuTe takes the bits that a swizzle moves apart from those it keeps, in the layout of a stage and in that of the
    stages (``slice_and_offset`` in cute/swizzle_layout.hpp). It does so in elements, whatever their width.

    Raises:
        Refused: where the extents do not divide.
    """
    chosen = operand.atom()
    stage = operand.layout(chosen.bits // operand.bits)
    try:
        cute.check_slice(_SWIZZLE[chosen.name], stage, _mode(stages, operand.rows * operand.k))
    except Refused as error:
        what = f"{operand.name}'s stages of {operand.rows}×{operand.k} elements do not go with swizzle {chosen.name}"
        raise Refused(f"{what}: {error}") from None


def check_shape(m: int, n: int, two_sm: bool) -> None:
    """The shapes of a dense MMA: ``sm100_make_1sm_trivial_tiled_mma``, ``sm100_make_2sm_trivial_tiled_mma``."""
    if m not in ((128, 256) if two_sm else (64, 128)):
        raise Refused(f"{_who(two_sm)} cannot compute M = {m}: Invalid TileShape_M.")
    if n % 8 or n > 256:
        raise Refused(f"N = {n} is not a multiple of 8 up to 256: Invalid TileShape_N.")


def check_block_scaled_shape(m: int, n: int, two_sm: bool) -> None:
    """The shapes of a block-scaled MMA: ``sm100_make_blockscaled_1sm_trivial_tiled_mma``, and its 2SM sibling."""
    if m != (256 if two_sm else 128):
        raise Refused(f"{_who(two_sm)} cannot compute M = {m} block-scaled: Invalid TileShape_M.")
    if n not in (64, 128, 192, 256):
        raise Refused(f"N = {n} is not one of 64, 128, 192, 256: Invalid TileShape_N.")


def _who(two_sm: bool) -> str:
    return "a pair of SMs" if two_sm else "one SM"


def _mode(extent: int, stride: int) -> Mode:
    """A mode as CuTe makes it: one of extent 1 has no stride."""
    return (extent, 0 if extent == 1 else stride)
