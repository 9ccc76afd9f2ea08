"""The model engine: a kernel's configuration to its footprint, by arithmetic alone.

Each architecture's module mirrors its builders; this one picks the module, adds the rule of thumb and turns refusals
into footprints without sizes.
"""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from cutlint.config import EpilogueConfig, KernelConfig
from cutlint.cutlass import Cutlass
from cutlint.footprint import sm90, sm100, sm103, sm120
from cutlint.footprint.layout import Layout, with_padding
from cutlint.footprint.records import Footprint, Refused, Unmodelled

ENGINE = "model"


def footprint(config: KernelConfig, cutlass: Cutlass, regions: bool = True) -> Footprint:
    """The footprint of a kernel; `refused` is set where CUTLASS would not compile it. `regions`: whether to list them,
    which takes as long as all the rest.

    Raises:
        Unmodelled: where there is no model, so that no figure can be given.
    """
    try:
        sizes, storage = _family(config.arch).footprint(config, cutlass)
    except Refused as refusal:
        return Footprint(ENGINE, refused=str(refusal), budget=refusal.budget)
    return replace(sizes, regions=with_padding(storage)) if regions else sizes


def epilogue_size(config: EpilogueConfig) -> int:
    """``sizeof(CollectiveEpilogue::SharedStorage)``: what launchers hand to StageCountAutoCarveout.

    Raises:
        Refused, Unmodelled: as for `footprint`.
    """
    return _family(config.arch).epilogue(config).shared.size


class _Epilogue(Protocol):
    @property
    def shared(self) -> Layout: ...


class _Family(Protocol):
    """What each architecture's module offers."""

    def footprint(self, config: KernelConfig, cutlass: Cutlass) -> tuple[Footprint, Layout]: ...
    def epilogue(self, config: EpilogueConfig) -> _Epilogue: ...


_FAMILIES: dict[int, _Family] = {90: sm90, 100: sm100, 103: sm103, 120: sm120}


def _family(arch: int) -> _Family:
    if arch not in _FAMILIES:
        raise Unmodelled(f"cutlint has no model of Sm{arch} kernels yet")
    return _FAMILIES[arch]
