"""`KernelConfig` of an Sm100 or Sm103 instantiation from its 17 macro arguments, as FlashInfer's launcher resolves them
(moe_gemm/launchers/moe_gemm_tma_ws_launcher.inl), written out so that the tests need no launcher."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cutlint.config import EpilogueConfig, KernelConfig, Operand, Output, StageCount, element_bits
from cutlint.evaluate import Type
from cutlint.footprint import model

Cluster = tuple[int | None, int | None, int | None]

ELEMENT = {
    "half": "half_t",
    "__nv_bfloat16": "bfloat16_t",
    "float": "float",
    "__nv_fp8_e4m3": "float_e4m3_t",
    "SafeFP4": "float_e2m1_t",
}
MX_VECTOR = 32  # TmaWarpSpecializedGroupedGemmInput::MXFPXBlockScaleVectorSize


def kernel_config(row: Mapping[str, str], stages: int | None = None) -> KernelConfig:
    """The configuration for the columns of a truth table; `stages` for a launcher patched to ``StageCount<stages>``.

    Raises:
        Refused, Unmodelled: where the epilogue has no size, which the launcher takes for the carveout.
    """
    arch = int(row["archtag"].removeprefix("Sm"))
    act, weight = ELEMENT[row["datatype"]], ELEMENT[row["weighttype"]]
    mx, swap = row["mxfpx"] == "true", row["swap_ab"] == "true"
    mixed = act == "float_e4m3_t" and weight == "float_e2m1_t"
    scaled = act == "float_e2m1_t" or mixed or mx
    m, n, k = (int(row[each]) for each in ("cta_m", "cta_n", "cta_k"))
    fixed: Cluster = (int(row["cga_m"]), int(row["cga_n"]), int(row["cga_k"]))
    cluster: Cluster = (None, None, 1) if row["dynamic_cga"] == "true" else fixed
    sms = 2 if fixed[0] == 2 else 1
    scale = ("float_ue8m0_t" if mx else "float_ue4m3_t") if scaled else None
    operands = [
        (act, 128 // element_bits(act)),
        (weight, 128 if mixed else 128 // element_bits(weight)),
    ]
    (a, align_a), (b, align_b) = reversed(operands) if swap else operands
    config = KernelConfig(
        arch=arch,
        op_class="OpClassBlockScaledTensorOp" if scaled else "OpClassTensorOp",
        mma_tile=(m * sms, n, 3 * k if arch == 103 else k),
        cluster=cluster,
        a=Operand(a, "RowMajor*", align_a, scale),
        b=Operand(b, "ColumnMajor*", align_b, scale),
        accumulator="float",
        stage_count=StageCount(stages=stages),
        schedule=_schedule(arch, sms, scaled, mx),
        epilogue=_epilogue(row, arch, scaled, (m * sms, n, 3 * k if arch == 103 else k), (fixed, cluster)),
    )
    if stages is not None:
        return config
    carveout = StageCount(carveout=model.epilogue_size(config.epilogue))
    return msgspec.structs.replace(config, stage_count=carveout)


def _schedule(arch: int, sms: int, scaled: bool, mx: bool) -> str:
    if arch == 103:
        return f"KernelPtrArrayTmaWarpSpecialized{sms}SmBlockScaledMxNvf4UltraVs16Sm103"
    instruction = ("Mxf8f6f4" if mx else "Nvf4") if scaled else ""
    return f"KernelPtrArrayTmaWarpSpecialized{sms}Sm{instruction}Sm100"


def _epilogue(
    row: Mapping[str, str], arch: int, scaled: bool, tile: tuple[int, int, int], clusters: tuple[Cluster, Cluster]
) -> EpilogueConfig:
    fixed, cluster = clusters
    fusion, act = row["fusion"], ELEMENT[row["datatype"]]
    final = ELEMENT[row["outputtype"]]
    out = "bfloat16_t" if final == "float_e4m3_t" else final  # OutputTypeAdaptor_t
    layout = "ColumnMajor" if row["swap_ab"] == "true" else "RowMajor"
    sms = 2 if fixed[0] == 2 else 1
    tma = row["epilogueschedule"] == "PtrArrayTmaWarpSpecialized"
    through = "Tma" if tma or fusion == "ACTIVATION" else "NoSmem"
    element = act if fusion == "ACTIVATION" else out
    align_d = (128 if tma else 256) // element_bits(element)
    explicit = arch == 100 and act == "float_e2m1_t" and row["cta_n"] == "256"
    return EpilogueConfig(
        arch=arch,
        op_class="OpClassBlockScaledTensorOp" if scaled else "OpClassTensorOp",
        mma_tile=tile,
        cluster=fixed if fusion == "FINALIZE" else cluster,
        tile=(128, 64) if explicit else None,
        accumulator="float",
        c=Output(act if fusion == "ACTIVATION" else "void", layout, 128 // element_bits(act)),
        d=Output("void" if fusion == "FINALIZE" else element, layout, align_d),
        schedule=f"PtrArray{through}WarpSpecialized{sms}Sm",
        fusion=_fusion(row, final, element, layout),
    )


def _fusion(row: Mapping[str, str], final: str, element: str, layout: str) -> Type | None:
    accumulator = Type("float")
    if row["fusion"] == "FINALIZE":
        side = "PerRowBiasPerColScale" if row["swap_ab"] == "true" else "PerColBiasPerRowScale"
        return Type(f"ScaledAcc{side}Scatter", (Type(layout), Type(final), accumulator, Type(final), accumulator))
    if row["fusion"] != "ACTIVATION":
        return None
    activation, d = Type("ClampedRelu2"), Type(element)
    if row["mxfpx"] != "true":
        return Type("LinCombEltAct", (activation, d, accumulator, d, accumulator))
    scales = (Type("float_ue8m0_t"), Type("RowMajor"))
    return Type("LinCombEltActBlockScaleFactor", (activation, MX_VECTOR, d, accumulator, *scales, d, accumulator))
