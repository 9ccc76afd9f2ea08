"""A real FlashInfer release from PyPI, end to end. The expected figures were reported by users and measured with nvcc."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from conftest import table
from test_function_templates import FUSED, MIXED, TABLES, WEIGHT_ONLY, rows

pytestmark = pytest.mark.download
RELEASE = "flashinfer-python==0.7.4"


@pytest.fixture(scope="module")
def content() -> dict[str, Any]:
    command = [sys.executable, "-m", "cutlint.cli", "check", RELEASE, "--format", "json", "--all"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_everything_that_the_generator_writes_is_found(content: dict[str, Any]) -> None:
    summary = content["summary"]
    assert (summary["files"], summary["instantiations"]) == (428, 3_398)
    assert Counter(each["name"] for each in content["instantiations"]) == {
        "INSTANTIATE_TMA_WARP_SPECIALIZED_MOE_GEMM": 2_020,
        "sm90_generic_mixed_moe_gemm_kernelLauncher": 920,
        "sm90_generic_mixed_moe_small_k_kernelLauncher": 20,
        "sm90_generic_mixed_gemm_kernelLauncher": 378,
        "sm80_generic_fused_moe_gemm_kernelLauncher": 60,
    }
    assert (summary["sized"], summary["refused"], summary["not_sized"]) == (3_398, 0, 0)


def test_the_four_that_fail(content: dict[str, Any]) -> None:
    over = [each for each in content["findings"] if each["rule"] == "CUT101" and "Sm120" in each["subject"]]
    assert len(over) == 4
    assert {each["subject"] for each in over} == {
        f"Sm120 FP4×FP4→{output} {tile} FINALIZE SwapAB=false"
        for output in ("FP16", "BF16")
        for tile in ("128×256×128", "256×128×128")
    }
    for each in over:
        assert each["targets"] == ["12.0", "12.1"]
        assert "needs 102,400 B" in each["message"]
        assert "1,024 B over the limit of 101,376 B" in each["message"]
        assert {fix["kind"]: (fix["stages"], fix["total"]) for fix in each["fixes"]} == {
            "carveout": (2, 74_752),
            "stage-count": (2, 74_752),
            "swap-ab": (2, 74_752),
            "tile": (4, 93_184),
        }
        assert "larger by 209 B" in each["fixes"][0]["title"]


def test_every_launcher_is_equal_to_its_table(content: dict[str, Any]) -> None:
    """The model, over the release's own launchers, against what libclang said of each instantiation."""
    for name, kind in TABLES.items():
        found = [each for each in content["instantiations"] if each["name"] == name]
        listed = [(int(row["smem"]), int(row["stages"]), int(row["threads"])) for row in rows(name)]
        figures = [each["footprint"] for each in found]
        assert [(each["total"], each["stages"], each["threads"]) for each in figures] == listed, kind


def test_what_is_over_the_limit_beside_those(content: dict[str, Any]) -> None:
    """Mixed-input kernels whose two stages, the least that their builder takes, are too large for Hopper; and kernels that
    their launcher passes over on GPUs with less shared memory."""
    findings = Counter(each["rule"] for each in content["findings"] if "Sm120" not in each["subject"])
    assert findings["CUT101"] == sum(int(row["smem"]) > 232_448 for row in rows(MIXED)) > 0
    smem = [int(row["smem"]) for row in rows(FUSED)]
    ampere = sum(each >= 101_376 for each in smem) + sum(each >= 166_912 for each in smem)
    weight_only = sum(int(row["smem"]) >= 232_448 for row in rows(WEIGHT_ONLY))
    assert findings["CUT120"] == ampere + weight_only > 0


def test_every_sm120_row_equals_the_compiler(content: dict[str, Any]) -> None:
    sized = {
        tuple(each["arguments"].values()): each["footprint"]
        for each in content["instantiations"]
        if each["config"] is not None and each["config"]["arch"] == "Sm120"
    }
    count = 0
    for columns, row in table("flashinfer-0.7.4-sm120.csv"):
        footprint = sized[tuple(columns.values())]
        assert footprint["total"] == int(row["smem"])
        assert footprint["stages"] == int(row["stages"])
        assert footprint["epilogue_tile"] == [int(row["epi_tile_m"]), int(row["epi_tile_n"])]
        count += 1
    assert count == 88 == len(sized)


def test_the_launcher_is_pointed_at(content: dict[str, Any]) -> None:
    finding = next(each for each in content["findings"] if each["rule"] == "CUT101")
    assert finding["related"][0]["file"].endswith("moe_gemm_tma_ws_launcher.inl")
    assert finding["related"][0]["range"]["start"] == {"line": 499, "character": 6}
    unchecked = [each for each in content["findings"] if each["rule"] == "CUT110"]
    assert {each["file"].rpartition("/")[2] for each in unchecked} == {
        "moe_gemm_tma_ws_launcher.inl",
        "moe_gemm_tma_ws_mixed_input_launcher.inl",
    }


def test_what_the_dispatch_code_does(content: dict[str, Any]) -> None:
    """Read by hand in the release: moe_gemm_kernels_fp16_fp4.cu and the post-MMA runners of moe_gemm_kernels_fp8_fp4.cu name
    types that generate_kernels.py has no mixed-input kernels for; it makes N = 192 and M = 64 with N = 8 or 16 for Sm100, which
    no case leads to; MXFP8 is offered tiles and epilogues that are_tile_shapes_supported_sm100 and the epilogue selection
    refuse. The mixed-input list offers BF16 with MXFP4 tiles of which two stages, the least that the builder takes, are too large."""
    by_rule: dict[str, list[dict[str, Any]]] = {}
    for each in content["findings"]:
        by_rule.setdefault(each["rule"], []).append(each)
    assert {each["subject"] for each in by_rule["CUT401"]} == {
        "MoeGemmRunner<half, Fp4Type, half>",
        "MoeGemmRunner<__nv_fp8_e4m3, Fp4Type, half, half, false, Sm90Wfp4Afp8ScaleMode::kPostMmaFp8Act>",
        "MoeGemmRunner<__nv_fp8_e4m3, Fp4Type, __nv_bfloat16, __nv_bfloat16, false, Sm90Wfp4Afp8ScaleMode::kPostMmaFp8Act>",
    }
    assert all("in 184 variants, and none of them is instantiated" in each["message"] for each in by_rule["CUT401"])
    assert {each["message"].split(" on ")[0] for each in by_rule["CUT402"]} == {"is offered for MXFP8×MXFP8→FP16/BF16"}
    unused = Counter(each["subject"].split()[2] for each in by_rule["CUT403"])
    assert {tile.rsplit("×", 1)[0] for tile in unused} == {"128×192", "64×192", "64×16", "64×8"}
    assert len(by_rule["CUT403"]) == 288
    over = {each["subject"].split(",")[0]: each["message"] for each in by_rule["CUT404"]}
    workstation = [message for message in over.values() if "12.0 and 12.1" in message]
    assert set(over) == {
        *("tile 128×256×64B", "tile 256×128×64B"),
        *("tile 64×128×512B", "tile 128×128×512B", "tile 128×256×256B", "tile 256×128×256B"),
    }
    assert len(workstation) == 2
    assert all("for FP4×FP4→FP16/BF16 with FINALIZE and SwapAB=false" in each for each in workstation)
    assert all("for BF16×FP4→BF16" in each for each in over.values() if each not in workstation)
    assert "CUT405" not in by_rule


def test_tiles_that_0_6_11_offered_in_vain() -> None:
    """flashinfer #4008: two tiles have no case, and with FP8 activations 7 of the 10 candidates fail."""
    command = [sys.executable, "-m", "cutlint.cli", "check", "flashinfer-python==0.6.11", "--format", "json"]
    command += ["--select", "CUT4", "--target", "12.0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    found = [each for each in json.loads(done.stdout)["findings"] if each["rule"] == "CUT402"]
    tiles: dict[str, set[str]] = {}
    for each in found:
        types = each["message"].removeprefix("is offered for ").split("→")[0]
        tiles.setdefault(types, set()).add(each["subject"].removeprefix("tile ").split(",")[0])
    assert tiles == {
        "FP4×FP4": {"128×128×256B", "256×128×128B"},
        "MXFP8×MXFP4": {
            "128×128×256B", "256×128×128B", "128×128×64B", "256×128×64B", "128×256×64B", "128×32×64B", "128×64×64B",
        },
    }  # fmt: skip


def test_what_has_no_figure_says_why(content: dict[str, Any]) -> None:
    unknown = [each for each in content["instantiations"] if each["footprint"] is None]
    assert len(unknown) == content["summary"]["not_sized"]
    assert all(each["unknown"] for each in unknown)
    said = sum(
        int(finding["message"].split(" instantiation")[0].replace(",", ""))
        for finding in content["findings"]
        if finding["rule"] == "CUT902"
    )
    assert said == len(unknown)
