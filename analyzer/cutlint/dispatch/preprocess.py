"""Host code as the compiler sees it after the preprocessor, each line where it was.

Directives and the branches not taken become blank lines; macros defined in the file itself (``SHAPE_CASE``) are
expanded where they are used, on the line of their use. Macros from elsewhere stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from cutlint import cpp
from cutlint.expression import NotUnderstood

MAX_EXPANSION = 4 * 2**20  # bytes that the expansions of one file may come to
MAX_PASSES = 20  # macros within macros

Defined = Callable[[str], bool | None]


class Preprocessed(msgspec.Struct, frozen=True):
    """The text, and the conditions that could not be decided (taken as false): zero-based line and condition."""

    text: bytes
    undecided: tuple[tuple[int, str], ...]


class Macro(msgspec.Struct, frozen=True):
    """A macro of the file: `parameters` is None for one without parentheses."""

    parameters: tuple[str, ...] | None
    body: str


class _Level(msgspec.Struct):
    """An open ``#if``: whether its current branch counts, and whether any branch before did."""

    active: bool
    taken: bool
    outer: bool


_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(\w*)[ \t]*(.*)", re.DOTALL)
_DEFINE = re.compile(r"(\w+)(\(([^)]*)\))?[ \t]*(.*)", re.DOTALL)
_WORD = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[A-Za-z_]\w*')


def preprocess(data: bytes, defined: Defined) -> Preprocessed:
    """`data` with its conditions decided by `defined` (whether a macro from outside is defined; None: not known).

    Raises:
        NotUnderstood: for macros that expand without end.
    """
    text = cpp.blank_comments_only(data).decode("utf-8", "replace")
    macros: dict[str, Macro] = {}
    levels: list[_Level] = []
    undecided: list[tuple[int, str]] = []
    result: list[str] = []
    budget = MAX_EXPANSION
    for number, line in _logical(text):
        match = _DIRECTIVE.match(line)
        active = not levels or levels[-1].active
        if match is None:
            if active:
                line = _expand(line, macros, number, budget)
                budget -= len(line)
                result.append(line)
            else:
                result.append("\n" * line.count("\n"))
            continue
        result.append("\n" * line.count("\n"))
        word, rest = match.group(1), match.group(2).replace("\\\n", "  ").strip()
        if word in ("if", "ifdef", "ifndef"):
            holds = active and _decide(word, rest, macros, defined, number, undecided)
            levels.append(_Level(holds, holds, active))
        elif word in ("elif", "else", "endif") and levels:
            level = levels[-1]
            if word == "endif":
                levels.pop()
            elif level.outer and not level.taken:
                level.active = word == "else" or _decide("if", rest, macros, defined, number, undecided)
                level.taken = level.active
            else:
                level.active = False
        elif active and word == "define" and (named := _DEFINE.match(rest)):
            listed = named.group(3)
            parameters = None if named.group(2) is None else tuple(each.strip() for each in listed.split(","))
            macros[named.group(1)] = Macro(parameters, named.group(4))
        elif active and word == "undef":
            macros.pop(rest, None)
    return Preprocessed("".join(result).encode(), tuple(undecided))


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Stretches of `text` that belong together, each with the number of its first line: a directive with its
    continuation lines, or everything between two directives."""
    pending: list[str] = []
    start = 0
    directive = False
    for number, line in enumerate(text.splitlines(keepends=True)):
        if not directive and line.lstrip(" \t").startswith("#"):
            if pending:
                yield start, "".join(pending)
            pending, start, directive = [], number, True
        pending.append(line)
        if directive and not line.rstrip("\r\n").endswith("\\"):
            yield start, "".join(pending).replace("\r\n", "\n")
            pending, start, directive = [], number + 1, False
    if pending:
        yield start, "".join(pending)


# -- conditions


def _decide(
    word: str, text: str, macros: dict[str, Macro], defined: Defined, line: int, undecided: list[tuple[int, str]]
) -> bool:
    condition = {"ifdef": f"defined({text})", "ifndef": f"!defined({text})"}.get(word, text)
    holds = _condition(condition, macros, defined)
    if holds is None:
        undecided.append((line, " ".join(condition.split())))
    return bool(holds)


_TOKENS = re.compile(r"defined\s*\(\s*(\w+)\s*\)|defined\s+(\w+)|(&&|\|\||[()!])|(\w+)|(\S)")


def _condition(text: str, macros: dict[str, Macro], defined: Defined) -> bool | None:
    """The truth of a preprocessor condition made of ``defined``, ``!``, ``&&`` and ``||``; None where it is not known."""
    tokens: list[str | bool | None] = []
    for name, bare, operator, word, other in _TOKENS.findall(text):
        if asked := name or bare:
            tokens.append(True if asked in macros else defined(asked))
        elif operator:
            tokens.append(operator)
        elif other:
            return None
        else:
            tokens.append(word != "0" if word.isdigit() else None)
    tokens.reverse()
    value = _or(tokens)
    return value if not tokens else None


def _or(tokens: list[str | bool | None]) -> bool | None:
    value = _and(tokens)
    while tokens and tokens[-1] == "||":
        tokens.pop()
        other = _and(tokens)
        value = True if value or other else (None if value is None or other is None else False)
    return value


def _and(tokens: list[str | bool | None]) -> bool | None:
    value = _not(tokens)
    while tokens and tokens[-1] == "&&":
        tokens.pop()
        other = _not(tokens)
        value = False if value is False or other is False else (None if value is None or other is None else True)
    return value


def _not(tokens: list[str | bool | None]) -> bool | None:
    if not tokens:
        return None
    token = tokens.pop()
    if token == "!":
        value = _not(tokens)
        return None if value is None else not value
    if token == "(":
        value = _or(tokens)
        if tokens and tokens[-1] == ")":
            tokens.pop()
            return value
        return None
    return token if isinstance(token, bool) else None


# -- expansion


def _expand(text: str, macros: dict[str, Macro], line: int, budget: int) -> str:
    """`text` with the macros in it expanded; a use that spans lines keeps their number."""
    if not macros:
        return text
    for _ in range(MAX_PASSES):
        expanded = _once(text, macros)
        if expanded == text:
            return text
        if len(expanded) > budget:
            raise NotUnderstood(f"macros expand to more than cutlint follows, after line {line + 1}")
        text = expanded
    raise NotUnderstood(f"macros expand without end, after line {line + 1}")


def _once(text: str, macros: dict[str, Macro]) -> str:
    parts: list[str] = []
    position = 0
    blanked = None
    for match in _WORD.finditer(text):
        macro = macros.get(match.group())
        if macro is None or match.start() < position:
            continue
        end = match.end()
        arguments: tuple[str, ...] = ()
        if macro.parameters is not None:
            blanked = text.encode("utf-8", "replace") if blanked is None and text.isascii() else blanked
            opening = re.compile(r"\s*\(").match(text, end)
            if opening is None or blanked is None:
                continue
            call = cpp.call_arguments(blanked, opening.end() - 1)
            if isinstance(call, str):
                continue
            spans, end = call
            arguments = tuple(" ".join(text[start:stop].split()) for start, stop in spans)
            if len(arguments) != len(macro.parameters):
                continue
        parts += [text[position : match.start()], _substituted(macro, arguments)]
        parts.append("\n" * text.count("\n", match.start(), end))
        position = end
    return "".join(parts) + text[position:]


def _substituted(macro: Macro, arguments: tuple[str, ...]) -> str:
    values = dict(zip(macro.parameters or (), arguments, strict=True))
    body = _WORD.sub(lambda match: values.get(match.group(), match.group()), macro.body)
    return re.sub(r"\s*##\s*", "", body).replace("\n", " ")
