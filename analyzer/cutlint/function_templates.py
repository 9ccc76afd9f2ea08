"""Launchers that are function templates, as the mixed-input, weight-only and fused Sm80 ones are.

The function's own body leads to the kernel, or it only calls another template of the same file that does. Default
arguments stand in the header that declares the function.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from tree_sitter import Node

from cutlint import cpp
from cutlint.chain import Chain, leads_to_kernel, read_chain, static_assert
from cutlint.evaluate import Definition
from cutlint.expression import NotUnderstood
from cutlint.expression import read as read_expression
from cutlint.headers import parameter_name
from cutlint.instantiations import template_arguments
from cutlint.launcher import File, Launcher, Parameter
from cutlint.records import Problem


class _Function(msgspec.Struct, frozen=True):
    """A function template: where its name stands, its parameters, its body and the body's text."""

    span: tuple[int, int]
    parameters: tuple[Parameter, ...]
    body: Node
    text: bytes


def read(file: File, root: Node) -> tuple[list[Launcher], list[Problem]]:
    """The launchers among the function templates below `root`, and what of them could not be understood."""
    launchers: list[Launcher] = []
    problems: list[Problem] = []
    functions = _functions(file, root, problems)
    chains: dict[str, Chain] = {}
    leading = {name for name, each in functions.items() if leads_to_kernel(each.text)}
    for name, each in functions.items():
        if name in leading:
            try:
                constants = {*(parameter.name for parameter in each.parameters), *file.definitions}
                chains[name] = read_chain(each.body, file.text, constants)
                launchers.append(_launcher(file, name, each, each.text, chains[name]))
            except NotUnderstood as error:
                problems.append(_problem(file, name, each, error))
    for name, each in functions.items():
        called = None if name in leading else _called(each, chains, file.text)
        if called is not None:
            try:
                target = functions[called[0]]
                chain = _through(file, each, target, called[1], chains[called[0]])
                launchers.append(_launcher(file, name, each, target.text, chain, called[0]))
            except NotUnderstood as error:
                problems.append(_problem(file, name, each, error))
    return launchers, problems


def _problem(file: File, name: str, function: _Function, error: NotUnderstood) -> Problem:
    start, end = function.span if error.offset is None else (error.offset, error.offset + 1)
    return Problem(file.source.name, f"{name}: {error}", file.source.range(start, end))


def _launcher(
    file: File, name: str, function: _Function, body: bytes, chain: Chain, through: str | None = None
) -> Launcher:
    declared = _with_defaults(file, name, function.parameters)
    return Launcher(file, name, declared, function.span, body, chain, through)


def _functions(file: File, root: Node, problems: list[Problem]) -> dict[str, _Function]:
    """The function templates with a body, by name. Overloads that lead to a kernel are a problem."""
    found: dict[str, _Function] = {}
    twice: set[str] = set()
    for template in cpp.descendants(root, "template_declaration"):
        function = next((each for each in template.named_children if each.type == "function_definition"), None)
        if function is None:
            continue
        name, body = _name(function), function.child_by_field_name("body")
        if name is None or body is None:
            continue
        text = file.source.slice(name.start_byte, name.end_byte)
        span = (name.start_byte, name.end_byte)
        if text in found or text in twice:
            twice.add(text)
            first = found.pop(text, None)
            if first is not None and leads_to_kernel(first.text):
                message = f"{text} is defined more than once; which one counts is not known"
                problems.append(Problem(file.source.name, message, file.source.range(*span)))
            continue
        found[text] = _Function(
            span, tuple(_parameters(template, file.text)), body, file.text[body.start_byte : body.end_byte]
        )
    return found


def _name(function: Node) -> Node | None:
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type not in ("identifier", "field_identifier"):
        declarator = declarator.child_by_field_name("declarator")
    return declarator


def _parameters(template: Node, text: bytes) -> Iterator[Parameter]:
    listed = template.child_by_field_name("parameters")
    for each in listed.named_children if listed is not None else ():
        default = each.child_by_field_name("default_value") or each.child_by_field_name("default_type")
        end = each.end_byte
        if default is not None:
            end = text.rindex(b"=", each.start_byte, default.start_byte)
        declared = " ".join(text[each.start_byte : end].decode("utf-8", "replace").split())
        value = None
        if default is not None:
            value = " ".join(text[default.start_byte : default.end_byte].decode("utf-8", "replace").split())
        yield Parameter(parameter_name(each, text), declared, value)


def _with_defaults(file: File, name: str, parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """The parameters with the default arguments of the function's declaration in a header, by position."""
    for data in file.headers.texts(name):
        for template in cpp.descendants(cpp.parse(data).root_node, "template_declaration"):
            declaration = next((each for each in template.named_children if each.type == "declaration"), None)
            declared = None if declaration is None else _name(declaration)
            if declared is None or data[declared.start_byte : declared.end_byte] != name.encode():
                continue
            listed = tuple(_parameters(template, data))
            if len(listed) == len(parameters):
                pairs = zip(parameters, listed, strict=True)
                return tuple(msgspec.structs.replace(own, default=own.default or other.default) for own, other in pairs)
    return parameters


def _called(function: _Function, chains: dict[str, Chain], text: bytes) -> tuple[str, list[tuple[int, int]]] | None:
    """The one launcher that the function calls, with the byte spans of the template arguments."""
    found = []
    for call in cpp.descendants(function.body, "template_function"):
        if call.parent is None or call.parent.child_by_field_name("function") != call:
            continue
        named = call.child_by_field_name("name")
        name = "" if named is None else text[named.start_byte : named.end_byte].decode("utf-8", "replace")
        if name in chains and named is not None:
            opening = text.index(b"<", named.end_byte)
            spans = template_arguments(text, opening, call.end_byte)
            found.append((name, spans or []))
    return found[0] if len(found) == 1 else None


def _through(file: File, function: _Function, target: _Function, spans: list[tuple[int, int]], chain: Chain) -> Chain:
    """The chain of `target` as seen by `function`, which calls it with the template arguments at `spans`."""
    if len(spans) != len(target.parameters):
        raise NotUnderstood("it calls another launcher with some template arguments left out", function.span[0])
    own = {each.name for each in function.parameters}
    definitions: dict[str, Definition] = {}
    statements: list[str] = []
    for parameter, (start, end) in zip(target.parameters, spans, strict=True):
        written = " ".join(file.text[start:end].decode("utf-8", "replace").split())
        if written == parameter.name:
            continue
        if parameter.name in own:
            raise NotUnderstood(f"'{parameter.name}' means two things on the way to the kernel", start)
        value = read_expression(file.text[start:end])
        definitions[parameter.name] = Definition(parameter.name, value, (), (start, end))
        statements.append(parameter.bound(written))
    asserts: dict[str, str] = {}
    for node in function.body.named_children:
        if node.type == "static_assert_declaration":
            definition, message = static_assert(node, file.text)
            definitions[definition.name] = definition
            asserts[definition.name] = message
            statements.append(" ".join(file.text[node.start_byte : node.end_byte].decode("utf-8", "replace").split()))
    return Chain(
        {**definitions, **chain.definitions},
        {**asserts, **chain.asserts},
        chain.kernel,
        (*statements, *chain.statements),
        chain.static_size,
    )
