"""Changes that make a kernel fit, each evaluated before it is named.

In order of least change: a larger carveout (the smallest that drops a stage), an explicit stage count, SwapAB, the next
smaller tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from cutlint.config import KernelConfig, StageCount
from cutlint.footprint.records import Footprint
from cutlint.records import Fix
from cutlint.sizing import Sized, Sizer


class Fits(msgspec.Struct, frozen=True):
    """What fits: `stages` of the same tile (None: not even two), and the changes that lead there."""

    stages: int | None
    fixes: tuple[Fix, ...]


def suggest(sizer: Sizer, arguments: dict[str, str], sized: Sized, limit: int) -> Fits:
    """Changes after which the instantiation needs at most `limit` bytes."""
    config, footprint = sized.config, sized.footprint
    if config is None or footprint is None:
        return Fits(None, ())
    fixes: list[Fix] = []
    fewer = _fewer_stages(sizer, config, footprint, limit)
    if fewer is not None and fewer.total is not None and fewer.stages is not None:
        if footprint.budget is not None and config.stage_count.carveout is not None:
            raised = _raised_carveout(sizer, config, footprint, fewer.stages)
            if raised is not None:
                fixes.append(raised)
        fixes.append(Fix("stage-count", f"StageCount<{fewer.stages}>: {_outcome(fewer)}", fewer.total, fewer.stages))
    for kind, what, changed in _variants(sizer, arguments, config):
        result = changed.footprint
        if result is None or any(fix.kind == kind for fix in fixes):
            continue
        if (
            result.total is not None
            and result.stages is not None
            and result.total <= limit
            and not result.fails_in_nvcc
        ):
            fixes.append(Fix(kind, f"{what}: {_outcome(result)}", result.total, result.stages))
    return Fits(fewer.stages if fewer is not None else None, tuple(fixes))


def _outcome(footprint: Footprint) -> str:
    return f"{footprint.stages} stages, {footprint.total:,} B"


def _fewer_stages(sizer: Sizer, config: KernelConfig, footprint: Footprint, limit: int) -> Footprint | None:
    """The footprint with the most stages that fits, fewer than now."""
    for stages in range((footprint.stages or 0) - 1, 0, -1):
        result = sizer.footprint(msgspec.structs.replace(config, stage_count=StageCount(stages=stages)))
        if result.total is not None and result.total <= limit:
            return result
    return None


def _raised_carveout(sizer: Sizer, config: KernelConfig, footprint: Footprint, stages: int) -> Fix | None:
    """The smallest addition to the carveout after which CUTLASS chooses `stages` stages."""
    budget, carveout = footprint.budget, config.stage_count.carveout
    assert budget is not None and carveout is not None  # the caller has looked
    added = budget.left + 1 + (budget.stages - stages - 1) * budget.stage
    result = sizer.footprint(msgspec.structs.replace(config, stage_count=StageCount(carveout=carveout + added)))
    if result.stages != stages or result.total is None:
        return None
    return Fix("carveout", f"a carveout larger by {added:,} B: {_outcome(result)}", result.total, stages)


def _variants(
    sizer: Sizer, arguments: dict[str, str], config: KernelConfig
) -> Iterator[tuple[Literal["swap-ab", "tile"], str, Sized]]:
    """The instantiation with SwapAB turned, then with smaller tiles, through the launcher's own parameters: which of
    them does what is seen from the configuration that comes out."""
    for name, text in arguments.items():
        if text in ("true", "false"):
            turned = sizer.size({**arguments, name: "false" if text == "true" else "true"})
            if turned.config is not None and turned.config.swap_ab != config.swap_ab:
                yield "swap-ab", f"SwapAB={str(turned.config.swap_ab).lower()}", turned
    for axis in _by_extent(config):
        for name, text in arguments.items():
            if not text.isdecimal() or int(text) < 2:
                continue
            halved = sizer.size({**arguments, name: str(int(text) // 2)})
            expected = [*config.cta_tile]
            expected[axis] //= 2
            if halved.config is not None and list(halved.config.cta_tile) == expected:
                yield "tile", "×".join(map(str, expected)), halved


def _by_extent(config: KernelConfig) -> list[int]:
    """M, N and K, the longer of M and N first: halving it costs the least operand reuse."""
    m, n, _ = config.cta_tile
    return [0, 1, 2] if m >= n else [1, 0, 2]
