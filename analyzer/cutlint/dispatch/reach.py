"""Routes and instantiations put together: what of the one is in the other."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cutlint.analysis import NOTHING, UNSIZED, Analysis
from cutlint.dispatch.instantiated import Key, Keys, Spelling, keys_for
from cutlint.dispatch.kept import read_hosts
from cutlint.dispatch.records import Call, Routes
from cutlint.expression import NotUnderstood
from cutlint.records import Problem
from cutlint.targets import Target

ENOUGH = 0.5  # the share of a launcher's calls below which the files are taken for a part of what is generated


class Reach(msgspec.Struct, frozen=True):
    """Which calls of `routes` are instantiated, and which instantiations are called.

    `instantiated` holds for each call the indices of its instantiations; `uncalled` the instantiations that nothing
    calls. `judged` are the launchers, with their architecture where they have one, of which a missing instantiation can
    be told from one that was not generated; `problems` what was not understood.
    """

    routes: Routes
    instantiated: dict[int, tuple[int, ...]]
    uncalled: frozenset[int]
    judged: frozenset[str]
    problems: tuple[Problem, ...]


def reach(analysis: Analysis, targets: Sequence[Target]) -> Reach | None:
    """What can be said of the tactics on `targets`; None where the host code is not at hand."""
    archs = frozenset(each.config.arch for each in analysis.instantiations if each.config is not None)
    sms = sorted({_sm(target) for target in targets if archs & set(target.runs)})
    hosted = read_hosts(analysis.base, archs, sms)
    if hosted is None:
        return None
    routes, launchers = hosted.routes, frozenset(hosted.launchers)
    keys, problems = _keys(analysis, launchers, Spelling(hosted.aliases, hosted.defaults))
    numbers = {(call.launcher, call.arguments): index for index, call in enumerate(routes.calls)}
    instantiated: dict[int, list[int]] = {}
    uncalled: set[int] = set()
    for index, key in keys.items():
        number = numbers.get(key)
        if number is not None:
            instantiated.setdefault(number, []).append(index)
        elif not routes.partial:
            uncalled.add(index)
    judged, doubtful = _judged(analysis, routes.calls, instantiated)
    return Reach(
        routes=routes,
        instantiated={number: tuple(found) for number, found in instantiated.items()},
        uncalled=frozenset(uncalled),
        judged=judged,
        problems=(*routes.problems, *problems, *doubtful),
    )


def _sm(target: Target) -> int:
    return int(target.compute_capability.replace(".", ""))


def _keys(analysis: Analysis, launchers: frozenset[str], spelling: Spelling) -> tuple[dict[int, Key], list[Problem]]:
    """For each instantiation of a launcher that the dispatch code calls: how that would name it."""
    makers: dict[str, Keys | None] = {}
    problems: list[Problem] = []
    for launcher in analysis.launchers:
        if launcher.is_macro and launcher.name not in launchers:
            makers[launcher.name] = keys_for(launcher.path, launcher.name, launcher.parameters, spelling)
            if makers[launcher.name] is None:
                message = f"{launcher.name} says not which function it instantiates; what calls it is not known"
                problems.append(Problem(launcher.path, message, launcher.range_at(None)))
    found: dict[int, Key] = {}
    for index, each in enumerate(analysis.instantiations):
        one = each.instantiation
        maker = makers.get(one.name)
        try:
            if maker is not None and each.arguments:
                found[index] = maker(one, each.arguments)
            elif one.name in launchers:
                found[index] = spelling.key(one.name, tuple(spelling.of(text) for text in one.arguments))
        except NotUnderstood as error:
            problems.append(Problem(str(one.file), f"what calls this is not known: {error}", one.range))
    return {index: key for index, key in found.items() if key[0] in launchers}, problems


def built(call: Call) -> str:
    """What is generated as a whole or not at all: the launcher, with the architecture where it takes one."""
    first = call.arguments[0] if call.arguments else ""
    return f"{call.launcher} {first}" if first.startswith("Sm") else call.launcher


def _judged(
    analysis: Analysis, calls: Sequence[Call], instantiated: dict[int, list[int]]
) -> tuple[frozenset[str], list[Problem]]:
    """Of which launchers a missing instantiation means something, and those that are only there in part."""
    generated = analysis.checkout.generated
    names = {str(path) for path in generated}
    understood = (UNSIZED, NOTHING)
    unread = any(
        each.file in names and not any(words in each.message for words in understood) for each in analysis.problems
    )
    if len(generated) < 2 or unread:
        return frozenset(), []
    wanted: dict[str, int] = {}
    there: dict[str, int] = {}
    for number, call in enumerate(calls):
        wanted[built(call)] = wanted.get(built(call), 0) + 1
        there[built(call)] = there.get(built(call), 0) + (number in instantiated)
    judged: set[str] = set()
    problems: list[Problem] = []
    for name, count in wanted.items():
        if there[name] >= ENOUGH * count:
            judged.add(name)
        elif there[name]:
            message = (
                f"only {there[name]:,} of the {count:,} instantiations of {name} that the dispatch code can call are "
                "among these files: they seem to be a part of what is generated; missing ones are not reported"
            )
            problems.append(Problem(str(generated[0].parent), message, about=f"in part: {name}"))
    return frozenset(judged), problems
