"""The array TMA warp-specialized kernels of Sm90; Sm120 uses the cooperative one too.

Mirrors ``GemmUniversal<...>::SharedStorage`` in gemm/kernel/sm90_gemm_array_tma_warpspecialized_cooperative.hpp and
..._pingpong.hpp, with the grouped tile scheduler of gemm/kernel/sm90_tile_scheduler_group.hpp.
"""

from __future__ import annotations

from cutlint.footprint.epilogue_sm90 import Epilogue
from cutlint.footprint.layout import EMPTY, Layout, aligned, leaf, struct
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
    return _storage(tensors, mainloop_pipeline, mainloop_maps, epilogue, [_MATH_ORDER])


def _storage(
    tensors: Layout, mainloop_pipeline: Layout, mainloop_maps: Layout, epilogue: Epilogue, order: list[Layout]
) -> Layout:
    return struct(
        [
            struct([tensors, epilogue.tensors], align=128),
            struct(
                [
                    aligned(pipeline("scheduler barriers", SCHEDULER_STAGES), 16),
                    *_collectives(mainloop_pipeline, epilogue),
                    _LOAD_ORDER,
                    *order,
                ],
                align=16,
            ),
            leaf("scheduler responses", "scheduler", SCHEDULER_STAGES * SCHEDULER_RESPONSE, 16),
            struct([aligned(mainloop_maps, 128), aligned(epilogue.tensor_maps, 128)], align=128),
        ]
    )


def _collectives(mainloop_pipeline: Layout, epilogue: Epilogue) -> list[Layout]:
    return [aligned(mainloop_pipeline, 16), aligned(epilogue.pipeline, 16)]


_LOAD_ORDER = aligned(barriers("load order barriers", 2), 16)  # OrderedSequenceBarrier<1, 2>
_MATH_ORDER = aligned(barriers("math order barriers", 4), 16)  # OrderedSequenceBarrier<2, 2>


def precomputed_storage(tensors: Layout, mainloop_pipeline: Layout, epilogue: Epilogue, pingpong: bool) -> Layout:
    """``GemmUniversalPrecomputedScheduler<...>::SharedStorage``: the scheduler needs none, nor does the mainloop keep tensor
    maps (cutlass_extensions/gemm/kernel/sm90_gemm_array_tma_warpspecialized_*_precomputed.hpp)."""
    order = [_LOAD_ORDER, _MATH_ORDER] if pingpong else [_LOAD_ORDER]
    return struct(
        [
            struct([tensors, epilogue.tensors], align=128),
            struct([*_collectives(mainloop_pipeline, epilogue), *order], align=16),
            struct([aligned(EMPTY, 128), aligned(epilogue.tensor_maps, 128)], align=128),
        ]
    )


def dense_storage(tensors: Layout, mainloop_pipeline: Layout, epilogue: Epilogue, pingpong: bool) -> Layout:
    """``SharedStorage`` of a kernel that is not grouped, whose scheduler keeps nothing: the pipelines come first, and the
    epilogue before the mainloop (gemm/kernel/sm90_gemm_tma_warpspecialized_cooperative.hpp, ..._pingpong.hpp)."""
    order = [_MATH_ORDER, _LOAD_ORDER] if pingpong else [_LOAD_ORDER]
    return struct(
        [
            struct([*_collectives(mainloop_pipeline, epilogue), *order], align=16),
            aligned(EMPTY, 16),
            struct([epilogue.tensors, tensors], align=128),
        ]
    )
