"""The tactics that one runner offers on one compute capability, in order, and where the dispatch code takes each."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from cutlint.dispatch.instantiated import Key, Spelling
from cutlint.dispatch.machine import Lost, Machine, Question, Thrown
from cutlint.dispatch.records import Extents, Filtered, Tactic
from cutlint.dispatch.trace import Item, Launch, Lookup, Refusal, outcomes
from cutlint.dispatch.values import OPAQUE, Enumerator, Place, Record, Reference, Value, number, spelled
from cutlint.evaluate import CUTLASS_ELEMENT, ELEMENT_BITS, Type

_NOWHERE = Place("", 0)


class Listing(msgspec.Struct, frozen=True):
    """What one runner offers on `sm`. `others` counts configurations that are not warp-specialized TMA kernels."""

    sm: int
    tactics: tuple[Tactic, ...]
    filtered: tuple[Filtered, ...]
    others: int


def listing(
    machine: Machine, kind: Type, lookup: Lookup, runner: int, sm: int, keys: Mapping[Key, int], spelling: Spelling
) -> Listing:
    """What the runner `kind` offers on `sm`; `lookup` is what its GEMM leads to.

    Raises:
        Lost: where the listing functions are not understood.
    """
    machine.asked = []
    offered = _configs(machine, kind, sm)
    wanted = [(index, each) for index, each in enumerate(offered) if _is_tma(each)]
    inputs = [_inputs(each, sm) for _, each in wanted]
    first = inputs[0] if inputs else {}
    varying = [name for name in first if any(each.get(name) != first[name] for each in inputs)]
    same = {name: value for name, value in first.items() if name not in varying}
    common = lookup.left({**_known(machine, kind), **same})
    tactics: list[Tactic] = []
    for (index, config), given in zip(wanted, inputs, strict=True):
        left = lookup.left({name: given.get(name, OPAQUE) for name in varying}, common)
        tactics.append(_tactic(config, left, runner, sm, index, keys, spelling))
    return Listing(
        sm, tuple(tactics), tuple(_filtered(machine, runner, sm, tactics, bits_of(kind))), len(offered) - len(wanted)
    )


def _is_tma(config: Record) -> bool:
    return config.fields.get("is_tma_warp_specialized") is True


def _inputs(config: Record, sm: int) -> dict[str, Value]:
    """What the dispatch code is given for a configuration: itself, and what its callers take from it."""
    fields = config.fields
    fusion = fields.get("epilogue_fusion_type", OPAQUE)
    inputs: dict[str, Value] = {"sm_": sm, "hopper_inputs.isValid()": True}
    if isinstance(fusion, Enumerator):
        inputs["hopper_inputs.fusion"] = Enumerator("EpilogueFusion", fusion.name, fusion.number, fusion.place)
    inputs["hopper_inputs.swap_ab"] = fields.get("swap_ab", OPAQUE)
    inputs.update(
        (f"inputs.gemm_config.{name}", value) for name, value in fields.items() if not isinstance(value, list)
    )
    return inputs


def _configs(machine: Machine, kind: Type, sm: int) -> list[Record]:
    """What ``getConfigs(sm)`` returns, with finalize fusion where it has a choice; nothing where it throws."""
    for arguments in ([sm, True], [sm]):
        counts = {
            len(each.parameters)
            for each in machine.program.functions.get("getConfigs", ())
            if each.owner == kind.name and each.parameters and each.parameters[0].name == "sm"
        }
        if len(arguments) in counts:
            try:
                found = machine.call(Reference("getConfigs", (), _NOWHERE, kind), arguments, _NOWHERE)
            except Thrown:
                return []
            return [each for each in found if isinstance(each, Record)] if isinstance(found, list) else []
    raise Lost(f"{kind.name} has no getConfigs(sm)", _NOWHERE)


def scaling_of(machine: Machine, kind: Type) -> str:
    """The block scaling that a runner's types imply: MXFPX, NVFP4 or NONE, as its callers pass it."""
    constants = machine.class_frame(kind.name, kind.arguments)

    def holds(name: str) -> bool:
        return constants.find(name) is not None and machine.lookup(constants, name) is True

    return "MXFPX" if holds("use_wfp4afp8") or holds("use_mxfp8") else "NVFP4" if holds("use_fp4") else "NONE"


def _known(machine: Machine, kind: Type) -> dict[str, Value]:
    """What the callers of a GEMM always pass for this runner."""
    scaling = scaling_of(machine, kind)
    kinds = machine.program.enumerations.get("FpXBlockScalingType", {})
    if scaling not in kinds:
        return {}
    number = list(kinds).index(scaling)
    return {"hopper_inputs.fpX_block_scaling_type": Enumerator("FpXBlockScalingType", scaling, number, _NOWHERE)}


def _tactic(
    config: Record,
    left: list[Item],
    runner: int,
    sm: int,
    index: int,
    keys: Mapping[Key, int],
    spelling: Spelling,
) -> Tactic:
    """`left` is what the configuration leaves of the dispatch code's tree."""
    fields = config.fields
    tile = _tile(fields)
    calls: list[int] = []
    refusals: list[tuple[Refusal, bool]] = []
    for found, certain in outcomes(left):
        if isinstance(found, Launch):
            key = (found.launcher.name, tuple(spelled(each) for each in found.launcher.arguments))
            calls.append(keys[spelling.key(*key)])
        else:
            refusals.append((found, certain))
    refusal = next((each for each, certain in refusals if certain), None)
    if refusal is None and not calls and refusals:
        refusal = refusals[-1][0]
    extents = _extents(tile.name)
    assert extents is not None  # it was chosen so
    return Tactic(
        sm=sm,
        runner=runner,
        index=index,
        label=tile.name,
        tile=extents,
        cluster=_cluster(fields.get("cluster_shape")) or (1, 1, 1),
        dynamic_cluster=_cluster(fields.get("dynamic_cluster_shape")),
        mainloop=_name(fields.get("mainloop_schedule")),
        epilogue=_name(fields.get("epilogue_schedule")),
        fusion=_name(fields.get("epilogue_fusion_type")) or "NONE",
        swap_ab=fields.get("swap_ab") is True,
        offered=tile.place,
        calls=tuple(dict.fromkeys(calls)) if refusal is None else (),
        refused=None if refusal is None else refusal.message,
        refused_at=None if refusal is None else refusal.place,
    )


def _tile(fields: Mapping[str, Value]) -> Enumerator:
    """The tile of a configuration: the one of its members for an architecture that has extents.

    Raises:
        Lost: where there is none.
    """
    for value in fields.values():
        if isinstance(value, Enumerator) and "Tile" in value.owner and _extents(value.name) is not None:
            return value
    raise Lost("a configuration without a tile", _NOWHERE)


def _extents(name: str) -> Extents | None:
    """``CtaShape128x256x64B`` as [M, N, K]."""
    match = re.fullmatch(r"\w*?(\d+)x(\d+)x(\d+)B?(_\w+)?", name)
    return None if match is None else (int(match.group(1)), int(match.group(2)), int(match.group(3)))


def _cluster(value: Value) -> Extents | None:
    return _extents(value.name) if isinstance(value, Enumerator) else None


def bits_of(kind: Type) -> int:
    """The width of a runner's activations."""
    first = kind.arguments[0] if kind.arguments else None
    name = CUTLASS_ELEMENT.get(first.name, first.name) if isinstance(first, Type) else ""
    return ELEMENT_BITS.get(name, 8)


def _name(value: Value) -> str:
    return value.name if isinstance(value, Enumerator) else ""


def _filtered(machine: Machine, runner: int, sm: int, tactics: list[Tactic], bits: int) -> list[Filtered]:
    """What filters that look at shared memory were asked about, and whether the tile was offered in the end."""
    offered = {each.label: each.tile for each in tactics}
    found: dict[tuple[str, str], Filtered] = {}
    for question in machine.asked:
        for label, extents in _asked_about(machine, question, bits):
            decision = Filtered(sm, runner, question.place, question.function, label, extents, label in offered)
            found.setdefault((question.function, label), decision)
    return list(found.values())


def _asked_about(machine: Machine, question: Question, bits: int) -> list[tuple[str, Extents]]:
    """The tiles that a filter is asked about: the enumerator it is given, or those with the extents it is given, where
    K may be in bytes or in elements of `bits` bits."""
    for value in question.arguments.values():
        if isinstance(value, Enumerator) and (extents := _extents(value.name)) is not None:
            return [(value.name, extents)]
    given: dict[str, int] = {}
    for name, value in question.arguments.items():
        match = re.fullmatch(r"(?:cta_|tile_)?([mnk])(?:_\w+)?", name, re.I)
        if match is not None and number(value) is not None:
            given.setdefault(match.group(1).lower(), int(number(value) or 0))
    if len(given) < 3:
        return []
    listed = [name for kind, names in machine.program.enumerations.items() if "Tile" in kind for name in names]
    tiles = [(name, each) for name in dict.fromkeys(listed) if (each := _extents(name)) is not None]
    in_elements = (given["m"], given["n"], given["k"] * bits // 8)
    in_bytes = (given["m"], given["n"], given["k"])
    exact = [(name, each) for name, each in tiles if each == in_elements]
    return exact or [(name, each) for name, each in tiles if each == in_bytes]
