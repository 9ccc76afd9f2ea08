"""The formats for CI, read as their consumers read them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any
from xml.etree import ElementTree

import cmarkgfm
import junitparser
import msgspec
import pytest
from conftest import CHECKOUT
from reports import FILE, finding, report
from test_cli import FAILING, check_file

from cutlint.formats import FORMATS, github, gitlab, junit, markdown, render
from cutlint.records import Suppression
from cutlint.report import Report

SUPPRESSED = finding(40, suppressed=Suppression("configuration", "not built here"), fingerprint="suppressed")
MIXED = report(finding(0, "note"), finding(1), finding(2, "warning"), finding(3), SUPPRESSED)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_renders_alike(form: str) -> None:
    """An empty report too, and the same bytes each time."""
    for made in (report(), MIXED, report(errors=("no such folder: a",))):
        text = render(made, form)
        assert text.endswith("\n")
        assert text == render(made, form)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_is_had_from_the_command(form: str, tmp_path: Any) -> None:
    done = check_file(tmp_path, FAILING, "--format", form)
    assert done.returncode == 1, done.stderr
    assert "102,400" in done.stdout.replace("&#44;", ",")
    assert done.stderr == ""


@pytest.mark.parametrize("form", [form for form in FORMATS if form != "text"])
def test_reports_for_programs_are_utf8_whatever_the_terminal_says(form: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cutlint.cli", "check", "--generate", "--format", form],
        cwd=CHECKOUT,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "128×256×128" in done.stdout.decode()


# --- GitHub's workflow commands, read as actions/runner does (ActionCommand.TryParseV2)

COMMAND = re.compile(r"::(?P<name>[a-z]+)(?: (?P<properties>[^:]*))?::(?P<message>.*)")


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    def decoded(value: str, *further: str) -> str:
        for code in ("%0D", "%0A", *further, "%25"):
            value = value.replace(code, chr(int(code[1:], 16)))
        return value

    found = []
    for line in text.splitlines():
        match = COMMAND.fullmatch(line)
        if match is not None:
            pairs = [each.split("=", 1) for each in (match["properties"] or "").split(",") if each]
            properties = {key: decoded(value, "%3A", "%2C") for key, value in pairs}
            found.append((match["name"], properties, decoded(match["message"])))
    return found


def test_github_annotations() -> None:
    read = commands(github.render(MIXED))
    assert [name for name, _, _ in read] == ["error", "error", "warning", "notice"], "ten of each kind are shown"
    _, properties, message = read[0]
    assert properties == {"title": "CUT101 over-limit", "file": FILE, "line": "11", "endLine": "14"}
    assert message.splitlines()[0] == "Sm120 FP4×FP4→FP16 128×256×128: needs 102,400 B of shared memory per block"
    assert "Fits: SwapAB=true: 2 stages, 74,752 B" in message
    assert "See: csrc/launcher.inl:500:7 the stage count is decided here" in message
    assert github.render(MIXED).splitlines()[-1] == "cutlint: 2 errors, 1 warning, 1 note, 1 suppressed"


def test_github_columns_are_for_one_line_only() -> None:
    one = finding(range=msgspec.structs.replace(finding().range, end=finding().range.start))
    assert commands(github.render(report(one)))[0][1].keys() >= {"col", "endColumn"}


def test_github_escapes_and_errors() -> None:
    odd = "100% of a,b: c\r\nd"
    made = report(finding(file="a,b:c%2C.cu", message=odd, subject=""), errors=("x: gone",))
    (_, _, gone), (_, properties, message) = commands(github.render(made))
    assert gone == "x: gone"
    assert properties["file"] == "a,b:c%2C.cu"
    assert message.splitlines()[0] == r"100% of a,b: c\r\nd"
    assert len(github.render(made).splitlines()) == 3


def test_github_says_what_is_not_shown() -> None:
    text = github.render(report(*(finding(index) for index in range(11))))
    assert text.splitlines()[-1] == (
        "cutlint: 11 errors; GitHub shows 10 annotations of each kind, this log has them all"
    )
    assert len(commands(text)) == 11


# --- GitLab


def test_gitlab_code_quality() -> None:
    issues = json.loads(gitlab.render(MIXED))
    assert [each["severity"] for each in issues] == ["info", "critical", "minor", "critical"]
    assert issues[1] == {
        "description": "Sm120 FP4×FP4→FP16 128×256×128: needs 102,400 B of shared memory per block. "
        "Fits: SwapAB=true: 2 stages, 74,752 B",
        "check_name": "CUT101",
        "fingerprint": f"{1:032x}",
        "severity": "critical",
        "location": {"path": FILE, "lines": {"begin": 11, "end": 14}},
    }
    assert len({each["fingerprint"] for each in issues}) == len(issues)
    assert json.loads(gitlab.render(report())) == []


# --- JUnit: the attributes and elements of junit-10.xsd of Jenkins' xunit plugin (required ones first)

SHAPE: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name"},
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    **{name: (set(), {"type", "message"}, set()) for name in ("skipped", "error", "failure")},
    "system-out": (set(), set(), set()),
}


def shaped(text: str) -> ElementTree.Element:
    root = ElementTree.fromstring(text.encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        required, optional, children = SHAPE[element.tag]
        assert required <= set(element.keys()) <= required | optional, element.tag
        assert {child.tag for child in element} <= children, element.tag
    return root


def outcomes(made: Report) -> dict[str, int]:
    """What junitparser counts, which must be what the suites say."""
    shaped(junit.render(made))
    read = junitparser.JUnitXml.fromstring(junit.render(made))
    said = (read.tests, read.failures, read.errors)
    read.update_statistics()
    assert said == (read.tests, read.failures, read.errors)
    names = [(case.classname, case.name) for suite in read for case in suite]
    assert len(set(names)) == len(names), "a CI tells tests by their names"
    return {"tests": read.tests, "failures": read.failures, "errors": read.errors, "skipped": read.skipped}


@pytest.mark.parametrize(("least", "failures"), [("error", 2), ("warning", 3), ("note", 4), ("never", 0)])
def test_junit_fails_as_the_exit_code_does(least: Any, failures: int) -> None:
    made = report(*MIXED.findings, fail_on=least)
    # one of the run itself, four of findings that count
    assert outcomes(made) == {"tests": 5, "failures": failures, "errors": 0, "skipped": 0}


def test_junit_of_nothing_found_and_of_what_could_not_be_done() -> None:
    assert outcomes(report()) == {"tests": 4, "failures": 0, "errors": 0, "skipped": 0}
    made = report(errors=("a: no such folder", "b: no such folder"))
    assert outcomes(made) == {"tests": 5, "failures": 0, "errors": 2, "skipped": 0}


def test_junit_texts() -> None:
    root = shaped(junit.render(MIXED))
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.text is not None
    assert failure.get("message") == "Sm120 FP4×FP4→FP16 128×256×128: needs 102,400 B of shared memory per block"
    assert f"{FILE}:11:9" in failure.text
    assert "not built here" not in junit.render(MIXED), "suppressed"
    assert not any(re.search(r":\d+:", case.get("name", "")) for case in root.iter("testcase")), "lines move"


# --- Markdown, read by GitHub's own parser


def table(text: str) -> list[list[str]]:
    html = cmarkgfm.github_flavored_markdown_to_html(text)
    return [re.findall(r"<td>(.*?)</td>", row, re.S) for row in html.split("<tr>")[2:]]


def test_markdown_table() -> None:
    text = markdown.render(MIXED)
    rows = table(text)
    assert [row[0] for row in rows] == [f"<strong>{each}</strong>" for each in ("error", "warning", "note")]
    assert rows[0][2] == "needs 102,400 B of shared memory per block"
    assert f"{FILE}:11:9" in rows[0][4]
    assert f"{FILE}:13:9" in rows[0][4], "one row a cause"
    assert rows[0][3] == "SwapAB=true: 2 stages, 74,752 B"
    assert text.startswith("### cutlint: 2 errors, 1 warning, 1 note\n")
    assert "Not listed: 1 suppressed." in text
    assert "Checked against 12.0." in text


def test_markdown_counts_places_beyond_the_first() -> None:
    (row,) = table(markdown.render(report(*(finding(index) for index in range(12)))))
    assert "and 8 more" in row[4]


def test_markdown_fits_into_a_comment() -> None:
    notes = [finding(index, "note", message=f"note {index} " + "x" * 400) for index in range(300)]
    last = finding(500, message="the error")
    text = markdown.render(report(*notes, last))
    assert len(text) <= 65_536
    rows = table(text)
    assert rows[0][2] == "the error", "errors first"
    assert len(rows) > 50
    assert f"a comment holds 65,536 characters: {301 - len(rows):,} notes." in text


def test_markdown_of_one_endless_text() -> None:
    text = markdown.render(report(finding(message="<" * 100_000), errors=("|" * 100_000,)))
    assert len(text) <= 65_536
    assert len(table(text)) == 1


def test_markdown_says_what_could_not_be_done() -> None:
    assert "**Not done:** a: no such folder" in markdown.render(report(errors=("a: no such folder",)))
