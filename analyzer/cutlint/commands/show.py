"""``cutlint rules``, ``explain`` and ``targets``: what cutlint knows."""

from __future__ import annotations

from pathlib import Path

import click

from cutlint.commands import options
from cutlint.errors import CutlintError


@click.command()
@options.rule_folders
def rules(rule_folders: tuple[Path, ...]) -> None:
    """List the rules."""
    from cutlint.rules import load

    for rule in load(rule_folders):
        click.echo(f"{rule.id}  {rule.severity:8} {rule.name:26} {rule.summary}")


@click.command()
@click.argument("rule")
@options.rule_folders
def explain(rule: str, rule_folders: tuple[Path, ...]) -> None:
    """Say what RULE (an id such as CUT101, or a name) finds, why, and what to do."""
    from cutlint.rules import load

    known = load(rule_folders)
    for each in known:
        if rule.upper() == each.id or rule.lower() == each.name:
            click.echo(f"{each.id} {each.name} ({each.severity})\n\n{each.summary}.\n\n{each.help.strip()}")
            if each.sources:
                click.echo("\nSources:\n" + "\n".join(f"  {source}" for source in each.sources))
            return
    raise CutlintError(f"no rule '{rule}'; there are {', '.join(each.id for each in known)}")


@click.command()
def targets() -> None:
    """List the GPUs cutlint knows, with the shared memory a block may have."""
    from cutlint.targets import known

    for each in known():
        aliases = f"  {', '.join(each.aliases)}" if each.aliases else ""
        click.echo(f"{each.name:7} {each.compute_capability:>4}  {each.limit:>7,} B{aliases}")
