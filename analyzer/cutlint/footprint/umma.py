"""What the tensor cores of Sm100 and Sm103 take: swizzled shared-memory tiles, and which MMA shapes there are.

Mirrors ``sm100_smem_selector`` and ``sm100_make_*_tiled_mma`` (gemm/collective/builders/sm100_common.inl) and the atoms of
cute/arch/mma_sm100_umma.hpp.
"""

from __future__ import annotations

import msgspec

from cutlint.footprint.cute import Mode, compose
from cutlint.footprint.records import Refused
from cutlint.footprint.swizzle import Atom, select

_WIDE = Atom("SW128_32B", 1024, 512)  # Swizzle<2, 5, 2>: what 4-byte elements need where M or N is contiguous


def atom(mn_major: bool, bits: int, mn: int, k: int, whose: str) -> Atom:
    """The swizzle atom of a tile of `mn` by `k` elements of `bits` bits each, contiguous along `mn` or along `k`.

    Raises:
        Refused: where CUTLASS has none. `whose` says whose tile it is.
    """
    for extent, name in ((mn, "BLK_MN0"), (k, "BLK_K0")):
        if extent % 8:
            raise Refused(f"the {whose} tile is {mn}×{k}: {name} must be a multiple of 8.")
    if mn_major and bits == 32:
        if mn % (_WIDE.bits // bits):
            raise Refused(
                f"the {whose} tile is {mn}×{k}: for mn-major tf32 operands, SW128_32B is the only available smem layout"
            )
        return _WIDE
    found = select(mn if mn_major else k, bits)
    if found is None:
        side, name = ("MN", "BLK_MN0") if mn_major else ("K", "BLK_K0")
        inner = "size<0>" if mn_major else "size<1>"
        raise Refused(
            f"the {whose} tile is {mn}×{k} and no swizzle atom divides it: "
            f"{name} must be a multiple of {inner}(UMMA::Layout_{side}_INTER_Atom<ElementType>{{}})"
        )
    return found


# What swizzles an atom: Swizzle<B, M, S> (cute/atom/mma_traits_sm100.hpp)
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
    def atom(self) -> Atom:
        return atom(self.mn_major, self.bits, self.rows, self.k, f"{self.name}'s")

    @property
    def stage(self) -> int:
        """Bytes of one stage."""
        return self.rows * self.k * self.bits // 8

    def check_slice(self, stages: int) -> None:
        """``SmemLayoutA{}(_,_,_,0)``: CuTe separates the bits that the swizzle moves from the layout of a stage, and of
        the stages (``slice_and_offset`` in cute/swizzle_layout.hpp). The mainloop's Params need that type.

        Raises:
            Refused: where the extents do not divide.
        """
        chosen = self.atom
        base, moved, distance = 1 << (swizzle := _SWIZZLE[chosen.name])[1], 1 << swizzle[0], 1 << (swizzle[2] - swizzle[0])
        shape = (base, moved, distance, moved, 1)
        strides = (1, base, base * moved, base * moved * distance, base * moved * moved * distance)
        moves = [(extent, stride if index in (1, 3) else 0) for index, (extent, stride) in enumerate(zip(shape, strides, strict=True))]
        keeps = [(extent, 0 if index in (1, 3) else stride) for index, (extent, stride) in enumerate(zip(shape, strides, strict=True))]
        pipe = [_mode(stages, self.rows * self.k)]
        try:
            compose(keeps, pipe)
            compose(moves, pipe)
            compose(moves, self._modes(chosen.bits // self.bits))
        except Refused as error:
            raise Refused(
                f"{self.name}'s stages of {self.rows}×{self.k} elements do not agree with their {chosen.name} swizzle: {error}"
            ) from None

    def _modes(self, run: int) -> list[Mode]:
        """The layout of a stage, ((MMA_M, MMA_K), MMA_M, MMA_K): atoms of `run` contiguous elements, along the other mode first."""
        if self.mn_major:
            rows = [(run, 1), _mode(self.rows // run, run * self.k)]
            return [*rows, (self.instruction_k, run), _mode(self.k // self.instruction_k, run * self.instruction_k)]
        inner = min(run, self.instruction_k)
        columns = [(inner, 1), _mode(self.instruction_k // inner, self.rows * run)]
        columns.append(_mode(run // inner, self.instruction_k))
        columns.append(_mode(self.k // max(run, self.instruction_k), self.rows * max(run, self.instruction_k)))
        return [(self.rows, run), *columns]


def _mode(extent: int, stride: int) -> Mode:
    """A mode as CuTe makes it: one of extent 1 has no stride."""
    return (extent, 0 if extent == 1 else stride)


def check_shape(m: int, n: int, two_sm: bool) -> None:
    """The shapes of a dense MMA: ``sm100_make_1sm_trivial_tiled_mma``, ``sm100_make_2sm_trivial_tiled_mma``."""
    if m not in ((128, 256) if two_sm else (64, 128)):
        raise Refused(f"{'two SMs' if two_sm else 'one SM'} cannot compute M = {m}: Invalid TileShape_M.")
    if n % 8 or n > 256:
        raise Refused(f"N = {n} is not a multiple of 8 up to 256: Invalid TileShape_N.")


def check_block_scaled_shape(m: int, n: int, two_sm: bool) -> None:
    """The shapes of a block-scaled MMA: ``sm100_make_blockscaled_1sm_trivial_tiled_mma``, and its 2SM sibling."""
    if m != (256 if two_sm else 128):
        raise Refused(f"{'two SMs' if two_sm else 'one SM'} cannot compute M = {m} block-scaled: Invalid TileShape_M.")
    if n not in (64, 128, 192, 256):
        raise Refused(f"N = {n} is not one of 64, 128, 192, 256: Invalid TileShape_N.")
