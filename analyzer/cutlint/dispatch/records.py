"""What is known of the autotuner's tactics and of the dispatch code, as plain data."""

from __future__ import annotations

import msgspec

from cutlint.dispatch.values import Place
from cutlint.records import Problem

Extents = tuple[int, int, int]


class Runner(msgspec.Struct, frozen=True):
    """A class of the host code whose object runs GEMMs of one combination of types: its name as it is instantiated at
    `place`.

    Types are written without namespaces, a type that has several names always the same way. `scaling` is the block
    scaling that the class implies: MXFPX, NVFP4 or NONE.
    """

    name: str
    activation: str
    weight: str
    output: str
    scaling: str
    place: Place


class Call(msgspec.Struct, frozen=True):
    """A launcher with its template arguments that the dispatch code can call: what must be instantiated.

    `place` is where the code names it, `case` the case of the tile that leads there with its `label`, both None where
    no case does; `runners` are indices.
    """

    launcher: str
    arguments: tuple[str, ...]
    place: Place
    case: Place | None
    label: str | None
    runners: tuple[int, ...]


class Tactic(msgspec.Struct, frozen=True):
    """One configuration that a runner offers on the compute capability `sm`, and what the dispatch code makes of it.

    `tile` is [M, N, K] with K in bytes, as the enumerators have it. `dynamic_cluster` is the cluster shape chosen at
    launch, `cluster` then only says whether one or two SMs share an MMA. `index` is the position in what ``getConfigs``
    returns for the second GEMM, `offered` the line that lists the tile. `calls` are indices; where there are none,
    `refused` says why and `refused_at` where.
    """

    sm: int
    runner: int
    index: int
    label: str
    tile: Extents
    cluster: Extents
    dynamic_cluster: Extents | None
    mainloop: str
    epilogue: str
    fusion: str
    swap_ab: bool
    offered: Place
    calls: tuple[int, ...]
    refused: str | None = None
    refused_at: Place | None = None


class Filtered(msgspec.Struct, frozen=True):
    """A decision of a host-side filter that looks at shared memory: `place` is its first line, `label` the tile that it
    was asked about, `kept` whether the tile is among the tactics."""

    sm: int
    runner: int
    place: Place
    function: str
    label: str
    tile: Extents
    kept: bool


class Routes(msgspec.Struct, frozen=True):
    """All of it. `partial` are runners of which something was not understood (see `problems`): what is not among their
    calls may be called all the same. `others` counts offered configurations that are not warp-specialized TMA kernels,
    which are compiled inside the dispatch code and need no instantiation."""

    runners: tuple[Runner, ...] = ()
    calls: tuple[Call, ...] = ()
    tactics: tuple[Tactic, ...] = ()
    filtered: tuple[Filtered, ...] = ()
    partial: tuple[int, ...] = ()
    others: dict[int, int] = {}
    problems: tuple[Problem, ...] = ()


class Hosted(msgspec.Struct, frozen=True):
    """What the host code of a checkout says: its routes, the names of its launchers, the default arguments of their
    template parameters, and names that the launchers' files give to types."""

    routes: Routes
    launchers: tuple[str, ...]
    defaults: dict[str, tuple[str | None, ...]]
    aliases: dict[str, str]
