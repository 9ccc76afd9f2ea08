"""The array TMA warp-specialized cooperative kernel of Sm90, which Sm120 uses too.

Mirrors ``GemmUniversal<..., KernelPtrArrayTmaWarpSpecializedCooperative>::SharedStorage`` in
gemm/kernel/sm90_gemm_array_tma_warpspecialized_cooperative.hpp, with the grouped tile scheduler of
gemm/kernel/sm90_tile_scheduler_group.hpp.
"""

from __future__ import annotations

from cutlint.footprint.epilogue_sm90 import Epilogue
from cutlint.footprint.layout import Layout, aligned, leaf, struct
from cutlint.footprint.parts import barriers, pipeline

SCHEDULER_STAGES = 8  # TileSchedulerStages
SCHEDULER_RESPONSE = 16  # PersistentTileSchedulerSm90Group::WorkTileInfo: four int32_t
WARP_GROUP = 128


def shared_storage(tensors: Layout, mainloop_pipeline: Layout, mainloop_maps: Layout, epilogue: Epilogue) -> Layout:
    """``GemmKernel::SharedStorage`` from the collectives' storage types."""
    pipelines = struct(
        [
            aligned(pipeline("scheduler barriers", SCHEDULER_STAGES), 16),
            aligned(mainloop_pipeline, 16),
            aligned(epilogue.pipeline, 16),
            aligned(barriers("load order barriers", 2), 16),  # OrderedSequenceBarrier<1, 2>
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
