"""`KernelConfig` of an Sm90 instantiation from its 17 macro arguments, as FlashInfer's launcher resolves them
(moe_gemm/launchers/moe_gemm_tma_ws_launcher.inl), written out so that the tests need no launcher."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from cutlint.config import EpilogueConfig, KernelConfig, Operand, Output, StageCount, element_bits
from cutlint.evaluate import Type
from cutlint.footprint import model

ELEMENT = {"half": "half_t", "__nv_bfloat16": "bfloat16_t", "float": "float", "__nv_fp8_e4m3": "float_e4m3_t"}


def kernel_config(row: Mapping[str, str]) -> KernelConfig:
    """The configuration for the columns of a truth table.

    Raises:
        Refused: where the epilogue has no size, which the launcher takes for the carveout.
    """
    act, out = ELEMENT[row["datatype"]], ELEMENT[row["outputtype"]]
    m, n, k = (int(row[each]) for each in ("cta_m", "cta_n", "cta_k"))
    fixed = (int(row["cga_m"]), int(row["cga_n"]), int(row["cga_k"]))
    cluster = (None, None, 1) if row["dynamic_cga"] == "true" else fixed
    finalize, swap = row["fusion"] == "FINALIZE", row["swap_ab"] == "true"
    layout = "ColumnMajor" if swap else "RowMajor"
    scatter = "ScaledAccPerRowBiasPerColScaleScatter" if swap else "ScaledAccPerColBiasPerRowScaleScatter"
    float_, element = Type("float"), Type(out)
    alignment = 128 // element_bits(act)
    epilogue = EpilogueConfig(
        arch=90,
        op_class="OpClassTensorOp",
        mma_tile=(m, n, k),
        cluster=fixed if finalize else cluster,
        tile=None,
        accumulator="float",
        c=Output("void", layout, alignment),
        d=Output("void" if finalize else out, layout, 128 // element_bits(out)),
        schedule="PtrArrayTmaWarpSpecializedCooperative",
        fusion=Type(scatter, (Type(layout), element, float_, element, float_)) if finalize else None,
    )
    config = KernelConfig(
        arch=90,
        op_class="OpClassTensorOp",
        mma_tile=(m, n, k),
        cluster=cluster,
        a=Operand(act, "RowMajor*", alignment),
        b=Operand(act, "ColumnMajor*", alignment),
        accumulator="float",
        stage_count=StageCount(),
        schedule="KernelPtrArrayTmaWarpSpecializedCooperative" + ("FP8FastAccum" if act == "float_e4m3_t" else ""),
        epilogue=epilogue,
    )
    return msgspec.structs.replace(config, stage_count=StageCount(carveout=model.epilogue_size(epilogue)))
