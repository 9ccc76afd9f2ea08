"""Members of structs that a launcher takes from its headers, such as ``TmaWarpSpecializedGroupedGemmInput::LayoutD``.

Only quoted includes that resolve to a file inside the checkout are looked at, one level deep, and only when a name
is asked for.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from tree_sitter import Node

from cutlint import cpp
from cutlint.evaluate import Definition
from cutlint.expression import NotUnderstood, parse

MAX_BYTES = 4 * 2**20


class Headers:
    """The headers that the launcher `path` includes, searched below `root`."""

    def __init__(self, path: Path, root: Path) -> None:
        self._path = path
        self._root = root.resolve()
        self._structs: dict[str, dict[str, Definition]] = {}
        self._enumerations: dict[str, frozenset[str]] = {}

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
            matches = [pattern.search(cpp.blank_comments(data)) for data in self.files.values()]
            bodies = [match.group(1).decode("utf-8", "replace") for match in matches if match is not None]
            words = [each.split("=")[0].strip() for body in bodies[:1] for each in body.split(",")]
            self._enumerations[name] = frozenset(word for word in words if word)
        return self._enumerations[name]

    @cached_property
    def files(self) -> dict[Path, bytes]:
        """The included files' texts."""
        try:
            text = cpp.blank_comments_only(self._path.read_bytes())
        except OSError:
            return {}
        found: dict[Path, bytes] = {}
        for match in re.finditer(rb'^[ \t]*#[ \t]*include[ \t]*"([^"\n]{1,300})"', text, re.M):
            path = self._resolve(match.group(1).decode("utf-8", "replace"))
            if path is not None and path not in found and path.stat().st_size <= MAX_BYTES:
                found[path] = path.read_bytes()
        return found

    def _resolve(self, include: str) -> Path | None:
        for folder in (self._path.parent, *self._path.parents):
            for base in (folder, folder / "include"):
                candidate = (base / include).resolve()
                if candidate.is_relative_to(self._root) and candidate.is_file():
                    return candidate
            if folder.resolve() == self._root:
                break
        return None

    def _read(self, owner: str) -> dict[str, Definition]:
        if not owner.isidentifier():
            return {}
        pattern = re.compile(rb"\b(?:struct|class)\s+" + owner.encode() + rb"\s*(?::[^:;{]|\{)")
        for data in self.files.values():
            if pattern.search(data) is None:
                continue
            found = definitions_of(data, owner, templates=False)
            if found:
                return found
        return {}


_CLASSES = """
(struct_specifier name: [(type_identifier) (template_type name: (type_identifier))] @name)
(class_specifier name: [(type_identifier) (template_type name: (type_identifier))] @name)
"""


def definitions_of(data: bytes, name: str, templates: bool = True) -> dict[str, Definition]:
    """The aliases and constants of the first class `name` in `data`; `templates`: whether it may be a template."""
    for node in cpp.captures(_CLASSES, cpp.parse(data).root_node).get("name", ()):
        struct = node.parent
        if struct is None or data[node.start_byte : node.end_byte].split(b"<")[0].strip() != name.encode():
            continue
        if not templates and struct.parent is not None and struct.parent.type == "template_declaration":
            continue  # a class template's members depend on its arguments
        found: dict[str, Definition] = {}
        outer: Node | None = struct
        while outer is not None:  # a nested class sees the members of those around it
            body = outer.child_by_field_name("body") if outer.type in ("struct_specifier", "class_specifier") else None
            if body is not None:
                found = {**_members(body, data), **found}
            outer = outer.parent
        if struct.child_by_field_name("body") is not None:
            return found
    return {}


def _members(body: Node, data: bytes) -> dict[str, Definition]:
    found: dict[str, Definition] = {}
    for child in body.named_children:
        if child.type in ("preproc_ifdef", "preproc_if"):
            for name, definition in _members(child, data).items():
                found.setdefault(name, definition)
            continue
        parameters: tuple[str, ...] = ()
        statement = child
        if child.type == "template_declaration":
            listed = child.child_by_field_name("parameters")
            if listed is None or not child.named_children:
                continue
            parameters = tuple(_parameter(each, data) for each in listed.named_children)
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


def _parameter(node: Node, data: bytes) -> str:
    last = list(cpp.tokens(node, data))
    return last[-1].text if last else ""
