"""Prints docs/rules.md, made from the rules: `make rules`. A test compares the two."""

from __future__ import annotations

from collections.abc import Iterator

from cutlint.rules import Rule, load


def text() -> str:
    """The page: every rule with what it says, why, what helps, and where it is from."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "# Rules"
    yield ""
    yield "Made from [rules/](../rules) by `make rules`. `cutlint explain CUT101` prints the same of one rule."
    yield ""
    yield "| rule | name | severity | what |"
    yield "|---|---|---|---|"
    rules = load()
    for rule in rules:
        summary = rule.summary.replace("|", "\\|")
        yield f"| [{rule.id}](#{rule.id.lower()}) | {rule.name} | {rule.severity} | {summary} |"
    for rule in rules:
        yield from _rule(rule)


def _rule(rule: Rule) -> Iterator[str]:
    yield ""
    yield f"## {rule.id}"
    yield ""
    yield f"**{rule.name}** ({rule.severity}): {rule.summary}."
    yield ""
    yield "It says, for example:"
    yield ""
    yield from (f"    {each.message}" for each in rule.invalid[:1])
    yield ""
    yield rule.help.strip()
    yield ""
    yield "From: " + "; ".join(f"<{each}>" if each.startswith("https://") else each for each in rule.sources) + "."


if __name__ == "__main__":
    print(text())
