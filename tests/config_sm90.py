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
    """The configuration for the columns of a truth table. A column `changed` says what was altered in the launcher's text,
    as ``name=value`` with semicolons between.

    Raises:
        Refused, Unmodelled: where the epilogue has no size, which the launcher takes for the carveout.
    """
    changed = dict(each.split("=") for each in row.get("changed", "").split(";") if each)
    epilogue = _epilogue(row, changed)
    m, n, k = epilogue.mma_tile
    schedule = f"Kernel{epilogue.schedule}" + ("FP8FastAccum" if row["datatype"] == "__nv_fp8_e4m3" else "")
    act, weight = (
        _operand(row[column], changed, name) for column, name in (("datatype", "act"), ("weighttype", "weight"))
    )
    a, b = (weight, act) if row["swap_ab"] == "true" else (act, weight)
    config = KernelConfig(
        arch=90,
        op_class="OpClassTensorOp",
        mma_tile=(m, n, k),
        cluster=(None, None, 1) if row["dynamic_cga"] == "true" else _cluster(row),
        a=msgspec.structs.replace(a, layout=f"{changed.get('layout_a', 'RowMajor')}*"),
        b=msgspec.structs.replace(b, layout=f"{changed.get('layout_b', 'ColumnMajor')}*"),
        accumulator=epilogue.accumulator,
        stage_count=StageCount(),
        schedule=schedule,
        epilogue=epilogue,
    )
    stages = StageCount(carveout=model.epilogue_size(epilogue))  # also where the launcher has no use for it
    if "stage_count" in changed:
        stages = StageCount(stages=int(changed["stage_count"]))
    return msgspec.structs.replace(config, stage_count=stages)


def _epilogue(row: Mapping[str, str], changed: Mapping[str, str]) -> EpilogueConfig:
    finalize, swap = row["fusion"] == "FINALIZE", row["swap_ab"] == "true"
    output = changed.get("output", ELEMENT[row["outputtype"]])
    c = changed.get("c", "void")
    accumulator = changed.get("accumulator", "float")
    layout = "ColumnMajor" if swap else "RowMajor"
    scatter = "ScaledAccPerRowBiasPerColScaleScatter" if swap else "ScaledAccPerColBiasPerRowScaleScatter"
    arguments = (Type(layout), Type(output), Type(accumulator), Type(output), Type("float"))
    align_c = int(changed.get("align_c", 128 // element_bits(ELEMENT[row["datatype"]])))
    align_d = int(changed.get("align_d", 128 // element_bits(output)))
    m, n = (int(each) for each in changed["epilogue_tile"].split("x")) if "epilogue_tile" in changed else (0, 0)
    return EpilogueConfig(
        arch=90,
        op_class="OpClassTensorOp",
        mma_tile=(int(row["cta_m"]), int(row["cta_n"]), int(row["cta_k"])),
        cluster=(None, None, 1) if row["dynamic_cga"] == "true" and not finalize else _cluster(row),
        tile=(m, n) if m else None,
        accumulator=accumulator,
        c=Output(c, layout, align_c),
        d=Output("void" if finalize else output, layout, align_d),
        schedule=changed.get("schedule", "PtrArrayTmaWarpSpecializedCooperative"),
        fusion=Type(scatter, arguments) if finalize else None,
    )


def _operand(column: str, changed: Mapping[str, str], name: str) -> Operand:
    element = changed.get(name, ELEMENT[column])
    return Operand(element, "", int(changed.get(f"align_{name}", 128 // element_bits(element))))


def _cluster(row: Mapping[str, str]) -> tuple[int, int, int]:
    return int(row["cga_m"]), int(row["cga_n"]), int(row["cga_k"])
