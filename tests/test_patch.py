"""Edits of launchers, and ``cutlint check --diff``: the patch, applied to a copy, makes the findings go away."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import CHECKOUT, LAUNCHER, read_launcher, sm120
from host import TILES, checkout, edit, generate
from test_clang import SMALL, evaluate, open_small, small
from test_cli import FAILING, cutlint

from cutlint import edits, patch
from cutlint.clang import engine
from cutlint.sizing import Sizer

PATH = LAUNCHER.relative_to(CHECKOUT)
AUTO = (
    "cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(                            \\\n"
    "          sizeof(typename Epilogue::SharedStorage))>;                                                               \\"
)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return checkout(tmp_path)


def check(root: Path, *words: str | Path) -> dict[str, Any]:
    sources = words or (".",)
    done = cutlint("check", *sources, "--select", "CUT101", "--format", "json", "--all", cwd=root)
    assert done.returncode in (0, 1), done.stderr
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def figures(content: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {
        str(each["arguments"]): (each["footprint"]["total"], each["footprint"]["stages"])
        for each in content["instantiations"]
    }


def git_apply(root: Path, text: bytes) -> None:
    done = subprocess.run(["git", "apply", "-"], cwd=root, input=text, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


# -- edits


def test_fixes_name_the_edited_line(root: Path) -> None:
    for finding in check(root)["findings"]:
        carveout, explicit, swap, tile = finding["fixes"]
        assert carveout["edit"]["line"] == "sizeof(typename Epilogue::SharedStorage)) + 209>;"
        assert explicit["edit"]["line"] == "using Stages = cutlass::gemm::collective::StageCount<2>;"
        assert swap["edit"] is tile["edit"] is None
        for fix in (carveout, explicit):
            where = fix["edit"]["where"]
            assert where["file"] == PATH.as_posix()
            data = (root / where["file"]).read_bytes()
            start, end = fix["edit"]["span"]
            before = data[:start].count(b"\n"), start - data.rfind(b"\n", 0, start) - 1
            assert tuple(where["range"]["start"].values()) == before
            copy = root / "edited.inl"
            copy.write_bytes(data[:start] + fix["edit"]["text"].encode() + data[end:])
            assert all(line.endswith("\\") == old.endswith("\\") for line, old in zip(
                copy.read_text().split("\n")[16:70], data.decode().split("\n")[16:70], strict=True
            ))  # fmt: skip


@pytest.mark.parametrize(
    ("written", "stages"),
    [
        (AUTO, 2),
        ("cutlass::gemm::collective::StageCountAuto; \\", 3),
        ("cutlass::gemm::collective::StageCount<3>; \\", None),
    ],
)
def test_the_forms_of_a_stage_count(edited: Callable[..., Sizer], written: str, stages: int | None) -> None:
    sizer = edited((AUTO, written))
    launcher = sizer.launcher
    arguments = sm120(launcher, (128, 256, 128), "FINALIZE")
    explicit = edits.with_stages(launcher, 2)
    assert explicit is not None
    assert explicit.line == "using Stages = cutlass::gemm::collective::StageCount<2>;"
    raised = edits.raised_carveout(launcher, 209)
    assert (raised is None) == (stages is None)
    before = sizer.size(arguments).footprint
    assert before is not None
    assert before.stages == 3
    for change, expected in ((explicit, 2), (raised, stages)):
        if change is not None:
            Path(launcher.path).write_bytes(edits.applied(launcher.data, change))
            again = Sizer(read_launcher(Path(launcher.path), Path(launcher.path).parents[9]), sizer.cutlass)
            after = again.size(arguments).footprint
            assert after is not None
            assert after.stages == expected


@pytest.mark.parametrize(
    "written",
    ["std::conditional_t<SwapAB, cutlass::gemm::collective::StageCount<2>, StageCountAuto>; \\", "OwnStages<3>; \\"],
)
def test_a_stage_count_of_another_form_is_not_edited(edited: Callable[..., Sizer], written: str) -> None:
    launcher = edited((AUTO, written)).launcher
    assert edits.with_stages(launcher, 2) is None
    assert edits.raised_carveout(launcher, 1) is None


def test_the_compiler_makes_the_same_of_an_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage of the small tree's 64×32×64 is 6,144 bytes: that much more carveout is one stage less."""
    monkeypatch.setattr(engine, "cache_folder", lambda: tmp_path / "cache")
    root = Path(shutil.copytree(SMALL, tmp_path / "small"))
    header, zeros = root / "3rdparty/cutlass/include/cutlass/cutlass.h", "0, " * 9
    header.write_text(  # a builder with as many arguments as CUTLASS's
        header.read_text().replace(
            "template <class Arch, class Tile, class StageCount>",
            f"template <class Arch, class Tile, {'int, ' * 9} class StageCount>",
        )
    )
    path = root / Path(open_small()[0].path).relative_to(SMALL)
    path.write_text(path.read_text().replace("<Arch, Tile, Carveout>", f"<Arch, Tile, {zeros}Carveout>"))
    launcher, _ = open_small(root)
    item = small("Sm90", 64, 32, 64)
    assert evaluate([item], root)[0].stages == 3
    for condition, stages in ((None, 2), ("TILE_K_ == 32", 3), ("TILE_K_ == 64 && !BIAS_", 2)):
        change = edits.raised_carveout(launcher, 6_144, condition)
        assert change is not None
        path.write_bytes(edits.applied(launcher.data, change))
        assert evaluate([item], root)[0].stages == stages


# -- patches


def test_a_patch_makes_the_findings_go_away(root: Path) -> None:
    before = check(root)
    assert len(before["findings"]) == 4
    text = (root / PATH).read_text()
    done = cutlint("check", ".", "--diff", cwd=root)
    assert done.returncode == 1
    assert (root / PATH).read_text() == text, "nothing is applied"
    assert "4 instantiations over the limit would fit, with 2 stages" in done.stderr
    assert "no other instantiation of the launcher would change" in done.stderr
    git_apply(root, done.stdout.encode())
    after = check(root)
    assert after["findings"] == []
    old, new = figures(before), figures(after)
    changed = {key for key in old if old[key] != new[key]}
    assert {old[key] for key in changed} == {(102_400, 3)}
    assert {new[key] for key in changed} == {(74_752, 2)}
    assert len(changed) == 4
    again = cutlint("check", ".", "--diff", cwd=root)
    assert (again.returncode, again.stdout) == (0, "")
    assert "nothing to change" in again.stderr


def test_only_what_fails_is_changed(root: Path) -> None:
    """128×64×256 with SwapAB, too, leaves 208 bytes and runs, exactly at the limit: a larger carveout for all would take one
    of its three stages."""
    generate(root, [*TILES, (128, 64, 256)])
    before = figures(check(root))
    done = cutlint("check", ".", "--diff", "-o", "fix.patch", cwd=root)
    text = (root / "fix.patch").read_bytes()
    assert done.stdout == ""
    added = [line for line in text.decode().split("\n") if line.startswith("+ ")]
    assert len(added) == 1
    assert " ? 209 : 0)>;" in added[0]
    git_apply(root, text)
    content = check(root)
    assert content["findings"] == []
    after = figures(content)
    assert all(before[key][0] > 101_376 for key in before if before[key] != after[key])


@pytest.mark.parametrize("extra", [b"", "// caf\u00e9".encode("latin-1")])
def test_windows_lines_no_last_newline_and_bytes_that_are_not_utf_8(root: Path, extra: bytes) -> None:
    (root / PATH).write_bytes(((root / PATH).read_bytes() + extra).rstrip(b"\n").replace(b"\n", b"\r\n"))
    assert len(check(root)["findings"]) == 4
    done = cutlint("check", ".", "--diff", "-o", "fix.patch", cwd=root)
    assert done.returncode == 1, done.stderr
    git_apply(root, (root / "fix.patch").read_bytes())
    assert check(root)["findings"] == []
    assert b"\n" not in (root / PATH).read_bytes().replace(b"\r\n", b"")


def test_the_last_line_is_in_the_patch(tmp_path: Path) -> None:
    """git wants to be told of a missing newline."""
    before, after = b"a\nb", b"a\nc"
    (tmp_path / "x").write_bytes(before)
    git_apply(tmp_path, patch.unified("x", before, after).encode())
    assert (tmp_path / "x").read_bytes() == after


def test_where_no_launcher_edit_helps(root: Path) -> None:
    """Two stages of 256×256×256 are 147,456 B of operands alone."""
    lines = FAILING.replace("128, 256, 128", "256, 256, 256")
    (root / "generated/cutlass_instantiations/120/more.generated.cu").write_text(lines)
    edit(
        root,
        PATH,
        (
            "cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(",
            "cutlass::gemm::collective::StageCount<(2 + 0 * ",
        ),
    )
    done = cutlint(
        "check", "generated/cutlass_instantiations/120/more.generated.cu", "--checkout", ".", "--diff", cwd=root
    )
    assert done.stdout == ""
    assert (
        "no launcher edit helps: Sm120 FP4×FP4→FP16 256×256×256 FINALIZE SwapAB=false: not even 2 stages fit"
        in done.stderr
    )
    assert done.returncode == 1


def test_a_stage_count_that_is_not_understood(root: Path) -> None:
    edit(root, PATH, ("using Stages = ", "using Hidden = "), ("Cluster, Stages, ", "Cluster, Hidden, "))
    edit(
        root, PATH, ("using Schedule = ", "using Stages = std::conditional_t<true, Hidden, Hidden>; using Schedule = ")
    )
    edit(root, PATH, ("Cluster, Hidden, ", "Cluster, Stages, "))
    done = cutlint("check", ".", "--diff", cwd=root)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "its stage count is not an alias of a type that cutlint knows how to edit" in done.stderr


def test_a_patch_is_no_report(root: Path) -> None:
    done = cutlint("check", ".", "--diff", "--format", "json", cwd=root)
    assert done.returncode == 2
    assert "--diff prints a patch" in done.stderr


@pytest.mark.download
def test_a_real_release(tmp_path: Path) -> None:
    """The four of flashinfer #2077, mended in a copy of 0.7.4: both engines agree, and nothing else changes."""
    release = "flashinfer-python==0.7.4"
    done = cutlint("check", release, "--select", "CUT101", "--diff")
    assert done.returncode == 1
    source = Path(json.loads(cutlint("check", release, "--format", "json").stdout)["sources"][0]["root"])
    copy = Path(shutil.copytree(source, tmp_path / "flashinfer"))
    git_apply(copy, done.stdout.encode())
    changes = json.loads(cutlint("diff", release, copy, "--generate", "--format", "json").stdout)
    assert {(each["old"]["total"], each["new"]["total"]) for each in changes["changes"]} == {(102_400, 74_752)}
    assert changes["summary"]["changed"] == changes["summary"]["no_longer_failing"] == 4
    lines = [FAILING.replace("128, 256, 128", tile) for tile in ("128, 256, 128", "256, 128, 128")]
    kernels = tmp_path / "kernels.cu"
    kernels.write_text("".join(line.replace("half", output) for line in lines for output in ("half", "__nv_bfloat16")))
    for name in ("model", "clang"):
        for where, expected in ((release, (102_400, 3)), (copy, (74_752, 2))):
            content = check(tmp_path, kernels, "--checkout", where, "--engine", name)
            assert len(content["findings"]) == (4 if where == release else 0)
            assert set(figures(content).values()) == {expected}
            assert {each["footprint"]["engine"] for each in content["instantiations"]} == {name}
