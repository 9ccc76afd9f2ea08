"""Names that somebody else chose appear as text in every format: they change neither its structure nor a terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import cmarkgfm
import msgspec
import pytest
from cmarkgfm.cmark import Options
from reports import finding, report, span
from test_cli import CHECKOUT, FAILING, cutlint
from test_formats import commands

from cutlint.footprint.records import Footprint
from cutlint.formats import FORMATS, render
from cutlint.printable import printable
from cutlint.records import Fix, Location, Suppression
from cutlint.report import InstantiationReport, Report

HOSTILE = [
    "<script>alert(1)</script>",
    "</script></style><img src=x onerror=alert(1)>",
    "\x1b[31mred\x1b[0m\x07",
    "\x9b31mred",
    "a\nb\r\nc\u2028d",
    "x\n::error::y",
    "::error file=a::b%0A",
    "##[error]x",
    "| a | `b` ``c`` *d* __e__ ~~f~~ $g$ |",
    "\\|\\\\|\\`",
    "]]>&amp;<!-- --><![CDATA[",
    "[x](javascript:alert(1)) ![y](//z) <a@b.org>",
    "@someone https://example.org www.example.org",
    "&#60;b&#62;&lt;",
    "'\" onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}${{ secrets.X }}{0}",
    "[bold red]markup[/] :bug:",
    "\u202egnp.\u2066exe\ufeff",
    "\0\ufffe\ufffd",
]
PLAIN = "harmless"


def reported(name: str) -> Report:
    """A report with `name` wherever a checkout, a path or a type is named."""
    place = span(4, 0, 5, 1)
    first = finding(
        file=f"{name}.cu",
        message=f"needs {name}",
        subject=f"Sm120 {name}",
        detail=f"because {name}",
        related=(Location(f"{name}.inl", place, f"decided by {name}"),),
        fixes=(Fix("tile", f"tile {name}", 1, 2),),
    )
    hidden = msgspec.structs.replace(first, suppressed=Suppression("inline", f"reason {name}"), fingerprint="other")
    problem = finding(1, "warning", file=f"{name}.cu", message=f"not sized: {name}", subject="", related=(), fixes=())
    made = report(first, problem, hidden, errors=(f"{name}: no such folder",))
    (source,) = made.sources
    source = msgspec.structs.replace(source, label=name, root=f"/{name}", launchers=(f"{name}.inl",))
    instantiation = InstantiationReport(
        file=f"{name}.cu",
        range=first.range,
        name=name,
        subject=name,
        launcher=f"{name}.inl",
        decisions=(Location(f"{name}.inl", place, f"decided by {name}"),),
        skipped=False,
        guard=name,
        arguments={"ElementType_": name},
        config=None,
        footprint=Footprint("model", refused=name),
        compared=None,
        unknown=name,
    )
    return msgspec.structs.replace(made, sources=(source,), instantiations=(instantiation,))


class Page(HTMLParser):
    """The tags and attributes' names of a page, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, ...]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, *(name for name, _ in attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.tags.append((f"/{tag}",))

    def handle_data(self, data: str) -> None:
        self.text += data


def lines(text: str) -> tuple[object, str]:
    return len(text.split("\n")), text


def values(text: str) -> tuple[object, str]:
    """The shape of a JSON document, and its strings, with the escapes of SARIF's messages and of URIs resolved too."""
    strings: list[str] = []

    def shape(value: Any, files: bool = False) -> object:
        if isinstance(value, dict):
            strings.extend(value)
            return [(None if files else key, shape(each, key == "files")) for key, each in value.items()]
        if isinstance(value, list):
            return [shape(each) for each in value]
        if isinstance(value, str):
            strings.extend([value, unquote(value).replace("\\[", "[").replace("\\]", "]")])
        return type(value).__name__

    return shape(json.loads(text)), "\n".join(strings)


def actions(text: str) -> tuple[object, str]:
    """The workflow commands that the runner sees, also those of its first kind, ``##[command]`` at a line's beginning."""
    found = commands(text)
    starts = [line[:2] for line in text.split("\n")]
    said = "\n".join("\n".join([*properties.values(), message]) for _, properties, message in found)
    return ([(name, [*properties]) for name, properties, _ in found], starts), said


def xml(text: str) -> tuple[object, str]:
    root = ElementTree.fromstring(text.encode())
    said = "\n".join([*root.itertext(), *(value for each in root.iter() for value in each.attrib.values())])
    return [(each.tag, [*each.attrib]) for each in root.iter()], said


def html(text: str) -> tuple[object, str]:
    page = Page(text)
    return page.tags, page.text


def github_markdown(text: str) -> tuple[object, str]:
    """As GitHub parses it, before anything is sanitized."""
    return html(cmarkgfm.github_flavored_markdown_to_html(text, Options.CMARK_OPT_UNSAFE))


READERS: dict[str, Callable[[str], tuple[object, str]]] = {  # structure and text, as the format's consumer sees them
    "text": lines,
    "json": values,
    "sarif": values,
    "github": actions,
    "gitlab": values,
    "junit": xml,
    "markdown": github_markdown,
    "html": html,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("form", FORMATS)
def test_as_text(form: str, name: str) -> None:
    read = READERS[form]  # a new format says here how it is read
    rendered = render(reported(name), form)
    structure, said = read(rendered)
    assert structure == read(render(reported(PLAIN), form))[0]
    assert printable(name) in said or name in said
    assert {each for each in rendered if not each.isprintable()} == {"\n"}, "nothing that a terminal would act on"


@pytest.mark.parametrize("form", FORMATS)
def test_from_a_folder_to_the_report(form: str, tmp_path: Path) -> None:
    """A file of that name on the disk, and a type of that name in it."""
    path = tmp_path / "a\x1b[31m\n::error::|`<script>alert(1)<\u2215script>.cu"
    path.write_text(FAILING + FAILING.replace("SafeFP4, SafeFP4", "<script>`|\x1b[31m, SafeFP4"))
    done = cutlint("check", tmp_path, "--checkout", CHECKOUT, "--format", form, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert not any(line.startswith("::error::|") for line in done.stdout.splitlines())
    structure, said = READERS[form](done.stdout)
    assert "<script>alert(1)<\u2215script>.cu" in said
    if form == "markdown":
        assert ("script",) not in structure
