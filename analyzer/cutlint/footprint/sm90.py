"""Sm90: dense grouped GEMM on Hopper, array TMA warp-specialized, cooperative and pingpong.

Mirrors gemm/collective/builders/sm90_gmma_builder.inl (which stages fit),
gemm/collective/sm90_mma_array_tma_gmma_ss_warpspecialized.hpp and its FP8 twin (the mainloop's storage) and
epilogue/collective/builders/sm90_builder.inl (the epilogue's tile and stages).
"""

from __future__ import annotations

from functools import lru_cache
from math import gcd

from cutlint.config import PER_TOKEN_SCALE, EpilogueConfig, KernelConfig, element_bits
from cutlint.cutlass import Cutlass
from cutlint.footprint import epilogue_sm90, gmma, kernel_sm90
from cutlint.footprint.epilogue_sm90 import Epilogue, Policy
from cutlint.footprint.layout import Layout, round_up, struct
from cutlint.footprint.parts import operand, pipeline, tensor_maps
from cutlint.footprint.records import Budget, Footprint, Refused, Unmodelled, need_two_stages

STAGE_ALIGNMENT = 128  # compute_stage_count_or_override's `alignment`
TMA_ALIGNMENT = 128  # bits: tma_alignment_bytes, get_output_alignment_bits

COOPERATIVE = "PtrArrayTmaWarpSpecializedCooperative"
PINGPONG = "PtrArrayTmaWarpSpecializedPingpong"

# kernel schedule -> threads of the tiled MMA: 2×1×1 warp groups share a tile, or each takes its own
_MMA_THREADS = {
    f"Kernel{schedule}{accumulation}": threads
    for schedule, threads in ((COOPERATIVE, 256), (PINGPONG, 128))
    for accumulation in ("", "FP8FastAccum")
}
# epilogue schedule -> rows of a subtile, and the warp groups that have a tensor map of D (0: a dense kernel)
_EPILOGUES = {
    COOPERATIVE: (128, 2),
    PINGPONG: (64, 2),
    "TmaWarpSpecializedCooperative": (128, 0),
    "TmaWarpSpecialized": (64, 0),
}


def footprint(config: KernelConfig, cutlass: Cutlass) -> tuple[Footprint, Layout]:
    """The footprint, without regions, and the laid-out SharedStorage of an Sm90 kernel.

    Raises:
        Refused: where CUTLASS's types cannot be formed.
        Unmodelled: for kernels other than grouped and dense ones, or of other schedules.
    """
    if config.op_class != "OpClassTensorOp" or not config.grouped:
        raise Unmodelled(f"no model for an Sm90 kernel of {config.op_class} that is not grouped and dense")
    if config.schedule not in _MMA_THREADS:
        raise Unmodelled(f"no model for the Sm90 kernel schedule {config.schedule}")
    mma_threads = _MMA_THREADS[config.schedule]
    a, b = _operands(config)
    epi = epilogue(config.epilogue)
    divided = budget(config, cutlass.sm90_capacity, cutlass.sm90_reserved, a.stage + b.stage)
    stages = divided.stages
    need_two_stages(divided)
    for each in (a, b):
        gmma.check_stages(each, stages)
    tensors = struct(
        [
            operand("mainloop.A", "A", stages * a.rows * a.k, a.bits, 16),
            operand("mainloop.B", "B", stages * b.rows * b.k, b.bits, 16),
        ],
        align=128,
    )
    barriers = pipeline("mainloop barriers", stages)
    maps = struct([tensor_maps("mainloop.tensor maps A, B", 2)], align=128)
    if PINGPONG in config.schedule:
        shared = kernel_sm90.pingpong_storage(tensors, barriers, maps, epi)
    else:
        shared = kernel_sm90.shared_storage(tensors, barriers, maps, epi)
    sizes = Footprint(
        engine="model",
        total=shared.size,
        mainloop=struct([tensors, maps, barriers]).size,
        epilogue=epi.shared.size,
        mainloop_tensors=tensors.size,
        epilogue_tensors=epi.tensors.size,
        stages=stages,
        threads=kernel_sm90.THREADS,
        epilogue_tile=epi.tile,
        stages_c=epi.policy.stages_c,
        stages_d=epi.policy.stages_d,
        align=shared.align,
        accumulator_registers=a.rows * b.rows // mma_threads,
        fails_in_nvcc=_fails_in_nvcc(config),
        budget=divided,
    )
    return sizes, shared


def _fails_in_nvcc(config: KernelConfig) -> str | None:
    """The cooperative kernel's ``operator()`` asserts on the tile what its types do not."""
    m = config.mma_tile[0]
    if COOPERATIVE not in config.schedule or m >= 128:
        return None
    return (
        f"M = {m} leaves one of two warp groups without rows: "
        "Cooperative kernel requires Tile Size to be greater than or equal to 128 along the M-dimension."
    )


@lru_cache(maxsize=4096)  # asked for the carveout, then for the kernel
def epilogue(config: EpilogueConfig) -> Epilogue:
    """``CollectiveBuilder<arch::Sm90, ...>`` of the TMA epilogues: the subtile, and how often it is staged.

    Raises:
        Refused: where CUTLASS's types cannot be formed.
        Unmodelled: for schedules other than those of kernels with TMA.
    """
    if config.schedule == PER_TOKEN_SCALE:
        return epilogue_sm90.per_token_scale(config)
    if config.schedule not in _EPILOGUES:
        raise Unmodelled(f"no model for the Sm90 epilogue schedule {config.schedule}")
    rows, warp_groups = _EPILOGUES[config.schedule]
    m, n, _ = config.mma_tile
    d_bits = element_bits(config.output_element)
    tile = config.tile or _tile(config.schedule, m, n, d_bits)
    if config.tile is not None and (tile[0] != rows or tile[1] % 16):
        raise Refused(
            f"the epilogue tile {tile[0]}×{tile[1]} is not {rows} by a multiple of 16: Unsupported tile shape"
        )
    for each in (config.c, config.d):
        if each.element != "void" and each.bits * each.alignment % TMA_ALIGNMENT:
            raise Refused("C or D is not aligned to 16 bytes: C/D Should meet TMA alignment requirement")
    if tile[1] % 8:
        raise Refused(
            f"an epilogue tile of {tile[1]} columns: CopyAtomC can't be void, divisiblity check for EpilogueTile_MN failed"
        )
    check_divides((m, n), tile, "the epilogue tile")
    count = max(1, m // tile[0]) * max(1, n // tile[1])
    reuse = config.c.bits == d_bits and d_bits > 8
    stages_d = min(count, 2)
    stages_c = max(min(count, 4), stages_d + 1) if reuse else min(count, 4)
    return epilogue_sm90.epilogue(config, config.mma_tile, tile, Policy(stages_c, stages_d, reuse, warp_groups))


def _tile(schedule: str, m: int, n: int, d_bits: int) -> tuple[int, int]:
    """``sm90_compute_tile_shape_or_override`` with ``EpilogueTileAuto``, in elements."""
    rows, _ = _EPILOGUES[schedule]
    wanted = 64 if rows == 64 and d_bits == 8 and n % 64 == 0 else 32
    return min(rows, m), gcd(min(wanted, n), n)


def check_divides(extents: tuple[int, ...], parts: tuple[int, ...], what: str) -> None:
    """``shape_div``: of each pair one must be a multiple of the other."""
    for extent, part in zip(extents, parts, strict=True):
        if extent % part and part % extent:
            tile, by = ("×".join(str(each) for each in shape) for shape in (extents, parts))
            raise Refused(f"{what} {by} does not divide the CTA tile {tile}: Divisibility Condition")


def _operands(config: KernelConfig) -> tuple[gmma.Operand, gmma.Operand]:
    """A and B, after the builder's static_asserts on types, alignments and the tile."""
    cluster = check_operands(config)
    result = gmma.operands(config)
    gmma.check_operator(config.a, config.b, config.accumulator, config.mma_tile)
    for each in result:
        each.atom()
    check_divides(config.mma_tile, cluster, "the cluster")  # CtaShape_MNK
    return result


def check_operands(config: KernelConfig) -> tuple[int, ...]:
    """What every Sm90 builder asserts of cluster and alignments; the cluster's shape, which is known then."""
    cluster = tuple(each for each in config.cluster if each is not None)
    if len(cluster) < len(config.cluster):
        raise Refused("the cluster is chosen at run time: is_static<ClusterShape_MNK>")
    if any(each.bits * each.alignment % TMA_ALIGNMENT for each in (config.a, config.b)):
        raise Refused("an operand is not aligned to 16 bytes: Should meet TMA alignment requirement")
    return cluster


def budget(
    config: KernelConfig, capacity: int, reserved: int, tensors: int, alignment: int = STAGE_ALIGNMENT
) -> Budget:
    """``compute_stage_count_or_override`` and its variants for mixed input: capacity, carveout and a stage's `tensors` in
    multiples of `alignment`."""
    stage = round_up(tensors, alignment) + pipeline("", 1).size
    whole = (capacity - reserved) // alignment * alignment + reserved
    count = config.stage_count
    if count.stages is not None:
        return Budget(whole, reserved, 0, stage, count.stages)
    carveout = round_up(count.carveout or 0, alignment)
    return Budget(whole, reserved, carveout, stage, int((whole - reserved - carveout) / stage))
