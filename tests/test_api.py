"""The Python interface: the records of the JSON report, and the example of docs/api.md."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from conftest import CHECKOUT
from test_cli import FAILING, FITTING, cutlint

import cutlint as package
from cutlint.errors import CutlintError


def test_the_records_of_the_json_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernels.cu").write_text(FAILING + FITTING)
    monkeypatch.chdir(tmp_path)
    report = package.check("kernels.cu", checkout=CHECKOUT, target=["rtx-5090"])
    done = cutlint(
        "check", "kernels.cu", "--checkout", CHECKOUT, "--target", "rtx-5090", "--format", "json", "--all", cwd=tmp_path
    )
    assert json.loads(msgspec.json.encode(report)) == json.loads(done.stdout)
    assert next(each.footprint.total for each in report.instantiations if each.footprint) == 102_400
    assert len(report.instantiations) == 2
    assert [each.rule for each in report.findings if each.severity == "error"] == ["CUT101"]


def test_errors_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CutlintError, match="unknown target 'rtx-1'"):
        package.check(CHECKOUT, target=["rtx-1"])
    with pytest.raises(CutlintError, match="nowhere"):
        package.check("nowhere")


def test_the_example_of_the_document(tmp_path: Path) -> None:
    text = (Path(__file__).parent.parent / "docs/api.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", text, re.S)
    (tmp_path / "generated").mkdir()
    (tmp_path / "generated/a.cu").write_text(FAILING)
    (tmp_path / "flashinfer").symlink_to(CHECKOUT)
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "CUT101 generated/a.cu 1 needs 102,400 B" in done.stdout
    assert "FINALIZE SwapAB=false 102400 B, 3 stages" in done.stdout
