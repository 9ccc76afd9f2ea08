"""Text that nobody vouched for, made safe to show."""

from __future__ import annotations

import re
from typing import Any

import msgspec


def printable(text: str) -> str:
    """`text` with control characters (newlines, terminal escapes) made visible."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


_MARKDOWN = str.maketrans(
    {
        **{each: f"\\{each}" for each in "`*_[]~"},
        **{each: f"&#{ord(each)};" for each in "\\|$"},  # a cell's end, and mathematics on GitHub
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        "@": "@<!-- -->",  # nobody is to be notified
    }
)


def markdown(text: str) -> str:
    """One line of `text` as GitHub's and GitLab's Markdown shows it unchanged, in a table's cell too."""
    return printable(text).translate(_MARKDOWN).replace("://", ":&#47;&#47;").replace("www.", "www&#46;")


_UNSEEN = re.compile("[\x7f-\xa0\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\ufffb\ufffe\uffff]")


def json_schema(what: str, version: str, record: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a report whose records are `record`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{what}, schema version {version}",
        **msgspec.json.schema(record),
    }


def json_document(value: Any) -> str:
    """`value` as indented JSON, the same bytes for the same value, with escapes for what is not to be seen: C1 controls,
    which terminals act on, and marks that turn the direction of text."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"
