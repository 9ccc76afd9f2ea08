"""The wheel: built, installed in a fresh environment, and run there."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

from conftest import CHECKOUT, FIXTURES

TOP = FIXTURES.parent


def test_the_wheel_works_in_a_fresh_environment(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path / "dist", TOP]
    subprocess.run(build, check=True, capture_output=True, timeout=300)
    wheel = next((tmp_path / "dist").glob("cutlint-*.whl"))
    names = zipfile.ZipFile(wheel).namelist()
    for name in (
        "cutlint/rules/CUT101.toml",
        "cutlint/rules/targets.toml",
        "cutlint/reports/cutlint.schema.json",
        "cutlint/py.typed",
    ):
        assert name in names
    venv.create(tmp_path / "venv", with_pip=True)
    scripts = tmp_path / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    install = [scripts / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
    subprocess.run(install, check=True, timeout=600)
    done = subprocess.run(
        [scripts / "cutlint", "check", CHECKOUT, "--generate"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "1,024 B over the limit" in done.stdout
