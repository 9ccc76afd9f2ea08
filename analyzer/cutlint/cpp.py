"""C++ source text: bytes with positions, tree-sitter trees, tokens, and what the preprocessor does to lines.

tree-sitter gives structure (where a macro, an alias, a block begins and ends). It cannot know which names are
types, so it may call ``static_cast<int>(sizeof(X))`` inside ``<...>`` a function type; expressions are therefore
read from its leaf tokens (see `cutlint.expression`), which it always gets right, together with its decision
whether a ``<`` opens a template argument list.
"""

from __future__ import annotations

import re
import time
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache, cached_property

import msgspec
import tree_sitter_cpp
from tree_sitter import Language, Node, Parser, Tree

from cutlint.records import Position, Range

MAX_DEPTH = 400  # a tree deeper than this is not walked: nobody's launcher is, a hostile one may be
MAX_TOKENS = 4096  # that stand side by side and form nothing
PATIENCE = 10.0  # seconds of this process to parse one file: launchers take 0.02
QUICK = 2**14  # bytes of text that nothing makes slow
MAX_OPEN = 1000  # brackets that are open at once


class Token(msgspec.Struct, frozen=True):
    """One leaf of the syntax tree: its text, byte offset, and whether it is a template's angle bracket."""

    text: str
    offset: int
    template: bool = False

    @property
    def end(self) -> int:
        return self.offset + len(self.text.encode())


class Source:
    """A file's bytes, with byte offsets translated to zero-based lines and UTF-16 characters."""

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.data = data

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer(b"\n", self.data))]

    def position(self, offset: int) -> Position:
        line = bisect_right(self._lines, offset) - 1
        before = self.data[self._lines[line] : offset]
        if before.isascii():
            return Position(line, len(before))
        return Position(line, len(before.decode("utf-8", "replace").encode("utf-16-le")) // 2)

    def line(self, number: int) -> tuple[int, bytes] | None:
        """The offset and the text of the line `number` (from zero), without its newline; None where there is none."""
        if number >= len(self._lines):
            return None
        start = self._lines[number]
        end = self._lines[number + 1] - 1 if number + 1 < len(self._lines) else len(self.data)
        return start, self.data[start:end]

    def range(self, start: int, end: int) -> Range:
        return Range(self.position(start), self.position(end))

    def slice(self, start: int, end: int) -> str:
        return self.data[start:end].decode("utf-8", "replace")


@cache
def language() -> Language:
    return Language(tree_sitter_cpp.language())


@cache
def _parser() -> Parser:
    return Parser(language())


def parse(data: bytes) -> Tree:
    """The syntax tree of `data`. Never fails: what is not C++ becomes ERROR nodes. Text that could keep the parser busy for
    minutes, or does for `PATIENCE`, has the tree of a text without anything: see `given_up`."""
    if len(data) < QUICK:
        return _parser().parse(data)
    if _tiring(data):
        return _parser().parse(b"")
    deadline = time.process_time() + PATIENCE
    try:
        return _parser().parse(
            lambda offset, point: data[offset : offset + 2**16],
            progress_callback=lambda offset, error: time.process_time() > deadline,
        )
    except ValueError:  # stopped by the callback
        _parser().reset()
        return _parser().parse(b"")


def given_up(root: Node, data: bytes) -> bool:
    """Whether `root` is not the tree of `data` because parsing that would take too long."""
    return root.end_byte == 0 and len(data) >= QUICK and not data.isspace()


def _tiring(data: bytes) -> bool:
    """Whether so many brackets are open at once in `data` that the parser would take quadratic time."""
    depth = angles = 0
    for match in _BRACKETS.finditer(data):
        character = match.group()
        if character in b"([{":
            depth += 1
        elif character in b")]}":
            depth = max(0, depth - 1)
        elif character == b"<":
            angles += 1
        elif character == b">":
            angles = max(0, angles - 1)
        if character in b"{};":  # a comparison is no bracket: none lasts longer than a statement
            angles = 0
        if max(depth, angles) > MAX_OPEN:
            return True
    return False


_BRACKETS = re.compile(rb"[(){}\[\]<>;]")


def descendants(node: Node, *types: str) -> Iterator[Node]:
    """The named nodes below `node` that are of one of the `types`, in source order. (A tree-sitter query would say the same,
    but takes longer to compile than to walk all of a launcher.)"""
    stack = node.named_children[::-1]
    while stack:
        current = stack.pop()
        if current.type in types:
            yield current
        if current.named_child_count:
            stack.extend(current.named_children[::-1])


def blank_comments(data: bytes) -> bytes:
    """`data` with comments and the contents of string literals replaced by spaces; every offset stays."""

    def spaces(match: re.Match[bytes]) -> bytes:
        text = match.group()
        if text[:1] == b"/":
            return _IN_LINE.sub(b" ", text)
        quote = text[:1] if text[:1] != b"R" else b'"'
        return quote + _IN_LINE.sub(b" ", text[1:-1]) + text[-1:] if len(text) > 1 else text

    return _COMMENT_OR_STRING.sub(spaces, data)


_IN_LINE = re.compile(rb"[^\n]")
_COMMENT_OR_STRING = re.compile(
    rb"""/\*.*?(?:\*/|\Z)|//(?:\\\r?\n|[^\n])*"""
    rb"""|R"([^()\\\s]{0,16})\(.*?(?:\)\1"|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""",
    re.DOTALL,
)


def blank_comments_only(data: bytes) -> bytes:
    """As `blank_comments`, with string literals left as they are."""
    return _COMMENT_OR_STRING.sub(
        lambda match: _IN_LINE.sub(b" ", match.group()) if match.group()[:1] == b"/" else match.group(), data
    )


_LEXED = re.compile(  # what may hold the beginning of a comment that is none, and comments; in linear time
    rb"""(?P<comment>/\*.*?(?:\*/|\Z)|//(?:\\\r?\n|[^\n])*)
    |\b(?:u8|[uUL])?R"(?P<mark>[^()\\\s"]{0,16})\(.*?(?:\)(?P=mark)"|\Z)
    |\b[0-9](?:'?\w)*
    |"(?:\\.|[^"\\\n])*"
    |'(?:\\.|[^'\\\n])*'""",
    re.DOTALL | re.VERBOSE,
)


def comments(data: bytes) -> Iterator[tuple[int, int]]:
    """The byte spans of the comments in `data`: not what looks like one in a string, a raw string or a character."""
    return (match.span() for match in _LEXED.finditer(data) if match.lastgroup == "comment")


_CONTINUATION = re.compile(rb"\\\r?\n")


def join_continuations(data: bytes) -> bytes:
    """`data` with each backslash-newline replaced by spaces: one line, with every byte where it was."""
    return _CONTINUATION.sub(lambda match: b" " * len(match.group()), data)


def tokens(node: Node, data: bytes) -> Iterator[Token]:
    """The leaf tokens below `node` in order, comments left out."""
    stack = [(node, "")]  # with the parent's type: asked of tree-sitter, that costs a walk from the root
    while stack:
        current, parent = stack.pop()
        kind = current.type
        if kind == "comment":
            continue
        if current.child_count and kind not in ("string_literal", "char_literal"):
            stack.extend((child, kind) for child in reversed(current.children))
            continue
        text = data[current.start_byte : current.end_byte].decode("utf-8", "replace")
        if text.strip():
            template = text in "<>" and parent.startswith("template_")
            if text[0] in "+-" and text[1:2].isdigit():  # tree-sitter takes a sign into the number
                yield Token(text[0], current.start_byte)
                yield Token(text[1:], current.start_byte + 1)
            else:
                yield Token(text, current.start_byte, template)


_DIRECTIVE = re.compile(rb"^[ \t]*#[ \t]*(ifdef|ifndef|if|elifdef|elifndef|elif|else|endif)\b([^\n]*)", re.MULTILINE)


class Guard(msgspec.Struct, frozen=True):
    """A stretch of a file and the preprocessor condition that lets it through (None: always)."""

    start: int
    condition: str | None


MAX_CONDITIONS = 16  # innermost conditions that a guard spells out


def guards(plain: bytes) -> list[Guard]:
    """The file cut at its conditional directives. `plain` is without comments and line continuations."""
    levels: list[list[str]] = []  # for each open #if: its branches so far; the last one is the current
    result = [Guard(0, None)]
    for match in _DIRECTIVE.finditer(plain):
        word, text = match.group(1).decode(), " ".join(match.group(2).decode("utf-8", "replace").split())
        if word.startswith("if"):
            levels.append([_condition(word[2:], text)])
        elif word == "endif":
            if levels:
                levels.pop()
        elif levels:
            levels[-1].append("" if word == "else" else _condition(word[4:], text))
        result.append(Guard(match.end(), _joined(levels)))
    return result


def _joined(levels: list[list[str]]) -> str | None:
    """The conditions of all open levels, the innermost `MAX_CONDITIONS` of them."""
    parts: list[str] = []
    for level in reversed(levels):
        if level[-1]:
            parts.append(level[-1])
        parts.extend(f"!({each})" for each in reversed(level[-MAX_CONDITIONS - 1 : -1]))
        if len(parts) > MAX_CONDITIONS:
            return " && ".join(["...", *reversed(parts[:MAX_CONDITIONS])])
    return " && ".join(reversed(parts)) or None


def _condition(suffix: str, text: str) -> str:
    return {"def": f"defined({text})", "ndef": f"!defined({text})"}.get(suffix, text)


def guard_at(offset: int, found: list[Guard]) -> str | None:
    return found[bisect_right(found, offset, key=lambda guard: guard.start) - 1].condition


def depth_exceeds(node: Node, limit: int = MAX_DEPTH) -> bool:
    """Whether the tree below `node` is deeper than `limit`, or wider than anybody's code with tokens that form nothing;
    found without recursion."""
    stack = [(node, 0)]
    while stack:
        current, depth = stack.pop()
        if depth > limit:
            return True
        children = current.children
        if len(children) > MAX_TOKENS and _longest_run(children) > MAX_TOKENS:
            return True
        stack.extend((child, depth + 1) for child in children if child.child_count)
    return False


def _longest_run(children: list[Node]) -> int:
    """How many tokens without a name stand side by side."""
    longest = run = 0
    for child in children:
        run = 0 if child.is_named else run + 1
        longest = max(longest, run)
    return longest


MAX_ARGUMENTS = 4096  # of a macro call: launchers' macros take 17
MAX_CALL = 64 * 1024  # bytes of a macro call
MAX_PARENTHESES = 32  # that are open at once in a macro call


_COMMAS = re.compile(rb"[(),]")


def call_arguments(blanked: bytes, opening: int) -> tuple[list[tuple[int, int]], int] | str:
    """Byte spans of the arguments of a macro call whose ``(`` is at `opening`, and the offset past its ``)``.

    Splits as the preprocessor does: at commas outside parentheses, so ``<a, b>`` counts as two. Where there is no such
    call, why: the ``)`` is missing, or it is larger than anybody's.
    """
    depth, start = 0, opening + 1
    spans: list[tuple[int, int]] = []
    for match in _COMMAS.finditer(blanked, opening, opening + MAX_CALL):
        character = match.group()
        if character == b"(":
            depth += 1
            if depth > MAX_PARENTHESES:
                return f"has parentheses nested more than {MAX_PARENTHESES} deep"
        elif character == b")":
            depth -= 1
            if depth == 0:
                spans.append((start, match.start()))
                return spans, match.end()
        elif depth == 1:
            spans.append((start, match.start()))
            start = match.end()
            if len(spans) >= MAX_ARGUMENTS:
                return f"has more than {MAX_ARGUMENTS:,} arguments"
    if len(blanked) > opening + MAX_CALL:
        return f"has no closing parenthesis within {MAX_CALL:,} bytes"
    return "has no closing parenthesis (a truncated file?)"
