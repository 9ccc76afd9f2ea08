"""Sm100: dense and block-scaled grouped GEMM on the Blackwell data-center architectures (10.0, 10.1).

Mirrors gemm/collective/builders/sm100_umma_builder.inl and sm100_blockscaled_umma_builder.inl (which stages fit),
sm1xx_common.inl beside them (which operands an MMA takes), and gemm/collective/sm100_mma_array_warpspecialized.hpp and
sm100_blockscaled_mma_array_warpspecialized.hpp (the mainloop's storage).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from cutlint.config import EpilogueConfig, KernelConfig, Operand
from cutlint.cutlass import Cutlass
from cutlint.footprint import epilogue_sm100, kernel_sm100, tensor_memory, umma
from cutlint.footprint.epilogue_sm100 import Epilogue
from cutlint.footprint.layout import Layout, round_up, struct
from cutlint.footprint.parts import (
    SCALE_COLUMNS,
    SCALE_ROWS,
    ScaleFactors,
    operand,
    pipeline,
    scale_factors,
    tensor_maps,
)
from cutlint.footprint.records import Budget, Footprint, Refused, Unmodelled

ALIGNMENT = 16  # cute::ArrayEngine
ACCUMULATORS = 4  # most stages of a dense kernel's accumulator pipeline

_SCHEDULE = re.compile(r"KernelPtrArrayTmaWarpSpecialized([12])Sm(Nvf4|Mxf8f6f4|)Sm100")
_NARROW = frozenset({"float_e2m1_t", "float_e2m3_t", "float_e3m2_t", "float_e4m3_t", "float_e5m2_t"})
_WIDE = frozenset({"float", "tfloat32_t", "half_t", "bfloat16_t"})


class Mainloop(msgspec.Struct, frozen=True):
    """What the builders make of the operands: one CTA's part of a stage of A and of B, stages of the accumulator
    pipeline, and the layouts of A's and B's scale factors (none for a dense kernel)."""

    operands: tuple[umma.Operand, umma.Operand]
    accumulators: int
    scales: tuple[ScaleFactors, ...] = ()

    @property
    def stage(self) -> int:
        """Bytes of one stage's tensors."""
        return sum(each.stage for each in self.operands) + sum(each.stage for each in self.scales)


def footprint(config: KernelConfig, cutlass: Cutlass) -> tuple[Footprint, Layout]:
    """The footprint, without regions, and the laid-out SharedStorage of an Sm100 kernel.

    Raises:
        Refused: where CUTLASS's types cannot be formed.
        Unmodelled: for kernels other than grouped, TMA warp-specialized ones.
    """
    schedule = _SCHEDULE.fullmatch(config.schedule)
    block_scaled = config.op_class == "OpClassBlockScaledTensorOp"
    if (
        schedule is None
        or not config.grouped
        or config.op_class not in ("OpClassTensorOp", "OpClassBlockScaledTensorOp")
    ):
        raise Unmodelled(f"no model for an Sm100 kernel of {config.op_class} scheduled by {config.schedule}")
    if block_scaled == (schedule.group(2) == ""):
        raise Refused(
            f"{config.schedule} does not go with {config.op_class}: Could not build a collective for given parameters."
        )
    epi = epilogue_sm100.epilogue(config.epilogue, cutlass.sm100_epilogue_any_width)
    mainloop = _block_scaled(config, schedule.group(2)) if block_scaled else _dense(config)
    scheduler = cutlass.sm100_scheduler_stages(block_scaled)
    maps = 4 if block_scaled else 2
    barriers = cutlass.sm100_stage_barriers if block_scaled else pipeline("", 1).size
    reserved = cutlass.sm100_reserved(mainloop.accumulators, scheduler, maps)
    budget = _budget(config, cutlass.sm100_capacity, reserved, mainloop.stage + barriers)
    _check_stages(budget, block_scaled)
    for each in mainloop.operands:
        umma.check_slice(each, budget.stages)
    tensors = _tensors(mainloop, budget.stages)
    names = "A, B, SFA, SFB" if block_scaled else "A, B"
    mainloop_maps = struct([tensor_maps(f"mainloop.tensor maps {names}", maps)], align=128)
    stage_barriers = pipeline("mainloop barriers", budget.stages)
    shared = kernel_sm100.shared_storage(
        tensors, stage_barriers, mainloop_maps, epi,
        mainloop.accumulators, scheduler, cutlass.sm100_updaters,
    )  # fmt: skip
    warps = kernel_sm100.WARPS + cutlass.sm100_updaters
    check_capacity(shared, budget, cutlass.sm100_asserts_capacity)
    if mainloop.scales:
        vector = mainloop.scales[0].vector
        columns = tensor_memory.block_scaled(config.cta_tile, mainloop.accumulators, epi.tile[1], vector)
    else:
        columns = tensor_memory.accumulators(*config.cta_tile[:2], mainloop.accumulators)
    return kernel_sm100.report(shared, (tensors, mainloop_maps, stage_barriers), epi, budget, warps, columns)


def epilogue(config: EpilogueConfig) -> Epilogue:
    """``CollectiveBuilder<arch::Sm100, ...>`` of the epilogue."""
    return epilogue_sm100.epilogue(config)


def check_capacity(shared: Layout, budget: Budget, asserted: bool) -> None:
    """The kernel class's own assertion, where it has one (up to CUTLASS 4.2; later it is in the kernel's code)."""
    if asserted and shared.size > budget.capacity:
        raise Refused(f"{shared.size:,} B do not fit {budget.capacity:,} B: SMEM usage exceeded capacity.", budget)


def check_cluster(config: KernelConfig) -> None:
    """``sm100_cluster_shape_to_tma_atom_A``: two SMs that share an MMA are neighbours in M."""
    cluster_m = config.cluster[0]
    if config.two_sm and cluster_m is not None and cluster_m % 2:
        raise Refused(f"a cluster {cluster_m} wide in M has no pairs of SMs: Cluster shape not divisible by MMA size")


def _dense(config: KernelConfig) -> Mainloop:
    """sm100_umma_builder.inl, its static_asserts in their order."""
    a, b, (m, n, _) = config.a, config.b, config.mma_tile
    narrow = a.element in _NARROW and b.element in _NARROW
    for each in (a, b):
        needed = _alignment(each, min(a.bits, b.bits) < 8)
        if each.bits * each.alignment % needed:
            raise Refused(
                f"an operand is not aligned to {needed // 8} bytes: Could not build a collective for given parameters."
            )
    if not narrow and (a.element != b.element or a.element not in _WIDE):
        if a.element == b.element and a.element in ("int8_t", "uint8_t"):
            raise Unmodelled("no model for an Sm100 kernel of 8-bit integers")
        raise Refused(f"there is no MMA of {a.element} and {b.element}: Unsupported data type for ElementA")
    if narrow:
        _check_unpacked(config)
    umma.check_shape(m, n, config.two_sm)
    step = (16 if config.two_sm else 8) * (2 if narrow and not _k_major_b(config) else 1)
    if n % step:
        raise Refused(f"N = {n}: N-mode size should be a multiple of {step} between {step} and 256.")
    check_cluster(config)
    operands = _operands(config, (max(8, a.bits), max(8, b.bits)), 32 if narrow else 256 // a.bits)
    return Mainloop(operands, min(ACCUMULATORS, _accumulators(config)))


def _accumulators(config: KernelConfig) -> int:
    """Accumulators that tensor memory holds; at M = 64 on one SM two share its rows."""
    m, n, _ = config.cta_tile
    rows, columns = tensor_memory.ROWS, tensor_memory.COLUMNS
    if config.two_sm or m > 64:
        return rows * columns // (m * n)
    return columns // n * 2


def _block_scaled(config: KernelConfig, kind: str) -> Mainloop:
    """sm100_blockscaled_umma_builder.inl; `kind` is the schedule's word for the instruction: Nvf4 takes FP4 as it is,
    Mxf8f6f4 takes bytes, to which narrower elements are unpacked."""
    m, n, k = config.mma_tile
    vector = _check_block_scaled(config, kind)
    narrow = kind == "Mxf8f6f4"
    umma.check_block_scaled_shape(m, n, config.two_sm)
    if narrow:
        _check_unpacked(config)
    elif not (_k_major_a(config) and _k_major_b(config)):
        raise Refused("MX/NV_F4 only supports RowMajor A, and ColMajorB")
    check_cluster(config)
    bits = 8 if narrow else 4
    instruction_k = 32 if narrow else 64
    operands = _operands(config, (bits, bits), instruction_k)
    _check_scales(k, vector)
    extents = (config.cta_tile[0], round_up(n, SCALE_ROWS))
    scales = tuple(scale_factors(extent, k, vector, instruction_k // vector) for extent in extents)
    return Mainloop(operands, 1 if n == 256 else 2, scales)


def _check_scales(k: int, vector: int) -> None:
    """TMA loads whole blocks of scale factors (``TMA_SFA`` of the mainloop's Params)."""
    block = vector * SCALE_COLUMNS
    if k % block:
        words = (
            "TMA requires CTA_Tile and SLayout top-level size equivalence."
            if k < block
            else "Shape Divisibility Condition"
        )
        raise Refused(f"K = {k} is no multiple of {block}, the columns of a block of scale factors: {words}")


def _check_block_scaled(config: KernelConfig, kind: str) -> int:
    """``blockscaled::check_input_datatypes``; returns the number of elements to a scale factor."""
    a, b = config.a, config.b
    if a.scale is None or b.scale is None:
        raise Refused("the operands carry no scale factors that the Sm100 builder knows")
    for each in (a, b):
        if each.bits * each.alignment % 128:
            raise Refused("an operand is not aligned to 16 bytes: Could not build a collective for given parameters.")
    expected = 16 if kind == "Nvf4" else 32  # find_vector_size
    vectors = [expected if each.scale_vector is None else each.scale_vector for each in (a, b)]
    if a.scale != b.scale:
        raise Refused("Scale factor types for A and B should be the same.")
    if vectors[0] != vectors[1]:
        raise Refused("Scale factor vector size for A and B should be the same.")
    if a.scale not in ("float_ue8m0_t", "float_ue4m3_t"):
        raise Refused(f"{a.scale} cannot scale: Incorrect scale factor type")
    if a.element not in _NARROW or b.element not in _NARROW:
        raise Refused(f"{a.element} and {b.element} cannot be block-scaled: Incorrect input types")
    if (a.bits, b.bits) != (4, 4):
        if a.scale != "float_ue8m0_t":
            raise Refused(f"{a.element} and {b.element} scaled by {a.scale}: MX_F4F6F8 only supports ue8m0 SF type")
        if vectors[0] != 32:
            raise Refused("Incorrect SfVectorSize for MX_F4F6F8 is deduced.")
        if kind != "Mxf8f6f4":
            raise Refused("Incorrect Kernel Schedule Policy for Mx_F4F6F8 type inputs.")
    elif kind == "Mxf8f6f4" and a.scale != "float_ue8m0_t":
        raise Refused(f"FP4 scaled by {a.scale}: MX_F4F6F8 only supports ue8m0 SF type")
    elif vectors[0] != expected:
        raise Refused("Kernel Schedule policy doesn't match the scale factor vector size.")
    return vectors[0]


def _alignment(each: Operand, sub_byte: bool) -> int:
    """Bits that TMA needs an operand aligned to: ``get_input_alignment_bits``."""
    if sub_byte and each.bits in (4, 6):
        return 512 if each.bits == 4 else 768
    return 128


def _check_unpacked(config: KernelConfig) -> None:
    """``sm1xx_gemm_check_for_f8f6f4_mix8bit_requirement``: 4 and 6 bits are unpacked to bytes, 128 at a time.

    It means to ask for M or N where those are contiguous, but compares with plain layout tags; a grouped kernel's are
    pointers, so K it is."""
    k = config.mma_tile[2]
    for each in (config.a, config.b):
        if each.bits < 8 and k % 128:
            raise Refused(
                f"{each.element} is unpacked to bytes, 128 at a time, which do not divide K = {k}: "
                "TileSize and MNK Major does not met with MMA Mix 8-bit TMA load requirement"
            )


def _operands(config: KernelConfig, bits: tuple[int, int], instruction_k: int) -> tuple[umma.Operand, umma.Operand]:
    """A and B in shared memory, with elements of `bits`; an instruction takes `instruction_k` of K."""
    m, n, k = config.cta_tile
    n = n // 2 if config.two_sm else n
    a = umma.Operand("A", m, k, bits[0], not _k_major_a(config), instruction_k)
    b = umma.Operand("B", n, k, bits[1], not _k_major_b(config), instruction_k)
    for each in (a, b):
        each.atom()
    if k % instruction_k:
        raise Refused(f"K = {k} is no multiple of {instruction_k}: TileShape should be evenly divided by TiledMma")
    return a, b


def _k_major_a(config: KernelConfig) -> bool:
    return config.a.layout.rstrip("*") == "RowMajor"


def _k_major_b(config: KernelConfig) -> bool:
    return config.b.layout.rstrip("*") == "ColumnMajor"


def _budget(config: KernelConfig, capacity: int, reserved: int, stage: int) -> Budget:
    """``sm100_compute_stage_count_or_override``, and ``..._blockscaled``."""
    count = config.stage_count
    if count.stages is not None:
        return Budget(capacity, reserved, 0, stage, count.stages)
    carveout = count.carveout or 0
    left = capacity - reserved - carveout
    return Budget(capacity, reserved, carveout, stage, int(left / stage))  # C++ division truncates toward zero


def _check_stages(budget: Budget, block_scaled: bool) -> None:
    """The builders want a stage; the dense mainloop asserts ``Stages >= 2`` (in other words), the block-scaled one not."""
    least, buffers = (1, "A, B, SFA, and SFB") if block_scaled else (2, "A, and B")
    if budget.stages >= least:
        return
    words = "Specialization requires Stages set to value 1 or more."
    if budget.stages < 1:
        words = f"Smem usage is too high. Can't create any SMEM buffers for {buffers}."
    raise Refused(
        f"{budget.stages} stage{'' if budget.stages == 1 else 's'} of {budget.stage:,} B fit the "
        f"{budget.capacity - budget.reserved - budget.carveout:,} B that CUTLASS divides: {words}",
        budget,
    )


def _tensors(mainloop: Mainloop, stages: int) -> Layout:
    """``CollectiveMma::TensorStorage``."""
    members = [
        operand(f"mainloop.{each.name}", each.name, stages * each.rows * each.k, each.bits, ALIGNMENT)
        for each in mainloop.operands
    ]
    return struct([*members, *scale_storage(mainloop.scales, stages)], align=128)


def scale_storage(scales: Sequence[ScaleFactors], stages: int) -> list[Layout]:
    """The arrays of A's and B's scale factors, for so many stages."""
    return [
        operand(f"mainloop.{name}", name, each.stored(stages), 8, ALIGNMENT)
        for name, each in zip(("SFA", "SFB"), scales, strict=False)
    ]
