"""Instantiations as the dispatch code would name them: launcher and template arguments, in one spelling."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from cutlint import cpp
from cutlint.dispatch.machine import Frame, Machine
from cutlint.dispatch.program import Unit
from cutlint.dispatch.values import Enumerator, Value
from cutlint.evaluate import Type
from cutlint.expression import NotUnderstood
from cutlint.instantiations import template_arguments
from cutlint.records import Instantiation

Key = tuple[str, tuple[str, ...]]  # a launcher and its template arguments


class Spelling:
    """Brings template arguments into the one spelling."""

    def __init__(self, machine: Machine, aliases: Mapping[str, str]) -> None:
        self._machine = machine
        self._known: dict[str, str] = {}
        self._scope = Frame(None)
        for name, meaning in aliases.items():
            self._scope.names[name] = self._value(meaning)

    def _value(self, text: str) -> Value:
        unit = Unit("", f"using argument = {text};".encode())
        nodes = cpp.captures("(alias_declaration type: (_) @type)", cpp.parse(unit.text).root_node).get("type")
        if not nodes:
            raise NotUnderstood(f"'{text[:60]}' is not a template argument that cutlint reads")
        node = nodes[0]
        while node.type == "type_descriptor" and node.named_child_count == 1:
            node = node.named_children[0]
        from cutlint.dispatch.expressions import MAKERS

        maker = MAKERS.get(node.type)
        if maker is None:
            raise NotUnderstood(f"'{text[:60]}' is not a template argument that cutlint reads")
        return maker(self._machine.compiler, unit, node)(self._scope)

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
        return launcher, (*arguments, *self._defaults(launcher, len(arguments)))

    def _defaults(self, launcher: str, given: int) -> tuple[str, ...]:
        for function in self._machine.program.functions.get(launcher, ()):
            missing = function.template[given:]
            if missing and all(each.default is not None for each in missing):
                nodes = [each.default for each in missing if each.default is not None]
                return tuple(spelled(self._machine.compiler.expression(function.unit, node)(Frame(None))) for node in nodes)
        return ()


def spelled(value: Value) -> str:
    """A type, a number or an enumerator as text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, Type, Enumerator)):
        return str(value)
    raise NotUnderstood(f"{value} as a template argument")


Keys = Callable[[Instantiation, Mapping[str, str]], Key]


def keys_for(path: str, macro: str, parameters: tuple[str, ...], spelling: Spelling) -> Keys | None:
    """How instantiations by the macro `macro` of the launcher `path` are named: its body says which explicit instantiation it
    makes. None where it does not."""
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
    text = cpp.join_continuations(cpp.blank_comments(path.read_bytes())).decode("latin-1")  # a character for each byte
    found = re.search(rf"^[ \t]*#[ \t]*define[ \t]+{re.escape(name)}\b[^\n]*", text, re.M)
    return found.group() if found is not None else ""
