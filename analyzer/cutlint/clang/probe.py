"""The C++ text that libclang is given: a header to precompile, and units of probes, made of the launcher's own statements.

A probe is a namespace with the launcher's statements up to the kernel's type, its parameters set to an instantiation's
arguments, and an enumeration whose values are the answers. Each statement stands on a line of its own,
so that an error's notes tell which probe it belongs to. Nothing here reads a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from cutlint.clang.records import Unit
from cutlint.launcher import Launcher

PREFIX = "cutlint_probe_"
VALUES, STORAGE = "cutlint_values", "cutlint_storage"
QUESTIONS = (
    "mainloop", "mainloop_tensors", "epilogue", "epilogue_tensors", "threads", "stages", "stages_ab", "stages_sf",
    "stages_c", "stages_d", "epilogue_tile_m", "epilogue_tile_n",
    "thread_count", "kernel_stages",
)  # fmt: skip

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\b[A-Za-z_]\w*')
_PASTED = re.compile(r"\s*##\s*")
_NO_ARGUMENT = re.compile(r'[;{}#\\"\r\n]|//|/\*')  # would end the statement it is put into, or the line


def unfit(arguments: Mapping[str, str]) -> str | None:
    """Why these arguments cannot be put into a probe; None if they can."""
    for name, text in arguments.items():
        if _NO_ARGUMENT.search(text) or text.count("(") != text.count(")"):
            return f"the argument {text!r} for {name} is neither a type nor a value"
    return None


def header(launcher: str) -> str:
    """The text to precompile: what every probe of the launcher at the path `launcher` needs."""
    return f'#include "cutlint_prelude.h"\n#include "{launcher}"\n#include "cutlint_probe.h"\n'


def unit(launcher: Launcher, namespaces: Sequence[str], items: Iterable[tuple[int, Mapping[str, str]]]) -> Unit:
    """A translation unit with a probe of `launcher` for each of `items`: an index, and arguments by parameter name.

    `namespaces` are those that the launcher is in. A macro's arguments are put in as text, a template's are declared.
    """
    kernel = launcher.kernel
    total = f"sizeof({STORAGE})" if launcher.static_size is None else f"{kernel}::{launcher.static_size}"
    asked = [f"{name} = ::cutlint_probe::{name}<{kernel}>::value" for name in QUESTIONS]
    values = ", ".join(f"{VALUES}_{each}" for each in (f"total = {total}", f"align = alignof({STORAGE})", *asked))
    lines = [" ".join(f"namespace {name} {{" for name in namespaces)]
    spans: list[tuple[int, int]] = []
    for index, arguments in items:
        first = len(lines) + 1
        lines.append(f"namespace {PREFIX}{index} {{")
        lines += [each.bound(arguments[each.name]) for each in launcher.declared if each.declared is not None]
        replaced = {each.name: arguments[each.name] for each in launcher.declared if each.declared is None}
        lines += [substituted(each, replaced) for each in launcher.statements]
        lines.append(f"using {STORAGE} = typename ::cutlint_probe::storage<{kernel}>::type;")
        lines.append(f"enum {VALUES} : long long {{ {values} }};")
        lines.append("}")
        spans.append((first, len(lines)))
    lines.append("}" * len(namespaces))
    return Unit("\n".join(lines) + "\n", tuple(spans), PREFIX)


def empty() -> Unit:
    """A translation unit without probes."""
    return Unit("", (), PREFIX)


def substituted(statement: str, arguments: Mapping[str, str]) -> str:
    """A statement of the macro's body as the preprocessor would leave it."""
    replaced = _TOKEN.sub(lambda match: arguments.get(match.group(), match.group()), statement)
    return _PASTED.sub("", replaced) if "##" in replaced else replaced
