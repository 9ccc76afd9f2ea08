"""Text that nobody vouched for, made safe to show."""

from __future__ import annotations


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
    return printable(text).translate(_MARKDOWN).replace("://", ":&#47;&#47;")
