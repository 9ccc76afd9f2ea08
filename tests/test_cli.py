"""The command as a person uses it: on the small checkout, in a process of its own."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from conftest import CHECKOUT, FIXTURES, LAUNCHER

from cutlint import report

MACRO = "INSTANTIATE_TMA_WARP_SPECIALIZED_MOE_GEMM"
FAILING = f"{MACRO}(Sm120, SafeFP4, SafeFP4, half, void, EpilogueOpDefault, FINALIZE, 128, 256, 128, 1, 1, 1, false, false, false, false);\n"
FITTING = FAILING.replace("FINALIZE", "NONE")


def cutlint(*words: str | Path, cwd: Path = CHECKOUT, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "cutlint.cli", *map(str, words)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def as_json(*words: str | Path, cwd: Path = CHECKOUT) -> dict[str, Any]:
    done = cutlint("check", *words, "--format", "json", cwd=cwd)
    assert done.returncode in (0, 1), done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def check_file(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    path = folder / "kernels.cu"
    path.write_text(text)
    return cutlint("check", path, "--checkout", CHECKOUT, *words, cwd=folder)


def test_a_checkout_with_its_generator() -> None:
    done = cutlint("check", "--generate")
    assert done.returncode == 1, done.stderr
    assert (
        "needs 102,400 B of shared memory per block, 1,024 B over the limit of 101,376 B on 12.0 and 12.1"
        in done.stdout
    )
    assert "3 stages chosen, 2 would fit" in done.stdout
    assert done.stdout.count("FINALIZE SwapAB=false") == 4
    assert "a carveout larger by 209 B: 2 stages, 74,752 B" in done.stdout
    assert "SwapAB=true: 2 stages, 74,752 B" in done.stdout
    assert f"{LAUNCHER.name}:74:7  the stage count is decided here" in done.stdout
    assert done.stderr == ""
    assert "\x1b" not in done.stdout, "no colour when it is not a terminal"


def test_without_generated_files_the_error_names_the_flag() -> None:
    done = cutlint("check", ".")
    assert done.returncode == 2
    assert "--generate" in done.stderr
    assert "runs the checkout's own" in done.stderr
    assert done.stdout == ""


def test_one_file_with_the_checkout_named(tmp_path: Path) -> None:
    assert check_file(tmp_path, FAILING).returncode == 1
    assert check_file(tmp_path, FITTING).returncode == 0


def test_one_file_without_a_launcher_at_hand(tmp_path: Path) -> None:
    (tmp_path / "kernels.cu").write_text(FITTING)
    done = cutlint("check", "kernels.cu", cwd=tmp_path)
    assert done.returncode == 2
    assert "--checkout" in done.stderr


@pytest.mark.parametrize(("target", "code"), [("rtx-pro-6000", 1), ("gb10", 1), ("h200", 2)])
def test_targets_choose_what_counts(tmp_path: Path, target: str, code: int) -> None:
    assert check_file(tmp_path, FAILING, "--target", target).returncode == code


@pytest.mark.parametrize(("least", "code"), [("error", 0), ("warning", 1), ("note", 1), ("never", 0)])
def test_fail_on(tmp_path: Path, least: str, code: int) -> None:
    assert check_file(tmp_path, FITTING, "--fail-on", least).returncode == code  # CUT110 is a warning


def test_select_and_ignore(tmp_path: Path) -> None:
    assert "CUT110" not in check_file(tmp_path, FITTING, "--ignore", "CUT1").stdout
    assert check_file(tmp_path, FAILING, "--select", "CUT110").returncode == 0
    done = check_file(tmp_path, FAILING, "--select", "CUT7")
    assert done.returncode == 2
    assert "no rule matches 'CUT7'" in done.stderr


def test_configuration(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.cutlint]\ntarget = ["gb10"]\nfail-on = "warning"\n')
    done = check_file(tmp_path, FITTING)
    assert done.returncode == 1
    assert "on 12.1" in check_file(tmp_path, FAILING).stdout
    (tmp_path / "cutlint.toml").write_text('[per-file-ignores]\n"*.cu" = ["CUT101"]\n')
    assert check_file(tmp_path, FAILING).returncode == 0
    (tmp_path / "cutlint.toml").write_text("fail_on = 1\n")
    done = check_file(tmp_path, FAILING)
    assert done.returncode == 2
    assert "cutlint.toml" in done.stderr


def test_json_follows_the_published_schema() -> None:
    schema = json.loads((FIXTURES.parent / "reports" / "cutlint.schema.json").read_text())
    assert schema == json.loads(msgspec.json.encode(report.schema())), "run `make schema`"
    for words in (["--generate"], ["--generate", "--all"]):
        jsonschema.validate(as_json(*words), schema)


def test_json_facts() -> None:
    content = as_json("--generate", "--all")
    assert [*content] == [
        "schema_version",
        "tool",
        "sources",
        "targets",
        "rules",
        "instantiations",
        "findings",
        "files",
        "errors",
        "fail_on",
        "baseline",
        "summary",
    ]
    assert len(content["instantiations"]) == 32
    failing = next(each for each in content["instantiations"] if each["footprint"]["total"] == 102_400)
    assert failing["config"]["kernel_schedule"] == "KernelScheduleAuto"
    cooperative = "KernelPtrArrayTmaWarpSpecializedCooperativeBlockScaledSm120"  # sm120_blockscaled_mma_builder.inl
    assert failing["config"]["resolved_schedule"] == cooperative
    assert failing["config"]["stage_count"] == "StageCountAutoCarveout<17408>"
    assert failing["arguments"]["FUSION_"] == "FINALIZE"
    assert failing["footprint"]["engine"] == "model"
    assert failing["footprint"]["refused"] is None
    assert failing["footprint"]["epilogue_tile"] == [64, 32]
    assert failing["footprint"]["envelope"] == 158_720  # 27,648 a stage + 128·256·4
    assert sum(region["size"] for region in failing["footprint"]["regions"]) == 102_400
    finding = next(each for each in content["findings"] if each["rule"] == "CUT101")
    assert finding["targets"] == ["12.0", "12.1"]
    assert [fix["kind"] for fix in finding["fixes"]] == ["carveout", "stage-count", "swap-ab", "tile"]
    assert all(fix["total"] <= 101_376 for fix in finding["fixes"])
    assert finding["related"][0]["range"]["start"] == {"line": 73, "character": 6}
    summary = content["summary"]
    assert summary["instantiations"] == 32 == summary["sized"] + summary["refused"] + summary["not_sized"]


def test_json_without_all_lists_what_findings_are_about() -> None:
    content = as_json("--generate", "--select", "CUT101")
    assert len(content["instantiations"]) == len(content["findings"]) == 4


def test_the_same_run_gives_the_same_bytes() -> None:
    first, second = (cutlint("check", "--generate", "--all", "--format", "json").stdout for _ in range(2))
    assert first == second


def test_cores_do_not_change_a_byte(tmp_path: Path) -> None:
    for number in range(70):
        text = FAILING.replace("128, 256", f"{128 * (1 + number % 2)}, {32 * (1 + number % 8)}") + FITTING
        (tmp_path / f"{number:02}.generated.cu").write_text(text if number % 9 else "// nothing\n")
    command = [sys.executable, "-m", "cutlint.cli", "check", ".", "--checkout", CHECKOUT, "--format", "json", "--all"]
    pin = "import os, runpy, sys\nif hasattr(os, 'sched_setaffinity'):\n    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    pinned = pin + "sys.argv = ['cutlint', *sys.argv[1:]]\nrunpy.run_module('cutlint.cli', run_name='__main__')\n"
    outputs = [
        subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        for words in (command, [sys.executable, "-c", pinned, *command[3:]])
    ]
    assert outputs[0].stdout == outputs[1].stdout, outputs[1].stderr
    assert json.loads(outputs[0].stdout)["summary"]["instantiations"] == 2 * 62


def test_output_file(tmp_path: Path) -> None:
    out = tmp_path / "report.json"
    done = cutlint("check", "--generate", "--format", "json", "--output", out)
    assert done.returncode == 1
    assert done.stdout == ""
    assert json.loads(out.read_text())["schema_version"] == report.SCHEMA_VERSION
    assert [each.name for each in tmp_path.iterdir()] == ["report.json"]
    done = cutlint("check", "--generate", "--output", tmp_path / "nowhere" / "report.txt")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def test_a_tile_of_too_few_stages_is_told_from_one_that_cutlass_refuses(tmp_path: Path) -> None:
    few = FITTING.replace("SafeFP4, SafeFP4", "__nv_fp8_e4m3, SafeFP4").replace("1, false,", "1, true,")
    odd = FITTING.replace("128, 256, 128", "128, 16, 128")
    done = check_file(tmp_path, few + odd)
    assert done.returncode == 1
    assert "CUT201" in done.stdout
    assert "the mainloop needs 2" in done.stdout
    assert "EPI_TILE_N must divide CTA_N" in done.stdout


def test_duplicates(tmp_path: Path) -> None:
    done = check_file(tmp_path, FITTING + FITTING)
    assert "CUT302" in done.stdout
    assert "repeats the instantiation at kernels.cu:1:1" in done.stdout


def test_what_is_not_understood_is_a_finding_and_the_rest_is_checked(tmp_path: Path) -> None:
    few = f"{MACRO}(Sm120, SafeFP4);\n"
    unknown = FITTING.replace("Sm120", "Sm999")
    other = "INSTANTIATE_SOMETHING_ELSE(1, 2);\n"
    template = "template void unheard_of_kernelLauncher<half>(half const*);\n"
    done = check_file(tmp_path, few + unknown + other + template + FAILING + f"{MACRO}(Sm120, ")
    assert done.returncode == 1
    for message in (
        "takes 17 arguments",
        "no model of Sm999",
        "no launcher of",
        "defines unheard_of_kernelLauncher",
        "no closing parenthesis",
        "1,024 B over the limit",
    ):
        assert message in done.stdout, message
    assert "Traceback" not in done.stdout + done.stderr


def test_bad_sources(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "again").symlink_to(tmp_path / "loop")
    (tmp_path / "good.cu").write_text(FAILING)
    for name, message in (("missing", "no such file or folder: missing"), ("empty", "empty"), ("loop", "loop")):
        done = cutlint("check", name, "--checkout", CHECKOUT, cwd=tmp_path)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    done = cutlint("check", "missing", "good.cu", "--checkout", CHECKOUT, cwd=tmp_path)
    assert done.returncode == 2, "part of the job was not done"
    assert "1,024 B over the limit" in done.stdout, "the rest is checked all the same"


def test_bad_files_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.generated.cu").write_bytes(b"\0\1\2\3")
    (tmp_path / "b.generated.cu").write_text("// nothing\n")
    (tmp_path / "c.generated.cu").write_text(FAILING)
    with (tmp_path / "d.generated.cu").open("wb") as file:
        file.truncate(50 * 2**20)
    (tmp_path / "e.generated.cu").write_bytes(b"\xff\xfe" + FITTING.encode())
    done = cutlint("check", ".", "--checkout", CHECKOUT, cwd=tmp_path)
    assert done.returncode == 1
    for message in ("binary", "no instantiation", "52,428,800 bytes", "2 instantiations", "1,024 B over the limit"):
        assert message in done.stdout, message


def test_a_launcher_without_its_macro(tmp_path: Path) -> None:
    shutil.copytree(CHECKOUT, tmp_path / "checkout")
    launcher = tmp_path / "checkout" / LAUNCHER.relative_to(CHECKOUT)
    launcher.write_text("#pragma once\n")
    done = cutlint("check", "--generate", cwd=tmp_path / "checkout")
    assert done.returncode == 2, "nothing was checked"
    assert f"defines {MACRO}" in done.stdout
    assert "not one of 32 instantiations" in done.stderr


def test_hostile_names_appear_as_text(tmp_path: Path) -> None:
    folder = tmp_path / "\x1b[31mred\n"
    folder.mkdir()
    (folder / "a.cu").write_text(FAILING)
    done = cutlint("check", folder, "--checkout", CHECKOUT, cwd=tmp_path)
    assert done.returncode == 1
    assert "\x1b" not in done.stdout
    assert r"\x1b[31mred\n" in done.stdout


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cutlint.toml", '[per-file-ignores]\n"!" = ["CUT101"]\n'),
        ("cutlint.toml", '[per-file-ignores]\n"*" = ["NO1"]\n'),
    ]
    + [("cutlint.toml", "select = ["), ("cutlint.toml", "select = 3")],
)
def test_bad_configuration(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    done = check_file(tmp_path, FAILING)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")


def test_a_project_file_that_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("tool = 3\n")
    assert check_file(tmp_path, FAILING).returncode == 1


def test_patterns_are_relative_to_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "cutlint.toml").write_text('[per-file-ignores]\n"gen/*" = ["CUT101"]\n')
    (tmp_path / "gen").mkdir()
    (tmp_path / "sub").mkdir()
    (tmp_path / "gen" / "kernels.cu").write_text(FAILING)
    for cwd, source in ((tmp_path, "gen"), (tmp_path, tmp_path / "gen"), (tmp_path / "sub", "../gen")):
        assert cutlint("check", source, "--checkout", CHECKOUT, cwd=cwd).returncode == 0


def test_output_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "kernels.cu").write_text(FAILING)
    words = [sys.executable, "-m", "cutlint.cli", "check", "kernels.cu", "--checkout", str(CHECKOUT)]
    done = subprocess.run(
        words,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    if Path("/dev/full").exists():
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(words, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
        assert done.returncode == 2
        assert b"Traceback" not in done.stderr


def test_nothing_in_a_file_is_skipped_in_silence(tmp_path: Path) -> None:
    wrapper = f"#define W(N) {FITTING.strip().replace('256', 'N')}\nW(256);\n"
    done = check_file(tmp_path, FITTING + wrapper + "INSTANTIATE_TMA_WARP_SP")
    assert "wraps instantiations" in done.stdout
    assert "INSTANTIATE_TMA_WARP_SP is not followed by arguments" in done.stdout


def test_files_without_instantiations_are_named(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.cu").write_text("// nothing\n")
    (tmp_path / "d.cu").write_text(FITTING)
    done = cutlint("check", ".", "--checkout", CHECKOUT, cwd=tmp_path)
    assert "3 files hold no instantiation that cutlint knows: a.cu, b.cu, c.cu" in done.stdout


def test_conditions_nested_without_end(tmp_path: Path) -> None:
    text = "#if A\n" * 10_000 + FITTING + "#endif\n" * 10_000
    assert "CUT101" in check_file(tmp_path, text + FAILING).stdout


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.cu")).write_text(FAILING)
    for form in ("text", "json"):
        done = cutlint("check", ".", "--checkout", CHECKOUT, "--format", form, cwd=tmp_path)
        assert done.returncode == 1, done.stderr
        assert "\ufffd.cu" in done.stdout


def test_unknown_target_and_architecture() -> None:
    done = cutlint("check", "--generate", "--target", "rtx-9999")
    assert done.returncode == 2
    assert "gb10" in done.stderr
    done = cutlint("check", "--generate", "--arch", "75")
    assert done.returncode == 2
    assert "90" in done.stderr


def test_rules_explain_targets() -> None:
    rules = cutlint("rules")
    assert rules.returncode == 0
    assert "CUT101  error" in rules.stdout
    for name in ("CUT101", "cut101", "over-limit"):
        assert "Error Internal" in " ".join(cutlint("explain", name).stdout.split())
    assert cutlint("explain", "CUT000").returncode == 2
    assert "sm_120  12.0  101,376 B" in cutlint("targets").stdout


def test_byte_map() -> None:
    where = 'cta_n == 256 and fusion == "FINALIZE" and not swap_ab'
    done = cutlint("map", ".", "--generate", "--where", where)
    assert done.returncode == 0, done.stderr
    words = [line.replace(",", "").split() for line in done.stdout.splitlines()]
    rows = [(int(each[0]), int(each[1])) for each in words if len(each) > 2 and each[0].isdigit() and each[1].isdigit()]
    assert all(offset + size == following for (offset, size), (following, _) in itertools.pairwise(rows))
    assert sum(size for _, size in rows) == 102_400
    assert "24,576  mainloop.A  (3 stages of 8,192)" in done.stdout
    assert "102,400  total: 3 stages" in done.stdout
    assert "101,376  limit on 12.0 and 12.1: 1,024 B over: does not run" in done.stdout
    assert "and 1 more with the same map" in done.stdout  # half and bf16


def test_byte_map_of_a_line(tmp_path: Path) -> None:
    (tmp_path / "kernels.cu").write_text(FITTING + FAILING)
    done = cutlint("map", "kernels.cu:2", "--checkout", CHECKOUT, "--target", "gb10", cwd=tmp_path)
    assert "kernels.cu:2:1" in done.stdout
    assert "limit on 12.1: 1,024 B over" in done.stdout
    assert cutlint("map", "kernels.cu:9", "--checkout", CHECKOUT, cwd=tmp_path).returncode == 2


@pytest.mark.parametrize("where", ["cta_q == 1", "cta_m ==", "cta_m.__class__.__mro__"])
def test_byte_map_of_an_expression_that_is_none(where: str) -> None:
    done = cutlint("map", ".", "--generate", "--where", where)
    assert done.returncode == 2
    assert "--where" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_cutlass_that_the_model_was_not_checked_on(tmp_path: Path) -> None:
    shutil.copytree(CHECKOUT, tmp_path / "checkout")
    version = next((tmp_path / "checkout").rglob("version.h"))
    version.write_text(version.read_text().replace("MAJOR 4", "MAJOR 9"))
    done = cutlint("check", "--generate", cwd=tmp_path / "checkout")
    assert done.stdout.count("CUT903") == 1
    assert "CUTLASS 9.5.0 is not among the versions" in done.stdout
    assert "--engine clang" in done.stdout
    content = as_json("--generate", "--all", cwd=tmp_path / "checkout")
    assert {each["footprint"]["checked"] for each in content["instantiations"]} == {False}


@pytest.mark.parametrize("words", [[], ["--help"], ["check", "--help"]])
def test_help(words: Sequence[str]) -> None:
    done = cutlint(*words)
    assert "Usage:" in done.stdout + done.stderr


def test_help_loads_nothing_heavy() -> None:
    code = "import sys\nsys.argv = ['cutlint', '--help']\nfrom cutlint.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
    code += "print([m for m in ('jinja2', 'tree_sitter', 'rich', 'msgspec', 'packaging', 'platformdirs') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_schema_is_valid_json_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(report.schema())
    assert msgspec.json.encode(report.schema())


def test_a_fingerprint_stays_when_lines_move_and_is_one_finding_s_own(tmp_path: Path) -> None:
    marks = []
    for text in (FAILING + FAILING, "// a line more\n\n" + FAILING + FITTING + FAILING):
        done = check_file(tmp_path, text, "--format", "json")
        marks.append([each["fingerprint"] for each in json.loads(done.stdout)["findings"] if each["rule"] == "CUT101"])
    assert marks[0] == marks[1]
    assert len(set(marks[0])) == 2
