"""Shared memory of the epilogue's fusion (the visitor tree's SharedStorage).

Only row broadcasts stage anything: `Sm90RowBroadcast` holds one vector of the CTA tile's N
(epilogue/fusion/sm90_visitor_load_tma_warpspecialized.hpp). The finalize fusions of FlashInfer and TensorRT-LLM
(cutlass_extensions/epilogue/fusion/sm90_visitor_scatter.hpp) broadcast the router scale along N when A and B are
swapped and the bias along N when they are not.
"""

from __future__ import annotations

from cutlint.config import element_bits
from cutlint.evaluate import Type
from cutlint.footprint.layout import EMPTY, Layout, leaf
from cutlint.footprint.records import Refused, Unmodelled

# fusion operation -> which template argument is the element of the vector broadcast along N
_ROW_BROADCAST: dict[str, tuple[int, int | None]] = {
    # (argument, argument it defaults to)
    "ScaledAccPerRowBiasPerColScaleScatter": (5, 2),  # ElementScalar, by default ElementCompute
    "ScaledAccPerColBiasPerRowScaleScatter": (3, 1),  # ElementBias, by default ElementOutput
    "PtrArrayPerTokenScaledAcc": (1, None),  # ElementCompute: the scales are converted as they are loaded
}
_WITHOUT_STORAGE = frozenset(
    {
        "LinearCombination", "ScaledAcc", "LinCombEltAct", "LinCombEltActBlockScaleFactor",
        # nodes of a visitor tree (epilogue/fusion/sm90_visitor_*.hpp)
        "Sm90Compute", "Sm90ScalarBroadcast", "Sm90AccFetch", "Sm90ColBroadcast",
    }
)  # fmt: skip


def storage(operation: Type | None, cta_n: int) -> Layout:
    """The fusion's SharedStorage for a CTA tile of `cta_n` columns."""
    if operation is None or operation.name in _WITHOUT_STORAGE:
        return EMPTY
    if operation.name == "Sm90EVT":
        nodes = [storage(each, cta_n) for each in operation.arguments if isinstance(each, Type)]
        if all(each.empty for each in nodes):
            return EMPTY
        raise Unmodelled("cutlint does not know how a visitor tree lays out what its nodes keep in shared memory")
    if operation.name not in _ROW_BROADCAST:
        raise Unmodelled(f"cutlint does not know what the epilogue fusion {operation.name} keeps in shared memory")
    index, default = _ROW_BROADCAST[operation.name]
    chosen = index if len(operation.arguments) > index else default
    element = operation.arguments[chosen] if chosen is not None and len(operation.arguments) > chosen else None
    if not isinstance(element, Type):
        raise Unmodelled(f"the element that {operation.name} broadcasts is not known")
    # array_aligned<Element, N>: aligned to 16 bytes, and its size a multiple of that
    return leaf("epilogue.row broadcast", "fusion", cta_n * element_bits(str(element)) // 8, 16)


def auxiliary_element(operation: Type | None) -> str | None:
    """``fusion::get_element_aux_t``: what a finalize fusion writes itself, in place of D."""
    if operation is not None and operation.name.endswith("Scatter") and len(operation.arguments) > 1:
        return str(operation.arguments[1])
    return None


def check_block_scales(operation: Type | None, tile_n: int) -> None:
    """``Sm100BlockScaleFactorRowStore``'s conditions (epilogue/fusion/sm100_visitor_store_tma_warpspecialized.hpp), where
    the fusion writes a scale factor for each `SFVecSize` columns of an epilogue tile of `tile_n`."""
    if operation is None or operation.name != "LinCombEltActBlockScaleFactor":
        return
    vector = operation.arguments[1]
    if not isinstance(vector, int):
        raise Unmodelled("the number of elements to a scale factor of the output is not known")
    if tile_n % vector:
        raise Refused(f"an epilogue tile of {tile_n} columns: EpilogueTileN should be divisible by SFVecSize")
    if tile_n // vector not in (1, 2, 4, 8):
        raise Refused(f"{tile_n // vector} scale factors a row: Possible store in interleaved 4B aligned format")
