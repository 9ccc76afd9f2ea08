"""What following the dispatch code yields: a tree of launches and refusals, each under its conditions.

A branch or a call is one node of the tree, so that a tactic is looked up by deciding each condition once. The same call
from two places is one tree in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from cutlint.dispatch.values import Condition, Place, Reference, Symbol, Value, resolve, satisfied, substituted


class Launch(msgspec.Struct, frozen=True, eq=False):
    """A call of a launcher."""

    conditions: tuple[Condition, ...]
    launcher: Reference


class Refusal(msgspec.Struct, frozen=True, eq=False):
    """A throw, or a check that fails."""

    conditions: tuple[Condition, ...]
    message: str
    place: Place


class Block(msgspec.Struct, frozen=True, eq=False):
    """What happens under `conditions`."""

    conditions: tuple[Condition, ...]
    items: list[Item]


class Switch(msgspec.Struct, frozen=True, eq=False):
    """What happens for each value of `value`, and for any other."""

    conditions: tuple[Condition, ...]
    value: Symbol
    cases: dict[Value, list[Item]]
    otherwise: list[Item]


Item = Launch | Refusal | Block | Switch
Inputs = Mapping[str, Value]


class Lookup:
    """A tree asked many times, each time with other values for the same inputs: what a value leaves of it is kept."""

    def __init__(self, items: list[Item]) -> None:
        self._items = items
        self._kept: dict[tuple[int, str, Value], list[Item]] = {}
        self._named: dict[int, frozenset[str]] = {}

    def left(self, inputs: Inputs, of: list[Item] | None = None) -> list[Item]:
        """What `inputs`, taken in their order, leave of the tree, or `of` what others have left."""
        items = self._items if of is None else of
        for name, value in inputs.items():
            items = self._pruned(items, name, value)
        return items

    def _pruned(self, items: list[Item], name: str, value: Value) -> list[Item]:
        if name not in self._names(items):
            return items
        key = (id(items), name, value)
        if key not in self._kept:
            result: list[Item] = []
            for item in items:
                self._prune(item, name, value, result)
            self._kept[key] = result
        return self._kept[key]

    def _prune(self, item: Item, name: str, value: Value, result: list[Item]) -> None:
        """Add to `result` what `value` leaves of `item`."""
        conditions = item.conditions
        if any(name in self._of(each.value) for each in conditions):
            left = _undecided(conditions, name, value)
            if left is None:
                return
            conditions = left
        if isinstance(item, Switch):
            chosen = resolve(item.value, {name: value}) if name in self._of(item.value) else item.value
            if isinstance(chosen, Symbol):
                cases = {label: self._pruned(each, name, value) for label, each in item.cases.items()}
                result.append(Switch(conditions, item.value, cases, self._pruned(item.otherwise, name, value)))
                return
            inner = self._pruned(item.cases.get(chosen, item.otherwise), name, value)
        elif isinstance(item, Block):
            inner = self._pruned(item.items, name, value)
        else:
            result.append(msgspec.structs.replace(item, conditions=conditions))
            return
        if not conditions:
            result.extend(inner)
        elif inner:
            result.append(Block(conditions, inner))

    def _names(self, items: list[Item]) -> frozenset[str]:
        """The inputs that anything in `items` depends on."""
        found = self._named.get(id(items))
        if found is None:
            names: set[str] = set()
            for item in items:
                names.update(*(self._of(each.value) for each in item.conditions))
                if isinstance(item, Block):
                    names |= self._names(item.items)
                elif isinstance(item, Switch):
                    names |= self._of(item.value).union(*map(self._names, (*item.cases.values(), item.otherwise)))
            found = self._named[id(items)] = frozenset(names)
        return found

    def _of(self, value: Value) -> frozenset[str]:
        """The inputs that a value depends on."""
        if not isinstance(value, Symbol):
            return frozenset()
        found = self._named.get(id(value))
        if found is None:
            if value.operator == "input":
                found = frozenset((value.operands[0],))
            else:
                found = frozenset().union(*map(self._of, value.operands))
            self._named[id(value)] = found
        return found


def _undecided(conditions: tuple[Condition, ...], name: str, value: Value) -> tuple[Condition, ...] | None:
    """Those of `conditions` that one input does not decide; None when one of them does not hold."""
    left = []
    for each in conditions:
        known = satisfied((each,), {name: value})
        if known is False:
            return None
        if known is None:
            left.append(msgspec.structs.replace(each, value=substituted(each.value, name, value)))
    return tuple(left)


def outcomes(items: list[Item], certain: bool = True) -> Iterator[tuple[Launch | Refusal, bool]]:
    """The launches and refusals that are left in a tree, and whether they are certain: under no further condition."""
    for item in items:
        sure = certain and not item.conditions
        if isinstance(item, Block):
            yield from outcomes(item.items, sure)
        elif isinstance(item, Switch):
            for each in (*item.cases.values(), item.otherwise):
                yield from outcomes(each, False)
        else:
            yield item, sure


def launches(items: list[Item]) -> Iterator[tuple[Launch, tuple[Value, ...]]]:
    """Every launch in the tree, once, with the labels of the cases that lead to it."""
    seen: set[int] = set()
    stack: list[tuple[list[Item], tuple[Value, ...]]] = [(items, ())]
    while stack:
        current, labels = stack.pop()
        for item in current:
            if id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, Launch):
                yield item, labels
            elif isinstance(item, Block):
                stack.append((item.items, labels))
            elif isinstance(item, Switch):
                stack.extend((each, (*labels, label)) for label, each in item.cases.items())
                stack.append((item.otherwise, labels))
