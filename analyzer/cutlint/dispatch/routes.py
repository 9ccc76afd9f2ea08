"""From the host code to `Routes`: every tactic that is offered, every launcher that can be called, and what leads
where.

The listing functions run as they are, once for each runner and compute capability. The dispatch code is followed once
for each runner with its inputs unknown; a tactic is then looked up in what came out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from cutlint.cpp import Source
from cutlint.dispatch.hosts import RUNNER
from cutlint.dispatch.instantiated import Key, Spelling
from cutlint.dispatch.machine import Frame, Lost, Machine, Thrown
from cutlint.dispatch.program import Instance, Program
from cutlint.dispatch.records import Call, Hosted, Routes, Runner
from cutlint.dispatch.tactics import Listing, listing, scaling_of
from cutlint.dispatch.trace import Item, Lookup, launches
from cutlint.dispatch.values import Enumerator, Place, Reference, Symbol, spelled
from cutlint.evaluate import Type
from cutlint.expression import NotUnderstood
from cutlint.records import Problem, Range

# Members of a runner that run a GEMM or ask a launcher for its workspace, with the names of their parameters
ENTRIES = {"moeGemm": 2, "moeGemmBiasAct": 2, "calcMaxWorkspaceSize": 1}
TOO_DEEP = "it is nested deeper than cutlint follows"
LOOKED_UP = "moeGemm"  # the one that runs a tactic


class Explored(msgspec.Struct, frozen=True):
    """One runner, and for each of its entries the tree of what it leads to."""

    runner: Runner
    type: Type
    trees: dict[str, list[Item]]


def follow(program: Program, aliases: dict[str, str], sms: Sequence[int]) -> Hosted:
    """The routes of all runners of `program`: tactics for the compute capabilities `sms`, calls of launchers."""
    problems = list(program.problems)
    launchers = launcher_names(program)
    machine = Machine(program, launchers, explore=True)
    defaults = {name: _defaults(machine, name, problems) for name in sorted(launchers)}
    spelling = Spelling(aliases, defaults)
    explored: list[Explored] = []
    partial: list[int] = []
    for instance in program.instances:
        if instance.name != RUNNER:
            continue
        found, lost = _explore(machine, instance)
        if lost:
            partial.append(len(explored))
            problems.extend(
                _problem(each, f"the dispatch code of {found.runner.name} is not understood") for each in lost
            )
        explored.append(found)
    keys, calls = _calls(explored, spelling)
    lister = Machine(program)
    listed: list[Listing] = []
    for index, each in enumerate(explored):
        lookup = Lookup(each.trees[LOOKED_UP])
        for sm in sms:
            try:
                listed.append(listing(lister, each.type, lookup, index, sm, keys, spelling))
            except (Lost, RecursionError) as error:
                at = error if isinstance(error, Lost) else _too_deep(each)
                problems.append(_problem(at, f"what {each.runner.name} offers on sm_{sm} is not understood"))
    routes = Routes(
        runners=tuple(each.runner for each in explored),
        calls=calls,
        tactics=tuple(tactic for each in listed for tactic in each.tactics),
        filtered=tuple(decision for each in listed for decision in each.filtered),
        partial=tuple(partial),
        others=_sum((each.sm, each.others) for each in listed),
        problems=tuple(dict.fromkeys(problems)),
    )
    return Hosted(routes, tuple(sorted(launchers)), defaults, aliases)


def launcher_names(program: Program) -> frozenset[str]:
    """The functions that the launchers' headers declare and that nothing at hand defines."""
    return frozenset(
        name
        for name, listed in program.functions.items()
        if all(each.body is None and each.template for each in listed)
        and any(Path(each.unit.path).parent.name == "launchers" for each in listed)
    )


def _defaults(machine: Machine, launcher: str, problems: list[Problem]) -> tuple[str | None, ...]:
    """The default arguments of a launcher's template parameters."""
    function = machine.program.functions[launcher][0]
    found: list[str | None] = []
    for each in function.template:
        try:
            run = None if each.default is None else machine.compiler.expression(function.unit, each.default)
            found.append(None if run is None else spelled(run(Frame(None))))
        except NotUnderstood as error:
            lost = Lost(str(error), function.unit.place(function.node))
            problems.append(_problem(lost, f"a default argument of {launcher} is not understood"))
            found.append(None)
    return tuple(found)


def _sum(counts: Iterable[tuple[int, int]]) -> dict[int, int]:
    result: dict[int, int] = {}
    for key, count in counts:
        result[key] = result.get(key, 0) + count
    return result


def _explore(machine: Machine, instance: Instance) -> tuple[Explored, list[Lost]]:
    """Everything that the members of one runner can lead to, and what of it was not understood."""
    place = instance.unit.place(instance.node)
    name = f"{instance.name}<{', '.join(' '.join(instance.unit.of(each).split()) for each in instance.arguments)}>"
    machine.lost = []
    trees: dict[str, list[Item]] = {entry: [] for entry in ENTRIES}
    try:
        arguments = tuple(machine.compiler.expression(instance.unit, each)(Frame(None)) for each in instance.arguments)
        activation, weight, output = [spelled(each) for each in (*arguments, Type(""), Type(""), Type(""))[:3]]
        kind = Type(instance.name, arguments)
        runner = Runner(name, activation, weight, output, scaling_of(machine, kind), place)
    except NotUnderstood as error:
        return Explored(Runner(name, "", "", "", "NONE", place), Type(instance.name), trees), [Lost(str(error), place)]
    if not any(each.owner == instance.name for each in machine.program.functions.get(LOOKED_UP, ())):
        machine.lost.append(Lost(f"it has no member {LOOKED_UP}", place))
    for entry, count in ENTRIES.items():
        machine.items, machine.names_only = trees[entry], entry != LOOKED_UP
        inputs = [Symbol("input", (each,)) for each in ("inputs", "hopper_inputs")[:count]]
        try:
            machine.call(Reference(entry, (), place, kind), inputs, place)
        except Thrown:
            pass
        except NotUnderstood as error:
            machine.lost.append(error if isinstance(error, Lost) else Lost(str(error), place))
        except RecursionError:
            machine.lost.append(Lost(TOO_DEEP, place))
    return Explored(runner, kind, trees), machine.lost


def _too_deep(explored: Explored) -> Lost:
    return Lost(TOO_DEEP, explored.runner.place)


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


def line_range(place: Place, word: str = "") -> Range | None:
    """The text of a line, as a range; that of `word` alone where it stands there once."""
    line = _source(place.path).line(place.line) if place.path else None
    if line is None:
        return None
    start, text = line
    left, right = len(text) - len(text.lstrip()), len(text.rstrip())
    found = [match.span() for match in re.finditer(rb"\b" + re.escape(word.encode()) + rb"\b", text)] if word else []
    if len(found) == 1:
        left, right = found[0]
    return _source(place.path).range(start + left, start + max(left, right))
