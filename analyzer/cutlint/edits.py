"""Edits of a launcher's text that change its stage count, as a person would make them. Nothing is written to the file."""

from __future__ import annotations

import re

import msgspec

from cutlint.cpp import blank_comments, join_continuations
from cutlint.instantiations import template_arguments
from cutlint.launcher import Launcher
from cutlint.records import Edit, Location

_TYPE = re.compile(rb"=\s*((?:\w+\s*::\s*)*)(StageCount\w*)\s*(<|;)")


class StageType(msgspec.Struct, frozen=True):
    """The type that a launcher counts stages by, where its alias defines it as nothing else: the template's `name`, the
    byte offsets of the whole type with its namespaces and of its argument (empty where it has none)."""

    name: str
    start: int
    end: int
    argument: tuple[int, int] | None


def stage_type(launcher: Launcher) -> StageType | None:
    """The launcher's stage-count type; None where it is not one of CUTLASS's, written as an alias."""
    span = launcher.span_of(launcher.decisions[0][0]) if launcher.decisions else None
    if span is None:
        return None
    text = blank_comments(join_continuations(launcher.data))
    found = _TYPE.search(text, *span)
    if found is None:
        return None
    name = found.group(2).decode()
    if found.group(3) == b";":
        return StageType(name, found.start(1), found.end(2), None)
    arguments = template_arguments(text, found.end() - 1, span[1])
    if arguments is None or len(arguments) != 1 or text[arguments[0][1] + 1 : span[1]].strip() != b";":
        return None
    (start, end) = arguments[0]
    end = start + len(text[start:end].rstrip())
    return StageType(name, found.start(1), arguments[0][1] + 1, (start, end))


def raised_carveout(launcher: Launcher, added: int, condition: str | None = None) -> Edit | None:
    """The carveout larger by `added` bytes, where `condition` (C++) holds if one is given; None where the launcher counts
    stages in another way."""
    place = stage_type(launcher)
    amount = f"{added}" if condition is None else f"({condition} ? {added} : 0)"
    if place is None:
        return None
    if place.name == "StageCountAutoCarveout" and place.argument is not None:
        return _edit(launcher, place.argument[1], place.argument[1], f" + {amount}")
    if place.name == "StageCountAuto":
        return _edit(launcher, place.end, place.end, f"Carveout<{amount}>")
    return None


def with_stages(launcher: Launcher, stages: int, condition: str | None = None) -> Edit | None:
    """``StageCount<stages>`` in place of what the launcher has, where `condition` (C++) holds if one is given."""
    place = stage_type(launcher)
    if place is None:
        return None
    data = launcher.data
    if place.name == "StageCount" and place.argument is not None:
        start, end = place.argument
        before = data[start:end].decode("utf-8", "replace")
        return _edit(launcher, start, end, f"{stages}" if condition is None else f"({condition} ? {stages} : {before})")
    qualified = data[place.start : place.end].decode("utf-8", "replace")
    namespaces = qualified[: qualified.index(place.name)]
    explicit = f"{namespaces}StageCount<{stages}>"
    if condition is not None:
        explicit = f"std::conditional_t<{condition}, {explicit}, {qualified}>"
    return _edit(launcher, place.start, place.end, explicit)


def applied(data: bytes, edit: Edit) -> bytes:
    """A launcher's text with `edit` made."""
    start, end = edit.span
    return data[:start] + edit.text.encode() + data[end:]


def _edit(launcher: Launcher, start: int, end: int, text: str) -> Edit:
    """The replacement of bytes `start` to `end`; a line continuation behind it stays in its column where it can."""
    data = launcher.data
    rest = re.compile(rb"([^\n\\]*?)( +)(\\\r?\n)").match(data, end)
    longer = len(text) - (end - start)
    if rest is not None and longer > 0 and b"\n" not in data[start:end]:
        spaces = max(1, len(rest.group(2)) - longer)
        end, text = rest.end(2), text + rest.group(1).decode("utf-8", "replace") + " " * spaces
    where = Location(launcher.path, launcher.range_of(start, end))
    made = data[:start] + text.encode() + data[end:]
    first = made.rfind(b"\n", 0, start) + 1
    last = made.find(b"\n", start + len(text.encode().rstrip()))
    line = made[first : last if last >= 0 else len(made)].decode("utf-8", "replace")
    return Edit(where, text, " ".join(re.sub(r"\\\s*(\n|$)", " ", line).split()), (start, end))
