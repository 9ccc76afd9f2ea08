"""What the engine and its worker processes say to one another. Plain data; sizes in bytes."""

from __future__ import annotations

import msgspec

from cutlint.footprint.layout import Region


class Field(msgspec.Struct, frozen=True):
    """A member of a record, or (nameless) its bases: `offset` from the start of the outermost record, `type` in
    full.

    `fields` are its own members; `elements` stands for an array of records and holds one Field an element. A class without
    data has neither, and `empty` set.
    """

    name: str
    type: str
    offset: int
    size: int
    union: bool = False
    empty: bool = False
    fields: tuple[Field, ...] = ()
    elements: tuple[Field, ...] = ()


class Setup(msgspec.Struct, frozen=True, tag=True):
    """What every unit of a run is compiled with: the compiler's options and the precompiled header, if there is one yet."""

    options: tuple[str, ...]
    precompiled: str | None = None


class Header(msgspec.Struct, frozen=True, tag=True):
    """An order to precompile the file `path` to `target`; `launcher` and `offset` say where the macro is defined."""

    path: str
    target: str
    launcher: str
    offset: int


class Unit(msgspec.Struct, frozen=True, tag=True):
    """An order to evaluate one translation unit. `spans` are the first and last line (one-based) of each probe in `text`;
    `prefix` is what their namespaces' names begin with, before the index."""

    text: str
    spans: tuple[tuple[int, int], ...]
    prefix: str


class Error(msgspec.Struct, frozen=True):
    """One error of the compiler: `message` in its words (of a static_assert, that one's own), `where` the file and line.
    `asserted`: it is a static_assert that failed."""

    message: str
    where: str
    asserted: bool = False


class Precompiled(msgspec.Struct, frozen=True, tag=True):
    """A header is precompiled. `namespaces` are those around the launcher's macro, outermost first; `errors` what the
    compiler did not like in the headers and what may spoil a size, `missing` a header that was not found."""

    namespaces: tuple[str, ...]
    errors: tuple[Error, ...] = ()
    missing: str | None = None


class Sizes(msgspec.Struct, frozen=True):
    """What a probe evaluates to: numbers by name, -1 for what the kernel does not have, and the storage's regions."""

    values: dict[str, int]
    regions: tuple[Region, ...]


class Evaluated(msgspec.Struct, frozen=True, tag=True):
    """A unit's outcome: errors by the index of the probe that they point into, errors that point into none, and what the
    probes evaluate to (worth something only where there is no error at all)."""

    errors: dict[int, tuple[Error, ...]]
    stray: tuple[Error, ...]
    sizes: dict[int, Sizes]


class Failure(msgspec.Struct, frozen=True, tag=True):
    """libclang could not do it at all: it is missing, it crashed, or it cannot read the precompiled header."""

    message: str


Order = Setup | Header | Unit
Answer = Precompiled | Evaluated | Failure
