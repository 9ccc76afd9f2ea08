"""What changed between two sources, for people: as text, and as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cutlint.diff import Change, DiffReport, Side
from cutlint.formats.markdown import LIMIT
from cutlint.printable import markdown, printable
from cutlint.verdicts import FAILING
from cutlint.wording import count, place

SHOWN = 4  # instantiations listed of one kind of change before the rest is counted
STATEMENTS = 6  # statements listed of one launcher
_WIDTH = 200  # characters of a statement


def render(report: DiffReport) -> str:
    """The report as plain text."""
    lines = [f"old: {_source(report, 'old')}", f"new: {_source(report, 'new')}", "", _counts(report)]
    for title, changes in _sections(report):
        lines += ["", title]
        for group in _groups(changes):
            lines += [f"  {each}" for each in _group(group)]
    for each in report.launchers:
        lines += ["", f"{printable(each.name)}, up to the kernel type ({printable(each.file)})"]
        for sign, statements in (("-", each.removed), ("+", each.added)):
            lines += [f"  {sign} {_cut(text)}" for text in statements[:STATEMENTS]]
            if len(statements) > STATEMENTS:
                lines.append(f"  {sign} and {len(statements) - STATEMENTS:,} more (--format json lists them all)")
    if report.problems:
        lines += ["", *(f"not understood: {printable(each)}" for each in report.problems)]
    return "\n".join((*lines, "", _closing(report))) + "\n"


def markdown_comment(report: DiffReport) -> str:
    """The report as Markdown: one row for each kind of change, within what a comment may hold."""
    lines = [f"### cutlint diff: {_verdict(report)}", ""]
    lines += [f"Old: {markdown(_source(report, 'old'))}  ", f"New: {markdown(_source(report, 'new'))}  ", ""]
    lines += [f"{markdown(_counts(report))}", ""]
    closing = markdown(_closing(report))
    rows = [
        f"| **{title}** | {'<br>'.join(markdown(each.strip()[:1_000]) for each in _group(group))} |"
        for title, changes in _sections(report)
        for group in _groups(changes)
    ]
    room = LIMIT - len("\n".join(lines)) - len(closing) - 500
    kept = 0
    while kept < len(rows) and (room := room - len(rows[kept]) - 1) > 0:
        kept += 1
    if rows:
        lines += ["| | What |", "|---|---|", *rows[:kept], ""]
    if kept < len(rows):
        lines += [f"Left out, for a comment holds {LIMIT:,} characters: {count(len(rows) - kept, 'row')}.", ""]
    return "\n".join((*lines, closing)) + "\n"


def _source(report: DiffReport, which: str) -> str:
    source = report.old if which == "old" else report.new
    cutlass = f", CUTLASS {source.cutlass}" if source.cutlass else ""
    return printable(f"{source.label}{cutlass}: {count(source.instantiations, 'instantiation')}")


def _counts(report: DiffReport) -> str:
    summary = report.summary
    same = f"{summary.same:,} the same"
    if summary.not_sized:
        same += f" ({summary.not_sized:,} of them not sized: only that they are there was compared)"
    return f"{summary.added:,} added, {summary.removed:,} removed, {summary.changed:,} changed, {same}"


def _verdict(report: DiffReport) -> str:
    newly = report.summary.newly_failing
    return f"{count(newly, 'instantiation')} newly failing" if newly else "nothing newly fails"


def _closing(report: DiffReport) -> str:
    targets = ", ".join(target.compute_capability for target in report.targets)
    said = _verdict(report).capitalize()
    if report.summary.no_longer_failing:
        said += f", {report.summary.no_longer_failing:,} no longer"
    return f"{said}. Judged for {targets}." if targets else f"{said}: no target runs any of the kernels."


def _sections(report: DiffReport) -> Iterator[tuple[str, list[Change]]]:
    """Every change once, the ones that fail first."""
    failing = [each for each in report.changes if each.newly_fails]
    if failing:
        yield "newly failing", failing
    mended = [each for each in report.changes if each.no_longer_fails and not each.newly_fails]
    if mended:
        yield "no longer failing", mended
    others = [each for each in report.changes if not each.newly_fails and not each.no_longer_fails]
    for status in ("changed", "added", "removed"):
        changes = [each for each in others if each.status == status]
        if changes:
            yield status, changes


def _groups(changes: Sequence[Change]) -> list[list[Change]]:
    """Those with the same outcome for the same reason together."""
    found: dict[object, list[Change]] = {}
    for each in changes:
        found.setdefault(_key(each), []).append(each)
    return list(found.values())


def _key(each: Change) -> object:
    if each.status == "changed" or each.newly_fails:
        return (each.status, _outcome(each.old), _outcome(each.new), each.causes)
    words = each.subject.split(" ")
    return (each.status, each.name, words[:2] and " ".join(words[:2]))


def _group(group: Sequence[Change]) -> Iterator[str]:
    first = group[0]
    if first.status == "changed":
        yield f"{_outcome(first.old)} → {_outcome(first.new)}: {count(len(group), 'instantiation')}"
    elif first.newly_fails:
        yield f"added: {_outcome(first.new)}: {count(len(group), 'instantiation')}"
    else:
        yield _many(group)
        return
    for each in group[:SHOWN]:
        side = each.new or each.old
        yield f"  {printable(each.subject)}  {place(side.place) if side else ''}".rstrip()
    if len(group) > SHOWN:
        yield f"  and {len(group) - SHOWN:,} more (--format json lists them all)"
    if first.status == "changed":
        yield f"  because: {printable('; '.join(first.causes)) or 'not known'}"


def _many(group: Sequence[Change]) -> str:
    """Instantiations of one architecture and types that come or go, in one line."""
    words = group[0].subject.split(" ")
    if len(words) < 3:  # one that was not evaluated: its subject is its name
        return f"{printable(group[0].subject)}: {len(group):,}"
    tiles = dict.fromkeys(each.subject.split(" ")[2] for each in group)
    fusions = dict.fromkeys(each.subject.split(" ")[-2] for each in group)
    fails = sum(bool(_fails(each.new or each.old)) for each in group)
    listed = ", ".join(tiles) if len(tiles) <= 2 * SHOWN else f"{len(tiles)} tiles"
    failing = f"; {fails:,} fail" if fails else ""
    return printable(f"{words[0]} {words[1]}: {len(group):,}: {listed}; {'/'.join(fusions)}{failing}")


def _fails(side: Side | None) -> list[str]:
    return [] if side is None else [name for name, verdict in side.verdicts.items() if verdict in FAILING]


def _outcome(side: Side | None) -> str:
    if side is None:
        return "not there"
    verdicts: dict[str, list[str]] = {}
    for name, verdict in side.verdicts.items():
        verdicts.setdefault(verdict, []).append(name)
    fates = "; ".join(f"{verdict} on {' and '.join(names)}" for verdict, names in verdicts.items())
    if side.total is None:
        return f"{fates or 'not sized'}{f' ({printable(side.reason)})' if side.reason else ''}"
    return f"{side.total:,} B, {side.stages} stages{f' ({fates})' if fates else ''}"


def _cut(text: str) -> str:
    return printable(text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…")
