"""What makes two instantiations of different checkouts the same one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cutlint.analysis import Analyzed
from cutlint.expression import NotUnderstood
from cutlint.launcher import Parameter, argument

Identity = tuple[str, ...]

_NAMESPACES = re.compile(r"(?:\b\w+\s*::\s*)+(?=\w)|^\s*::\s*")
_ABSENT = frozenset({"False", "0", "void"})  # what a parameter that an older launcher does not have stands for


class Identities:
    """Identities within one analysis: the launcher's name and the arguments by meaning. ``SafeFP4`` and ``__nv_fp4_e2m1``
    are one type, namespaces and white space do not count. A macro's parameter that is false or void, and a template's last
    argument that is its default, are as good as none: launchers gain parameters from release to release."""

    def __init__(self, instantiations: Sequence[Analyzed]) -> None:
        self._known: dict[tuple[str, str], str] = {}
        # names mean the same in all launchers of a checkout: those that cutlint cannot read borrow another's
        self._reader = next((each for each in instantiations if each.sizer is not None), None)

    def of(self, each: Analyzed) -> Identity:
        """The identity of one instantiation."""
        name = _NAMESPACES.sub("", each.instantiation.name)
        reader = each if each.sizer is not None else self._reader
        if each.sizer is None or not each.sizer.launcher.is_macro:
            given = [self._meaning(reader, text) for text in each.instantiation.arguments]
            declared = each.sizer.launcher.declared if each.sizer is not None else ()
            while len(given) <= len(declared) and self._is_default(each, declared[len(given) - 1], given[-1]):
                given.pop()  # as good as not written
            return (name, *given)
        pairs = [(_parameter(key), self._meaning(each, text)) for key, text in each.arguments.items()]
        return (name, *(f"{key}={value}" for key, value in sorted(pairs) if value not in _ABSENT))

    def _is_default(self, each: Analyzed, parameter: Parameter, value: str) -> bool:
        return parameter.default is not None and self._meaning(each, parameter.default) == value

    def _meaning(self, reader: Analyzed | None, text: str) -> str:
        if reader is None or reader.sizer is None:
            return _folded(text)
        launcher = reader.sizer.launcher
        key = (launcher.name, text)
        if key not in self._known:
            try:
                scope = launcher.scope(reader.arguments, lambda of: 0, sizes=False)
                self._known[key] = str(scope.evaluate(argument(text)))
            except (NotUnderstood, RecursionError):
                self._known[key] = _folded(text)
        return self._known[key]


def paired(
    old: Sequence[Analyzed], new: Sequence[Analyzed]
) -> tuple[list[tuple[Analyzed, Analyzed]], list[Analyzed], list[Analyzed]]:
    """Instantiations that both have, those only `old` has and those only `new` has, in the order of the files. One that
    occurs twice is paired twice."""
    ours, theirs = Identities(old), Identities(new)
    left: dict[Identity, list[Analyzed]] = {}
    for each in reversed(old):
        left.setdefault(ours.of(each), []).append(each)
    both: list[tuple[Analyzed, Analyzed]] = []
    added: list[Analyzed] = []
    for each in new:
        waiting = left.get(theirs.of(each))
        if waiting:
            both.append((waiting.pop(), each))
        else:
            added.append(each)
    remaining = {id(each) for group in left.values() for each in group}
    return both, [each for each in old if id(each) in remaining], added


def _parameter(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _folded(text: str) -> str:
    return re.sub(r"\s+", "", _NAMESPACES.sub("", text))
