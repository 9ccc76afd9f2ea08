"""Compares the model with the clang engine on random instantiations: `python bench/agree.py RELEASE N [SEED]`.

Draws N points around what the generator writes (M 64 to 256, N 8 to 256, K half to four times the generator's, clusters up
to 4, every element type of each architecture, each fusion, both SwapAB) and reports every difference: figures, regions, and
which points do not compile. The seed is printed; give it to draw the same points again. Exits with 1 on a difference.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path

from cutlint import checkout, launchers
from cutlint.clang.engine import evaluate
from cutlint.compare import differences
from cutlint.cutlass import Cutlass
from cutlint.fetch import fetch
from cutlint.headers import Headers
from cutlint.sizing import Sizer

MXFP8, NVFP4 = "__nv_fp8_e4m3", "SafeFP4"
# architecture -> activation, weight, MX block scaling, the generator's K
TYPES = {
    "Sm90": [("half", "half", False, 64), ("__nv_bfloat16", "__nv_bfloat16", False, 64), ("float", "float", False, 32)]
    + [(MXFP8, MXFP8, False, 128)],
    "Sm100": [("half", "half", False, 64), ("__nv_bfloat16", "__nv_bfloat16", False, 64), ("float", "float", False, 32)]
    + [(MXFP8, MXFP8, False, 128), (MXFP8, MXFP8, True, 128), (MXFP8, NVFP4, True, 128), (NVFP4, NVFP4, False, 256)],
    "Sm103": [(NVFP4, NVFP4, False, 256)],
    "Sm120": [(NVFP4, NVFP4, False, 128), (MXFP8, NVFP4, True, 128)],
}


def draw(source: random.Random) -> list[str]:
    """The 17 arguments of one instantiation, those of the macro of flashinfer 0.5 and later."""
    arch = source.choice([*TYPES, "Sm100"])
    act, weight, mx, k = source.choice(TYPES[arch])
    output = source.choice(["half", "__nv_bfloat16"]) if act in (MXFP8, NVFP4) else act
    # half of the points where the generator's are, so that not nearly all are refused
    m = source.choice([128, 128, 128, 64, 256])
    n = source.choice([64, 128, 256]) if source.random() < 0.5 else 8 * source.randint(1, 32)
    tile_k = int(k * source.choice([1, 1, 0.5, 2, 4]))
    cluster = [source.choice([1, 1, 2, 4]), source.choice([1, 1, 2]), 1] if arch != "Sm120" else [1, 1, 1]
    schedule = (
        source.choice(["PtrArrayTmaWarpSpecialized", "PtrArrayNoSmemWarpSpecialized"])
        if arch in ("Sm100", "Sm103")
        else "void"
    )
    fusion = source.choice(["NONE", "FINALIZE"])
    dynamic = arch in ("Sm100", "Sm103") and source.random() < 0.5
    booleans = [mx, dynamic, False, source.random() < 0.5]
    numbers = [m, n, tile_k, *cluster]
    return [
        arch, act, weight, output, schedule, "EpilogueOpDefault", fusion,
        *map(str, numbers), *(str(each).lower() for each in booleans),
    ]  # fmt: skip


def main() -> int:
    requirement, count = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.SystemRandom().randrange(2**32)
    source = random.Random(seed)
    found, _ = checkout.find(fetch(requirement), requirement)
    path = next(each for each in found.launchers if each.name == "moe_gemm_tma_ws_launcher.inl")
    read, _ = launchers.read(path, Headers(path, found.root))
    sizer = Sizer(read[0], Cutlass(found.cutlass or Path()))
    points = [dict(zip(read[0].parameters, draw(source), strict=True)) for _ in range(count)]
    verdicts: Counter[str] = Counter()
    for point, compiled in zip(points, evaluate(read[0], found, points), strict=True):
        model = sizer.size(point)
        different = differences(model.footprint, compiled)
        if model.footprint is None:
            different = (f"no figure: {model.reason}",)
        verdicts["different" if different else "refused by both" if compiled.refused else "equal"] += 1
        if different:
            print(f"{', '.join(point.values())}\n  " + "\n  ".join(different))
    print(
        f"{requirement}, seed {seed}: " + ", ".join(f"{number} {verdict}" for verdict, number in verdicts.most_common())
    )
    return 1 if verdicts["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
