"""``cutlint tactics`` as a person uses it, on the small checkout with host code."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import CHECKOUT, FIXTURES
from host import DISPATCH, HEURISTIC, RUNNERS, checkout, edit
from test_cli import cutlint

from cutlint import tactics

SCHEMA = FIXTURES.parent / "reports" / "cutlint-tactics.schema.json"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return checkout(tmp_path)


def as_json(root: Path, *words: str) -> dict[str, Any]:
    done = cutlint("tactics", ".", "--format", "json", *words, cwd=root)
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(content, json.loads(SCHEMA.read_text()))
    return content


def test_the_published_schema() -> None:
    assert json.loads(SCHEMA.read_text()) == tactics.schema()


def test_verdicts(root: Path) -> None:
    content = as_json(root, "--target", "gb10")
    assert content["targets"] == ["12.1"]
    assert content["problems"] == []
    assert Counter(each["verdict"] for each in content["tactics"]) == {"runs": 20, "over-limit": 4, "not-dispatched": 8}
    over = [each for each in content["tactics"] if each["verdict"] == "over-limit"]
    assert {(each["tile"]["m"], each["tile"]["n"], each["tile"]["k_bytes"]) for each in over} == {
        (128, 256, 64), (256, 128, 64),
    }  # fmt: skip
    for each in over:
        assert (each["fusion"], each["swap_ab"], each["total"], each["limit"]) == ("FINALIZE", False, 102_400, 101_376)
        assert each["reason"] == "1,024 B over 101,376 B"
        assert each["skip"] is True
        line = (root / each["kernel"]["file"]).read_text().split("\n")[each["kernel"]["range"]["start"]["line"]]
        assert f"FINALIZE, {each['tile']['m']}, {each['tile']['n']}, 128, 1, 1, 1, false, false, false, false" in line
        assert each["offered"]["file"] == HEURISTIC.as_posix()


def test_a_skip_list(root: Path) -> None:
    every = as_json(root)
    assert every["targets"] == ["12.0", "12.1"]
    skipped = as_json(root, "--skip")["tactics"]
    assert skipped == [each for each in every["tactics"] if each["skip"]]
    assert len(skipped) == 2 * 12


def test_text(root: Path) -> None:
    done = cutlint("tactics", "--target", "rtx-5090", cwd=root)
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.split("\n")]
    assert ["12.0,", "101,376", "B", "of", "shared", "memory", "per", "block"] in lines
    assert ["FP4×FP4→FP16/BF16:", "32", "tactics"] in lines
    assert [
        "128×256×64B",
        "FINALIZE",
        "false",
        "1×1×1",
        "AUTO",
        "3",
        "102,400",
        "over-limit:",
        "1,024",
        "B",
        "over",
        "101,376",
        "B",
    ] in lines
    assert ["128×256×64B", "FINALIZE", "true", "1×1×1", "AUTO", "2", "74,752", "runs"] in lines
    assert "12.0: 12 of 32 tactics to skip" in done.stdout
    assert max(map(len, done.stdout.split("\n"))) < 160


def test_not_instantiated(root: Path) -> None:
    edit(
        root,
        HEURISTIC,
        ("      CutlassTileConfigSM120::CtaShape128x128x256B,\n", "CutlassTileConfigSM120::CtaShape128x64x64B,\n"),
    )
    (root / "generated/cutlass_instantiations/120/m128_n64_k128.generated.cu").unlink()
    verdicts = Counter(each["verdict"] for each in as_json(root, "--target", "12.0")["tactics"])
    assert verdicts == {"runs": 20, "over-limit": 4, "not-instantiated": 8}


def test_a_runner_that_a_gpu_does_not_use(root: Path) -> None:
    edit(root, RUNNERS, ("#endif", "template class MoeGemmRunner<half, half, half>;\n#endif"))
    content = as_json(root, "--target", "12.0")
    assert content["others"] == {"12.0": 12}  # three stages, two fusions, both ways of SwapAB: not TMA kernels
    assert content["unused"] == []
    edit(
        root,
        DISPATCH,
        ("if (gemm_config.sm_version == 120 ||", "if (gemm_config.sm_version == 7 ||"),
        ("sm_version == 121", "sm_version == 8"),
    )
    content = as_json(root, "--target", "12.0")
    assert content["tactics"] == []
    assert {each["runner"]: each["tactics"] for each in content["unused"]} == {
        "MoeGemmRunner<Fp4Type, Fp4Type, half>": 16,
        "MoeGemmRunner<Fp4Type, Fp4Type, __nv_bfloat16>": 16,
    }


def test_what_is_not_understood_is_said(root: Path) -> None:
    edit(root, HEURISTIC, ("return result;", "goto out;"))
    done = cutlint("tactics", "--target", "12.0", cwd=root)
    assert done.returncode == 0
    assert "not understood: " in done.stdout
    assert "what MoeGemmRunner<Fp4Type, Fp4Type, half> offers on sm_120 is not understood" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target", "h100"), "none of the kernels is built for 9.0"),
        (("--target", "nothing"), "unknown target"),
        (("nowhere",), "no such file or folder"),
    ],
)
def test_errors_say_what_is_wrong(root: Path, words: tuple[str, ...], message: str) -> None:
    done = cutlint("tactics", *words, cwd=root)
    assert done.returncode == 2
    assert message in done.stderr


def test_no_host_code(root: Path) -> None:
    done = cutlint("tactics", root / "generated", "--checkout", CHECKOUT, cwd=root)
    assert done.returncode == 2
    assert "no host code that lists tactics" in done.stderr


def test_a_source_of_several_that_cannot_be_used(root: Path) -> None:
    done = cutlint("tactics", ".", "nowhere", "--target", "12.0", cwd=root)
    assert done.returncode == 2
    assert "error: no such file or folder: nowhere" in done.stderr
    assert "12.0: 12 of 32 tactics to skip" in done.stdout
