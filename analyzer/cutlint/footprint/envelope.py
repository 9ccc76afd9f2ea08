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
    return stage + output_tile(config.cta_tile, config.fusion)


def output_tile(cta_tile: tuple[int, int, int], fusion: str) -> int:
    """Bytes of the whole output tile as the rule of thumb counts it."""
    return cta_tile[0] * cta_tile[1] * (4 if fusion == "FINALIZE" else 2)
