"""Statements of host code, each compiled once to a function that runs it in a block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tree_sitter import Node

from cutlint.dispatch import library
from cutlint.dispatch.expressions import MAKERS, _unknown
from cutlint.dispatch.names import declare_enumeration
from cutlint.dispatch.program import Unit
from cutlint.dispatch.values import OPAQUE, Choices, Condition, Place, Symbol, Value, copied, operation, truth
from cutlint.evaluate import Type
from cutlint.expression import NotUnderstood

if TYPE_CHECKING:
    from cutlint.dispatch.machine import Frame, Machine, Run, Signal, Step

BREAK, CONTINUE, RETURN, THROW = "break", "continue", "return", "throw"


class Compiler:
    """Compiles what `machine` runs, and keeps it."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._expressions: dict[tuple[str, int, int, str], Run] = {}
        self._bodies: dict[tuple[str, int], Step] = {}

    def expression(self, unit: Unit, node: Node) -> Run:
        key = (unit.path, node.start_byte, node.end_byte, node.type)
        found = self._expressions.get(key)
        if found is None:
            try:
                found = MAKERS.get(node.type, _unknown)(self, unit, node)
            except NotUnderstood as error:
                found = _failing(str(error))
            self._expressions[key] = found
        return found

    def body(self, unit: Unit, node: Node) -> Step:
        key = (unit.path, node.start_byte)
        found = self._bodies.get(key)
        if found is None:
            found = self._bodies[key] = self.statement(unit, node)
        return found

    def statement(self, unit: Unit, node: Node) -> Step:
        """The statement `node`: what is thrown in it, or not understood, ends it."""
        from cutlint.dispatch.machine import Lost, Thrown

        place, machine = unit.place(node), self.machine
        step = _STATEMENTS.get(node.type, _expression_statement)(self, unit, node)
        if node.type in ("compound_statement", "if_statement", "case_statement"):
            return step
        text = unit.of(node)

        def run(frame: Frame) -> Signal:
            machine.step(place)
            try:
                return step(frame)
            except Thrown:
                if machine.explore:
                    return THROW
                raise
            except NotUnderstood as error:
                lost = error if isinstance(error, Lost) else Lost(str(error), place)
                if not machine.explore:
                    raise lost from None
                if machine.matters(text):
                    machine.lost.append(lost)
                return None

        return run


def _failing(message: str) -> Run:
    def run(frame: Frame) -> Value:
        raise NotUnderstood(message)

    return run


def _block(compiler: Compiler, unit: Unit, nodes: Sequence[Node]) -> Step:
    steps = [compiler.statement(unit, each) for each in nodes if each.type != "comment"]

    def run(frame: Frame) -> Signal:
        for step in steps:
            signal = step(frame)
            if signal is not None:
                return signal
        return None

    return run


def _compound(compiler: Compiler, unit: Unit, node: Node) -> Step:
    from cutlint.dispatch.machine import Frame

    inner = _block(compiler, unit, node.named_children)
    return lambda frame: inner(Frame(frame))


def _expression_statement(compiler: Compiler, unit: Unit, node: Node) -> Step:
    nodes = [each for each in node.named_children if each.type != "comment"]
    if node.type != "expression_statement" or not nodes:
        return _skipped(compiler, unit, node)
    run = compiler.expression(unit, nodes[0])

    def step(frame: Frame) -> Signal:
        run(frame)
        return None

    return step


_HARMLESS = frozenset(
    {"using_declaration", "static_assert_declaration", "type_definition", ";", "namespace_alias_definition", "comment"}
)


def _skipped(compiler: Compiler, unit: Unit, node: Node) -> Step:
    if node.type in _HARMLESS or not node.named_children:
        return lambda frame: None
    kind = node.type.replace("_", " ")

    def step(frame: Frame) -> Signal:
        raise NotUnderstood(f"a {kind} is not followed")

    return step


def _return(compiler: Compiler, unit: Unit, node: Node) -> Step:
    nodes = [each for each in node.named_children if each.type != "comment"]
    value = compiler.expression(unit, nodes[0]) if nodes else None
    machine = compiler.machine

    def step(frame: Frame) -> Signal:
        result = None if value is None else copied(value(frame))
        activation = frame.activation
        assert activation is not None  # statements run inside functions
        activation.returns.append((tuple(machine.conditions[activation.base :]), result))
        return RETURN

    return step


# -- declarations


def _declaration(compiler: Compiler, unit: Unit, node: Node) -> Step:
    kind_node = node.child_by_field_name("type")
    if kind_node is not None and kind_node.type == "enum_specifier":
        declare_enumeration(compiler.machine, unit, kind_node)
        return lambda frame: None
    steps = [_declarator(compiler, unit, kind_node, each) for each in node.children_by_field_name("declarator")]

    def step(frame: Frame) -> Signal:
        for each in steps:
            each(frame)
        return None

    return step


def _enum(compiler: Compiler, unit: Unit, node: Node) -> Step:
    declare_enumeration(compiler.machine, unit, node)
    return lambda frame: None


def _declarator(compiler: Compiler, unit: Unit, kind: Node | None, node: Node) -> Callable[[Frame], None]:
    value: Node | None = None
    target = node
    called: list[Node] | None = None
    if node.type == "init_declarator":
        value = node.child_by_field_name("value")
        target = node.child_by_field_name("declarator") or node
    elif node.type == "function_declarator":  # Config config(a, b); which a grammar cannot tell from a declaration
        target = node.child_by_field_name("declarator") or node
        listed = node.child_by_field_name("parameters")
        called = [
            each.child_by_field_name("type") or each for each in (listed.named_children if listed is not None else ())
        ]
    while target.type in ("pointer_declarator", "reference_declarator", "array_declarator"):
        named = [each for each in target.named_children if each.type.endswith(("identifier", "declarator"))]
        if not named:
            break
        target = named[0]
    type_run = None if kind is None or kind.type == "placeholder_type_specifier" else compiler.expression(unit, kind)
    machine = compiler.machine
    names = (
        [unit.of(each) for each in target.named_children]
        if target.type == "structured_binding_declarator"
        else [unit.of(target)]
    )
    initial = _initial(compiler, unit, type_run, value, called)

    def declare(frame: Frame) -> None:
        try:
            result = initial(frame)
        except NotUnderstood:
            for name in names:
                frame.names[name] = OPAQUE
            if not machine.explore or machine.matters(unit.of(node)):
                raise
            return
        bind(frame, names, copied(result))

    return declare


def bind(frame: Frame, names: Sequence[str], value: Value) -> None:
    """Declare `names` in a block: one as `value`, several as its elements."""
    if len(names) == 1:
        frame.names[names[0]] = value
    elif isinstance(value, list) and len(value) == len(names):
        frame.names.update(zip(names, value, strict=True))
    elif isinstance(value, Symbol):
        frame.names.update(dict.fromkeys(names, OPAQUE))
    else:
        raise NotUnderstood(f"a structured binding of {len(names)} names to something else")


def _initial(
    compiler: Compiler, unit: Unit, kind: Run | None, value: Node | None, called: list[Node] | None
) -> Callable[[Frame], Value]:
    """The value that a variable is declared with."""
    machine = compiler.machine
    if called is not None or (value is not None and value.type in ("argument_list", "initializer_list")):
        nodes = called if called is not None else [each for each in value.named_children if each.type != "comment"]  # type: ignore[union-attr]
        arguments = [compiler.expression(unit, each) for each in nodes]

        def constructed(frame: Frame) -> Value:
            values = [each(frame) for each in arguments]
            of = None if kind is None else kind(frame)
            if isinstance(of, Type) and library.constructible(machine, of):
                return library.construct(machine, of, values)
            if value is not None and value.type == "initializer_list":
                return values[0] if len(values) == 1 and number_like(of) else values
            return values[0] if len(values) == 1 else OPAQUE

        return constructed
    if value is not None:
        return compiler.expression(unit, value)

    def default(frame: Frame) -> Value:
        of = None if kind is None else kind(frame)
        if isinstance(of, Type) and library.constructible(machine, of):
            return library.construct(machine, of, [])
        return OPAQUE

    return default


def number_like(kind: Value) -> bool:
    return isinstance(kind, Type) and kind.name in ("int", "bool", "size_t", "unsigned", "int64_t", "auto")


def _alias(compiler: Compiler, unit: Unit, node: Node) -> Step:
    from cutlint.dispatch.machine import Lazy

    name, value = node.child_by_field_name("name"), node.child_by_field_name("type")
    if name is None or value is None:
        return _skipped(compiler, unit, node)
    text, run = unit.of(name), compiler.expression(unit, value)

    def step(frame: Frame) -> Signal:
        frame.names[text] = Lazy(run, frame)
        return None

    return step


# -- branches


def _if(compiler: Compiler, unit: Unit, node: Node) -> Step:
    from cutlint.dispatch.machine import Branch, Frame

    condition_node = node.child_by_field_name("condition")
    first_node = node.child_by_field_name("consequence")
    other_node = node.child_by_field_name("alternative")
    if condition_node is None or first_node is None:
        return _skipped(compiler, unit, node)
    condition = compiler.expression(unit, condition_node)
    first = compiler.statement(unit, first_node)
    other = compiler.statement(unit, other_node) if other_node is not None else _nothing
    place, machine = unit.place(node), compiler.machine
    constant = any(child.type == "constexpr" for child in node.children)
    text = unit.of(node)

    def step(frame: Frame) -> Signal:
        machine.step(place)
        inner = Frame(frame)
        try:
            value = condition(inner)
            known = truth(value)
        except NotUnderstood as error:
            if constant or not machine.explore:
                machine.give_up(str(error), place, text)
                return None
            value, known = OPAQUE, None
        if known is not None:
            return first(inner) if known else other(inner)
        if constant:
            machine.give_up("the condition of an `if constexpr` is not known to cutlint", place, text)
            return None
        branches = [Branch((Condition(value, True),), first), Branch((Condition(value, False),), other)]
        return machine.fork(inner, branches, place)

    return step


def _else(compiler: Compiler, unit: Unit, node: Node) -> Step:
    return _block(compiler, unit, node.named_children)


def _nothing(frame: Frame) -> Signal:
    return None


def _switch(compiler: Compiler, unit: Unit, node: Node) -> Step:
    condition_node, body = node.child_by_field_name("condition"), node.child_by_field_name("body")
    if condition_node is None or body is None:
        return _skipped(compiler, unit, node)
    condition = compiler.expression(unit, condition_node)
    cases = [each for each in body.named_children if each.type == "case_statement"]
    labels: list[Run | None] = []
    bodies: list[Step] = []
    for case in cases:
        label = case.child_by_field_name("value")
        labels.append(None if label is None else compiler.expression(unit, label))
        bodies.append(_block(compiler, unit, [each for each in case.named_children if each != label]))
    place, machine = unit.place(node), compiler.machine

    def following(start: int) -> Step:
        """From one label on, through to the break."""

        def run(frame: Frame) -> Signal:
            for each in bodies[start:]:
                signal = each(frame)
                if signal is not None:
                    return None if signal == BREAK else signal
            return None

        return run

    def step(frame: Frame) -> Signal:
        from cutlint.dispatch.machine import Branch, Frame

        inner = Frame(frame)
        value = condition(frame)
        if isinstance(value, Choices):
            value = OPAQUE
        known = [None if label is None else label(inner) for label in labels]
        if not isinstance(value, Symbol):
            for index, label in enumerate(known):
                if labels[index] is not None and truth(operation("==", value, label)):
                    return following(index)(inner)
            default = next((index for index, label in enumerate(labels) if label is None), None)
            return None if default is None else following(default)(inner)
        tests = [operation("==", value, label) for label, given in zip(known, labels, strict=True) if given is not None]
        otherwise = tuple(Condition(each, False) for each in tests)
        branches = [
            Branch((Condition(operation("==", value, label), True),), following(index), label)
            for index, label in enumerate(known)
            if labels[index] is not None
        ]
        rest: Step = next((following(index) for index, label in enumerate(labels) if label is None), _nothing)
        branches.append(Branch(otherwise, rest))
        return machine.fork(inner, branches, place, None if value is OPAQUE else value)

    return step


# -- loops


def _for(compiler: Compiler, unit: Unit, node: Node) -> Step:
    from cutlint.dispatch.machine import Frame

    names = ("initializer", "condition", "update", "body")
    initializer, condition, update, body = (node.child_by_field_name(name) for name in names)
    if body is None:
        return _skipped(compiler, unit, node)
    start = compiler.statement(unit, initializer) if initializer is not None else None
    test = compiler.expression(unit, condition) if condition is not None else None
    advance = compiler.expression(unit, update) if update is not None else None
    inside = compiler.statement(unit, body)
    place, machine = unit.place(node), compiler.machine

    def step(frame: Frame) -> Signal:
        inner = Frame(frame)
        if start is not None:
            start(inner)
        while True:
            machine.step(place)
            known = True if test is None else truth(test(inner))
            if known is None:
                return _some_times(machine, inner, inside, place)
            if not known:
                return None
            signal = inside(inner)
            if signal == BREAK:
                return None
            if signal in (RETURN, THROW):
                return signal
            if advance is not None:
                advance(inner)

    return step


def _some_times(machine: Machine, frame: Frame, body: Step, place: Place) -> Signal:
    """A loop over what is not known: its body may run."""
    from cutlint.dispatch.machine import Branch

    def once(inner: Frame) -> Signal:
        signal = body(inner)
        return None if signal == CONTINUE else signal

    branches = [Branch((Condition(OPAQUE, True),), once), Branch((Condition(OPAQUE, False),), _nothing)]
    return machine.fork(frame, branches, place)


def _try(compiler: Compiler, unit: Unit, node: Node) -> Step:
    """Where everything is known, the handler runs when the body throws; else the code after it goes on in any case."""
    from cutlint.dispatch.machine import Thrown

    body = node.child_by_field_name("body")
    handlers = [each.child_by_field_name("body") for each in node.named_children if each.type == "catch_clause"]
    if body is None or not handlers or handlers[0] is None:
        return _skipped(compiler, unit, node)
    first, handler = compiler.statement(unit, body), compiler.statement(unit, handlers[0])
    machine = compiler.machine

    def step(frame: Frame) -> Signal:
        if machine.explore:
            signal = first(frame)
            return None if signal == THROW else signal
        try:
            return first(frame)
        except Thrown:
            return handler(frame)

    return step


def _do(compiler: Compiler, unit: Unit, node: Node) -> Step:
    """``do { } while (0)``, as macros have it."""
    body, condition = node.child_by_field_name("body"), node.child_by_field_name("condition")
    if body is None or condition is None or unit.of(condition).strip("() \n") not in ("0", "false"):
        return _skipped(compiler, unit, node)
    inside = compiler.statement(unit, body)

    def step(frame: Frame) -> Signal:
        signal = inside(frame)
        return None if signal in (BREAK, CONTINUE) else signal

    return step


def _range_for(compiler: Compiler, unit: Unit, node: Node) -> Step:
    from cutlint.dispatch.machine import Frame

    declarator, right, body = (node.child_by_field_name(name) for name in ("declarator", "right", "body"))
    if declarator is None or right is None or body is None:
        return _skipped(compiler, unit, node)
    by_reference = declarator.type == "reference_declarator" and "const" not in unit.of(node).split(":")[0]
    while declarator.type == "reference_declarator":
        declarator = declarator.named_children[-1]
    binding = declarator.type == "structured_binding_declarator"
    names = [unit.of(each) for each in declarator.named_children] if binding else [unit.of(declarator)]
    over, inside = compiler.expression(unit, right), compiler.statement(unit, body)
    place, machine = unit.place(node), compiler.machine

    def step(frame: Frame) -> Signal:
        values = over(frame)
        if not isinstance(values, list):
            inner = Frame(frame)
            inner.names.update(dict.fromkeys(names, OPAQUE))
            return _some_times(machine, inner, inside, place)
        for each in list(values):
            machine.step(place)
            inner = Frame(frame)
            bind(inner, names, each if by_reference else copied(each))
            signal = inside(inner)
            if signal == BREAK:
                return None
            if signal in (RETURN, THROW):
                return signal
        return None

    return step


_STATEMENTS: dict[str, Callable[[Compiler, Unit, Node], Step]] = {
    "compound_statement": _compound,
    "return_statement": _return,
    "declaration": _declaration,
    "enum_specifier": _enum,
    "alias_declaration": _alias,
    "if_statement": _if,
    "else_clause": _else,
    "switch_statement": _switch,
    "for_statement": _for,
    "for_range_loop": _range_for,
    "do_statement": _do,
    "try_statement": _try,
    "break_statement": lambda compiler, unit, node: lambda frame: BREAK,
    "continue_statement": lambda compiler, unit, node: lambda frame: CONTINUE,
}
