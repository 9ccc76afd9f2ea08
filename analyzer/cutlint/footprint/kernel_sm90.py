"""The array TMA warp-specialized kernels of Sm90; Sm120 uses the cooperative one too.

Mirrors ``GemmUniversal<...>::SharedStorage`` in gemm/kernel/sm90_gemm_array_tma_warpspecialized_cooperative.hpp and
..._pingpong.hpp, with the grouped tile scheduler of gemm/kernel/sm90_tile_scheduler_group.hpp.
"""

from __future__ import annotations

from cutlint.footprint.epilogue_sm90 import Epilogue
from cutlint.footprint.layout import Layout, aligned, leaf, struct
from cutlint.footprint.parts import barriers, pipeline

SCHEDULER_STAGES = 8  # TileSchedulerStages
SCHEDULER_RESPONSE = 16  # PersistentTileSchedulerSm90Group::WorkTileInfo: four int32_t
WARP_GROUP = 128
THREADS = 3 * WARP_GROUP  # two warp groups that multiply, one that loads


def shared_storage(tensors: Layout, mainloop_pipeline: Layout, mainloop_maps: Layout, epilogue: Epilogue) -> Layout:
    """The cooperative kernel's ``SharedStorage`` from the collectives' storage types."""
    return _storage(tensors, mainloop_pipeline, mainloop_maps, epilogue, [])


def pingpong_storage(tensors: Layout, mainloop_pipeline: Layout, mainloop_maps: Layout, epilogue: Epilogue) -> Layout:
    """The pingpong kernel's ``SharedStorage``: its warp groups take turns."""
    order = barriers("math order barriers", 4)  # OrderedSequenceBarrier<2, 2>
    return _storage(tensors, mainloop_pipeline, mainloop_maps, epilogue, [aligned(order, 16)])


def _storage(
    tensors: Layout, mainloop_pipeline: Layout, mainloop_maps: Layout, epilogue: Epilogue, order: list[Layout]
) -> Layout:
    pipelines = struct(
        [
            aligned(pipeline("scheduler barriers", SCHEDULER_STAGES), 16),
            aligned(mainloop_pipeline, 16),
            aligned(epilogue.pipeline, 16),
            aligned(barriers("load order barriers", 2), 16),  # OrderedSequenceBarrier<1, 2>
            *order,
        ],
        align=16,
    )
    return struct(
        [
            struct([tensors, epilogue.tensors], align=128),
            pipelines,
            leaf("scheduler responses", "scheduler", SCHEDULER_STAGES * SCHEDULER_RESPONSE, 16),
            struct([aligned(mainloop_maps, 128), aligned(epilogue.tensor_maps, 128)], align=128),
        ]
    )
