"""Rules: one TOML file each, judged over facts.

A rule's ``when`` is a Jinja2 expression, its ``message`` and ``detail`` are templates, all compiled in a sandbox: a rule
can read facts and nothing else, and what one can be made of is bounded (`cutlint.sandbox`). To judge thousands of
instantiations quickly, ``when`` runs inside one template that loops over all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from itertools import repeat
from pathlib import Path
from typing import Any, Literal

import msgspec
from jinja2 import Template, TemplateError
from jinja2.meta import find_undeclared_variables
from jinja2.nodes import Name

from cutlint.data import data_folder
from cutlint.errors import CutlintError
from cutlint.footprint.records import Footprint
from cutlint.records import Severity
from cutlint.sandbox import Sandbox, bounded, check
from cutlint.toml import read_toml

Scope = Literal["instantiation", "launcher", "checkout", "problem", "gap", "tactic", "filter", "suppression"]
REACH = ("gap", "tactic", "filter")  # scopes that need the host code to be followed

# What a rule can speak of, by its scope
FACTS: dict[Scope, tuple[str, ...]] = {
    "instantiation": (
        "config",
        "footprint",
        "target",
        "arguments",
        "duplicate",
        "differences",
        "skipped",
        "called",
        "fits",
    ),
    "launcher": ("launcher",),
    "checkout": ("checkout", "cutlass", "sized"),
    "problem": ("problem",),
    "gap": ("gap",),
    "tactic": ("tactic",),
    "filter": ("filter",),
    "suppression": ("suppression",),
}


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Facts that a rule must (or must not) object to; `message` is what it must then say."""

    facts: dict[str, Any]
    message: str | None = None


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule as its file says it. `suggest`: changes that fit are computed and handed over as ``fits``."""

    id: str
    name: str
    severity: Severity
    scope: Scope
    summary: str
    when: str
    message: str
    help: str
    sources: tuple[str, ...]
    detail: str = ""
    suggest: bool = False
    valid: tuple[Example, ...] = ()
    invalid: tuple[Example, ...] = ()


def example_facts(example: Example) -> dict[str, Any]:
    """The facts of an example as a run would have them: what it does not say of the footprint is not known."""
    facts = dict(example.facts)
    if "footprint" in facts:
        facts["footprint"] = msgspec.convert({"engine": "example", **facts["footprint"]}, Footprint)
    return facts


def load(folders: Sequence[Path] = ()) -> tuple[Rule, ...]:
    """The rules that came with cutlint and those in `folders` (which may replace them by id), sorted by id.

    Raises:
        CutlintError: for a file that is not a rule, with the reason.
    """
    found: dict[str, Rule] = {}
    own = data_folder("rules")
    for folder in (own, *folders):
        if not folder.is_dir():
            raise CutlintError(f"no such folder of rules: {folder}")
        for path in sorted(folder.glob("*.toml")):
            if path.name == "targets.toml":
                continue
            try:
                rule = msgspec.convert(read_toml(path), Rule)
            except msgspec.ValidationError as error:
                raise CutlintError(f"{path} is not a rule: {error}") from None
            if (
                folder != own
            ):  # cutlint's own are tested; compiling all of them takes as long as a thousand instantiations
                _check(rule, path)
            found[rule.id] = rule
    return tuple(found[each] for each in sorted(found))


def _check(rule: Rule, path: Path) -> None:
    """Raises CutlintError for a `rule` that cannot be read or is made of more than a rule needs."""
    for field, text in (("when", f"{{{{ ({rule.when}) }}}}"), ("message", rule.message), ("detail", rule.detail)):
        try:
            check(_sandbox(), text, FACTS[rule.scope])
            if field == "when":
                bounded(lambda: _sandbox().compile_expression(rule.when))  # that nothing but an expression stands there
                bounded(lambda: _judge(rule.when, rule.scope))
            else:
                bounded(lambda text=text: _template(text))  # type: ignore[misc]
        except TemplateError as error:
            raise CutlintError(f"{path}: `{field}`: {error}") from None


@cache
def _sandbox() -> Sandbox:
    return Sandbox()


@cache
def _template(text: str) -> Template:
    return _sandbox().from_string(text)


@cache
def _judge(when: str, scope: Scope) -> tuple[Template, tuple[str, ...]]:
    """The template that judges rows, and the facts that a row is made of: those that `when` speaks of."""
    loop = f"{{% if ({when}) %}}{{{{ loop.index0 }}}} {{% endif %}}"
    used = find_undeclared_variables(_sandbox().parse(loop))
    facts = tuple(name for name in FACTS[scope] if name in used)
    names = ", ".join((*facts, "_", "_"))  # at least two, which Jinja unpacks
    return _sandbox().from_string(f"{{% for {names} in rows %}}{loop}{{% endfor %}}"), facts


def expression(text: str, names: Collection[str]) -> tuple[Callable[..., Any], frozenset[str]]:
    """A Jinja2 expression as a function of its names, in the sandbox, and these names, which are among `names`.

    Raises:
        TemplateError: when `text` is not an expression, or made of more than one needs; so does the function, where it fails
            on what it is given.
    """
    whole = f"{{{{ ({text}) }}}}"
    check(_sandbox(), whole, names)
    compiled = bounded(lambda: _sandbox().compile_expression(text, undefined_to_none=False))
    return compiled, frozenset(each.name for each in _sandbox().parse(whole).find_all(Name))


def judge(rule: Rule, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """The indices of the `rows` (facts by name) that `rule` objects to.

    Raises:
        CutlintError: when the rule's expression fails on the facts.
    """
    template, names = _judge(rule.when, rule.scope)
    values = zip(*([row.get(name) for row in rows] for name in names), repeat(None, len(rows)), repeat(None))
    try:
        return [int(each) for each in template.render(rows=values).split()]
    except (TemplateError, TypeError, ValueError, ArithmeticError) as error:
        raise CutlintError(f"rule {rule.id}: its `when` fails: {error}") from None


def say(rule: Rule, facts: Mapping[str, Any], detail: bool = False) -> str:
    """The rule's message, or its detail, for `facts`, on one line."""
    try:
        text = _template(rule.detail if detail else rule.message).render(facts)
    except (TemplateError, TypeError, ValueError, ArithmeticError) as error:
        raise CutlintError(f"rule {rule.id}: its {'detail' if detail else 'message'} fails: {error}") from None
    return " ".join(text.split())
