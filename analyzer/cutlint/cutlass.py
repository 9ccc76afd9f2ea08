"""Facts about the CUTLASS of a checkout: its version, capacities, and what its Sm120 builder sets aside.

Read from the headers as text (``cutlass/version.h``, ``cutlass/arch/arch.h``, the builders), never from a table: the
builders' ``static constexpr`` chain is evaluated as a launcher's aliases are.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from cutlint import cpp
from cutlint.evaluate import Definition, Outside, Scope, Type, Value
from cutlint.expression import Expression, Literal, Name, NotUnderstood, Operation, Part, read
from cutlint.footprint.parts import BARRIER, CLC_RESPONSE, TENSOR_MAP
from cutlint.footprint.records import Unmodelled
from cutlint.headers import definitions_of

_SM120_BUILDER = "cutlass/gemm/collective/builders/sm120_blockscaled_mma_builder.inl"
_SM100_CARVEOUT = "cutlass/gemm/collective/builders/sm100_pipeline_carveout.inl"
_SM100_DENSE = "cutlass/gemm/collective/builders/sm100_umma_builder.inl"
_SM100_BLOCK_SCALED = "cutlass/gemm/collective/builders/sm100_blockscaled_umma_builder.inl"
_SM100_EPILOGUE = "cutlass/epilogue/collective/builders/sm100_builder.inl"
_SM100_KERNEL = "cutlass/gemm/kernel/sm100_gemm_array_tma_warpspecialized.hpp"
_SM103_BUILDER = "cutlass/gemm/collective/builders/sm103_blockscaled_umma_builder.inl"
_SM90_BUILDER = "cutlass/gemm/collective/builders/sm90_gmma_builder.inl"
_SM90_COMMON = "cutlass/gemm/collective/builders/sm90_common.inl"
_SM103_KERNEL = "cutlass/gemm/kernel/sm103_blockscaled_gemm_array_tma_warpspecialized.hpp"


# Versions on which the models were compared with a compiler over the headers themselves
CHECKED = frozenset({(4, 2, 1), (4, 4, 2), (4, 5, 0)})


class Cutlass:
    """The CUTLASS whose headers are below `include` (the folder that holds ``cutlass/version.h``)."""

    def __init__(self, include: Path) -> None:
        self.include = include
        self._known: dict[object, int] = {}
        self._definitions: dict[str, dict[str, Definition]] = {}

    def _text(self, name: str) -> bytes:
        try:
            return (self.include / name).read_bytes()
        except OSError as error:
            raise Unmodelled(
                f"CUTLASS's {name} cannot be read ({error.strerror}), so nothing is known about it"
            ) from None

    @cached_property
    def version(self) -> tuple[int, int, int]:
        text = self._text("cutlass/version.h").decode("utf-8", "replace")
        found = [re.search(rf"#define\s+CUTLASS_{part}\s+(\d+)", text) for part in ("MAJOR", "MINOR", "PATCH")]
        if not all(found):
            raise Unmodelled("CUTLASS's version.h does not say which version it is")
        major, minor, patch = (int(each.group(1)) for each in found if each)
        return major, minor, patch

    @cached_property
    def checked(self) -> bool:
        """Whether the models were compared with a compiler on this version."""
        return self.version in CHECKED

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
    def sm120_reserved(self) -> int:
        """Bytes that the Sm120 builder takes off the capacity before it counts stages of a grouped kernel.

        The capacity it passes to ``sm100_compute_stage_count_or_override_blockscaled`` is evaluated as written.
        """
        definitions, text = self._sm120_builder
        call = re.search(r"sm100_compute_stage_count_or_override_blockscaled\s*<\s*([\w:]+)\s*,", text)
        if call is None:
            raise Unmodelled("CUTLASS's Sm120 builder counts stages in a way that cutlint does not know")
        constants = {"sm120_smem_capacity_bytes": Definition("", Literal(self.sm120_capacity, 0))}
        scope = Scope(definitions, _GROUPED, _Detail(constants), _sizeof)
        try:
            value = scope.evaluate(read(call.group(1).encode()))
        except NotUnderstood as error:
            raise Unmodelled(f"what CUTLASS's Sm120 builder sets aside is not understood: {error}") from None
        if not isinstance(value, int):
            raise Unmodelled(f"what CUTLASS's Sm120 builder sets aside is not understood: {value}")
        return self.sm120_capacity - value

    # -- Sm90

    @cached_property
    def sm90_capacity(self) -> int:
        """Bytes of shared memory a block may have, as CUTLASS's Sm90 builders take them."""
        return self._read(_SM90_COMMON, r"sm90_smem_capacity_bytes\s*=\s*(\d+)")

    @cached_property
    def sm90_reserved(self) -> int:
        """Bytes that the Sm90 builder sets aside for a grouped kernel's own storage (none before CUTLASS 4.2)."""
        if b"KernelSmemCarveout" not in self._text(_SM90_BUILDER):
            return 0
        return self._carveout(_SM90_BUILDER, "CollectiveBuilder", {"IsArrayOfPointersGemm": True})

    # -- Sm100 and Sm103

    @cached_property
    def sm100_capacity(self) -> int:
        """Bytes of shared memory a block may have, as CUTLASS's Sm100 and Sm103 builders take them."""
        return self.constant("sm100_smem_capacity_bytes")

    def sm100_reserved(self, accumulators: int, scheduler: int, tensor_maps: int) -> int:
        """Bytes that the Sm100 builders set aside for a ptr-array kernel's own storage, with so many stages of the
        accumulator and scheduler pipelines and so many tensor maps of the mainloop (``Sm100DenseGemmTmaUmmaCarveout``)."""
        known = {
            "IsArrayOfPointersGemm": True,
            "AccumulatorPipelineStageCount": accumulators,
            "SchedulerPipelineStageCount": scheduler,
            "NumTensorMaps": tensor_maps,
        }
        return self._carveout(_SM100_CARVEOUT, "Sm100DenseGemmTmaUmmaCarveout", known)

    def sm103_reserved(self, accumulators: int, scheduler: int) -> int:
        """Bytes that the Sm103 builder sets aside for a ptr-array kernel's own storage (``KernelSmemCarveout``)."""
        known = {
            "IsArrayOfPointersGemm": True,
            "AccumulatorPipelineStageCount": accumulators,
            "SchedulerPipelineStageCount": scheduler,
        }
        return self._carveout(_SM103_BUILDER, "CollectiveBuilder", known)

    def sm100_scheduler_stages(self, block_scaled: bool) -> int:
        """Stages of a grouped Sm100 kernel's scheduler pipeline."""
        name = _SM100_BLOCK_SCALED if block_scaled else _SM100_DENSE
        return self._read(name, r"SchedulerPipelineStageCount\s*=\s*cute::conditional_return<IsGroupGemm[^>]*>\((\d+),")

    @cached_property
    def sm103_scheduler_stages(self) -> int:
        """Stages of an Sm103 kernel's scheduler pipeline."""
        return self._read(_SM103_BUILDER, r"SchedulerPipelineStageCount\s*=\s*(\d+)\s*;")

    @cached_property
    def sm100_stage_barriers(self) -> int:
        """Bytes that a stage's two barriers count for when the block-scaled Sm100 builder divides (padded from 4.4)."""
        storage = r"sizeof\(typename cutlass::PipelineTmaUmmaAsync<1>::SharedStorage\)"
        text = self._text(_SM100_BLOCK_SCALED).decode("utf-8", "replace")
        match = re.search(
            rf"mainloop_pipeline_bytes\s*=\s*(?:cutlass::round_up\({storage},\s*(\d+)\)|{storage});", text
        )
        if match is None:
            raise Unmodelled(
                "CUTLASS's block-scaled Sm100 builder counts a stage's barriers in a way that cutlint does not know"
            )
        return -(-2 * BARRIER // int(match.group(1) or 1)) * int(match.group(1) or 1)

    @cached_property
    def sm100_updaters(self) -> int:
        """Warps of a grouped Sm100 kernel that only update tensor maps: 0 before CUTLASS 4.4."""
        if b"NumTensorMapUpdaterThreads" not in self._text(_SM100_KERNEL):
            return 0
        return self._read(
            _SM100_KERNEL, r"NumTensorMapUpdaterThreads\s*=\s*IsTensorMapUpdateAsync \? NumThreadsPerWarp \* (\d+)"
        )

    @cached_property
    def sm100_epilogue_any_width(self) -> bool:
        """Whether an Sm100 epilogue takes the whole width where its usual subtile does not divide it (from 4.4)."""
        return re.search(rb"CtaN % N_tmp == 0 \? N_tmp : CtaN", self._text(_SM100_EPILOGUE)) is not None

    @cached_property
    def sm100_asserts_capacity(self) -> bool:
        """Whether the Sm100 kernel's class (not only its code) asserts that its storage fits."""
        return self._asserts_capacity(_SM100_KERNEL)

    @cached_property
    def sm103_asserts_capacity(self) -> bool:
        """Whether the Sm103 kernel's class (not only its code) asserts that its storage fits."""
        return self._asserts_capacity(_SM103_KERNEL)

    def _asserts_capacity(self, header: str) -> bool:
        pattern = rb"sizeof\(SharedStorage\);\s*static_assert\(SharedStorageSize\s*<="
        return re.search(pattern, self._text(header)) is not None

    def _read(self, header: str, pattern: str) -> int:
        """The number that `pattern` finds in `header`."""
        if (header, pattern) not in self._known:
            match = re.search(pattern, self._text(header).decode("utf-8", "replace"))
            if match is None:
                raise Unmodelled(f"CUTLASS's {header} is written in a way that cutlint does not know")
            self._known[header, pattern] = int(match.group(1))
        return self._known[header, pattern]

    def _carveout(self, header: str, owner: str, known: dict[str, int]) -> int:
        """``KernelSmemCarveout`` of the class `owner`, evaluated as written with the constants in `known`."""
        key = (header, *known.values())
        if key not in self._known:
            if header not in self._definitions:
                self._definitions[header] = definitions_of(cpp.blank_comments_only(self._text(header)), owner)
            constants = {"CLCResponseSize": Definition("", Literal(CLC_RESPONSE, 0))}
            parameters: dict[str, Expression | Value] = {name: Literal(value, 0) for name, value in known.items()}
            parameters["GmemLayoutATag"] = _POINTER
            scope = Scope(self._definitions[header], parameters, _Detail(constants), _sizeof)
            try:
                value = scope.evaluate(Name((Part("KernelSmemCarveout"),), 0))
            except NotUnderstood as error:
                raise Unmodelled(f"what CUTLASS's {header} sets aside is not understood: {error}") from None
            if not isinstance(value, int):
                raise Unmodelled(f"what CUTLASS's {header} sets aside is not understood: {value}")
            self._known[key] = value
        return self._known[key]


class _Detail(Outside):
    """Constants of the namespace ``detail``."""

    def __init__(self, constants: dict[str, Definition]) -> None:
        self._constants = constants

    def struct(self, name: str) -> dict[str, Definition]:
        return self._constants if name == "detail" else {}


_GROUPED = {"IsGroupedGemmKernel": Literal(True, 0)}
_POINTER = Operation("*", (Name((Part("RowMajor"),), 0),), 0)  # a grouped kernel's layouts are pointers


def _sizeof(of: Type) -> int:
    """sizeof of the storage types that the builders count (cutlass/pipeline/, gemm/kernel/)."""
    pipeline = of if of.name == "PipelineAsyncSharedStorage" else of.owner
    if pipeline is not None and pipeline.name in (
        "PipelineAsyncSharedStorage",
        "PipelineAsync",
        "PipelineCLCFetchAsync",
        "PipelineUmmaAsync",
    ):
        stages = pipeline.arguments[0]
        if isinstance(stages, int):
            return 2 * stages * BARRIER
    if pipeline is not None and pipeline.name == "OrderedSequenceBarrier":
        depth, length = pipeline.arguments[:2]
        if isinstance(depth, int) and isinstance(length, int):
            return depth * length * BARRIER
    if of.name == "ClusterBarrier":
        return BARRIER
    if of.name == "TmaDescriptor":
        return TENSOR_MAP
    if of.name == "CLCResponse":
        return CLC_RESPONSE
    raise NotUnderstood(f"sizeof({of})")
