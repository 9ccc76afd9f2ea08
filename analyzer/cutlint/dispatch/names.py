"""What a name stands for: a variable, a parameter, an enumerator, a function, a type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tree_sitter import Node

from cutlint.dispatch.program import Unit, enumerators
from cutlint.dispatch.values import OPAQUE, Enumerator, Place, Reference, Symbol, Value, number
from cutlint.evaluate import Type, same_type, trait, trait_member
from cutlint.expression import NotUnderstood

if TYPE_CHECKING:
    from cutlint.dispatch.compiler import Compiler
    from cutlint.dispatch.machine import Frame, Machine, Run

Part = tuple[str, "list[Run] | None", "Run | None"]  # a name, its template arguments, or what a decltype is of

# Namespaces of the libraries, which the files at hand do not open themselves
_NAMESPACES = frozenset(
    {"std", "cute", "cutlass", "arch", "platform", "gemm", "kernel", "collective", "threadblock", "epilogue", "layout",
     "thread", "device", "detail"}
)  # fmt: skip
_CONSTANTS = frozenset({"Int", "C", "constant", "integral_constant", "ConstBool", "bool_constant"})
_GEMM_SHAPE = ("kM", "kN", "kK")


def name_of(compiler: Compiler, unit: Unit, node: Node) -> Run:
    """The value of a name in the block where it stands."""
    from cutlint.dispatch.machine import Lazy

    machine = compiler.machine
    parts = _without_namespaces(machine, _parts(compiler, unit, node))
    place = unit.place(node)
    text, given, of = parts[-1]
    if len(parts) > 1 and given is None and parts[-2][1] is None:
        owner = enumeration(machine, parts[-2][0])
        if owner is not None and text in machine.program.enumerations[owner]:
            value = enumerator(machine, owner, text, place)
            return lambda frame: value
    if len(parts) > 1 or of is not None:
        return lambda frame: _qualified(machine, frame, parts, place)
    if given is not None:
        return _applied(machine, text, given, place)

    def simple(frame: Frame) -> Value:
        block: Frame | None = frame
        while block is not None:
            if text in block.names:
                value = block.names[text]
                return machine.lookup(block, text) if isinstance(value, Lazy) else value
            block = block.parent
        return _outside(machine, frame, text, place)

    return simple


def _parts(compiler: Compiler, unit: Unit, node: Node) -> list[Part]:
    """The components of a name, namespaces included."""
    if node.type == "qualified_identifier":
        scope, name = node.child_by_field_name("scope"), node.child_by_field_name("name")
        head = _parts(compiler, unit, scope) if scope is not None else []
        return [*head, *(_parts(compiler, unit, name) if name is not None else [])]
    if node.type in ("template_function", "template_type", "template_method"):
        name, listed = node.child_by_field_name("name"), node.child_by_field_name("arguments")
        given = [compiler.expression(unit, each) for each in (listed.named_children if listed is not None else ())]
        text = unit.of(name) if name is not None else ""
        return [(text.split("::")[-1], given, None)]
    if node.type == "decltype":
        return [("decltype", None, compiler.expression(unit, node))]
    if node.type in ("dependent_name", "dependent_type") and node.named_children:
        return _parts(compiler, unit, node.named_children[-1])
    return [(" ".join(unit.of(node).split()), None, None)]


def _without_namespaces(machine: Machine, parts: list[Part]) -> list[Part]:
    program = machine.program
    while len(parts) > 1 and parts[0][1] is None and parts[0][2] is None:
        text = parts[0][0]
        named = text in program.classes or text in program.enumerations or text in program.aliases
        if named or text in program.declared or text not in _NAMESPACES | program.namespaces:
            break
        parts = parts[1:]
    return parts


def _qualified(machine: Machine, frame: Frame, parts: list[Part], place: Place) -> Value:
    value: Value = None
    known = False
    for index, (text, given, of) in enumerate(parts):
        last = index == len(parts) - 1
        if known:
            arguments = None if given is None else tuple(each(frame) for each in given)
            value = _member(machine, value, text, arguments, place)
        elif of is not None:
            value, known = of(frame), True
        elif given is not None:
            value, known = _applied(machine, text, given, place)(frame), True
        elif (found := frame.find(text)) is not None:
            value, known = machine.lookup(found, text), True
        elif last or _stands_alone(machine, text, parts[index + 1][0]):
            value, known = _outside(machine, frame, text, place), True
    return value


def _stands_alone(machine: Machine, text: str, following: str) -> bool:
    """Whether `text` in front of ``::following`` is more than a namespace."""
    program = machine.program
    if enumeration(machine, text) is not None:
        return True
    return text in program.classes or (text in program.aliases and following not in program.classes) or text[:2] == "Sm"


def _applied(machine: Machine, text: str, given: list[Run], place: Place) -> Run:
    """``text<given>``."""
    computed = trait(text)
    if computed is not None:

        def run(frame: Frame) -> Value:
            arguments = tuple(each(frame) for each in given)
            return OPAQUE if any(isinstance(each, Symbol) for each in arguments) else computed(arguments, 0)

        return run
    if text in machine.launchers or text in machine.program.functions:
        return lambda frame: _function(machine, frame, text, tuple(each(frame) for each in given), place)
    if text in _CONSTANTS and given:
        return given[-1]
    name = same_type(text)
    return lambda frame: Type(name, tuple(each(frame) for each in given))


def _function(machine: Machine, frame: Frame, text: str, arguments: tuple[Value, ...], place: Place) -> Value:
    """A function, or a member of the class whose member is running."""
    listed = machine.program.functions.get(text, ())
    if any(each.owner is not None for each in listed):
        owner = frame.find("this")
        this = owner.names["this"] if owner is not None else None
        if this is not None and any(each.owner == this.name for each in listed):
            return Reference(text, arguments, place, this)
    if text in machine.launchers or any(each.owner is None for each in listed):
        return Reference(text, arguments, place)
    return Type(same_type(text), arguments)


def _outside(machine: Machine, frame: Frame, text: str, place: Place) -> Value:
    """A name that no block declares: a function, an alias, a class or enumeration, or something from elsewhere."""
    program = machine.program
    if text in program.unscoped:
        return enumerator(machine, program.unscoped[text], text, place)
    if text in machine.launchers or text in program.functions:
        return _function(machine, frame, text, (), place)
    if text in program.aliases:
        unit, node = program.aliases[text]
        if unit.of(node).split("::")[-1].strip() != text:
            return machine.compiler.expression(unit, node)(_empty())
    if text[:1] == "_" and text[1:].isdigit():  # cute::_128
        return int(text[1:])
    return Type(same_type(text))


def _member(machine: Machine, value: Value, text: str, arguments: tuple[Value, ...] | None, place: Place) -> Value:
    """``value::text``."""
    if isinstance(value, (int, Enumerator)) and text == "value":
        return value
    if not isinstance(value, Type):
        if isinstance(value, Symbol):
            return OPAQUE
        raise NotUnderstood(f"'{text}' asked of {value}")
    program = machine.program
    owner = enumeration(machine, value.name)
    if owner is not None and text in program.enumerations[owner]:
        return enumerator(machine, owner, text, place)
    if value.name == "GemmShape" and text in _GEMM_SHAPE and len(value.arguments) == 3:
        return value.arguments[_GEMM_SHAPE.index(text)]
    if any(each.owner == value.name for each in program.functions.get(text, ())):
        return Reference(text, arguments or (), place, value)
    if text in program.unscoped and value.name in program.classes:
        return enumerator(machine, program.unscoped[text], text, place)
    if value.name in program.classes:
        inner = machine.class_frame(value.name, value.arguments)
        if text in program.classes[value.name].constants:
            return machine.lookup(inner, text)
        if text in program.enumerations or text in program.classes:
            return Type(text)
    return trait_member(value, text, arguments or (), 0)


def enumeration(machine: Machine, text: str) -> str | None:
    """The enumeration that `text` names, through an alias perhaps."""
    program = machine.program
    for _ in range(5):
        if text in program.enumerations:
            return text
        if text not in program.aliases:
            return None
        unit, node = program.aliases[text]
        following = unit.of(node).split("::")[-1].strip()
        if following == text:
            return None
        text = following
    return None


def enumerator(machine: Machine, owner: str, name: str, place: Place) -> Enumerator:
    """The enumerator ``owner::name`` as written at `place`."""
    numbers = machine.enumerations.get(owner)
    if numbers is None:
        numbers = {}
        following = 0
        for each, (unit, _, value) in machine.program.enumerations[owner].items():
            if value is not None:
                scope = _empty()
                scope.names.update(numbers)
                found = number(machine.compiler.expression(unit, value)(scope))
                if found is None:
                    raise NotUnderstood(f"the value of {owner}::{each} is not known to cutlint")
                following = int(found)
            numbers[each] = following
            following += 1
        machine.enumerations[owner] = numbers
    return Enumerator(owner, name, numbers[name], place)


def declare_enumeration(machine: Machine, unit: Unit, node: Node) -> None:
    """An enumeration declared inside a function."""
    name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
    if name is not None and body is not None:
        machine.program.enumerations.setdefault(unit.of(name), enumerators(unit, body))


def _empty() -> Frame:
    from cutlint.dispatch.machine import Frame

    return Frame(None)
