"""What fits a GPU: other stage counts, SwapAB and tiles of a launcher, each evaluated before it is named.

One search serves both: `suggest` looks for the least change to one instantiation, `cutlint.fitting` for the best kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from cutlint.config import KernelConfig, Shape, StageCount
from cutlint.edits import raised_carveout, with_stages
from cutlint.footprint.records import Footprint
from cutlint.records import Fix
from cutlint.sizing import Sized, Sizer

_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")


class Fits(msgspec.Struct, frozen=True):
    """What fits: `stages` of the same tile (None: not even two), and the changes that lead there."""

    stages: int | None
    fixes: tuple[Fix, ...]


class Knobs(msgspec.Struct, frozen=True):
    """Which arguments turn the tile and SwapAB: for M, N and K the parameter and which number of its text, and the
    parameter of SwapAB; None where there is none."""

    tile: tuple[tuple[str, int] | None, tuple[str, int] | None, tuple[str, int] | None]
    swap: str | None


def knobs(sizer: Sizer, arguments: dict[str, str], config: KernelConfig) -> Knobs:
    """Found by trying: what an argument does is seen from the configuration that comes out."""
    tile: list[tuple[str, int] | None] = [None, None, None]
    swap: str | None = None
    for name, text in arguments.items():
        if text in ("true", "false"):
            turned = sizer.size({**arguments, name: _turned(text)}, regions=False).config
            if turned is not None and turned.swap_ab != config.swap_ab:
                swap = swap or name
        for index, match in enumerate(_NUMBER.finditer(text)):
            if int(match.group()) % 2 or not int(match.group()):
                continue
            for up, down in ((1, 2), (2, 1)):
                changed = _with_number(arguments, (name, index), int(match.group()) * up // down)
                axis = _axis(config.cta_tile, sizer.size(changed, regions=False).config, (up, down))
                if axis is not None:
                    tile[axis] = tile[axis] or (name, index)
                    break
    return Knobs((tile[0], tile[1], tile[2]), swap)


def changed(
    arguments: dict[str, str], turn: Knobs, config: KernelConfig, tile: Shape, swap: bool
) -> dict[str, str] | None:
    """The arguments of the kernel with that CTA tile and SwapAB; None where the launcher has no such parameter."""
    for axis, wanted in enumerate(tile):
        now, knob = config.cta_tile[axis], turn.tile[axis]
        if wanted == now:
            continue
        if knob is None:
            return None
        value = int(_NUMBER.findall(arguments[knob[0]])[knob[1]]) * wanted
        if value % now:
            return None
        arguments = _with_number(arguments, knob, value // now)
    if swap != config.swap_ab:
        if turn.swap is None:
            return None
        arguments = {**arguments, turn.swap: _turned(arguments[turn.swap])}
    return arguments


def runs(footprint: Footprint | None, limit: int) -> bool:
    """Whether a kernel compiles and needs at most `limit` bytes."""
    return (
        footprint is not None
        and footprint.total is not None
        and footprint.total <= limit
        and footprint.stages is not None
        and footprint.fails_in_nvcc is None
    )


def most_stages(sizer: Sizer, config: KernelConfig, limit: int, below: int | None = None) -> Footprint | None:
    """The footprint of the same kernel with the most stages that fit, fewer than `below` where that is given."""
    best: Footprint | None = None
    for stages in range(2, below if below is not None else 64):
        result = sizer.footprint(msgspec.structs.replace(config, stage_count=StageCount(stages=stages)))
        if result.total is not None and result.total > limit:
            break
        if runs(result, limit):
            best = result
    return best


def suggest(sizer: Sizer, arguments: dict[str, str], sized: Sized, limit: int) -> Fits:
    """Changes after which the instantiation needs at most `limit` bytes, in order of least change: a larger carveout (the
    smallest that drops a stage), an explicit stage count, SwapAB, the next smaller tile."""
    config, footprint = sized.config, sized.footprint
    if config is None or footprint is None:
        return Fits(None, ())
    fixes: list[Fix] = []
    fewer = most_stages(sizer, config, limit, below=footprint.stages)
    if fewer is not None and fewer.total is not None and fewer.stages is not None:
        added = more_carveout(sizer, config, footprint, fewer.stages)
        if added is not None:
            edit = raised_carveout(sizer.launcher, added)
            title = f"a carveout larger by {added:,} B: {_outcome(fewer)}"
            fixes.append(Fix("carveout", title, fewer.total, fewer.stages, edit))
        edit = with_stages(sizer.launcher, fewer.stages)
        title = f"StageCount<{fewer.stages}>: {_outcome(fewer)}"
        fixes.append(Fix("stage-count", title, fewer.total, fewer.stages, edit))
    turn = knobs(sizer, arguments, config)
    for kind, tile, swap in _near(config):
        others = changed(arguments, turn, config, tile, swap)
        if others is None or any(fix.kind == kind for fix in fixes):
            continue
        result = sizer.size(others, regions=False).footprint
        if result is not None and runs(result, limit) and result.total is not None and result.stages is not None:
            what = f"SwapAB={str(swap).lower()}" if kind == "swap-ab" else "×".join(map(str, tile))
            fixes.append(Fix(kind, f"{what}: {_outcome(result)}", result.total, result.stages))
    return Fits(fewer.stages if fewer is not None else None, tuple(fixes))


def more_carveout(sizer: Sizer, config: KernelConfig, footprint: Footprint, stages: int) -> int | None:
    """The smallest addition to the carveout, in bytes, after which CUTLASS chooses `stages` stages; None where it does not
    count them by a carveout."""
    budget, carveout = footprint.budget, config.stage_count.carveout
    if budget is None or carveout is None:
        return None
    added = budget.left + 1 + (budget.stages - stages - 1) * budget.stage
    result = sizer.footprint(msgspec.structs.replace(config, stage_count=StageCount(carveout=carveout + added)))
    return added if result.stages == stages and result.total is not None else None


def _near(config: KernelConfig) -> Iterator[tuple[Literal["swap-ab", "tile"], Shape, bool]]:
    """SwapAB turned, then the next smaller tiles, the longer of M and N halved first: that costs the least reuse."""
    yield "swap-ab", config.cta_tile, not config.swap_ab
    m, n, k = config.cta_tile
    smaller = ((m // 2, n, k), (m, n // 2, k))
    for tile in (*(smaller if m >= n else smaller[::-1]), (m, n, k // 2)):
        yield "tile", tile, config.swap_ab


def _axis(tile: Shape, result: KernelConfig | None, ratio: tuple[int, int]) -> int | None:
    """The one axis on which the tile is `ratio` times what it was."""
    if result is None:
        return None
    differing = [axis for axis in range(3) if result.cta_tile[axis] != tile[axis]]
    if len(differing) != 1:
        return None
    axis = differing[0]
    return axis if result.cta_tile[axis] * ratio[1] == tile[axis] * ratio[0] else None


def _with_number(arguments: dict[str, str], knob: tuple[str, int], value: int) -> dict[str, str]:
    name, index = knob
    text = arguments[name]
    start, end = [match.span() for match in _NUMBER.finditer(text)][index]
    return {**arguments, name: f"{text[:start]}{value}{text[end:]}"}


def _turned(text: str) -> str:
    return "false" if text == "true" else "true"


def _outcome(footprint: Footprint) -> str:
    return f"{footprint.stages} stages, {footprint.total:,} B"
