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
from cutlint.chain import KERNEL, definitions_at_file_level, names, read_chain
from cutlint.evaluate import Definition, Scope, Sizeof, Type, Value
from cutlint.expression import Expression, Name, NotUnderstood, Operation, parse
from cutlint.headers import Headers
from cutlint.records import Instantiation, Location, Problem, Range

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
        chain = read_chain(body, text, {*parameters, *file_definitions})
        self.definitions, self.asserts, self.kernel, self.statements = (
            chain.definitions, chain.asserts, chain.kernel, chain.statements,
        )  # fmt: skip
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

    @cached_property
    def mainloop_parameters(self) -> tuple[str, ...]:
        """The macro's parameters that the mainloop's builder is given, the stage count aside: instantiations that agree in
        them share most of their types."""
        found: set[str] = set()
        for definition in self.definitions.values():
            for arguments in _template_arguments(definition.value, "CollectiveBuilder"):
                if len(arguments) in (12, 13):
                    given = {name for index, each in enumerate(arguments) if index != 11 for name in names(each)}
                    found |= given & set(self.parameters)
                    found.update(*(self._needs(name) for name in given if name in self._scope_definitions))
        return tuple(name for name in self.parameters if name in found)

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

        return Scope(
            self._scope_definitions, parameters, self._headers.struct, sizeof, cache, key, self._headers.enumerators
        )

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
            for part in names(definition.value):
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
    found = parse(list(cpp.tokens(cpp.parse(statement).root_node, statement))[3:-1])
    if isinstance(found, Operation) and len(found.operands) > 1:
        raise NotUnderstood(f"the argument '{text[:80]}' is not one value: the preprocessor puts it in as text")
    return found


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
    if cpp.depth_exceeds(root):
        return [], [Problem(str(path), "is nested deeper than any launcher is")]
    launchers: dict[str, Launcher] = {}
    problems: list[Problem] = []
    seen: set[str] = set()
    file_definitions = definitions_at_file_level(root.named_children, text)
    for macro in cpp.captures("(preproc_function_def) @macro", root).get("macro", ()):
        name_node = macro.child_by_field_name("name")
        span = (name_node.start_byte, name_node.end_byte) if name_node else (macro.start_byte, macro.end_byte)
        name = source.slice(*span)
        where = source.range(*span)
        if KERNEL.encode() not in text[macro.start_byte : macro.end_byte]:
            if name.startswith("INSTANTIATE_"):
                problems.append(Problem(str(path), f"the body of {name} names no {KERNEL}", where))
            continue
        if name in seen:
            launchers.pop(name, None)
            problems.append(
                Problem(str(path), f"{name} is defined more than once; which one counts is not known", where)
            )
            continue
        seen.add(name)
        try:
            launchers[name] = _launcher(source, text, macro, name, span, file_definitions, headers)
        except NotUnderstood as error:
            place = where if error.offset is None else source.range(error.offset, error.offset + 1)
            problems.append(Problem(str(path), f"{name}: {error}", place))
    return list(launchers.values()), problems


def _launcher(
    source: cpp.Source,
    text: bytes,
    macro: Node,
    name: str,
    span: tuple[int, int],
    file_definitions: dict[str, Definition],
    headers: Headers,
) -> Launcher:
    listed = macro.child_by_field_name("parameters")
    parameters = tuple(
        source.slice(child.start_byte, child.end_byte)
        for child in (listed.named_children if listed else ())
        if child.type == "identifier"
    )
    body = _body(text, macro)
    if body is None:
        raise NotUnderstood("its body is not a function", span[0])
    return Launcher(source, name, parameters, span, *body, file_definitions, headers)


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
