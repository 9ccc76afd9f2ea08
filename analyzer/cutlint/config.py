"""`KernelConfig`: what one instantiation asks CUTLASS's collective builders for.

Everything is taken from the evaluated kernel type, by the position of the builders' template parameters
(cutlass/gemm/collective/collective_builder_decl.hpp, cutlass/epilogue/collective/collective_builder.hpp), so a launcher
that renames its aliases or changes one of them gives what it then says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from cutlint.evaluate import ELEMENT_BITS, Type, Value
from cutlint.expression import NotUnderstood

Shape = tuple[int, int, int]


class Operand(msgspec.Struct, frozen=True):
    """A or B of the mainloop: its element, and for block scaling the scale factor's type.

    `scale_vector` is the number of elements that share one scale factor where the operand's type says so
    (``nv_float4_t``: 16, ``mx_float8_t``: 32); None where the kernel schedule decides.
    """

    element: str
    layout: str
    alignment: int
    scale: str | None = None
    scale_vector: int | None = None

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


class EpilogueConfig(msgspec.Struct, frozen=True):
    """The epilogue builder's arguments. `tile` is the epilogue subtile if given, None for ``EpilogueTileAuto``."""

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

    @property
    def output_element(self) -> str:
        """What the epilogue writes: D, or where D is void the element that the fusion writes itself."""
        if self.d.element == "void" and self.fusion is not None and len(self.fusion.arguments) > 1:
            return str(self.fusion.arguments[1])
        return self.d.element


class KernelConfig(msgspec.Struct, frozen=True):
    """One instantiation as the builders see it.

    `mma_tile` is the tile given to the builders; `cta_tile` the part of it that one CTA works on (half of M where two
    SMs share an MMA). `cluster` holds None for a mode chosen at run time. `kernel` is the GEMM kernel's template.
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
        if self.a.scale is None:
            return None
        prefix = "nvfp" if self.a.scale == "float_ue4m3_t" else "mxfp"
        a, b = f"{prefix}{self.a.bits}", f"{prefix}{self.b.bits}"
        return a if a == b else f"{a}×{b}"


def element_bits(element: str) -> int:
    if element not in ELEMENT_BITS:
        raise NotUnderstood(f"the element type '{element}' is not known to cutlint")
    return ELEMENT_BITS[element]


def fusion_name(operation: Type | None) -> str:
    """NONE, FINALIZE or ACTIVATION, by the fusion operation the epilogue is built with."""
    if operation is None or operation.name in ("LinearCombination", "ScaledAcc"):
        return "NONE"
    if operation.name.endswith("Scatter"):
        return "FINALIZE"
    return "ACTIVATION" if "EltAct" in operation.name else operation.name


def kernel_config(kernel: Type) -> KernelConfig:
    """The configuration that a kernel type asks for.

    Raises:
        NotUnderstood: where the kernel is not built by CUTLASS's collective builders in the way known here.
    """
    if len(kernel.arguments) < 3:
        raise NotUnderstood(f"{kernel.name} has {len(kernel.arguments)} template arguments, at least 3 are needed")
    mainloop = _builder(kernel.arguments[1], 12, "mainloop")
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
    )


def epilogue_config(collective: Value) -> EpilogueConfig:
    """The epilogue builder's arguments from ``CollectiveBuilder<...>::CollectiveOp``."""
    given = _builder(collective, 14, "epilogue")
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
    )


def _builder(value: Value, least: int, what: str) -> tuple[Value, ...]:
    owner = value.owner if isinstance(value, Type) and value.name == "CollectiveOp" else None
    if owner is None or owner.name != "CollectiveBuilder":
        name = owner.name if owner is not None else str(value)[:80]
        raise NotUnderstood(f"the {what} is not built by CUTLASS's CollectiveBuilder but by {name}")
    if len(owner.arguments) < least:
        raise NotUnderstood(f"the {what}'s CollectiveBuilder has {len(owner.arguments)} arguments, {least} are needed")
    return owner.arguments


def _name(value: Value) -> str:
    if isinstance(value, Type):
        return str(value)
    raise NotUnderstood(f"'{value}' where a type is expected")


def _number(value: Value) -> int:
    if isinstance(value, int):
        return int(value)
    raise NotUnderstood(f"'{value}' where a number is expected")


def _arch(value: Value) -> int:
    match = re.fullmatch(r"Sm(\d+)a?", _name(value))
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
    element = value
    if value.name in _SCALED and value.arguments:
        scale, vector = _SCALED[value.name]
        element = _inner(value.arguments[0])
    elif value.name == "Shape" and len(value.arguments) in (2, 3):  # cute::tuple<Element, ScaleFactor[, Int<V>]>
        element = _inner(value.arguments[0])
        scale = _name(value.arguments[1])
        vector = _number(value.arguments[2]) if len(value.arguments) == 3 else None
    operand = Operand(str(element), _name(layout), _number(alignment), scale, vector)
    element_bits(operand.element)
    return operand


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
            return StageCount(stages=_number(value.arguments[0]))
        if value.name == "StageCountAuto":
            return StageCount(carveout=0)
        if value.name == "StageCountAutoCarveout" and len(value.arguments) == 1:
            return StageCount(carveout=_number(value.arguments[0]))
    raise NotUnderstood(f"'{value}' is not a stage-count type that cutlint knows")
