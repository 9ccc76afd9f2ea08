"""Sm90: dense grouped GEMM on Hopper, array TMA warp-specialized cooperative.

Mirrors gemm/collective/builders/sm90_gmma_builder.inl (which stages fit),
gemm/collective/sm90_mma_array_tma_gmma_ss_warpspecialized.hpp and its FP8 twin (the mainloop's storage) and
epilogue/collective/builders/sm90_builder.inl (the epilogue's tile and stages).
"""

from __future__ import annotations

from math import gcd

from cutlint.config import EpilogueConfig, KernelConfig
from cutlint.cutlass import Cutlass
from cutlint.footprint import epilogue_sm90, kernel_sm90
from cutlint.footprint.cute import check_slice
from cutlint.footprint.epilogue_sm90 import Epilogue, Policy
from cutlint.footprint.layout import round_up, struct, with_padding
from cutlint.footprint.parts import operand, pipeline, tensor_maps
from cutlint.footprint.records import Budget, Footprint, Refused, Unmodelled
from cutlint.footprint.swizzle import select

MMA_THREADS = 256  # AtomLayout 2×1×1 of warp groups: cooperative
STAGE_ALIGNMENT = 128  # compute_stage_count_or_override's `alignment`

_COOPERATIVE = frozenset(
    {"KernelPtrArrayTmaWarpSpecializedCooperative", "KernelPtrArrayTmaWarpSpecializedCooperativeFP8FastAccum"}
)


def footprint(config: KernelConfig, cutlass: Cutlass) -> Footprint:
    """The footprint of an Sm90 kernel.

    Raises:
        Refused: where CUTLASS's types cannot be formed.
        Unmodelled: for kernels other than grouped, dense and cooperative ones.
    """
    if config.op_class != "OpClassTensorOp" or not config.grouped:
        raise Unmodelled(f"no model for an Sm90 kernel of {config.op_class} that is not grouped and dense")
    if config.schedule not in _COOPERATIVE:
        raise Unmodelled(f"no model for the Sm90 kernel schedule {config.schedule}")
    _check_mainloop(config)
    epi = epilogue(config.epilogue)
    m, n, k = config.mma_tile
    bits_a, bits_b = config.a.bits, config.b.bits
    budget = _budget(config, cutlass, m * k * bits_a // 8 + n * k * bits_b // 8)
    stages = budget.stages
    if stages < 2:
        raise Refused(
            f"{stages} stage{'' if stages == 1 else 's'} of {budget.stage:,} B fit the "
            f"{budget.capacity - budget.reserved - budget.carveout:,} B that CUTLASS divides: "
            "Specialization requires Stages set to value 2 or more",
            budget,
        )
    _check_stages(config, stages)
    tensors = struct(
        [
            operand("mainloop.A", "A", stages * m * k, bits_a, 16),
            operand("mainloop.B", "B", stages * n * k, bits_b, 16),
        ],
        align=128,
    )
    barriers = pipeline("mainloop barriers", stages)
    maps = struct([tensor_maps("mainloop.tensor maps A, B", 2)], align=128)
    shared = kernel_sm90.shared_storage(tensors, barriers, maps, epi)
    return Footprint(
        engine="model",
        total=shared.size,
        mainloop=struct([tensors, maps, barriers]).size,
        epilogue=epi.shared.size,
        mainloop_tensors=tensors.size,
        epilogue_tensors=epi.tensors.size,
        stages=stages,
        threads=MMA_THREADS + kernel_sm90.WARP_GROUP,
        epilogue_tile=epi.tile,
        stages_c=epi.policy.stages_c,
        stages_d=epi.policy.stages_d,
        align=shared.align,
        regions=with_padding(shared),
        accumulator_registers=m * n // MMA_THREADS,
        budget=budget,
    )


def epilogue(config: EpilogueConfig) -> Epilogue:
    """``CollectiveBuilder<arch::Sm90, ...>`` of the cooperative TMA epilogue: the subtile, and how often it is staged."""
    if config.schedule != "PtrArrayTmaWarpSpecializedCooperative":
        raise Unmodelled(f"no model for the Sm90 epilogue schedule {config.schedule}")
    m, n, _ = config.mma_tile
    tile = config.tile or (min(128, m), gcd(min(32, n), n))
    if config.tile is not None and (tile[0] != 128 or tile[1] % 16):
        raise Refused(f"the epilogue tile {tile[0]}×{tile[1]} is not 128 by a multiple of 16: Unsupported tile shape")
    count = max(1, m // tile[0]) * max(1, n // tile[1])
    d_bits = config.d.bits if config.d.element != "void" else _auxiliary_bits(config)
    reuse = config.c.bits == d_bits and d_bits > 8
    stages_d = min(count, 2)
    stages_c = max(min(count, 4), stages_d + 1) if reuse else min(count, 4)
    return epilogue_sm90.epilogue(config, config.mma_tile, tile, Policy(stages_c, stages_d, reuse, warp_groups=2))


def _auxiliary_bits(config: EpilogueConfig) -> int:
    from cutlint.config import element_bits

    return element_bits(config.output_element)


def _check_mainloop(config: KernelConfig) -> None:
    """The builder's and the mainloop's static_asserts on types, alignments and the tile, in their order."""
    m, n, k = config.mma_tile
    if config.dynamic_cluster:
        raise Refused("the cluster is chosen at run time: is_static<ClusterShape_MNK>")
    if any(each.bits * each.alignment % 128 for each in (config.a, config.b)):
        raise Refused("an operand is not aligned to 16 bytes: Should meet TMA alignment requirement")
    if m % 64 or n % 8 or n > 256:
        raise Refused(f"the tile {m}×{n} is no multiple of a 64×8 warp-group MMA of at most 256 columns")
    for each in (config.a, config.b):
        if k % 8 or select(k, each.bits) is None:
            raise Refused(f"K = {k} is no multiple of the smallest shared-memory atom of {each.element}")


def _check_stages(config: KernelConfig, stages: int) -> None:
    """The mainloop's TMA types cut one stage out of each operand's layout."""
    m, n, k = config.mma_tile
    for each, rows in ((config.a, m), (config.b, n)):
        atom = select(k, each.bits)
        assert atom is not None  # _check_mainloop has looked
        columns = atom.bits // each.bits
        along_k = (k // columns, rows * columns if k > columns else 0)
        stage = [(8, columns), (rows // 8, 8 * columns), (columns, 1), along_k]
        try:
            check_slice((atom.swizzle, 4, 3), stage, (stages, rows * k))
        except Refused as error:
            raise Refused(
                f"a stage of {rows}×{k} {each.element} cannot be cut out of {stages} stages swizzled by {atom.name}: {error}"
            ) from None


def _budget(config: KernelConfig, cutlass: Cutlass, tensors: int) -> Budget:
    """``compute_stage_count_or_override``: capacity and carveout in multiples of 128, a stage's tensors as well."""
    stage = round_up(tensors, STAGE_ALIGNMENT) + pipeline("", 1).size
    reserved = cutlass.sm90_reserved
    capacity = (cutlass.sm90_capacity - reserved) // STAGE_ALIGNMENT * STAGE_ALIGNMENT + reserved
    count = config.stage_count
    if count.stages is not None:
        return Budget(capacity, reserved, 0, stage, count.stages)
    carveout = round_up(count.carveout or 0, STAGE_ALIGNMENT)
    return Budget(capacity, reserved, carveout, stage, int((capacity - reserved - carveout) / stage))
