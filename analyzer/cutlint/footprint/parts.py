"""Storage that every kernel family is made of: barriers, tensor maps, stages of a swizzled tile, scale factors.

Each function mirrors a type of CUTLASS and says which. Bytes throughout.
"""

from __future__ import annotations

import msgspec

from cutlint.footprint.cute import Mode, cosize, divide, stored_size
from cutlint.footprint.layout import EMPTY, Layout, aligned, leaf

BARRIER = 8  # cutlass::arch::ClusterBarrier: one mbarrier
TENSOR_MAP = 128  # cute::TmaDescriptor, aligned to 64
CLC_RESPONSE = 16  # PersistentTileSchedulerSm100::CLCResponse: four uint32_t
SCALE_ROWS = 128  # Sm1xxBlockScaledBasicChunk::Blk_MN: rows of one scale-factor block
SCALE_COLUMNS = 4  # Sm1xxBlockScaledBasicChunk::Blk_SF: scale factors of a row in one block


def barriers(name: str, count: int, align: int = BARRIER) -> Layout:
    return leaf(name, "barriers", count * BARRIER, align)


def pipeline(name: str, stages: int) -> Layout:
    """A full and an empty barrier a stage: PipelineAsync, PipelineTmaAsync, PipelineTmaUmmaAsync,
    PipelineTransactionAsync (cutlass/pipeline/sm90_pipeline.hpp, sm100_pipeline.hpp)."""
    return barriers(name, 2 * stages)


def tensor_maps(name: str, count: int) -> Layout:
    return leaf(name, "tensormaps", count * TENSOR_MAP, 64)


def operand(name: str, kind: str, elements: int, bits: int, align: int) -> Layout:
    """``alignas(align) cute::ArrayEngine<Element, elements>``: sub-byte elements are packed; 0 elements are an empty class,
    which as a member still takes a byte."""
    size = -(-elements * bits // 8)
    return aligned(leaf(name, kind, size) if size else EMPTY, align)


class ScaleFactors(msgspec.Struct, frozen=True):
    """One stage of an operand's scale factors, one byte each: the modes along the rows and along K of their layout."""

    vector: int
    rows: list[Mode]
    columns: list[Mode]

    @property
    def stage(self) -> int:
        """Bytes of one stage: ``size(filter_zeros(SmemLayoutAtomSF{}))``."""
        return stored_size(self.rows + self.columns)

    def stored(self, stages: int, divided: tuple[int, int] | None = None) -> int:
        """Bytes of all stages: ``cosize_v<SmemLayoutSF>``, the layout divided by a tile of (rows, K) if given."""
        rows, columns = self.rows, self.columns
        if divided is not None:
            rows, columns = divide(rows, divided[0]), divide(columns, divided[1])
        return cosize([*rows, *columns, (stages, self.stage)])


def scale_factors(extent: int, k: int, vector: int, mma_scales: int) -> ScaleFactors:
    """The scale factors of `extent` rows and `k` columns, `vector` elements of K to each: blocks of 128 rows by 4
    (cutlass/detail/sm100_blockscaled_layout.hpp, ``SmemLayoutAtomSFA`` of the builders). `mma_scales` is the number
    that one MMA instruction takes along K. Integer divisions cut as C++'s do, to 0 for what is below a block."""
    blocks = extent // SCALE_ROWS
    block = SCALE_ROWS * SCALE_COLUMNS
    rows = [(32, 16), (4, 4), (blocks, block)]
    columns = [(vector, 0), (mma_scales, 1), (SCALE_COLUMNS // mma_scales, mma_scales)]
    columns.append((k // vector // SCALE_COLUMNS, blocks * block))
    return ScaleFactors(vector, rows, columns)
