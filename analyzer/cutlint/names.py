"""Short names of element types, as people write them."""

from __future__ import annotations

SHORT_ELEMENTS = {
    "float_e2m1_t": "FP4", "float_e4m3_t": "FP8", "float_e5m2_t": "FP8e5m2", "half_t": "FP16", "bfloat16_t": "BF16",
    "float": "FP32", "int8_t": "INT8", "uint8_t": "UINT8", "int4b_t": "INT4", "uint4b_t": "UINT4", "void": "void",
}  # fmt: skip
