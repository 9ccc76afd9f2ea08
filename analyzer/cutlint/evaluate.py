"""Evaluation of alias chains: what a `using` or `constexpr` of a launcher stands for in one instantiation.

Types are symbols: `cutlass::gemm::collective::StageCount<2>` becomes ``Type("StageCount", (2,))``. Names outside the
launcher stay symbols too (cutlint never needs to know what a `KernelScheduleAuto` is to report it); a few traits of
the C++ library, CuTe and CUTLASS are computed. Namespaces are dropped: none of the names that decide a kernel's
shared memory exists twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Union

import msgspec

from cutlint.expression import (
    Call,
    Expression,
    Literal,
    Name,
    NotUnderstood,
    Operation,
    Part,
    Unreadable,
    fitting,
    names,
)

Value = Union["Type", int, bool, str]


class Type(msgspec.Struct, frozen=True, cache_hash=True):
    """A type or an enumerator as a symbol. `owner` is the type it is a member of, for ``Owner::name``."""

    name: str
    arguments: tuple[Value, ...] = ()
    owner: Type | None = None
    pointers: int = 0

    def __str__(self) -> str:
        arguments = f"<{', '.join(str(each) for each in self.arguments)}>" if self.arguments else ""
        owner = f"{self.owner}::" if self.owner is not None else ""
        return f"{owner}{self.name}{arguments}{'*' * self.pointers}"


class Definition(msgspec.Struct, frozen=True):
    """A ``using`` or ``constexpr``: its name, what it is, its template parameters if it has any, and where it is."""

    name: str
    value: Expression
    parameters: tuple[str, ...] = ()
    span: tuple[int, int] = (0, 0)


class ClassTemplate(msgspec.Struct, frozen=True):
    """A class template or one of its partial specializations: what its `members` are, in terms of `parameters`.
    `pattern` holds the arguments that a specialization is for; None for the primary template."""

    parameters: tuple[str, ...]
    pattern: tuple[Expression, ...] | None
    members: Mapping[str, Definition]


Sizeof = Callable[[Type], int]


class Outside:
    """What lies outside the definitions of a `Scope`. This one knows nothing; those who know more derive from it."""

    def struct(self, name: str) -> Mapping[str, Definition]:
        """The members of the struct `name`; empty where there is no such one."""
        return {}

    def enumerators(self, name: str) -> frozenset[str]:
        """The enumerators of the enumeration `name`; empty where it is not known."""
        return frozenset()

    def constant(self, name: str) -> Definition | None:
        """The constant `name` of a namespace."""
        return None

    def templates(self, name: str) -> tuple[ClassTemplate, ...]:
        """The class template `name`: its specializations and itself; empty where it is not known."""
        return ()


NOTHING = Outside()

VOID = Type("void")
_WIDE = frozenset({"int", "unsigned", "unsigned int", "size_t", "long", "int32_t", "uint32_t", "int64_t", "uint64_t"})
# Namespaces that most names of the launchers begin with: nothing else is called so, and asking the headers takes long
_NAMESPACES = frozenset(
    {"cutlass", "cute", "std", "gemm", "collective", "kernel", "epilogue", "fusion", "layout", "arch"}
)
_CONSTANT = re.compile(r"k[A-Z]\w*|[a-z]\w*_size")  # as CUTLASS and its extensions name constants
_STATIC_INTEGER = re.compile(r"_(\d+)")  # cute::_128
_ARCH_TAG = re.compile(r"Sm(\d+)")  # cutlass::arch::Sm120, whose kMinComputeCapability is its number

# sizeof_bits of the element types that occur (cutlass/numeric_size.h, cutlass/float_subbyte.h, cute/numeric/)
ELEMENT_BITS: dict[str, int] = {
    "void": 0, "bool": 1, "half_t": 16, "half": 16, "bfloat16_t": 16, "nv_bfloat16": 16, "float": 32, "double": 64,
    "tfloat32_t": 32, "float_e4m3_t": 8, "float_e5m2_t": 8, "float_ue8m0_t": 8, "float_ue4m3_t": 8,
    "float_e2m1_t": 4, "float_e2m3_t": 6, "float_e3m2_t": 6, "int8_t": 8, "uint8_t": 8, "int4b_t": 4, "uint4b_t": 4,
    "int32_t": 32, "int": 32, "uint32_t": 32, "int64_t": 64, "uint64_t": 64, "int16_t": 16, "uint16_t": 16,
}  # fmt: skip

# TllmToCutlassTypeAdapter (cutlass_kernels/cutlass_type_conversion.h): CUDA's name of an element to CUTLASS's
CUTLASS_ELEMENT: dict[str, str] = {
    "half": "half_t", "nv_bfloat16": "bfloat16_t", "nv_fp8_e4m3": "float_e4m3_t", "nv_fp8_e5m2": "float_e5m2_t",
    "nv_fp4_e2m1": "float_e2m1_t",
}  # fmt: skip

_TRANSPOSED = {"RowMajor": "ColumnMajor", "ColumnMajor": "RowMajor"}  # cutlass/layout/matrix.h

# Different spellings of one type: typedefs in cuda_bf16.h and cuda_fp8.h, and fp4_compat.h's Fp4Type
_SAME_TYPE: dict[str, str] = {
    "__nv_bfloat16": "nv_bfloat16", "__half": "half", "__nv_fp8_e4m3": "nv_fp8_e4m3", "__nv_fp8_e5m2": "nv_fp8_e5m2",
    "__nv_fp4_e2m1": "nv_fp4_e2m1", "Fp4Type": "nv_fp4_e2m1", "signed int": "int", "tuple": "Shape",
}  # fmt: skip


class Shared:
    """What the scopes of one launcher have evaluated, for all of them: `values` of definitions, under what tells apart the
    instantiations in which they differ; `members` of types; and for each of the mappings of definitions (by identity: they
    live as long as the launcher) the `constants`, names in which nothing depends on the scope (None for the others)."""

    def __init__(self) -> None:
        self.values: dict[object, Value] = {}
        self.members: dict[tuple[Type, str], Value] = {}
        self._constants: dict[int, dict[Name, Value | None]] = {}

    def constants(self, definitions: Mapping[str, Definition]) -> dict[Name, Value | None]:
        return self._constants.setdefault(id(definitions), {})


class Scope:
    """Names and their meaning for one instantiation.

    `parameters` are the launcher's macro (or template) parameters with their values, as expressions or evaluated;
    `definitions` the aliases and constants, the launcher's own before those of its file; `outside` knows the headers;
    `sizeof` is asked for the size in bytes of a type that cutlint models. `shared` is common to the scopes with the same
    `definitions`, names of parameters, headers and sizes; `key` makes of a name what its value is kept under there.
    """

    def __init__(
        self,
        definitions: Mapping[str, Definition],
        parameters: Mapping[str, Expression | Value],
        outside: Outside = NOTHING,
        sizeof: Sizeof | None = None,
        shared: Shared | None = None,
        key: Callable[[str], object] | None = None,
    ) -> None:
        self._definitions = definitions
        self._parameters = parameters
        self._outside = outside
        self._sizeof = sizeof
        self._shared = Shared() if shared is None else shared
        self._constants = {} if shared is None else shared.constants(definitions)
        self._key = key
        self._values: dict[str, Value] = {}
        self._given: dict[str, Value] = {}  # the parameters' values
        self._open: set[str] = set()
        self._depth = 0

    def lookup(self, name: str) -> Value:
        """The value of the alias or constant `name`."""
        known = self._known(name)
        if known is not None:
            return known
        definition = self._definitions[name]
        if name in self._open:
            raise NotUnderstood(f"'{name}' refers to itself", definition.span[0])
        self._open.add(name)
        try:
            value = self._values[name] = self.evaluate(definition.value)
        finally:
            self._open.discard(name)
        if self._key is not None:
            self._shared.values[self._key(name)] = value
        return value

    def _known(self, name: str) -> Value | None:
        """The value of the alias or constant `name` if it has been evaluated before."""
        value = self._values.get(name)
        if value is None and self._key is not None:
            value = self._shared.values.get(self._key(name))
            if value is not None:
                self._values[name] = value
        return value

    def evaluate(self, expression: Expression) -> Value:
        """The value of `expression`.

        Raises:
            NotUnderstood: for what cannot be evaluated, with the byte offset in the launcher.
        """
        if isinstance(expression, Name):
            first = expression.parts[0]
            if first.arguments is None and first.text in self._definitions:
                if len(expression.parts) == 1 and first.text not in self._parameters:  # as most are
                    known = self._known(first.text)
                    if known is not None:
                        return known
            elif (constant := self._constants.get(expression)) is not None:
                return constant
        elif isinstance(expression, Literal):
            return expression.value
        self._depth += 1
        if self._depth > 250:
            raise NotUnderstood("aliases nested too deep", expression.offset)
        try:
            if isinstance(expression, Operation):
                return self._operation(expression)
            if isinstance(expression, Unreadable):
                raise NotUnderstood(expression.message, expression.offset)
            if isinstance(expression, Call):
                return self._call(expression)
            value = self._name(expression)
            if expression not in self._constants:
                varies = any(each in self._definitions or each in self._parameters for each in names(expression))
                self._constants[expression] = None if varies else value
            return value
        finally:
            self._depth -= 1

    # -- names

    def _name(self, name: Name) -> Value:
        first = name.parts[0]
        value: Value | None = None
        rest = name.parts[1:]
        if first.text == "decltype" and first.arguments:
            value = self.evaluate(first.arguments[0])
        elif first.arguments is None and first.text in self._parameters:
            value = self._parameter(first.text)
        elif first.text in self._definitions:
            definition = self._definitions[first.text]
            if definition.parameters:
                value = self._apply(definition, first, name.offset)
            elif first.arguments is None:
                value = self.lookup(first.text)
        if value is None:
            value, rest = self._external(name)
        for part in rest:
            value = self._member(value, part, name.offset)
        return value

    def _parameter(self, name: str) -> Value:
        if name not in self._given:
            given = self._parameters[name]
            self._given[name] = given if isinstance(given, (Type, int, str)) else self.evaluate(given)
        return self._given[name]

    def _external(self, name: Name) -> tuple[Value, tuple[Part, ...]]:
        """A name from outside the launcher: namespaces dropped, members (``::type``, ``::value``) kept for later."""
        parts = name.parts
        for index, part in enumerate(parts):
            last = index == len(parts) - 1
            if part.text in _NAMESPACES and not last:
                continue
            if (
                part.arguments is not None
                or last
                or _ARCH_TAG.fullmatch(part.text)
                or parts[index + 1].text in self._outside.struct(part.text)
                or parts[index + 1].text in self._outside.enumerators(part.text)
            ):
                text = part.text
                if last and index and text in self._parameters:  # cutlass::arch::ArchTag_
                    return self._parameter(text), ()
                arguments = part.arguments
                if text == "conditional_t" and arguments is not None and len(arguments) == 3:
                    chosen = arguments[1 if _truth(self.evaluate(arguments[0]), name.offset) else 2]
                    return self.evaluate(chosen), parts[index + 1 :]  # the other one need not be understood
                if arguments is None and last and _CONSTANT.fullmatch(text):
                    constant = self._outside.constant(text)
                    if constant is not None:
                        return self._inner({text: constant}, {}).lookup(text), ()
                evaluated = () if arguments is None else tuple(self.evaluate(each) for each in arguments)
                return self._template(text, evaluated, arguments is not None, name.offset), parts[index + 1 :]
        raise NotUnderstood("an empty name", name.offset)

    def _apply(self, definition: Definition, part: Part, offset: int) -> Value:
        """An alias template or variable template with its arguments."""
        given = [self.evaluate(each) for each in part.arguments or ()]
        if len(given) != len(definition.parameters):
            raise NotUnderstood(f"'{definition.name}' takes {len(definition.parameters)} arguments", offset)
        bound = dict(zip(definition.parameters, given, strict=True))
        inner = self._inner(self._definitions, {**self._parameters, **bound})
        inner._open = self._open
        return inner.evaluate(definition.value)

    def _inner(
        self,
        definitions: Mapping[str, Definition],
        parameters: Mapping[str, Expression | Value],
        shared: Shared | None = None,
    ) -> Scope:
        """A scope with other names, as deep as this one."""
        inner = Scope(definitions, parameters, self._outside, self._sizeof, shared)
        inner._depth = self._depth
        return inner

    def _member(self, owner: Value, part: Part, offset: int) -> Value:
        if not isinstance(owner, Type):
            raise NotUnderstood(f"'{part.text}' asked of a value", offset)
        text = part.text
        if text in self._parameters:  # EpilogueFusion::FUSION_
            named = self._parameter(text)
            text = named.name if isinstance(named, Type) else str(named)
        if part.arguments is not None:
            return self._member_of(owner, text, part, offset)
        known = self._shared.members.get((owner, text))
        if known is None:
            known = self._shared.members[owner, text] = self._member_of(owner, text, part, offset)
        return known

    def _member_of(self, owner: Type, text: str, part: Part, offset: int) -> Value:
        struct = self._outside.struct(owner.name)
        if text in struct:  # its members see one another, and nothing of the launcher
            arguments = None
            bound: dict[str, Expression | Value] = {}
            if part.arguments is not None:
                bound = {f"{text}@{index}": self.evaluate(each) for index, each in enumerate(part.arguments)}
                arguments = tuple(Name((Part(each),), offset) for each in bound)
            return self._inner(struct, bound, self._shared).evaluate(Name((Part(text, arguments),), offset))
        if owner.arguments and owner.owner is None and (found := self._specialization(owner, offset)) is not None:
            template, bound = found
            if text in template.members:
                return self._inner(template.members, bound, self._shared).evaluate(Name((part,), offset))
        return _trait_member(owner, text, tuple(self.evaluate(each) for each in part.arguments or ()), offset)

    # -- templates and traits

    def _specialization(self, of: Type, offset: int) -> tuple[ClassTemplate, dict[str, Expression | Value]] | None:
        """The class template's specialization that the arguments of `of` choose, with its parameters' values."""
        chosen: list[tuple[ClassTemplate, dict[str, Expression | Value]]] = []
        primary: tuple[ClassTemplate, dict[str, Expression | Value]] | None = None
        for template in self._outside.templates(of.name):
            if template.pattern is None:
                if len(template.parameters) == len(of.arguments):
                    primary = template, dict(zip(template.parameters, of.arguments, strict=True))
            elif (bound := self._matched(template, of)) is not None:
                chosen.append((template, bound))
        if len(chosen) > 1:
            raise NotUnderstood(f"more than one specialization of {of.name} fits", offset)
        return chosen[0] if chosen else primary

    def _matched(self, template: ClassTemplate, of: Type) -> dict[str, Expression | Value] | None:
        """The parameters' values if the arguments of `of` are what the specialization is for."""
        assert template.pattern is not None
        if len(template.pattern) != len(of.arguments):
            return None
        bound: dict[str, Expression | Value] = {}
        for pattern, given in zip(template.pattern, of.arguments, strict=True):
            name = pattern.parts[0].text if isinstance(pattern, Name) and len(pattern.parts) == 1 else None
            if name in template.parameters:
                assert name is not None
                if bound.setdefault(name, given) != given:
                    return None
            elif self._inner({}, {}).evaluate(pattern) != given:
                return None
        return bound

    def _template(self, name: str, arguments: tuple[Value, ...], is_template: bool, offset: int) -> Value:
        if not is_template:
            if (literal := _STATIC_INTEGER.fullmatch(name)) is not None:
                return int(literal.group(1))
            return Type(_SAME_TYPE.get(name, name))
        if name in _TRAITS:
            return _trait(name, arguments, offset)
        if name in ("Int", "C", "constant", "integral_constant") and arguments:
            return arguments[-1]
        return _light(Type(_SAME_TYPE.get(name, name), arguments), offset)

    # -- operators and calls

    def _operation(self, expression: Operation) -> Value:
        operator, operands = expression.operator, expression.operands
        if operator == "?:":
            return self.evaluate(operands[1 if _truth(self.evaluate(operands[0]), expression.offset) else 2])
        if operator in ("&&", "and", "||", "or"):
            left = _truth(self.evaluate(operands[0]), expression.offset)
            if left == (operator in ("||", "or")):
                return left
            return _truth(self.evaluate(operands[1]), expression.offset)
        left_value = self.evaluate(operands[0])
        if len(operands) == 1:
            return _unary(operator, left_value, expression.offset)
        right = self.evaluate(operands[1])
        if operator in ("==", "!="):
            return self._equal(left_value, right, expression.offset) == (operator == "==")
        return _binary(
            operator, _number(left_value, expression.offset), _number(right, expression.offset), expression.offset
        )

    def _equal(self, left: Value, right: Value, offset: int) -> bool:
        for each in (left, right):
            if isinstance(each, Type) and each.owner is not None:
                listed = self._outside.enumerators(each.owner.name)
                if listed and each.name not in listed:
                    raise NotUnderstood(f"'{each.name}' is not an enumerator of {each.owner.name}", offset)
        return _same((left, right), offset)

    def _call(self, call: Call) -> Value:
        last = call.callee.parts[-1]
        if last.text == "sizeof" and len(call.arguments) == 1:
            return self._size(self.evaluate(call.arguments[0]), call.offset)
        if last.text in ("static_cast", "decltype", "int", "size_t", "unsigned") and len(call.arguments) == 1:
            if last.text == "static_cast" and last.arguments and str(self.evaluate(last.arguments[0])) not in _WIDE:
                raise NotUnderstood("a cast to a width that may cut the value is not known to cutlint", call.offset)
            return self.evaluate(call.arguments[0])
        values = tuple(self.evaluate(each) for each in call.arguments)
        if call.callee.parts[0].text in self._definitions or call.braces:
            return self._name(call.callee)  # ClusterShape{}, is_same<A, B>{}
        function = _FUNCTIONS.get(last.text)
        if function is None:
            raise NotUnderstood(f"the function '{last.text}' is not known to cutlint", call.offset)
        template = tuple(self.evaluate(each) for each in last.arguments or ())
        if (
            not values
            or (len(values) != 2 and last.text not in _ONE_OR_MORE)
            or (last.text in _TAGGED and not template)
        ):
            raise NotUnderstood(f"'{last.text}' of {len(values)} arguments", call.offset)
        return function(template, values, call.offset)

    def _size(self, value: Value, offset: int) -> Value:
        if isinstance(value, Type):
            if value.pointers:
                return 8
            if value.name in ELEMENT_BITS and value.owner is None:
                return max(1, ELEMENT_BITS[value.name] // 8)
            if self._sizeof is not None:
                return self._sizeof(value)
        raise NotUnderstood(f"the size of '{value}' is not known to cutlint", offset)


def _trait_member(owner: Type, text: str, arguments: tuple[Value, ...], offset: int) -> Value:
    """``Owner::text`` where the owner is one of the traits kept as a symbol, or a type cutlint treats as opaque."""
    if text == "value" and owner.name == "sizeof_bits":
        return _bits(owner.arguments, offset)
    if text == "value" and owner.name in ("is_same", "is_void"):
        return bool(_trait(f"{owner.name}_v", owner.arguments, offset))
    if text == "type" and owner.name == "conditional":
        return _conditional(owner.arguments, offset)
    if text == "type" and owner.name == "LayoutTranspose" and len(owner.arguments) == 1:
        layout = owner.arguments[0]
        if isinstance(layout, Type) and layout.name in _TRANSPOSED:
            return msgspec.structs.replace(layout, name=_TRANSPOSED[layout.name])
    if text == "type" and owner.name == "TllmToCutlassTypeAdapter" and owner.arguments:
        inner = owner.arguments[0]
        if isinstance(inner, Type) and not inner.pointers:
            return Type(CUTLASS_ELEMENT.get(inner.name, inner.name), inner.arguments, inner.owner)
    if text == "kMinComputeCapability" and (arch := _ARCH_TAG.fullmatch(owner.name)) is not None:
        return int(arch.group(1))
    return Type(text, arguments, owner)


MAX_PARTS = 10_000  # of a type: a kernel's has some hundred


def _light(value: Type, offset: int) -> Type:
    """`value`, if it is not one that doubles with every alias: such a type could not be compared or written."""
    count, stack = 0, [value]
    while stack:
        current = stack.pop()
        count += 1
        if count > MAX_PARTS:
            raise NotUnderstood(f"a type of more than {MAX_PARTS:,} parts", offset)
        stack.extend(each for each in (*current.arguments, current.owner) if isinstance(each, Type))
    return value


def _trait(name: str, arguments: tuple[Value, ...], offset: int) -> Value:
    """The trait `name` of `arguments`, if that is as many as it takes."""
    if len(arguments) != (2 if name == "is_same_v" else 1):
        raise NotUnderstood(f"'{name}' of {len(arguments)} arguments", offset)
    return _TRAITS[name](arguments, offset)


def _conditional(arguments: tuple[Value, ...], offset: int) -> Value:
    if len(arguments) != 3:
        raise NotUnderstood("conditional_t takes three arguments", offset)
    return arguments[1] if _truth(arguments[0], offset) else arguments[2]


def _bits(arguments: tuple[Value, ...], offset: int) -> int:
    element = arguments[0] if arguments else None
    if isinstance(element, Type) and element.name in ELEMENT_BITS:
        return ELEMENT_BITS[element.name]
    raise NotUnderstood(f"the width of '{element}' is not known to cutlint", offset)


def _stride(arguments: tuple[Value, ...], offset: int) -> Value:
    """A layout tag's stride: a pointer to one where the tag is a pointer (cutlass/detail/layout.hpp)."""
    tag = arguments[0]
    pointers = tag.pointers if isinstance(tag, Type) else 0
    return Type("Stride", arguments, None, pointers)


# Names of CUTLASS and of the launchers' traits that stand for themselves; anything else that is not resolved may be
# another name of something, so that "different" would be a guess
_SETTLED = re.compile(
    r"(Sm\d|Kernel|Epilogue|PtrArray|Tma|NoSmem|Grouped|Stage|OpClass|Row|Column|Collective|Gemm|LinearCombination)\w*"
)


def _same(arguments: tuple[Value, ...], offset: int) -> bool:
    """``is_same_v`` and ``==``.

    Raises:
        NotUnderstood: for a difference that rests on a name that cutlint could not resolve.
    """
    left, right = arguments
    if left == right:
        return True
    for each in (left, right):
        if isinstance(each, Type) and not _is_settled(each):
            raise NotUnderstood(f"'{each}' is not known to cutlint, so it cannot be compared", offset)
    return False


def _is_settled(value: Type) -> bool:
    name = value.name
    known = name in ELEMENT_BITS or name in CUTLASS_ELEMENT or name in CUTLASS_ELEMENT.values()
    return known or bool(value.arguments) or value.owner is not None or _SETTLED.fullmatch(name) is not None


def _remove_pointer(arguments: tuple[Value, ...], offset: int) -> Value:
    element = arguments[0]
    if isinstance(element, Type) and element.pointers:
        return msgspec.structs.replace(element, pointers=element.pointers - 1)
    return element


_TRAITS: dict[str, Callable[[tuple[Value, ...], int], Value]] = {
    "is_same_v": _same,
    "is_void_v": lambda arguments, offset: arguments[0] == VOID,
    "sizeof_bits_v": _bits,
    "remove_pointer_t": _remove_pointer,
    "is_pointer_v": lambda arguments, offset: isinstance(arguments[0], Type) and arguments[0].pointers > 0,
    "TagToStrideA_t": _stride,
    "TagToStrideB_t": _stride,
    "TagToStrideC_t": _stride,
    "remove_cvref_t": lambda arguments, offset: arguments[0],
}


def _elements(value: Value, offset: int) -> tuple[Value, ...]:
    if isinstance(value, Type) and value.name == "Shape":
        return value.arguments
    raise NotUnderstood(f"'{value}' is not a shape", offset)


def _size(template: tuple[Value, ...], values: tuple[Value, ...], offset: int) -> Value:
    elements = _elements(values[0], offset) if isinstance(values[0], Type) else values
    if template:
        index = _number(template[0], offset)
        if not 0 <= index < len(elements):
            raise NotUnderstood(f"mode {index} of a shape of {len(elements)}", offset)
        elements = (elements[index],)
    product = 1
    for element in elements:
        product *= _number(element, offset)
    return product


def _shape_div(template: tuple[Value, ...], values: tuple[Value, ...], offset: int) -> Value:
    left, right = (_elements(each, offset) for each in values)
    if len(left) != len(right):
        raise NotUnderstood(f"a shape of {len(left)} divided by one of {len(right)}", offset)
    return Type(
        "Shape",
        tuple(_ceil_div(_number(a, offset), _number(b, offset), offset) for a, b in zip(left, right, strict=True)),
    )


def _ceil_div(a: int, b: int, offset: int) -> int:
    if b == 0:
        raise NotUnderstood("division by zero", offset)
    return -(-a // b)


def _divided_up(values: tuple[Value, ...], offset: int) -> int:
    return _ceil_div(_number(values[0], offset), _number(values[1], offset), offset)


def _fold(choose: Callable[[int, int], int]) -> Callable[[tuple[Value, ...], tuple[Value, ...], int], Value]:
    return lambda template, values, offset: choose(_number(values[0], offset), _number(values[1], offset))


def _has_zero(template: tuple[Value, ...], values: tuple[Value, ...], offset: int) -> Value:
    """cutlass_extensions/weight_only_quant_op.h."""
    operation = values[0]
    if isinstance(operation, Type):
        return operation.name == "FINEGRAINED_SCALE_AND_ZEROS"
    raise NotUnderstood(f"'{operation}' is not a weight-only quantization", offset)


def _epilogue_routing(template: tuple[Value, ...], values: tuple[Value, ...], offset: int) -> Value:
    """The activation that fused_moe_kernel_traits.cuh makes of an epilogue tag, kept as a symbol."""
    return Type("EpilogueRouting", (*template, *values))


_ONE_OR_MORE = frozenset({"size", "get", "shape", "hasZero", "EpilogueRouting"})  # the others take two arguments
_TAGGED = frozenset({"EpilogueRouting"})  # take a template argument

_FUNCTIONS: dict[str, Callable[[tuple[Value, ...], tuple[Value, ...], int], Value]] = {
    "size": _size,
    "get": _size,
    "shape": _size,
    "hasZero": _has_zero,
    "EpilogueRouting": _epilogue_routing,
    "shape_div": _shape_div,
    "max": _fold(max),
    "min": _fold(min),
    "const_max": _fold(max),
    "const_min": _fold(min),
    "ceil_div": lambda template, values, offset: _divided_up(values, offset),
    "round_up": lambda template, values, offset: _divided_up(values, offset) * _number(values[1], offset),
}


def _truth(value: Value, offset: int) -> bool:
    return _number(value, offset) != 0


def _number(value: Value, offset: int) -> int:
    if isinstance(value, Type) and value.name in ("is_same", "is_void"):
        value = _trait(f"{value.name}_v", value.arguments, offset)
    if isinstance(value, (int, bool)):
        return int(value)
    raise NotUnderstood(f"'{value}' is not a constant that cutlint knows", offset)


def _unary(operator: str, value: Value, offset: int) -> Value:
    if operator == "*" and isinstance(value, Type):
        return msgspec.structs.replace(value, pointers=value.pointers + 1)
    if operator == "!":
        return not _truth(value, offset)
    if operator == "-":
        return -_number(value, offset)
    if operator == "+":
        return _number(value, offset)
    raise NotUnderstood(f"the operator '{operator}' is not known to cutlint here", offset)


def _binary(operator: str, left: int, right: int, offset: int) -> Value:
    if operator in ("/", "%") and right == 0:
        raise NotUnderstood("division by zero", offset)
    if operator in ("<<", ">>") and not 0 <= right < 64:
        raise NotUnderstood(f"a shift by {right}", offset)
    if operator == "/":
        return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    if operator == "%":
        return abs(left) % abs(right) * (1 if left >= 0 else -1)
    return fitting(_BINARY[operator](left, right), offset)


_BINARY: dict[str, Callable[[int, int], int | bool]] = {
    "*": lambda a, b: a * b, "+": lambda a, b: a + b, "-": lambda a, b: a - b, "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b, "<": lambda a, b: a < b, ">": lambda a, b: a > b, "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b, "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
}  # fmt: skip


def same_type(name: str) -> str:
    """The one spelling of a type that has several."""
    return _SAME_TYPE.get(name, name)


def trait(name: str) -> Callable[[tuple[Value, ...], int], Value] | None:
    """What computes the trait `name` (``is_same_v``) from its arguments and an offset for errors, if cutlint knows it."""
    return _TRAITS.get(name)


def constant_function(name: str) -> Callable[[tuple[Value, ...], tuple[Value, ...], int], Value]:
    """What computes the constexpr function `name` (``size``) from its template arguments, its arguments and an offset."""
    return _FUNCTIONS[name]


def trait_member(owner: Type, name: str, arguments: tuple[Value, ...], offset: int) -> Value:
    """``owner::name``."""
    return _trait_member(owner, name, arguments, offset)
