"""The statements of a launcher that mean something at compile time: aliases, constants and static_asserts.

Read from syntax trees whose text has neither comments nor line continuations (see `cutlint.launcher`). A definition that
cannot be read stays, as `Unreadable`: only what needs it is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
from tree_sitter import Node

from cutlint import cpp
from cutlint.evaluate import Definition
from cutlint.expression import Call, Expression, Literal, Name, NotUnderstood, Operation, Unreadable, parse

KERNEL = "GemmUniversal"  # cutlass/gemm/kernel/gemm_universal.hpp

# what a body declares at compile time, besides constants
_DECLARING = frozenset(
    {
        "alias_declaration", "using_declaration", "type_definition", "static_assert_declaration",
        "namespace_alias_definition", "struct_specifier", "class_specifier", "union_specifier", "enum_specifier",
    }
)  # fmt: skip
_BUILT_IN = re.compile(r"(ENABLE|COMPILE|USING)_\w+")  # defined in a build with every feature


class Chain(msgspec.Struct, frozen=True):
    """What leads to the kernel: `definitions` visible where its alias `kernel` stands, messages of the static_asserts
    before it (by the name under which their conditions are among the definitions), and the `statements` up to the alias
    that mean something at compile time, white space folded."""

    definitions: dict[str, Definition]
    asserts: dict[str, str]
    kernel: str
    statements: tuple[str, ...]


def read_chain(body: Node, text: bytes, constants: set[str]) -> Chain:
    """The chain of the function body `body`. `constants` are names known from outside.

    Raises:
        NotUnderstood: where there is not one kernel, or a name means two things on the way to it.
    """
    aliases = cpp.captures("(alias_declaration) @alias", body).get("alias", ())
    kernels = [each for each in aliases if f"{KERNEL}<" in re.sub(r"\s+", "", _text(each, text))]
    if len(kernels) != 1:
        found = f"{len(kernels)} aliases" if kernels else "no alias"
        raise NotUnderstood(f"{found} of {KERNEL}<...> in the macro's body", (kernels or [body])[0].start_byte)
    kernel = kernels[0]
    blocks: list[Node] = []
    node: Node | None = kernel
    while node is not None and node != body:
        if node.type in ("compound_statement", "declaration_list"):
            blocks.append(node)
        node = node.parent
    definitions: dict[str, Definition] = {}
    asserts: dict[str, str] = {}
    statements: list[str] = []
    for block in (body, *reversed(blocks)):
        for child in block.named_children:
            if child.start_byte > kernel.start_byte:
                break
            definition = definition_of(child, text)
            if child.type in _DECLARING or (
                definition is not None and _is_constant(child, definition, constants, text)
            ):
                written = " ".join(_text(child, text).split())
                statements.append(written if written.endswith(";") else f"{written};")
                constants |= {definition.name} if definition is not None else set()
            if child.type == "static_assert_declaration":
                definition, message = _static_assert(child, text)
                asserts[definition.name] = message
            if definition is None:
                continue
            if definition.name in definitions:
                raise NotUnderstood(f"'{definition.name}' is defined twice on the way to the kernel", child.start_byte)
            definitions[definition.name] = definition
    name = kernel.child_by_field_name("name")
    assert name is not None  # an alias_declaration always has one
    return Chain(definitions, asserts, _text(name, text), tuple(statements))


def _text(node: Node, text: bytes) -> str:
    return text[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _is_constant(node: Node, definition: Definition, known: set[str], text: bytes) -> bool:
    """Whether a declaration with a value has it at compile time: it is ``constexpr``, or ``const`` and made of such."""
    if "constexpr" in [token.text for token in cpp.tokens(node, text)]:
        return True
    return not isinstance(definition.value, Unreadable) and all(name in known for name in names(definition.value))


def definition_of(node: Node, text: bytes) -> Definition | None:
    """The definition that one statement makes, if it is a ``using X = ...``, a ``typedef ... X`` or a constant."""
    if node.type not in ("alias_declaration", "declaration", "type_definition"):
        return None
    found = list(cpp.tokens(node, text))
    if len(found) < 4 or found[-1].text != ";":
        return None
    span = (node.start_byte, node.end_byte)
    if node.type == "type_definition":
        return Definition(found[-2].text, _value(found[1:-2]), (), span)
    words = [token.text for token in found]
    begin = _initializer(found)
    if begin is None or (node.type == "declaration" and not {"constexpr", "const"} & set(words[:begin])):
        return None
    value = found[begin + 1 : -1] if words[begin] == "=" else found[begin + 1 : -2]
    if words[begin] == "=" and len(value) > 2 and value[0].text == "{" and value[-1].text == "}":
        value = value[1:-1]
    return Definition(words[begin - 1], _value(value), (), span)


def _initializer(tokens: list[cpp.Token]) -> int | None:
    """Where the initializer of a declaration begins: at ``=``, or at ``{`` or ``(`` directly behind the name."""
    depth = 0
    for index, token in enumerate(tokens):
        if token.template:
            depth += 1 if token.text == "<" else -1
        elif depth == 0 and (token.text == "=" or (index > 1 and token.text in "{(")):
            return index
    return None


def _value(tokens: list[cpp.Token]) -> Expression:
    try:
        return parse(tokens)
    except NotUnderstood as error:
        return Unreadable(str(error), error.offset or 0)


def _static_assert(node: Node, text: bytes) -> tuple[Definition, str]:
    condition, message = node.child_by_field_name("condition"), node.child_by_field_name("message")
    assert condition is not None  # a static_assert_declaration always has one
    words = [] if message is None else re.findall(r'"((?:\\.|[^"\\])*)"', _text(message, text))
    value = _value(list(cpp.tokens(condition, text)))
    definition = Definition(f"static_assert@{node.start_byte}", value, (), (node.start_byte, node.end_byte))
    return definition, "".join(words) or " ".join(_text(condition, text).split())


def definitions_at_file_level(nodes: Iterable[Node], text: bytes) -> dict[str, Definition]:
    """Aliases and constants outside any function, as a build with every feature enabled sees them.

    The launchers' ``#ifdef ENABLE_FP8 ... #else ... #endif`` define ``SafeFP8`` and the like. A name that means different
    things under a condition that cutlint does not evaluate is `Unreadable`.
    """
    definitions: dict[str, Definition] = {}
    for node in nodes:
        if node.type in ("namespace_definition", "declaration_list", "linkage_specification"):
            found = definitions_at_file_level(node.named_children, text)
        elif node.type in ("preproc_ifdef", "preproc_if", "preproc_elif"):
            found = _conditional(node, text)
        else:
            one = definition_of(node, text)
            found = {} if one is None else {one.name: one}
        for name, definition in found.items():
            definitions.setdefault(name, definition)
    return definitions


def _conditional(node: Node, text: bytes) -> dict[str, Definition]:
    other = node.child_by_field_name("alternative")
    head = [node.child_by_field_name("name"), node.child_by_field_name("condition"), other]
    taken = definitions_at_file_level([each for each in node.named_children if each not in head], text)
    if other is None:
        left: dict[str, Definition] = {}
    elif other.type == "preproc_else":
        left = definitions_at_file_level(other.named_children, text)
    else:
        left = _conditional(other, text)
    holds = _holds(node, text)
    if holds is not None:
        return taken if holds else left
    for name in taken.keys() & left.keys():
        message = f"'{name}' depends on a preprocessor condition that cutlint does not evaluate"
        taken[name] = msgspec.structs.replace(taken[name], value=Unreadable(message, node.start_byte))
    return {**left, **taken}


def _holds(node: Node, text: bytes) -> bool | None:
    """Whether a preprocessor condition holds in a build with every feature enabled; None where that is not known."""
    name, condition = node.child_by_field_name("name"), node.child_by_field_name("condition")
    if name is not None:
        known = _BUILT_IN.fullmatch(_text(name, text)) is not None
        return (not _text(node, text).lstrip("# \t").startswith("ifndef")) if known else None
    words = "" if condition is None else re.sub(r"[\s()]|defined", "", _text(condition, text))
    if words in ("0", "1"):
        return words == "1"
    return True if words and all(_BUILT_IN.fullmatch(each) for each in words.split("&&")) else None


def names(expression: Expression) -> list[str]:
    """Every name that `expression` mentions."""
    found: list[str] = []
    stack: list[Expression] = [expression]
    while stack:
        current = stack.pop()
        if isinstance(current, Name):
            found.extend(part.text for part in current.parts)
            stack.extend(each for part in current.parts for each in part.arguments or ())
        elif isinstance(current, Operation):
            stack.extend(current.operands)
        elif isinstance(current, Call):
            stack.extend((current.callee, *current.arguments))
        else:
            assert isinstance(current, (Literal, Unreadable))
    return found
