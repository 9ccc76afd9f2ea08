"""Shell completion, which click makes: the scripts are there and the shells get their answers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from test_cli import cutlint


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script(shell: str, tmp_path: Path) -> None:
    done = cutlint(_CUTLINT_COMPLETE=f"{shell}_source")
    assert done.returncode == 0, done.stderr
    assert f"_CUTLINT_COMPLETE={shell}_complete" in done.stdout
    assert "cutlint" in done.stdout
    program = shutil.which(shell)
    if program is not None:
        (tmp_path / "script").write_text(done.stdout)
        subprocess.run([program, "-n", tmp_path / "script"], check=True, timeout=30)


def answers(words: str, position: int, folder: Path) -> list[str]:
    done = cutlint(cwd=folder, _CUTLINT_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(position))
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_commands_options_and_files(tmp_path: Path) -> None:
    assert answers("cutlint che", 1, tmp_path) == ["plain,check"]
    assert "plain,sarif" in answers("cutlint check --format s", 3, tmp_path)
    assert "plain,--statistics" in answers("cutlint check --sta", 2, tmp_path)
    assert answers("cutlint check kern", 2, tmp_path) == ["file,kern"]
