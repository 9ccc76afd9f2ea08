"""The records that cutlint's stages hand to one another.

All are frozen and hold plain data only: no parser node, no open file. Sizes are bytes, tiles are elements,
lines and characters are zero-based (as in the Language Server Protocol) unless a name says otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

Paths = Callable[[str], str]  # how a path is written for people
Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("note", "warning", "error")  # in rising order


class Position(msgspec.Struct, frozen=True):
    """A place in a text file: zero-based line, and zero-based character in UTF-16 code units."""

    line: int
    character: int


class Range(msgspec.Struct, frozen=True):
    """From ``start`` up to, not including, ``end``."""

    start: Position
    end: Position


class Location(msgspec.Struct, frozen=True):
    """A range of one file, with what is to be seen there."""

    file: str
    range: Range
    message: str = ""


class Checkout(msgspec.Struct, frozen=True):
    """What cutlint found under one source that the user named.

    ``root`` is the folder looked at; ``launchers`` the ``.inl`` launchers below it; ``cutlass`` the folder that
    holds ``cutlass/version.h``; ``generator`` the ``generate_kernels.py``; ``generated`` the ``.cu`` files with
    instantiations. ``label`` is how people see it: the requirement, or the path as they typed it.
    """

    label: str
    root: Path
    launchers: tuple[Path, ...] = ()
    cutlass: Path | None = None
    generator: Path | None = None
    generated: tuple[Path, ...] = ()


class Instantiation(msgspec.Struct, frozen=True):
    """One explicit instantiation as a generated file spells it, not yet evaluated.

    ``name`` is the macro's or function template's name, ``arguments`` the argument texts in order (comments and
    white space folded), ``guard`` the preprocessor condition around it, if any.
    """

    file: Path
    range: Range
    name: str
    arguments: tuple[str, ...]
    guard: str | None = None


class Problem(msgspec.Struct, frozen=True):
    """Something that could not be read or understood; it becomes a CUT902 finding. `unread` says what of the generated
    files is missing for it, `about` what it is about where the message counts something."""

    file: str
    message: str
    range: Range | None = None
    related: tuple[Location, ...] = ()
    unread: Literal["file", "invocation"] | None = None
    about: str | None = None


class Edit(msgspec.Struct, frozen=True):
    """A change to a launcher's text: `text` in place of what is `where`, bytes `span` of the file. `line` is the line as it
    then reads, white space folded."""

    where: Location
    text: str
    line: str
    span: tuple[int, int]


class Fix(msgspec.Struct, frozen=True):
    """A change that was computed and fits: `kind` says what changes, `total` bytes and `stages` what comes of it. `edit`
    makes it in the launcher, for everything that the launcher instantiates; null where it is made elsewhere."""

    kind: Literal["carveout", "stage-count", "swap-ab", "tile"]
    title: str
    total: int
    stages: int
    edit: Edit | None = None


class Suppression(msgspec.Struct, frozen=True):
    """Why a finding does not count: allowed in the configuration, by a comment in the file, or known from a baseline."""

    kind: Literal["configuration", "inline", "baseline"]
    reason: str = ""


class Finding(msgspec.Struct, frozen=True):
    """One thing a rule has to say, at one place, for the targets it is true of (compute capabilities).

    `fingerprint` tells the finding again in a later run: it depends on the rule, the file and what the finding is about,
    not on lines. `suppressed`: it is reported and does not count.
    """

    rule: str
    severity: Severity
    message: str
    file: str
    range: Range
    targets: tuple[str, ...] = ()
    related: tuple[Location, ...] = ()
    fixes: tuple[Fix, ...] = ()
    detail: str = ""
    subject: str = ""
    fingerprint: str = ""
    suppressed: Suppression | None = None
