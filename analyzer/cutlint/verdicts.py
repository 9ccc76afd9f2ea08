"""What becomes of a kernel on a GPU, as far as its shared memory and the compiler decide."""

from __future__ import annotations

from typing import Literal

from cutlint.footprint.records import Footprint

Fate = Literal["runs", "over-limit", "refused-by-compiler", "unknown"]
FAILING: tuple[Fate, ...] = ("over-limit", "refused-by-compiler")


def fate(footprint: Footprint | None, unknown: str | None, limit: int) -> tuple[Fate, str]:
    """What becomes of a kernel where a block may have `limit` bytes, and why if it does not run. `unknown` says why there
    is no footprint."""
    if footprint is None:
        return "unknown", unknown or "there is no figure"
    refused = footprint.refused or footprint.fails_in_nvcc
    if refused is not None:
        return "refused-by-compiler", refused
    if footprint.total is None:
        return "unknown", "there is no figure"
    if footprint.total > limit:
        return "over-limit", f"{footprint.total - limit:,} B over {limit:,} B"
    return "runs", ""
