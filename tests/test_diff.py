"""``cutlint diff`` as a person uses it, on two copies of the small checkout."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import CHECKOUT, CUTLASS, FIXTURES, LAUNCHER
from host import MACRO, checkout, edit, generate
from test_cli import cutlint

from cutlint import diff

SCHEMA = FIXTURES.parent / "reports" / "cutlint-diff.schema.json"
PATH = LAUNCHER.relative_to(CHECKOUT)
CARVEOUT = "sizeof(typename Epilogue::SharedStorage))"


@pytest.fixture
def roots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two checkouts that are the same."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    return checkout(tmp_path / "old"), checkout(tmp_path / "new")


def as_json(old: Path, new: Path, code: int, *words: str) -> dict[str, Any]:
    done = cutlint("diff", old, new, "--format", "json", *words, cwd=old.parent)
    assert done.returncode == code, done.stderr
    content: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(content, json.loads(SCHEMA.read_text()))
    summary = content["summary"]
    assert summary["old"] == summary["removed"] + summary["changed"] + summary["same"]
    assert summary["new"] == summary["added"] + summary["changed"] + summary["same"]
    return content


def rewrite(root: Path, old: str, new: str) -> None:
    for path in root.rglob("*.generated.cu"):
        path.write_text(path.read_text().replace(old, new))


def test_the_published_schema() -> None:
    assert json.loads(SCHEMA.read_text()) == diff.schema()


def test_a_checkout_and_itself(roots: tuple[Path, Path]) -> None:
    content = as_json(*roots, 0)
    assert content["changes"] == content["launchers"] == content["problems"] == []
    assert content["summary"]["same"] == 32


def test_another_spelling_at_another_place_is_the_same(roots: tuple[Path, Path]) -> None:
    _, new = roots
    rewrite(new, "SafeFP4, SafeFP4, half", "__nv_fp4_e2m1, SafeFP4, __half")
    rewrite(new, "false, false, false", "false,false,  /* bias */ false")
    for path in list(new.rglob("*.generated.cu")):
        path.rename(path.with_name(f"other_{path.name}"))
        path.with_name(f"other_{path.name}").write_text("\n\n" + path.with_name(f"other_{path.name}").read_text())
    assert as_json(*roots, 0)["changes"] == []


def test_a_launcher_with_one_more_parameter(roots: tuple[Path, Path]) -> None:
    _, new = roots
    edit(new, PATH, ("BIAS_, SWAP_AB_)  ", "BIAS_, SWAP_AB_, MORE_)"))
    rewrite(new, ");", ", false);")
    assert as_json(*roots, 0)["changes"] == []
    rewrite(new, ", false);", ", true);")
    summary = as_json(*roots, 1)["summary"]
    assert (summary["added"], summary["removed"], summary["same"]) == (32, 32, 0)


def test_a_larger_carveout(roots: tuple[Path, Path]) -> None:
    """208 bytes were left beside three stages, so 209 more take one away; nvcc's table has 74,752 for two."""
    old, new = roots
    edit(new, PATH, (CARVEOUT, CARVEOUT[:-1] + " + 209)"))
    content = as_json(old, new, 0)
    mended = [each for each in content["changes"] if each["no_longer_fails"]]
    assert {(each["subject"].split()[2], each["old"]["total"], each["new"]["total"]) for each in mended} == {
        ("128×256×128", 102_400, 74_752),
        ("256×128×128", 102_400, 74_752),
    }
    for each in mended:
        assert each["old"]["verdicts"] == {"12.0": "over-limit", "12.1": "over-limit"}
        assert each["new"]["verdicts"] == {"12.0": "runs", "12.1": "runs"}
        assert "stage count StageCountAutoCarveout<17408> → StageCountAutoCarveout<17617>" in each["causes"]
        assert "mainloop tensors 82,944 B → 55,296 B" in each["causes"]
    (launcher,) = content["launchers"]
    assert [each.endswith("+ 209)>;") for each in launcher["added"]] == [True]
    assert len(launcher["removed"]) == 1
    back = as_json(new, old, 1)
    assert back["summary"]["newly_failing"] == len(mended) == 4
    assert {tuple(each["newly_fails"]) for each in back["changes"] if each["newly_fails"]} == {("12.0", "12.1")}


def test_another_cutlass(roots: tuple[Path, Path]) -> None:
    """CUTLASS 4.4.2's builder sets aside other bytes than 4.2.1's; nvcc and libclang agree on both tables."""
    old, new = roots
    for root, release in ((old, "0.5.3"), (new, "0.6.8")):
        include = root / "3rdparty/cutlass/include"
        shutil.rmtree(include)
        shutil.copytree(CUTLASS[release], include)
    content = as_json(old, new, 0)
    assert (content["old"]["cutlass"], content["new"]["cutlass"]) == ("4.2.1", "4.4.2")
    for each in content["changes"]:
        assert each["status"] == "changed"
        assert any(cause.startswith("set aside by the builder") for cause in each["causes"])


def test_what_comes_and_goes(roots: tuple[Path, Path]) -> None:
    old, new = roots
    generate(old, [(128, 128, 128), (128, 64, 128)])
    generate(new, [(128, 128, 128), (128, 256, 128)])
    content = as_json(old, new, 1)
    summary = content["summary"]
    assert (summary["added"], summary["removed"], summary["changed"], summary["same"]) == (8, 8, 0, 8)
    failing = [each for each in content["changes"] if each["newly_fails"]]
    assert {each["status"] for each in failing} == {"added"}
    assert {each["subject"].split()[1] for each in failing} == {"FP4×FP4→FP16", "FP4×FP4→BF16"}
    assert {each["new"]["total"] for each in failing} == {102_400}
    text = cutlint("diff", old, new, "--target", "gb10", cwd=old.parent)
    assert text.returncode == 1
    assert "added: 102,400 B, 3 stages (over-limit on 12.1): 2 instantiations" in text.stdout
    assert "Sm120 FP4×FP4→FP16: 4: 128×64×128; NONE/FINALIZE" in text.stdout
    assert "2 instantiations newly failing. Judged for 12.1." in text.stdout
    assert max(map(len, text.stdout.split("\n"))) < 240


def test_an_instantiation_that_is_there_twice(roots: tuple[Path, Path]) -> None:
    _, new = roots
    path = next(new.rglob("m128_n64_k128.generated.cu"))
    first = path.read_text().split("\n")[0]
    path.write_text(path.read_text() + first + "\n")
    summary = as_json(*roots, 0)["summary"]
    assert (summary["added"], summary["same"]) == (1, 32)


def test_what_is_not_sized_is_said(roots: tuple[Path, Path]) -> None:
    for root in roots:
        (root / "generated/mixed.generated.cu").write_text(
            "template void kernels::small_launcher<half, cute::Shape<_128, _64>>(int);\n"
        )
    content = as_json(*roots, 0)
    assert content["summary"]["not_sized"] == 1
    assert len(content["problems"]) == 2
    rewrite(roots[1], "template void kernels::small", "template void other::kernels::small")
    assert as_json(*roots, 0)["changes"] == []
    rewrite(roots[1], "_64", "_32")
    statuses = [(each["status"], each["name"]) for each in as_json(*roots, 0)["changes"]]
    assert [status for status, _ in statuses] == ["removed", "added"]
    assert all("small_launcher" in name for _, name in statuses)


def test_markdown(roots: tuple[Path, Path]) -> None:
    old, new = roots
    edit(old, PATH, (CARVEOUT, CARVEOUT[:-1] + " + 209)"))
    output = old.parent / "comment.md"
    done = cutlint("diff", old, new, "--format", "markdown", "-o", output, cwd=old.parent)
    assert done.returncode == 1
    text = output.read_text()
    assert text.startswith("### cutlint diff: 4 instantiations newly failing\n")
    assert "| **newly failing** | 74,752 B, 2 stages (runs on 12.0 and 12.1) → 102,400 B, 3 stages" in text


@pytest.mark.parametrize("words", [("old", "nowhere"), ("nowhere", "new"), ("old", "new", "--target", "h100")])
def test_errors(roots: tuple[Path, Path], words: tuple[str, ...]) -> None:
    folders = {"old": str(roots[0]), "new": str(roots[1])}
    done = cutlint("diff", *(folders.get(word, word) for word in words), cwd=roots[0].parent)
    assert done.returncode == 2
    assert "error: n" in done.stderr  # no such file; none of the kernels
    assert MACRO not in done.stderr


@pytest.mark.download
def test_a_real_upgrade() -> None:
    """Both releases have the generator's 2,020 and 1,984 lines of the macro: 0.7.4's adds the ACTIVATION fusion, MXFP8 (24)
    and bfloat16 (12). It also makes mixed-input kernels for FP8 and MXFP4, some of which need more than an H200 has."""
    done = cutlint("diff", "flashinfer-python==0.6.11", "flashinfer-python==0.7.4", "--format", "json")
    assert done.returncode == 1, done.stderr
    content = json.loads(done.stdout)
    summary = content["summary"]
    assert (summary["old"], summary["new"]) == (2_838, 3_398)
    changed = [each for each in content["changes"] if each["status"] == "changed"]
    assert {each["name"] for each in changed} == {
        "sm90_generic_mixed_moe_gemm_kernelLauncher"
    }  # whose scales are packed no more
    with (FIXTURES / "truth/flashinfer-0.6.11-sm90-mixed.csv").open() as file:
        before = {tuple(row.values())[:9]: int(row["smem"]) for row in csv.DictReader(file)}
    compared = [each for each in changed if tuple(each["arguments"][:9]) in before]
    assert len(compared) > 20
    assert all(each["old"]["total"] == before[tuple(each["arguments"][:9])] for each in compared)
    added = [each for each in content["changes"] if each["name"] == MACRO and each["status"] == "added"]
    assert len(added) == 2_020 - 1_984
    assert {each["subject"].split()[-2] for each in added} == {"ACTIVATION"}
    assert all(set(each["new"]["verdicts"].values()) == {"runs"} for each in added)
    (launcher,) = [each for each in content["launchers"] if each["name"] == MACRO]
    assert any("ACTIVATION" in each for each in launcher["added"])
    with (FIXTURES / "truth/flashinfer-0.7.4-sm90-mixed.csv").open() as file:
        over = {tuple(row.values())[:9] for row in csv.DictReader(file) if row["smem"] and int(row["smem"]) > 232_448}
    failing = [each for each in content["changes"] if each["newly_fails"]]
    assert {tuple(each["arguments"][:9]) for each in failing} == over
    removed = [each for each in content["changes"] if each["status"] == "removed"]
    assert {tuple(each["arguments"][:2]) for each in removed} == {("half", "__nv_fp4_e2m1")}
