"""The statements of a launcher that mean something at compile time: aliases, constants and static_asserts.

Read from syntax trees whose text has neither comments nor line continuations (see `cutlint.launcher`). A definition that
cannot be read stays, as `Unreadable`: only what needs it is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec
from tree_sitter import Node

from cutlint import cpp
from cutlint.evaluate import Definition
from cutlint.expression import Expression, NotUnderstood, Unreadable, names, parse

KERNEL = "GemmUniversal"  # cutlass/gemm/kernel/gemm_universal.hpp
ADAPTER = "GemmUniversalAdapter"  # cutlass/gemm/device/gemm_universal_adapter.h, around a kernel of any template
STATIC_SIZE = "kSmemSize"  # what a kernel without CUTLASS's SharedStorage calls its size (fused_moe_kernel.cuh)
_KERNEL_TYPE = re.compile(rf"\b{KERNEL}<|\b{ADAPTER}<|\b\w+::{STATIC_SIZE}\b")

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
    that mean something at compile time, white space folded. `static_size` is the kernel's member that holds its size where
    it has no SharedStorage of its own."""

    definitions: dict[str, Definition]
    asserts: dict[str, str]
    kernel: str
    statements: tuple[str, ...]
    static_size: str | None = None


def leads_to_kernel(body: bytes) -> bool:
    """Whether the text of a function's body names a kernel's type in one of the ways that `read_chain` knows."""
    return _KERNEL_TYPE.search(_squeezed(body)) is not None


def read_chain(body: Node, text: bytes, constants: set[str]) -> Chain:
    """The chain of the function body `body`. `constants` are names known from outside.

    Raises:
        NotUnderstood: where there is not one kernel, or a name means two things on the way to it.
    """
    kernel, static_size = _kernel(body, text)
    blocks: list[Node] = []
    node: Node | None = kernel
    while node is not None and node != body:
        if node.type in ("compound_statement", "declaration_list"):
            blocks.append(node)
        if node.parent is not None and node.parent.type in _CONDITIONS:
            _check_taken(node.parent, node, text)
        node = node.parent
    definitions: dict[str, Definition] = {}
    asserts: dict[str, str] = {}
    statements: list[str] = []
    for block in (body, *reversed(blocks)):
        for child in _visible(block, text):
            if child.start_byte > kernel.start_byte:
                break
            if child.type in _CONDITIONS:  # one that is not evaluated
                _define(definitions, _conditional(child, text).values())
                continue
            definition = definition_of(child, text)
            if child.type in _DECLARING or (
                definition is not None and _is_constant(child, definition, constants, text)
            ):
                written = " ".join(_text(child, text).split())
                statements.append(written if written.endswith(";") else f"{written};")
                constants |= {definition.name} if definition is not None else set()
            if child.type == "static_assert_declaration":
                definition, message = static_assert(child, text)
                asserts[definition.name] = message
            if definition is not None:
                _define(definitions, (definition,))
    kernel_name = _alias_name(kernel, text)
    return Chain(definitions, asserts, kernel_name, tuple(statements), static_size)


def _check_taken(condition: Node, branch: Node, text: bytes) -> None:
    """
    Raises:
        NotUnderstood: unless the `branch` of a preprocessor condition, its first or its alternative, is known to be taken.
    """
    holds = _holds(condition, text)
    if holds is None or holds == (branch == condition.child_by_field_name("alternative")):
        why = "cutlint does not evaluate" if holds is None else "does not hold in a build with every feature"
        raise NotUnderstood(f"the kernel stands under a preprocessor condition that {why}", condition.start_byte)


def _define(definitions: dict[str, Definition], found: Iterable[Definition]) -> None:
    for each in found:
        if each.name in definitions:
            raise NotUnderstood(f"'{each.name}' is defined twice on the way to the kernel", each.span[0])
        definitions[each.name] = each


def _kernel(body: Node, text: bytes) -> tuple[Node, str | None]:
    """The alias of the kernel's type, and its member that holds the size where that is not sizeof its SharedStorage."""
    aliases = list(cpp.descendants(body, "alias_declaration"))
    squeezed = {each: _squeezed(text[each.start_byte : each.end_byte]) for each in aliases}
    kernels = [each for each in aliases if f"{KERNEL}<" in squeezed[each]]
    static_size: str | None = None
    if not kernels:
        whole = _squeezed(text[body.start_byte : body.end_byte])
        named = set(re.findall(rf"\b{ADAPTER}<(\w+)>", whole))
        if not named:
            named, static_size = set(re.findall(rf"\b(\w+)::{STATIC_SIZE}\b", whole)), STATIC_SIZE
        kernels = [each for each in aliases if _alias_name(each, text) in named]
    if len(kernels) != 1:
        found = f"{len(kernels)} aliases" if kernels else "no alias"
        raise NotUnderstood(f"{found} of {KERNEL}<...> in the launcher's body", (kernels or [body])[0].start_byte)
    return kernels[0], static_size


def _alias_name(alias: Node, text: bytes) -> str:
    name = alias.child_by_field_name("name")
    return "" if name is None else _text(name, text)


def _squeezed(text: bytes) -> str:
    return re.sub(r"(?<!\w)\s+|\s+(?!\w)", "", text.decode("utf-8", "replace"))


_CONDITIONS = ("preproc_ifdef", "preproc_if", "preproc_elif", "preproc_elifdef")


def _visible(block: Node, text: bytes) -> Iterator[Node]:
    """The statements of a block with those of the preprocessor branches that hold in a build with every feature. What
    stands under a condition that is not known comes as the condition's node."""
    stack = list(reversed(block.named_children))
    while stack:
        node = stack.pop()
        if node.type not in _CONDITIONS:
            yield node
            continue
        holds = _holds(node, text)
        other = node.child_by_field_name("alternative")
        if holds is None:
            yield node
        elif holds:
            head = (node.child_by_field_name("name"), node.child_by_field_name("condition"), other)
            stack.extend(reversed([each for each in node.named_children if each not in head]))
        elif other is not None:
            stack.extend(reversed(other.named_children) if other.type == "preproc_else" else [other])


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


def static_assert(node: Node, text: bytes) -> tuple[Definition, str]:
    """A static_assert's condition, as a definition with a name of its own, and its message."""
    condition, message = node.child_by_field_name("condition"), node.child_by_field_name("message")
    assert condition is not None  # a static_assert_declaration always has one
    words = [] if message is None else re.findall(r'"((?:\\.|[^"\\])*)"', _text(message, text))
    value = _value(list(cpp.tokens(condition, text)))
    definition = Definition(f"static_assert@{node.start_byte}", value, (), (node.start_byte, node.end_byte))
    return definition, "".join(words) or " ".join(_text(condition, text).split())


def definitions_at_file_level(nodes: Iterable[Node], text: bytes, undefined: bool = False) -> dict[str, Definition]:
    """Aliases and constants outside any function, as a build with every feature enabled sees them.

    The launchers' ``#ifdef ENABLE_FP8 ... #else ... #endif`` define ``SafeFP8`` and the like. A name that means different
    things under a condition that cutlint does not evaluate is `Unreadable`. `undefined`: macros that cutlint does not know
    are taken as undefined, as a header's own switches are.
    """
    definitions: dict[str, Definition] = {}
    for node in nodes:
        if node.type in ("namespace_definition", "declaration_list", "linkage_specification"):
            found = definitions_at_file_level(node.named_children, text, undefined)
        elif node.type in ("preproc_ifdef", "preproc_if", "preproc_elif"):
            found = _conditional(node, text, undefined)
        else:
            one = definition_of(node, text)
            found = {} if one is None else {one.name: one}
        for name, definition in found.items():
            definitions.setdefault(name, definition)
    return definitions


def _conditional(node: Node, text: bytes, undefined: bool = False) -> dict[str, Definition]:
    other = node.child_by_field_name("alternative")
    head = [node.child_by_field_name("name"), node.child_by_field_name("condition"), other]
    taken = definitions_at_file_level([each for each in node.named_children if each not in head], text, undefined)
    if other is None:
        left: dict[str, Definition] = {}
    elif other.type == "preproc_else":
        left = definitions_at_file_level(other.named_children, text, undefined)
    else:
        left = _conditional(other, text, undefined)
    holds = _holds(node, text, undefined)
    if holds is not None:
        return taken if holds else left
    for name in taken.keys() & left.keys():
        message = f"'{name}' depends on a preprocessor condition that cutlint does not evaluate"
        taken[name] = msgspec.structs.replace(taken[name], value=Unreadable(message, node.start_byte))
    return {**left, **taken}


def _holds(node: Node, text: bytes, undefined: bool = False) -> bool | None:
    """Whether a preprocessor condition holds in a build with every feature enabled; None where that is not known."""
    name, condition = node.child_by_field_name("name"), node.child_by_field_name("condition")
    if name is not None:
        known = _BUILT_IN.fullmatch(_text(name, text)) is not None
        negated = _text(node, text).lstrip("# \t").startswith("ifndef")
        return known != negated if known or undefined else None
    words = "" if condition is None else re.sub(r"[\s()]|defined", "", _text(condition, text))
    if words in ("0", "1"):
        return words == "1"
    if words and all(_BUILT_IN.fullmatch(each) for each in words.split("&&")):
        return True
    return words.startswith("!") if undefined and re.fullmatch(r"!?[A-Za-z_]\w*", words) else None
