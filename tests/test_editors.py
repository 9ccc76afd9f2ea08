"""What docs/editors.md offers: its blocks parse, and its problem matcher reads what the command really prints."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_cli import CHECKOUT, FAILING, FITTING, as_json, cutlint

DOCUMENT = (Path(__file__).parent.parent / "docs/editors.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", DOCUMENT, re.M | re.S)
JSON = [json.loads(text) for kind, text in BLOCKS if kind == "json"]
TASK = next(each for each in JSON if "tasks" in each)["tasks"][0]

needs_jq = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")


@needs_jq
def test_the_problem_matcher_reads_what_the_task_prints(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    shutil.copytree(CHECKOUT, root)
    (root / "kernels.generated.cu").write_text(FAILING + FITTING.replace("Sm120, ", "Sm120, [1], "))
    command = TASK["command"].replace(" --generate", "")
    assert command.startswith("cutlint ")
    ours = shlex.join([sys.executable, "-m", "cutlint.cli"])
    done = subprocess.run(
        ours + command.removeprefix("cutlint"), shell=True, cwd=root, capture_output=True, text=True, check=True
    )
    pattern = TASK["problemMatcher"]["pattern"]
    matches = [re.match(pattern["regexp"], line) for line in done.stdout.splitlines()]
    assert all(matches)
    read = [
        tuple(each[pattern[name]] for name in ("file", "line", "column", "severity", "code", "message"))
        for each in matches
        if each is not None
    ]
    expected = [
        (
            each["file"],
            str(each["range"]["start"]["line"] + 1),
            str(each["range"]["start"]["character"] + 1),
            each["severity"],
            each["rule"],
            each["message"],
        )
        for each in as_json(".", cwd=root)["findings"]
    ]
    assert {each[4] for each in expected} >= {"CUT101", "CUT902"}
    assert read == expected
    assert (root / read[0][0]).is_file()


def test_the_task_and_the_text_name_the_same_command() -> None:
    assert f"```sh\n{TASK['command']}\n```" in DOCUMENT


def test_every_editor_starts_the_same_command() -> None:
    settings = next(each for each in JSON if "glspc.server.command" in each)
    assert [settings["glspc.server.command"], *settings["glspc.server.commandArguments"]] == ["cutlint", "lsp"]
    assert 'cmd = { "cutlint", "lsp" }' in DOCUMENT
    assert '"cutlint" "lsp"' in DOCUMENT


def test_the_options_named_are_there() -> None:
    known = cutlint("lsp", "--help").stdout
    for option in re.findall(r"`(?:cutlint lsp )?(--(?:checkout|target|rules))\b", DOCUMENT):
        assert option in known
