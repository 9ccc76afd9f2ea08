"""What stands above an invocation: its bytes, its stages and the headroom on every target."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types

from cutlint.analysis import Analyzed
from cutlint.editor.positions import Columns
from cutlint.findings import limits
from cutlint.printable import printable
from cutlint.targets import Target

_REASON = 120  # characters of a reason


def lenses(analyzed: Sequence[Analyzed], targets: Sequence[Target], columns: Columns) -> list[types.CodeLens]:
    return [
        types.CodeLens(columns.to_editor(each.instantiation.range), types.Command(title(each, targets), command=""))
        for each in analyzed
    ]


def title(each: Analyzed, targets: Sequence[Target]) -> str:
    """``102,400 B, 3 stages: 1,024 B over the limit on 12.0 and 12.1``, or why there is no figure."""
    footprint = each.footprint
    if footprint is None:
        return f"not sized: {_short(each.unknown or '')}"
    if footprint.refused is not None or footprint.total is None:
        return f"does not compile: {_short(footprint.refused or '')}"
    stages = "" if footprint.stages is None else f", {footprint.stages} stages"
    verdicts = []
    for limit in limits(each.config.arch, targets) if each.config is not None else ():
        left = limit.limit - footprint.total
        what = f"{left:,} B of headroom" if left >= 0 else f"{-left:,} B over the limit"
        verdicts.append(f"{what} on {limit.names}")
    return f"{footprint.total:,} B{stages}: {'; '.join(verdicts) or 'runs on none of the targets'}"


def _short(reason: str) -> str:
    text = printable(reason)
    return text if len(text) <= _REASON else text[: _REASON - 1] + "…"
