"""Conditions over facts, from the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import CHECKOUT
from test_cli import FAILING, FITTING, cutlint

UNSIZED = FITTING.replace("Sm120", "Sm999")


def mapped(folder: Path, where: str) -> tuple[int, str]:
    (folder / "kernels.cu").write_text(FAILING + FITTING + UNSIZED)
    done = cutlint("map", "kernels.cu", "--checkout", CHECKOUT, "--where", where, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def test_an_unknown_fact_is_named_beside_those_there_are(tmp_path: Path) -> None:
    code, said = mapped(tmp_path, "cta_q == 1 or cta_m == 128")
    assert code == 2
    assert "no fact 'cta_q'" in said
    assert "cta_k, cta_m, cta_n" in said


def test_what_is_not_known_does_not_hold(tmp_path: Path) -> None:
    """One of three instantiations has no size; the others are compared all the same."""
    code, said = mapped(tmp_path, "total > 100000")
    assert code == 0, said
    assert "kernels.cu:1:1" in said
    assert "kernels.cu:3:1" not in said
    code, said = mapped(
        tmp_path, 'arguments.FUSION_ == "NONE" and arguments.NO_SUCH_PARAMETER_ != "true" and arch == 120'
    )
    assert code == 0, said
    assert "kernels.cu:2:1" in said


@pytest.mark.parametrize(
    "where", ["total + 'x' == 1", "1 }}{{ 2", "1) }}{{ (2", "cta_m.nothing > 1", "", "cta_m / 0 == 1"]
)
def test_what_makes_no_sense_is_said(tmp_path: Path, where: str) -> None:
    code, said = mapped(tmp_path, f"{where}")
    assert code == 2, said
    assert "--where" in said
    assert "Traceback" not in said


def test_how_severe_a_rule_is(tmp_path: Path) -> None:
    (tmp_path / "kernels.cu").write_text(FAILING)

    def run(text: str) -> tuple[int, str]:
        (tmp_path / "cutlint.toml").write_text(text)
        done = cutlint("check", "kernels.cu", "--checkout", CHECKOUT, cwd=tmp_path)
        return done.returncode, done.stdout + done.stderr

    code, said = run('[severity]\nCUT101 = "note"\n')
    assert code == 0, said
    assert "note[CUT101]" in said
    code, said = run('[severity]\nCUT1 = "note"\nCUT101 = "warning"\n')  # the longer one wins
    assert "warning[CUT101]" in said
    assert "note[CUT110]" in said
    code, said = run('[severity]\nCUT7 = "note"\n')
    assert code == 2
    assert "no rule matches 'CUT7'" in said
    code, said = run('[severity]\nCUT101 = "off"\n')
    assert code == 2
    assert "'off'" in said
