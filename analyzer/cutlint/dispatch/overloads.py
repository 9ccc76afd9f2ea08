"""Which definition a call means, and what its names stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cutlint.dispatch.program import Function
from cutlint.dispatch.values import Reference, Value, truth
from cutlint.evaluate import Type
from cutlint.expression import NotUnderstood

if TYPE_CHECKING:
    from cutlint.dispatch.machine import Frame, Machine


def plain(function: Function, count: int) -> bool:
    """Whether there is nothing to choose: no specialization, no ``enable_if``, and all arguments given."""
    free = all(each.condition is None for each in function.template)
    return function.pattern is None and free and count == len(function.parameters)


def fitting(machine: Machine, function: Function, callee: Reference, count: int) -> bool:
    """Whether `function` takes the template arguments of `callee` and `count` arguments."""
    least = sum(each.default is None for each in function.parameters)
    if not least <= count <= len(function.parameters):
        return False
    if function.pattern is not None and _bound(machine, function, callee) is None:
        return False
    named = [each for each in function.template if each.condition is None]
    if len(callee.arguments) > len(named):
        return False
    conditions = [each.condition for each in function.template if each.condition is not None]
    if not conditions:
        return True
    frame = frame_for(machine, function, callee)
    known = [truth(machine.compiler.expression(function.unit, each)(frame)) for each in conditions]
    if None in known:
        raise NotUnderstood(f"which '{function.name}' is meant depends on something that is not known")
    return all(known)


def frame_for(machine: Machine, function: Function, callee: Reference) -> Frame:
    """The names that the body of `function` sees, its own parameters aside."""
    from cutlint.dispatch.machine import Frame

    outer: Frame | None = None
    if callee.owner is not None:
        outer = machine.class_frame(callee.owner.name, callee.owner.arguments)
        outer = Frame(outer)
        outer.names["this"] = callee.owner
        if function.pattern is not None:
            outer.names.update(_bound(machine, function, callee) or {})
        else:
            for parameter, given in zip(function.outer, callee.owner.arguments, strict=False):
                outer.names[parameter.name] = given
    frame = Frame(outer)
    machine.bind_template(frame, function.template, callee.arguments, function.unit)
    return frame


def _bound(machine: Machine, function: Function, callee: Reference) -> dict[str, Value] | None:
    """What the parameters of a partial specialization stand for; None where its pattern does not match."""
    from cutlint.dispatch.machine import Frame

    if callee.owner is None or function.pattern is None or len(callee.owner.arguments) != len(function.pattern):
        return None
    names = {each.name for each in function.outer}
    found: dict[str, Value] = {}
    for node, given in zip(function.pattern, callee.owner.arguments, strict=True):
        text = function.unit.of(node)
        if text in names:
            found[text] = given
            continue
        wanted = machine.compiler.expression(function.unit, node)(Frame(None))
        if wanted != given or not isinstance(wanted, (Type, int)):
            return None
    return found
