"""The TMA epilogue of Sm90, which Sm120 uses too.

Mirrors ``CollectiveEpilogue<Sm90PtrArrayTmaWarpSpecialized<...>>`` in
epilogue/collective/sm90_epilogue_array_tma_warpspecialized.hpp.
"""

from __future__ import annotations

import msgspec

from cutlint.config import EpilogueConfig, Output, element_bits
from cutlint.footprint import fusion, gmma
from cutlint.footprint.layout import EMPTY, Layout, aligned, leaf, struct, union
from cutlint.footprint.parts import TENSOR_MAP, pipeline
from cutlint.footprint.records import Refused
from cutlint.footprint.swizzle import Atom


class Policy(msgspec.Struct, frozen=True):
    """The dispatch policy's parameters that decide storage: stages of C and D, whether D reuses C's memory, and for grouped
    kernels the warp groups that have a tensor map of D (0 for dense ones)."""

    stages_c: int
    stages_d: int
    reuse_c: bool
    warp_groups: int


class Epilogue(msgspec.Struct, frozen=True):
    """A collective epilogue's storage types, each laid out on its own."""

    tile: tuple[int, int]
    policy: Policy
    tensors: Layout
    tensor_maps: Layout
    pipeline: Layout

    @property
    def shared(self) -> Layout:
        """``CollectiveEpilogue::SharedStorage``: what launchers take sizeof of for the carveout."""
        return struct([each for each in (self.tensors, self.tensor_maps, self.pipeline) if not each.empty])


def epilogue(config: EpilogueConfig, cta_tile: tuple[int, int, int], tile: tuple[int, int], policy: Policy) -> Epilogue:
    """The epilogue that stages subtiles of `tile` elements of a CTA tile under `policy`."""
    for axis, name in ((0, "M"), (1, "N")):
        if cta_tile[axis] % tile[axis]:
            raise Refused(
                f"the epilogue tile {tile[0]}×{tile[1]} does not divide the CTA tile {cta_tile[0]}×{cta_tile[1]}: "
                f"EPI_TILE_{name} must divide CTA_{name}"
            )
    element_d = config.d.element if config.d.element != "void" else fusion.auxiliary_element(config.fusion)
    if element_d is None:
        raise Refused("D is void and the fusion writes nothing either (SmemElementD is void)")
    has_c, has_d = config.c.element != "void", config.d.element != "void"
    d = msgspec.structs.replace(config.d, element=element_d)
    c = config.c if has_c else msgspec.structs.replace(config.c, element=element_d, layout=d.layout)
    reuse = policy.reuse_c and has_d
    elements = tile[0] * tile[1]
    stages_d = policy.stages_c if reuse else policy.stages_d
    atom_c, atom_d = _atom(c, tile, "C"), _atom(d, tile, "D")
    bytes_c, bytes_d = elements * c.bits * policy.stages_c // 8, elements * d.bits * stages_d // 8
    if reuse and (not has_c or policy.stages_d > policy.stages_c or bytes_c != bytes_d):
        raise Refused("D cannot reuse C's shared memory: Smem reuse requirements not met")
    if not has_c:
        collective = aligned(leaf("epilogue.D", "D", bytes_d, atom_d.alignment), atom_d.alignment)
    elif reuse:
        align = max(atom_c.alignment, atom_d.alignment)
        shared = [aligned(leaf("", "", size, align), align) for size in (bytes_c, bytes_d)]
        collective = union("epilogue.C/D", "C/D", shared)
    else:
        collective = struct(
            [
                aligned(leaf("epilogue.C", "C", bytes_c), atom_c.alignment),
                aligned(leaf("epilogue.D", "D", bytes_d), atom_d.alignment),
            ]
        )
    thread = fusion.storage(config.fusion, cta_tile[1])
    return Epilogue(
        tile=tile,
        policy=policy,
        tensors=struct([collective, thread if not thread.empty else EMPTY]),
        tensor_maps=_tensor_maps(policy.warp_groups),
        pipeline=pipeline("epilogue.load barriers", policy.stages_c),
    )


def per_token_scale(config: EpilogueConfig) -> Epilogue:
    """``Sm90TmaWarpSpecializedAdapter<SmemEpilogueArrayPerTokenScale<...>>``: the whole output tile and, where it has more
    than 8 columns, their scales (cutlass_extensions/epilogue/collective/default_epilogue_array_per_token_scale.hpp). The
    adapter takes the same storage again where others keep tensor maps."""
    m, n, _ = config.mma_tile
    scales = n if n > 8 else 1
    members = [
        aligned(leaf("epilogue.D", "D", m * n * config.d.bits // 8), 16),
        aligned(leaf("epilogue.token scales", "fusion", scales * element_bits(config.accumulator) // 8), 16),
    ]
    again = [msgspec.structs.replace(each, name=f"{each.name} (once more)") for each in members]
    return Epilogue((m, n), Policy(0, 0, False, 0), struct(members), struct(again), EMPTY)


def _tensor_maps(warp_groups: int) -> Layout:
    """Those that a grouped kernel updates in shared memory; none for a dense kernel (no `warp_groups`)."""
    if warp_groups == 0:
        return EMPTY
    return struct(
        [
            leaf("epilogue.tensor map C", "tensormaps", TENSOR_MAP, 64),
            leaf("epilogue.tensor maps D", "tensormaps", TENSOR_MAP * warp_groups, 64),
        ],
        align=128,
    )


def _atom(output: Output, tile: tuple[int, int], name: str) -> Atom:
    """``sm90/sm120_get_epilogue_smem_swizzle_layout_atom``: by the mode that is contiguous in memory."""
    return gmma.atom(output.m_major, output.element, tile[0], tile[1], f"{name}'s epilogue")
