"""Expressions and aliases: values by C++'s rules, worked by hand."""

from __future__ import annotations

import pytest

from cutlint import cpp
from cutlint.evaluate import Definition, Scope, Type
from cutlint.expression import Expression, NotUnderstood, parse


def expression(text: str) -> Expression:
    statement = f"{'using x' if text.endswith('*') else 'int x'} = {text};".encode()
    return parse(list(cpp.tokens(cpp.parse(statement).root_node, statement))[3:-1])


def value(text: str, **definitions: str) -> object:
    known = {name: Definition(name, expression(body)) for name, body in definitions.items()}
    return Scope(known, {}).evaluate(expression(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-7 / 2", -3),  # C++ truncates toward zero
        ("-7 % 2", -1),
        ("1 << 4 | 1", 17),
        ("0x10 + 1'000u", 1016),
        ("true && !false", True),
        ("1 < 2 && 2 >= 2", True),
        ("1 == 1 ? 5 : 6", 5),
        ("false ? 1 : true ? 2 : 3", 2),
        ("std::conditional_t<(3 > 2), cute::Int<4>, cute::Int<5>>", 4),
        ("cutlass::platform::is_same<half, __half>::value", True),
        ("std::is_same_v<__nv_bfloat16, nv_bfloat16>", True),
        ("std::is_same_v<half, float>", False),
        ("128 / cutlass::sizeof_bits<cutlass::float_e2m1_t>::value", 32),
        ("cute::sizeof_bits_v<cutlass::half_t>", 16),
        ("cute::size<1>(cute::Shape<cute::_128, cute::Int<64>, cute::_1>{})", 64),
        ("cute::size(cute::Shape<cute::_2, cute::Int<3>>{})", 6),
        ("cutlass::arch::Sm120::kMinComputeCapability >= 120", True),
        ("static_cast<int>(sizeof(float) + 4)", 8),
        ("cute::max(3, 9) - cute::min(3, 9)", 6),
        ("sizeof(int*)", 8),
    ],
)
def test_constants(text: str, expected: object) -> None:
    assert value(text) == expected


def test_aliases_are_followed() -> None:
    tile = value(
        "Tile", M="64 * 2", Tile="cute::Shape<cute::Int<M>, cute::Int<N * (M > 64 ? 2 : 1)>, cute::_128>", N="32"
    )
    assert tile == Type("Shape", (128, 64, 128))
    assert str(value("Layout*", Layout="cutlass::layout::RowMajor")) == "RowMajor*"


def test_a_local_alias_does_not_shadow_a_qualified_name() -> None:
    found = value("cutlass::gemm::collective::StageCount<Two>", StageCount="void", Two="2")
    assert found == Type("StageCount", (2,))


def test_the_branch_not_taken_need_not_be_understood() -> None:
    assert value("std::conditional_t<true, half, cute::Int<unknown_function(3)>>") == Type("half")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 +", "unexpected|ends too early"),
        ("1 / 0", "division by zero"),
        ("1 << 70", "shift by 70"),
        ("Unknown + 1", "'Unknown' is not a constant"),
        ("cute::size<7>(cute::Shape<cute::_1>{})", "mode 7 of a shape of 1"),
        ("unknown_function(3)", "'unknown_function' is not known"),
        ("sizeof(SomeStruct)", "size of 'SomeStruct' is not known"),
        ("(" * 200 + "1" + ")" * 200, "nested more than"),
    ],
)
def test_what_is_not_understood_says_so(text: str, message: str) -> None:
    with pytest.raises(NotUnderstood, match=message):
        value(text)


def test_aliases_that_refer_to_each_other() -> None:
    with pytest.raises(NotUnderstood, match="refers to itself"):
        value("A", A="B + 1", B="A + 1")
