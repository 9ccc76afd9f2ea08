"""From the host code to `Routes`: every tactic that is offered, every launcher that can be called, and what leads where.

The listing functions run as they are, once for each runner and compute capability. The dispatch code is followed once for each
runner with its inputs unknown; a tactic is then looked up in what came out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

from cutlint.cpp import Source
from cutlint.dispatch.instantiated import Key, Spelling, spelled
from cutlint.dispatch.machine import Frame, Lost, Machine, Thrown
from cutlint.dispatch.hosts import RUNNER
from cutlint.dispatch.program import Instance, Program
from cutlint.dispatch.records import Call, Routes, Runner
from cutlint.dispatch.tactics import Listing, listing
from cutlint.dispatch.trace import Item, Lookup, launches
from cutlint.dispatch.values import Enumerator, Place, Reference, Symbol
from cutlint.evaluate import Type
from cutlint.expression import NotUnderstood
from cutlint.records import Problem, Range

# Members of a runner that run a GEMM or ask a launcher for its workspace, with the names of their parameters
ENTRIES = {"moeGemm": 2, "moeGemmBiasAct": 2, "calcMaxWorkspaceSize": 1}
LOOKED_UP = "moeGemm"  # the one that runs a tactic
_NOWHERE = Place("", 0)


class Explored(msgspec.Struct, frozen=True):
    """One runner, and for each of its entries the tree of what it leads to."""

    runner: Runner
    type: Type
    trees: dict[str, list[Item]]


def follow(program: Program, launchers: frozenset[str], spelling_aliases: dict[str, str], sms: Sequence[int]) -> Routes:
    """The routes of all runners of `program`: tactics for the compute capabilities `sms`, calls of `launchers`."""
    problems = list(program.problems)
    machine = Machine(program, launchers, explore=True)
    spelling = Spelling(machine, spelling_aliases)
    explored: list[Explored] = []
    partial: list[int] = []
    for instance in program.instances:
        if instance.name != RUNNER:
            continue
        found, lost = _explore(machine, instance)
        if lost:
            partial.append(len(explored))
            problems.extend(_problem(each, f"the dispatch code of {found.type} is not understood here") for each in lost)
        explored.append(found)
    keys, calls = _calls(explored, spelling)
    lister = Machine(program)
    listed: list[Listing] = []
    for index, each in enumerate(explored):
        lookup = Lookup(each.trees[LOOKED_UP])
        for sm in sms:
            try:
                listed.append(listing(lister, each.type, lookup, index, sm, keys, spelling))
            except Lost as error:
                problems.append(_problem(error, f"what {each.type} offers on sm_{sm} is not understood"))
    return Routes(
        runners=tuple(each.runner for each in explored),
        calls=calls,
        tactics=tuple(tactic for each in listed for tactic in each.tactics),
        filtered=tuple(decision for each in listed for decision in each.filtered),
        partial=tuple(partial),
        others=_sum((each.sm, each.others) for each in listed),
        problems=tuple(dict.fromkeys(problems)),
    )


def _sum(counts: Iterable[tuple[int, int]]) -> dict[int, int]:
    result: dict[int, int] = {}
    for key, count in counts:
        result[key] = result.get(key, 0) + count
    return result


def _explore(machine: Machine, instance: Instance) -> tuple[Explored, list[Lost]]:
    """Everything that the members of one runner can lead to, and what of it was not understood."""
    arguments = tuple(machine.compiler.expression(instance.unit, each)(Frame(None)) for each in instance.arguments)
    kind = Type(instance.name, arguments)
    machine.lost = []
    trees: dict[str, list[Item]] = {}
    place = instance.unit.place(instance.node)
    for entry, count in ENTRIES.items():
        machine.items, machine.names_only = [], entry != LOOKED_UP
        inputs = [Symbol("input", (name,)) for name in ("inputs", "hopper_inputs")[:count]]
        try:
            machine.call(Reference(entry, (), place, kind), inputs, place)
        except Thrown:
            pass
        except NotUnderstood as error:
            machine.lost.append(error if isinstance(error, Lost) else Lost(str(error), place))
        trees[entry] = machine.items
    types = [str(each) for each in (*arguments, "", "", "")[:3]]
    return Explored(Runner(str(kind), *types, place=place), kind, trees), machine.lost


def _calls(explored: Sequence[Explored], spelling: Spelling) -> tuple[dict[Key, int], tuple[Call, ...]]:
    """Every launcher with its arguments that any runner can call, once, and where each is found."""
    numbers: dict[Key, int] = {}
    places: list[tuple[Place, Enumerator | None]] = []
    runners: list[list[int]] = []
    for index, each in enumerate(explored):
        for tree in each.trees.values():
            for launch, labels in launches(tree):
                key = key_of(launch.launcher, spelling)
                number = numbers.setdefault(key, len(numbers))
                if number == len(places):
                    tiles = [label for label in labels if isinstance(label, Enumerator) and "Tile" in label.owner]
                    places.append((launch.launcher.place, tiles[-1] if tiles else None))
                    runners.append([])
                if index not in runners[number]:
                    runners[number].append(index)
    calls = tuple(
        Call(*key, place, None if case is None else case.place, None if case is None else case.name, tuple(by))
        for key, (place, case), by in zip(numbers, places, runners, strict=True)
    )
    return numbers, calls


def key_of(launcher: Reference, spelling: Spelling) -> Key:
    return spelling.key(launcher.name, tuple(spelled(each) for each in launcher.arguments))


def _problem(lost: Lost, what: str) -> Problem:
    return Problem(lost.place.path, f"{what}: {lost}", line_range(lost.place))


@lru_cache(maxsize=64)
def _source(path: str) -> Source:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - a path may be any bytes
            return Source(path, file.read())
    except OSError:
        return Source(path, b"")


def line_range(place: Place) -> Range | None:
    """The text of a line, as a range."""
    lines = _source(place.path).data.split(b"\n")
    if not place.path or place.line >= len(lines):
        return None
    text = lines[place.line]
    start = sum(len(line) + 1 for line in lines[: place.line])
    left, right = len(text) - len(text.lstrip()), len(text.rstrip())
    return _source(place.path).range(start + left, start + max(left, right))
