"""What the interpreter computes with: numbers, types, enumerators, records, functions, and what is not known yet.

A type stands for its instances too (``ClusterShape{}`` is `ClusterShape`), as everywhere in cutlint. What is only known
at run time is a `Symbol`: the name of an input or an operation on such. Followed both ways, it becomes a condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from cutlint.evaluate import Type
from cutlint.expression import NotUnderstood

Value = Any  # one of: int, bool, str, None, Type, list, tuple, or a class of this module


class Place(msgspec.Struct, frozen=True):
    """A line of host code, zero-based, in the file `path`."""

    path: str
    line: int


class Enumerator:
    """``owner::name`` with its number. `place` is where it was written, which makes it no other enumerator."""

    __slots__ = ("name", "number", "owner", "place")

    def __init__(self, owner: str, name: str, number: int, place: Place) -> None:
        self.owner = owner
        self.name = name
        self.number = number
        self.place = place

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Enumerator) and (self.owner, self.name) == (other.owner, other.name)

    def __hash__(self) -> int:
        return hash((self.owner, self.name))

    def __repr__(self) -> str:
        return f"{self.owner}::{self.name}"


class Record:
    """An object of a class whose members cutlint keeps, by name."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str, fields: dict[str, Value]) -> None:
        self.name = name
        self.fields = fields

    def copy(self) -> Record:
        return Record(self.name, dict(self.fields))


class Reference(msgspec.Struct, frozen=True):
    """A function or a launcher with its template arguments, and where the code names it."""

    name: str
    arguments: tuple[Value, ...]
    place: Place
    owner: Type | None = None


class Symbol(msgspec.Struct, frozen=True):
    """A value that is not known before run time: ``input`` with its path, or an operator over operands."""

    operator: str
    operands: tuple[Value, ...] = ()

    def __str__(self) -> str:
        if self.operator == "input":
            return str(self.operands[0])
        if not self.operands:
            return "something that is not known"
        if len(self.operands) == 1:
            return f"{self.operator}({self.operands[0]})"
        return "(" + f" {self.operator} ".join(str(each) for each in self.operands) + ")"


OPAQUE = Symbol("?")  # not known, and nothing is known of it


class Condition(msgspec.Struct, frozen=True):
    """`value` is true, or with `holds` false it is not."""

    value: Value
    holds: bool


class Choices(msgspec.Struct, frozen=True):
    """One of several values, each under its conditions."""

    alternatives: tuple[tuple[tuple[Condition, ...], Value], ...]


class Cursor(msgspec.Struct, frozen=True):
    """An iterator: at the beginning or the end of a list, or one that appends to it."""

    of: Any
    kind: str


def copied(value: Value) -> Value:
    """`value` as C++ copies it: a list or a record is one of its own."""
    if isinstance(value, list):
        return [copied(each) for each in value]
    if isinstance(value, Record):
        return value.copy()
    return value


def number(value: Value) -> int | float | None:
    """The number of an integer, a boolean, a floating-point number or an enumerator; None for anything else."""
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, Enumerator):
        return value.number
    return None


def truth(value: Value) -> bool | None:
    """Whether `value` is true; None where that is not known."""
    known = number(value)
    if known is None and isinstance(value, Type) and value.name == "is_same":
        return value.arguments[0] == value.arguments[1]
    return None if known is None else known != 0


def operation(operator: str, left: Value, right: Value) -> Value:
    """``left operator right``: a value where both are known, else a symbol.

    Equality compares what it is given; arithmetic needs numbers. Division truncates towards zero as C++ does.
    """
    if isinstance(left, (Symbol, Choices)) or isinstance(right, (Symbol, Choices)):
        if OPAQUE in (left, right) or isinstance(left, Choices) or isinstance(right, Choices):
            return OPAQUE
        return Symbol(operator, (left, right))
    a, b = number(left), number(right)
    if operator in ("==", "!="):
        same = a == b if a is not None and b is not None and type(left) is not type(right) else left == right
        return same == (operator == "==")
    if a is None or b is None:
        return OPAQUE
    return _arithmetic(operator, a, b)


def _arithmetic(operator: str, a: int | float, b: int | float) -> Value:
    if isinstance(a, float) or isinstance(b, float):
        return _floating(operator, a, b)
    if operator in ("/", "%"):
        if b == 0:
            return OPAQUE
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if operator == "/" else a - b * quotient
    if operator in ("<<", ">>") and not 0 <= b < 64:
        return OPAQUE
    return _OPERATORS[operator](a, b) if operator in _OPERATORS else OPAQUE


def _floating(operator: str, a: float, b: float) -> Value:
    if operator == "/":
        return a / b if b else OPAQUE
    return _OPERATORS[operator](a, b) if operator in ("*", "+", "-", "<", ">", "<=", ">=") else OPAQUE


_OPERATORS: dict[str, Any] = {
    "*": lambda a, b: a * b, "+": lambda a, b: a + b, "-": lambda a, b: a - b, "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b, "<": lambda a, b: a < b, ">": lambda a, b: a > b, "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b, "&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
}  # fmt: skip


def negation(value: Value) -> Value:
    """``!value``."""
    known = truth(value)
    if known is not None:
        return not known
    return OPAQUE if value is OPAQUE or not isinstance(value, Symbol) else Symbol("!", (value,))


def resolve(value: Value, inputs: Mapping[str, Value]) -> Value:
    """`value` with the inputs that are known put in; OPAQUE where that is not enough."""
    if not isinstance(value, Symbol):
        return value
    if value.operator == "input":
        return inputs.get(value.operands[0], OPAQUE)
    if value.operator == "!":
        return negation(resolve(value.operands[0], inputs))
    if value.operator in ("&&", "||"):
        known = [truth(resolve(each, inputs)) for each in value.operands]
        decisive = value.operator == "||"
        return decisive if decisive in known else (OPAQUE if None in known else not decisive)
    if len(value.operands) != 2:
        return OPAQUE
    return operation(value.operator, *(resolve(each, inputs) for each in value.operands))


def substituted(value: Value, name: str, known: Value) -> Value:
    """`value` with one of its inputs known: what it then is, as far as that can be told."""
    if not isinstance(value, Symbol):
        return value
    if value.operator == "input":
        return known if value.operands[0] == name else value
    operands = [substituted(each, name, known) for each in value.operands]
    if value.operator == "!":
        return negation(operands[0])
    if value.operator in ("&&", "||"):
        decisive = value.operator == "||"
        left = [each for each in operands if truth(each) is None]
        if any(truth(each) is decisive for each in operands):
            return decisive
        return Symbol(value.operator, tuple(left)) if len(left) > 1 else left[0] if left else not decisive
    return operation(value.operator, *operands) if len(operands) == 2 else value


def satisfied(conditions: tuple[Condition, ...], inputs: Mapping[str, Value]) -> bool | None:
    """Whether all of `conditions` hold for `inputs`; None where that is not known."""
    result: bool | None = True
    for each in conditions:
        known = truth(resolve(each.value, inputs))
        if known is None:
            result = None
        elif known != each.holds:
            return False
    return result


def spelled(value: Value) -> str:
    """A type, a number or an enumerator as text, enumerators without their enumeration.

    Raises:
        NotUnderstood: for a value that is not known.
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Enumerator):
        return value.name
    if isinstance(value, Type) and value.owner is not None and not value.arguments:
        return value.name
    if isinstance(value, (int, Type)):
        return str(value)
    raise NotUnderstood(f"{value} as a template argument")
