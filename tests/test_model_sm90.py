"""The Sm90 model against what compilers say."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from config_sm90 import kernel_config
from conftest import COLUMNS, CUTLASS, table

from cutlint.cutlass import Cutlass
from cutlint.footprint import model
from cutlint.footprint.records import Footprint, Refused, Unmodelled

HEADERS = {release: Cutlass(CUTLASS[release]) for release in ("0.7.4", "0.5.3")}


def size(row: Mapping[str, str]) -> Footprint:
    try:
        return model.footprint(kernel_config(row), HEADERS[row.get("flashinfer", "0.7.4")])
    except Refused as refusal:
        return Footprint(model.ENGINE, refused=str(refusal))


def figures(footprint: Footprint) -> tuple[int | None, ...]:
    sizes = (
        footprint.total,
        footprint.epilogue,
        footprint.mainloop,
        footprint.mainloop_tensors,
        footprint.epilogue_tensors,
    )
    tile = footprint.epilogue_tile or (None, None)
    return (*sizes, footprint.stages, footprint.threads, *tile, footprint.stages_c, footprint.stages_d)


def expected(row: Mapping[str, str]) -> tuple[int, ...]:
    return tuple(int(row[each]) for each in (*COLUMNS, "epi_tile_m", "epi_tile_n", "stages_c", "stages_d"))


def test_every_instantiation_of_the_release() -> None:
    rows = [row for _, row in table("flashinfer-0.7.4-sm90.csv")]
    assert len(rows) == 360
    for row in rows:
        footprint = size(row)
        assert footprint.refused is None, row
        assert figures(footprint) == expected(row), row
        assert sum(region.size for region in footprint.regions) == footprint.total


def test_points_around_the_release() -> None:
    seen = {"true": 0, "false": 0}
    for _, row in table("sm90-grid.csv"):
        footprint = size(row)
        assert (footprint.refused is not None) == (row["refused"] == "true"), (row, footprint.refused)
        if row["refused"] == "false":
            assert figures(footprint) == expected(row), row
        seen[row["refused"]] += 1
    assert seen == {"true": 77, "false": 173}


def test_altered_launchers() -> None:
    seen = {"true": 0, "false": 0}
    for _, row in table("sm90-altered.csv"):
        footprint = size(row)
        assert (footprint.refused is not None) == (row["refused"] == "true"), (row, footprint.refused)
        if row["refused"] == "false":
            assert figures(footprint) == expected(row), row
        seen[row["refused"]] += 1
    assert seen == {"true": 136, "false": 306}


def test_regions_of_a_pingpong_kernel() -> None:
    """Offsets and sizes as libclang 18.1 lays out GemmKernel::SharedStorage."""
    row = next(row for _, row in table("flashinfer-0.7.4-sm90.csv") if row["datatype"] == row["outputtype"] == "half")
    tile = {"cta_m": "64", "cta_n": "128", "cta_k": "64", "fusion": "NONE", "swap_ab": "false"}
    footprint = size({**row, **tile, "changed": "schedule=PtrArrayTmaWarpSpecializedPingpong"})
    assert [(each.name, each.offset, each.size) for each in footprint.regions if each.kind != "padding"] == [
        ("mainloop.A", 0, 73728),
        ("mainloop.B", 73728, 147456),
        ("epilogue.D", 221184, 8192),
        ("scheduler barriers", 229888, 128),
        ("mainloop barriers", 230016, 144),
        ("epilogue.load barriers", 230160, 64),
        ("load order barriers", 230224, 16),
        ("math order barriers", 230240, 32),
        ("scheduler responses", 230272, 128),
        ("mainloop.tensor maps A, B", 230400, 256),
        ("epilogue.tensor map C", 230656, 128),
        ("epilogue.tensor maps D", 230784, 256),
    ]
    assert footprint.total == 231424


def test_operands_through_registers_have_no_figure() -> None:
    """Elements of different widths go to another builder (GMMA_TMA_WS_RS), of which there is no model."""
    row = next(row for _, row in table("flashinfer-0.7.4-sm90.csv") if row["datatype"] == "half")
    with pytest.raises(Unmodelled, match="through registers"):
        size({**row, "changed": "weight=float_e4m3_t"})


def test_accumulators_that_no_thread_can_hold() -> None:
    row = next(row for _, row in table("flashinfer-0.7.4-sm90.csv") if row["cta_m"] == "256")
    assert size(row).accumulator_registers == 128  # 256·128 over 256 threads
    assert size({**row, "cta_n": "256", "cta_k": "32"}).accumulator_registers == 256
