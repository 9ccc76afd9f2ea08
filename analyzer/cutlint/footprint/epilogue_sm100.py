"""The epilogues of the Sm100 and Sm103 grouped kernels: through shared memory and TMA, or straight to global memory.

Mirrors epilogue/collective/builders/sm100_builder.inl (tile and stages; sm103_builder.inl is an alias of it),
epilogue/collective/sm100_epilogue_array_tma_warpspecialized.hpp, epilogue/collective/sm100_epilogue_array_nosmem.hpp and
``Sm100TmaWarpSpecializedAdapter`` (epilogue/collective/detail.hpp).
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from cutlint.config import EpilogueConfig, Output, element_bits
from cutlint.footprint import fusion, umma
from cutlint.footprint.layout import EMPTY, Layout, aligned, leaf, struct, union
from cutlint.footprint.parts import TENSOR_MAP, pipeline
from cutlint.footprint.records import Refused, Unmodelled

THREADS = 128  # CollectiveEpilogue::ThreadCount
TMA_ALIGNMENT = 128  # bits: get_output_alignment_bits in cutlass/detail/layout.hpp
DATAPATHS = 32  # lanes of tensor memory that one warp reads

_TMA = frozenset({"PtrArrayTmaWarpSpecialized1Sm", "PtrArrayTmaWarpSpecialized2Sm"})
_NO_SMEM = frozenset({"PtrArrayNoSmemWarpSpecialized1Sm", "PtrArrayNoSmemWarpSpecialized2Sm"})


class Tile(msgspec.Struct, frozen=True):
    """An epilogue subtile of `m` by `n` elements; `run` is the number of its columns that lie side by side (half of
    them where two columns of warps share the accumulator)."""

    m: int
    n: int
    run: int


class Epilogue(msgspec.Struct, frozen=True):
    """A collective epilogue: subtile in elements, stages, and its storage types, each laid out on its own.

    `shared` is ``CollectiveEpilogue::SharedStorage``: what launchers take sizeof of for the carveout.
    """

    tile: tuple[int, int]
    stages_c: int
    stages_d: int
    tensors: Layout
    tensor_maps: Layout
    pipeline: Layout
    shared: Layout


@lru_cache(maxsize=4096)  # asked for the carveout, then for the kernel
def epilogue(config: EpilogueConfig, any_width: bool = True) -> Epilogue:
    """``CollectiveBuilder<arch::Sm100, ...>`` of the epilogue. `any_width`: whether CUTLASS takes the whole width where
    its usual subtile does not divide it (`Cutlass.sm100_epilogue_any_width`).

    Raises:
        Refused: where CUTLASS's types cannot be formed.
        Unmodelled: for schedules other than those of ptr-array kernels.
    """
    if config.schedule not in _TMA | _NO_SMEM:
        raise Unmodelled(f"no model for an Sm{config.arch} epilogue of {config.schedule}")
    two_sm = config.schedule.endswith("2Sm")
    cluster_m = config.cluster[0]
    if two_sm and cluster_m is not None and cluster_m % 2:
        raise Refused(f"two SMs share an MMA, but a cluster is {cluster_m} wide in M: schedule + cluster mismatch")
    m, n, _ = config.mma_tile
    cta = (m // 2 if two_sm else m, n)
    warps = (2, 2) if two_sm and m == 128 else (4, 1)  # sm100_tmem_warps
    if config.schedule in _NO_SMEM:
        return _no_smem(config, cta, warps)
    return _tma(config, cta, warps, any_width)


def _no_smem(config: EpilogueConfig, cta: tuple[int, int], warps: tuple[int, int]) -> Epilogue:
    if config.d.bits == 6:
        raise Refused("a 6-bit output is written through TMA only: Output element requires TMA")
    m, n = config.tile or (cta[0], min(64, cta[1]))
    _check_warps(config.d, config.accumulator, Tile(m, n, n), warps)
    _count(cta, (m, n))
    plain = config.fusion is None or config.fusion.name == "LinearCombination"
    if plain and config.op_class != "OpClassBlockScaledTensorOp":
        storage = EMPTY  # thread::LinearCombination keeps nothing
    else:
        buffer = Layout(16, 16)  # array_aligned<uint8_t, 0>: nothing is reduced
        storage = struct([fusion.storage(config.fusion, cta[1]), buffer])
    # The adapter uses SharedStorage for the tensors and for the tensor maps as well; its pipeline is two empty arrays
    return Epilogue((m, n), 1, 1, storage, storage, struct([EMPTY, EMPTY]), storage)


def _tma(config: EpilogueConfig, cta: tuple[int, int], warps: tuple[int, int], any_width: bool) -> Epilogue:
    for each in (config.c, config.d):
        if each.element != "void" and each.bits * each.alignment % TMA_ALIGNMENT:
            raise Refused("C or D is not aligned to 16 bytes: C/D Should meet TMA alignment requirement")
    has_c, has_d = config.c.element != "void", config.d.element != "void"
    element_d = config.d.element if has_d else fusion.auxiliary_element(config.fusion)
    if element_d is None:
        raise Refused("D is void and the fusion writes nothing either: GmemElementD is void")
    if not has_d and element_bits(element_d) < 8:  # CallbacksBuilder of an auxiliary output
        raise Refused(f"no fusion writes {element_d} itself: Could not find a callbacks specialization.")
    d = msgspec.structs.replace(config.d, element=element_d)
    c = config.c if has_c else d
    tile = _tile(config, cta, warps, c, d, any_width)
    count = _count(cta, (tile.m, tile.n))
    _check_warps(d, config.accumulator, tile, warps)
    reuse = config.c.bits > 8  # sm100_dense_dispatch_policy
    stages_d = min(count, 2)
    stages_c = max(min(count, 4), stages_d + 1) if reuse else min(count, 4)
    collective = _collective(c, d, tile, (stages_c, stages_d), has_c, reuse and has_d)
    fusion.check_block_scales(config.fusion, tile.n)
    tensors = struct([collective, fusion.storage(config.fusion, cta[1])])
    maps = struct([leaf("epilogue.tensor maps C, D", "tensormaps", 2 * TENSOR_MAP, 64)], align=128)
    load = pipeline("epilogue.load barriers", stages_c)
    return Epilogue((tile.m, tile.n), stages_c, stages_d, tensors, maps, load, struct([tensors, maps, load]))


def _tile(
    config: EpilogueConfig, cta: tuple[int, int], warps: tuple[int, int], c: Output, d: Output, any_width: bool
) -> Tile:
    """``sm100_dense_compute_tile_shape_or_override``."""
    if config.tile is not None:
        if config.tile[1] % 8:
            raise Refused(f"the epilogue tile {config.tile[0]}×{config.tile[1]}: Unsupported tile shape")
        return Tile(*config.tile, config.tile[1])
    m = min(cta[0], DATAPATHS * warps[0])
    if config.op_class == "OpClassBlockScaledTensorOp" and cta[1] == 256:
        return Tile(m, 128, 128)
    has_c = config.c.element != "void"
    least_c = 8 * warps[1] if not has_c else _least(c, warps[1])
    least_d = _least(d, warps[1])
    if cta[1] < max(least_c, least_d):
        raise Refused(
            f"{cta[1]} columns are fewer than the {max(least_c, least_d)} that TMA stores at once: CTA tile too small"
        )
    wanted = min(cta[1], max(_preferred(cta, m, c, d, has_c), least_c, least_d))
    if cta[1] % wanted and not any_width:
        raise Refused(f"an epilogue tile of {wanted} columns does not divide {cta[1]}: Divisibility Condition")
    n = wanted if cta[1] % wanted == 0 else cta[1]
    return Tile(m, n, n if n == cta[1] else n // warps[1])


def _least(output: Output, warps_n: int) -> int:
    """Columns that a store needs: 8 where M is contiguous, otherwise 16 bytes (128 elements of 6 bits)."""
    if output.m_major:
        return 8 * warps_n
    return (128 if output.bits == 6 else 128 // output.bits) * warps_n


def _preferred(cta: tuple[int, int], m: int, c: Output, d: Output, has_c: bool) -> int:
    """Columns of the subtile "tested for perf" (``N_perf``); no fusion modelled here scales each column."""
    widest = max(c.bits, d.bits)
    if not has_c:
        return (8192 if widest == 4 else 4096) // m
    if widest == 32:
        return 16 if cta[0] > 64 and cta[1] <= 128 else 32
    if widest == 16:
        return 32 if cta[1] <= 128 else 64
    return 64


def _count(cta: tuple[int, int], tile: tuple[int, int]) -> int:
    """``EpiTiles``: subtiles of a CTA tile."""
    result = 1
    for extent, part in zip(cta, tile, strict=True):
        if extent % part and part % extent:
            what = f"the epilogue tile {tile[0]}×{tile[1]} does not divide the CTA tile {cta[0]}×{cta[1]}"
            raise Refused(f"{what}: Divisibility Condition")
        result *= -(-extent // part)
    return result


def _check_warps(d: Output, accumulator: str, tile: Tile, warps: tuple[int, int]) -> None:
    """``sm100_get_tmem_load_op``: each warp reads 16 or 32 lanes of tensor memory."""
    for extent, parts in ((tile.m, warps[0]), (tile.n, warps[1])):
        if extent % parts and parts % extent:
            raise Refused(f"{parts} warps cannot share {extent} rows or columns: Divisibility Condition")
    lanes = -(-tile.m // warps[0])
    if lanes not in (16, DATAPATHS):
        raise Refused(
            f"a warp would read {lanes} lanes of tensor memory, 16 or 32 are possible: Unsupported tmem datapath count"
        )
    if element_bits(accumulator) != 32:
        raise Unmodelled(f"no model for an Sm100 epilogue with accumulators of {accumulator}")
    if d.bits not in (4, 6, 8, 16, 32):
        raise Refused(f"the epilogue does not write {d.element}: Unsupported data types")
    if d.bits in (4, 6) and lanes != DATAPATHS:
        raise Refused(f"{d.element} needs warps that read 32 lanes of tensor memory: num_dp == 32")


def _collective(c: Output, d: Output, tile: Tile, stages: tuple[int, int], has_c: bool, reuse: bool) -> Layout:
    """``CollectiveStorage``: C and D side by side, D alone, or D in C's place. A shared place has stages of equal size."""
    stages_c, stages_d = stages[0], stages[0] if reuse else stages[1]
    stage_c, stage_d = (tile.m * tile.n * each.bits for each in (c, d))
    largest = max(stage_c, stage_d)
    atom_c, atom_d = (umma.atom(each.m_major, each.bits, tile.m, tile.run, "the epilogue's") for each in (c, d))
    if reuse and (not has_c or stages[1] > stages_c or largest % c.bits or largest % d.bits):
        raise Refused("D cannot reuse C's shared memory: Smem reuse requirements not met")
    size_c = ((stages_c - 1) * (largest if reuse else stage_c) + stage_c) // 8
    size_d = ((stages_d - 1) * (largest if reuse else stage_d) + stage_d) // 8
    if not has_c:
        return aligned(leaf("epilogue.D", "D", size_d, atom_d.alignment), atom_d.alignment)
    if reuse:
        align = max(atom_c.alignment, atom_d.alignment)
        shared = [aligned(leaf(name, name, size), align) for name, size in (("C", size_c), ("D", size_d))]
        return union("epilogue.C/D", "C/D", shared)
    return struct(
        [
            aligned(leaf("epilogue.C", "C", size_c), atom_c.alignment),
            aligned(leaf("epilogue.D", "D", size_d), atom_d.alignment),
        ]
    )
