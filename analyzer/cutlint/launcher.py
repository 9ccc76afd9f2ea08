"""A launcher: its parameters and the chain of aliases that leads to the kernel, evaluated for an instantiation.

`cutlint.launchers` finds them in a file. Every offset is what it is in the file, so each alias keeps its line and column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from operator import itemgetter

import msgspec

from cutlint import cpp
from cutlint.chain import Chain
from cutlint.config import MAINLOOP_BUILDERS
from cutlint.evaluate import Definition, Scope, Shared, Sizeof, Type, Value
from cutlint.expression import Expression, Name, NotUnderstood, Operation, names, read
from cutlint.headers import Headers
from cutlint.records import Instantiation, Location, Problem, Range

_COMPARES_LIMIT = re.compile(r"sharedMemPerBlockOptin|MaxSharedMemoryPerBlockOptin|max_?(shared|smem)", re.I)


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of a launcher: a macro's, or a function template's, `declared` as there (``typename T``, ``int N``) and
    with the text of its default argument if it has one."""

    name: str
    declared: str | None = None
    default: str | None = None

    def bound(self, argument: str) -> str:
        """The C++ statement that gives the parameter its value (not for a macro's)."""
        assert self.declared is not None
        if self.declared.split()[0] in ("typename", "class"):
            return f"using {self.name} = {argument};"
        return f"constexpr {self.declared} = {argument};"


class File(msgspec.Struct, frozen=True):
    """A launcher's file: its source, its text without comments and line continuations, the definitions at its top, and its
    headers."""

    source: cpp.Source
    text: bytes
    definitions: dict[str, Definition]
    headers: Headers


class Launcher:
    """One launcher, a macro or a function template: evaluates its aliases for an instantiation's arguments."""

    def __init__(
        self,
        file: File,
        name: str,
        declared: tuple[Parameter, ...],
        span: tuple[int, int],
        body: bytes,
        chain: Chain,
        through: str | None = None,
    ) -> None:
        """`body` is the text of the function that leads to the kernel: the launcher's own, or that of the launcher called
        `through` to which it forwards."""
        self.path = file.source.name
        self.name = name
        self.declared = declared
        self.parameters = tuple(each.name for each in declared)
        self.span = span
        self.through = through
        self._source = file.source
        self._file_definitions = file.definitions
        self._headers = file.headers
        self._text = body
        self.definitions, self.asserts, self.kernel, self.statements, self.static_size = (
            chain.definitions, chain.asserts, chain.kernel, chain.statements, chain.static_size,
        )  # fmt: skip
        self._shared = {True: Shared(), False: Shared()}
        self._needs_cache: dict[str, tuple[str, ...]] = {}
        self._mentions_cache: dict[str, frozenset[str]] = {}

    @property
    def is_macro(self) -> bool:
        return all(each.declared is None for each in self.declared)

    @cached_property
    def _scope_definitions(self) -> dict[str, Definition]:
        return {**self._file_definitions, **self.definitions}

    @cached_property
    def checks_limit(self) -> bool:
        """Whether the launcher compares the kernel's shared memory with what the device allows."""
        text = self._text.decode("utf-8", "replace")
        if self.skips_over_limit:
            return True
        compared = re.search(
            r"(SharedStorage\w*|smem_?size\w*|kSmemSize)[^;{}]{0,200}[<>]=?|[<>]=?[^;{}]{0,200}SharedStorage", text
        )
        return compared is not None and _COMPARES_LIMIT.search(text) is not None

    @cached_property
    def skips_over_limit(self) -> bool:
        """Whether the launcher says that no CTA of a kernel that does not fit can be resident, so that the heuristic passes
        the configuration over: by itself, or through cutlass_extensions/compute_occupancy.h."""
        text = self._text.decode("utf-8", "replace")
        own = re.search(r"occupancy\s*=\s*0\s*;", text) is not None and _COMPARES_LIMIT.search(text) is not None
        return own or re.search(r"\bcompute_occupancy_for_kernel\s*<", text) is not None

    @property
    def data(self) -> bytes:
        """The launcher's file as it was read."""
        return self._source.data

    def span_of(self, name: str) -> tuple[int, int] | None:
        """The byte offsets of the definition of the alias or constant `name` in the file."""
        definition = self.definitions.get(name)
        return None if definition is None else definition.span

    def range_of(self, start: int, end: int) -> Range:
        """The place of the bytes `start` to `end` of the file."""
        return self._source.range(start, end)

    def location(self, name: str, message: str = "") -> Location | None:
        """Where the alias or constant `name` is defined in the launcher."""
        definition = self.definitions.get(name)
        if definition is None:
            return None
        return Location(self.path, self._source.range(*definition.span), message)

    @cached_property
    def decisions(self) -> tuple[tuple[str, str], ...]:
        """The aliases given to the mainloop's builder as stage count and kernel schedule, with what each is."""
        labels = ("the stage count is decided here", "the kernel schedule is decided here")
        for arguments in self._mainloops():
            named = zip(arguments[11:13], labels, strict=False)
            return tuple((each.parts[-1].text, label) for each, label in named if isinstance(each, Name))
        return ()

    def _mainloops(self) -> Iterator[tuple[Expression, ...]]:
        """The arguments that the builders of a mainloop are given."""
        for definition in self.definitions.values():
            if isinstance(definition.value, Name):
                for part in definition.value.parts:
                    if part.arguments is not None and len(part.arguments) in MAINLOOP_BUILDERS.get(part.text, ()):
                        yield part.arguments

    @cached_property
    def mainloop_parameters(self) -> tuple[str, ...]:
        """The parameters that the mainloop's builder is given, the stage count aside: instantiations that agree in them
        share most of their types."""
        found: set[str] = set()
        for arguments in self._mainloops():
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
        parameters: dict[str, Expression | Value] = {name: argument(text) for name, text in arguments.items()}
        needs = self._needs_of

        def key(name: str) -> object:
            return name, needs[name](arguments)

        return Scope(self._scope_definitions, parameters, self._headers, sizeof, self._shared[sizes], key)

    @cached_property
    def _needs_of(self) -> dict[str, Callable[[dict[str, str]], object]]:
        """For each definition, what picks out of all arguments those that its value depends on."""
        needs = {name: self._needs(name) for name in self._scope_definitions}
        return {name: itemgetter(*found) if found else (lambda arguments: ()) for name, found in needs.items()}

    def bind(self, instantiation: Instantiation) -> dict[str, str] | Problem:
        """The instantiation's arguments by the launcher's own parameter names, defaults filled in."""
        given, wanted = instantiation.arguments, self.parameters
        defaults = [each.default for each in self.declared[len(given) :]]
        if len(given) <= len(wanted) and all(given) and None not in defaults:
            return dict(zip(wanted, (*given, *(each for each in defaults if each is not None)), strict=True))
        what = "an empty argument" if len(given) == len(wanted) else f"{len(given)} arguments"
        message = f"{self.name} takes {len(wanted)} arguments ({', '.join(wanted)}), this invocation has {what}"
        return Problem(str(instantiation.file), message, instantiation.range)

    def _needs(self, name: str) -> tuple[str, ...]:
        """The parameters that the value of `name` depends on."""
        if name not in self._needs_cache:
            found: set[str] = set()
            seen, pending = {name}, [name]
            while pending:
                for part in self._mentions(pending.pop()):
                    if part in self.parameters:
                        found.add(part)
                    elif part not in seen:
                        seen.add(part)
                        pending.append(part)
            self._needs_cache[name] = tuple(sorted(found))
        return self._needs_cache[name]

    def _mentions(self, name: str) -> frozenset[str]:
        """The parameters and definitions that the definition of `name` names."""
        if name not in self._mentions_cache:
            known = {*names(self._scope_definitions[name].value)}
            self._mentions_cache[name] = frozenset(known & {*self.parameters, *self._scope_definitions})
        return self._mentions_cache[name]


@lru_cache(maxsize=4096)
def argument(text: str) -> Expression:
    """A macro argument's text as an expression."""
    found = read(text.encode())
    if isinstance(found, Operation) and len(found.operands) > 1:
        raise NotUnderstood(f"the argument '{text[:80]}' is not one value: the preprocessor puts it in as text")
    return found


def kernel_type(launcher: Launcher, scope: Scope) -> Type:
    """The launcher's kernel type for the instantiation that `scope` stands for."""
    value = scope.lookup(launcher.kernel)
    if isinstance(value, Type):
        return value
    raise NotUnderstood(f"{launcher.kernel} is not a type")
