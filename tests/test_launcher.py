"""Launchers: what is read of them, where it stands, and that an edit changes the answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import CHECKOUT, LAUNCHER, read_launcher, sm120

from cutlint import launchers
from cutlint.headers import Headers
from cutlint.sizing import Sizer

Edited = Callable[..., Sizer]
FAILING = (128, 256, 128)


def line_of(text: str) -> int:
    return next(number for number, line in enumerate(LAUNCHER.read_text().splitlines()) if text in line)


def test_parameters_are_the_macros_own() -> None:
    read = read_launcher()
    assert read.name == "INSTANTIATE_TMA_WARP_SPECIALIZED_MOE_GEMM"
    assert read.parameters[:3] == ("ArchTag_", "DataType_", "WeightType_")
    assert read.parameters[-1] == "SWAP_AB_"
    assert len(read.parameters) == 17


def test_every_definition_keeps_its_place_in_the_file() -> None:
    read = read_launcher()
    for name, text in (("Stages", "using Stages ="), ("Schedule", "using Schedule ="), ("IsMixed", "IsMixed = IsFP8")):
        where = read.location(name)
        assert where is not None
        assert where.range.start.line == line_of(text)
        assert where.range.start.character == 6


def test_what_the_builders_are_asked_for(sizers: dict[str, Sizer]) -> None:
    sizer = sizers["0.7.4"]
    config = sizer.size(sm120(sizer.launcher, (128, 32, 256), "FINALIZE", True)).config
    assert config is not None
    assert config.cta_tile == (128, 32, 256)
    assert config.cluster == (1, 1, 1)
    assert config.swap_ab is True
    assert config.fusion == "FINALIZE"
    assert config.block_scaling == "nvfp4"
    assert config.schedule == "KernelScheduleAuto"
    assert str(config.stage_count) == "StageCountAutoCarveout<18432>"  # the truth table's epilogue for this row
    assert config.epilogue.schedule == "TmaWarpSpecialized"
    assert (config.a.element, config.epilogue.d.element, config.epilogue.output_element) == (
        "float_e2m1_t",
        "void",
        "half_t",
    )


def test_mixed_operands_change_places_when_swapped(sizers: dict[str, Sizer]) -> None:
    sizer = sizers["0.7.4"]
    for swap, elements in ((False, ("float_e4m3_t", "float_e2m1_t")), (True, ("float_e2m1_t", "float_e4m3_t"))):
        given = sm120(sizer.launcher, (128, 64, 128), swap=swap, DataType_="__nv_fp8_e4m3", MXFPX_="true")
        config = sizer.size(given).config
        assert config is not None
        assert (config.a.element, config.b.element) == elements


def total(sizer: Sizer, fusion: str = "FINALIZE") -> tuple[int | None, int | None]:
    footprint = sizer.size(sm120(sizer.launcher, FAILING, fusion)).footprint
    assert footprint is not None
    return footprint.total, footprint.stages


STAGES = "StageCountAutoCarveout<static_cast<int>("


def test_an_explicit_stage_count(edited: Edited) -> None:
    start = LAUNCHER.read_text().index("cutlass::gemm::collective::StageCountAutoCarveout")
    old = LAUNCHER.read_text()[start:].split(";")[0]
    sizer = edited((old, "cutlass::gemm::collective::StageCount<2>"))
    assert total(sizer) == (74_752, 2)
    config = sizer.size(sm120(sizer.launcher, FAILING, "FINALIZE")).config
    assert config is not None
    assert str(config.stage_count) == "StageCount<2>"


# A carveout larger by 208 bytes changes nothing, by 209 drops a stage (measured with nvcc)
@pytest.mark.parametrize(("added", "figures"), [(208, (102_400, 3)), (209, (74_752, 2))])
def test_another_carveout_expression(edited: Edited, added: int, figures: tuple[int, int]) -> None:
    assert total(edited((STAGES, f"{STAGES}{added} + "))) == figures


def test_renamed_aliases_change_nothing(edited: Edited) -> None:
    sizer = edited(
        ("using Stages =", "using HowMany ="), ("Cluster, Stages,", "Cluster, HowMany,"), ("GemmKernel", "TheKernel")
    )
    assert total(sizer) == (102_400, 3)
    assert sizer.launcher.kernel == "TheKernel"


def test_a_schedule_without_a_model_gives_no_figure(edited: Edited) -> None:
    sizer = edited(
        ("cutlass ::gemm ::collective::KernelScheduleAuto", "cutlass::gemm::KernelPtrArrayTmaWarpSpecializedPingpong")
    )
    sized = sizer.size(sm120(sizer.launcher, FAILING))
    assert sized.footprint is None
    assert sized.reason is not None
    assert "Pingpong" in sized.reason
    assert sized.config is not None
    assert sized.config.schedule == "KernelPtrArrayTmaWarpSpecializedPingpong"


def test_the_launchers_own_static_assert_refuses(sizers: dict[str, Sizer]) -> None:
    sizer = sizers["0.7.4"]
    footprint = sizer.size(sm120(sizer.launcher, (128, 128, 128), WeightType_="half")).footprint
    assert footprint is not None
    assert footprint.refused == "the launcher's static_assert: activations and weights must agree, or be FP8 and FP4"


def test_an_alias_that_refers_to_itself(edited: Edited) -> None:
    sizer = edited(
        (
            "using TileShape = cute::Shape<",
            "using TileShape = std::conditional_t<IsMXFPX, TileShape, TileShape>;using Other = cute::Shape<",
        )
    )
    sized = sizer.size(sm120(sizer.launcher, FAILING))
    assert sized.footprint is None
    assert sized.reason == "'TileShape' refers to itself"


def test_an_unknown_name_is_named(edited: Edited) -> None:
    sizer = edited(("? AlignmentWeight : AlignmentAct", "? AlignmentWeight : AlignmentOfAct"))
    sized = sizer.size(sm120(sizer.launcher, FAILING))
    assert sized.footprint is None
    assert sized.reason is not None
    assert "AlignmentOfAct" in sized.reason


FUSION = "constexpr static EpilogueFusion FUSION = EpilogueFusion::FUSION_;"


@pytest.mark.parametrize(
    "form",
    ["FUSION{EpilogueFusion::FUSION_};", "FUSION(EpilogueFusion::FUSION_);", "FUSION = {EpilogueFusion::FUSION_};"],
)
def test_every_form_of_initializer(edited: Edited, form: str) -> None:
    assert total(edited((FUSION, f"constexpr static EpilogueFusion {form}"))) == (102_400, 3)


def test_typedefs(edited: Edited) -> None:
    assert total(edited(("using T = DataType_;", "typedef DataType_ T;"))) == (102_400, 3)


@pytest.mark.parametrize(
    "change",
    [
        ("FUSION == EpilogueFusion::FINALIZE", "FUSED == EpilogueFusion::FINALIZE"),
        ("cutlass::platform::is_same<T, SafeFP8>", "cutlass::platform::is_same<T, SomeType>"),
        ("static_cast<int>(", "static_cast<uint8_t>("),
        ("FUSION = EpilogueFusion::FUSION_;", "FUSION = EpilogueFusion::FUSION_ + unreadable.member;"),
    ],
)
def test_a_guess_is_no_answer(edited: Edited, change: tuple[str, str]) -> None:
    sizer = edited(change)
    sized = sizer.size(sm120(sizer.launcher, FAILING, "FINALIZE"))
    assert sized.footprint is None
    assert sized.reason is not None


@pytest.mark.parametrize("arguments", [{"FUSION_": "FINALISE"}, {"CTA_K_": "64 + 64"}])
def test_arguments_that_mean_nothing_known(sizers: dict[str, Sizer], arguments: dict[str, str]) -> None:
    sizer = sizers["0.7.4"]
    sized = sizer.size({**sm120(sizer.launcher, FAILING, "FINALIZE"), **arguments})
    assert sized.footprint is None
    assert sized.reason is not None


def test_what_is_not_needed_need_not_be_read(edited: Edited) -> None:
    sizer = edited(
        ("using T = DataType_;", "using T = DataType_; const int n = input.count; constexpr float eps = 1e-5f;")
    )
    assert total(sizer) == (102_400, 3)


@pytest.mark.parametrize(
    ("condition", "extra"), [("#if 0", 0), ("#if 1", 4096), ("#ifndef ENABLE_FP4", 0), ("#ifdef ENABLE_FP4", 4096)]
)
def test_conditions_around_constants(edited: Edited, condition: str, extra: int) -> None:
    lines = (
        f"{condition}\nconstexpr int kExtra = 4096;\n#else\nconstexpr int kExtra = 0;\n#endif\n#define INSTANTIATE_TMA"
    )
    sizer = edited(("#define INSTANTIATE_TMA", lines), (STAGES, f"{STAGES}kExtra + "))
    config = sizer.size(sm120(sizer.launcher, FAILING, "FINALIZE")).config
    assert config is not None
    assert config.stage_count.carveout == 17_408 + extra


def test_a_condition_that_is_not_evaluated(edited: Edited) -> None:
    lines = "#if VERSION > 3\nconstexpr int kExtra = 4096;\n#else\nconstexpr int kExtra = 0;\n#endif\n#define INSTANTIATE_TMA"
    sizer = edited(("#define INSTANTIATE_TMA", lines), (STAGES, f"{STAGES}kExtra + "))
    sized = sizer.size(sm120(sizer.launcher, FAILING, "FINALIZE"))
    assert sized.footprint is None
    assert "kExtra" in (sized.reason or "")


def test_a_macro_defined_twice(tmp_path: Path) -> None:
    path = tmp_path / "twice.inl"
    body = "void ff_________() { using K = GemmUniversal<int>; }"
    path.write_text(f"#define INSTANTIATE_IT(A_) {body}\n" * 2)
    found, problems = launchers.read(path, Headers(path, tmp_path))
    assert found == []
    assert "more than once" in problems[0].message


def test_a_launcher_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / LAUNCHER.relative_to(CHECKOUT)
    path.parent.mkdir(parents=True)
    path.write_bytes(LAUNCHER.read_bytes().replace(b"or be FP8", b"or be \xff FP8"))
    assert len(launchers.read(path, Headers(path, tmp_path))[0]) == 1


def test_line_continuations_with_carriage_returns(tmp_path: Path) -> None:
    path = tmp_path / LAUNCHER.relative_to(CHECKOUT)
    path.parent.mkdir(parents=True)
    path.write_bytes(LAUNCHER.read_bytes().replace(b"\n", b"\r\n"))
    found, problems = launchers.read(path, Headers(path, tmp_path))
    assert problems == []
    where = found[0].location("Stages")
    assert where is not None
    assert where.range.start.line == line_of("using Stages =")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("{ using K = cutlass::gemm::kernel::GemmUniversal<int>", "is not a function"),
        ("void f() { using K = int; /* GemmUniversal */ }", "names no GemmUniversal"),
        ("void ff_________() { auto x = GemmUniversal<int>{}; }", "no alias of GemmUniversal"),
        ("void ff_________() { using A = GemmUniversal<int>; using B = GemmUniversal<int>; }", "2 aliases"),
        (
            "void ff_________() { using X = int; { using X = float; using K = GemmUniversal<X>; } }",
            "'X' is defined twice",
        ),
    ],
)
def test_macros_that_are_no_launchers(tmp_path: Path, body: str, message: str) -> None:
    path = tmp_path / "odd.inl"
    path.write_text(f"#define INSTANTIATE_IT(A_, B_) {body}\n")
    found, problems = launchers.read(path, Headers(path, tmp_path))
    assert found == []
    assert [message in problem.message for problem in problems] == [True]


def test_whether_the_limit_is_checked(edited: Edited) -> None:
    assert read_launcher().checks_limit is False
    guard = (
        "int limit; cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0); "
        "if (sizeof(typename GemmKernel::SharedStorage) > limit) THROW(limit); Gemm gemm;"
    )
    assert edited(("Gemm gemm;", guard)).launcher.checks_limit is True
