"""Generated ``.cu`` files to `Instantiation` records.

Two forms occur (see the generators' ``generate_kernels.py``): an invocation of a launcher's instantiation macro,
``INSTANTIATE_TMA_WARP_SPECIALIZED_MOE_GEMM(...);``, and an explicit instantiation of a function template,
``template void sm90_generic_mixed_moe_gemm_kernelLauncher<...>(...);``.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from cutlint import cpp
from cutlint.records import Instantiation, Problem

MAX_BYTES = 2**20  # the largest generated file of any release is below 20 KB
MAX_HEAD = 2**16  # bytes of one explicit instantiation
MAX_PROBLEMS = 100  # in one file: a file that is wrong everywhere is one problem


def read(path: Path, macros: frozenset[str] = frozenset()) -> tuple[list[Instantiation], list[Problem]]:
    """The instantiations in the file `path`, in order, and what in it could not be understood.

    `macros` are the names of the launchers' instantiation macros; without them every name that begins with
    ``INSTANTIATE_`` counts as one.
    """
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            reason = f"{size:,} bytes is more than a generated file can be ({MAX_BYTES:,}); not read"
            return [], [Problem(str(path), reason, unread="file")]
        data = path.read_bytes()
    except OSError as error:
        return [], [Problem(str(path), f"cannot be read: {error.strerror or error}", unread="file")]
    return scan(path, data, macros)


def scan(path: Path, data: bytes, macros: frozenset[str] = frozenset()) -> tuple[list[Instantiation], list[Problem]]:
    """As `read`, for text already at hand (an editor's buffer)."""
    if b"\0" in data[:8192]:
        return [], [Problem(str(path), "is a binary file, not C++ text", unread="file")]
    source = cpp.Source(str(path), data)
    blanked = cpp.blank_comments(cpp.join_continuations(data))
    conditions = cpp.guards(blanked)
    found: list[Instantiation] = []
    problems: list[Problem] = []
    for match, kind in _candidates(blanked, macros):
        guard = cpp.guard_at(match.start(), conditions)
        result: Instantiation | Problem | None
        if kind == "wrapped":
            where = source.range(*match.span())
            result = Problem(str(path), "a macro of this file wraps instantiations: those are not seen", where)
        elif kind == "macro":
            result = _macro(path, source, blanked, match, guard)
        else:
            result = _template(path, source, blanked, match, guard)
        if isinstance(result, Instantiation):
            found.append(result)
        elif result is not None:
            problems.append(msgspec.structs.replace(result, unread="invocation"))
            if len(problems) == MAX_PROBLEMS:
                reason = (
                    f"more than {MAX_PROBLEMS - 1} of its instantiations cannot be read; the rest of the file is not"
                )
                problems.append(Problem(str(path), reason, result.range, unread="file"))
                break
    return found, problems


_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(?:define[ \t]+\w+()|\w*)[^\n]*", re.M)  # the group: past a defined name
_OPENING = re.compile(rb"\s*\(")
_SEMICOLON = re.compile(rb"\s*;")
_NO_DEFINITION = re.compile(rb"(?:\bextern|::|\.|->)\s*\Z")  # no definition, or a dependent name
_HEAD = re.compile(rb"template\s+void\s+(?:\w+::)*(\w+)\s*<")


@cache
def _pattern(macros: frozenset[str]) -> re.Pattern[bytes]:
    """What an instantiation begins with."""
    spelled = [rb"\b" + re.escape(name.encode()) + rb"\b" for name in macros if not name.startswith("INSTANTIATE_")]
    return re.compile(b"|".join([rb"\bINSTANTIATE_\w+", rb"\btemplate\b(?!\s*<)", *spelled]))


def _candidates(blanked: bytes, macros: frozenset[str]) -> Iterator[tuple[re.Match[bytes], str]]:
    """The names of macro invocations and the words that begin an explicit instantiation, in order. What directives
    mention is none, but what a macro is defined as may hold some."""
    directives = list(_DIRECTIVE.finditer(blanked))
    starts = [directive.start() for directive in directives]
    for match in _pattern(macros).finditer(blanked):
        before = bisect_right(starts, match.start()) - 1
        if before >= 0 and match.start() < directives[before].end():
            if 0 <= directives[before].end(1) <= match.start():
                yield match, "wrapped"
        else:
            yield match, "template" if match.group() == b"template" else "macro"


def _macro(
    path: Path, source: cpp.Source, blanked: bytes, match: re.Match[bytes], guard: str | None
) -> Instantiation | Problem | None:
    name = match.group().decode()
    opening = _OPENING.match(blanked, match.end())
    if opening is None:
        where = source.range(*match.span())
        return Problem(str(path), f"{name} is not followed by arguments (a truncated file?)", where)
    call = cpp.call_arguments(blanked, opening.end() - 1)
    if isinstance(call, str):
        return Problem(str(path), f"the invocation of {name} {call}", source.range(*match.span()))
    spans, end = call
    semicolon = _SEMICOLON.match(blanked, end)
    arguments = tuple(_folded(blanked, start, stop) for start, stop in spans)
    where = source.range(match.start(), semicolon.end() if semicolon else end)
    return Instantiation(path, where, name, arguments, guard)


def _template(
    path: Path, source: cpp.Source, blanked: bytes, match: re.Match[bytes], guard: str | None
) -> Instantiation | Problem | None:
    if _NO_DEFINITION.search(blanked, max(0, match.start() - 64), match.start()):
        return None
    head = _HEAD.match(blanked, match.start())
    if head is None:
        return None  # an explicit instantiation of something that is not a launcher function
    name = head.group(1).decode()
    end = blanked.find(b";", head.end(), head.end() + MAX_HEAD) + 1
    where = source.range(match.start(), end or head.end())
    if not end:
        return Problem(str(path), f"the instantiation of {name} has no semicolon (a truncated file?)", where)
    spans = template_arguments(blanked, head.end() - 1, end)
    if spans is None:
        return Problem(str(path), f"the template arguments of {name} have no closing bracket", where)
    return Instantiation(path, where, name, tuple(_folded(blanked, *span) for span in spans), guard)


_BRACKETS = re.compile(rb"[<>(),]")


def template_arguments(blanked: bytes, opening: int, end: int) -> list[tuple[int, int]] | None:
    """Byte spans of the template arguments whose ``<`` is at `opening`; None when its ``>`` is missing before `end`."""
    depth, start = 0, opening + 1
    spans: list[tuple[int, int]] = []
    for match in _BRACKETS.finditer(blanked, opening, end):
        character = match.group()
        if character in b"<(":
            depth += 1
        elif character in b">)":
            depth -= 1
            if depth == 0:
                return [*spans, (start, match.start())]
        elif depth == 1:
            spans.append((start, match.start()))
            start = match.end()
    return None


def _folded(blanked: bytes, start: int, end: int) -> str:
    return " ".join(blanked[start:end].decode("utf-8", "replace").split())
