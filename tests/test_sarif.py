"""SARIF: valid against the OASIS schema, within GitHub's limits, the same alert again in a later run."""

from __future__ import annotations

import gzip
import json
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin

import jsonschema
import pytest
from reports import FILE, LAUNCHER, finding, report, span
from test_cli import CHECKOUT, FAILING, FITTING, cutlint

from cutlint.formats import sarif
from cutlint.records import Location, Suppression
from cutlint.report import Report

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0.json").read_text())
Run = dict[str, Any]


def valid(text: str) -> Run:
    """The one run of a SARIF log that is valid."""
    log = json.loads(text)
    jsonschema.Draft4Validator(SCHEMA, format_checker=jsonschema.FormatChecker()).validate(log)
    (run,) = log["runs"]
    return run


def rendered(made: Report) -> Run:
    return valid(sarif.render(made))


def notes(run: Run) -> list[tuple[str, str]]:
    (invocation,) = run["invocations"]
    return [(each["level"], each["message"]["text"]) for each in invocation["toolExecutionNotifications"]]


def resolved(run: Run, location: dict[str, Any]) -> str:
    """The absolute URI of a location, as 3.14.14 says."""
    artifact = location["physicalLocation"]["artifactLocation"]
    base = run["originalUriBaseIds"][artifact["uriBaseId"]]["uri"] if "uriBaseId" in artifact else ""
    return unquote(urljoin(base, artifact["uri"]))


def test_a_checkout(tmp_path: Path) -> None:
    """From the command: in the .cu, with the .inl beside it, and both found from the base."""
    shutil.copytree(CHECKOUT, tmp_path, dirs_exist_ok=True)
    (tmp_path / "kernels.cu").write_text(f"\n{FAILING}{FITTING}")
    done = cutlint("check", "kernels.cu", "--checkout", ".", "--format", "sarif", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    run = valid(done.stdout)
    over = next(each for each in run["results"] if each["ruleId"] == "CUT101")
    assert run["tool"]["driver"]["rules"][over["ruleIndex"]]["id"] == "CUT101"
    (place,) = over["locations"]
    region = place["physicalLocation"]["region"]
    line = (tmp_path / "kernels.cu").read_text().splitlines()[region["startLine"] - 1]
    assert line[region["startColumn"] - 1 : region["endColumn"] - 1] == FAILING.strip()
    assert resolved(run, place) == (tmp_path / "kernels.cu").resolve().as_uri()
    stage = over["relatedLocations"][0]
    assert stage["message"]["text"] == "the stage count is decided here"
    assert resolved(run, stage).endswith("/launchers/moe_gemm_tma_ws_launcher.inl")
    assert Path(resolved(run, stage).removeprefix("file://")).is_file()
    assert f"[the stage count is decided here]({stage['id']})" in over["message"]["text"]
    assert not place["physicalLocation"]["artifactLocation"]["uri"].startswith(("/", "file:"))


def test_generated_files_have_a_base_of_their_own(tmp_path: Path) -> None:
    run = valid(cutlint("check", "--generate", "--format", "sarif").stdout)
    over = next(each for each in run["results"] if each["ruleId"] == "CUT101")
    made = over["locations"][0]["physicalLocation"]["artifactLocation"]
    assert made["uri"].startswith("gemm_grouped/120/")
    assert "uri" not in run["originalUriBaseIds"][made["uriBaseId"]], "the files are gone"
    assert Path(resolved(run, over["relatedLocations"][0]).removeprefix("file://")).is_file()


def identities(run: Run) -> list[tuple[str, str]]:
    return sorted((each["ruleId"], each["partialFingerprints"]["primaryLocationLineHash"]) for each in run["results"])


def test_an_alert_is_the_same_when_lines_move(tmp_path: Path) -> None:
    def run(text: str) -> Run:
        (tmp_path / "kernels.cu").write_text(text)
        return valid(cutlint("check", "kernels.cu", "--checkout", CHECKOUT, "--format", "sarif", cwd=tmp_path).stdout)

    wide = FAILING.replace("half", "__nv_bfloat16")
    before = run(FAILING + wide + FITTING)
    moved = run("// a line\n\n" + FITTING + "\n" + wide.replace(", ", ",\n    ") + FAILING)
    assert identities(moved) == identities(before)
    assert len(set(identities(before))) == len(before["results"])
    other = run(FAILING + FITTING)
    gone = set(identities(before)) - set(identities(other))
    assert [rule for rule, _ in gone] == ["CUT101"]


def test_rules_have_help() -> None:
    rules = rendered(report(finding()))["tool"]["driver"]["rules"]
    assert [each["id"] for each in rules] == ["CUT101", "CUT102", "CUT402"]
    assert [each["defaultConfiguration"]["level"] for each in rules] == ["error", "note", "warning"]
    assert rules[0]["help"]["text"].startswith("At launch, StageCount<N> fails.\n")
    assert "StageCount&lt;N&gt; fails.\n\nWhat" in rules[0]["help"]["markdown"], "<N> would be a tag"
    assert rules[0]["fullDescription"]["text"] == "Too large. At launch, StageCount<N> fails."
    assert all(each["help"]["text"] and each["shortDescription"]["text"] for each in rules)


def test_suppressed_findings_are_there_as_such() -> None:
    run = rendered(
        report(
            finding(0, suppressed=Suppression("inline", "known, see the ticket")),
            finding(1, suppressed=Suppression("configuration", "not built")),
            finding(2, suppressed=Suppression("baseline")),
            finding(3),
        )
    )
    by_line = {each["locations"][0]["physicalLocation"]["region"]["startLine"]: each for each in run["results"]}
    assert run["results"][0] is by_line[13], "what counts comes first"
    assert [(each["kind"], each["justification"]) for each in by_line[10]["suppressions"]] == [
        ("inSource", "known, see the ticket")
    ]
    assert by_line[11]["suppressions"][0]["kind"] == "external"
    assert by_line[12]["suppressions"][0]["kind"] == "external"
    assert by_line[13]["suppressions"] == [], "3.27.23: if one result says, all do"
    assert "suppressions" not in rendered(report(finding()))["results"][0]


def test_what_could_not_be_done_is_said() -> None:
    run = rendered(report(finding(), errors=("other: no such folder",)))
    assert run["invocations"][0]["executionSuccessful"] is False
    assert notes(run) == [("error", "other: no such folder")]
    assert rendered(report(finding()))["invocations"][0]["executionSuccessful"] is True
    assert notes(rendered(report(finding()))) == []


def test_at_most_25_000_results_the_errors_first() -> None:
    many = [finding(index, "note", fixes=(), related=()) for index in range(24_999)]
    run = rendered(report(*many, finding(30_000, "error"), finding(30_001, "warning"), finding(30_002, "error")))
    assert len(run["results"]) == 25_000
    assert [each["level"] for each in run["results"][:4]] == ["error", "error", "warning", "note"]
    assert [level for level, _ in notes(run)] == ["warning", "note"]
    assert "2 findings left out (2 notes)" in notes(run)[0][1]
    assert "5,000" in notes(run)[1][1]


def test_at_most_ten_megabytes_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif, "PACKED", 20_000)
    random = [sha256(bytes([index % 256, index // 256])).hexdigest() for index in range(2_000)]
    many = [finding(index, "warning", detail=text) for index, text in enumerate(random)]
    text = sarif.render(report(*many, finding(2_000)))
    assert len(gzip.compress(text.encode(), 6)) <= 20_000
    run = valid(text)
    assert run["results"][0]["level"] == "error"
    assert 50 < len(run["results"]) < 2_000
    left = 2_001 - len(run["results"])
    assert f"{left:,} findings left out" in notes(run)[0][1]


@pytest.mark.parametrize(
    "name", ["a b.cu", "<script>.cu", "a%20b.cu", "a\nb.cu", "C:evil.cu", "ü.cu", "a?b#c.cu", "::error::.cu"]
)
def test_a_name_is_a_uri(name: str) -> None:
    run = rendered(report(finding(file=name)))
    assert resolved(run, run["results"][0]["locations"][0]) == f"file:///work/repo/{name}"


def test_whole_paths_and_other_folders() -> None:
    elsewhere = Location("include/a.h", span(0, 0, 0, 1), "there")
    run = rendered(
        report(
            finding(0, file="/tmp/a b.cu", related=(elsewhere,)),
            finding(1),
            **{"include/a.h": "/opt/cutlass/include/a.h", "/tmp/a b.cu": "/tmp/a b.cu"},
        )
    )
    assert resolved(run, run["results"][0]["locations"][0]) == "file:///tmp/a b.cu"
    assert resolved(run, run["results"][0]["relatedLocations"][0]) == "file:///opt/cutlass/include/a.h"
    assert resolved(run, run["results"][1]["locations"][0]) == f"file:///work/repo/{FILE}"
    assert resolved(run, run["results"][1]["relatedLocations"][0]) == f"file:///work/repo/{LAUNCHER}"


def test_a_finding_on_a_folder() -> None:
    run = rendered(report(finding(0, file="."), finding(1), **{".": "/work/repo"}))
    assert resolved(run, run["results"][0]["locations"][0]) == "file:///work/repo/"
    assert list(run["originalUriBaseIds"]) == ["%SRCROOT%"]


@pytest.mark.download
def test_a_release(tmp_path: Path) -> None:
    """Every finding of a real release, in files that are where the log says, or gone."""
    source = "flashinfer-python==0.7.4"
    run = valid(cutlint("check", source, "--format", "sarif", cwd=tmp_path).stdout)
    content = json.loads(cutlint("check", source, "--format", "json", cwd=tmp_path).stdout)
    expected = [(each["rule"], each["fingerprint"]) for each in content["findings"]]
    assert identities(run) == sorted(expected)
    assert len(set(expected)) == len(expected) > 100
    places = [place for each in run["results"] for place in [*each["locations"], *each.get("relatedLocations", ())]]
    known = [each for each in places if each["physicalLocation"]["artifactLocation"]["uriBaseId"] == "%SRCROOT%"]
    assert known
    assert all(Path(resolved(run, place).removeprefix("file://")).is_file() for place in known)


def test_a_message_is_not_taken_for_a_link() -> None:
    hostile = "reads [click](https://example.org)"
    text = rendered(report(finding(message=hostile)))["results"][0]["message"]["text"]
    assert r"\[click\](https://example.org)" in text
    assert "[the stage count is decided here](1)" in text
