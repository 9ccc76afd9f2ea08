"""Facts about the CUTLASS of a checkout: its version, capacities, and what its Sm120 builder sets aside.

Read from the headers as text (``cutlass/version.h``, ``cutlass/arch/arch.h``, the builders), never from a table: the
builders' ``static constexpr`` chain is evaluated as a launcher's aliases are.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from cutlint import cpp
from cutlint.evaluate import Definition, Scope, Type
from cutlint.expression import Literal, NotUnderstood, parse
from cutlint.footprint.parts import BARRIER, TENSOR_MAP
from cutlint.footprint.records import Unmodelled
from cutlint.headers import definitions_of

_SM120_BUILDER = "cutlass/gemm/collective/builders/sm120_blockscaled_mma_builder.inl"
_SM120_MAINLOOP = "cutlass/gemm/collective/sm120_blockscaled_mma_array_tma.hpp"


class Cutlass:
    """The CUTLASS whose headers are below `include` (the folder that holds ``cutlass/version.h``)."""

    def __init__(self, include: Path) -> None:
        self.include = include

    def _text(self, name: str) -> bytes:
        try:
            return (self.include / name).read_bytes()
        except OSError as error:
            raise Unmodelled(f"CUTLASS's {name} cannot be read ({error.strerror}), so nothing is known about it") from None

    @cached_property
    def version(self) -> tuple[int, int, int]:
        text = self._text("cutlass/version.h").decode("utf-8", "replace")
        found = [re.search(rf"#define\s+CUTLASS_{part}\s+(\d+)", text) for part in ("MAJOR", "MINOR", "PATCH")]
        major, minor, patch = (int(each.group(1)) if each else -1 for each in found)
        return major, minor, patch

    def constant(self, name: str) -> int:
        """The value of an integer constant in ``cutlass/arch/arch.h``."""
        match = re.search(rf"\b{name}\s*=\s*(\d+)", self._text("cutlass/arch/arch.h").decode("utf-8", "replace"))
        if match is None:
            raise Unmodelled(f"CUTLASS's arch.h does not define {name}")
        return int(match.group(1))

    @cached_property
    def sm120_capacity(self) -> int:
        """Bytes of shared memory a block may have, as CUTLASS's Sm120 builders take them."""
        return self.constant("sm120_smem_capacity_bytes")

    @cached_property
    def _sm120_builder(self) -> tuple[dict[str, Definition], str]:
        data = cpp.blank_comments_only(self._text(_SM120_BUILDER))
        definitions = definitions_of(data, "CollectiveBuilder")
        return definitions, data.decode("utf-8", "replace")

    @cached_property
    def sm120_pads_scales_of_b(self) -> bool:
        """Whether B's scale factors are stored for 128 columns when the tile has fewer (from CUTLASS 4.5.0)."""
        return "sSFBTileShape_N" in self._sm120_builder[0]

    @cached_property
    def sm120_scales_alignment(self) -> int:
        """The ``alignas`` of the Sm120 mainloop's scale-factor arrays, in bytes."""
        text = self._text(_SM120_MAINLOOP).decode("utf-8", "replace")
        match = re.search(r"(?:alignas\((\d+)\)\s*)?cute::ArrayEngine<ElementSF\b", text)
        if match is None:
            raise Unmodelled("CUTLASS's Sm120 mainloop stores scale factors in a way that cutlint does not know")
        return int(match.group(1) or 1)

    @cached_property
    def sm120_reserved(self) -> int:
        """Bytes that the Sm120 builder takes off the capacity before it counts stages of a grouped kernel.

        The capacity it passes to ``sm100_compute_stage_count_or_override_blockscaled`` is evaluated as written.
        """
        definitions, text = self._sm120_builder
        call = re.search(r"sm100_compute_stage_count_or_override_blockscaled\s*<\s*([\w:]+)\s*,", text)
        if call is None:
            raise Unmodelled("CUTLASS's Sm120 builder counts stages in a way that cutlint does not know")
        constants = {"sm120_smem_capacity_bytes": Definition("", Literal(self.sm120_capacity, 0))}
        scope = Scope(definitions, _GROUPED, lambda name: constants if name == "detail" else {}, _sizeof)
        statement = f"int x = {call.group(1)};".encode()
        try:
            value = scope.evaluate(parse(list(cpp.tokens(cpp.parse(statement).root_node, statement))[3:-1]))
        except NotUnderstood as error:
            raise Unmodelled(f"what CUTLASS's Sm120 builder sets aside is not understood: {error}") from None
        if not isinstance(value, int):
            raise Unmodelled(f"what CUTLASS's Sm120 builder sets aside is not understood: {value}")
        return self.sm120_capacity - value


_GROUPED = {"IsGroupedGemmKernel": Literal(True, 0)}


def _sizeof(of: Type) -> int:
    """sizeof of the storage types that the builders count (cutlass/pipeline/, gemm/kernel/)."""
    pipeline = of if of.name == "PipelineAsyncSharedStorage" else of.owner
    if pipeline is not None and pipeline.name in ("PipelineAsyncSharedStorage", "PipelineAsync", "PipelineCLCFetchAsync"):
        stages = pipeline.arguments[0]
        if isinstance(stages, int):
            return 2 * stages * BARRIER
    if of.name == "TmaDescriptor":
        return TENSOR_MAP
    if of.name == "CLCResponse":
        return 16
    raise NotUnderstood(f"sizeof({of})")
