"""`KernelConfig`: what one instantiation asks CUTLASS's collective builders for.

Everything is taken from the evaluated kernel type, by the position of the builders' template parameters
(cutlass/gemm/collective/collective_builder_decl.hpp, cutlass/epilogue/collective/collective_builder.hpp), so a launcher
that renames its aliases or changes one of them gives what it then says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from cutlint.evaluate import ELEMENT_BITS, Type, Value
from cutlint.expression import NotUnderstood

Shape = tuple[int, int, int]
MAX_STAGES = 1000  # each has two barriers of 8 B and a slice: no shared memory holds as many


class Operand(msgspec.Struct, frozen=True):
    """A or B of the mainloop: its element, and for block scaling and mixed input the scale factor's type.

    `scale_vector` is the number of elements that share one scale factor where the operand's type says so
    (``nv_float4_t``: 16, ``mx_float8_t``: 32); None where the kernel schedule decides. `zero` is the type of the zero points
    of weights that have them; `packed_scales` the number of scales of a row that are kept as one element.
    """

    element: str
    layout: str
    alignment: int
    scale: str | None = None
    scale_vector: int | None = None
    zero: str | None = None
    packed_scales: int = 1

    @property
    def bits(self) -> int:
        return element_bits(self.element)


class StageCount(msgspec.Struct, frozen=True):
    """The builder's stage-count argument: ``StageCount<N>``, or automatic with `carveout` bytes set aside (both None:
    automatic, with a carveout that is not known)."""

    stages: int | None = None
    carveout: int | None = None

    def __str__(self) -> str:
        if self.stages is not None:
            return f"StageCount<{self.stages}>"
        if self.carveout is None:
            return "StageCountAutoCarveout<?>"
        return f"StageCountAutoCarveout<{self.carveout}>" if self.carveout else "StageCountAuto"


class Output(msgspec.Struct, frozen=True):
    """C or D of the epilogue. `element` is ``void`` when there is none; `layout` is RowMajor or ColumnMajor."""

    element: str
    layout: str
    alignment: int

    @property
    def bits(self) -> int:
        return element_bits(self.element)

    @property
    def m_major(self) -> bool:
        return self.layout == "ColumnMajor"


class EpilogueConfig(msgspec.Struct, frozen=True, cache_hash=True):
    """The epilogue builder's arguments. `tile` is the epilogue subtile if given, None for ``EpilogueTileAuto``;
    `prebuilt_d` says whether D's tensor maps are built beforehand, and so are not in shared memory."""

    arch: int
    op_class: str
    mma_tile: Shape
    cluster: tuple[int | None, int | None, int | None]
    tile: tuple[int, int] | None
    accumulator: str
    c: Output
    d: Output
    schedule: str
    fusion: Type | None = None
    prebuilt_d: bool = False

    @property
    def output_element(self) -> str:
        """What the epilogue writes: D, or where D is void the element that the fusion writes itself."""
        if self.d.element == "void" and self.fusion is not None and len(self.fusion.arguments) > 1:
            return str(self.fusion.arguments[1])
        return self.d.element


class KernelConfig(msgspec.Struct, frozen=True, cache_hash=True):
    """One instantiation as the builders see it.

    `mma_tile` is the tile given to the builders; `cta_tile` the part of it that one CTA works on (half of M where two
    SMs share an MMA). `cluster` holds None for a mode chosen at run time. `kernel` is the GEMM kernel's template, `builder`
    that of its mainloop. `ctas_per_sm` is the number of CTAs that the kernel expects to reside on an SM, where it says.
    """

    arch: int
    op_class: str
    mma_tile: Shape
    cluster: tuple[int | None, int | None, int | None]
    a: Operand
    b: Operand
    accumulator: str
    stage_count: StageCount
    schedule: str
    epilogue: EpilogueConfig
    builder: str = "CollectiveBuilder"
    kernel: str = "GemmUniversal"
    scale_mode: str | None = None
    ctas_per_sm: int | None = None

    @property
    def resolved_schedule(self) -> str | None:
        """The schedule that the builder runs: its own choice for ``KernelScheduleAuto``, else what it is given; None where
        the choice is not known. For Auto a grouped block-scaled Sm120 kernel is cooperative (``IsCooperative`` and
        ``KernelSchedule`` in builders/sm120_blockscaled_mma_builder.inl)."""
        if self.schedule != "KernelScheduleAuto":
            return self.schedule
        if self.arch == 120 and self.grouped and self.op_class == "OpClassBlockScaledTensorOp":
            return "KernelPtrArrayTmaWarpSpecializedCooperativeBlockScaledSm120"
        return None

    @property
    def grouped(self) -> bool:
        return self.a.layout.endswith("*")

    @property
    def two_sm(self) -> bool:
        return "2Sm" in self.schedule

    @property
    def cta_tile(self) -> Shape:
        m, n, k = self.mma_tile
        return (m // 2 if self.two_sm else m, n, k)

    @property
    def dynamic_cluster(self) -> bool:
        return None in self.cluster

    @property
    def swap_ab(self) -> bool:
        """The launchers transpose the output when they swap A and B: D is then column-major."""
        return self.epilogue.d.m_major

    @property
    def fusion(self) -> str:
        return fusion_name(self.epilogue.fusion)

    @property
    def block_scaling(self) -> str | None:
        """``nvfp4``, ``mxfp4``, ``mxfp8``, ``mxfp8×mxfp4`` or None, as the scale factors' type and the widths say."""
        if self.a.scale is None or self.builder != "CollectiveBuilder":
            return None
        prefix = "nvfp" if self.a.scale == "float_ue4m3_t" else "mxfp"
        a, b = f"{prefix}{self.a.bits}", f"{prefix}{self.b.bits}"
        return a if a == b else f"{a}×{b}"


def element_bits(element: str) -> int:
    if element not in ELEMENT_BITS:
        raise NotUnderstood(f"the element type '{element}' is not known to cutlint")
    return ELEMENT_BITS[element]


def fusion_name(operation: Type | None) -> str:
    """NONE, FINALIZE, ACTIVATION or BIAS, by the fusion operation the epilogue is built with."""
    if operation is None or operation.name in ("LinearCombination", "ScaledAcc"):
        return "NONE"
    if operation.name.endswith("Scatter"):
        return "FINALIZE"
    if operation.name == "PtrArrayPerTokenScaledAcc":
        return "NONE"
    if operation.name == "Sm90EVT":
        named = [each.name for each in operation.arguments if isinstance(each, Type)]
        return "BIAS" if "Sm90ColBroadcast" in named or "Sm90RowBroadcast" in named else "NONE"
    if operation.name == "EpilogueRouting":
        return "NONE" if operation.arguments[0] == Type("EpilogueOpDefault") else "ACTIVATION"
    return "ACTIVATION" if "EltAct" in operation.name else operation.name


def kernel_config(kernel: Type) -> KernelConfig:
    """The configuration that a kernel type asks for.

    Raises:
        NotUnderstood: where the kernel is not built by CUTLASS's collective builders in the way known here.
    """
    if kernel.name == FUSED_SM80:
        return _fused_sm80(kernel)
    if len(kernel.arguments) < 3:
        raise NotUnderstood(f"{kernel.name} has {len(kernel.arguments)} template arguments, at least 3 are needed")
    builder, mainloop = _builder(kernel.arguments[1], MAINLOOP_BUILDERS, "mainloop")
    arch, op_class, a, layout_a, align_a, b, layout_b, align_b, accumulator, tile, cluster, stages, schedule = (
        *mainloop[:12],
        mainloop[12] if len(mainloop) > 12 else Type("KernelScheduleAuto"),
    )
    return KernelConfig(
        arch=_arch(arch),
        op_class=_name(op_class),
        mma_tile=_shape3(tile),
        cluster=_cluster(cluster),
        a=_operand(a, layout_a, align_a),
        b=_operand(b, layout_b, align_b),
        accumulator=_name(accumulator),
        stage_count=_stage_count(stages),
        schedule=str(schedule),
        epilogue=epilogue_config(kernel.arguments[2]),
        builder=builder,
        kernel=kernel.name,
        scale_mode=_enumerator(mainloop[13]) if len(mainloop) > 13 else None,
        ctas_per_sm=_number(kernel.arguments[3]) if kernel.name == SINGLE_WARPGROUP else None,
    )


FUSED_SM80 = "Fused_Moe_Kernel_sm80"  # cutlass_extensions/gemm/kernel/fused_moe_kernel.cuh
SINGLE_WARPGROUP = "SingleWarpgroupPersistentGemm"  # .../sm90_gemm_array_tma_single_warpgroup_persistent.hpp
ADAPTER = "Sm90TmaWarpSpecializedAdapter"  # cutlass/epilogue/collective/detail.hpp
PER_TOKEN_SCALE = "SmemEpilogueArrayPerTokenScale"  # cutlass_extensions/epilogue/collective/


def _fused_sm80(kernel: Type) -> KernelConfig:
    """The fused kernel of Sm80, which no builder builds: elements of input, weight and output, tile, stages, activation."""
    if len(kernel.arguments) != 8:
        raise NotUnderstood(f"{kernel.name} has {len(kernel.arguments)} template arguments, 8 are known")
    act, weight, output, m, n, k, stages, activation = kernel.arguments
    tile = (_positive(m), _positive(n), _positive(k))
    a, b = (Operand(_name(each), layout, 8) for each, layout in ((act, "RowMajor"), (weight, "ColumnMajor")))
    void, d = Output("void", "RowMajor", 8), Output(_name(output), "RowMajor", 8)
    for each in (a.element, b.element, d.element):
        element_bits(each)
    routed = activation if isinstance(activation, Type) else None
    epilogue = EpilogueConfig(80, "OpClassTensorOp", tile, (1, 1, 1), None, "float", void, d, kernel.name, routed)
    count = StageCount(stages=_number(stages))
    return KernelConfig(
        80, "OpClassTensorOp", tile, (1, 1, 1), a, b, "float", count, kernel.name, epilogue, kernel.name, kernel.name
    )


@lru_cache(maxsize=4096)  # asked twice for each kernel: for its own sake and for its carveout
def epilogue_config(collective: Value) -> EpilogueConfig:
    """The epilogue builder's arguments from ``CollectiveBuilder<...>::CollectiveOp``."""
    if isinstance(collective, Type) and collective.name == ADAPTER and len(collective.arguments) == 1:
        return _per_token_scale(collective.arguments[0])
    _, given = _builder(collective, _EPILOGUE_BUILDERS, "epilogue")
    arch, op_class, tile, cluster, sub_tile, accumulator, _compute = given[:7]
    return EpilogueConfig(
        arch=_arch(arch),
        op_class=_name(op_class),
        mma_tile=_shape3(tile),
        cluster=_cluster(cluster),
        tile=None if sub_tile == Type("EpilogueTileAuto") else _shape2(sub_tile),
        accumulator=_name(accumulator),
        c=_output(*given[7:10]),
        d=_output(*given[10:13]),
        schedule=_name(given[13]),
        fusion=given[14] if len(given) > 14 and isinstance(given[14], Type) else None,
        prebuilt_d=len(given) > 15 and bool(_number(given[15])),
    )


def _per_token_scale(epilogue: Value) -> EpilogueConfig:
    """``SmemEpilogueArrayPerTokenScale<TileShape, ElementC, StrideC, ElementD, StrideD, Accumulator, Compute>``."""
    if not isinstance(epilogue, Type) or epilogue.name != PER_TOKEN_SCALE or len(epilogue.arguments) < 7:
        raise NotUnderstood(f"the epilogue {str(epilogue)[:80]} is not one that cutlint knows")
    tile, c, stride_c, d, stride_d, accumulator = epilogue.arguments[:6]
    outputs = []
    for element, stride in ((c, stride_c), (d, stride_d)):
        layout = stride.arguments[0] if isinstance(stride, Type) and stride.name == "Stride" else stride
        outputs.append(_output(element, layout, 1))
    return EpilogueConfig(
        arch=90,
        op_class="OpClassTensorOp",
        mma_tile=_shape3(tile),
        cluster=(1, 1, 1),
        tile=None,
        accumulator=_name(accumulator),
        c=outputs[0],
        d=outputs[1],
        schedule=PER_TOKEN_SCALE,
    )


# Templates that build a mainloop, and how many arguments each may have: CUTLASS's own (the epilogue's of the same name has
# 14 or 15), and those of cutlass_extensions/gemm/collective/
MAINLOOP_BUILDERS: Mapping[str, tuple[int, ...]] = {
    "CollectiveBuilder": (12, 13),
    "CollectiveBuilderMixedInput": (13, 14),
    "CollectiveBuilderInterleaved": (13,),
}
_EPILOGUE_BUILDERS: Mapping[str, tuple[int, ...]] = {
    "CollectiveBuilder": (14, 15),
    "MixedInputSm90TmaEpilogueBuilder": (15, 16),
}


def _builder(value: Value, known: Mapping[str, tuple[int, ...]], what: str) -> tuple[str, tuple[Value, ...]]:
    """The builder's name and arguments."""
    owner = value.owner if isinstance(value, Type) and value.name == "CollectiveOp" else None
    if owner is None or owner.name not in known:
        name = owner.name if owner is not None else str(value)[:80]
        raise NotUnderstood(f"the {what} is not built by CUTLASS's CollectiveBuilder but by {name}")
    counts = known[owner.name]
    if len(owner.arguments) < min(counts):
        raise NotUnderstood(f"the {what}'s {owner.name} has {len(owner.arguments)} arguments, {min(counts)} are needed")
    return owner.name, owner.arguments


def _enumerator(value: Value) -> str:
    if isinstance(value, Type):
        return value.name
    raise NotUnderstood(f"'{value}' where an enumerator is expected")


def _name(value: Value) -> str:
    if isinstance(value, Type):
        return str(value)
    raise NotUnderstood(f"'{value}' where a type is expected")


def _number(value: Value) -> int:
    if isinstance(value, int):
        return int(value)
    raise NotUnderstood(f"'{value}' where a number is expected")


_ARCH = re.compile(r"Sm(\d+)a?")


def _arch(value: Value) -> int:
    match = _ARCH.fullmatch(_name(value))
    if match is None:
        raise NotUnderstood(f"'{value}' is not an architecture tag that cutlint knows")
    return int(match.group(1))


def _modes(value: Value, count: int) -> tuple[Value, ...]:
    if isinstance(value, Type) and value.name == "Shape" and len(value.arguments) == count:
        return value.arguments
    raise NotUnderstood(f"'{value}' is not a shape of {count} modes")


def _shape3(value: Value) -> Shape:
    m, n, k = (_positive(each) for each in _modes(value, 3))
    return m, n, k


def _shape2(value: Value) -> tuple[int, int]:
    m, n = (_positive(each) for each in _modes(value, 2))
    return m, n


def _positive(value: Value) -> int:
    number = _number(value)
    if not 0 < number <= 1 << 20:
        raise NotUnderstood(f"{number} is not the extent of a tile")
    return number


def _cluster(value: Value) -> tuple[int | None, int | None, int | None]:
    m, n, k = (None if isinstance(each, Type) else _positive(each) for each in _modes(value, 3))
    return m, n, k


# Block-scaled operands (detail::blockscaled::blockscaled_type in builders/sm1xx_common.inl): scale type, vector
_SCALED: Mapping[str, tuple[str, int]] = {
    "nv_float4_t": ("float_ue4m3_t", 16),
    "mx_float4_t": ("float_ue8m0_t", 32),
    "mx_float6_t": ("float_ue8m0_t", 32),
    "mx_float8_t": ("float_ue8m0_t", 32),
}


def _operand(value: Value, layout: Value, alignment: Value) -> Operand:
    if not isinstance(value, Type):
        raise NotUnderstood(f"'{value}' is not an element type")
    scale: str | None = None
    vector: int | None = None
    zero: str | None = None
    packed = 1
    element = value
    if value.name in _SCALED and value.arguments:
        scale, vector = _SCALED[value.name]
        element = _inner(value.arguments[0])
    elif value.name == "Shape" and len(value.arguments) in (2, 3):  # cute::tuple<Element, Scale[, Int<V> or Zero]>
        element = _inner(value.arguments[0])
        packed, scale = _packed(value.arguments[1])
        last = value.arguments[2] if len(value.arguments) == 3 else None
        vector, zero = (
            (None, _name(last)) if isinstance(last, Type) else (None if last is None else _number(last), None)
        )
    operand = Operand(str(element), _name(layout), _number(alignment), scale, vector, zero, packed)
    element_bits(operand.element)
    return operand


def _packed(value: Value) -> tuple[int, str]:
    """How many scales make one element, and their type: ``cutlass::Array<Scale, N>`` or the scale's type itself."""
    if isinstance(value, Type) and value.name == "Array" and len(value.arguments) == 2:
        return _number(value.arguments[1]), _name(value.arguments[0])
    return 1, _name(value)


def _inner(value: Value) -> Type:
    if isinstance(value, Type):
        return value
    raise NotUnderstood(f"'{value}' is not an element type")


def _output(element: Value, layout: Value, alignment: Value) -> Output:
    output = Output(_name(element), _name(layout).rstrip("*"), _number(alignment))
    element_bits(output.element)
    if output.layout not in ("RowMajor", "ColumnMajor"):
        raise NotUnderstood(f"'{output.layout}' is not a layout of C or D that cutlint knows")
    return output


def _stage_count(value: Value) -> StageCount:
    if isinstance(value, Type):
        if value.name == "StageCount" and len(value.arguments) == 1:
            stages = _number(value.arguments[0])
            if not 0 <= stages <= MAX_STAGES:
                raise NotUnderstood(f"{stages} is not a number of stages")
            return StageCount(stages=stages)
        if value.name == "StageCountAuto":
            return StageCount(carveout=0)
        if value.name == "StageCountAutoCarveout" and len(value.arguments) == 1:
            return StageCount(carveout=_number(value.arguments[0]))
    raise NotUnderstood(f"'{value}' is not a stage-count type that cutlint knows")
