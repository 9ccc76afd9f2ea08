"""The ptr-array TMA UMMA warp-specialized kernels of Sm100 and Sm103.

Mirrors ``GemmUniversal<...>::SharedStorage`` in gemm/kernel/sm100_gemm_array_tma_warpspecialized.hpp and
gemm/kernel/sm103_blockscaled_gemm_array_tma_warpspecialized.hpp, with the grouped tile scheduler of
gemm/kernel/sm100_tile_scheduler_group.hpp. All sizes in bytes.
"""

from __future__ import annotations

from cutlint.footprint.epilogue_sm100 import Epilogue
from cutlint.footprint.layout import EMPTY, Layout, aligned, array, leaf, struct
from cutlint.footprint.parts import barriers, pipeline
from cutlint.footprint.records import Budget, Footprint

WARP = 32
RESPONSE = 16  # PersistentTileSchedulerSm90Group::WorkTileInfo: four int32_t
UPDATE = 4  # WithTensorMapUpdateInfo: two uint16_t more
WARPS = 8  # scheduler, MMA, mainloop load, epilogue load, and four of the epilogue
SM103_WARPS = 12  # one more that loads scale factors, three that do nothing


def shared_storage(
    tensors: Layout, mainloop_pipeline: Layout, mainloop_maps: Layout, epilogue: Epilogue,
    accumulators: int, scheduler: int, updaters: int,
) -> Layout:  # fmt: skip
    """Sm100's ``GemmKernel::SharedStorage``: `accumulators` and `scheduler` are the stages of those pipelines.

    `updaters` is the number of warps that only update tensor maps (0 before they were added): each has a set of tensor
    maps, beside the one of the others, and hears of tiles through a second array of responses.
    """
    pipelines = _pipelines(mainloop_pipeline, epilogue, accumulators, scheduler, 16)
    if updaters:
        pipelines.append(aligned(pipeline("tensor map barriers", scheduler), 16))
    responses = 2 * scheduler * (RESPONSE + UPDATE) if updaters else scheduler * RESPONSE
    maps = _tensor_maps(mainloop_maps, epilogue, updaters + 1)
    return _storage(pipelines, responses, maps, tensors, epilogue)


def shared_storage_sm103(
    tensors: Layout,
    mainloop_pipeline: Layout,
    mainloop_maps: Layout,
    epilogue: Epilogue,
    accumulators: int,
    scheduler: int,
) -> Layout:
    """Sm103's ``GemmKernel::SharedStorage``."""
    pipelines = _pipelines(mainloop_pipeline, epilogue, accumulators, scheduler, 8)
    return _storage(pipelines, scheduler * RESPONSE, _tensor_maps(mainloop_maps, epilogue, 1), tensors, epilogue)


def report(
    shared: Layout,
    mainloop: tuple[Layout, ...],
    epi: Epilogue,
    budget: Budget,
    warps: int,
    tensor_memory_columns: int,
    stages_sf: int | None = None,
) -> tuple[Footprint, Layout]:
    """The footprint that a kernel's storage amounts to, and that storage; `mainloop` the members of
    ``CollectiveMainloop::SharedStorage``, its tensors first."""
    sizes = Footprint(
        engine="model",
        total=shared.size,
        mainloop=struct(mainloop).size,
        epilogue=epi.shared.size,
        mainloop_tensors=mainloop[0].size,
        epilogue_tensors=epi.tensors.size,
        stages=budget.stages,
        threads=warps * WARP,
        epilogue_tile=epi.tile,
        stages_c=epi.stages_c,
        stages_d=epi.stages_d,
        stages_sf=stages_sf,
        align=shared.align,
        tensor_memory_columns=tensor_memory_columns,
        budget=budget,
    )
    return sizes, shared


def _pipelines(mainloop: Layout, epilogue: Epilogue, accumulators: int, scheduler: int, last: int) -> list[Layout]:
    """``PipelineStorage``; `last` is the ``alignas`` of its last barrier."""
    return [
        aligned(mainloop, 16),
        aligned(epilogue.pipeline, 16),
        aligned(barriers("load order barriers", 2), 16),  # OrderedSequenceBarrier<1, 2>
        aligned(pipeline("scheduler barriers", scheduler), 16),
        aligned(pipeline("accumulator barriers", accumulators), 16),
        aligned(EMPTY, 16),  # clc_throttle: PipelineEmpty, as the grouped scheduler is static
        aligned(barriers("tensor memory barrier", 1), last),
    ]


def _tensor_maps(mainloop: Layout, epilogue: Epilogue, sets: int) -> Layout:
    """So many sets of ``TensorMapStorage``."""
    return array(struct([aligned(epilogue.tensor_maps, 128), aligned(mainloop, 128)], align=128), sets)


def _storage(pipelines: list[Layout], responses: int, maps: Layout, tensors: Layout, epilogue: Epilogue) -> Layout:
    return struct(
        [
            struct(pipelines, align=16),
            aligned(leaf("scheduler responses", "scheduler", responses, 4), 16),
            leaf("tensor memory pointer", "scheduler", 4, 4),
            maps,
            struct([epilogue.tensors, tensors], align=128),
        ]
    )
