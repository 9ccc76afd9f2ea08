"""GPUs to check against, from rules/targets.toml."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

import msgspec

from cutlint.data import data_folder
from cutlint.errors import CutlintError
from cutlint.toml import read_toml


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A GPU: `limit` bytes of shared memory per block with the opt-in, `per_sm` bytes per multiprocessor, of which the
    system keeps `reserved` for each resident block. `runs`: architecture tags whose kernels are built for it."""

    name: str
    compute_capability: str
    limit: int
    per_sm: int
    runs: tuple[int, ...]
    aliases: tuple[str, ...] = ()
    reserved: int = 1024


class _File(msgspec.Struct, forbid_unknown_fields=True):
    target: tuple[Target, ...]


@cache
def known() -> tuple[Target, ...]:
    """Every target, in order of compute capability."""
    return msgspec.convert(read_toml(data_folder("rules") / "targets.toml"), _File).target


def find(names: Iterable[str]) -> tuple[Target, ...]:
    """The targets called `names`: ``sm_120``, ``12.0``, ``120`` or an alias such as ``rtx-5090``; case and
    punctuation do not matter.

    Raises:
        CutlintError: for an unknown name, with the known ones.
    """
    index = {_folded(each): target for target in known() for each in _spellings(target)}
    chosen: list[Target] = []
    for name in names:
        target = index.get(_folded(name))
        if target is None:
            listed = "\n".join(f"  {each.name:7} {', '.join(each.aliases)}" for each in known())
            raise CutlintError(f"unknown target '{name}'; cutlint knows\n{listed}")
        if target not in chosen:
            chosen.append(target)
    return tuple(chosen)


def _spellings(target: Target) -> tuple[str, ...]:
    digits = target.compute_capability.replace(".", "")
    return (target.name, target.compute_capability, digits, f"sm{digits}a", f"sm{digits}f", *target.aliases)


def _folded(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def built_for(arch: int, chosen: Sequence[Target]) -> tuple[Target, ...]:
    """Those of `chosen` that run kernels of the architecture tag ``Sm<arch>``."""
    return tuple(target for target in chosen if arch in target.runs)
