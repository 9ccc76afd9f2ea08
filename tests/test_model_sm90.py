"""The Sm90 model against what compilers say."""

from __future__ import annotations

from collections.abc import Mapping

from config_sm90 import kernel_config
from conftest import COLUMNS, CUTLASS, table

from cutlint.cutlass import Cutlass
from cutlint.footprint import model
from cutlint.footprint.records import Footprint, Refused

HEADERS = Cutlass(CUTLASS["0.7.4"])


def size(row: Mapping[str, str]) -> Footprint:
    try:
        return model.footprint(kernel_config(row), HEADERS)
    except Refused as refusal:
        return Footprint(model.ENGINE, refused=str(refusal))


def figures(footprint: Footprint) -> tuple[int | None, ...]:
    sizes = (footprint.total, footprint.epilogue, footprint.mainloop, footprint.mainloop_tensors, footprint.epilogue_tensors)
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


def test_accumulators_that_no_thread_can_hold() -> None:
    row = next(row for _, row in table("flashinfer-0.7.4-sm90.csv") if row["cta_m"] == "256")
    assert size(row).accumulator_registers == 128  # 256·128 over 256 threads
    assert size({**row, "cta_n": "256", "cta_k": "32"}).accumulator_registers == 256
