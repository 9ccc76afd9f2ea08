"""Positions of cutlint's records (UTF-16, as the protocol's default) and those of the encoding agreed with the editor."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property

from lsprotocol import types

from cutlint.records import Position, Range

Encoding = types.PositionEncodingKind | str
UTF16 = types.PositionEncodingKind.Utf16


def as_data(text: str) -> bytes:
    """An editor's text as the bytes of a file, with lines where the editor counts them: a lone carriage return ends one
    too, and half a surrogate pair, which no file can hold, becomes a question mark."""
    return re.sub("\r(?!\n)", "\n", text).encode("utf-8", "replace")


class Columns:
    """Translates positions in one text. `read` gives its bytes, and is called only where the encodings differ."""

    def __init__(self, encoding: Encoding, read: Callable[[], bytes]) -> None:
        self._encoding = encoding
        self._read = read

    @cached_property
    def _lines(self) -> list[str]:
        return self._read().decode("utf-8", "replace").split("\n")

    def to_editor(self, where: Range) -> types.Range:
        return types.Range(self._to_editor(where.start), self._to_editor(where.end))

    def from_editor(self, where: types.Position) -> Position:
        """The position in UTF-16 code units; one past the end of its line is taken back to it, as the protocol says."""
        line = self._line(where.line)
        if self._encoding == UTF16 or line.isascii():
            return Position(where.line, where.character)
        if self._encoding == types.PositionEncodingKind.Utf8:
            before = line.encode()[: where.character].decode("utf-8", "replace")
        else:
            before = line[: where.character]
        return Position(where.line, _utf16(before))

    def _to_editor(self, where: Position) -> types.Position:
        if self._encoding == UTF16 or (line := self._line(where.line)).isascii():
            return types.Position(where.line, where.character)
        before = line.encode("utf-16-le")[: 2 * where.character].decode("utf-16-le", "replace")
        length = len(before.encode()) if self._encoding == types.PositionEncodingKind.Utf8 else len(before)
        return types.Position(where.line, length)

    def _line(self, number: int) -> str:
        return self._lines[number] if number < len(self._lines) else ""


def _utf16(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
