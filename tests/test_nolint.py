"""NOLINT comments. What is expected is what clang-tidy's documentation says ("Suppressing Undesired Diagnostics") and its own
tests show (test/clang-tidy/infrastructure/nolint.cpp), with rule ids in place of its checks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports import span

from cutlint import nolint
from cutlint.records import Range


def suppressed(text: str, line: int, rule: str = "CUT101") -> bool:
    """Whether a finding of `rule` that begins and ends on `line` (from zero) counts no more."""
    at = text.split("\n")[line].find("K(")
    where = span(line, at, line, at + 2)
    return any(
        not each.unmatched and each.covers(where) and each.word_for(rule) is not None
        for each in nolint.scan(text.encode())
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("K(1);", False),
        ("K(1); // NOLINT", True),
        ("K(1); // NOLINT: allowed, because <some valid reason>", True),
        ("K(1); // NOLINT(CUT101, CUT102)", True),
        ("K(1); // NOLINT(CUT102,CUT101)", True),
        ("K(1); // NOLINT( CUT101 )", True),
        ("K(1); // NOLINT(CUT102)", False),
        ("K(1); // NOLINT(google*)", False),
        ("K(1); // NOLINT(CUT1*)", True),
        ("K(1); // NOLINT(*101)", True),
        ("K(1); // NOLINT(-CUT101)", False),  # negative globs are ignored
        ("K(1); // NOLINT(*)", True),
        ("K(1); // NOLINT()", False),
        ("K(1); // NOLINT(not-closed-bracket-is-treated-as-skip-all", True),
        ("K(1); // NOLINT without-brackets-skip-all, another-check", True),
        ("K(1); // NOLINT (CUT102)", True),  # a space before the parenthesis: treated as just NOLINT
        ("K(1); // NOLINTNEXTLINE", False),
        ("K(1); // nolint", False),
        ("K(1); // NOLINTXYZ", False),
        ("K(1); // NOLINTnextline", False),
        ("K(1); /* NOLINT */", True),
        ("/* NOLINT */ K(1);", True),
        ("K(1); // NOLINT(CUT102) NOLINT(CUT101)", True),
        ("/* NOLINTBEGIN */ K(1); /* NOLINTEND */", True),
        # only in comments, which is cutlint's own
        ('K("NOLINT");', False),
        ('K("// NOLINT");', False),
        ('K("\\"// NOLINT");', False),
        ('K(R"x(" // NOLINT)x");', False),
        ('K(R"(a\\)"); // NOLINT', True),
        ("K(1'000, '\"'); // NOLINT", True),
        ("K('\"', 1'0); /* \" */ // NOLINT", True),
        ("K(u8'a', 1'0'0); // don't NOLINT", True),
        ("NOLINT K(1);", False),
    ],
)
def test_on_the_same_line(line: str, expected: bool) -> None:
    assert suppressed(line, 0) == expected
    assert not suppressed(f"{line}\n\nK(2);", 2)


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("// NOLINTNEXTLINE(CUT101, CUT102)\nK(1);", 1, True),
        ("// NOLINTNEXTLINE(google*)\nK(1);", 1, False),
        ("// NOLINTNEXTLINE\n\nK(1);", 2, False),
        ("// NOLINTNEXTLINE\r\nK(1);\r", 1, True),
        ("// NOLINT\nK(1);", 1, False),
        ("// NOLINTBEGIN(CUT101, CUT102)\nK(1);\nK(2);\n// NOLINTEND(CUT101, CUT102)\n", 2, True),
        ("// NOLINTBEGIN(CUT101, CUT102)\nK(1);\n// NOLINTEND(CUT101,CUT102)\n", 1, True),  # white space is ignored
        ("// NOLINTBEGIN(CUT1*)\nK(1);\n// NOLINTEND(CUT1*)\n", 1, True),
        ("// NOLINTBEGIN\n// NOLINTEND\nK(1);", 2, False),
        ("// NOLINTBEGIN\nK(1);", 1, False),
        ("// NOLINTBEGIN(CUT101)\nK(1);\n// NOLINTEND", 1, False),  # must match in their arguments
        ("// NOLINTBEGIN\nK(1);\n// NOLINTEND(CUT101)", 1, False),
        ("// NOLINTBEGIN\n// NOLINTBEGIN(CUT102)\nK(1);\n// NOLINTEND(CUT102)\n// NOLINTEND", 2, True),
        ('// NOLINTBEGIN\nK("/* NOLINTEND */");\nK(2);\n// NOLINTEND', 2, True),
    ],
)
def test_over_lines(text: str, line: int, expected: bool) -> None:
    assert suppressed(text, line) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("// NOLINTBEGIN\n// NOLINTEND", []),
        ("// NOLINTBEGIN", ["NOLINTBEGIN"]),
        ("// NOLINTEND", ["NOLINTEND"]),
        ("// NOLINTBEGIN(CUT101)\n// NOLINTEND", ["NOLINTBEGIN(CUT101)", "NOLINTEND"]),
        ("// NOLINTBEGIN(a)\n// NOLINTBEGIN(b)\n// NOLINTEND(a)\n// NOLINTEND(b)", ["NOLINTBEGIN(a)", "NOLINTEND(a)"]),
        ("// NOLINTBEGIN NOLINTBEGIN NOLINTEND", ["NOLINTBEGIN"]),
    ],
)
def test_blocks_that_do_not_end(text: str, expected: list[str]) -> None:
    assert [each.text for each in nolint.scan(text.encode()) if each.unmatched] == expected


@pytest.mark.parametrize(
    ("comment", "reason"),
    [
        ("// NOLINT: known, see #12", "known, see #12"),
        ("// NOLINT(CUT101): not built", "not built"),
        ("/* NOLINT(CUT101) - not built */", "not built"),
        ("// NOLINT(CUT101)", ""),
        ("// NOLINT(CUT101): a NOLINT(CUT102): b", "a"),
    ],
)
def test_reasons(comment: str, reason: str) -> None:
    assert nolint.scan(comment.encode())[0].reason == reason


def test_any_line_of_a_finding_that_spans_several() -> None:
    (directive,) = nolint.scan(b"K(1,\n  2); // NOLINT")
    assert directive.covers(span(0, 0, 1, 5))
    assert not directive.covers(span(2, 0, 3, 5))


PIECES = st.sampled_from(
    [
        "NOLINT",
        "NOLINTBEGIN",
        "NOLINTEND",
        "NOLINTNEXTLINE",
        "(",
        ")",
        "CUT101",
        "*",
        "//",
        "/*",
        "*/",
        '"',
        "'",
        "\n",
        "\\",
        'R"(',
        "é",
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_any_text(text: str) -> None:
    directives = nolint.scan(text.encode())
    for each in directives:
        assert isinstance(each.range, Range)
        assert text.split("\n")[each.range.start.line][each.range.start.character :].startswith("NOLINT")
    begun = sum(each.kind == "NOLINTBEGIN" for each in directives)
    ended = sum(each.end is not None for each in directives)
    assert begun - ended == sum(each.kind == "NOLINTBEGIN" and each.unmatched for each in directives)


def test_long_hostile_text_takes_linear_time() -> None:
    for text in (b'R"(' * 300_000, b"/*" * 500_000, b'"' * 500_000, b"// NOLINT(" * 100_000, b"NOLINTBEGIN " * 50_000):
        nolint.scan(text + b" NOLINT")
