"""A launcher ``.inl`` read: its instantiation macro's parameters and the chain of aliases that leads to the kernel.

`read` finds, without fixed line numbers and without fixed names but CUTLASS's own ``GemmUniversal``, the
function-like macro whose body names a kernel, joins its line continuations and parses the body again as C++. Every
offset stays what it is in the file, so each alias keeps its line and column.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property, lru_cache
from operator import itemgetter
from pathlib import Path

from tree_sitter import Node

from cutlint import cpp
from cutlint.evaluate import Definition, Scope, Sizeof, Type, Value
from cutlint.expression import Call, Expression, Literal, Name, NotUnderstood, Operation, parse
from cutlint.headers import Headers
from cutlint.records import Instantiation, Location, Problem, Range

KERNEL = "GemmUniversal"  # cutlass/gemm/kernel/gemm_universal.hpp
MAX_BYTES = 4 * 2**20

_COMPARES_LIMIT = re.compile(r"sharedMemPerBlockOptin|MaxSharedMemoryPerBlockOptin|max_?(shared|smem)", re.I)


class Launcher:
    """One instantiation macro of a launcher: evaluates its aliases for the arguments of an instantiation."""

    def __init__(
        self,
        source: cpp.Source,
        name: str,
        parameters: tuple[str, ...],
        span: tuple[int, int],
        body: Node,
        text: bytes,
        file_definitions: dict[str, Definition],
        headers: Headers,
    ) -> None:
        self.path = source.name
        self.name = name
        self.parameters = parameters
        self.span = span
        self._source = source
        self._file_definitions = file_definitions
        self._headers = headers
        self._text = text
        self.definitions, self.asserts, self.kernel, self.statements = _chain(body, text)
        self._caches: dict[bool, dict[object, Value]] = {True: {}, False: {}}
        self._needs_cache: dict[str, tuple[str, ...]] = {}

    @cached_property
    def _scope_definitions(self) -> dict[str, Definition]:
        return {**self._file_definitions, **self.definitions}

    @cached_property
    def checks_limit(self) -> bool:
        """Whether the launcher compares the kernel's shared memory with what the device allows."""
        text = self._text.decode("utf-8", "replace")
        compared = re.search(
            r"(SharedStorage\w*|smem_?size\w*|kSmemSize)[^;{}]{0,200}[<>]=?|[<>]=?[^;{}]{0,200}SharedStorage", text
        )
        return compared is not None and _COMPARES_LIMIT.search(text) is not None

    def location(self, name: str, message: str = "") -> Location | None:
        """Where the alias or constant `name` is defined in the launcher."""
        definition = self.definitions.get(name)
        if definition is None:
            return None
        return Location(self.path, self._source.range(*definition.span), message)

    @cached_property
    def decisions(self) -> tuple[tuple[str, str], ...]:
        """The aliases given to the mainloop's builder as stage count and kernel schedule, with what each is."""
        for definition in self.definitions.values():
            for arguments in _template_arguments(definition.value, "CollectiveBuilder"):
                if len(arguments) in (12, 13):  # the mainloop's; the epilogue's has 14 or 15
                    labels = ("the stage count is decided here", "the kernel schedule is decided here")
                    named = zip(arguments[11:], labels, strict=False)
                    return tuple((each.parts[-1].text, label) for each, label in named if isinstance(each, Name))
        return ()

    def range_at(self, offset: int | None) -> Range:
        """The place of a byte offset; the macro's name when there is none."""
        if offset is None:
            return self._source.range(*self.span)
        return self._source.range(offset, offset + 1)

    def check(self, scope: Scope) -> str | None:
        """The message of the first of the launcher's own static_asserts that fails for an instantiation, or None."""
        for name, message in self.asserts.items():
            if not scope.lookup(name):
                return message
        return None

    def scope(self, arguments: dict[str, str], sizeof: Sizeof, sizes: bool = True) -> Scope:
        """The launcher's names for one instantiation. `arguments` are texts by parameter name; `sizes` says whether
        `sizeof` gives true sizes: values are shared between instantiations, but not across that difference."""
        parameters = {name: argument(text) for name, text in arguments.items()}
        needs, cache = self._needs_of, self._caches[sizes]

        def key(name: str) -> object:
            return name, needs[name](arguments)

        return Scope(self._scope_definitions, parameters, self._headers.struct, sizeof, cache, key)

    @cached_property
    def _needs_of(self) -> dict[str, Callable[[dict[str, str]], object]]:
        """For each definition, what picks out of all arguments those that its value depends on."""
        needs = {name: self._needs(name) for name in self._scope_definitions}
        return {name: itemgetter(*found) if found else (lambda arguments: ()) for name, found in needs.items()}

    def bind(self, instantiation: Instantiation) -> dict[str, str] | Problem:
        """The instantiation's arguments by the macro's own parameter names."""
        given, wanted = instantiation.arguments, self.parameters
        if len(given) == len(wanted) and all(given):
            return dict(zip(wanted, given, strict=True))
        what = f"{len(given)} arguments" if len(given) != len(wanted) else "an empty argument"
        message = f"{self.name} takes {len(wanted)} arguments ({', '.join(wanted)}), this invocation has {what}"
        return Problem(str(instantiation.file), message, instantiation.range)

    def _needs(self, name: str, seen: frozenset[str] = frozenset()) -> tuple[str, ...]:
        """The macro parameters that the value of `name` depends on."""
        if name not in self._needs_cache:
            definition = self._scope_definitions[name]
            found: set[str] = set()
            for part in _names(definition.value):
                if part in self.parameters:
                    found.add(part)
                elif part in self._scope_definitions and part != name and part not in seen:
                    found.update(self._needs(part, seen | {name}))
            if seen:  # part of a longer walk that may have been cut short at a cycle: not kept
                return tuple(sorted(found))
            self._needs_cache[name] = tuple(sorted(found))
        return self._needs_cache[name]


@lru_cache(maxsize=4096)
def argument(text: str) -> Expression:
    """A macro argument's text as an expression."""
    data = text.encode()
    statement = b"using argument = " + data + b";"
    found = list(cpp.tokens(cpp.parse(statement).root_node, statement))[3:-1]
    return parse(found)


def read(path: Path, headers: Headers) -> tuple[list[Launcher], list[Problem]]:
    """The launchers (usually one) that the file `path` defines, and what could not be understood."""
    try:
        data = path.read_bytes()
    except OSError as error:
        return [], [Problem(str(path), f"cannot be read: {error.strerror or error}")]
    if len(data) > MAX_BYTES or b"\0" in data:
        return [], [Problem(str(path), "is not a launcher: binary, or larger than any launcher is")]
    source = cpp.Source(str(path), data)
    text = cpp.blank_comments_only(cpp.join_continuations(data))  # tree-sitter ends a macro at its first comment
    root = cpp.parse(text).root_node
    launchers: list[Launcher] = []
    problems: list[Problem] = []
    file_definitions: dict[str, Definition] | None = None
    for macro in cpp.captures("(preproc_function_def) @macro", root).get("macro", ()):
        if KERNEL.encode() not in text[macro.start_byte : macro.end_byte]:
            continue
        if file_definitions is None:
            file_definitions = definitions_at_file_level(root, text)
        name_node, parameter_node = macro.child_by_field_name("name"), macro.child_by_field_name("parameters")
        span = (name_node.start_byte, name_node.end_byte) if name_node else (macro.start_byte, macro.end_byte)
        name = source.slice(*span)
        parameters = tuple(
            source.slice(child.start_byte, child.end_byte)
            for child in (parameter_node.named_children if parameter_node else ())
            if child.type == "identifier"
        )
        body = _body(text, macro)
        if body is None:
            problems.append(Problem(str(path), f"the body of {name} is not a function", source.range(*span)))
            continue
        try:
            launchers.append(Launcher(source, name, parameters, span, *body, file_definitions, headers))
        except NotUnderstood as error:
            where = source.range(*span) if error.offset is None else source.range(error.offset, error.offset + 1)
            problems.append(Problem(str(path), f"{name}: {error}", where))
    return launchers, problems


def _body(text: bytes, macro: Node) -> tuple[Node, bytes] | None:
    """The macro's function body parsed as C++, with the text it was parsed from (same offsets as the file)."""
    value = macro.child_by_field_name("value")
    if value is None:
        return None
    joined = text[value.start_byte : value.end_byte]
    blanked = cpp.blank_comments(joined)
    opening = blanked.find(b"{")
    closing = _matching(blanked, opening)
    if opening < len(_HEAD) or closing is None:
        return None
    start = value.start_byte + opening
    body = b" " * (start - len(_HEAD)) + _HEAD + joined[opening : closing + 1]
    root = cpp.parse(body).root_node
    if cpp.depth_exceeds(root):
        return None
    found = cpp.captures("(function_definition body: (compound_statement) @body)", root).get("body")
    return (found[0], body) if found else None


_HEAD = b"void launcher() "


def _matching(blanked: bytes, opening: int) -> int | None:
    depth = 0
    for match in re.compile(rb"[{}]").finditer(blanked, max(opening, 0)):
        depth += 1 if match.group() == b"{" else -1
        if depth == 0:
            return match.start()
    return None


# what a body declares at compile time, besides constants
_DECLARING = frozenset(
    {
        "alias_declaration", "using_declaration", "type_definition", "static_assert_declaration",
        "namespace_alias_definition", "struct_specifier", "class_specifier", "union_specifier", "enum_specifier",
    }
)  # fmt: skip


def _chain(body: Node, text: bytes) -> tuple[dict[str, Definition], dict[str, str], str, tuple[str, ...]]:
    """The definitions visible where the kernel's alias stands, the messages of the static_asserts before it (by the name
    under which their conditions are among the definitions), that alias's name, and the texts of all statements up to
    the alias that mean something at compile time, white space folded."""
    kernel: Node | None = None
    for alias in cpp.captures("(alias_declaration) @alias", body).get("alias", ()):
        if f"{KERNEL}<".encode() in re.sub(rb"\s+", b"", text[alias.start_byte : alias.end_byte]):
            kernel = alias
            break
    if kernel is None:
        raise NotUnderstood(f"no alias of {KERNEL}<...> in the macro's body", body.start_byte)
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
            definition = _definition(child, text)
            if child.type in _DECLARING or (
                definition is not None and _is_constant(child, definition, definitions, text)
            ):
                written = " ".join(text[child.start_byte : child.end_byte].decode("utf-8", "replace").split())
                statements.append(written if written.endswith(";") else f"{written};")
            if definition is not None:
                definitions[definition.name] = definition
            elif child.type == "static_assert_declaration":
                definition, message = _static_assert(child, text)
                definitions[definition.name] = definition
                asserts[definition.name] = message
    name = kernel.child_by_field_name("name")
    assert name is not None  # an alias_declaration always has one
    return definitions, asserts, text[name.start_byte : name.end_byte].decode("utf-8", "replace"), tuple(statements)


def _is_constant(node: Node, definition: Definition, known: dict[str, Definition], text: bytes) -> bool:
    """Whether a declaration with a value has it at compile time: it is ``constexpr``, or ``const`` and made of such."""
    words = [token.text for token in cpp.tokens(node, text)]
    return "constexpr" in words or all(name in known for name in _names(definition.value))


def _definition(node: Node, text: bytes) -> Definition | None:
    """The definition that one statement makes, if it is a ``using X = ...`` or a ``constexpr T x = ...``."""
    found = list(cpp.tokens(node, text)) if node.type in ("alias_declaration", "declaration") else []
    words = [token.text for token in found]
    if "=" not in words or words[-1] != ";":
        return None
    equals = words.index("=")
    if node.type == "declaration" and "constexpr" not in words[:equals] and "const" not in words[:equals]:
        return None
    return Definition(words[equals - 1], parse(found[equals + 1 : -1]), (), (node.start_byte, node.end_byte))


def _static_assert(node: Node, text: bytes) -> tuple[Definition, str]:
    condition, message = node.child_by_field_name("condition"), node.child_by_field_name("message")
    assert condition is not None  # a static_assert_declaration always has one
    words = (
        []
        if message is None
        else re.findall(r'"((?:\\.|[^"\\])*)"', text[message.start_byte : message.end_byte].decode())
    )
    definition = Definition(
        f"static_assert@{node.start_byte}",
        parse(list(cpp.tokens(condition, text))),
        (),
        (node.start_byte, node.end_byte),
    )
    return definition, "".join(words) or " ".join(text[condition.start_byte : condition.end_byte].decode().split())


def definitions_at_file_level(root: Node, data: bytes) -> dict[str, Definition]:
    """Aliases and constants outside any function, as a build with every feature enabled sees them.

    The launchers' ``#ifdef ENABLE_FP8 ... #else ... #endif`` define ``SafeFP8`` and the like; cutlint looks at what
    the kernels are when they are built, so the first branch counts.
    """
    definitions: dict[str, Definition] = {}
    stack = [root]
    while stack:
        node = stack.pop()
        for child in node.named_children:
            if child.type in (
                "namespace_definition",
                "declaration_list",
                "preproc_ifdef",
                "preproc_if",
                "linkage_specification",
            ):
                stack.append(child)
            elif child.type in ("alias_declaration", "declaration"):
                try:
                    definition = _definition(child, data)
                except NotUnderstood:
                    continue  # whoever needs it will be told that the name is not known
                if definition is not None:
                    definitions.setdefault(definition.name, definition)
    return definitions


def _names(expression: Expression) -> list[str]:
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
            assert isinstance(current, Literal)
    return found


def _template_arguments(expression: Expression, template: str) -> list[tuple[Expression, ...]]:
    """The arguments of every use of the class template `template` at the top of `expression`."""
    if not isinstance(expression, Name):
        return []
    return [part.arguments for part in expression.parts if part.text == template and part.arguments is not None]


def kernel_type(launcher: Launcher, scope: Scope) -> Type:
    """The launcher's kernel type for the instantiation that `scope` stands for."""
    value = scope.lookup(launcher.kernel)
    if isinstance(value, Type):
        return value
    raise NotUnderstood(f"{launcher.kernel} is not a type")
