"""The rule of thumb that host-side filters use, to be shown beside the exact figure."""

from __future__ import annotations

from cutlint.config import KernelConfig


def envelope(config: KernelConfig) -> int:
    """Bytes of one stage of A, B and scale factors plus the whole output tile, at 4 bytes an element where the epilogue
    finalizes and 2 otherwise. It takes every operand at its own width and ignores barriers, tensor maps and padding."""
    m, n, k = config.cta_tile
    stage = (m * config.a.bits + n * config.b.bits) * k // 8
    for extent, operand in ((m, config.a), (n, config.b)):
        if operand.scale is not None:
            stage += extent * k // (operand.scale_vector or (16 if operand.scale == "float_ue4m3_t" else 32))
    return stage + m * n * (4 if config.fusion == "FINALIZE" else 2)
