"""Every rule's own examples, and the engine's limits."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import FIXTURES

from cutlint.errors import CutlintError
from cutlint.rules import FACTS, Example, Rule, example_facts, judge, load, say

EXAMPLES = [
    (rule, example, bad)
    for rule in load()
    for bad in (True, False)
    for example in (rule.invalid if bad else rule.valid)
]


@pytest.mark.parametrize(("rule", "example", "bad"), EXAMPLES, ids=lambda each: getattr(each, "id", None))
def test_the_rules_own_examples(rule: Rule, example: Example, bad: bool) -> None:
    facts = example_facts(example)
    assert judge(rule, [facts]) == ([0] if bad else [])
    if bad:
        assert say(rule, facts) == example.message


def test_every_rule_has_examples_and_help() -> None:
    for rule in load():
        assert rule.invalid, f"{rule.id} shows nothing that it objects to"
        assert rule.when == "true" or rule.valid, f"{rule.id} shows nothing that it lets pass"
        assert all(example.message for example in rule.invalid)
        assert len(rule.help.split()) > 20


def rule_file(folder: Path, **changes: str) -> Path:
    text = {
        "id": "XYZ001", "name": "mine", "severity": "note", "scope": "instantiation", "summary": "s", "when": "config.arch == 120",
        "message": "m", "help": "h", **changes,
    }  # fmt: skip
    (folder / "mine.toml").write_text(
        "\n".join(f"{key} = '''{value}'''" for key, value in text.items()) + "\nsources = []\n"
    )
    return folder


def test_rules_of_ones_own(tmp_path: Path) -> None:
    rules = load([rule_file(tmp_path)])
    assert {"XYZ001", "CUT101"} <= {rule.id for rule in rules}
    mine = next(rule for rule in rules if rule.id == "XYZ001")
    assert judge(mine, [{"config": {"arch": 120}}, {"config": {"arch": 90}}, {"config": {"arch": 120}}]) == [0, 2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"when": "config.arch ="}, "mine.toml"),
        ({"when": "true %}{% endif %}{% if true"}, "mine.toml"),
        ({"severity": "fatal"}, "severity"),
        ({"scope": "file"}, "scope"),
        ({"unknown": "x"}, "unknown"),
        ({"message": "{{ config."}, "mine.toml"),
    ],
)
def test_a_file_that_is_not_a_rule(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    with pytest.raises(CutlintError, match=message):
        load([rule_file(tmp_path, **changes)])


@pytest.mark.parametrize(
    "when",
    [
        "config.__class__.__mro__",
        "config.__init__.__globals__",
        "(1).__class__.__bases__",
        "config.missing > 1",
    ],
)
def test_rules_can_read_facts_and_nothing_else(tmp_path: Path, when: str) -> None:
    mine = next(rule for rule in load([rule_file(tmp_path, when=when)]) if rule.id == "XYZ001")
    with pytest.raises(CutlintError, match="XYZ001"):
        judge(mine, [{"config": {"arch": 120}}])


def test_rules_speak_only_of_their_scopes_facts() -> None:
    assert set(FACTS) == {"instantiation", "launcher", "checkout", "problem", "gap", "tactic", "filter", "suppression"}


def test_missing_folder_of_rules() -> None:
    with pytest.raises(CutlintError, match="no such folder"):
        load([FIXTURES / "nowhere"])


def test_the_page_of_rules_is_made_from_them() -> None:
    docs = Path(__file__).parent.parent / "docs"
    made = subprocess.run([sys.executable, docs / "rules.py"], check=True, capture_output=True, timeout=60)
    assert made.stdout.decode() == (docs / "rules.md").read_text(encoding="utf-8"), "make rules writes it anew"
