"""A real FlashInfer release from PyPI, end to end. The expected figures were reported by users and measured with nvcc."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
from conftest import table

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
    assert summary["sized"] + summary["refused"] + summary["not_sized"] == 3_398


def test_the_four_that_fail(content: dict[str, Any]) -> None:
    over = [each for each in content["findings"] if each["rule"] == "CUT101"]
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
    assert len(unchecked) == 1
    assert unchecked[0]["file"].endswith("moe_gemm_tma_ws_launcher.inl")


def test_what_the_dispatch_code_does(content: dict[str, Any]) -> None:
    """Read by hand in the release: moe_gemm_kernels_fp16_fp4.cu and the post-MMA runners of moe_gemm_kernels_fp8_fp4.cu name
    types that generate_kernels.py has no mixed-input kernels for; it makes N = 192 and M = 64 with N = 8 or 16 for Sm100, which
    no case leads to; MXFP8 is offered tiles and epilogues that are_tile_shapes_supported_sm100 and the epilogue selection
    refuse."""
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
    assert {each["subject"].split(",")[0] for each in by_rule["CUT404"]} == {"tile 128×256×64B", "tile 256×128×64B"}
    assert all("for FP4×FP4→FP16/BF16 with FINALIZE and SwapAB=false" in each["message"] for each in by_rule["CUT404"])
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
