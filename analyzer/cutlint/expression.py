"""C++ type and constant expressions, as they stand in the launchers' ``using`` and ``constexpr`` statements.

`parse` reads one from tokens into a small tree in which types and values look alike: whether a name is a type is
only known when it is evaluated. The grammar is the part of [expr] and [temp.arg] that alias chains use.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from cutlint import cpp
from cutlint.cpp import Token

MAX_NESTING = 100
MAX_MESSAGE = 500  # characters


class NotUnderstood(Exception):
    """C++ that cutlint cannot read or evaluate. `offset` is the byte where it stands, if known. Of a message with types
    that fill pages, the beginning and the end are kept."""

    def __init__(self, message: str, offset: int | None = None) -> None:
        super().__init__(message if len(message) <= MAX_MESSAGE else f"{message[:300]} … {message[-100:]}")
        self.offset = offset


class Part(msgspec.Struct, frozen=True, cache_hash=True):
    """One component of a qualified name, with its template arguments if it has any."""

    text: str
    arguments: tuple[Expression, ...] | None = None


class Name(msgspec.Struct, frozen=True, cache_hash=True):
    """``a::b<c>::d``."""

    parts: tuple[Part, ...]
    offset: int


class Literal(msgspec.Struct, frozen=True, cache_hash=True):
    """An integer, ``true``, ``false`` or a string."""

    value: int | bool | str
    offset: int


class Operation(msgspec.Struct, frozen=True, cache_hash=True):
    """``operator`` over its operands; ``?:`` has three, ``*`` with one is a pointer type or a dereference."""

    operator: str
    operands: tuple[Expression, ...]
    offset: int


class Call(msgspec.Struct, frozen=True, cache_hash=True):
    """``callee(arguments)``, or ``callee{arguments}`` when `braces` is set."""

    callee: Name
    arguments: tuple[Expression, ...]
    braces: bool
    offset: int


class Unreadable(msgspec.Struct, frozen=True, cache_hash=True):
    """An expression that cutlint could not read; whoever needs its value gets `message`."""

    message: str
    offset: int


Expression = Name | Literal | Operation | Call | Unreadable

_PRECEDENCE = {
    "*": 10, "/": 10, "%": 10, "+": 9, "-": 9, "<<": 8, ">>": 8, "<": 7, ">": 7, "<=": 7, ">=": 7,
    "==": 6, "!=": 6, "&": 5, "^": 4, "|": 3, "&&": 2, "and": 2, "||": 1, "or": 1,
}  # fmt: skip
_IGNORED = frozenset({"typename", "const", "constexpr", "struct", "class", "template", "volatile", "static", "inline"})
_PRIMITIVE = frozenset(
    {"int", "unsigned", "signed", "long", "short", "char", "bool", "float", "double", "void", "auto"}
)


def parse(tokens: Sequence[Token]) -> Expression:
    """The expression that `tokens` spell, all of them.

    Raises:
        NotUnderstood: for anything outside the grammar, with the byte offset of the token that surprised.
    """
    parser = _Parser(tokens)
    result = parser.expression(0)
    if parser.peek() is not None:
        raise parser.surprise()
    return result


def read(text: bytes) -> Expression:
    """The expression that `text` spells by itself: an argument of a macro or a template.

    Raises:
        NotUnderstood: as `parse`, with an offset in ``using argument = text;``.
    """
    statement = b"using argument = " + text + b";"
    root = cpp.parse(statement).root_node
    if cpp.given_up(root, statement):
        raise NotUnderstood("an argument is nested deeper than any that is meant")
    return parse(list(cpp.tokens(root, statement))[3:-1])


class _Parser:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = [token for token in tokens if token.text not in _IGNORED]
        self.index = 0
        self.nesting = 0

    def peek(self, ahead: int = 0) -> str | None:
        index = self.index + ahead
        return self.tokens[index].text if index < len(self.tokens) else None

    def surprise(self) -> NotUnderstood:
        if self.index >= len(self.tokens):
            return NotUnderstood("an expression ends too early", self.tokens[-1].offset if self.tokens else None)
        token = self.tokens[self.index]
        return NotUnderstood(f"unexpected '{token.text[:40]}' in an expression", token.offset)

    def expect(self, text: str) -> None:
        if self.peek() != text:
            raise self.surprise()
        self.index += 1

    def here(self) -> int:
        return self.tokens[self.index].offset if self.index < len(self.tokens) else 0

    def expression(self, minimum: int) -> Expression:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise NotUnderstood(f"nested more than {MAX_NESTING} deep", self.here())
        left = self.unary()
        while (operator := self.peek()) is not None:
            token = self.tokens[self.index]
            if operator == "?" and minimum <= 0:
                self.index += 1
                middle = self.expression(0)
                self.expect(":")
                left = Operation("?:", (left, middle, self.expression(0)), token.offset)
                continue
            precedence = 0 if token.template else _PRECEDENCE.get(operator, 0)
            if precedence == 0 or precedence <= minimum:
                break
            if operator in "*&" and self.peek(1) in (",", ">", ")", "*", "&", None):
                self.index += 1  # a pointer or reference declarator behind a type, not a product
                left = Operation(operator, (left,), token.offset) if operator == "*" else left
                continue
            self.index += 1
            left = Operation(operator, (left, self.expression(precedence)), token.offset)
        self.nesting -= 1
        return left

    def unary(self) -> Expression:
        offset, text = self.here(), self.peek()
        if text in ("!", "-", "+", "~", "&", "not"):
            self.index += 1
            return Operation("!" if text == "not" else text, (self.expression(10),), offset)
        if text == "(":
            self.index += 1
            inner = self.expression(0)
            self.expect(")")
            return inner
        if text is None:
            raise self.surprise()
        if text[0] in "0123456789":
            self.index += 1
            return Literal(_integer(text, offset), offset)
        if text in ("true", "false"):
            self.index += 1
            return Literal(text == "true", offset)
        if text[0] == '"':
            self.index += 1
            return Literal(text, offset)
        return self.named()

    def named(self) -> Expression:
        offset = self.here()
        name = self.name()
        opening = self.peek()
        if opening not in ("(", "{"):
            return name
        self.index += 1
        arguments = self.list_until(")" if opening == "(" else "}")
        call = Call(name, arguments, opening == "{", offset)
        if self.peek() == "::":  # decltype(x)::type
            self.index += 1
            rest = self.name()
            return Name((Part("decltype", (call,)), *rest.parts), offset)
        return call

    def name(self) -> Name:
        offset = self.here()
        if self.peek() == "::":
            self.index += 1
        parts = [self.part()]
        while self.peek() == "::":
            self.index += 1
            parts.append(self.part())
        return Name(tuple(parts), offset)

    def part(self) -> Part:
        text = self.peek()
        if text is None or not (text[0].isalpha() or text[0] == "_"):
            raise self.surprise()
        self.index += 1
        while text in _PRIMITIVE and self.peek() in _PRIMITIVE:  # unsigned long long
            text = f"{text} {self.peek()}"
            self.index += 1
        if self.index < len(self.tokens) and self.peek() == "<" and self.tokens[self.index].template:
            self.index += 1
            return Part(text, self.list_until(">"))
        return Part(text)

    def list_until(self, closing: str) -> tuple[Expression, ...]:
        items: list[Expression] = []
        while self.peek() != closing:
            items.append(self.expression(0))
            if self.peek() == ",":
                self.index += 1
            elif self.peek() != closing:
                raise self.surprise()
        self.index += 1
        return tuple(items)


def _integer(text: str, offset: int) -> int:
    digits = text.replace("'", "").rstrip("uUlLzZ")
    kind = _INTEGER.fullmatch(digits)
    if kind is None:
        raise NotUnderstood(f"'{text[:40]}' is not an integer", offset)
    if len(digits) > 70:  # 64 binary digits and what stands before them
        digits = str(2**64)
    return fitting(int(digits, 8 if kind.group(1) else 0), offset)


_INTEGER = re.compile("0[xX][0-9a-fA-F]+|0[bB][01]+|(0[0-7]+)|[1-9][0-9]*|0")


def fitting(value: int, offset: int | None) -> int:
    """`value`, if it is one that C++ has a type for.

    Raises:
        NotUnderstood: when it is not: the program is ill-formed then, [lex.icon] and [expr.const].
    """
    if not -(2**63) <= value < 2**64:
        raise NotUnderstood("an integer that does not fit into 64 bits", offset)
    return value


def names(expression: Expression) -> list[str]:
    """Every name that `expression` mentions."""
    found: list[str] = []
    stack: list[Expression] = [expression]
    while stack:
        current = stack.pop()
        if isinstance(current, Name):
            found.extend(part.text for part in current.parts)
            stack.extend(each for part in current.parts for each in part.arguments or ())
        elif isinstance(current, Operation):
            stack.extend(current.operands)
        elif isinstance(current, Call):
            stack.extend((current.callee, *current.arguments))
        else:
            assert isinstance(current, (Literal, Unreadable))
    return found
