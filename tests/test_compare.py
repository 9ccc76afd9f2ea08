"""Comparing two engines' footprints."""

from __future__ import annotations

from msgspec.structs import replace

from cutlint.compare import differences
from cutlint.footprint.layout import Region
from cutlint.footprint.records import Footprint

REGIONS = (
    Region("mainloop.A", "A", 0, 64), Region("x", "barriers", 64, 8), Region("y", "barriers", 72, 8), Region("padding", "padding", 80, 48)
)  # fmt: skip
ONE = Footprint("model", total=128, stages=2, regions=REGIONS)


def test_equal() -> None:
    assert differences(ONE, replace(ONE, engine="clang")) == ()


def test_barriers_may_be_cut_differently() -> None:
    regions = (REGIONS[0], Region("z", "barriers", 64, 16), REGIONS[3])
    assert differences(ONE, replace(ONE, engine="clang", regions=regions)) == ()


def test_figures() -> None:
    assert differences(ONE, replace(ONE, engine="clang", total=256, stages=3)) == (
        "total: model 128, clang 256",
        "stages: model 2, clang 3",
    )


def test_regions() -> None:
    regions = (Region("mainloop.A", "A", 0, 32), Region("padding", "padding", 32, 96))
    assert differences(ONE, replace(ONE, engine="clang", regions=regions)) == (
        "at 0: model 64 B of A, clang 32 B of A",
        "at 32: model nothing begins, clang 96 B of padding",
        "at 64: model 16 B of barriers, clang nothing begins",
        "at 80: model 48 B of padding, clang nothing begins",
    )


def test_refusals() -> None:
    refused = Footprint("clang", refused="no")
    assert differences(ONE, refused) == ("clang says that it does not compile (no), model sizes it",)
    assert differences(replace(refused, engine="model", refused="other words"), refused) == ()
