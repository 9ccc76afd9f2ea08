"""Generated ``.cu`` files to `Instantiation` records.

Two forms occur (see the generators' ``generate_kernels.py``): an invocation of a launcher's instantiation macro,
``INSTANTIATE_TMA_WARP_SPECIALIZED_MOE_GEMM(...);``, and an explicit instantiation of a function template,
``template void sm90_generic_mixed_moe_gemm_kernelLauncher<...>(...);``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
from tree_sitter import Node

from cutlint import cpp
from cutlint.records import Instantiation, Problem

MAX_BYTES = 16 * 2**20  # the largest generated file of any release is below 20 KB

_CANDIDATE = re.compile(rb"\bINSTANTIATE_\w+|\btemplate\b(?!\s*<)")


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
    for node, kind in _candidates(data, macros):
        guard = cpp.guard_at(node.start_byte, conditions)
        result: Instantiation | Problem | None
        if kind == "wrapped":
            where = source.range(node.start_byte, node.end_byte)
            result = Problem(str(path), "a macro of this file wraps instantiations: those are not seen", where)
        elif kind == "macro":
            result = _macro(path, source, blanked, node, guard)
        else:
            result = _template(path, source, blanked, node, guard)
        if isinstance(result, Instantiation):
            found.append(result)
        elif result is not None:
            problems.append(msgspec.structs.replace(result, unread="invocation"))
    return found, problems


def _candidates(data: bytes, macros: frozenset[str]) -> Iterator[tuple[Node, str]]:
    """The names of macro invocations and the explicit instantiations in `data`, in order. Words that look like one are
    looked up in the syntax tree, which knows comments, strings and definitions from code."""
    spelled = [rb"\b" + re.escape(name.encode()) + rb"\b" for name in macros if not name.startswith("INSTANTIATE_")]
    pattern = re.compile(b"|".join([_CANDIDATE.pattern, *spelled])) if spelled else _CANDIDATE
    matches = list(pattern.finditer(data))
    root = cpp.parse(data).root_node if matches else None
    for match in matches:
        node = root.descendant_for_byte_range(match.start(), match.end()) if root is not None else None
        if node is None:
            continue
        if match.group() == b"template":
            if node.parent is not None and node.parent.type == "template_instantiation":
                yield node.parent, "template"
        elif node.type in ("identifier", "type_identifier") and node.start_byte == match.start():
            yield node, "macro"
        elif node.type == "preproc_arg":
            yield node, "wrapped"


def _macro(
    path: Path, source: cpp.Source, blanked: bytes, node: Node, guard: str | None
) -> Instantiation | Problem | None:
    name = source.slice(node.start_byte, node.end_byte)
    opening = re.compile(rb"\s*\(").match(blanked, node.end_byte)
    if re.search(
        rb"#[ \t]*(define|undef|ifdef|ifndef)[ \t]+$", blanked[max(0, node.start_byte - 200) : node.start_byte]
    ):
        return None
    if opening is None:
        where = source.range(node.start_byte, node.end_byte)
        return Problem(str(path), f"{name} is not followed by arguments (a truncated file?)", where)
    call = cpp.call_arguments(blanked, opening.end() - 1)
    if call is None:
        where = source.range(node.start_byte, node.end_byte)
        return Problem(str(path), f"the invocation of {name} has no closing parenthesis (a truncated file?)", where)
    spans, end = call
    semicolon = re.compile(rb"\s*;").match(blanked, end)
    arguments = tuple(_folded(blanked, start, stop) for start, stop in spans)
    where = source.range(node.start_byte, semicolon.end() if semicolon else end)
    return Instantiation(path, where, name, arguments, guard)


def _template(
    path: Path, source: cpp.Source, blanked: bytes, node: Node, guard: str | None
) -> Instantiation | Problem | None:
    before = blanked[max(0, node.start_byte - 64) : node.start_byte]
    if re.search(rb"\bextern\s*$", before):
        return None
    head = re.compile(rb"template\s+void\s+(?:[\w]+::)*(\w+)\s*<").match(blanked, node.start_byte)
    if head is None:
        return None  # an explicit instantiation of something that is not a launcher function
    spans = template_arguments(blanked, head.end() - 1, node.end_byte)
    name = head.group(1).decode()
    where = source.range(node.start_byte, node.end_byte)
    if spans is None:
        return Problem(str(path), f"the template arguments of {name} have no closing bracket", where)
    return Instantiation(path, where, name, tuple(_folded(blanked, *span) for span in spans), guard)


def template_arguments(blanked: bytes, opening: int, end: int) -> list[tuple[int, int]] | None:
    """Byte spans of the template arguments whose ``<`` is at `opening`; None when its ``>`` is missing before `end`."""
    depth, start = 0, opening + 1
    spans: list[tuple[int, int]] = []
    for match in re.compile(rb"[<>(),]").finditer(blanked, opening, end):
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
