"""Rules, conditions and configurations that nobody would write by accident: refused with the reason, before any of them runs.

They come with the checkout, which may be a stranger's.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from test_cli import CHECKOUT, FAILING
from test_hostile_files import limited
from test_rules import rule_file

from cutlint.errors import CutlintError
from cutlint.rules import FACTS, Rule, judge, load, say
from cutlint.sandbox import MAX_DEPTH, MAX_TEXT, Sandbox, check
from cutlint.toml import read_toml
from cutlint.where import condition

EXPRESSIONS = {  # an expression that would take all time or memory, and what is said of it
    "power": ("10**10**10 == 0", "`**` cannot stand"),
    "folded_power": ("2**(2**40) > 1", "`**` cannot stand"),
    "call": ("'x'.ljust(10**10) == ''", "cannot stand"),
    "method": ("'x'.ljust(9999999999) == ''", "a call cannot stand"),
    "format": ("'{:>9999999999}'.format(1) == ''", "a call cannot stand"),
    "replace": ("'aa'.replace('a', 'aaaaaaaa').replace('a', 'aaaaaaaa') == ''", "a call cannot stand"),
    "range": ("range(99999999) | length > 1", "a call cannot stand"),
    "lipsum": ("lipsum(n=9999) == ''", "a call cannot stand"),
    "range_itself": ("range == 1", "no fact 'range'"),
    "the_rows": ("rows | length > 1", "no fact 'rows'"),
    "the_loop": ("loop.index0 == 1", "no fact 'loop'"),
    "center": ("'x' | center(9999999999) == ''", "no filter 'center'"),
    "format_filter": ("'%9999999999d' | format(1) == ''", "no filter 'format'"),
    "batch": ("[1] | batch(9999999999, 0) == []", "no filter 'batch'"),
    "indent": ("'x' | indent(9999999999, true) == ''", "no filter 'indent'"),
    "map": ("['x'] | map('center', 9999999999) | first == ''", "no filter 'map'"),
    "select": ("['x'] | select('eq', 1) | first == ''", "no filter 'select'"),
    "round": ("1.5 | round(9999999999) == 1", "no filter 'round'"),
    "wordwrap": ("'x' | wordwrap(1) == ''", "no filter 'wordwrap'"),
    "test": ("1 is sameas 1", "no test 'sameas'"),
    "unknown_filter": ("1 | nothing", "no filter 'nothing'"),
    "long": (" or ".join(["1 == 1"] * MAX_TEXT), "characters, more than"),
    "chain": (" + ".join(["1"] * 2000) + " > 1", f"more than {MAX_DEPTH} deep"),
    "parentheses": ("(" * 4000 + "1" + ")" * 4000, "nested too deep"),
    "not": ("not " * 3000 + "true", "nested"),
    "brackets": ("[" * 4000 + "1" + "]" * 4000, "nested too deep"),
    "attributes": ("'x'" + ".a" * 3000 + " == 1", f"more than {MAX_DEPTH} deep"),
    "filters": ("'x'" + " | lower" * 1000 + " == 1", f"more than {MAX_DEPTH} deep"),
    "digits": ("9" * 5000 + " > 1", "cannot be read"),
}
WHEN_IT_RUNS = {  # what only shows with the facts
    "repeat": ("'a' * 9999999999 == ''", "`*` is for numbers"),
    "repeat_a_list": ("[1] * 9999999999 == []", "`*` is for numbers"),
    "repeat_from_the_left": ("9999999999 * 'a' == ''", "`*` is for numbers"),
    "percent": ("'%9999999999d' % 1 == ''", "`%` is for numbers"),
    "join": (f"{'x' * 4000!r} | join({'y' * 4000!r}) == ''", "`join` makes a text of more than 65,536"),
}
TEMPLATES = {
    "loop": ("{% for x in range(99999999) %}{% for y in range(99999999) %}x{% endfor %}{% endfor %}", "a loop"),
    "loop_over_text": ("{% for x in 'abc' %}{{ x }}{% endfor %}", "a loop cannot stand"),
    "macro": ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "a macro cannot stand"),
    "set": ("{% set x = 'ab' %}{% set x = x ~ x %}", "cannot stand"),
    "filter_block": ("{% filter center(9999999999) %}x{% endfilter %}", "cannot stand"),
    "include": ("{% include '/etc/passwd' %}", "cannot stand"),
    "import": ("{% import '/etc/passwd' as x %}", "cannot stand"),
    "extends": ("{% extends '/etc/passwd' %}", "cannot stand"),
    "block": ("{% block a %}{{ self.a() }}{% endblock %}", "cannot stand"),
    "call": ("{{ lipsum(n=99999) }}", "a call cannot stand"),
    "call_block": ("{% macro f() %}{% endmacro %}{% call f() %}{% endcall %}", "cannot stand"),
    "ifs": ("{% if true %}" * 500 + "{% endif %}" * 500, "nested"),
    "elifs": ("{% if 1 %}" + "{% elif 1 %}" * 1300 + "{% endif %}", ""),
    "outputs": ("{{ 1 }}" * 2000, ""),
    "long": ("x" * (MAX_TEXT + 1), "characters, more than"),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_a_condition(name: str) -> None:
    text, words = EXPRESSIONS[name]
    with pytest.raises(CutlintError, match=re.escape(words)) as caught:
        condition(text, "allow entry 1: where")
    assert str(caught.value).startswith("allow entry 1: where")
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_when(name: str, tmp_path: Path) -> None:
    text, words = EXPRESSIONS[name]
    with pytest.raises(CutlintError, match=rf"mine\.toml: `when`.*{re.escape(words)}") as caught:
        load([rule_file(tmp_path, when=text.replace("'", '"'))])
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("field", ["message", "detail"])
@pytest.mark.parametrize("name", [*TEMPLATES, *EXPRESSIONS])
def test_a_message(name: str, field: str, tmp_path: Path) -> None:
    text, words = TEMPLATES[name] if name in TEMPLATES else (f"{{{{ {EXPRESSIONS[name][0]} }}}}", EXPRESSIONS[name][1])
    folder = rule_file(tmp_path, **{field: text.replace("'", '"')})
    if words:
        with pytest.raises(CutlintError, match=rf"mine\.toml: `{field}`.*{re.escape(words)}"):
            load([folder])
    else:
        assert say(mine(folder), {}, detail=field == "detail") is not None


def mine(folder: Path) -> Rule:
    return next(rule for rule in load([folder]) if rule.id == "XYZ001")


@pytest.mark.parametrize("name", WHEN_IT_RUNS)
def test_what_shows_with_the_facts(name: str, tmp_path: Path) -> None:
    text, words = WHEN_IT_RUNS[name]
    text = text.replace("'", '"')
    rule = mine(rule_file(tmp_path, when=text, message=f"{{{{ {text} }}}}", detail=f"{{{{ {text} }}}}"))
    with pytest.raises(CutlintError, match=re.escape(f"XYZ001: its `when` fails: {words}")):
        judge(rule, [{}])
    for detail in (True, False):
        with pytest.raises(CutlintError, match=re.escape(words)):
            say(rule, {}, detail)


DEEP = {  # as deep as is allowed: what Jinja makes of it, Python must be able to compile
    "and": " and ".join(["1"] * MAX_DEPTH),
    "sum": " + ".join(["1"] * MAX_DEPTH),
    "product": " * ".join(["1"] * MAX_DEPTH),
    "attributes": "config" + ".a" * MAX_DEPTH,
    "items": "config" + "[0]" * MAX_DEPTH,
    "filters": "config" + " | lower" * MAX_DEPTH,
    "tests": "(" * (MAX_DEPTH - 2) + "1" + " is odd)" * (MAX_DEPTH - 2),
    "comparisons": "(" * (MAX_DEPTH // 2) + "1" + " == 1)" * (MAX_DEPTH // 2),
    "choices": "1 if 1 else " * MAX_DEPTH + "1",
    "brackets": "[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH,
}


@pytest.mark.parametrize("name", DEEP)
def test_what_is_just_not_too_deep(name: str, tmp_path: Path) -> None:
    """It loads, or is refused for its depth; it is never Python that fails."""
    for cut in range(6):
        text = DEEP[name]
        try:
            rule = mine(rule_file(tmp_path, when=f"{text} == {cut}", message=f"{{{{ {text} }}}}"))
        except CutlintError as error:
            assert "deep" in str(error)
        else:
            assert rule.when.startswith(text[:6])


def test_the_shipped_rules_are_made_of_what_all_can_be() -> None:
    for rule in load():
        for text in (f"{{{{ ({rule.when}) }}}}", rule.message, rule.detail):
            check(Sandbox(), text, FACTS[rule.scope])


TOML = {  # a configuration, and what is said of it
    "deep": ("x = " + "[" * 100_000, "nested too deep"),
    "deep_tables": ("x = " + "{a = " * 50_000, "nested too deep"),
    "dotted": (".".join(["a"] * 100_000) + " = 1", "a key of more than 32 parts"),
    "dotted_header": ("[" + " . ".join(["'a'", '"a"'] * 20_000) + "]", "a key of more than 32 parts"),
    "dotted_inside": ("x = {" + ".".join(["a"] * 100_000) + " = 1}", "a key of more than 32 parts"),
    "digits": ("x = " + "9" * 100_000, "is not valid TOML"),
    "date": ("x = 2020-99-99", "is not valid TOML"),
    "large": ("x = 1\n" + "#" * 2**20, "more than 262,144 bytes"),
    "utf16": ("target = []".encode("utf-16"), "is not valid TOML"),
    "nul": ("target = [\0]", "is not valid TOML"),
    "dots": ("x = '" + ".a" * 100_000 + "'\ny = " + "'" + "." * 20_000 + "'", ""),
}


@pytest.mark.parametrize("name", TOML)
def test_toml(name: str, tmp_path: Path) -> None:
    text, words = TOML[name]
    (tmp_path / "x.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    if words:
        with pytest.raises(CutlintError, match=words) as caught:
            read_toml(tmp_path / "x.toml")
        assert len(str(caught.value)) < 2000
    else:
        read_toml(tmp_path / "x.toml")


@pytest.mark.parametrize(
    ("where", "words"), [("10**10**10 == 0", "`**` cannot stand"), ("'a' * 9999999999 == ''", "is for numbers")]
)
def test_a_configuration(where: str, words: str, tmp_path: Path) -> None:
    """From the checkout's own configuration to the exit code, with bounded time and memory."""
    (tmp_path / "pyproject.toml").write_text(
        f"[[tool.cutlint.allow]]\nrule = 'CUT101'\nreason = 'r'\nwhere = {json.dumps(where)}"
    )
    (tmp_path / "good.cu").write_text(FAILING)
    done = limited("check", "good.cu", "--checkout", CHECKOUT, cwd=tmp_path)
    assert done.returncode == 2
    assert "allow entry 1: where" in done.stderr
    assert words in done.stderr


def test_what_is_no_file_of_a_rule(tmp_path: Path) -> None:
    rule_file(tmp_path)
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(CutlintError, match=r"pipe\.toml cannot be read: it is not a regular file"):
        load([tmp_path])
    (tmp_path / "pipe.toml").unlink()
    (tmp_path / "gone.toml").symlink_to("nowhere")
    with pytest.raises(CutlintError, match=r"gone\.toml cannot be read: it is not there"):
        load([tmp_path])
