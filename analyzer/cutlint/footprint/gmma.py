"""What the tensor cores of Sm90 take: swizzled shared-memory tiles, and which MMA operators there are.

Mirrors ``ss_smem_selector`` (gemm/collective/builders/sm90_common.inl), ``ss_op_selector`` (cute/arch/mma_sm90.hpp) and
the layout of the stages in gemm/collective/sm90_mma_array_tma_gmma_ss_warpspecialized.hpp.
"""

from __future__ import annotations

from functools import cache

import msgspec

from cutlint.config import KernelConfig, element_bits
from cutlint.config import Operand as Given
from cutlint.footprint.cute import Mode, check_slice
from cutlint.footprint.records import Refused, Unmodelled
from cutlint.footprint.swizzle import Atom, select

INSTRUCTION_K = 256  # bits of K that one MMA takes

_FP8 = frozenset({"float_e4m3_t", "float_e5m2_t"})
_INT8 = frozenset({"int8_t", "uint8_t"})
_TF32 = frozenset({"float", "tfloat32_t"})  # the builder maps float to tfloat32_t

# accumulator -> sets of elements, from one of which both A and B must be
_OPERANDS: dict[str, tuple[frozenset[str], ...]] = {
    "half_t": (frozenset({"half_t"}), _FP8),
    "float": (frozenset({"half_t"}), frozenset({"bfloat16_t"}), _TF32, _FP8),
    "int32_t": (_INT8,),
    "int": (_INT8,),
}


class Operand(msgspec.Struct, frozen=True):
    """A stage of A or B: `rows` by `k` elements of `bits` bits, contiguous along the rows if `mn_major`."""

    element: str
    bits: int
    rows: int
    k: int
    mn_major: bool

    @property
    def stage(self) -> int:
        """Bytes of one stage."""
        return self.rows * self.k * self.bits // 8

    def atom(self) -> Atom:
        """The swizzle atom.

        Raises:
            Refused: where no atom divides the tile.
        """
        return atom(self.mn_major, self.element, self.rows, self.k, "an operand's")

    def layout(self, run: int) -> list[Mode]:
        """A stage's layout: atoms of 8 by `run` elements, side by side first along the mode that is not contiguous."""
        along, across = (self.rows, self.k) if self.mn_major else (self.k, self.rows)
        contiguous = [(run, 1), (along // run, across * run if along > run else 0)]
        other = [(8, run), (across // 8, 8 * run)]
        return contiguous + other if self.mn_major else other + contiguous


@cache
def check_stages(operand: Operand, stages: int) -> None:
    """``SmemLayoutA{}(_, _, Int<0>{})``, a type that the mainloop's Params need.

    Raises:
        Refused: where CuTe cannot cut a stage out of so many.
    """
    chosen = operand.atom()
    try:
        layout = operand.layout(chosen.bits // operand.bits)
        check_slice((chosen.swizzle, 4, 3), layout, (stages, operand.rows * operand.k))
    except Refused as error:
        what = f"a stage of {operand.rows}×{operand.k} {operand.element} cannot be cut out of {stages} stages"
        raise Refused(f"{what} swizzled by {chosen.name}: {error}") from None


def operands(config: KernelConfig) -> tuple[Operand, Operand]:
    """A and B as the builder for operands in shared memory takes them (GMMA_TMA_WS_SS), both by the tile's extents.

    Raises:
        Unmodelled: where CUTLASS takes A through registers (``is_use_rmem_A``).
        Refused: where the schedule for fast accumulation does not know such operands.
    """
    a, b = config.a, config.b
    a_m_major, b_n_major = a.layout.rstrip("*") == "ColumnMajor", b.layout.rstrip("*") == "RowMajor"
    fast = config.schedule.endswith("FP8FastAccum")
    if fast and not {a.element, b.element} <= _FP8:
        raise Refused(
            f"{config.schedule} with {a.element} and {b.element}: "
            "Only FP8 datatypes are compatible with these kernel schedules"
        )
    if a.bits != b.bits or ((a_m_major or b_n_major) and a.bits != 16):  # is_use_rmem_A
        if fast:
            raise Refused(
                "an FP8 operand is not contiguous along K: Not supported for fp8 non-TN warp specialized kernels yet"
            )
        raise Unmodelled(
            f"no model for an Sm90 kernel that takes A through registers ({a.element} {a.layout}, {b.element} {b.layout})"
        )
    m, n, k = config.mma_tile
    return Operand(a.element, a.bits, m, k, a_m_major), Operand(b.element, b.bits, n, k, b_n_major)


def check_operator(a: Given, b: Given, accumulator: str, tile: tuple[int, int, int]) -> None:
    """``ss_op_selector``: the MMA instructions for such elements, and the tiles that are made of them.

    Raises:
        Refused: with the words of CuTe's assertion.
    """
    m, n, k = tile
    if m % 64:
        raise Refused(f"M = {m}: Tile_M must be a multiple of 64.")
    if accumulator not in _OPERANDS:
        raise Refused(f"no tensor core accumulates in {accumulator}: Unknown ElementC accumulator type.")
    if not any({a.element, b.element} <= each for each in _OPERANDS[accumulator]):
        what = f"no tensor core multiplies {a.element} by {b.element} into {accumulator}"
        raise Refused(f"{what}: No eligible GMMA operator for request configuration.")
    least = INSTRUCTION_K // a.bits
    if k % least:
        raise Refused(f"K = {k}: Tile_K must be a multiple of {least}.")
    if n % 8:
        raise Refused(f"N = {n}: Tile_N must be a multiple of 8.")


def atom(mn_major: bool, element: str, mn: int, k: int, whose: str) -> Atom:
    """``ss_smem_selector``: the swizzle atom of a tile of `mn` by `k` elements, contiguous along `mn` or along `k`.

    Raises:
        Refused: where CUTLASS has none. `whose` says whose tile it is.
    """
    for extent, name in ((mn, "BLK_MN0"), (k, "BLK_K0")):
        if extent % 8:
            raise Refused(f"{whose} tile is {mn}×{k}: {name} must be a multiple of 8.")
    found = select(mn if mn_major else k, element_bits(element))
    if found is None:
        words = (
            "BLK_MN0 must be a multiple of size<0>(GMMA::Layout_MN_INTER_Atom<ElementType>{})"
            if mn_major
            else "BLK_K0 must be a multiple of size<1>(GMMA::Layout_K_INTER_Atom<ElementType>{})"
        )
        raise Refused(f"no swizzle atom divides {whose} tile of {mn}×{k} {element}: {words}")
    return found
