"""From the members of a kernel's SharedStorage to regions, under the names and kinds that the model engine uses.

Where a thing lies is what the compiler says; what it is called is told by the names of the members that lead to it,
which CUTLASS has kept from version to version. What is not recognised is of kind "other", under its members' names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from cutlint.clang.records import Field
from cutlint.footprint.layout import Layout, Region, leaf, with_padding

_PIPELINES = {
    "epi_load": "epilogue.load barriers",
    "load_order": "load order barriers",
    "math_wg_order": "math order barriers",
    "clc": "scheduler barriers",
    "clc_throttle": "scheduler throttle barriers",
    "tmem_dealloc": "tensor memory barrier",
    "tensor_map_ready": "tensor map barriers",
}
_SINGLE = {
    "scheduler_response": ("scheduler responses", "scheduler"),
    "clc_response": ("scheduler responses", "scheduler"),
    "tmem_base_ptr": ("tensor memory pointer", "scheduler"),
}
# Members that are not named for an operand: the owner is left where None, since the record has no collectives
_MEMBERS: dict[str, tuple[str, str, str | None]] = {
    "smem_scale": ("scales", "scales", "mainloop"),
    "smem_zero": ("zeros", "zeros", "mainloop"),
    # SmemEpilogueArrayPerTokenScale; it stands once more where others keep tensor maps
    "output": ("D", "D", "epilogue"),
    "token_scale": ("token scales", "fusion", "epilogue"),
    # Fused_Moe_Kernel_traits_sm80
    "smem_input": ("A", "A", "mainloop"),
    "smem_fc1_weight": ("B", "B", "mainloop"),
    "smem_fc1_gate_weight": ("B of the gate", "B", "mainloop"),
    "smem_o": ("output", "D", None),
}
_OPERANDS = frozenset({"A", "B", "SFA", "SFB", "C", "D"})
_OPERAND = re.compile(r"smem_(?:tensormap_)?(\w+)")
_ROW = "row broadcast"  # Sm90RowBroadcast, the only one that stages anything
_BARRIER = re.compile(r"\w*Barrier\b")


class _Piece(msgspec.Struct, frozen=True):
    """A region that may be one with its neighbour: `owner` and `operand` where it is a tensor map's, `many` for several."""

    region: Region
    owner: str = ""
    operand: str = ""
    many: bool = False


def regions(storage: Field) -> tuple[Region, ...]:
    """The regions of `storage`, a kernel's SharedStorage, in order, holes included: they cover it from 0 to its size."""
    merged = _merged(sorted(_pieces(storage, ()), key=lambda each: each.region.offset))
    members = tuple((each.offset, leaf(each.name, each.kind, each.size)) for each in merged)
    return with_padding(Layout(storage.size, 1, members=members))


def _pieces(field: Field, path: tuple[str, ...]) -> Iterator[_Piece]:
    """The stretches of data below `field`, whose members' names so far are `path`."""
    if field.empty:
        return
    if field.union:
        yield from _union(field, path)
    elif path and path[0] in _SINGLE and not field.fields:
        yield _piece(field, path)
    elif field.elements and _is_set(field):
        for element in field.elements:
            yield from _pieces(element, path)
    elif field.fields and _tensor_map(path) is None:
        for each in field.fields:
            yield from _pieces(each, (*path, each.name, *_fusion(path, each)))
    else:
        yield _piece(field, path)


def _is_set(field: Field) -> bool:
    """Whether an array's elements are worth telling apart: records of records, such as sets of tensor maps."""
    return any(each.fields for each in field.elements[0].fields)


def _union(field: Field, path: tuple[str, ...]) -> Iterator[_Piece]:
    """A union: one region as large as the largest of its members' data, called after those that have any."""
    members = [(each, list(_pieces(each, (*path, each.name)))) for each in field.fields]
    filled = [(each, pieces) for each, pieces in members if pieces]
    if not filled:
        return
    end = max(piece.region.offset + piece.region.size for _, pieces in filled for piece in pieces)
    found = [_operand((*path, each.name)) or each.name for each, _ in filled]
    kind = "/".join(found)
    known = kind in _OPERANDS or kind == "C/D"
    region = Region(f"{_owner(path)}{kind}", kind if known else "other", field.offset, end - field.offset)
    yield _Piece(region)


def _piece(field: Field, path: tuple[str, ...]) -> _Piece:
    mapped = _tensor_map(path)
    if mapped is not None:
        many = field.type.endswith("]") or "array<" in field.type
        return _Piece(Region("", "tensormaps", field.offset, field.size), _owner(path), mapped, many)
    name, kind = _called(path, field)
    return _Piece(Region(name, kind, field.offset, field.size))


def _called(path: tuple[str, ...], field: Field) -> tuple[str, str]:
    """The name and kind of a stretch of data by the members that lead to it."""
    if not path:
        return "storage", "other"
    if path[0] in _SINGLE:
        return _SINGLE[path[0]]
    if path[0] == "pipelines" and len(path) > 1:
        if "pipeline_sf" in path:
            return f"{path[1]} scale-factor barriers", "barriers"
        return _PIPELINES.get(path[1], f"{path[1]} barriers"), "barriers"
    member = next((_MEMBERS[each] for each in path if each in _MEMBERS), None)
    if member is not None:
        name, kind, owner = member
        again = " (once more)" if path[0] == "tensormaps" else ""
        return (name if owner is None else f"{owner}.{name}{again}"), kind
    operand = _operand(path)
    if operand in _OPERANDS:
        return f"{_owner(path)}{operand}", operand
    if "thread" in path:
        return f"{_owner(path)}{_ROW if _ROW in path else 'fusion'}", "fusion"
    if _BARRIER.search(field.type):
        return f"{path[0]} barriers", "barriers"
    return ".".join(each for each in path if each and each != "tensors") or "storage", "other"


def _fusion(path: tuple[str, ...], field: Field) -> tuple[str, ...]:
    """What an epilogue's fusion is known as by its type, which its members' names do not tell."""
    return (_ROW,) if "thread" in (*path, field.name) and "RowBroadcast<" in field.type else ()


def _owner(path: Sequence[str]) -> str:
    return next((f"{each}." for each in path if each in ("mainloop", "epilogue")), "")


def _operand(path: Sequence[str]) -> str:
    """Whose tensor a member's data is, by its name ``smem_A``; "" for others."""
    matches = (_OPERAND.fullmatch(each) for each in path)
    return next((match.group(1) for match in matches if match), "")


def _tensor_map(path: tuple[str, ...]) -> str | None:
    """Whose tensor map a member is; None for what is no tensor map."""
    last = path[-1] if path else ""
    return last.removeprefix("smem_tensormap_") if last.startswith("smem_tensormap_") else None


def _merged(pieces: Iterable[_Piece]) -> Iterator[Region]:
    """Neighbours of one name as one region, and tensor maps of one owner's single operands as one."""
    group: list[_Piece] = []
    for piece in pieces:
        if group and not _joins(group[-1], piece):
            yield _region(group)
            group = []
        group.append(piece)
    if group:
        yield _region(group)


def _joins(last: _Piece, piece: _Piece) -> bool:
    touch = last.region.offset + last.region.size == piece.region.offset
    alike = (last.region.name, last.region.kind, last.owner) == (piece.region.name, piece.region.kind, piece.owner)
    return touch and alike and not (last.many or piece.many)


def _region(group: Sequence[_Piece]) -> Region:
    first, last = group[0].region, group[-1].region
    name = first.name
    if first.kind == "tensormaps":
        several = "s" if len(group) > 1 or group[0].many else ""
        name = f"{group[0].owner}tensor map{several} {', '.join(each.operand for each in group)}"
    return Region(name, first.kind, first.offset, last.offset + last.size - first.offset)
