"""What is shown for an invocation under the cursor: the schedule that the launcher resolves to, and the byte map."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lsprotocol import types

from cutlint.analysis import Analyzed
from cutlint.bytemap import layout
from cutlint.config import KernelConfig
from cutlint.editor.positions import Columns
from cutlint.findings import subject
from cutlint.printable import markdown, printable
from cutlint.records import Location, Position
from cutlint.targets import Target

Link = Callable[[Location], str]  # the URI of a place, its line included


def hover(
    analyzed: Sequence[Analyzed],
    where: types.Position,
    targets: Sequence[Target],
    columns: Columns,
    link: Link,
    in_markdown: bool,
) -> types.Hover | None:
    """The invocation at `where`, None where there is none; plain text for an editor that shows no Markdown."""
    at = columns.from_editor(where)
    for each in analyzed:
        span = each.instantiation.range
        if _key(span.start) <= _key(at) <= _key(span.end):
            kind = types.MarkupKind.Markdown if in_markdown else types.MarkupKind.PlainText
            text = _markdown(each, targets, link) if in_markdown else _plain(each, targets)
            return types.Hover(types.MarkupContent(kind, text), columns.to_editor(span))
    return None


def _key(where: Position) -> tuple[int, int]:
    return where.line, where.character


def _schedule(config: KernelConfig) -> str:
    if config.resolved_schedule == config.schedule:
        return config.schedule
    return f"{config.schedule}, for which the builder takes {config.resolved_schedule or 'one that is not known'}"


def _facts(config: KernelConfig) -> tuple[tuple[str, str], ...]:
    return (
        ("Kernel schedule", _schedule(config)),
        ("Stage count", str(config.stage_count)),
        ("Epilogue schedule", config.epilogue.schedule),
    )


def _plain(each: Analyzed, targets: Sequence[Target]) -> str:
    facts = [] if each.config is None else [f"{name}: {printable(what)}" for name, what in _facts(each.config)]
    return "\n".join((printable(subject(each)), *facts, "", layout(each, targets)))


def _markdown(each: Analyzed, targets: Sequence[Target], link: Link) -> str:
    lines = [f"**{markdown(subject(each))}**", ""]
    if each.config is not None:
        lines += [f"- {name}: {markdown(what)}" for name, what in _facts(each.config)]
    launcher = each.sizer.launcher if each.sizer is not None else None
    for name, what in launcher.decisions if launcher is not None else ():
        place = launcher.location(name, what) if launcher is not None else None
        if place is not None:
            lines.append(f"- [{markdown(name)}]({link(place)}): {markdown(what)}")
    return "\n".join((*lines, "", "```text", layout(each, targets), "```"))
