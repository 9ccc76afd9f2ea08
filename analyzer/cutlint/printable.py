"""Text that nobody vouched for, made safe to show."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` with control characters (newlines, terminal escapes) made visible."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
