"""Reachability: what is offered, dispatched and instantiated, on a small checkout with host code of its own."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path

import pytest
from host import CONFIGS, DISPATCH, HEURISTIC, KERNELS, RUNNERS, TILES, checkout, edit

from cutlint import rules, targets
from cutlint.analysis import Analysis, analyze
from cutlint.dispatch.reach import Reach, reach
from cutlint.findings import collect
from cutlint.records import Finding
from cutlint.sources import Request, open_source


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return checkout(tmp_path)


def looked_at(source: Path, base: Path | None = None) -> tuple[Analysis, Reach]:
    request = Request(sources=(str(source),), checkout=None if base is None else str(base), cwd=source.parent)
    with contextlib.ExitStack() as stack:
        analysis = analyze(open_source(str(source), request, stack, lambda what, done, total: None), request)
    found = reach(analysis, targets.known())
    assert found is not None
    return analysis, found


def findings(source: Path, *ids: str, base: Path | None = None) -> list[Finding]:
    analysis, found = looked_at(source, base)
    chosen = [rule for rule in rules.load() if rule.id in ids]
    return collect(analysis, chosen, targets.known(), str, found)


def test_what_is_offered(root: Path) -> None:
    _, found = looked_at(root)
    assert found.problems == ()
    assert [runner.name for runner in found.routes.runners] == [
        "MoeGemmRunner<Fp4Type, Fp4Type, half>",
        "MoeGemmRunner<Fp4Type, Fp4Type, __nv_bfloat16>",
    ]
    first = [tactic for tactic in found.routes.tactics if tactic.runner == 0 and tactic.sm == 120]
    assert [tactic.index for tactic in first] == list(
        range(16)
    )  # four tiles, two fusions, then all of them with SwapAB
    assert Counter(tactic.label for tactic in first) == dict.fromkeys(
        ("CtaShape128x128x64B", "CtaShape128x256x64B", "CtaShape256x128x64B", "CtaShape128x128x256B"), 4
    )  # 128×32 is removed for grouped GEMMs
    assert [(tactic.fusion, tactic.swap_ab) for tactic in first[::4]] == [
        ("NONE", False), ("FINALIZE", False), ("NONE", True), ("FINALIZE", True),
    ]  # fmt: skip
    lines = (root / HEURISTIC).read_text().split("\n")
    assert all(tactic.label in lines[tactic.offered.line] for tactic in first)


def test_what_is_dispatched(root: Path) -> None:
    analysis, found = looked_at(root)
    calls = found.routes.calls
    assert {call.launcher for call in calls} == {"small_moe_gemm_kernelLauncher"}
    assert len(calls) == 4 * 2 * 2 * 2  # tiles, fusions, SwapAB, outputs; a cluster of two is refused
    assert Counter(call.label for call in calls) == dict.fromkeys(
        (f"CtaShape{m}x{n}x{k // 2}B" for m, n, k in TILES), 8
    )
    lines = (root / DISPATCH).read_text().split("\n")
    for call in calls:
        assert call.case is not None
        m, n, k = call.label.removeprefix("CtaShape").removesuffix("B").split("x")
        assert lines[call.case.line].strip() == f"SHAPE_CASE({m}, {n}, {k})"
        assert call.arguments[7] == f"Shape<{m}, {n}, {int(k) * 2}>"  # elements of half a byte
    assert sorted(index for indices in found.instantiated.values() for index in indices) == list(
        range(len(analysis.instantiations))
    )


def test_a_tactic_leads_to_its_kernel(root: Path) -> None:
    analysis, found = looked_at(root)
    for tactic in found.routes.tactics:
        if tactic.label == "CtaShape128x128x256B":
            assert tactic.calls == ()
            continue
        [call] = tactic.calls
        [index] = found.instantiated[call]
        config = analysis.instantiations[index].config
        assert config is not None
        assert (config.cta_tile, config.fusion, config.swap_ab) == (
            (tactic.tile[0], tactic.tile[1], tactic.tile[2] * 2), tactic.fusion, tactic.swap_ab,
        )  # fmt: skip


def test_all_is_well(root: Path) -> None:
    assert findings(root, "CUT401", "CUT403", "CUT405", "CUT902") == []


def test_dispatched_and_not_instantiated(tmp_path: Path) -> None:
    root = checkout(tmp_path, TILES[1:])
    found = findings(root, "CUT401")
    assert [finding.subject for finding in found] == ["tile 128×64×64B"] * 2
    assert found[0].message.startswith("4 of 4 variants of small_moe_gemm_kernelLauncher that FP4×FP4→FP16 dispatches")
    for finding in found:
        assert finding.file == str(root / DISPATCH)
        line = (root / DISPATCH).read_text().split("\n")[finding.range.start.line]
        assert line.strip() == "SHAPE_CASE(128, 64, 64)"
        assert [where.file for where in finding.related] == [str(root / DISPATCH), str(root / RUNNERS)]


def test_a_runner_without_any_instantiation(root: Path) -> None:
    for path in (root / "generated").rglob("*.cu"):
        path.write_text("\n".join(line for line in path.read_text().split("\n") if "bfloat16" not in line))
    [finding] = findings(root, "CUT401")
    assert finding.subject == "MoeGemmRunner<Fp4Type, Fp4Type, __nv_bfloat16>"
    assert "in 16 variants, and none of them is instantiated" in finding.message
    assert finding.file == str(root / RUNNERS)


def test_part_of_the_files_says_nothing(root: Path) -> None:
    one = root / "generated/cutlass_instantiations/120/m128_n64_k128.generated.cu"
    assert findings(one, "CUT401", "CUT403", base=root) == []
    for path in sorted((root / "generated").rglob("*.cu"))[1:]:
        path.unlink()
    (root / "generated/cutlass_instantiations/120/empty.generated.cu").write_text("\n")
    assert findings(root, "CUT401") == []
    messages = [finding.message for finding in findings(root, "CUT902")]
    assert any("only 8 of the 32 instantiations" in message for message in messages)


def test_offered_and_not_dispatched(root: Path) -> None:
    [finding] = findings(root, "CUT402")
    assert finding.message == (
        "is offered for FP4×FP4→FP16/BF16 on 12.0 and 12.1, but the dispatch code refuses it: "
        "Unsupported tile shape config … for MoE gemm"
    )
    assert finding.subject == "tile 128×128×256B, 8 tactics"
    assert finding.targets == ("12.0", "12.1")
    assert finding.file == str(root / HEURISTIC)
    [where] = finding.related
    assert where.file == str(root / DISPATCH)
    line = (root / DISPATCH).read_text().split("\n")[where.range.start.line]
    assert "Unsupported tile shape config" in line


def test_an_unsupported_cluster_is_no_dispatch(root: Path) -> None:
    edit(
        root,
        HEURISTIC,
        (
            "AUTO, ClusterShape::ClusterShape_1x1x1);\n    result",
            "AUTO, ClusterShape::ClusterShape_2x1x1);\n    result",
        ),
    )
    _, found = looked_at(root)
    assert not any(tactic.calls for tactic in found.routes.tactics)
    refused = {tactic.refused for tactic in found.routes.tactics if tactic.label == "CtaShape128x128x64B"}
    assert refused == {"Unsupported tile (%d, %d) and cluster. Config was %s"}
    assert findings(root, "CUT402") == []  # nothing of this runner runs: it is not for this GPU


def test_instantiated_and_not_dispatched(tmp_path: Path) -> None:
    root = checkout(tmp_path, (*TILES, (128, 32, 128)))
    found = findings(root, "CUT403")
    assert len(found) == 8
    assert all("m128_n32_k128" in finding.file for finding in found)


def test_offered_and_over_the_limit(root: Path) -> None:
    found = findings(root, "CUT404")
    assert [finding.subject for finding in found] == ["tile 128×256×64B, 2 tactics", "tile 256×128×64B, 2 tactics"]
    text = (root / HEURISTIC).read_text().split("\n")
    for finding, tile in zip(found, ("CtaShape128x256x64B", "CtaShape256x128x64B"), strict=True):
        assert "with FINALIZE and SwapAB=false, but its kernel needs 102,400 B" in finding.message
        assert "1,024 B over the limit of 101,376 B on 12.0 and 12.1" in finding.message
        start, end = finding.range.start, finding.range.end
        assert text[start.line][start.character : end.character] == tile
        assert [where.message for where in finding.related] == [
            "the kernel is instantiated here", "the tile is dispatched here",
        ]  # fmt: skip


FILTER = """
static bool tile_fits_smem(int sm, int m, int n, int k_elem, int stages = 2) {
  int const limit = sm >= 120 ? 101376 : 232448;
  return STAGE * stages <= limit;
}

std::vector<CutlassGemmConfig> get_candidate_configs_sm120("""


def filtered(root: Path, stage: str, by_enumerator: bool = False) -> None:
    """Put a filter into the heuristic that takes `stage` bytes for one stage."""
    text = FILTER.replace("STAGE", stage)
    call = "auto const [m, n, k] = enum_to_shape_tuple(tile);\n    if (!tile_fits_smem(120, m, n, k * 2)) continue;"
    if by_enumerator:
        text = text.replace("int m, int n, int k_elem", "CutlassTileConfigSM120 tile").replace(
            "  int const limit", "  auto const [m, n, k] = enum_to_shape_tuple(tile);\n  int const limit"
        )
        call = "if (!tile_fits_smem(120, tile)) {\n      continue;\n    }"
    edit(
        root, HEURISTIC,
        ("\nstd::vector<CutlassGemmConfig> get_candidate_configs_sm120(", text),
        ("  for (auto tile : tiles) {\n", f"  for (auto tile : tiles) {{\n    {call}\n"),
    )  # fmt: skip


@pytest.mark.parametrize("by_enumerator", [False, True])
def test_a_filter_that_removes_what_fits(root: Path, by_enumerator: bool) -> None:
    filtered(root, "(m * n * 2 + (m + n) * 128)", by_enumerator)  # 81,920 B a stage for 128×256: never two of them
    found = findings(root, "CUT405")
    removed = {finding.subject: finding for finding in found}
    assert set(removed) == {"tile 128×256×64B", "tile 256×128×64B", "tile 128×128×64B"}
    assert (
        "is removed by tile_fits_smem for FP4×FP4 on 12.0 and 12.1, yet 6 of its 8 kernels fit"
        in removed["tile 128×256×64B"].message
    )
    assert "yet 8 of its 8 kernels fit" in removed["tile 128×128×64B"].message
    line = (root / HEURISTIC).read_text().split("\n")[found[0].range.start.line]
    assert line.startswith("static bool tile_fits_smem")


def test_a_filter_that_keeps_what_does_not_fit(root: Path) -> None:
    filtered(root, "(m + n) * 64")
    found = findings(root, "CUT405")
    assert {finding.subject for finding in found} == {"tile 128×256×64B", "tile 256×128×64B"}
    assert all(
        "yet 2 of its 8 kernels do not fit: they need up to 102,400 B of 101,376 B" in each.message for each in found
    )


def test_a_filter_by_tile_removes_kernels_that_fit_along_with_one_that_does_not(root: Path) -> None:
    filtered(root, "(m * n >= 256 * 128 ? 999999 : 1)")
    assert {finding.subject for finding in findings(root, "CUT405")} == {"tile 128×256×64B", "tile 256×128×64B"}
    assert findings(root, "CUT404") == []


@pytest.mark.parametrize(
    ("path", "old", "new", "message"),
    [
        (HEURISTIC, "bool const narrow_too = config", "bool const narrow_too = how_many_sms() & config", "how_many_sms"),
        (HEURISTIC, "return result;", "goto out;", "goto"),
        (DISPATCH, "if constexpr (isValidSM120<T, WeightType, EpilogueTag>())", "if constexpr (Unknown<T>::value)", "if constexpr"),
        (RUNNERS, "template class MoeGemmRunner<Fp4Type, Fp4Type, half>;", "template class MoeGemmRunner<Fp4Type, Unheard, half>;", "Unheard"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_said(root: Path, path: Path, old: str, new: str, message: str) -> None:
    edit(root, path, (old, new))
    found = findings(root, "CUT401", "CUT402", "CUT403", "CUT902")
    said = [finding for finding in found if finding.rule == "CUT902"]
    assert any("is not understood" in finding.message and message in finding.message for finding in said), said
    assert all(finding.file.startswith(str(root / KERNELS)) for finding in said)
    assert not [finding for finding in found if finding.rule == "CUT403"]


def test_a_condition_that_cannot_be_decided(root: Path) -> None:
    edit(root, HEURISTIC, ("#ifdef FAST_BUILD", "#if MAKE_IT_SMALL > 2"))
    found = findings(root, "CUT902")
    assert any("MAKE_IT_SMALL > 2" in finding.message for finding in found)


@pytest.mark.parametrize(
    "change",
    [
        (HEURISTIC, "for (auto tile : tiles) {", "while (true) {"),
        (HEURISTIC, "result.push_back(candidate);", "result.push_back(candidate); for (;;) { result.size(); }"),
        (HEURISTIC, "return get_candidate_configs_sm120(config);", "return get_candidate_configs(sm, config);"),
        (CONFIGS, "return m * 1000000 + n * 1000 + k;", "return shape_tuple_to_enum(m, n, k);"),
        (CONFIGS, "return m * 1000000 + n * 1000 + k;", "return 1 / (m - m);"),
        (DISPATCH, "#define SHAPE_CASE(M, N, K) ", "#define A A A A A A A A A A\n#define SHAPE_CASE(M, N, K) A"),
        (RUNNERS, "Fp4Type, Fp4Type, half", "Fp4Type"),
    ],
)  # fmt: skip
def test_hostile_host_code_ends(root: Path, change: tuple[Path, str, str]) -> None:
    path, old, new = change
    edit(root, path, (old, new))
    found = findings(root, "CUT401", "CUT402", "CUT403", "CUT404", "CUT405", "CUT902")
    assert any(finding.rule == "CUT902" for finding in found)


def test_a_checkout_without_host_code(tmp_path: Path) -> None:
    root = checkout(tmp_path)
    (root / RUNNERS).unlink()
    request = Request(sources=(str(root),), cwd=tmp_path)
    with contextlib.ExitStack() as stack:
        analysis = analyze(open_source(str(root), request, stack, lambda what, done, total: None), request)
    assert reach(analysis, targets.known()) is None
    assert collect(analysis, [each for each in rules.load() if each.id == "CUT403"], targets.known(), str) == []


def test_what_was_followed_is_kept(root: Path, cache: Path) -> None:
    first = findings(root, "CUT402", "CUT404")
    kept = sorted((cache / "cutlint/dispatch").glob("*.msgpack"))
    assert len(kept) == 1
    assert findings(root, "CUT402", "CUT404") == first
    kept[0].write_bytes(kept[0].read_bytes()[:-9])  # damaged: as good as absent
    assert findings(root, "CUT402", "CUT404") == first
    edit(root, HEURISTIC, ("      CutlassTileConfigSM120::CtaShape128x128x256B,\n", ""))
    assert [finding.rule for finding in findings(root, "CUT402", "CUT404")] == ["CUT404", "CUT404"]
