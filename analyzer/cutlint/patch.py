"""``cutlint check --diff``: the smallest launcher change after which everything fits, as a patch for ``git apply``.

A change of a launcher's stage count touches everything it instantiates, so the change is made under a condition on the
launcher's own constants where kernels that fit would lose stages by it. A patch is read and sized again, every
instantiation of the launcher, before it is named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import unified_diff
from pathlib import Path

import msgspec

from cutlint import edits, fit
from cutlint.analysis import Analysis, Analyzed, prepare
from cutlint.expression import NotUnderstood
from cutlint.findings import subject
from cutlint.footprint.model import ENGINE
from cutlint.footprint.records import Footprint
from cutlint.launcher import Launcher
from cutlint.records import Edit
from cutlint.sizing import Sized, Sizer
from cutlint.targets import Target, built_for
from cutlint.wording import count

Change = Callable[[str | None], Edit | None]
_TERMS = 4  # of a condition; what needs more is not told apart


class Patch(msgspec.Struct, frozen=True):
    """What can be done in one launcher: `text` is the patch (empty where no edit helps), `notes` say what it does and what
    it leaves."""

    launcher: str
    text: str
    notes: tuple[str, ...]


class _Case(msgspec.Struct, frozen=True):
    """An instantiation over the limit, with the bytes it may have; `added` to the carveout gives it `stages` stages, which
    fit. None where no stage count fits."""

    each: Analyzed
    limit: int
    stages: int | None
    added: int | None


def patches(analysis: Analysis, targets: Sequence[Target], concerned: Sequence[Analyzed]) -> list[Patch]:
    """A patch, or why there is none, for each launcher that instantiates any of the `concerned`, those that need more than
    one of `targets` allows."""
    found: list[Patch] = []
    for launcher in analysis.launchers:
        cases = [
            case for each in concerned if _launcher(each) is launcher and (case := _case(each, targets)) is not None
        ]
        if cases:
            mine = [each for each in analysis.instantiations if _launcher(each) is launcher]
            found.append(_patch(analysis, launcher, mine, cases))
    return found


def _launcher(each: Analyzed) -> Launcher | None:
    return each.sizer.launcher if each.sizer is not None else None


def _case(each: Analyzed, targets: Sequence[Target]) -> _Case | None:
    limit = _limit(each, targets)
    if limit is None or each.footprint is None or each.footprint.total is None or each.footprint.total <= limit:
        return None
    sizer = each.sizer
    sized = sizer.size(each.arguments, regions=False) if sizer is not None else Sized(None, None)
    if sizer is None or sized.config is None or sized.footprint is None:
        return _Case(each, limit, None, None)
    fewer = fit.most_stages(sizer, sized.config, limit, below=sized.footprint.stages)
    if fewer is None or fewer.stages is None:
        return _Case(each, limit, None, None)
    added = fit.more_carveout(sizer, sized.config, sized.footprint, fewer.stages)
    return _Case(each, limit, fewer.stages, added)


def _limit(each: Analyzed, targets: Sequence[Target]) -> int | None:
    """The fewest bytes that any target allows which runs the kernel."""
    return min(
        (target.limit for target in built_for(each.config.arch, targets)) if each.config is not None else (),
        default=None,
    )


def _patch(analysis: Analysis, launcher: Launcher, mine: Sequence[Analyzed], cases: Sequence[_Case]) -> Patch:
    hopeless = [case for case in cases if case.stages is None]
    notes = [f"no launcher edit helps: {subject(case.each)}: not even 2 stages fit" for case in hopeless]
    curable = [case for case in cases if case.stages is not None]
    if not curable:
        return Patch(launcher.name, "", tuple(dict.fromkeys(notes)))
    if _name(analysis, launcher) is None:
        notes.append(f"no patch: {launcher.path} has a name that a patch cannot hold, or lies outside the checkout")
        return Patch(launcher.name, "", tuple(dict.fromkeys(notes)))
    best: tuple[int, str, list[str]] | None = None
    for change in _changes(launcher, curable):
        outcome = _tried(analysis, launcher, mine, curable, change(None))
        if outcome is None:
            continue
        edit, touched = outcome
        if touched:  # others change as well: tell them apart
            condition = _condition(launcher, [case.each for case in curable], mine)
            narrower = None if condition is None else _tried(analysis, launcher, mine, curable, change(condition))
            if narrower is not None and len(narrower[1]) < len(touched):
                edit, touched = narrower
        if best is None or len(touched) < best[0]:
            best = len(touched), _unified(analysis, launcher, edit), _said(curable, touched)
        if not touched:
            break
    if best is None:
        why = "its stage count is not an alias of a type that cutlint knows how to edit"
        if edits.stage_type(launcher) is not None:
            why = "no edit of its stage count that cutlint knows makes them fit without breaking others"
        notes.append(f"no patch for {launcher.name}: {why}")
        return Patch(launcher.name, "", tuple(dict.fromkeys(notes)))
    return Patch(launcher.name, best[1], (*best[2], *dict.fromkeys(notes)))


def _changes(launcher: Launcher, cases: Sequence[_Case]) -> Iterator[Change]:
    """The edits to try, the least change first."""
    added = [case.added for case in cases if case.added is not None]
    if len(added) == len(cases):
        yield lambda condition: edits.raised_carveout(launcher, max(added), condition)
    stages = min(case.stages for case in cases if case.stages is not None)
    yield lambda condition: edits.with_stages(launcher, stages, condition)


def _tried(
    analysis: Analysis, launcher: Launcher, mine: Sequence[Analyzed], cases: Sequence[_Case], edit: Edit | None
) -> tuple[Edit, list[Analyzed]] | None:
    """The edit and what else it changes, by the edited launcher read again; None where it does not make all `cases` fit."""
    if edit is None:
        return None
    prepared = prepare(analysis.base, {Path(launcher.path): edits.applied(launcher.data, edit)})
    sizer = prepared.sizers.get(launcher.name)
    if sizer is None:
        return None
    if not all(fit.runs(sizer.size(case.each.arguments, regions=False).footprint, case.limit) for case in cases):
        return None
    mended = {id(case.each) for case in cases}
    return edit, [each for each in mine if id(each) not in mended and _differs(each, sizer)]


def _differs(each: Analyzed, sizer: Sizer) -> bool:
    before = each.footprint
    if each.sizer is not None and (before is None or before.engine != ENGINE):
        before = each.sizer.size(each.arguments, regions=False).footprint
    return _figures(before) != _figures(sizer.size(each.arguments, regions=False).footprint)


def _figures(footprint: Footprint | None) -> tuple[int | None, int | None, bool]:
    if footprint is None:
        return None, None, False
    return footprint.total, footprint.stages, footprint.refused is not None


def _condition(launcher: Launcher, cases: Sequence[Analyzed], mine: Sequence[Analyzed]) -> str | None:
    """A C++ condition, over constants that the launcher has where it decides the stage count, that holds for all `cases`
    and for as few of the launcher's instantiations `mine` beside them as can be; None where nothing tells them apart."""
    chosen = {id(each) for each in cases}
    of_cases = [_constants(launcher, each) for each in cases]
    of_others = [_constants(launcher, each) for each in mine if id(each) not in chosen]
    terms: list[str] = []
    left = of_others
    same = {name: value for name, value in of_cases[0].items() if all(each.get(name) == value for each in of_cases)}
    while left and len(terms) < _TERMS:
        counts = {name: sum(each.get(name) == value for each in left) for name, value in same.items()}
        name = min(counts, key=lambda each: counts[each], default=None)  # the first of those that leave the fewest
        if name is None or counts[name] == len(left):
            break
        terms.append(_term(name, same[name]))
        left = [each for each in left if each.get(name) == same[name]]
    return " && ".join(terms) or None


def _term(name: str, value: int) -> str:
    if isinstance(value, bool):
        return name if value else f"!{name}"
    return f"{name} == {value}"


def _constants(launcher: Launcher, each: Analyzed) -> dict[str, int]:
    """The launcher's own truth values before its stage count, then its parameters that are truth values or numbers."""
    found: dict[str, int] = {}
    place = edits.stage_type(launcher)
    if each.sizer is None or place is None:
        return found
    scope = each.sizer.launcher.scope(each.arguments, lambda of: 0, sizes=False)
    for name, definition in launcher.definitions.items():
        if not 0 < definition.span[1] <= place.start or definition.parameters:
            continue
        try:
            value = scope.lookup(name)
        except (NotUnderstood, RecursionError):
            continue
        if isinstance(value, bool) and not name.startswith("static_assert@"):
            found[name] = value
    for name, text in each.arguments.items():
        if text in ("true", "false"):
            found[name] = text == "true"
        elif text.isdecimal():
            found[name] = int(text)
    return found


def _said(cases: Sequence[_Case], touched: Sequence[Analyzed]) -> list[str]:
    stages = sorted({case.stages for case in cases if case.stages is not None})
    what = count(len(cases), "instantiation")
    lines = [f"{what} over the limit would fit, with {' or '.join(map(str, stages))} stages"]
    if touched:
        lines.append(
            f"{count(len(touched), 'other instantiation')} would change as well, which cutlint cannot tell apart"
        )
    else:
        lines.append("no other instantiation of the launcher would change")
    return lines


def _name(analysis: Analysis, launcher: Launcher) -> str | None:
    """The launcher's path as a patch has it: relative to the checkout."""
    path, root = Path(launcher.path), analysis.base.root
    if not path.is_relative_to(root):
        return None
    name = path.relative_to(root).as_posix()
    return name if name.isprintable() and not set('"\\') & set(name) else None


def _unified(analysis: Analysis, launcher: Launcher, edit: Edit) -> str:
    return unified(_name(analysis, launcher) or "", launcher.data, edits.applied(launcher.data, edit))


def unified(name: str, before: bytes, after: bytes) -> str:
    """A patch that ``git apply`` takes for the file `name`; bytes that are not UTF-8 are surrogates."""
    tab = "\t" if " " in name else ""  # or a name would end at its first space
    head = [f"diff --git a/{name} b/{name}\n", f"--- a/{name}{tab}\n", f"+++ b/{name}{tab}\n"]
    old, new = (_lines(each.decode("utf-8", "surrogateescape")) for each in (before, after))
    lines = unified_diff(old, new)
    body = [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines]
    return "".join((*head, *body[2:]))


def _lines(text: str) -> list[str]:
    """Lines with their ends, as git counts them."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)
