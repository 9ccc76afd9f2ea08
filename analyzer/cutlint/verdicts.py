"""What becomes of a kernel on a GPU, as far as its shared memory and the compiler decide."""

from __future__ import annotations

from typing import Literal

from cutlint.analysis import Analyzed

Fate = Literal["runs", "over-limit", "passed-over", "refused-by-compiler", "unknown"]
FAILING: tuple[Fate, ...] = ("over-limit", "refused-by-compiler")


def fate(each: Analyzed, limit: int) -> tuple[Fate, str]:
    """What becomes of an instantiation where a block may have `limit` bytes, and why if it does not run. Passed over is what
    does not fit and whose launcher says so in time, with an occupancy of 0, so that nothing fails."""
    footprint = each.footprint
    if footprint is None:
        return "unknown", each.unknown or "there is no figure"
    refused = footprint.refused or footprint.fails_in_nvcc
    if refused is not None:
        return "refused-by-compiler", refused
    if footprint.total is None:
        return "unknown", "there is no figure"
    if each.sizer is not None and each.sizer.launcher.skips_over_limit and footprint.total >= limit:
        return "passed-over", f"{footprint.total:,} B is not below {limit:,} B: the launcher reports an occupancy of 0"
    if footprint.total > limit:
        return "over-limit", f"{footprint.total - limit:,} B over {limit:,} B"
    return "runs", ""
