"""Tensor memory of Sm100 and Sm103: accumulators first, then the scale factors of A and of B.

Mirrors cutlass/detail/sm100_tmem_helper.hpp, and what ``set_tmem_offsets`` of
gemm/collective/sm100_blockscaled_mma_array_warpspecialized.hpp and ``mma_init`` of its Sm103 sibling lay out. Columns are
32 bits wide and 128 rows high.
"""

from __future__ import annotations

from cutlint.footprint.layout import round_up
from cutlint.footprint.parts import SCALE_ROWS

ROWS, COLUMNS = 128, 512


def accumulators(m: int, n: int, stages: int) -> int:
    """Columns of `stages` accumulators of a CTA tile; at M = 64 two lie one above the other."""
    return stages * m * n // ROWS


def block_scaled(tile: tuple[int, int, int], stages: int, epilogue_n: int, vector: int) -> int:
    """Columns of a block-scaled CTA tile's accumulators and of the scale factors of its K, one to `vector` elements.

    A single stage of accumulators means two of N = 256 that overlap (``IsOverlappingAccum``): the second starts where the
    last epilogue subtile of the first does, `epilogue_n` columns before its end.
    """
    m, n, k = tile
    columns = n + 256 - epilogue_n if stages == 1 else accumulators(m, n, stages)
    return columns + _scale_factors(m, k, vector) + _scale_factors(n, k, vector)


def _scale_factors(rows: int, k: int, vector: int) -> int:
    """Columns of one operand's scale factors: a column of each block of 128 rows for every `vector` elements of K."""
    return round_up(rows, SCALE_ROWS) // SCALE_ROWS * (k // vector)
