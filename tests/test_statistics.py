"""--statistics: counts of everything, which add up."""

from __future__ import annotations

import json
import re
from pathlib import Path

from conftest import CHECKOUT, table
from test_cli import FAILING, FITTING, MACRO, cutlint

TEMPLATE = "template void sm80_generic_fused_moe_gemm_kernelLauncher<half, half, 16, 128, 64, 2>(int);\n"


def refused() -> str:
    """An invocation that libclang refuses (the table says so)."""
    columns = next(
        each for each, row in table("sm120-grid.csv") if row["refused"] == "true" and row["flashinfer"] == "0.7.4"
    )
    return f"{MACRO}({', '.join(columns.values())});\n"


def folder(path: Path) -> Path:
    (path / "a.cu").write_text(FAILING + FITTING + refused() + TEMPLATE)
    (path / "b.cu").write_text(FITTING.replace("half", "__nv_bfloat16") + FAILING.replace(");", ""))
    (path / "c.cu").write_bytes(b"\0" * 100)
    return path


def counts(text: str) -> dict[str, int]:
    """The table at the end, by label."""
    tail = text.rpartition("\nFiles ")
    rows = re.findall(r"^( *\S.*?) {2,}([\d,]+)$", "Files " + tail[2], re.M)
    return {label: int(number.replace(",", "")) for label, number in rows}


def test_counts_add_up(tmp_path: Path) -> None:
    words = ("check", folder(tmp_path), "--checkout", CHECKOUT)
    done = cutlint(*words, "--statistics", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    rows = counts(done.stdout)
    # three files, one of them binary; four invocations in the first, and in the second one more and one cut off
    assert (rows["Files"], rows["  read"], rows["  not read"]) == (3, 2, 1)
    assert rows["Invocations found"] == 6
    assert rows["  evaluated"] == 3
    assert rows["  refused by the compiler"] == 1
    assert rows["  not understood"] == 2
    by_rule = {label: number for label, number in rows.items() if label.startswith("  CUT")}
    assert rows["Findings that count"] == sum(by_rule.values())
    assert by_rule["  CUT101 over-limit"] == 1

    report = json.loads(cutlint(*words, "--format", "json", cwd=tmp_path).stdout)
    summary = report["summary"]
    assert summary["instantiations"] == summary["sized"] + summary["refused"] + summary["not_sized"] == 5
    assert (summary["unread"], summary["unread_files"]) == (1, 1)
    assert sum(summary["rules"].values()) == sum(summary["findings"].values()) == len(report["findings"])


def test_in_a_file_too(tmp_path: Path) -> None:
    cutlint("check", folder(tmp_path), "--checkout", CHECKOUT, "--statistics", "-o", "report.txt", cwd=tmp_path)
    assert counts((tmp_path / "report.txt").read_text())["Invocations found"] == 6


def test_only_with_text() -> None:
    done = cutlint("check", "--generate", "--statistics", "--format", "sarif")
    assert done.returncode == 2
    assert "--format text" in done.stderr
    assert "Files" not in cutlint("check", "--generate").stdout.rpartition("\n\n")[2]
