"""What of the C++ library, of CuTe and of the logging macros host code uses to list and dispatch tactics."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tree_sitter import Node

from cutlint.dispatch.program import Unit
from cutlint.dispatch.values import OPAQUE, Cursor, Enumerator, Record, Symbol, Value, copied, number, truth
from cutlint.evaluate import ELEMENT_BITS, Type, constant_function
from cutlint.expression import NotUnderstood

if TYPE_CHECKING:
    from cutlint.dispatch.compiler import Compiler
    from cutlint.dispatch.machine import Frame, Machine, Run


def literal(text: str) -> str:
    """The text of one string literal or of several next to one another."""
    return "".join(re.findall(r'"((?:\\.|[^"\\])*)"', text)).replace("\\n", " ").replace('\\"', '"')


# -- objects

_LISTS = frozenset({"vector", "array", "set", "initializer_list"})


def constructible(machine: Machine, kind: Type) -> bool:
    return kind.name in _LISTS or kind.name == "pair" or kind.name in machine.program.classes


def construct(machine: Machine, kind: Value, arguments: list[Value]) -> Value:
    """``kind{arguments}`` or ``kind(arguments)``: a list, a record, or the type itself, which stands for its instances."""
    if not isinstance(kind, Type):
        return kind if not arguments else OPAQUE
    if kind.name in _LISTS:
        if len(arguments) == 1 and isinstance(arguments[0], list) and kind.name != "array":
            return arguments[0]
        return _unique(arguments) if kind.name == "set" else arguments
    if kind.name == "pair":
        return arguments
    if kind.name not in machine.program.classes or kind.name in machine.program.enumerations:
        return arguments[0] if len(arguments) == 1 and number(arguments[0]) is not None else kind
    if len(arguments) == 1 and isinstance(arguments[0], Record) and arguments[0].name == kind.name:
        return arguments[0].copy()
    return _record(machine, kind, arguments)


def _record(machine: Machine, kind: Type, arguments: list[Value]) -> Record:
    found = machine.program.classes[kind.name]
    scope = machine.class_frame(kind.name, kind.arguments)
    fields = {
        name: OPAQUE if node is None else machine.compiler.expression(found.unit, node)(scope)
        for name, node in found.members.items()
    }
    if not arguments:
        return Record(kind.name, fields)
    fitting = []
    for each in machine.program.functions.get(kind.name, ()):
        least = sum(parameter.default is None for parameter in each.parameters)
        if each.owner == kind.name and each.initializers and least <= len(arguments) <= len(each.parameters):
            kinds = [None if parameter.type is None else each.unit.of(parameter.type) for parameter in each.parameters]
            if all(_accepts(machine, text, value) for text, value in zip(kinds, arguments, strict=False)):
                fitting.append(each)
    if len(fitting) != 1:
        if not fitting and len(arguments) <= len(fields) and not machine.program.functions.get(kind.name):
            return Record(kind.name, {**fields, **dict(zip(fields, arguments, strict=False))})  # an aggregate
        raise NotUnderstood(f"{len(fitting) or 'no'} constructors of {kind.name} take these arguments")
    constructor = fitting[0]
    from cutlint.dispatch.machine import Frame

    frame = Frame(scope)
    for index, parameter in enumerate(constructor.parameters):
        if index < len(arguments):
            frame.names[parameter.name] = arguments[index]
        elif parameter.default is not None:
            frame.names[parameter.name] = machine.compiler.expression(constructor.unit, parameter.default)(frame)
    for name, node in constructor.initializers:
        values = machine.compiler.expression(constructor.unit, node)(frame)
        fields[name] = values[0] if isinstance(values, list) and len(values) == 1 else values
    return Record(kind.name, fields)


def _accepts(machine: Machine, kind: str | None, value: Value) -> bool:
    """Whether a parameter of the type `kind` takes `value`, as far as enumerations tell."""
    from cutlint.dispatch.names import enumeration

    if kind is None or not isinstance(value, Enumerator):
        return kind is None or enumeration(machine, kind.split("::")[-1]) is None or isinstance(value, Symbol)
    return enumeration(machine, kind.split("::")[-1]) == value.owner


def _unique(values: list[Value]) -> list[Value]:
    found: list[Value] = []
    for each in values:
        if each not in found:
            found.append(each)
    return found


def sizeof(value: Value) -> Value:
    if isinstance(value, Type) and value.owner is None and value.name in ELEMENT_BITS:
        return max(1, ELEMENT_BITS[value.name] // 8)
    return _BYTES.get(value.name, OPAQUE) if isinstance(value, Type) else OPAQUE


_BYTES = {"nv_fp8_e4m3": 1, "nv_fp8_e5m2": 1, "nv_fp4_e2m1": 1}  # cuda_fp8.h, cuda_fp4.h: a byte of storage each


# -- methods


def method(machine: Machine, of: Value, name: str, arguments: Sequence[Value]) -> Value:
    """``of.name(arguments)``."""
    if isinstance(of, list):
        return _list_method(machine, of, name, arguments)
    if isinstance(of, Symbol):
        return Symbol("input", (f"{of.operands[0]}.{name}()",)) if of.operator == "input" and not arguments else OPAQUE
    if machine.explore:
        return OPAQUE
    raise NotUnderstood(f"the method '{name}' is not known to cutlint")


def _list_method(machine: Machine, of: list[Value], name: str, arguments: Sequence[Value]) -> Value:
    if name in ("begin", "cbegin", "end", "cend"):
        return Cursor(of, name.removeprefix("c"))
    if name == "size":
        return len(of)
    if name == "empty":
        return not of
    if name in ("front", "back") and of:
        return of[0 if name == "front" else -1]
    if name in ("count", "contains") and len(arguments) == 1:
        found = sum(each == arguments[0] for each in of)
        return found if name == "count" else found > 0
    if name in ("reserve", "shrink_to_fit"):
        return None
    if machine.branching:
        raise NotUnderstood("changes a list under a condition that is only known at run time")
    if name in ("push_back", "emplace_back") and len(arguments) == 1:
        of.append(copied(arguments[0]))
        return None
    if name == "insert" and len(arguments) == 1:  # of a set
        if arguments[0] not in of:
            of.append(copied(arguments[0]))
        return None
    if name == "insert" and len(arguments) == 3 and arguments[0] == Cursor(of, "end"):
        of.extend(copied(each) for each in _range(arguments[1], arguments[2]))
        return None
    if name == "erase" and len(arguments) == 2 and arguments[0] == Cursor(of, "end"):
        return None  # what `remove_if` left behind: it has shortened the list itself
    if name == "clear":
        of.clear()
        return None
    raise NotUnderstood(f"the method '{name}' of a list is not known to cutlint with these arguments")


def _range(first: Value, last: Value) -> list[Value]:
    cursors = isinstance(first, Cursor) and isinstance(last, Cursor) and first.of is last.of
    if cursors and (first.kind, last.kind) == ("begin", "end"):
        return list(first.of)
    raise NotUnderstood("a range that is not a whole list")


# -- functions


def _tuple(machine: Machine, template: tuple[Value, ...], values: list[Value]) -> Value:
    return list(values)


def _get(machine: Machine, template: tuple[Value, ...], values: list[Value]) -> Value:
    index = number(template[0]) if template else None
    if not values:
        raise NotUnderstood("get of nothing")
    if isinstance(values[0], list):
        if not isinstance(index, int) or not 0 <= index < len(values[0]):
            raise NotUnderstood("an element that is not there")
        return values[0][index]
    if isinstance(values[0], Symbol):
        return OPAQUE
    return constant_function("get")(template, tuple(values), 0)


def _constant(name: str) -> Callable[[Machine, tuple[Value, ...], list[Value]], Value]:
    def run(machine: Machine, template: tuple[Value, ...], values: list[Value]) -> Value:
        if any(isinstance(each, Symbol) for each in values):
            return OPAQUE
        return constant_function(name)(template, tuple(values), 0)

    return run


def _appends(value: Value) -> bool:
    return isinstance(value, Cursor) and value.kind == "append"


def _cursor(kind: str) -> Callable[[Machine, tuple[Value, ...], list[Value]], Value]:
    def run(machine: Machine, template: tuple[Value, ...], values: list[Value]) -> Value:
        if len(values) == 1 and isinstance(values[0], list):
            return Cursor(values[0], kind)
        raise NotUnderstood("an iterator of something that is no list")

    return run


def _copy(machine: Machine, template: tuple[Value, ...], values: list[Value]) -> Value:
    if len(values) == 3 and _appends(values[2]):
        values[2].of.extend(copied(each) for each in _range(values[0], values[1]))
        return values[2]
    raise NotUnderstood("std::copy to something else than std::back_inserter")


def _transform(machine: Machine, template: tuple[Value, ...], values: list[Value]) -> Value:
    from cutlint.dispatch.values import Place

    if len(values) == 4 and _appends(values[2]):
        for each in _range(values[0], values[1]):
            values[2].of.append(copied(machine.call(values[3], [each], Place("", 0))))
        return values[2]
    raise NotUnderstood("std::transform to something else than std::back_inserter")


def _remove_if(machine: Machine, template: tuple[Value, ...], values: list[Value]) -> Value:
    from cutlint.dispatch.values import Place

    if len(values) != 3:
        raise NotUnderstood("std::remove_if without a predicate")
    kept = []
    for each in _range(values[0], values[1]):
        known = truth(machine.call(values[2], [each], Place("", 0)))
        if known is None:
            raise NotUnderstood("what std::remove_if removes is not known")
        if not known:
            kept.append(each)
    values[0].of[:] = kept
    return Cursor(values[0].of, "end")


def _first(machine: Machine, template: tuple[Value, ...], values: list[Value]) -> Value:
    return values[0] if values else OPAQUE


FUNCTIONS: dict[str, Callable[[Any, tuple[Value, ...], list[Value]], Value]] = {
    "make_tuple": _tuple, "make_pair": _tuple, "tie": _tuple, "get": _get, "copy": _copy, "transform": _transform,
    "remove_if": _remove_if, "move": _first, "forward": _first, "as_const": _first,
    "back_inserter": _cursor("append"), "begin": _cursor("begin"), "end": _cursor("end"),
    "size": _constant("size"), "max": _constant("max"), "min": _constant("min"), "ceil_div": _constant("ceil_div"),
}  # fmt: skip


# -- macros and casts


def _given(call: Node) -> list[Node]:
    listed = call.child_by_field_name("arguments")
    return [] if listed is None else [each for each in listed.named_children if each.type != "comment"]


def _throws(compiler: Compiler, unit: Unit, call: Node) -> Run:
    nodes = _given(call)
    message = literal(unit.of(nodes[0])) if nodes else ""
    place, machine = unit.place(call), compiler.machine

    def run(frame: Frame) -> Value:
        machine.throw(message, place)

    return run


def _checks(compiler: Compiler, unit: Unit, call: Node) -> Run:
    nodes = _given(call)
    if not nodes:
        return _nothing(compiler, unit, call)
    condition, place, machine = compiler.expression(unit, nodes[0]), unit.place(call), compiler.machine
    message = literal(unit.of(nodes[1])) if len(nodes) > 1 else ""
    message = message or " ".join(unit.of(nodes[0]).split())

    def run(frame: Frame) -> Value:
        machine.check(condition(frame), message, place)

    return run


def _nothing(compiler: Compiler, unit: Unit, call: Node) -> Run:
    return lambda frame: None


def _casts(compiler: Compiler, unit: Unit, call: Node) -> Run:
    from cutlint.dispatch.names import enumeration

    nodes, function = _given(call), call.child_by_field_name("function")
    listed = None if function is None else function.child_by_field_name("arguments")
    kind = unit.of(listed.named_children[0]).strip() if listed is not None and listed.named_children else ""
    if kind == "void" or len(nodes) != 1:
        return _nothing(compiler, unit, call)
    value = compiler.expression(unit, nodes[0])

    def run(frame: Frame) -> Value:
        found = value(frame)
        to_number = enumeration(compiler.machine, kind.split("::")[-1]) is None
        return found.number if isinstance(found, Enumerator) and to_number else found

    return run


SPECIAL: dict[str, Callable[[Any, Unit, Node], Any]] = {
    "TLLM_THROW": _throws, "TLLM_CHECK": _checks, "TLLM_CHECK_WITH_INFO": _checks, "static_cast": _casts,
    "reinterpret_cast": _casts, "const_cast": _casts, "assert": _nothing, "sync_check_cuda_error": _nothing,
    **dict.fromkeys(
        (f"TLLM_LOG_{level}" for level in ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "EXCEPTION")), _nothing
    ),
}  # fmt: skip
