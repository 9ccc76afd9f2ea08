"""Instantiations as the dispatch code would name them: launcher and template arguments, in one spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cutlint import cpp
from cutlint.dispatch.machine import Frame, Machine
from cutlint.dispatch.program import Program, Unit
from cutlint.dispatch.values import Value, spelled
from cutlint.expression import NotUnderstood
from cutlint.instantiations import template_arguments
from cutlint.records import Instantiation

Key = tuple[str, tuple[str, ...]]  # a launcher and its template arguments


class Spelling:
    """Brings template arguments into the one spelling: no namespaces, one name for each type, enumerators without their
    enumeration. `aliases` are names of types with their meaning, `defaults` the spelled default arguments of each
    launcher's parameters (None where one has none)."""

    def __init__(self, aliases: Mapping[str, str], defaults: Mapping[str, Sequence[str | None]]) -> None:
        self._machine = Machine(Program())
        self._defaults = defaults
        self._known: dict[str, str] = {}
        self._scope = Frame(None)
        for name, meaning in aliases.items():
            self._scope.names[name] = self._value(meaning)

    def _value(self, text: str) -> Value:
        unit = Unit(f"argument {text}", f"using argument = {text};".encode())
        alias = next(cpp.descendants(cpp.parse(unit.text).root_node, "alias_declaration"), None)
        node = None if alias is None else alias.child_by_field_name("type")
        if node is None:
            raise NotUnderstood(f"'{text[:60]}' is not a template argument that cutlint reads")
        while node.type == "type_descriptor" and node.named_child_count == 1:
            node = node.named_children[0]
        return self._machine.compiler.expression(unit, node)(self._scope)

    def of(self, text: str) -> str:
        """The spelling of the argument `text`."""
        if text not in self._known:
            if text in ("true", "false") or text.isdecimal():
                self._known[text] = spelled(text == "true" if not text.isdecimal() else int(text))
            else:
                self._known[text] = spelled(self._value(text))
        return self._known[text]

    def key(self, launcher: str, arguments: tuple[str, ...]) -> Key:
        """A launcher with its arguments, those that it has by default put in."""
        missing = self._defaults.get(launcher, ())[len(arguments) :]
        return launcher, (*arguments, *(each for each in missing if each is not None))


Keys = Callable[[Instantiation, Mapping[str, str]], Key]


def keys_for(path: str, macro: str, parameters: tuple[str, ...], spelling: Spelling) -> Keys | None:
    """How instantiations by the macro `macro` of the launcher `path` are named: its body says which explicit
    instantiation it makes. None where it does not."""
    body = _macro(Path(path), macro)
    head = re.search(r"\btemplate\s+void\s+(?:\w+::)*(\w+)\s*<", body)
    if head is None:
        return None
    spans = template_arguments(body.encode("latin-1"), head.end() - 1, len(body))
    if spans is None:
        return None
    texts = [" ".join(body[start:stop].split()) for start, stop in spans]
    pattern = re.compile(r"\b(" + "|".join(map(re.escape, parameters)) + r")\b")
    needed = [tuple(dict.fromkeys(pattern.findall(text))) for text in texts]
    known: dict[tuple[object, ...], str] = {}
    name = head.group(1)

    def key(_: Instantiation, arguments: Mapping[str, str]) -> Key:
        result = []
        for index, (text, names) in enumerate(zip(texts, needed, strict=True)):
            of = (index, *(arguments[each] for each in names))
            if of not in known:
                known[of] = spelling.of(pattern.sub(lambda match: arguments[match.group()], text))
            result.append(known[of])
        return spelling.key(name, tuple(result))

    return key


def _macro(path: Path, name: str) -> str:
    """The definition of a macro on one line, comments left out."""
    text = cpp.blank_comments(cpp.join_continuations(path.read_bytes())).decode("latin-1")  # a character for each byte
    found = re.search(rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\b[^\n]*", text, re.M)
    return found.group() if found is not None else ""
