"""A small checkout with host code: launcher, dispatch code, heuristic, and generated files as a test wants them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from conftest import CHECKOUT, FIXTURES, LAUNCHER

KERNELS = LAUNCHER.relative_to(CHECKOUT).parent.parent.parent
HEURISTIC = KERNELS / "cutlass_heuristic.cpp"
DISPATCH = KERNELS / "moe_gemm/moe_gemm_template_dispatch.h"
RUNNERS = KERNELS / "moe_gemm/moe_gemm_kernels_fp4_fp4.cu"
CONFIGS = KERNELS.parent.parent / "cutlass_extensions/include/cutlass_extensions/gemm_configs.h"
MACRO = "INSTANTIATE_TMA_WARP_SPECIALIZED_MOE_GEMM"
INSTANTIATES = (
    "  template void small_moe_gemm_kernelLauncher<cutlass::arch::ArchTag_, DataType_, WeightType_, OutputType_, \\\n"
    "      EpilogueSchedule_, tensorrt_llm::cutlass_extensions::EpilogueTag_, EpilogueFusion::FUSION_, \\\n"
    "      cute::Shape<cute::Int<CTA_M_>, cute::Int<CTA_N_>, cute::Int<CTA_K_>>, \\\n"
    "      cute::Shape<cute::Int<CGA_M_>, cute::Int<CGA_N_>, cute::Int<CGA_K_>>, MXFPX_, DYNAMIC_CGA_, BIAS_, SWAP_AB_>( \\\n"
    "      TmaWarpSpecializedGroupedGemmInput input, int num_experts, cudaStream_t stream);\n"
)
TILES = (
    (128, 64, 128),
    (128, 128, 128),
    (128, 256, 128),
    (256, 128, 128),
)  # those that the dispatch code has cases for
Tile = tuple[int, int, int]


def checkout(folder: Path, tiles: Iterable[Tile] = TILES) -> Path:
    """The checkout, with instantiations of `tiles` for both fusions, both outputs and both ways of SwapAB."""
    root = folder / "checkout"
    shutil.copytree(CHECKOUT, root)
    shutil.copytree(FIXTURES / "dispatch", root, dirs_exist_ok=True)
    launcher = root / LAUNCHER.relative_to(CHECKOUT)
    text = launcher.read_text()
    end = "  }\n}  // namespace kernels"
    assert end in text
    launcher.write_text(text.replace(end, f"  }} \\\n{INSTANTIATES}}}  // namespace kernels"))
    generate(root, tiles)
    return root


def generate(root: Path, tiles: Iterable[Tile]) -> None:
    generated = root / "generated/cutlass_instantiations/120"
    shutil.rmtree(generated, ignore_errors=True)
    generated.mkdir(parents=True)
    for m, n, k in tiles:
        lines = [
            f"{MACRO}(Sm120, SafeFP4, SafeFP4, {output}, void, EpilogueOpDefault, {fusion}, {m}, {n}, {k}, 1, 1, 1, "
            f"false, false, false, {swap});"
            for fusion in ("NONE", "FINALIZE")
            for output in ("half", "__nv_bfloat16")
            for swap in ("true", "false")
        ]
        (generated / f"m{m}_n{n}_k{k}.generated.cu").write_text("\n".join(lines) + "\n")


def edit(root: Path, path: Path, *changes: tuple[str, str]) -> None:
    text = (root / path).read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (root / path).write_text(text)
