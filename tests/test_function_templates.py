"""Launchers that are function templates: how they are read, and the model of their kernels against the tables."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from conftest import COLUMNS, CUTLASS, FIXTURES

from cutlint import launchers
from cutlint.cutlass import Cutlass
from cutlint.headers import Headers
from cutlint.launcher import Launcher
from cutlint.records import Instantiation, Position, Problem, Range
from cutlint.sizing import Sizer

ROOT = FIXTURES / "function-templates"
MIXED = "sm90_generic_mixed_moe_gemm_kernelLauncher"
SMALL_K = "sm90_generic_mixed_moe_small_k_kernelLauncher"
WEIGHT_ONLY = "sm90_generic_mixed_gemm_kernelLauncher"
FUSED = "sm80_generic_fused_moe_gemm_kernelLauncher"
TABLES = {MIXED: "sm90-mixed", SMALL_K: "sm90-small-k", WEIGHT_ONLY: "sm90-fpa-intb", FUSED: "sm80-fused"}


def read(root: Path = ROOT) -> dict[str, Launcher]:
    found: dict[str, Launcher] = {}
    for path in sorted(root.rglob("*.inl")):
        listed, problems = launchers.read(path, Headers(path, root))
        assert problems == []
        found |= {each.name: each for each in listed}
    return found


@pytest.fixture(scope="module")
def small() -> dict[str, Launcher]:
    return read()


def rows(name: str) -> Iterator[dict[str, str]]:
    with (FIXTURES / "truth" / f"flashinfer-0.7.4-{TABLES[name]}.csv").open() as file:
        yield from csv.DictReader(file)


@pytest.mark.parametrize(("name", "count"), [(MIXED, 920), (SMALL_K, 20), (WEIGHT_ONLY, 378), (FUSED, 60)])
def test_the_model_is_equal_to_the_compiler(small: dict[str, Launcher], name: str, count: int) -> None:
    compare(Sizer(small[name], Cutlass(CUTLASS["0.7.4"])), list(rows(name)), count)


def test_packed_scales_of_flashinfer_0_6() -> None:
    launcher = read(FIXTURES / "function-templates-0.6")[MIXED]
    with (FIXTURES / "truth" / "flashinfer-0.6.11-sm90-mixed.csv").open() as file:
        compare(Sizer(launcher, Cutlass(CUTLASS["0.5.3"])), list(csv.DictReader(file)), 52)


def compare(sizer: Sizer, table: list[dict[str, str]], count: int) -> None:
    checked = 0
    for row in table:
        assert row["refused"] == ""
        footprint = sizer.size({each: row[each] for each in sizer.launcher.parameters}).footprint
        assert footprint is not None
        figures = (
            footprint.total, footprint.epilogue, footprint.mainloop, footprint.mainloop_tensors,
            footprint.epilogue_tensors, footprint.stages, footprint.threads,
        )  # fmt: skip
        assert figures == tuple(int(row[each]) if row[each] else None for each in COLUMNS), row
        covered = footprint.regions
        assert covered[-1].offset + covered[-1].size == footprint.total
        assert all(before.offset + before.size == after.offset for before, after in pairwise(covered))
        checked += 1
    assert checked == count


def row(name: str, **wanted: str) -> dict[str, str]:
    return next(each for each in rows(name) if all(word in each[column] for column, word in wanted.items()))


def arguments(launcher: Launcher, found: dict[str, str], **changes: str) -> dict[str, str]:
    return {**{each: found[each] for each in launcher.parameters}, **changes}


def regions(launcher: Launcher, given: dict[str, str]) -> dict[str, int]:
    footprint = Sizer(launcher, Cutlass(CUTLASS["0.7.4"])).size(given).footprint
    assert footprint is not None
    return {each.name: each.size for each in footprint.regions if each.kind != "padding"}


def test_regions_of_a_grouped_mixed_kernel(small: dict[str, Launcher]) -> None:
    found = row(MIXED, T="__nv_fp8_e4m3", WeightType="uint4b_t", CTAShape="Int<128>, cute::Int<16>, cute::Int<128>")
    stages = int(found["stages"])
    named = regions(small[MIXED], arguments(small[MIXED], found))
    assert named["mainloop.A"] == stages * 128 * 128 // 2
    assert named["mainloop.B"] == stages * 16 * 128
    assert named["mainloop.scales"] == stages * 128 * 2  # one bfloat16 for 128 weights of a row
    assert named["mainloop barriers"] == stages * 16
    assert named["epilogue.tensor maps D"] == 256


def test_where_the_regions_of_a_small_k_kernel_lie(small: dict[str, Launcher]) -> None:
    # 128×8×128, as libclang lays it out: a pipeline without stages still takes its place
    found = row(SMALL_K, CTAShape="Int<128>, cute::Int<8>, cute::Int<128>")
    footprint = Sizer(small[SMALL_K], Cutlass(CUTLASS["0.7.4"])).size(arguments(small[SMALL_K], found)).footprint
    assert footprint is not None
    assert {each.name: each.offset for each in footprint.regions if each.kind != "padding"} == {
        "mainloop.A": 0,
        "mainloop.B": 24_576,
        "mainloop.scales": 27_648,
        "epilogue.D": 29_696,
        "epilogue.token scales": 31_744,
        "mainloop barriers": 32_768,
        "load order barriers": 32_832,
        "math order barriers": 32_848,
        "epilogue.D (once more)": 33_024,
        "epilogue.token scales (once more)": 35_072,
    }


def test_regions_of_a_weight_only_kernel(small: dict[str, Launcher]) -> None:
    found = row(WEIGHT_ONLY, QuantOp="AND_ZEROS")
    stages = int(found["stages"])
    named = regions(small[WEIGHT_ONLY], arguments(small[WEIGHT_ONLY], found))
    assert named["mainloop.scales"] == named["mainloop.zeros"]
    assert named["mainloop barriers"] == stages * 16
    assert "mainloop.zeros" not in regions(
        small[WEIGHT_ONLY], arguments(small[WEIGHT_ONLY], row(WEIGHT_ONLY, QuantOp="PER_COLUMN"))
    )


def test_regions_of_the_fused_kernel(small: dict[str, Launcher]) -> None:
    # half, 128×128×64, 2 stages, gated: A, and two B of half the columns, and the output of half the columns
    found = row(FUSED, ElementType_="half_t", MaxTileM_="128", TileN_="128", Stages_="2", EpilogueTag="Silu")
    named = regions(small[FUSED], arguments(small[FUSED], found))
    b = 64 * 64 * 2 * 2
    assert named == {"mainloop.A": 32768, "mainloop.B of the gate": b, "mainloop.B": b, "output": 128 * 64 * 2}


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        (FUSED, {"Stages_": "1"}, "Stages >= 2"),
        (FUSED, {"TileK_": "48"}, "TileK_ % 32"),
        (MIXED, {"WeightType": "cutlass::float_e4m3_t", "T": "half"}, "only defined for MXFP4 and INT4"),
        (SMALL_K, {"KernelType": "tkc::MainloopScheduleType::AUTO"}, "Only for one warp group."),
        (WEIGHT_ONLY, {"ActivationType": "__nv_fp8_e4m3", "ScaleZeroType": "__nv_bfloat16"}, "half scales"),
    ],
)
def test_what_the_compiler_refuses(small: dict[str, Launcher], name: str, changes: dict[str, str], words: str) -> None:
    launcher = small[name]
    given = arguments(launcher, next(rows(name)), **changes)
    footprint = Sizer(launcher, Cutlass(CUTLASS["0.7.4"])).size(given).footprint
    assert footprint is not None
    assert words in (footprint.refused or "")


def test_defaults_come_from_the_header(small: dict[str, Launcher]) -> None:
    launcher = small[MIXED]
    given = tuple(next(rows(MIXED))[each] for each in launcher.parameters)
    where = Range(Position(0, 0), Position(0, 1))
    bound = launcher.bind(Instantiation(Path("a.cu"), where, MIXED, given[:9]))
    assert isinstance(bound, dict)
    assert bound["ScaleMode"] == "cutlass::gemm::collective::MixedInputScaleMode::kPostMma"
    short = launcher.bind(Instantiation(Path("a.cu"), where, MIXED, given[:8]))
    assert isinstance(short, Problem)
    assert "takes 10 arguments" in short.message
    small_k = small[SMALL_K]  # whose header gives it none
    assert isinstance(small_k.bind(Instantiation(Path("a.cu"), where, SMALL_K, given[:10])), Problem)


def test_what_each_launcher_does_about_the_limit(small: dict[str, Launcher]) -> None:
    told = {name: (each.checks_limit, each.skips_over_limit, each.through) for name, each in small.items()}
    assert told == {
        "launch_mixed": (False, False, None),
        MIXED: (False, False, "launch_mixed"),
        SMALL_K: (False, False, "launch_mixed"),
        WEIGHT_ONLY: (True, True, None),
        FUSED: (True, True, None),
    }


Edit = Callable[[str, str, str], tuple[list[Launcher], list[Problem]]]


@pytest.fixture
def edited(tmp_path: Path) -> Edit:
    """The launchers of one fixture with a text replaced, and the problems."""

    def edit(file: str, old: str, new: str) -> tuple[list[Launcher], list[Problem]]:
        for path in ROOT.rglob("*.*"):
            if path.is_file():
                text = path.read_text()
                if path.name == file:
                    assert old in text
                    text = text.replace(old, new)
                copy = tmp_path / path.relative_to(ROOT)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_text(text)
        path = next(tmp_path.rglob("*.inl" if not file.endswith(".inl") else file))
        return launchers.read(path, Headers(path, tmp_path))

    return edit


def test_a_condition_that_is_not_known(edited: Edit) -> None:
    found, problems = edited("weight_only_launcher.inl", "#ifdef COMPILE_HOPPER_TMA_GEMMS", "#ifdef ON_TUESDAYS")
    assert found == []
    assert "preprocessor condition that cutlint does not evaluate" in problems[0].message


def test_a_condition_that_does_not_hold(edited: Edit) -> None:
    found, problems = edited("weight_only_launcher.inl", "#ifdef COMPILE_HOPPER_TMA_GEMMS", "#if 0")
    assert found == []
    assert "does not hold" in problems[0].message


def test_a_parameter_that_means_two_things(edited: Edit) -> None:
    swapped = "launch_mixed<WeightType, T, GemmOutputType, EpilogueTag, CTAShape, ClusterShape, MainloopScheduleType,\n"
    kept = "launch_mixed<T, WeightType, GemmOutputType, EpilogueTag, CTAShape, ClusterShape, MainloopScheduleType,\n"
    found, problems = edited("mixed_launcher.inl", kept, swapped)
    assert [each.name for each in found] == ["launch_mixed"]
    assert len(problems) == 2
    assert all("means two things" in each.message for each in problems)


def test_overloads_of_a_launcher(edited: Edit) -> None:
    path = next(ROOT.rglob("fused_launcher.inl"))
    again = path.read_text()[path.read_text().index("template <") : path.read_text().index("}  // namespace")]
    found, problems = edited("fused_launcher.inl", "}  // namespace launchers", f"{again}\n}}  // namespace launchers")
    assert found == []
    assert "more than once" in problems[0].message


def test_prebuilt_descriptors_are_not_guessed(tmp_path: Path) -> None:
    shutil.copytree(ROOT, tmp_path / "copy")
    header = next((tmp_path / "copy").rglob("prebuilt.h"))
    header.write_text(header.read_text().replace("DDescriptor = false", "DDescriptor = true"))
    launcher = read(tmp_path / "copy")[MIXED]
    sized = Sizer(launcher, Cutlass(CUTLASS["0.7.4"])).size(arguments(launcher, next(rows(MIXED))))
    assert sized.footprint is None
    assert "built beforehand" in (sized.reason or "")
