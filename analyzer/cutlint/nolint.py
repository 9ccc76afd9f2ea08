"""Suppressions in C++'s habit: ``NOLINT``, ``NOLINTNEXTLINE``, ``NOLINTBEGIN`` and ``NOLINTEND`` in comments.

Follows clang-tidy's documentation ("Suppressing Undesired Diagnostics") and NoLintDirectiveHandler.cpp, with two
differences: a directive counts in comments only, and ``NOLINT`` on any line of a finding that spans several.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from cutlint import cpp
from cutlint.records import Position, Range

_DIRECTIVE = re.compile(rb"NOLINT([A-Za-z]*)(?:\(([^\n)]{0,1000})\))?")
_KINDS = (b"", b"NEXTLINE", b"BEGIN", b"END")


class Directive(msgspec.Struct, frozen=True):
    """One of them as it is written at `range`. `words` are the checks in its parentheses, None without parentheses (which
    means all); `reason` what follows in the comment. A block's `end` is where its NOLINTEND stands; `unmatched`: it has
    none, or is one without its NOLINTBEGIN."""

    text: str
    kind: str
    words: tuple[str, ...] | None
    reason: str
    range: Range
    end: Position | None = None
    unmatched: bool = False

    def covers(self, where: Range) -> bool:
        """Whether a finding at `where` is in its reach."""
        line, start = self.range.start.line, where.start
        if self.kind == "NOLINT":
            return start.line <= line <= where.end.line
        if self.kind == "NOLINTNEXTLINE":
            return start.line == line + 1
        return self.end is not None and _key(self.range.start) < _key(start) < _key(self.end)

    def word_for(self, rule: str) -> str | None:
        """The word that names `rule`: an id, or a pattern with ``*``. ``*`` itself for a directive without any words."""
        if self.words is None:
            return "*"
        return next((word for word in self.words if names(word, rule)), None)


def names(word: str, rule: str) -> bool:
    """Whether `word`, in which ``*`` stands for any characters, names `rule`. clang-tidy's negative ones name nothing."""
    return re.fullmatch(".*".join(map(re.escape, word.split("*"))), rule, re.DOTALL) is not None


def _key(place: Position) -> tuple[int, int]:
    return (place.line, place.character)


def scan(data: bytes) -> list[Directive]:
    """The directives in the text `data`: blocks with their ends, and what is unmatched, as such."""
    if b"NOLINT" not in data:
        return []
    position = _positions(data)
    found: list[Directive] = []
    for start, end in cpp.comments(data):
        matches = [each for each in _DIRECTIVE.finditer(data, start, end) if each[1] in _KINDS]
        stops = [*(each.start() for each in matches[1:]), end]
        for match, stop in zip(matches, stops, strict=False):
            words = (
                None
                if match[2] is None
                else tuple(each.strip() for each in match[2].decode("utf-8", "replace").split(","))
            )
            found.append(
                Directive(
                    text=match[0].decode("utf-8", "replace"),
                    kind="NOLINT" + match[1].decode(),
                    words=words,
                    reason=_reason(data[match.end() : stop]),
                    range=Range(position(match.start()), position(match.end())),
                )
            )
    return _paired(found)


def _positions(data: bytes) -> Callable[[int], Position]:
    """The position of a byte offset, asked for in rising order: linear in all, however long a line is."""
    last, line, character = 0, 0, 0

    def at(offset: int) -> Position:
        nonlocal last, line, character
        between = data[last:offset]
        newlines = between.count(b"\n")
        if newlines:
            line, character = line + newlines, 0
            between = between[between.rindex(b"\n") + 1 :]
        character += len(between.decode("utf-8", "replace").encode("utf-16-le")) // 2
        last = offset
        return Position(line, character)

    return at


def _reason(rest: bytes) -> str:
    """What the rest of the comment's line says."""
    line = rest.decode("utf-8", "replace").split("\n")[0]
    return line.removesuffix("*/").strip().lstrip(":-–— ").rstrip("/ ")


def _paired(found: Sequence[Directive]) -> list[Directive]:
    """The directives with blocks put together: the last one begun ends first, and both ends name the same."""
    result: list[Directive] = []
    begun: list[int] = []  # indices into `result`
    for each in found:
        if each.kind == "NOLINTEND":
            if begun and result[begun[-1]].words == each.words:
                index = begun.pop()
                result[index] = msgspec.structs.replace(result[index], end=each.range.start, unmatched=False)
            else:
                result.append(msgspec.structs.replace(each, unmatched=True))
        elif each.kind == "NOLINTBEGIN":
            begun.append(len(result))
            result.append(msgspec.structs.replace(each, unmatched=True))
        else:
            result.append(each)
    return result
