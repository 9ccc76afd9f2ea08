"""Host code read: functions, classes, enumerations and aliases by name, namespaces dropped.

None of the names that decide what is dispatched exists twice, so namespaces are not kept. Nothing is evaluated here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from tree_sitter import Node

from cutlint import cpp
from cutlint.dispatch.preprocess import Defined, preprocess
from cutlint.dispatch.values import Place
from cutlint.expression import NotUnderstood
from cutlint.records import Problem


class Unit(msgspec.Struct, frozen=True, eq=False):
    """One preprocessed file."""

    path: str
    text: bytes

    def of(self, node: Node) -> str:
        """The text of `node`."""
        return self.text[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def place(self, node: Node) -> Place:
        return Place(self.path, node.start_point[0])


class Parameter(msgspec.Struct, frozen=True, eq=False):
    """A parameter of a function or a template. `type` is its type's node; `condition` that of an ``enable_if``."""

    name: str
    type: Node | None = None
    default: Node | None = None
    condition: Node | None = None


class Function(msgspec.Struct, frozen=True, eq=False):
    """A function definition, or a declaration (`body` None). A member's `owner` has the template parameters `outer`,
    and in a specialization the arguments `pattern`; `initializers` are a constructor's, as name and argument nodes."""

    unit: Unit
    node: Node
    name: str
    template: tuple[Parameter, ...]
    parameters: tuple[Parameter, ...]
    body: Node | None
    owner: str | None = None
    outer: tuple[Parameter, ...] = ()
    pattern: tuple[Node, ...] | None = None
    initializers: tuple[tuple[str, Node], ...] = ()


class Class(msgspec.Struct, frozen=True, eq=False):
    """A class: its template parameters, static constants, and the default values of its other members."""

    unit: Unit
    name: str
    template: tuple[Parameter, ...]
    constants: dict[str, Node]
    members: dict[str, Node | None]


class Instance(msgspec.Struct, frozen=True, eq=False):
    """``template class name<arguments>;``."""

    unit: Unit
    node: Node
    name: str
    arguments: tuple[Node, ...]


class Program:
    """Everything that some files define."""

    def __init__(self) -> None:
        self.functions: dict[str, list[Function]] = {}
        self.classes: dict[str, Class] = {}
        self.enumerations: dict[str, dict[str, tuple[Unit, Node, Node | None]]] = {}
        self.unscoped: dict[str, str] = {}  # enumerators of enumerations without a scope, with their enumeration
        self.aliases: dict[str, tuple[Unit, Node]] = {}
        self.instances: list[Instance] = []
        self.namespaces: set[str] = set()
        self.declared: set[str] = set()  # names of template parameters
        self.problems: list[Problem] = []

    def add(self, path: str, data: bytes, defined: Defined) -> None:
        """Read one more file; what cannot be read goes to `problems`."""
        try:
            text, undecided = msgspec.structs.astuple(preprocess(data, defined))
        except NotUnderstood as error:
            self.problems.append(Problem(path, str(error)))
            return
        root = cpp.parse(text).root_node
        if cpp.depth_exceeds(root):
            self.problems.append(Problem(path, "is nested deeper than any host code is"))
            return
        unit = Unit(path, text)
        self.namespaces.update(_NAMESPACE.findall(text.decode("utf-8", "replace").replace("::", " namespace ")))
        for node, levels in _declarations(root, ()):
            self._declare(unit, node, levels)
        for line, condition in undecided:
            self._undecided(path, line, condition)

    def _undecided(self, path: str, line: int, condition: str) -> None:
        for listed in self.functions.values():
            for function in listed:
                start, end = function.node.start_point[0], function.node.end_point[0]
                if function.unit.path == path and function.body is not None and start <= line <= end:
                    message = f"{function.name} depends on the condition '{condition}', which cutlint cannot decide"
                    source = cpp.Source(path, function.unit.text)
                    where = source.range(function.node.start_byte, function.node.start_byte)
                    self.problems.append(Problem(path, message, where))

    def _declare(self, unit: Unit, node: Node, levels: Levels) -> None:
        if node.type in ("struct_specifier", "class_specifier"):
            self._class(unit, node, levels)
        elif node.type == "enum_specifier":
            self._enumeration(unit, node)
        elif node.type == "alias_declaration":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("type")
            if name is not None and value is not None and not levels:
                self.aliases.setdefault(unit.of(name), (unit, value))
        elif node.type == "template_instantiation":
            self._instance(unit, node)
        else:
            function = function_of(unit, node, levels)
            if function is not None:
                self._keep(function)

    def _keep(self, function: Function) -> None:
        self.functions.setdefault(function.name, []).append(function)
        self.declared.update(each.name for each in (*function.template, *function.outer))

    def _enumeration(self, unit: Unit, node: Node) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            listed = enumerators(unit, body)
            self.enumerations.setdefault(unit.of(name), {}).update(listed)
            if not any(child.type in ("class", "struct") for child in node.children):
                self.unscoped.update(dict.fromkeys(listed, unit.of(name)))

    def _class(self, unit: Unit, node: Node, levels: Levels) -> None:
        named, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if named is None or body is None:
            return
        inner = named.child_by_field_name("name") if named.type == "template_type" else named
        name = unit.of(inner if inner is not None else named)
        pattern = _arguments(named) if named.type == "template_type" else None
        template = parameters(unit, levels[-1]) if levels else ()
        constants: dict[str, Node] = {}
        members: dict[str, Node | None] = {}
        for child, own in _declarations(body, ()):
            if child.type == "field_declaration":
                self._member(unit, child, constants, members)
            elif child.type in ("enum_specifier", "struct_specifier", "class_specifier"):
                self._declare(unit, child, own)
            elif (function := function_of(unit, child, own)) is not None:
                self._keep(msgspec.structs.replace(function, owner=name, outer=template, pattern=pattern))
        if pattern is None:
            self.classes.setdefault(name, Class(unit, name, template, constants, members))

    def _member(self, unit: Unit, node: Node, constants: dict[str, Node], members: dict[str, Node | None]) -> None:
        declared = node.child_by_field_name("type")
        if declared is not None and declared.type == "enum_specifier":
            self._enumeration(unit, declared)
        value = node.child_by_field_name("default_value")
        name = node.child_by_field_name("declarator")
        if name is None or name.type != "field_identifier":
            return
        words = {unit.of(child) for child in node.children if child.type in _QUALIFIERS}
        if "static" in words or "constexpr" in words:
            if value is not None:
                constants[unit.of(name)] = value
        else:
            members[unit.of(name)] = value

    def _instance(self, unit: Unit, node: Node) -> None:
        for child in node.named_children:
            named = child.child_by_field_name("name") if child.type in ("class_specifier", "struct_specifier") else None
            if named is not None and named.type == "template_type":
                inner = named.child_by_field_name("name")
                assert inner is not None  # a template_type always has one
                self.instances.append(Instance(unit, node, unit.of(inner), _arguments(named)))


_NAMESPACE = re.compile(r"\bnamespace\s+(\w+)(?=\s*(?:\{|=|namespace\b))")
_QUALIFIERS = ("storage_class_specifier", "type_qualifier")
Levels = tuple[Node, ...]  # the parameter lists of the templates around a declaration, the outer first


def _declarations(node: Node, levels: Levels) -> Iterator[tuple[Node, Levels]]:
    """The declarations in `node`, those of inner namespaces too, each with the templates around it."""
    for child in node.named_children:
        if child.type in ("namespace_definition", "declaration_list", "linkage_specification"):
            yield from _declarations(child, ())
        elif child.type == "template_declaration":
            listed = child.child_by_field_name("parameters")
            yield from _declarations(child, (*levels, listed) if listed is not None else levels)
        elif child.type != "template_parameter_list":
            yield child, levels


def function_of(unit: Unit, node: Node, levels: Levels) -> Function | None:
    """The function that `node` defines or declares, if it is one."""
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type in ("pointer_declarator", "reference_declarator"):
        declarator = declarator.named_children[-1] if declarator.named_children else None
    if declarator is None or declarator.type != "function_declarator":
        return None
    named, listed = declarator.child_by_field_name("declarator"), declarator.child_by_field_name("parameters")
    if named is None or listed is None:
        return None
    owner: str | None = None
    while named.type == "qualified_identifier":
        scope, inner = named.child_by_field_name("scope"), named.child_by_field_name("name")
        if inner is None:
            return None
        if scope is not None:
            plain = scope.child_by_field_name("name") if scope.type == "template_type" else scope
            owner = unit.of(plain if plain is not None else scope)
        named = inner
    templates = [parameters(unit, each) for each in levels]
    outer = templates.pop(0) if owner is not None and templates else ()
    body = node.child_by_field_name("body")
    return Function(
        unit=unit,
        node=node,
        name=unit.of(named),
        template=templates[0] if templates else (),
        parameters=parameters(unit, listed),
        body=body if body is not None and body.type == "compound_statement" else None,
        owner=owner,
        outer=outer,
        initializers=tuple(_initializers(unit, node)),
    )


def _initializers(unit: Unit, node: Node) -> Iterator[tuple[str, Node]]:
    for child in node.named_children:
        if child.type == "field_initializer_list":
            for each in child.named_children:
                if each.type == "field_initializer" and each.named_child_count == 2:
                    yield unit.of(each.named_children[0]), each.named_children[1]


def parameters(unit: Unit, listed: Node) -> tuple[Parameter, ...]:
    """The parameters of a function or a template."""
    return tuple(_parameter(unit, each) for each in listed.named_children if each.type.endswith("declaration"))


def _parameter(unit: Unit, node: Node) -> Parameter:
    if "type_parameter" in node.type:
        name, default = node.child_by_field_name("name"), node.child_by_field_name("default_type")
        if name is None:
            name = next((each for each in node.named_children if each.type == "type_identifier"), None)
        return Parameter("" if name is None else unit.of(name), default=default)
    kind, declarator = node.child_by_field_name("type"), node.child_by_field_name("declarator")
    while declarator is not None and declarator.type.endswith("_declarator"):
        declarator = declarator.named_children[-1] if declarator.named_children else None
    condition = None if kind is None else _enabled_if(unit, kind)
    default = node.child_by_field_name("default_value")
    return Parameter("" if declarator is None else unit.of(declarator), kind, default, condition)


def _enabled_if(unit: Unit, kind: Node) -> Node | None:
    """The condition of ``std::enable_if<condition>`` in the type `kind`."""
    for found in cpp.descendants(kind, "template_type"):
        name = found.child_by_field_name("name")
        if name is not None and unit.of(name) in ("enable_if", "enable_if_t"):
            given = _arguments(found)
            return given[0] if given else None
    return None


def _arguments(template: Node) -> tuple[Node, ...]:
    listed = template.child_by_field_name("arguments")
    return () if listed is None else tuple(listed.named_children)


def enumerators(unit: Unit, body: Node) -> dict[str, tuple[Unit, Node, Node | None]]:
    """The enumerators of an enumeration's body, in order: node and value, if it has one."""
    found: dict[str, tuple[Unit, Node, Node | None]] = {}
    for each in body.named_children:
        name = each.child_by_field_name("name") if each.type == "enumerator" else None
        if name is not None:
            found[unit.of(name)] = (unit, each, each.child_by_field_name("value"))
    return found
