"""The worker process: every call of libclang is here, and what it says becomes plain records.

A worker reads orders from its standard input and writes an answer to each to its standard output (see `wire`). It is
started by `pool`; nothing else imports this module, so that a crash of libclang ends a worker and not cutlint.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from clang import cindex

from cutlint.clang import wire
from cutlint.clang.probe import STORAGE, VALUES
from cutlint.clang.records import (
    Answer,
    Error,
    Evaluated,
    Failure,
    Field,
    Header,
    Precompiled,
    Setup,
    Sizes,
    Unit,
)
from cutlint.clang.regions import regions

_UNIT = "/cutlint/probe.cpp"  # given to libclang as text; no such file need be there
_SKIP_BODIES = cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES
_INCOMPLETE = cindex.TranslationUnit.PARSE_INCOMPLETE
_LONGEST = 600  # characters of a compiler's message
_ASSERTED = re.compile(
    r"static assertion failed(?: due to requirement '(?P<condition>.*?)')?(?:: (?P<message>.*))?", re.DOTALL
)
_EMPTY_ARRAY = re.compile(r"\barray_aligned<.*, 0(?:, \d+)?>$", re.DOTALL)
_FUNCTIONS = frozenset(
    {
        cindex.CursorKind.FUNCTION_DECL,
        cindex.CursorKind.FUNCTION_TEMPLATE,
        cindex.CursorKind.CXX_METHOD,
        cindex.CursorKind.CONSTRUCTOR,
        cindex.CursorKind.DESTRUCTOR,
        cindex.CursorKind.CONVERSION_FUNCTION,
    }
)


def main() -> None:
    """Answer orders until there are no more."""
    orders = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libclang prints must not get between the answers
    worker = _Worker()
    while (order := wire.receive_order(orders)) is not None:
        wire.send(answers, worker.answer(order))


class _Worker:
    def __init__(self) -> None:
        self._index: Any = None
        self._setup = Setup(())

    def answer(self, order: Setup | Header | Unit) -> Answer:
        try:
            if self._index is None:
                self._index = cindex.Index.create()
            if isinstance(order, Setup):
                self._setup = order
                return Evaluated({}, (), {})
            return self._precompile(order) if isinstance(order, Header) else self._evaluate(order)
        except cindex.LibclangError as error:
            return Failure(str(error))
        except (cindex.TranslationUnitLoadError, cindex.TranslationUnitSaveError) as error:
            return Failure(f"libclang failed: {error}")

    def _precompile(self, order: Header) -> Precompiled:
        options = ["-x", "c++-header", *self._setup.options, "-Xclang", "-fno-pch-timestamp"]
        parsed = self._index.parse(order.path, options, options=_INCOMPLETE | _SKIP_BODIES)
        found = [each for each in parsed.diagnostics if each.severity >= cindex.Diagnostic.Error]
        missing = next((each.spelling for each in found if "file not found" in each.spelling), None)
        harmful = tuple(_error(each) for each in found if not _inside_function(parsed, each))
        launcher = parsed.get_file(order.launcher)
        place = cindex.SourceLocation.from_offset(parsed, launcher, order.offset)
        namespaces = tuple(reversed(list(_namespaces(cindex.Cursor.from_location(parsed, place)))))
        if missing is None:
            parsed.save(order.target)
        return Precompiled(namespaces, harmful, missing)

    def _evaluate(self, order: Unit) -> Evaluated | Failure:
        options = ["-x", "c++", *self._setup.options]
        if self._setup.precompiled is not None:
            options += ["-include-pch", self._setup.precompiled]
        parsed = self._index.parse(_UNIT, options, unsaved_files=[(_UNIT, order.text)], options=_SKIP_BODIES)
        errors: dict[int, list[Error]] = {}
        stray: list[Error] = []
        for each in parsed.diagnostics:
            if each.severity < cindex.Diagnostic.Error:
                continue
            owners = {_owner(order, note) for note in _with_notes(each)}
            for index in owners:
                if index is not None:
                    errors.setdefault(index, []).append(_error(each))
            if owners == {None} and each.severity == cindex.Diagnostic.Fatal:  # such as no precompiled header
                return Failure(each.spelling)
            if owners == {None}:
                stray.append(_error(each))
        sizes = {} if errors or stray else dict(_sizes(parsed.cursor, order.prefix))
        return Evaluated({index: tuple(found) for index, found in errors.items()}, tuple(stray), sizes)


def _namespaces(cursor: Any) -> Iterator[str]:
    """The names of the namespaces around the place of `cursor`, innermost first."""
    while cursor is not None and cursor.kind != cindex.CursorKind.TRANSLATION_UNIT:
        if cursor.kind == cindex.CursorKind.NAMESPACE:
            yield cursor.spelling
        cursor = cursor.semantic_parent


def _inside_function(parsed: Any, diagnostic: Any) -> bool:
    """Whether an error is one of a function's declaration: that has no part in the size of any class."""
    cursor = cindex.Cursor.from_location(parsed, diagnostic.location)
    while cursor is not None and cursor.kind != cindex.CursorKind.TRANSLATION_UNIT:
        if cursor.kind in _FUNCTIONS:
            return True
        cursor = cursor.semantic_parent
    return False


# -- errors


def _with_notes(diagnostic: Any) -> Iterator[Any]:
    yield diagnostic
    for each in diagnostic.children:
        yield from _with_notes(each)


def _owner(order: Unit, diagnostic: Any) -> int | None:
    """The place in `order.spans` of the probe that a diagnostic or note points into."""
    file = diagnostic.location.file
    if file is None or file.name != _UNIT:
        return None
    line = diagnostic.location.line
    return next((index for index, (first, last) in enumerate(order.spans) if first <= line <= last), None)


def _error(diagnostic: Any) -> Error:
    file = diagnostic.location.file
    name = "" if file is None else file.name
    short = re.sub(r".*/(?=(?:cutlass|cute|cutlass_extensions|tensorrt_llm)/)", "", name)
    where = "the launcher" if name == _UNIT else f"{short}:{diagnostic.location.line}"
    asserted = _ASSERTED.fullmatch(diagnostic.spelling)
    text = diagnostic.spelling
    if asserted is not None:
        text = asserted["message"] or asserted["condition"] or text
    return Error(_shortened(" ".join(text.split())), where, asserted is not None)


def _shortened(text: str) -> str:
    """A message with long template argument lists as <...>."""
    parts: list[str] = []
    position = 0
    for match in re.finditer(r"(?<=\w)<", text):
        if match.start() < position:
            continue
        depth, end = 0, match.start()
        while end < len(text):
            depth += {"<": 1, ">": -1}.get(text[end], 0) if text[end - 1 : end + 1] != "->" else 0
            end += 1
            if depth == 0:
                break
        if depth == 0 and end - match.start() > 60:
            parts += [text[position : match.start()], "<...>"]
            position = end
    return ("".join(parts) + text[position:])[:_LONGEST]


# -- sizes


def _sizes(cursor: Any, prefix: str) -> Iterator[tuple[int, Sizes]]:
    """What the probes below `cursor` evaluate to, by the order in which they stand."""
    layouts = _Layouts()
    for index, probe in enumerate(_probes(cursor, prefix)):
        values: dict[str, int] = {}
        storage: Field | None = None
        for child in probe.get_children():
            if child.kind == cindex.CursorKind.ENUM_DECL and child.spelling == VALUES:
                for each in child.get_children():
                    values[each.spelling.removeprefix(f"{VALUES}_")] = each.enum_value
            elif child.kind == cindex.CursorKind.TYPE_ALIAS_DECL and child.spelling == STORAGE:
                storage = layouts.field("", child.underlying_typedef_type.get_canonical(), 0)
        if storage is not None and values:
            yield index, Sizes(values, regions(storage))


def _probes(cursor: Any, prefix: str) -> Iterator[Any]:
    for child in cursor.get_children():
        if child.kind != cindex.CursorKind.NAMESPACE or child.location.file is None:
            continue
        if child.location.file.name == _UNIT:
            if child.spelling.startswith(prefix):
                yield child
            else:
                yield from _probes(child, prefix)


class _Layouts:
    """Members of records, with each record type of a translation unit walked once.

    libclang does not show the base classes of an instantiated class template. A class without members of its own is
    therefore taken as one piece: of data, unless it is as small as an empty class or an array of nothing.
    """

    def __init__(self) -> None:
        self._records: dict[tuple[str, int], tuple[Field, ...]] = {}

    def field(self, name: str, of: Any, offset: int) -> Field:
        """A member `name` of the canonical type `of`, `offset` bytes from where its record begins; its own members' offsets
        count from the same place."""
        size = of.get_size()
        spelled = of.spelling
        if of.kind == cindex.TypeKind.CONSTANTARRAY:
            return Field(name, spelled, offset, size, elements=self._elements(of, offset))
        if of.kind != cindex.TypeKind.RECORD:
            return Field(name, spelled, offset, size)
        fields = tuple(_moved(each, offset) for each in self._members(of))
        union = of.get_declaration().kind == cindex.CursorKind.UNION_DECL
        empty = all(each.empty for each in fields) if fields else size == 1 or _EMPTY_ARRAY.search(spelled) is not None
        return Field(name, spelled, offset, size, union, empty, fields)

    def _elements(self, of: Any, offset: int) -> tuple[Field, ...]:
        """The elements of an array, where they are records of records; others are not worth telling apart."""
        element = of.element_type.get_canonical()
        if element.kind != cindex.TypeKind.RECORD or not any(each.fields for each in self._members(element)):
            return ()
        first = self.field("", element, 0)
        return tuple(_moved(first, offset + index * first.size) for index in range(of.element_count))

    def _members(self, of: Any) -> tuple[Field, ...]:
        declaration = of.get_declaration()
        key = (declaration.get_usr(), declaration.hash)
        if key not in self._records:
            found = []
            for each in of.get_fields():
                bits = each.get_field_offsetof()
                found.append(self.field(each.spelling, each.type.get_canonical(), bits // 8))
            if found and found[0].offset > 0:  # nothing but base classes can lie before the first member
                found.insert(0, Field("", "base classes", 0, found[0].offset))
            self._records[key] = tuple(found)
        return self._records[key]


def _moved(field: Field, by: int) -> Field:
    if by == 0:
        return field
    return Field(
        field.name,
        field.type,
        field.offset + by,
        field.size,
        field.union,
        field.empty,
        tuple(_moved(each, by) for each in field.fields),
        tuple(_moved(each, by) for each in field.elements),
    )


if __name__ == "__main__":
    main()
