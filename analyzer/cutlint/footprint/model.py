"""The model engine: a kernel's configuration to its footprint, by arithmetic alone.

Each architecture's module mirrors its builders; this one picks the module, adds the rule of thumb and turns refusals
into footprints without sizes.
"""

from __future__ import annotations

from cutlint.config import EpilogueConfig, KernelConfig
from cutlint.cutlass import Cutlass
from cutlint.footprint import sm120
from cutlint.footprint.records import Footprint, Refused, Unmodelled

ENGINE = "model"


def footprint(config: KernelConfig, cutlass: Cutlass) -> Footprint:
    """The footprint of a kernel; `refused` is set where CUTLASS would not compile it.

    Raises:
        Unmodelled: where there is no model, so that no figure can be given.
    """
    try:
        return _family(config.arch).footprint(config, cutlass)
    except Refused as refusal:
        return Footprint(ENGINE, refused=str(refusal), budget=refusal.budget)


def epilogue_size(config: EpilogueConfig) -> int:
    """``sizeof(CollectiveEpilogue::SharedStorage)``: what launchers hand to StageCountAutoCarveout.

    Raises:
        Refused, Unmodelled: as for `footprint`.
    """
    return _family(config.arch).epilogue(config).shared.size


_FAMILIES = {120: sm120}


def _family(arch: int):  # type: ignore[no-untyped-def]
    if arch not in _FAMILIES:
        raise Unmodelled(f"cutlint has no model of Sm{arch} kernels yet")
    return _FAMILIES[arch]
