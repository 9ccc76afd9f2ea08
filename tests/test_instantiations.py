"""Generated files in every layout."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import FIXTURES

from cutlint import instantiations

MACRO = "INSTANTIATE_TMA_WARP_SPECIALIZED_MOE_GEMM"
LAYOUTS = FIXTURES / "generated" / "layouts.cu"


def test_every_layout() -> None:
    found, problems = instantiations.read(LAYOUTS)
    assert problems == []
    assert [(each.name, len(each.arguments)) for each in found] == [(MACRO, 17)] * 4 + [("some_kernelLauncher", 3)]
    assert [each.arguments[7:10] for each in found[:4]] == [
        ("128", "128", "128"),
        ("128", "256", "128"),
        ("256", "128", "128"),
        ("128", "64", "128"),
    ]
    assert found[1].arguments[:4] == ("Sm120", "SafeFP4", "SafeFP4", "__nv_bfloat16")
    assert found[4].arguments == ("half", "cute::Shape<cute::Int<128>, cute::Int<64>>", "3")


def test_guards_are_recorded() -> None:
    found, _ = instantiations.read(LAYOUTS)
    assert [each.guard for each in found] == [
        None,
        "defined(ENABLE_FP4) && defined(ENABLE_BF16)",
        "!(defined(ENABLE_FP4) && defined(ENABLE_BF16))",
        "defined(ENABLE_FP8)",
        None,
    ]


def test_ranges_are_those_of_the_language_server_protocol() -> None:
    found, _ = instantiations.read(LAYOUTS)
    lines = LAYOUTS.read_text().splitlines()
    assert (found[0].range.start.line, found[0].range.start.character) == (3, 0)
    assert found[0].range.end.character == len(lines[3])
    second = found[1].range
    assert lines[second.start.line].startswith(f"  {MACRO}")
    assert (lines[second.end.line], second.end.character) == ("  ;", 3)
    assert found[3].range.start.character == len("/* Größe: */ ")  # UTF-16 units, not bytes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{MACRO}(Sm120, SafeFP4, SafeFP4, half, void", "no closing parenthesis"),
        ("template void launcher<half, cute::Int<3>(int);", "no closing bracket"),
        ("template void launcher<half, cute::Int<3>>(int", "no semicolon"),
        ("\0\1\2" * 10, "binary"),
    ],
)
def test_what_cannot_be_read_is_a_problem(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.generated.cu"
    path.write_text(text)
    found, problems = instantiations.read(path)
    assert found == []
    assert len(problems) == 1
    assert message in problems[0].message


def test_a_file_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large.cu"
    with path.open("wb") as file:
        file.truncate(50 * 2**20)
    found, problems = instantiations.read(path)
    assert found == []
    assert "52,428,800 bytes" in problems[0].message


def test_bad_utf8_does_not_hide_what_is_good(tmp_path: Path) -> None:
    path = tmp_path / "latin.cu"
    path.write_bytes(b"// caf\xe9\n" + f"{MACRO}(Sm120, SafeFP4);\n".encode())
    found, problems = instantiations.read(path)
    assert problems == []
    assert [each.arguments for each in found] == [("Sm120", "SafeFP4")]


def test_a_macro_of_a_million_arguments(tmp_path: Path) -> None:
    path = tmp_path / "many.cu"
    path.write_text(f"{MACRO}(" + "1," * 1_000_000 + "1);")
    found, problems = instantiations.read(path)
    assert found == []
    assert len(problems) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"// {MACRO}(a);",
        f'const char* a = "{MACRO}(a);";',
        f'const char* a = R"x(\n" {MACRO}(a); )" \n)x";',
        f"#ifdef {MACRO}\n#undef {MACRO}\n#endif",
        f"#define {MACRO}(a) a",
        f"#include <{MACRO}.h>",
        "extern template void launcher<half>(int);",
        "template <class T> void launcher(T);",
        "template class Launcher<half>;",
        "void f() { a.template f<half>(); }",
    ],
)
def test_what_only_mentions_an_instantiation_is_none(tmp_path: Path, text: str) -> None:
    assert instantiations.scan(tmp_path / "a.cu", text.encode()) == ([], [])


def test_a_macro_that_wraps_instantiations_is_told(tmp_path: Path) -> None:
    text = f"#define ALL(type) \\\n  {MACRO}(Sm90, type);\nALL(half)\n"
    found, problems = instantiations.scan(tmp_path / "a.cu", text.encode())
    assert found == []
    assert [(each.message, each.range and each.range.start.line) for each in problems] == [
        ("a macro of this file wraps instantiations: those are not seen", 1)
    ]
