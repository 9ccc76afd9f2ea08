"""Where two engines' footprints of one kernel differ."""

from __future__ import annotations

from cutlint.footprint.layout import Region
from cutlint.footprint.records import Footprint

_FIGURES = (
    "total", "mainloop", "epilogue", "mainloop_tensors", "epilogue_tensors", "stages", "threads", "epilogue_tile",
    "stages_c", "stages_d", "stages_sf", "align",
)  # fmt: skip


def differences(first: Footprint | None, second: Footprint) -> tuple[str, ...]:
    """Each figure and each region on which `first` and `second` do not agree, in words; empty when they agree.

    Refusals are compared by whether there is one, not by their words. Regions are compared byte by byte by kind.
    """
    if first is None:
        return ()  # one engine has no figure; that is reported as such
    if (first.refused is None) != (second.refused is None):
        refusing, other = (first, second) if first.refused is not None else (second, first)
        return (f"{refusing.engine} says that it does not compile ({refusing.refused}), {other.engine} sizes it",)
    if first.refused is not None:
        return ()
    found = [
        f"{name.replace('_', ' ')}: {first.engine} {_number(one)}, {second.engine} {_number(other)}"
        for name in _FIGURES
        if (one := getattr(first, name)) != (other := getattr(second, name))
    ]
    if first.regions and second.regions:
        found += _regions(first, second)
    return tuple(found)


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _regions(first: Footprint, second: Footprint) -> list[str]:
    one, other = _merged(first.regions), _merged(second.regions)
    nothing = "nothing begins"
    return [
        f"at {start:,}: {first.engine} {one.get(start, nothing)}, {second.engine} {other.get(start, nothing)}"
        for start in sorted(one.keys() | other.keys())
        if one.get(start) != other.get(start)
    ]


def _merged(regions: tuple[Region, ...]) -> dict[int, str]:
    """Where each run of neighbouring regions of one kind begins, and what it is: engines may cut barriers differently."""
    result: dict[int, str] = {}
    start, kind, end = 0, "", 0
    for region in regions:
        if region.kind != kind or region.offset != end:
            if kind:
                result[start] = f"{end - start:,} B of {kind}"
            start, kind = region.offset, region.kind
        end = region.offset + region.size
    if kind:
        result[start] = f"{end - start:,} B of {kind}"
    return result
