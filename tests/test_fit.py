"""``cutlint fit`` as a person uses it: what the compiler's tables say fits is found, and nothing else."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import FIXTURES, table
from host import TILES, checkout
from test_cli import cutlint

from cutlint import fitting

SCHEMA = FIXTURES.parent / "reports" / "cutlint-fit.schema.json"
FP4 = ("--target", "rtx-5090", "--act", "e2m1", "--weight", "e2m1")
LIMIT = 101_376
SEARCHED = set(itertools.product((128, 256), (32, 64, 128, 256), (64, 128, 256)))  # what nvcc takes and fit tries


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return checkout(tmp_path)


def as_json(root: Path, *words: str) -> dict[str, Any]:
    done = cutlint("fit", ".", *FP4, "--format", "json", *words, cwd=root)
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(content, json.loads(SCHEMA.read_text()))
    return content


def by_tile(content: dict[str, Any]) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {(*each["tile"], each["swap_ab"], each["stage_count"] == "automatic"): each for each in content["options"]}


def test_the_published_schema() -> None:
    assert json.loads(SCHEMA.read_text()) == fitting.schema()


@pytest.mark.parametrize("fusion", ["NONE", "FINALIZE"])
def test_what_the_compiler_says_fits(root: Path, fusion: str) -> None:
    found = by_tile(as_json(root, "--fusion", fusion.lower()))
    compared = missing = 0
    for columns, row in (*table("flashinfer-0.7.4-sm120.csv"), *table("sm120-grid.csv")):
        mine = (columns["datatype"], columns["weighttype"], columns["outputtype"], columns["fusion"])
        if row.get("flashinfer", "0.7.4") != "0.7.4" or mine != ("SafeFP4", "SafeFP4", "half", fusion):
            continue
        if columns["mxfpx"] != "false" or columns["dynamic_cga"] != "false" or columns["epilogueschedule"] != "void":
            continue
        if any(columns[f"cga_{axis}"] != "1" for axis in "mnk"):
            continue
        m, n, k = (int(columns[f"cta_{axis}"]) for axis in "mnk")
        option = found.get((m, n, k, columns["swap_ab"] == "true", True))
        fits = row.get("refused") != "true" and int(row["smem"]) <= LIMIT
        if option is not None:
            assert fits, (m, n, k, row)
            assert (option["total"], option["stages"]) == (int(row["smem"]), int(row["stages"]))
            compared += 1
        elif fits and (m, n, k) in SEARCHED:
            missing += 1
    assert missing == 0
    assert compared >= 8


def test_more_and_fewer_stages_than_automatic(root: Path) -> None:
    """128×256×128 with FINALIZE: three stages are chosen and do not fit, two do (flashinfer #2077)."""
    found = by_tile(as_json(root, "--fusion", "finalize"))
    assert (128, 256, 128, False, True) not in found
    fewer = found[128, 256, 128, False, False]
    assert (fewer["stage_count"], fewer["stages"], fewer["total"]) == ("StageCount<2>", 2, 74_752)
    assert not fewer["instantiated"]
    swapped = found[128, 256, 128, True, True]
    assert (swapped["stages"], swapped["total"], swapped["instantiated"]) == (2, 74_752, True)
    assert swapped["outputs"] == ["FP16", "BF16"]


def test_the_best_first(root: Path) -> None:
    content = as_json(root)
    for each in content["options"]:
        m, n, k = each["tile"]
        assert each["reuse"] == round(2 * m * n * k / ((m + n) * k / 2), 1)  # an FP4 element is half a byte
    spilling = [each["accumulator_registers"] > 255 for each in content["options"]]  # 256×256: 256 of 255 registers
    ranks = list(zip(spilling, ((-each["reuse"], -each["stages"]) for each in content["options"]), strict=True))
    assert ranks == sorted(ranks)
    assert spilling[-1]
    assert not spilling[0]
    instantiated = {tuple(each["tile"]) for each in content["options"] if each["instantiated"]}
    assert instantiated == set(TILES)
    assert content["options"][0]["tile"] not in [list(tile) for tile in TILES]
    assert content["tried"] >= len(content["options"])


def test_a_fusion_that_nobody_instantiates(root: Path) -> None:
    for path in root.rglob("*.generated.cu"):
        path.write_text("\n".join(line for line in path.read_text().split("\n") if "FINALIZE" not in line))
    options = as_json(root, "--fusion", "finalize")["options"]
    assert {each["fusion"] for each in options} == {"FINALIZE"}
    assert not any(each["instantiated"] for each in options)


def test_text_says_that_no_compiler_was_asked(root: Path) -> None:
    done = cutlint("fit", ".", *FP4, "--fusion", "finalize", cwd=root)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.split("\n")]
    assert [
        "FP4×FP4→FP16/BF16",
        "FINALIZE",
        "128×256×128",
        "true",
        "1×1×1",
        "2",
        "74,752",
        "341.3",
        "instantiated",
    ] in rows
    assert [
        "FP4×FP4→FP16/BF16",
        "FINALIZE",
        "128×256×128",
        "false",
        "1×1×1",
        "2",
        "74,752",
        "341.3",
        "with",
        "StageCount<2>",
    ] in rows
    assert "Not checked with the clang engine: " in done.stdout
    assert "agrees" not in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--act", "e4m3"),
            "no kernel for e4m3 activations and e2m1 weights is instantiated for 12.0; there are FP4×FP4",
        ),
        (("--target", "h100"), "is instantiated for 9.0; there are none at all"),
        (("--fusion", "activation"), "there are FINALIZE, NONE"),
    ],
)
def test_errors_say_what_there_is(root: Path, words: tuple[str, ...], message: str) -> None:
    done = cutlint("fit", ".", *FP4, *words, cwd=root)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.download
def test_a_real_release() -> None:
    done = cutlint("fit", "flashinfer-python==0.7.4", *FP4, "--fusion", "finalize", "--format", "json")
    content = json.loads(done.stdout)
    assert content["not_checked"] == ""
    asked = [each["clang"] for each in content["options"] if each["clang"] != "not asked"]
    assert asked == ["agrees"] * fitting.CHECKED
    assert "StageCount<2>" in [each["stage_count"] for each in content["options"][: fitting.CHECKED]]
