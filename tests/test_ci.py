"""What docs/ci.md and .pre-commit-hooks.yaml offer: it parses, and the commands in it are ones that cutlint takes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import CHECKOUT, FIXTURES
from test_cli import FAILING, cutlint

from cutlint.commands.check import check
from cutlint.formats import FORMATS

TOP = FIXTURES.parent
PAGE = (TOP / "docs" / "ci.md").read_text()
(HOOK,) = yaml.safe_load((TOP / ".pre-commit-hooks.yaml").read_text())


def blocks(language: str) -> list[Any]:
    texts = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)
    return [yaml.safe_load(text) for text in texts]


def test_the_workflow_uploads_what_cutlint_writes() -> None:
    workflow, steps, gitlab, page, _ = blocks("yaml")
    assert workflow["permissions"]["security-events"] == "write"
    upload = workflow["jobs"]["cutlint"]["steps"][-1]
    written = workflow["jobs"]["cutlint"]["steps"][-2]["run"].split()[-1]
    assert upload["with"]["sarif_file"] == written
    assert gitlab["cutlint"]["artifacts"]["reports"]["codequality"] == gitlab["cutlint"]["script"][-1].split()[-1]
    assert all("cutlint check" in step["run"] for step in [*steps, page[0]])


def test_its_commands_are_understood() -> None:
    commands = re.findall(r"cutlint (check [^'\n]*)", PAGE)
    assert len(commands) >= 5
    for line in commands:
        words = shlex.split(line.partition(" >>")[0])
        check.make_context("cutlint check", words[1:])
    assert set(re.findall(r"^\| `(\w+)` \|", PAGE, re.M)) >= set(FORMATS) - {"text"}


@pytest.mark.parametrize(
    ("path", "concerned"),
    [
        ("gen/gemm_grouped/120/a.generated.cu", True),
        ("csrc/kernels/launchers/moe_gemm_tma_ws_launcher.inl", True),
        ("csrc/kernels/moe_gemm_template_dispatch_tma_ws.h", True),
        ("csrc/kernels/cutlass_heuristic.cpp", True),
        ("flashinfer/jit/gemm/cutlass/generate_kernels.py", True),
        ("README.md", False),
        ("csrc/other.h", False),
    ],
)
def test_the_hook_runs_for(path: str, concerned: bool) -> None:
    assert bool(re.search(HOOK["files"], path)) == concerned


def test_the_hooks_entry(tmp_path: Path) -> None:
    """As pre-commit runs it: the entry, then the user's args, in the root of the repository."""
    program, *words = shlex.split(HOOK["entry"])
    assert program == "cutlint"
    assert HOOK["pass_filenames"] is False
    shutil.copytree(CHECKOUT, tmp_path, dirs_exist_ok=True)
    assert cutlint(*words, "--generate", cwd=tmp_path).returncode == 1
    (tmp_path / "kernels.generated.cu").write_text(FAILING)
    assert cutlint(*words, "kernels.generated.cu", cwd=tmp_path).returncode == 1


@pytest.mark.download
@pytest.mark.skipif(shutil.which("git") is None or not (TOP / ".git").exists(), reason="needs git and a clone")
def test_with_pre_commit_itself(tmp_path: Path) -> None:
    """Installs cutlint from this repository as pre-commit does, and runs the hook on a small one."""
    repository = tmp_path / "repository"
    shutil.copytree(CHECKOUT, repository)
    environment = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "home"), "GIT_CONFIG_GLOBAL": os.devnull}
    environment = {name: value for name, value in environment.items() if name != "PYTHONPATH"}

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            list(map(str, words)),
            cwd=repository,
            env=environment,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    for words in (["init", "-q"], ["add", "-A"]):
        assert run("git", *words).returncode == 0
    config = repository / "hooks.yaml"
    commit = run("git", "-C", TOP, "rev-parse", "HEAD").stdout.strip()
    hook = {"id": "cutlint", "args": ["--generate"]}
    config.write_text(yaml.safe_dump({"repos": [{"repo": TOP.as_uri(), "rev": commit, "hooks": [hook]}]}))
    done = run(sys.executable, "-m", "pre_commit", "run", "--all-files", "--config", config, "--color", "never")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "- exit code: 1" in done.stdout
    assert "1,024 B over the limit" in done.stdout
