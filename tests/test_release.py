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
