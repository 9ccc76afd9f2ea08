"""Files that nobody would write by accident: each is analysed or told of, in bounded time and memory, and so is the rest."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_cli import CHECKOUT, FAILING, MACRO

DEEP = 10_000
SECONDS = 60  # for one run, on a busy machine; each takes one to five
MEMORY = 2 * 2**30  # bytes of address space


def with_argument(index: int, text: str) -> str:
    """The failing instantiation with one argument replaced."""
    words = FAILING[FAILING.index("(") + 1 : FAILING.rindex(")")].split(", ")
    words[index] = text
    return f"{MACRO}({', '.join(words)});\n"


def limited(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """`cutlint` with no more than so much time and memory."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))

    command = [sys.executable, "-m", "cutlint.cli", *map(str, words)]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cwd / ".cache")}
    done = subprocess.run(
        command,
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        preexec_fn=limit,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    assert done.returncode in (0, 1, 2), done.stderr
    return done


def findings(done: subprocess.CompletedProcess[str]) -> dict[str, list[dict[str, Any]]]:
    """The findings of a run by file."""
    assert done.stdout, done.stderr
    found: dict[str, list[dict[str, Any]]] = {}
    for each in json.loads(done.stdout)["findings"]:
        found.setdefault(each["file"], []).append(each)
    return found


def check_beside_a_good_file(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The findings in `folder`, in which a file that fails as it should is put first."""
    (folder / "good.cu").write_text(FAILING)
    done = limited("check", folder, "--checkout", CHECKOUT, "--format", "json", cwd=folder)
    found = findings(done)
    assert "CUT101" in [each["rule"] for each in found["good.cu"]], "the rest is still analysed"
    return found


# What is in the file, and what is said of it: the rule and words of its message
WRITTEN: dict[str, tuple[str | bytes, str, str]] = {
    "deep_template": (with_argument(1, "A<" * DEEP + "int" + ">" * DEEP), "CUT902", "nested deeper"),
    "rather_deep": (with_argument(1, "A<" * 900 + "int" + ">" * 900), "CUT902", "nested more than 100 deep"),
    "less_than": (with_argument(1, "A") + "a<" * 100_000, "CUT902", "'A' is not known"),
    "deep_explicit": (
        f"template void sm90_generic_mixed_gemm_kernelLauncher<{'A<' * DEEP}int{'>' * DEEP}>(int);\n",
        "CUT902",
        "not sized",
    ),
    "deep_parentheses": (with_argument(7, "(" * DEEP + "128" + ")" * DEEP), "CUT902", "more than 32 deep"),
    "parentheses": (with_argument(7, "(" * 100 + "128" + ")" * 100), "CUT902", "parentheses nested more than 32 deep"),
    "many_arguments": (f"{MACRO}({','.join(['1'] * 500_000)});\n", "CUT902", "more than 4,096 arguments"),
    "many_template_arguments": (
        f"template void sm90_generic_mixed_gemm_kernelLauncher<{','.join(['1'] * 500_000)}>(int);\n",
        "CUT902",
        "no semicolon",
    ),
    "unclosed": ((MACRO + "(") * 20_000, "CUT902", "more than 32 deep"),
    "wrong_everywhere": ((MACRO + ";") * 20_000, "CUT902", "the rest of the file is not"),
    "unclosed_templates": ("template void f<" * 20_000, "CUT902", "no semicolon"),
    "long_call": (f"{MACRO}({' ' * 10**6}1);\n", "CUT902", "no closing parenthesis within"),
    "negative": (with_argument(7, "-128"), "CUT902", "-128"),
    "zero": (with_argument(10, "0"), "CUT902", "0 is not"),
    "digits": (with_argument(7, "9" * 5000), "CUT902", "does not fit into 64 bits"),
    "wide": (with_argument(7, str(2**64)), "CUT902", "does not fit into 64 bits"),
    "arabic_digits": (with_argument(7, "\u0661\u0662\u0668"), "CUT902", "unexpected"),
    "shift": (with_argument(7, "1<<100000000"), "CUT902", "not one value"),
    "division": (with_argument(7, "128/0"), "CUT902", "not one value"),
    "nul": (FAILING + "\0" + FAILING, "CUT902", "binary"),
    "utf16": (FAILING.encode("utf-16"), "CUT902", "binary"),
    "invalid_utf8": (FAILING.encode().replace(b"half", b"ha\xff\xfelf"), "CUT902", "unexpected"),
    "surrogate": (FAILING.encode().replace(b"half", b"\xed\xa0\x80"), "CUT902", "unexpected"),
    "deep_if": ("#if A\n" * DEEP + FAILING + "#endif\n" * DEEP, "CUT101", "102,400"),
    "open_if": ("#ifdef A\n" * DEEP + FAILING, "CUT101", "102,400"),
    "endif": ("#endif\n" * DEEP + FAILING, "CUT101", "102,400"),
    "open_comment": ("/* " + FAILING, "CUT902", "no instantiation"),
    "open_string": ('"' + FAILING, "CUT101", "102,400"),
    "open_raw_string": ('R"x(' + FAILING, "CUT902", "no instantiation"),
    "continuations": ("\\\n" * 100_000 + FAILING, "CUT101", "102,400"),
    "slashes": ("/" * 10**6, "CUT902", "no instantiation"),
    "quotes": ('"' * 1_000_001, "CUT902", "no instantiation"),
    "comments": ("/*" * 500_000, "CUT902", "no instantiation"),
    "braces": ("{" * 100_000 + FAILING, "CUT101", "102,400"),
    "includes_itself": ('#include "includes_itself.cu"\n' + FAILING, "CUT101", "102,400"),
    "one_line": (FAILING.strip() + " " * 10**8, "CUT902", "not read"),
    "empty": ("", "CUT902", "no instantiation"),
    "refers_to_the_kernel": (with_argument(3, "GemmKernel"), "CUT902", "'GemmKernel' refers to itself"),
    "size_of_the_mainloop": (with_argument(7, "sizeof(Mainloop)"), "CUT902", "'Mainloop' refers to itself"),
    "a_string": (with_argument(3, '"half"'), "CUT902", "unexpected"),
    "pasting": (with_argument(3, "##"), "CUT902", "unexpected"),
    "long_name": (with_argument(3, "x" * 60_000), "CUT902", "not known"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file(name: str, tmp_path: Path) -> None:
    text, rule, words = WRITTEN[name]
    (tmp_path / f"{name}.cu").write_bytes(text.encode() if isinstance(text, str) else text)
    said = check_beside_a_good_file(tmp_path)[f"{name}.cu"]
    assert any(each["rule"] == rule and words in each["message"] for each in said), said[:3]
    assert all(len(each["message"]) < 2000 for each in said), "a message is for people"


def test_what_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder.cu").mkdir()
    (tmp_path / "folder.cu/inside.cu").write_text(FAILING)
    os.mkfifo(tmp_path / "pipe.cu")
    (tmp_path / "device.cu").symlink_to("/dev/zero")
    (tmp_path / "self.cu").symlink_to("self.cu")
    (tmp_path / "a.cu").symlink_to("b.cu")
    (tmp_path / "b.cu").symlink_to("a.cu")
    (tmp_path / "loop").symlink_to(".")
    (tmp_path / "gone.cu").symlink_to("nowhere.cu")
    (tmp_path / "outside.cu").symlink_to("/etc/passwd")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(tmp_path)  # a socket's name is short
        server.bind("socket.cu")
        found = check_beside_a_good_file(tmp_path)
    for name in ("pipe", "device", "self", "a", "b", "gone", "outside", "socket"):
        assert [each["rule"] for each in found[f"{name}.cu"]] == ["CUT902"], name
    assert "CUT101" in [each["rule"] for each in found["folder.cu/inside.cu"]], "a folder may be named so"
    assert "loop/good.cu" not in found


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser reads everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "closed.cu").write_text(FAILING)
    (tmp_path / "closed.cu").chmod(0)
    (said,) = check_beside_a_good_file(tmp_path)["closed.cu"]
    assert "Permission denied" in said["message"]
