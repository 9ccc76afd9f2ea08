"""The Sm120 model against what compilers say, and what must hold of any footprint."""

from __future__ import annotations

import msgspec
import pytest
from conftest import COLUMNS, arguments, sm120, table
from hypothesis import given, settings
from hypothesis import strategies as st

from cutlint.footprint.records import Footprint
from cutlint.sizing import Sizer


def figures(footprint: Footprint) -> tuple[int | None, ...]:
    sizes = (footprint.total, footprint.epilogue, footprint.mainloop, footprint.mainloop_tensors)
    tile = footprint.epilogue_tile or (None, None)
    rest = (
        footprint.epilogue_tensors,
        footprint.stages,
        footprint.threads,
        *tile,
        footprint.stages_c,
        footprint.stages_d,
    )
    return (*sizes, *rest)


def expected(row: dict[str, str]) -> tuple[int, ...]:
    return tuple(int(row[each]) for each in (*COLUMNS, "epi_tile_m", "epi_tile_n", "stages_c", "stages_d"))


def test_every_instantiation_of_the_release(sizers: dict[str, Sizer]) -> None:
    sizer = sizers["0.7.4"]
    count = 0
    for columns, row in table("flashinfer-0.7.4-sm120.csv"):
        footprint = sizer.size(arguments(sizer.launcher, columns)).footprint
        assert footprint is not None, row
        assert footprint.refused is None, row
        assert figures(footprint) == expected(row), row
        count += 1
    assert count == 88


@pytest.mark.parametrize("release", ["0.7.4", "0.6.8", "0.5.3"])
def test_points_around_the_release(sizers: dict[str, Sizer], release: str) -> None:
    sizer = sizers[release]
    seen = {"true": 0, "false": 0}
    for columns, row in table("sm120-grid.csv"):
        if row["flashinfer"] != release:
            continue
        footprint = sizer.size(arguments(sizer.launcher, columns)).footprint
        assert footprint is not None, row
        assert (footprint.refused is not None) == (row["refused"] == "true"), (row, footprint.refused)
        if row["refused"] == "false":
            assert figures(footprint) == expected(row), row
        seen[row["refused"]] += 1
    assert seen["true"] > 15
    assert seen["false"] > 20


# The rule of thumb, in KiB: worked by hand as one stage of A, B and scale factors plus the output tile
@pytest.mark.parametrize(
    ("tile", "fusion", "kib"),
    [
        ((128, 128, 128), "NONE", 50),
        ((128, 128, 128), "FINALIZE", 82),
        ((128, 128, 256), "NONE", 68),
        ((128, 128, 256), "FINALIZE", 100),
        ((128, 256, 128), "NONE", 91),
        ((128, 256, 128), "FINALIZE", 155),
    ],
)
def test_envelope(sizers: dict[str, Sizer], tile: tuple[int, int, int], fusion: str, kib: int) -> None:
    sizer = sizers["0.7.4"]
    footprint = sizer.size(sm120(sizer.launcher, tile, fusion)).footprint
    assert footprint is not None
    assert footprint.envelope == kib * 1024


TILES = st.tuples(
    st.sampled_from([64, 128, 192, 256]), st.sampled_from([32, 64, 96, 128, 256]), st.sampled_from([64, 128, 256, 512])
)
LAYOUT = {
    "mainloop.A": (0, 32_768),
    "mainloop.B": (32_768, 32_768),
    "mainloop.SFA": (65_536, 4_096),
    "mainloop.SFB": (69_632, 4_096),
    "epilogue.C/D": (73_728, 12_288),
    "scheduler barriers": (87_040, 128),
    "mainloop barriers": (87_168, 64),
    "epilogue.load barriers": (87_232, 48),
    "load order barriers": (87_280, 16),
    "scheduler responses": (87_296, 128),
    "mainloop.tensor maps A, B, SFA, SFB": (87_424, 512),
    "epilogue.tensor map C": (87_936, 128),
    "epilogue.tensor maps D": (88_064, 256),
}
FUSIONS = st.sampled_from(["NONE", "FINALIZE"])


@given(tile=TILES, fusion=FUSIONS, swap=st.booleans())
def test_regions_partition_shared_memory(
    sizers: dict[str, Sizer], tile: tuple[int, int, int], fusion: str, swap: bool
) -> None:
    sizer = sizers["0.7.4"]
    footprint = sizer.size(sm120(sizer.launcher, tile, fusion, swap)).footprint
    assert footprint is not None
    if footprint.refused is not None:
        assert footprint.total is None
        assert footprint.regions == ()
        return
    end = 0
    for region in footprint.regions:
        assert region.offset == end, "regions neither overlap nor leave holes: padding is a region too"
        assert region.size > 0
        end += region.size
    assert end == footprint.total


def test_regions_are_where_the_compiler_puts_them(sizers: dict[str, Sizer]) -> None:
    """128×128×128, NONE, SwapAB=false, as libclang walks the record's fields."""
    sizer = sizers["0.7.4"]
    footprint = sizer.size(sm120(sizer.launcher, (128, 128, 128))).footprint
    assert footprint is not None
    found = {region.name: (region.offset, region.size) for region in footprint.regions if region.kind != "padding"}
    assert found == LAYOUT


@settings(deadline=None)
@given(tile=TILES, fusion=FUSIONS, swap=st.booleans())
def test_a_larger_k_never_needs_fewer_bytes_a_stage(
    sizers: dict[str, Sizer], tile: tuple[int, int, int], fusion: str, swap: bool
) -> None:
    sizer = sizers["0.7.4"]
    m, n, k = tile
    small = sizer.size(sm120(sizer.launcher, tile, fusion, swap)).footprint
    large = sizer.size(sm120(sizer.launcher, (m, n, 2 * k), fusion, swap)).footprint
    assert small is not None
    assert large is not None
    if small.budget is not None and large.budget is not None:
        assert large.budget.stage > small.budget.stage
        assert large.budget.stages <= small.budget.stages


# What nvcc 13.0 says of the host code that makes the TMA descriptors (FP4×FP4, NONE)
@pytest.mark.parametrize(
    ("tile", "compiles"),
    [
        ((64, 128, 128), False),
        ((64, 64, 128), False),
        ((128, 96, 128), False),
        ((192, 128, 128), False),
        ((128, 32, 128), True),
    ],
)
def test_what_only_nvcc_refuses(sizers: dict[str, Sizer], tile: tuple[int, int, int], compiles: bool) -> None:
    sizer = sizers["0.7.4"]
    footprint = sizer.size(sm120(sizer.launcher, tile)).footprint
    assert footprint is not None
    assert footprint.refused is None
    assert (footprint.fails_in_nvcc is None) == compiles


def test_an_explicit_stage_count_is_taken(sizers: dict[str, Sizer]) -> None:
    from cutlint.config import StageCount

    sizer = sizers["0.7.4"]
    config = sizer.size(sm120(sizer.launcher, (128, 256, 128), "FINALIZE")).config
    assert config is not None
    two = sizer.footprint(msgspec.structs.replace(config, stage_count=StageCount(stages=2)))
    assert (two.stages, two.total) == (2, 74_752)  # reported for the SwapAB twin, which takes two stages by itself
