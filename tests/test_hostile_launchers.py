"""Launchers that nobody would write by accident: what cannot be evaluated is told of, in bounded time and memory."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import CHECKOUT, LAUNCHER
from host import checkout
from test_hostile_files import DEEP, limited

TEXT = LAUNCHER.read_text()
FIRST = "    using ArchTag = cutlass::arch::ArchTag_;"


def being(name: str, value: str) -> str:
    """The launcher with the alias or constant `name` as `value`."""
    text, count = re.subn(rf" {name} =[^;]*;", lambda match: f" {name} = {value};", TEXT, count=1)
    assert count == 1
    return text


def beginning(*statements: str) -> str:
    """The launcher with `statements` before all others."""
    assert FIRST in TEXT
    return TEXT.replace(FIRST, " ".join([FIRST, *statements]))


def chained(made: Callable[[int], str], count: int) -> str:
    """The launcher with T at the end of a chain of `count` aliases, each `made` of the one before."""
    aliases = [f"using P{index + 1} = {made(index)};" for index in range(count)]
    return beginning("using P0 = DataType_;", *aliases).replace("using T = DataType_;", f"using T = P{count};")


SQUARES = beginning("constexpr int Q0 = 3;", *(f"constexpr int Q{n + 1} = Q{n} * Q{n};" for n in range(60)))
CASES: dict[str, tuple[str, str]] = {
    "deep_type": (being("T", "A<" * DEEP + "DataType_" + ">" * DEEP), ""),
    "deep_parentheses": (being("AlignmentD", "(" * DEEP + "8" + ")" * DEEP), "nested"),
    "long_sum": (being("AlignmentD", "+".join(["0"] * DEEP)), "not a function"),
    "refers_to_itself": (being("Cluster", "std::conditional_t<DYNAMIC_CGA_, Cluster, Cluster>"), "refers to itself"),
    "cycle": (beginning("using P = Q<int>; using Q = P;").replace("T = DataType_;", "T = P;"), "not known"),
    "long_chain": (chained(lambda n: f"std::conditional_t<true, P{n}, P{n}>", 2000), "nested too deep"),
    "doubling": (chained(lambda n: f"Pair<P{n}, P{n}>", 60), "more than 10,000 parts"),
    "powers": (SQUARES.replace("AlignmentAct = 128 /", "AlignmentAct = Q60 /"), "does not fit into 64 bits"),
    "shift": (being("AlignmentD", "1 << 100000000"), "a shift by 100000000"),
    "division": (being("AlignmentD", "8 / 0"), "division by zero"),
    "remainder": (being("AlignmentD", "8 % 0"), "division by zero"),
    "ceil_div": (being("AlignmentD", "cute::ceil_div(8, 0)"), "division by zero"),
    "round_up": (being("AlignmentD", "cute::round_up(8, 0)"), "division by zero"),
    "no_arguments": (being("AlignmentD", "cute::max()"), "'max' of 0 arguments"),
    "one_argument": (being("AlignmentD", "cute::max(1)"), "'max' of 1 arguments"),
    "nothing_to_compare": (being("IsFP8", "std::is_same_v<T>"), "'is_same_v' of 1 arguments"),
    "no_integer": (being("AlignmentD", "cute::Int<>{}"), "a number is expected"),
    "shapes": (
        being("TileShape", "decltype(cute::shape_div(cute::Shape<cute::_1>{}, cute::Shape<cute::_1, cute::_1>{}))"),
        "a shape of 1 divided by one of 2",
    ),
    "no_adapter": (being("ElementAct", "typename TllmToCutlassTypeAdapter<>::type"), "not known"),
    "stages": (being("Stages", "cutlass::gemm::collective::StageCount<1000000000000>"), "not a number of stages"),
    "braces": ("{" * 10**6 + TEXT, "nested deeper"),
    "less_than": ("a<" * 500_000 + TEXT, "nested deeper"),
    "nul": (TEXT[:3000] + "\0" + TEXT[3000:], "not a launcher"),
    "huge": (TEXT + " " * 10**7, "not a launcher"),
    "cut": (TEXT[:5000], ""),
    "includes_itself": (f'#include "{LAUNCHER.name}"\n#include "/etc/passwd"\n{being("T", "U")}', ""),
}


@pytest.mark.parametrize("name", CASES)
def test_a_launcher(name: str, tmp_path: Path) -> None:
    text, words = CASES[name]
    root = checkout(tmp_path, [(128, 256, 128)])
    (root / LAUNCHER.relative_to(CHECKOUT)).write_text(text)
    done = limited("check", ".", "--format", "json", cwd=root)
    said = [each["message"] for each in json.loads(done.stdout)["findings"] if each["rule"] == "CUT902"]
    assert any(words in each for each in said), said
    assert all(len(each) < 2000 for each in said)
