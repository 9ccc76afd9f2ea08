"""What a footprint says, and how a kernel that CUTLASS will not compile is told apart."""

from __future__ import annotations

import msgspec

from cutlint.footprint.layout import Region


class Refused(Exception):
    """CUTLASS cannot form the kernel's types: the message is the reason in words, `budget` the sum that led to it."""

    def __init__(self, message: str, budget: Budget | None = None) -> None:
        super().__init__(message)
        self.budget = budget


class Unmodelled(Exception):
    """cutlint has no model for such a kernel, or lacks a fact about the CUTLASS at hand: no figure."""


class Budget(msgspec.Struct, frozen=True):
    """How CUTLASS arrives at the number of stages, in bytes: (capacity - reserved - carveout) // stage.

    `reserved` is what the builder sets aside for the kernel's own storage. With an explicit ``StageCount<N>`` there is
    nothing to divide; `stages` is then N.
    """

    capacity: int
    reserved: int
    carveout: int
    stage: int
    stages: int

    @property
    def left(self) -> int:
        """Bytes of the budget that the stages leave."""
        return self.capacity - self.reserved - self.carveout - self.stages * self.stage


def need_two_stages(budget: Budget) -> None:
    """What the Sm90 and Sm120 mainloops assert.

    Raises:
        Refused: where fewer than two stages fit.
    """
    if budget.stages < 2:
        raise Refused(
            f"{budget.stages} stage{'' if budget.stages == 1 else 's'} of {budget.stage:,} B fit the "
            f"{budget.capacity - budget.reserved - budget.carveout:,} B that CUTLASS divides: "
            "Specialization requires Stages set to value 2 or more",
            budget,
        )


class Footprint(msgspec.Struct, frozen=True):
    """The shared memory of one kernel. All sizes in bytes; None where the compiler refuses the kernel.

    `total` is ``sizeof(GemmKernel::SharedStorage)``, what a launch asks for. `mainloop` and `epilogue` are sizeof of
    the collectives' own SharedStorage, `mainloop_tensors` and `epilogue_tensors` of their TensorStorage.
    `epilogue_tile` is in elements. `envelope` is the rule of thumb: one stage and the whole output tile.
    `accumulator_registers` is the number of 32-bit registers that a thread of the MMA warps needs for its part of the
    accumulators, `tensor_memory_columns` the columns of tensor memory for accumulators and scale factors, each where the
    architecture has them. `checked`: the model has been compared with a compiler on this version of CUTLASS.
    `refused` says why the kernel's types cannot be formed, `fails_in_nvcc` why a kernel whose types can be formed does not
    compile all the same: a check inside a function body, where it is known.
    """

    engine: str
    total: int | None = None
    mainloop: int | None = None
    epilogue: int | None = None
    mainloop_tensors: int | None = None
    epilogue_tensors: int | None = None
    stages: int | None = None
    threads: int | None = None
    epilogue_tile: tuple[int, int] | None = None
    stages_c: int | None = None
    stages_d: int | None = None
    stages_sf: int | None = None
    align: int | None = None
    regions: tuple[Region, ...] = ()
    envelope: int | None = None
    accumulator_registers: int | None = None
    tensor_memory_columns: int | None = None
    checked: bool = True
    budget: Budget | None = None
    refused: str | None = None
    fails_in_nvcc: str | None = None
