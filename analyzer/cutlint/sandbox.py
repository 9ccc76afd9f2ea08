"""Jinja for the expressions and templates of rules and conditions, which may be a stranger's: a configuration comes with
the checkout. What they can be made of is listed here, so that none takes more than a moment or a little memory: no loops,
macros or calls, and no text that grows by more than what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

import msgspec
from jinja2 import StrictUndefined, TemplateError, TemplateRuntimeError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_TEXT = 2**14  # characters of one expression or template; cutlint's own have up to 1,200
MAX_DEPTH = 50  # Python nests no more than 200 parentheses, and Jinja writes up to three for one of its nodes
MAX_JOINED = 2**16  # characters

_NODES: frozenset[type[nodes.Node]] = frozenset(
    {
        nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.CondExpr, nodes.Name, nodes.Const, nodes.Tuple,
        nodes.List, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not,
        nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Neg, nodes.Pos, nodes.Concat,
        nodes.Filter, nodes.Test,
    }
)  # fmt: skip
_FILTERS = ("abs", "bytes", "default", "first", "int", "join", "last", "length", "lower", "max", "min", "upper")
_TESTS = ("defined", "divisibleby", "even", "false", "none", "number", "odd", "string", "true", "undefined")
_CALLED: dict[type[nodes.Node], str] = {
    nodes.Call: "a call",
    nodes.For: "a loop",
    nodes.Macro: "a macro",
    nodes.Pow: "`**`",
}
Made = TypeVar("Made")


class Sandbox(ImmutableSandboxedEnvironment):
    """The sandbox, with a short way to the fields of records, which are all there is to read and always safe."""

    intercepted_binops = frozenset({"*", "%"})  # of text they repeat and format it

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, autoescape=False)
        self.filters = {name: self.filters[name] for name in _FILTERS if name in self.filters}
        self.filters.update(bytes=lambda number: f"{number:,} B", join=_join)
        self.tests = {name: self.tests[name] for name in _TESTS}

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, msgspec.Struct) and attribute in obj.__struct_fields__:
            return getattr(obj, attribute)
        return super().getattr(obj, attribute)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
            raise TemplateRuntimeError(f"`{operator}` is for numbers")
        return super().call_binop(context, operator, left, right)


def _join(values: Iterable[Any], between: str = "") -> str:
    words = [str(each) for each in values]
    if sum(map(len, words)) + len(between) * len(words) > MAX_JOINED:
        raise TemplateRuntimeError(f"`join` makes a text of more than {MAX_JOINED:,} characters")
    return between.join(words)


def bounded(make: Callable[[], Made]) -> Made:
    """What `make` makes of a stranger's text.

    Raises:
        TemplateError: where that is not to be read.
    """
    try:
        return make()
    except RecursionError:
        raise TemplateError("is nested too deep") from None
    except (SyntaxError, ValueError, ArithmeticError, MemoryError) as error:  # from Python, to which Jinja translates
        raise TemplateError(f"cannot be read: {error}") from None


def check(sandbox: Sandbox, text: str, names: Collection[str]) -> None:
    """Look through the template `text` without running any of it; `names` are what it may speak of.

    Raises:
        TemplateError: when it is no template or holds what a rule or condition does not need, with what that is.
    """
    if len(text) > MAX_TEXT:
        raise TemplateError(f"has {len(text):,} characters, more than {MAX_TEXT:,}")
    pending: list[tuple[nodes.Node, int]] = [(bounded(lambda: sandbox.parse(text)), 0)]
    while pending:
        node, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise TemplateError(f"is nested more than {MAX_DEPTH} deep")
        wrong = _wrong(node, names)
        if wrong:
            raise TemplateError(wrong)
        pending.extend((each, depth + 1) for each in reversed([*node.iter_child_nodes()]))


def _wrong(node: nodes.Node, names: Collection[str]) -> str | None:
    if type(node) not in _NODES:
        called = _CALLED.get(type(node), f"`{type(node).__name__}` of Jinja")
        return f"{called} cannot stand in a rule or condition: facts, comparisons, arithmetic, `if` and filters can"
    if isinstance(node, nodes.Filter) and node.name not in _FILTERS:
        return f"there is no filter '{node.name}' here, but {', '.join(_FILTERS)}"
    if isinstance(node, nodes.Test) and node.name not in _TESTS:
        return f"there is no test '{node.name}' here, but {', '.join(_TESTS)}"
    if isinstance(node, nodes.Name) and node.name not in names:
        return f"there is no fact '{node.name}' here, but {', '.join(sorted(names))}"
    return None
