"""A launcher ``.inl`` read: every launcher that it defines, macro or function template.

Found without fixed line numbers and without fixed names but CUTLASS's own: `cutlint.chain` says what leads to a kernel.
"""

from __future__ import annotations

import re
from pathlib import Path

from tree_sitter import Node

from cutlint import cpp, function_templates
from cutlint.chain import KERNEL, definitions_at_file_level, leads_to_kernel, read_chain
from cutlint.expression import NotUnderstood
from cutlint.headers import Headers
from cutlint.launcher import File, Launcher, Parameter
from cutlint.records import Problem

MAX_BYTES = 4 * 2**20


def read(path: Path, headers: Headers, data: bytes | None = None) -> tuple[list[Launcher], list[Problem]]:
    """The launchers that the file `path` defines, and what could not be understood. `data`: its text where that is at hand
    (an editor's buffer)."""
    try:
        data = path.read_bytes() if data is None else data
    except OSError as error:
        return [], [Problem(str(path), f"cannot be read: {error.strerror or error}")]
    if len(data) > MAX_BYTES or b"\0" in data:
        return [], [Problem(str(path), "is not a launcher: binary, or larger than any launcher is")]
    source = cpp.Source(str(path), data)
    text = cpp.blank_comments_only(cpp.join_continuations(data))  # tree-sitter ends a macro at its first comment
    root = cpp.parse(text).root_node
    if cpp.given_up(root, text) or cpp.depth_exceeds(root):
        return [], [Problem(str(path), "is nested deeper than any launcher is")]
    file = File(source, text, definitions_at_file_level(root.named_children, text), headers)
    launchers, problems = _macros(file, root)
    if leads_to_kernel(text):
        found, wrong = function_templates.read(file, root)
        launchers, problems = [*launchers, *found], [*problems, *wrong]
    return launchers, problems


def _macros(file: File, root: Node) -> tuple[list[Launcher], list[Problem]]:
    launchers: dict[str, Launcher] = {}
    problems: list[Problem] = []
    seen: set[str] = set()
    source, text = file.source, file.text
    for macro in cpp.descendants(root, "preproc_function_def"):
        name_node = macro.child_by_field_name("name")
        span = (name_node.start_byte, name_node.end_byte) if name_node else (macro.start_byte, macro.end_byte)
        name = source.slice(*span)
        where = source.range(*span)
        if KERNEL.encode() not in text[macro.start_byte : macro.end_byte]:
            if name.startswith("INSTANTIATE_"):
                problems.append(Problem(source.name, f"the body of {name} names no {KERNEL}", where))
            continue
        if name in seen:
            launchers.pop(name, None)
            problems.append(
                Problem(source.name, f"{name} is defined more than once; which one counts is not known", where)
            )
            continue
        seen.add(name)
        try:
            launchers[name] = _macro(file, macro, name, span)
        except NotUnderstood as error:
            place = where if error.offset is None else source.range(error.offset, error.offset + 1)
            problems.append(Problem(source.name, f"{name}: {error}", place))
    return list(launchers.values()), problems


def _macro(file: File, macro: Node, name: str, span: tuple[int, int]) -> Launcher:
    listed = macro.child_by_field_name("parameters")
    parameters = tuple(
        file.source.slice(child.start_byte, child.end_byte)
        for child in (listed.named_children if listed else ())
        if child.type == "identifier"
    )
    found = _body(file.text, macro)
    if found is None:
        raise NotUnderstood("its body is not a function", span[0])
    body, text = found
    chain = read_chain(body, text, {*parameters, *file.definitions})
    return Launcher(file, name, tuple(Parameter(each) for each in parameters), span, text, chain)


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
    for function in cpp.descendants(root, "function_definition"):
        block = function.child_by_field_name("body")
        if block is not None and block.type == "compound_statement":
            return block, body
    return None


_HEAD = b"void launcher() "


def _matching(blanked: bytes, opening: int) -> int | None:
    depth = 0
    for match in re.compile(rb"[{}]").finditer(blanked, max(opening, 0)):
        depth += 1 if match.group() == b"{" else -1
        if depth == 0:
            return match.start()
    return None
