"""What the tensor cores of Sm100 and Sm103 take: swizzled shared-memory tiles, and which MMA shapes there are.

Mirrors ``sm100_smem_selector`` and ``sm100_make_*_tiled_mma`` (gemm/collective/builders/sm100_common.inl) and the atoms of
cute/arch/mma_sm100_umma.hpp.
"""

from __future__ import annotations

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
