"""What a launcher takes from its headers and its own file: members of structs, enumerators, constants, class templates.

Only quoted includes that resolve to a file inside the checkout are looked at, nearest first, and only when a name is asked
for. CUTLASS's own headers are not among them: `cutlint.cutlass` reads those.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import Path

from tree_sitter import Node

from cutlint import cpp
from cutlint.chain import definitions_at_file_level
from cutlint.evaluate import ClassTemplate, Definition, Outside
from cutlint.expression import Name, NotUnderstood, parse

MAX_BYTES = 4 * 2**20
MAX_FILES = 500  # a launcher includes some dozens

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]{1,300})"', re.M)


class Headers(Outside):
    """The file `path` and the headers that it includes, searched below `root`; `texts`, by path, stand in for files."""

    def __init__(self, path: Path, root: Path, texts: Mapping[Path, bytes] | None = None) -> None:
        self._path = path
        self._editor = texts or {}
        self._root = root.resolve()
        self._structs: dict[str, dict[str, Definition]] = {}
        self._enumerations: dict[str, frozenset[str]] = {}
        self._constants: dict[str, Definition | None] = {}
        self._templates: dict[str, tuple[ClassTemplate, ...]] = {}

    def struct(self, name: str) -> dict[str, Definition]:
        """The aliases and constants that the struct `name` defines; empty when there is no such struct."""
        if name not in self._structs:
            self._structs[name] = self._read(name)
        return self._structs[name]

    def enumerators(self, name: str) -> frozenset[str]:
        """The enumerators of the enumeration `name`; empty when there is no such one."""
        if name not in self._enumerations:
            pattern = re.compile(
                rb"\benum\s+(?:class\s+|struct\s+)?" + re.escape(name.encode()) + rb"\b[^{};]*\{([^}]*)\}"
            )
            words: list[str] = []
            for data in self.texts(name):
                match = pattern.search(cpp.blank_comments(data))
                if match is not None:
                    words = [
                        each.split("=")[0].strip() for each in match.group(1).decode("utf-8", "replace").split(",")
                    ]
                    break
            self._enumerations[name] = frozenset(word for word in words if word)
        return self._enumerations[name]

    def constant(self, name: str) -> Definition | None:
        """The constant `name` of a header's namespace, with macros that only a build defines taken as undefined."""
        if name not in self._constants:
            self._constants[name] = next(
                (found[name] for data in self.texts(name) if name in (found := _constants(data, name))), None
            )
        return self._constants[name]

    def templates(self, name: str) -> tuple[ClassTemplate, ...]:
        """The class template `name` of the launcher's own file: its specializations and itself."""
        if name not in self._templates:
            known = name.encode() in self._own
            self._templates[name] = tuple(_class_templates(self._own, name)) if known else ()
        return self._templates[name]

    @cached_property
    def _own(self) -> bytes:
        return self._plain(self._path) or b""

    def _plain(self, path: Path) -> bytes | None:
        text = self._editor.get(path)
        return _plain(path) if text is None else cpp.blank_comments_only(cpp.join_continuations(text))

    def texts(self, word: str) -> Iterator[bytes]:
        """The included files' texts that hold `word`, without comments, the nearest first."""
        spelled = word.encode()
        for data in self._files():
            if spelled in data:
                yield data

    def _files(self) -> Iterator[bytes]:
        """The included files' texts. They are read as far as somebody looks."""
        index = 0
        while True:
            if index == len(self._read_so_far) and not self._read_next():
                return
            yield self._read_so_far[index]
            index += 1

    @cached_property
    def _read_so_far(self) -> list[bytes]:
        return []

    @cached_property
    def _to_read(self) -> list[Path]:
        return self._included(self._path, self._own, set())

    @cached_property
    def _seen(self) -> set[Path]:
        return set(self._to_read)

    def _read_next(self) -> bool:
        """Read the next file that an include names; False when there is none."""
        while self._to_read and len(self._read_so_far) < MAX_FILES:
            path = self._to_read.pop(0)
            data = self._plain(path)
            if data is not None:
                self._to_read.extend(self._included(path, data, self._seen))
                self._read_so_far.append(data)
                return True
        return False

    def _included(self, path: Path, data: bytes, seen: set[Path]) -> list[Path]:
        found = []
        for match in _INCLUDE.finditer(data):
            include = match.group(1).decode("utf-8", "replace")
            if include.startswith(("cutlass/", "cute/")):
                continue
            resolved = self._resolve(path, include)
            if resolved is not None and resolved not in seen:
                seen.add(resolved)
                found.append(resolved)
        return found

    def _resolve(self, path: Path, include: str) -> Path | None:
        first = include.split("/")[0]
        for folder in path.parents:
            for base in (folder, folder / "include", folder / first / "include"):
                if os.path.isfile(base / include):  # noqa: PTH113 (half the time of pathlib's, thousands of times)
                    candidate = (base / include).resolve()
                    if candidate.is_relative_to(self._root):
                        return candidate
            if folder == self._root or folder.resolve() == self._root:
                break
        return None

    def _read(self, owner: str) -> dict[str, Definition]:
        if not owner.isidentifier():
            return {}
        pattern = re.compile(rb"\b(?:struct|class)\s+" + owner.encode() + rb"\s*(?::[^:;{]|\{)")
        for data in self.texts(owner):
            if pattern.search(data) is None:
                continue
            found = definitions_of(data, owner, templates=False)
            if found:
                return found
        return {}


@lru_cache(maxsize=1024)
def _plain_at(path: Path, size: int, changed: int) -> bytes | None:
    try:
        return cpp.blank_comments_only(cpp.join_continuations(path.read_bytes()))
    except OSError:
        return None


def _plain(path: Path) -> bytes | None:
    """A file's text without comments and line continuations; None where it cannot be read or is no header."""
    try:
        status = path.stat()
    except OSError:
        return None
    return _plain_at(path, status.st_size, status.st_mtime_ns) if status.st_size <= MAX_BYTES else None


def _constants(data: bytes, name: str) -> dict[str, Definition]:
    """The definition of the constant `name` in a file, outside any class or function."""
    if re.search(rb"\bconstexpr\b[^;{}()]*\b" + re.escape(name.encode()) + rb"\s*=", data) is None:
        return {}
    found = definitions_at_file_level(cpp.parse(data).root_node.named_children, data, undefined=True)
    return {name: found[name]} if name in found else {}


def _class_templates(data: bytes, name: str) -> Iterator[ClassTemplate]:
    """Every class template named `name` in `data` that has a body, primary or a partial specialization."""
    for struct, node in _classes(data).get(name, ()):
        template = struct.parent
        if template is None or template.type != "template_declaration":
            continue
        tokens = list(cpp.tokens(node, data))
        body, listed = struct.child_by_field_name("body"), template.child_by_field_name("parameters")
        if body is None or listed is None:
            continue
        pattern = None
        if len(tokens) > 1:
            try:
                read = parse(tokens)
            except NotUnderstood:
                continue
            assert isinstance(read, Name)
            pattern = read.parts[0].arguments
        parameters = tuple(parameter_name(each, data) for each in listed.named_children)
        yield ClassTemplate(parameters, pattern, members_of(body, data))


@lru_cache(maxsize=64)
def _classes(data: bytes) -> dict[str, list[tuple[Node, Node]]]:
    """The classes of a file by name, each with the node of its name, which has template arguments for a specialization."""
    found: dict[str, list[tuple[Node, Node]]] = {}
    for struct in cpp.descendants(cpp.parse(data).root_node, "struct_specifier", "class_specifier"):
        named = struct.child_by_field_name("name")
        word = named.child_by_field_name("name") if named is not None and named.type == "template_type" else named
        if named is not None and word is not None and word.type == "type_identifier":
            text = data[word.start_byte : word.end_byte].decode("utf-8", "replace")
            found.setdefault(text, []).append((struct, named))
    return found


def definitions_of(data: bytes, name: str, templates: bool = True) -> dict[str, Definition]:
    """The aliases and constants of the first class `name` in `data`; `templates`: whether it may be a template."""
    for struct, _ in _classes(data).get(name, ()):
        if not templates and struct.parent is not None and struct.parent.type == "template_declaration":
            continue  # a class template's members depend on its arguments
        found: dict[str, Definition] = {}
        outer: Node | None = struct
        while outer is not None:  # a nested class sees the members of those around it
            body = outer.child_by_field_name("body") if outer.type in ("struct_specifier", "class_specifier") else None
            if body is not None:
                found = {**members_of(body, data), **found}
            outer = outer.parent
        if struct.child_by_field_name("body") is not None:
            return found
    return {}


def members_of(body: Node, data: bytes) -> dict[str, Definition]:
    """The aliases and constants among the members of a class `body`."""
    found: dict[str, Definition] = {}
    for child in body.named_children:
        if child.type in ("preproc_ifdef", "preproc_if"):
            for name, definition in members_of(child, data).items():
                found.setdefault(name, definition)
            continue
        parameters: tuple[str, ...] = ()
        statement = child
        if child.type == "template_declaration":
            listed = child.child_by_field_name("parameters")
            if listed is None or not child.named_children:
                continue
            parameters = tuple(parameter_name(each, data) for each in listed.named_children)
            statement = child.named_children[-1]
        if statement.type not in ("alias_declaration", "field_declaration", "declaration"):
            continue
        tokens = list(cpp.tokens(statement, data))
        words = [token.text for token in tokens]
        if "=" not in words or words[-1] != ";" or not ({"using", "constexpr"} & set(words)):
            continue
        equals = words.index("=")
        try:
            value = parse(tokens[equals + 1 : -1])
        except NotUnderstood:
            continue  # whoever needs it will be told that the name is not known
        found.setdefault(words[equals - 1], Definition(words[equals - 1], value, parameters))
    return found


def parameter_name(node: Node, data: bytes) -> str:
    """The name of a template parameter, its default left out."""
    words = [token.text for token in cpp.tokens(node, data)]
    return words[words.index("=") - 1] if "=" in words[1:] else words[-1] if words else ""
