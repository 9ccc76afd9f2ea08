"""Expressions of host code, each compiled once to a function of the block it stands in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tree_sitter import Node

from cutlint.dispatch import library
from cutlint.dispatch.program import Unit, parameters
from cutlint.dispatch.values import (
    OPAQUE,
    Enumerator,
    Record,
    Symbol,
    Value,
    copied,
    negation,
    number,
    operation,
    truth,
)
from cutlint.evaluate import Type
from cutlint.expression import NotUnderstood

if TYPE_CHECKING:
    from cutlint.dispatch.compiler import Compiler
    from cutlint.dispatch.machine import Frame, Run

Maker = Callable[["Compiler", Unit, Node], "Run"]


def _constant(value: Value) -> Run:
    return lambda frame: value


def _integer(compiler: Compiler, unit: Unit, node: Node) -> Run:
    text = unit.of(node).replace("'", "").rstrip("uUlLzZ")
    for read in (lambda: int(text, 0), lambda: float(text.rstrip("fF"))):
        try:
            return _constant(read())
        except ValueError:
            pass
    return _constant(OPAQUE)


def _inner(compiler: Compiler, unit: Unit, node: Node) -> Run:
    """The one expression in `node`: a parenthesis, a condition, a type descriptor."""
    named = [each for each in node.named_children if each.type not in ("comment", "type_qualifier")]
    if len(named) != 1:
        return _unknown(compiler, unit, node)
    return compiler.expression(unit, named[0])


def _unknown(compiler: Compiler, unit: Unit, node: Node) -> Run:
    text = " ".join(unit.of(node).split())[:60]

    def run(frame: Frame) -> Value:
        raise NotUnderstood(f"'{text}' is not C++ that cutlint follows here")

    return run


def _field(node: Node, name: str) -> Node:
    found = node.child_by_field_name(name)
    if found is None:
        raise NotUnderstood(f"a {node.type} without its {name}")
    return found


def _binary(compiler: Compiler, unit: Unit, node: Node) -> Run:
    left = compiler.expression(unit, _field(node, "left"))
    right = compiler.expression(unit, _field(node, "right"))
    operator = unit.of(_field(node, "operator"))
    if operator in ("&&", "and", "||", "or"):
        decisive = operator in ("||", "or")

        def logical(frame: Frame) -> Value:
            first = left(frame)
            known = truth(first)
            if known is decisive:
                return decisive
            second = right(frame)
            other = truth(second)
            if other is decisive:
                return decisive
            if known is not None:
                return second if other is None else other
            if other is not None:
                return first
            if isinstance(first, Symbol) and isinstance(second, Symbol) and OPAQUE not in (first, second):
                return Symbol("||" if decisive else "&&", (first, second))
            return OPAQUE

        return logical
    return lambda frame: operation(operator, left(frame), right(frame))


def _unary(compiler: Compiler, unit: Unit, node: Node) -> Run:
    operand = compiler.expression(unit, _field(node, "argument"))
    operator = unit.of(_field(node, "operator"))
    if operator in ("!", "not"):
        return lambda frame: negation(operand(frame))
    if operator == "-":
        return lambda frame: operation("-", 0, operand(frame))
    return operand  # + and the & of an address


def _pointer(compiler: Compiler, unit: Unit, node: Node) -> Run:
    operand = compiler.expression(unit, _field(node, "argument"))
    if unit.of(_field(node, "operator")) == "&":
        return operand
    return lambda frame: OPAQUE if isinstance(operand(frame), Symbol) else operand(frame)


def _conditional(compiler: Compiler, unit: Unit, node: Node) -> Run:
    condition = compiler.expression(unit, _field(node, "condition"))
    first = compiler.expression(unit, _field(node, "consequence"))
    second = compiler.expression(unit, _field(node, "alternative"))
    place = unit.place(node)
    machine = compiler.machine

    def run(frame: Frame) -> Value:
        value = condition(frame)
        known = truth(value)
        if known is not None:
            return first(frame) if known else second(frame)
        if not machine.explore:
            raise NotUnderstood(f"depends on {value}, which is not known, in line {place.line + 1}")
        return machine.choose(frame, value, first, second)

    return run


def _subscript(compiler: Compiler, unit: Unit, node: Node) -> Run:
    of = compiler.expression(unit, _field(node, "argument"))
    indices = [compiler.expression(unit, each) for each in _field(node, "indices").named_children]

    def run(frame: Frame) -> Value:
        value = of(frame)
        index = indices[0](frame) if len(indices) == 1 else OPAQUE
        at = number(index)
        if isinstance(value, list):
            if isinstance(at, int) and 0 <= at < len(value):
                return value[at]
            if isinstance(index, Symbol) and len(value) == 2:  # an array of two, asked for with a boolean
                return compiler.machine.choose(frame, index, lambda _: value[1], lambda _: value[0])
        if compiler.machine.explore:
            return OPAQUE
        raise NotUnderstood("an element that is not there, or of something that is no list")

    return run


def _member(compiler: Compiler, unit: Unit, node: Node) -> Run:
    of = compiler.expression(unit, _field(node, "argument"))
    name = unit.of(_field(node, "field"))

    def run(frame: Frame) -> Value:
        return member(of(frame), name)

    return run


def member(value: Value, name: str) -> Value:
    """``value.name``, or of a pointer ``value->name``."""
    if isinstance(value, Record):
        return value.fields.get(name, OPAQUE)
    if isinstance(value, Symbol):
        return Symbol("input", (f"{value.operands[0]}.{name}",)) if value.operator == "input" else OPAQUE
    if isinstance(value, list) and name in ("first", "second") and len(value) == 2:
        return value[name == "second"]
    return OPAQUE


def _list(compiler: Compiler, unit: Unit, node: Node) -> Run:
    items = [compiler.expression(unit, each) for each in node.named_children if each.type != "comment"]
    return lambda frame: [copied(each(frame)) for each in items]


def _compound(compiler: Compiler, unit: Unit, node: Node) -> Run:
    """``Type{arguments}``."""
    kind, listed = compiler.expression(unit, _field(node, "type")), _list(compiler, unit, _field(node, "value"))
    return lambda frame: library.construct(compiler.machine, kind(frame), listed(frame))


def _cast(compiler: Compiler, unit: Unit, node: Node) -> Run:
    value = compiler.expression(unit, _field(node, "value"))
    if unit.of(_field(node, "type")).strip() == "void":
        return _constant(None)

    def run(frame: Frame) -> Value:
        found = value(frame)
        return found.number if isinstance(found, Enumerator) else found

    return run


def _sizeof(compiler: Compiler, unit: Unit, node: Node) -> Run:
    inner = node.child_by_field_name("type") or node.child_by_field_name("value")
    value = compiler.expression(unit, inner) if inner is not None else _constant(OPAQUE)
    return lambda frame: library.sizeof(value(frame))


def _lambda(compiler: Compiler, unit: Unit, node: Node) -> Run:
    from cutlint.dispatch.machine import Lambda

    declarator = node.child_by_field_name("declarator")
    listed = declarator.child_by_field_name("parameters") if declarator is not None else None
    names = tuple(each.name for each in parameters(unit, listed)) if listed is not None else ()
    body = compiler.body(unit, _field(node, "body"))
    place = unit.place(node)
    return lambda frame: Lambda(names, body, frame, place)


def _assignment(compiler: Compiler, unit: Unit, node: Node) -> Run:
    left, right = _field(node, "left"), compiler.expression(unit, _field(node, "right"))
    operator = unit.of(_field(node, "operator"))
    store = _store(compiler, unit, left)
    current = compiler.expression(unit, left) if operator != "=" else None

    def run(frame: Frame) -> Value:
        value = right(frame)
        if current is not None:
            value = operation(operator.rstrip("="), current(frame), value)
        store(frame, copied(value))
        return value

    return run


def _update(compiler: Compiler, unit: Unit, node: Node) -> Run:
    target = _field(node, "argument")
    current, store = compiler.expression(unit, target), _store(compiler, unit, target)
    change = 1 if "++" in unit.of(_field(node, "operator")) else -1

    def run(frame: Frame) -> Value:
        value = operation("+", current(frame), change)
        store(frame, value)
        return value

    return run


def _store(compiler: Compiler, unit: Unit, target: Node) -> Callable[[Frame, Value], None]:
    """What an assignment to `target` does. Only variables and members of records are kept."""
    machine = compiler.machine
    if target.type == "identifier":
        name = unit.of(target)
        return lambda frame, value: machine.assign(frame, name, value)
    if target.type == "field_expression":
        of, field = compiler.expression(unit, _field(target, "argument")), unit.of(_field(target, "field"))

        def store(frame: Frame, value: Value) -> None:
            owner = of(frame)
            if isinstance(owner, Record):
                if machine.branching:
                    raise NotUnderstood("changes a record under a condition that is only known at run time")
                owner.fields[field] = value
            elif not machine.explore:
                raise NotUnderstood(f"assigns to the member '{field}' of something that is not known")

        return store

    def ignored(frame: Frame, value: Value) -> None:
        if not machine.explore:
            raise NotUnderstood("assigns to something that is not a variable")

    return ignored


def _call(compiler: Compiler, unit: Unit, node: Node) -> Run:
    function, listed = _field(node, "function"), _field(node, "arguments")
    nodes = [each for each in listed.named_children if each.type != "comment"]
    name = unit.of(function).split("<")[0].split("::")[-1].strip()
    special: Maker | None = library.SPECIAL.get(name)
    if special is not None and function.type != "field_expression":
        return special(compiler, unit, node)
    arguments = [compiler.expression(unit, each) for each in nodes]
    place = unit.place(node)
    machine = compiler.machine
    if function.type == "field_expression":
        of, method = compiler.expression(unit, _field(function, "argument")), unit.of(_field(function, "field"))
        return lambda frame: library.method(machine, of(frame), method, [each(frame) for each in arguments])
    callee = compiler.expression(unit, function)

    def run(frame: Frame) -> Value:
        target = callee(frame)
        if machine.launch(target):
            return None
        values = [each(frame) for each in arguments]
        if isinstance(target, Type):
            known = library.FUNCTIONS.get(target.name)
            if known is not None:
                return known(machine, target.arguments, values)
            if library.constructible(machine, target):
                return library.construct(machine, target, values)
        return machine.call(target, values, place)

    return run


def _dependent(compiler: Compiler, unit: Unit, node: Node) -> Run:
    return compiler.expression(unit, node.named_children[-1]) if node.named_children else _unknown(compiler, unit, node)


def _text(compiler: Compiler, unit: Unit, node: Node) -> Run:
    return _constant(library.literal(unit.of(node)))


def _name(compiler: Compiler, unit: Unit, node: Node) -> Run:
    from cutlint.dispatch.names import name_of

    return name_of(compiler, unit, node)


MAKERS: dict[str, Maker] = {
    "number_literal": _integer,
    "true": lambda compiler, unit, node: _constant(True),
    "false": lambda compiler, unit, node: _constant(False),
    "null": lambda compiler, unit, node: _constant(OPAQUE),
    "nullptr": lambda compiler, unit, node: _constant(OPAQUE),
    "this": lambda compiler, unit, node: _constant(OPAQUE),
    "string_literal": _text,
    "concatenated_string": _text,
    "char_literal": lambda compiler, unit, node: _constant(OPAQUE),
    "parenthesized_expression": _inner,
    "condition_clause": _inner,
    "type_descriptor": _inner,
    "decltype": _inner,
    "dependent_type": _dependent,
    "binary_expression": _binary,
    "unary_expression": _unary,
    "pointer_expression": _pointer,
    "conditional_expression": _conditional,
    "subscript_expression": _subscript,
    "field_expression": _member,
    "initializer_list": _list,
    "argument_list": _list,
    "compound_literal_expression": _compound,
    "cast_expression": _cast,
    "sizeof_expression": _sizeof,
    "lambda_expression": _lambda,
    "assignment_expression": _assignment,
    "update_expression": _update,
    "call_expression": _call,
    "identifier": _name,
    "type_identifier": _name,
    "field_identifier": _name,
    "namespace_identifier": _name,
    "primitive_type": _name,
    "sized_type_specifier": _name,
    "qualified_identifier": _name,
    "template_function": _name,
    "template_type": _name,
    "template_method": _name,
}
