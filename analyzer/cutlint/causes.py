"""Why one instantiation takes other bytes in another checkout, as far as its configuration and its footprint say."""

from __future__ import annotations

from collections.abc import Iterator

from cutlint.config import KernelConfig
from cutlint.footprint.records import Footprint


def causes(
    old: KernelConfig | None, before: Footprint | None, new: KernelConfig | None, after: Footprint | None
) -> tuple[str, ...]:
    """What the launcher asks for that is different, then what the builders set aside, then which parts of the storage
    have another size. Nothing is said of what is not known on both sides."""
    found: list[str] = []
    if old is not None and new is not None:
        found += _differing(_asked(old), _asked(new))
    if before is not None and after is not None:
        found += _differing(_counted(before), _counted(after))
        found += _differing(_parts(before), _parts(after))
    return tuple(found)


def _differing(old: dict[str, str], new: dict[str, str]) -> Iterator[str]:
    for name in (*old, *(name for name in new if name not in old)):
        first, second = old.get(name, "not known"), new.get(name, "not known")
        if first != second:
            yield f"{name} {first} → {second}"


def _asked(config: KernelConfig) -> dict[str, str]:
    """What the launcher asks CUTLASS for."""
    epilogue = config.epilogue
    return {
        "stage count": str(config.stage_count),
        "kernel schedule": config.schedule,
        "epilogue schedule": epilogue.schedule,
        "epilogue tile": "auto" if epilogue.tile is None else "×".join(map(str, epilogue.tile)),
        "fusion operation": "none" if epilogue.fusion is None else str(epilogue.fusion),
        "tile given to the builder": "×".join(map(str, config.mma_tile)),
        "cluster": _cluster(config.cluster),
        "epilogue's cluster": _cluster(epilogue.cluster),
        "A": _operand(config.a.element, config.a.scale, config.a.alignment),
        "B": _operand(config.b.element, config.b.scale, config.b.alignment),
        "C": _operand(epilogue.c.element, None, epilogue.c.alignment),
        "D": _operand(epilogue.d.element, None, epilogue.d.alignment),
        "operator class": config.op_class,
    }


def _cluster(shape: tuple[int | None, int | None, int | None]) -> str:
    return "×".join("?" if each is None else str(each) for each in shape)


def _operand(element: str, scale: str | None, alignment: int) -> str:
    return f"{element}{'' if scale is None else f' with {scale}'}, alignment {alignment}"


def _counted(footprint: Footprint) -> dict[str, str]:
    """The builder's sum that gives the stages; the carveout is part of what the launcher asks for."""
    budget = footprint.budget
    if budget is None:
        return {}
    return {
        "capacity that the builder takes": f"{budget.capacity:,} B",
        "set aside by the builder": f"{budget.reserved:,} B",
        "one stage in the builder's count": f"{budget.stage:,} B",
    }


def _parts(footprint: Footprint) -> dict[str, str]:
    found: dict[str, str] = {}
    if footprint.refused is not None:
        found["refused by CUTLASS:"] = footprint.refused
    if footprint.epilogue_tile is not None:
        found["epilogue tile chosen"] = "×".join(map(str, footprint.epilogue_tile))
    for name, value in (
        ("mainloop tensors", footprint.mainloop_tensors),
        ("epilogue tensors", footprint.epilogue_tensors),
        ("barriers, tensor maps and padding", _rest(footprint)),
    ):
        if value is not None:
            found[name] = f"{value:,} B"
    if footprint.threads is not None:
        found["threads"] = f"{footprint.threads:,}"
    return found


def _rest(footprint: Footprint) -> int | None:
    total, mainloop, epilogue = footprint.total, footprint.mainloop_tensors, footprint.epilogue_tensors
    if total is None or mainloop is None or epilogue is None:
        return None
    return total - mainloop - epilogue
