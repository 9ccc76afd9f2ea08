"""Conditions over the facts of an instantiation: ``map --where`` and ``where`` of ``[[tool.cutlint.allow]]``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jinja2 import TemplateError

from cutlint.analysis import Analyzed
from cutlint.errors import CutlintError
from cutlint.rules import expression

_OPTIONAL = (
    "arch", "cta_m", "cta_n", "cta_k", "cluster_m", "cluster_n", "fusion", "swap_ab", "dynamic_cluster", "block_scaling",
    "act", "weight", "output", "total", "stages", "refused",
)  # fmt: skip
SHOWN = 200  # characters of a condition that an error repeats
NAMES = ("name", "arguments", *_OPTIONAL)


class _Arguments(dict[str, str]):
    """Arguments by the launcher's own parameter names; launchers differ, so one that is missing is not known."""

    def __missing__(self, key: str) -> None:
        return None


def facts(each: Analyzed) -> dict[str, Any]:
    """What a condition can speak of, None where it is not known. Tiles in elements, clusters in CTAs, sizes in bytes."""
    config, footprint = each.config, each.footprint
    known: dict[str, Any] = {"name": each.instantiation.name, "arguments": _Arguments(each.arguments)}
    known.update(dict.fromkeys(_OPTIONAL))
    if config is not None:
        act, weight = (config.b, config.a) if config.swap_ab else (config.a, config.b)
        known.update(zip(("cta_m", "cta_n", "cta_k"), config.cta_tile, strict=True))
        known.update(
            arch=config.arch,
            cluster_m=config.cluster[0],
            cluster_n=config.cluster[1],
            fusion=config.fusion,
            swap_ab=config.swap_ab,
            dynamic_cluster=config.dynamic_cluster,
            block_scaling=config.block_scaling,
            act=act.element,
            weight=weight.element,
            output=config.epilogue.output_element,
        )
    if footprint is not None:
        known.update(total=footprint.total, stages=footprint.stages, refused=footprint.refused)
    return known


def condition(text: str, label: str) -> Callable[[Analyzed], bool]:
    """The boolean expression `text` (Jinja2's, in the sandbox) as a function of an instantiation. Where it cannot be
    decided because a fact is not known, it does not hold. `label` names it in errors.

    Raises:
        CutlintError: for what is no expression, or speaks of something that is no fact; so does the function, where the
            expression makes no sense for the facts.
    """

    def failed(error: object) -> CutlintError:
        return CutlintError(f"{label} {_short(text)!r}: {error}; it can speak of {', '.join(sorted(NAMES))}")

    try:
        evaluate, used = expression(text, NAMES)
    except TemplateError as error:
        raise failed(error) from None

    def holds(each: Analyzed) -> bool:
        known = facts(each)
        try:
            return bool(evaluate(**known))
        except TypeError as error:
            if any(known[name] is None for name in used):
                return False
            raise failed(error) from None
        except (TemplateError, ValueError, ArithmeticError) as error:
            raise failed(error) from None

    return holds


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
