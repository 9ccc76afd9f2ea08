"""One launcher with one set of arguments: its configuration and its footprint."""

from __future__ import annotations

import msgspec

from cutlint.config import EpilogueConfig, KernelConfig, StageCount, epilogue_config, kernel_config
from cutlint.cutlass import Cutlass
from cutlint.evaluate import Type
from cutlint.expression import NotUnderstood
from cutlint.footprint import model
from cutlint.footprint.envelope import envelope
from cutlint.footprint.records import Footprint, Refused, Unmodelled
from cutlint.launcher import Launcher, kernel_type


class Sized(msgspec.Struct, frozen=True):
    """What is known of one instantiation. `footprint` is None where no figure can be given; `reason` then says why."""

    config: KernelConfig | None
    footprint: Footprint | None
    reason: str | None = None
    offset: int | None = None  # where in the launcher evaluation stopped


class Sizer:
    """Sizes instantiations of one launcher over one CUTLASS."""

    def __init__(self, launcher: Launcher, cutlass: Cutlass) -> None:
        self.launcher = launcher
        self.cutlass = cutlass
        self._footprints: dict[tuple[KernelConfig, bool], Footprint] = {}
        self._epilogues: dict[EpilogueConfig, int | Refused | Unmodelled] = {}

    def size(self, arguments: dict[str, str], regions: bool = True) -> Sized:
        """The configuration and footprint for `arguments`, texts by the launcher's parameter names. Never raises for
        what the launcher or the arguments say: `reason` tells what was not understood."""
        try:
            return self._size(arguments, regions)
        except NotUnderstood as error:
            return Sized(None, None, str(error), error.offset)
        except RecursionError:
            return Sized(None, None, "nested too deep to be evaluated")

    def _size(self, arguments: dict[str, str], regions: bool) -> Sized:
        try:
            scope = self.launcher.scope(arguments, self._sizeof)
            failed = self.launcher.check(scope)
            if failed is not None:
                raise Refused(f"the launcher's static_assert: {failed}")
            config = kernel_config(kernel_type(self.launcher, scope))
            return Sized(config, self.footprint(config, regions))
        except Refused as refusal:
            refused = Footprint(model.ENGINE, refused=str(refusal), budget=refusal.budget)
            return Sized(self._without_sizes(arguments), refused)
        except Unmodelled as error:
            return Sized(self._without_sizes(arguments), None, str(error))

    def footprint(self, config: KernelConfig, regions: bool = False) -> Footprint:
        """The footprint of a configuration, the rule of thumb included."""
        known = self._footprints.get((config, regions))
        if known is None:
            footprint = model.footprint(config, self.cutlass, regions)
            known = msgspec.structs.replace(footprint, envelope=envelope(config), checked=self.cutlass.checked)
            self._footprints[config, regions] = known
        return known

    def _without_sizes(self, arguments: dict[str, str]) -> KernelConfig | None:
        """The configuration where the epilogue's size is not to be had: all of it but the carveout."""
        try:
            scope = self.launcher.scope(arguments, lambda of: 0, sizes=False)
            config = kernel_config(kernel_type(self.launcher, scope))
        except (NotUnderstood, Refused, Unmodelled):
            return None
        if config.stage_count.carveout is None:
            return config
        return msgspec.structs.replace(config, stage_count=StageCount())

    def _sizeof(self, of: Type) -> int:
        if of.name != "SharedStorage" or of.owner is None:
            raise NotUnderstood(f"sizeof({of}) is not known to cutlint")
        config = epilogue_config(of.owner)
        if config not in self._epilogues:
            try:
                self._epilogues[config] = model.epilogue_size(config)
            except (Refused, Unmodelled) as error:
                self._epilogues[config] = error
        size = self._epilogues[config]
        if isinstance(size, int):
            return size
        raise size
