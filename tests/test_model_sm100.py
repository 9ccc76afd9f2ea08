"""The Sm100 and Sm103 models against what compilers say, and what must hold of any footprint."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from config_sm100 import kernel_config
from conftest import COLUMNS, CUTLASS, table
from hypothesis import given
from hypothesis import strategies as st

from cutlint.cutlass import Cutlass
from cutlint.footprint import model
from cutlint.footprint.records import Footprint, Refused

TILE = ("epi_tile_m", "epi_tile_n", "stages_c", "stages_d")
HEADERS = {release: Cutlass(include) for release, include in CUTLASS.items()}


def size(row: Mapping[str, str], release: str = "0.7.4") -> Footprint:
    """The model's footprint of a row; an epilogue without a size is a refusal, as for the command."""
    stages = row.get("stage_count", "")
    try:
        config = kernel_config(row, int(stages) if stages else None)
    except Refused as refusal:
        return Footprint(model.ENGINE, refused=str(refusal))
    return model.footprint(config, HEADERS[release])


def figures(footprint: Footprint) -> tuple[int | None, ...]:
    sizes = (footprint.total, footprint.epilogue, footprint.mainloop, footprint.mainloop_tensors)
    rest = (footprint.epilogue_tensors, footprint.stages, footprint.threads)
    tile = footprint.epilogue_tile or (None, None)
    return (*sizes, *rest, *tile, footprint.stages_c, footprint.stages_d, footprint.stages_sf)


def expected(row: Mapping[str, str]) -> tuple[int | None, ...]:
    return (*(int(row[each]) for each in (*COLUMNS, *TILE)), int(row["stages_sf"]) if row["stages_sf"] else None)


@pytest.mark.parametrize(("name", "rows"), [("sm100", 1476), ("sm103", 96)])
def test_every_instantiation_of_the_release(name: str, rows: int) -> None:
    count = 0
    for _, row in table(f"flashinfer-0.7.4-{name}.csv"):
        footprint = size(row)
        assert footprint.refused is None, row
        assert figures(footprint) == expected(row), row
        count += 1
    assert count == rows


@pytest.mark.parametrize(("name", "least"), [("sm100", 60), ("sm103", 25)])
def test_points_around_the_release(name: str, least: int) -> None:
    seen = {"true": 0, "false": 0}
    for _, row in table(f"{name}-grid.csv"):
        footprint = size(row, row["flashinfer"])
        assert (footprint.refused is not None) == (row["refused"] == "true"), (row, footprint.refused)
        if row["refused"] == "false":
            assert figures(footprint) == expected(row), row
        else:
            assert footprint.total is None
            assert footprint.regions == ()
        seen[row["refused"]] += 1
    assert min(seen.values()) >= least


def test_regions_lie_where_the_compiler_puts_them() -> None:
    count = 0
    for _, row in table("sm100-offsets.csv"):
        regions = size(row).regions
        for kind in ("A", "B", "SFA", "SFB", "C", "D"):
            found = [f"{each.offset}+{each.size}" for each in regions if kind in each.kind.split("/")]
            assert found == ([row[kind]] if row[kind] else []), (row, kind)
        offset, length = map(int, row["maps"].split("+"))
        maps = [each for each in regions if each.kind == "tensormaps"]
        assert offset <= maps[0].offset, row
        assert maps[-1].offset + maps[-1].size == offset + length, row
        named = {each.name: f"{each.offset}+{each.size}" for each in regions}
        assert named["scheduler responses"] == row["responses"], row
        assert regions[0].offset == 0
        assert regions[0].kind == "barriers"
        count += 1
    assert count == 12


def instantiation(arch: int, element: str, fusion: str, tile: tuple[int, int, int], **changes: str) -> dict[str, str]:
    """The columns of a row with one SM to an MMA, written through TMA to half."""
    names = ("archtag", "datatype", "weighttype", "outputtype", "epilogueschedule", "fusion")
    values = (f"Sm{arch}", element, element, "half", "PtrArrayTmaWarpSpecialized", fusion)
    row = dict(zip(names, values, strict=True))
    row |= dict(zip(("cta_m", "cta_n", "cta_k"), map(str, tile), strict=True))
    row |= {"cga_m": "1", "cga_n": "1", "cga_k": "1", "mxfpx": "false", "dynamic_cga": "false", "swap_ab": "false"}
    return {**row, **changes}


CASES = st.one_of(
    st.tuples(
        st.just(100),
        st.sampled_from(["half", "__nv_fp8_e4m3", "float"]),
        st.tuples(st.sampled_from([64, 128]), st.sampled_from(range(16, 257, 16)), st.sampled_from([32, 64, 128, 256])),
    ),
    st.tuples(
        st.sampled_from([100, 103]),
        st.just("SafeFP4"),
        st.tuples(st.just(128), st.sampled_from([64, 128, 192, 256]), st.just(256)),
    ),
)
BOOLS = st.sampled_from(["true", "false"])


@given(
    case=CASES,
    fusion=st.sampled_from(["NONE", "FINALIZE"]),
    cluster=st.sampled_from(["1", "2"]),
    swap=BOOLS,
    schedule=st.sampled_from(["PtrArrayTmaWarpSpecialized", "PtrArrayNoSmemWarpSpecialized"]),
    release=st.sampled_from(["0.7.4", "0.5.3"]),
)
def test_regions_partition_shared_memory(
    case: tuple[int, str, tuple[int, int, int]], fusion: str, cluster: str, swap: str, schedule: str, release: str
) -> None:
    arch, element, tile = case
    footprint = size(
        instantiation(arch, element, fusion, tile, cga_m=cluster, swap_ab=swap, epilogueschedule=schedule), release
    )
    if footprint.refused is not None:
        assert footprint.total is None
        return
    end = 0
    for region in footprint.regions:
        assert region.offset == end, "regions neither overlap nor leave holes: padding is a region too"
        assert region.size > 0
        end += region.size
    assert end == footprint.total
    kinds = {region.kind for region in footprint.regions}
    assert {"A", "B", "barriers", "tensormaps", "scheduler"} <= kinds
    assert ({"SFA", "SFB"} <= kinds) == (element == "SafeFP4")


@given(n=st.sampled_from([64, 128, 192, 256]), k=st.sampled_from([64, 128, 256]))
def test_a_larger_k_never_needs_fewer_bytes_a_stage(n: int, k: int) -> None:
    small = size(instantiation(100, "SafeFP4", "NONE", (128, n, k)))
    large = size(instantiation(100, "SafeFP4", "NONE", (128, n, 2 * k)))
    assert small.budget is not None
    assert large.budget is not None
    assert large.budget.stage > small.budget.stage
    assert large.budget.stages <= small.budget.stages


# What the compiler says first of each (libclang, as for the grids)
@pytest.mark.parametrize(
    ("row", "words"),
    [
        (instantiation(100, "half", "NONE", (96, 128, 64)), "Unsupported tmem datapath count"),
        (instantiation(100, "half", "NONE", (256, 128, 64)), "Invalid TileShape_M."),
        (instantiation(100, "SafeFP4", "NONE", (128, 96, 256)), "Invalid TileShape_N."),
        (
            instantiation(100, "half", "NONE", (128, 24, 64), cga_m="2"),
            "N-mode size should be a multiple of 16 between 16 and 256.",
        ),
        (
            instantiation(100, "half", "NONE", (128, 128, 1024)),
            "Smem usage is too high. Can't create any SMEM buffers for A, and B.",
        ),
        (
            instantiation(100, "half", "NONE", (128, 112, 256), cga_n="2"),
            "Specialization requires Stages set to value 1 or more.",
        ),
        (instantiation(103, "SafeFP4", "NONE", (128, 128, 128)), "TileShape_K should 768 for MMA kernels"),
        (instantiation(103, "SafeFP4", "NONE", (128, 64, 256)), "Cta N should be one of 128/192/256"),
    ],
)
def test_a_refusal_ends_in_the_compilers_words(row: dict[str, str], words: str) -> None:
    refused = size(row).refused
    assert refused is not None
    assert refused.endswith(words)


# What nvcc 13.0 evaluates in the headers of 0.7.4: find_tmem_tensor_col_offset of the accumulators and the scale factors
@pytest.mark.parametrize(
    ("row", "columns"),
    [
        (instantiation(100, "half", "NONE", (128, 64, 64)), 256),
        (instantiation(100, "__nv_bfloat16", "NONE", (128, 256, 64), cga_m="2"), 512),
        (instantiation(100, "__nv_bfloat16", "NONE", (64, 256, 64), cga_m="2"), 512),
        (instantiation(100, "float", "FINALIZE", (128, 192, 32)), 384),
        (instantiation(100, "SafeFP4", "NONE", (128, 128, 128)), 256 + 8 + 8),
        (instantiation(100, "SafeFP4", "NONE", (128, 192, 256)), 384 + 16 + 32),
        (instantiation(100, "SafeFP4", "FINALIZE", (128, 256, 256), cga_m="2"), 448 + 16 + 32),
        (instantiation(100, "SafeFP4", "NONE", (128, 256, 512)), 448 + 32 + 64),
        (instantiation(103, "SafeFP4", "NONE", (128, 128, 256)), 256 + 12 + 12),
        (instantiation(103, "SafeFP4", "NONE", (128, 192, 256)), 384 + 12 + 24),
        (instantiation(103, "SafeFP4", "FINALIZE", (128, 256, 256)), 384 + 12 + 24),
    ],
)
def test_columns_of_tensor_memory(row: dict[str, str], columns: int) -> None:
    assert size(row).tensor_memory_columns == columns
