"""Suppressions and baselines from the command: what counts, what is said of it, and in which format."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import CHECKOUT
from hypothesis import given
from hypothesis import strategies as st
from reports import finding, report
from test_cli import FAILING, FITTING, cutlint
from test_formats import commands
from test_sarif import notes, rendered, valid

from cutlint import baseline
from cutlint.errors import CutlintError
from cutlint.formats import FORMATS, render
from cutlint.formats.junit import render as junit
from cutlint.records import Suppression
from cutlint.report import BaselineReport

FAILING_BF16 = FAILING.replace("half", "__nv_bfloat16")


def check(folder: Path, *words: str, text: str = FAILING, config: str = "") -> subprocess.CompletedProcess[str]:
    """Checks a folder with one file, so that unused entries of the configuration mean something."""
    (folder / "gen").mkdir(exist_ok=True)
    (folder / "gen" / "kernels.cu").write_text(text)
    (folder / "cutlint.toml").write_text(config)
    return cutlint("check", "gen", "--checkout", CHECKOUT, *words, cwd=folder)


def found(folder: Path, *words: str, text: str = FAILING, config: str = "") -> dict[str, Any]:
    done = check(folder, *words, "--format", "json", text=text, config=config)
    assert done.returncode in (0, 1), done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def of(content: dict[str, Any], rule: str) -> list[dict[str, Any]]:
    return [each for each in content["findings"] if each["rule"] == rule]


def entry(**fields: str) -> str:
    return "[[allow]]\n" + "".join(f"{name} = {value}\n" for name, value in fields.items())


# --- the configuration


def test_allowed_in_the_configuration(tmp_path: Path) -> None:
    where = '\'fusion == "FINALIZE" and cta_n == 256 and output == "half_t"\''
    config = entry(rule='"CUT101"', where=where, reason='"not shipped"')
    done = check(tmp_path, config=config, text=FAILING + FAILING_BF16)
    assert done.returncode == 1, "one of two is allowed"
    assert done.stdout.count("SwapAB=false") == 1
    assert "1 error, 1 warning, 1 suppressed." in done.stdout
    assert check(tmp_path, config=config).returncode == 0
    (over,) = of(found(tmp_path, config=config), "CUT101")
    assert over["suppressed"] == {"kind": "configuration", "reason": "not shipped"}
    assert of(found(tmp_path, config=config), "CUT911") == []


def test_in_pyproject_with_several_rules(tmp_path: Path) -> None:
    (tmp_path / "kernels.cu").write_text(FAILING)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.cutlint]\nfail-on = "warning"\n[[tool.cutlint.allow]]\nrule = ["CUT101", "CUT110"]\nreason = "later"\n'
    )
    done = cutlint("check", "kernels.cu", "--checkout", CHECKOUT, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "No findings, 2 suppressed." in done.stdout


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (entry(rule='"CUT101"'), "reason"),
        (entry(rule='"CUT101"', reason='" "'), "gives no reason"),
        (entry(rule='"CUT7"', reason='"r"'), "no rule matches 'CUT7'"),
        (entry(rule="[]", reason='"r"'), "names no rule"),
        (entry(rule='"CUT101"', reason='"r"', where='"cta_q == 1"'), "no fact 'cta_q'"),
        (entry(rule='"CUT101"', reason='"r"', where='"cta_m =="'), "allow entry 1: where"),
        (entry(rule='"CUT101"', reason='"r"', expires='"soon"'), "expires"),
        (entry(rule='"CUT101"', reason='"r"', until="2026-01-01"), "until"),
    ],
)
def test_an_entry_that_makes_no_sense(tmp_path: Path, config: str, said: str) -> None:
    done = check(tmp_path, config=config)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("date", ["2001-02-03", '"2001-02-03"'])
def test_expired(tmp_path: Path, date: str) -> None:
    config = entry(rule='"CUT101"', reason='"r"', expires=date)
    content = found(tmp_path, config="# a line\n" + config)
    assert of(content, "CUT101")[0]["suppressed"] is None
    (void,) = of(content, "CUT912")
    assert void["message"] == "allow entry 1 (CUT101) has expired on 2001-02-03: 1 finding counts again"
    assert (void["file"], void["range"]["start"]["line"]) == ("cutlint.toml", 1)
    assert content["files"]["cutlint.toml"] == str(tmp_path / "cutlint.toml")
    assert "nothing is left" in check(tmp_path, config=config, text=FITTING).stdout


def test_not_yet_expired(tmp_path: Path) -> None:
    config = entry(rule='"CUT101"', reason='"r"', expires="9999-12-31")
    assert check(tmp_path, config=config).returncode == 0


def test_an_unused_entry(tmp_path: Path) -> None:
    config = entry(rule='["CUT101", "CUT102"]', reason='"r"') + entry(
        rule='"CUT101"', where='"cta_n == 32"', reason='"r"'
    )
    unused = of(found(tmp_path, config=config), "CUT911")
    assert [each["message"] for each in unused] == [
        "allow entry 1 (CUT101, CUT102) suppresses nothing for CUT102",
        "allow entry 2 (CUT101 where cta_n == 32) suppresses nothing",
    ]
    assert [each["range"]["start"]["line"] for each in unused] == [0, 3]
    # what was not applied, or lies in a file that was not looked at, is not known to be unused
    assert of(found(tmp_path, "--ignore", "CUT102,CUT101", config=config), "CUT911") == []
    single = cutlint("check", "gen/kernels.cu", "--checkout", CHECKOUT, cwd=tmp_path)
    assert "CUT911" not in single.stdout


# --- comments


def test_comments(tmp_path: Path) -> None:
    line = FAILING.strip()
    text = (
        f"{line} // NOLINT(CUT101): see the ticket\n"
        f"// NOLINTNEXTLINE(CUT101, CUT302)\n{line}\n"
        f"// NOLINTBEGIN\n{line}\n// NOLINTEND\n"
        f'{line} auto s = "// NOLINT";\n'
    )
    content = found(tmp_path, text=text)
    assert [each["suppressed"] for each in of(content, "CUT101")] == [
        {"kind": "inline", "reason": "see the ticket"},
        {"kind": "inline", "reason": ""},
        {"kind": "inline", "reason": ""},
        None,
    ]
    assert of(content, "CUT911") == of(content, "CUT912") == []


def test_in_the_launcher(tmp_path: Path) -> None:
    import shutil

    shutil.copytree(CHECKOUT, tmp_path / "checkout")
    launcher = next((tmp_path / "checkout").rglob("moe_gemm_tma_ws_launcher.inl"))
    text = launcher.read_text()
    head = next(line for line in text.split("\n") if line.startswith("#define INSTANTIATE_"))
    assert head.endswith("\\")
    launcher.write_text(text.replace(head, head[:-1] + "/* NOLINT(CUT110): the caller checks */ \\"))
    done = cutlint("check", "--generate", "--format", "json", cwd=tmp_path / "checkout")
    content = json.loads(done.stdout)
    (without,) = of(content, "CUT110")
    assert without["suppressed"] == {"kind": "inline", "reason": "the caller checks"}
    assert len(of(content, "CUT101")) == 4, "the launcher is read all the same"


def test_comments_that_do_nothing(tmp_path: Path) -> None:
    text = (
        "// NOLINT(CUT101)\n// NOLINT\n// NOLINT(google-explicit-constructor, *-avoid-c-arrays)\n"
        f"{FAILING.strip()} // NOLINT(CUT101, CUT102, CUT999)\n// NOLINTBEGIN(CUT101)\n// NOLINTEND\n// NOLINTBEGIN(google*)\n"
    )
    content = found(tmp_path, text=text)
    assert [each["message"] for each in of(content, "CUT911")] == [
        "NOLINT(CUT101) suppresses nothing",
        "NOLINT(CUT101, CUT102, CUT999) suppresses nothing for CUT102 and CUT999: there is no rule CUT999",
    ]
    assert [each["message"] for each in of(content, "CUT912")] == [
        "NOLINTBEGIN(CUT101) has no NOLINTEND after it: it suppresses nothing",
        "NOLINTEND has no NOLINTBEGIN before it",
    ]
    assert [each["range"]["start"]["line"] for each in of(content, "CUT912")] == [4, 5]
    assert of(found(tmp_path, "--ignore", "CUT91", text=text), "CUT911") == []


# --- baselines


def test_a_baseline(tmp_path: Path) -> None:
    done = check(tmp_path, "--write-baseline", "known.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No findings, 2 in the baseline." in done.stdout
    written = (tmp_path / "known.json").read_bytes()
    content = json.loads(written)
    assert content["version"] == 1
    assert [each["rule"] for each in content["findings"]] == ["CUT101", "CUT110"]
    check(tmp_path, "--write-baseline", "known.json")
    assert (tmp_path / "known.json").read_bytes() == written
    # the same run is clean, lines may move, and what is new counts
    assert check(tmp_path, "--baseline", "known.json", "--fail-on", "note").returncode == 0
    assert check(tmp_path, "--baseline", "known.json", text=f"// a line\n\n{FAILING}").returncode == 0
    done = check(tmp_path, "--baseline", "known.json", text=FAILING_BF16 + FAILING)
    assert done.returncode == 1
    assert "BF16" in done.stdout
    assert "FP16 128" not in done.stdout
    assert "1 error, 2 in the baseline." in done.stdout
    # and what is mended is said, unless its rule was not applied
    done = check(tmp_path, "--baseline", "known.json", text=FITTING)
    assert done.returncode == 0
    assert "1 finding of known.json no longer occurs (CUT101)" in done.stdout
    assert "no longer" not in check(tmp_path, "--baseline", "known.json", "--ignore", "CUT101", text=FITTING).stdout
    content = found(tmp_path, "--baseline", "known.json", text=FITTING)
    assert [each["rule"] for each in content["baseline"]["gone"]] == ["CUT101"]
    assert content["summary"]["known"] == 1


def test_a_count_in_a_message_does_not_make_a_finding_new(tmp_path: Path) -> None:
    odd = FITTING.replace("Sm120", "Sm999")
    check(tmp_path, "--write-baseline", "known.json", text=FITTING + odd)
    done = check(
        tmp_path, "--baseline", "known.json", "--fail-on", "note", text=FITTING + odd + odd.replace("128", "64")
    )
    assert done.returncode == 0, done.stdout


def test_suppressed_findings_are_not_in_a_baseline(tmp_path: Path) -> None:
    config = entry(rule='"CUT101"', reason='"r"')
    done = check(tmp_path, "--write-baseline", "known.json", config=config)
    assert "No findings, 1 suppressed, 1 in the baseline." in done.stdout
    assert [each["rule"] for each in json.loads((tmp_path / "known.json").read_text())["findings"]] == ["CUT110"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "--write-baseline makes one"),
        ("", "is not a baseline"),
        ("{", "is not a baseline"),
        ("[]", "is not a baseline"),
        ("[" * 100_000, "is not a baseline"),
        ('{"version": 1}', "is not a baseline"),
        ('{"version": 1, "findings": [{"rule": 3}]}', "is not a baseline"),
        ('{"version": 2, "findings": []}', "version 2"),
        ("\udcff", "is not a baseline"),
    ],
)
def test_a_bad_baseline(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "known.json").write_bytes(text.encode(errors="surrogateescape"))
    done = check(tmp_path, "--baseline", "known.json")
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr


def test_a_baseline_that_cannot_be_written_or_would_not_be_whole(tmp_path: Path) -> None:
    done = check(tmp_path, "--write-baseline", "nowhere/known.json")
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    done = cutlint("check", "gen", "missing", "--checkout", CHECKOUT, "--write-baseline", "known.json", cwd=tmp_path)
    assert done.returncode == 2
    assert "known.json is not written" in done.stderr
    assert not (tmp_path / "known.json").exists()
    assert check(tmp_path, "--write-baseline", "a.json", "--baseline", "b.json").returncode == 2


FINDINGS = st.builds(
    finding,
    st.integers(0, 20),
    st.sampled_from(["error", "warning", "note"]),
    file=st.text(max_size=8),
    subject=st.text(max_size=8),
    suppressed=st.sampled_from([None, None, Suppression("inline", "r")]),
)


@given(st.lists(FINDINGS, max_size=30), st.data())
def test_the_run_that_a_baseline_is_from_is_clean(
    tmp_path_factory: Any, findings: list[Any], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("baseline") / "known.json"
    baseline.write(path, baseline.of(findings))
    rules = [each.rule for each in findings]
    same, gone = baseline.apply(data.draw(st.permutations(findings)), baseline.read(path), rules)
    assert gone == ()
    assert all(each.suppressed for each in same)
    known = {each.fingerprint for each in findings if each.suppressed is None}
    later = [*findings[::2], finding(99)]
    marked, gone = baseline.apply(later, baseline.read(path), rules)
    assert [each.fingerprint for each in marked if each.suppressed is None] == [finding(99).fingerprint]
    assert {each.fingerprint for each in gone} == known - {each.fingerprint for each in later}


# --- formats


MARKED = report(
    finding(0, suppressed=Suppression("inline", "hidden reason")),
    finding(1, suppressed=Suppression("configuration", "hidden reason")),
    finding(2, suppressed=Suppression("baseline")),
    finding(3, "warning", message="this one counts"),
    baseline=BaselineReport("known.json", 2, (baseline.Known("CUT102", "a.cu", "", "f"),)),
)


@pytest.mark.parametrize("form", [each for each in FORMATS if each not in ("json", "sarif", "html")])
def test_what_does_not_count_is_left_out(form: str) -> None:
    text = render(MARKED, form)
    assert "this one counts" in text
    assert "102,400" not in text.replace("&#44;", ",")
    assert "hidden reason" not in text
    if form in ("text", "github", "markdown"):
        assert "2 suppressed, 1 in the baseline" in text
        assert "1 finding of known.json no longer occurs (CUT102)" in text


def test_sarif_has_all_with_their_states() -> None:
    run = rendered(MARKED)
    states = {each["locations"][0]["physicalLocation"]["region"]["startLine"]: each for each in run["results"]}
    assert [states[line]["baselineState"] for line in (10, 11, 12, 13)] == ["new", "new", "unchanged", "new"]
    assert [each["kind"] for each in states[10]["suppressions"]] == ["inSource"]
    assert [each["kind"] for each in states[11]["suppressions"]] == ["external"]
    assert states[11]["suppressions"][0]["justification"] == "hidden reason"
    assert states[13]["suppressions"] == []
    assert ("note", "1 finding of known.json no longer occurs (CUT102): write it again with --write-baseline") in notes(
        run
    )
    assert "baselineState" not in rendered(report(finding()))["results"][0]


def test_other_formats_do_not_break() -> None:
    assert len(commands(render(MARKED, "github"))) == 1
    assert "<skipped" not in junit(MARKED)


def test_sarif_from_the_command(tmp_path: Path) -> None:
    config = entry(rule='"CUT101"', reason='"not shipped"') + entry(rule='"CUT102"', reason='"r"')
    run = valid(check(tmp_path, "--format", "sarif", config=config).stdout)
    by_rule = {each["ruleId"]: each for each in run["results"]}
    assert by_rule["CUT101"]["suppressions"][0]["justification"] == "not shipped"
    place = by_rule["CUT911"]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "cutlint.toml"
    assert place["region"]["startLine"] == 4


def test_reading_a_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CutlintError, match="cannot be read"):
        baseline.read(tmp_path)
