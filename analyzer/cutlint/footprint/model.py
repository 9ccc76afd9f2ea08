"""The model engine: a kernel's configuration to its footprint, by arithmetic alone.

Each architecture's module mirrors its builders; this one picks the module, adds the rule of thumb and turns refusals
into footprints without sizes.
"""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from cutlint.config import FUSED_SM80, EpilogueConfig, KernelConfig
from cutlint.cutlass import Cutlass
from cutlint.footprint import sm80, sm90, sm90_mixed, sm90_weight_only, sm100, sm103, sm120
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
        sizes, storage = _family(config).footprint(config, cutlass)
    except Refused as refusal:
        return Footprint(ENGINE, refused=str(refusal), budget=refusal.budget)
    return replace(sizes, regions=with_padding(storage)) if regions else sizes


def epilogue_size(config: EpilogueConfig) -> int:
    """``sizeof(CollectiveEpilogue::SharedStorage)``: what launchers hand to StageCountAutoCarveout.

    Raises:
        Refused, Unmodelled: as for `footprint`.
    """
    if config.arch not in _EPILOGUES:
        raise Unmodelled(f"cutlint has no model of Sm{config.arch} kernels yet")
    return _EPILOGUES[config.arch].epilogue(config).shared.size


class _Family(Protocol):
    """What each family's module offers."""

    def footprint(self, config: KernelConfig, cutlass: Cutlass) -> tuple[Footprint, Layout]: ...


class _Epilogue(Protocol):
    @property
    def shared(self) -> Layout: ...


class _WithEpilogue(Protocol):
    def epilogue(self, config: EpilogueConfig) -> _Epilogue: ...


_EPILOGUES: dict[int, _WithEpilogue] = {90: sm90, 100: sm100, 103: sm103, 120: sm120}

# architecture and the template that builds the mainloop (or is the kernel) -> the module that knows it
_FAMILIES: dict[tuple[int, str], _Family] = {
    (80, FUSED_SM80): sm80,
    (90, "CollectiveBuilder"): sm90,
    (90, "CollectiveBuilderMixedInput"): sm90_mixed,
    (90, "CollectiveBuilderInterleaved"): sm90_weight_only,
    (100, "CollectiveBuilder"): sm100,
    (103, "CollectiveBuilder"): sm103,
    (120, "CollectiveBuilder"): sm120,
}


def _family(config: KernelConfig) -> _Family:
    key = (config.arch, config.builder)
    if key not in _FAMILIES:
        what = "" if config.builder == "CollectiveBuilder" else f" that {config.builder} builds"
        raise Unmodelled(f"cutlint has no model of Sm{config.arch} kernels{what} yet")
    return _FAMILIES[key]
