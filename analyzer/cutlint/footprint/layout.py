"""C++ object layout (Itanium ABI, as nvcc and clang use it): structs, unions, arrays, ``cute::tuple``.

A `Layout` knows its size, its alignment and what it is made of. CUTLASS's SharedStorage types are written
with it member by member, so that padding comes out where the compiler puts it. All numbers are bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class Region(msgspec.Struct, frozen=True):
    """A named stretch of shared memory: `offset` and `size` in bytes from the start of SharedStorage."""

    name: str
    kind: str
    offset: int
    size: int


class Layout(msgspec.Struct, frozen=True):
    """Size and alignment of a type, with its `name` and `kind` if it is storage of its own, else its `members` and their
    offsets. `data` is the part of `size` that a named type fills; `empty` marks a class without data (``std::is_empty``)."""

    size: int
    align: int
    name: str = ""
    kind: str = ""
    data: int = 0
    members: tuple[tuple[int, Layout], ...] = ()
    empty: bool = False

    def regions(self, offset: int = 0) -> list[Region]:
        """The named regions of an object at `offset`, in order of declaration."""
        if self.name:
            return [Region(self.name, self.kind, offset, self.data)] if self.data else []
        return [region for at, member in self.members for region in member.regions(offset + at)]


def round_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def leaf(name: str, kind: str, size: int, align: int = 1) -> Layout:
    """Raw storage: an array of elements, of barriers, of descriptors."""
    return Layout(round_up(size, align), align, name, kind, size)


EMPTY = Layout(1, 1, empty=True)


def struct(members: Sequence[Layout], align: int = 1) -> Layout:
    """A struct of `members` in order; `align` is its own ``alignas`` (or that of an empty ``aligned_struct`` base)."""
    offset, largest = 0, align
    placed = []
    for member in members:
        offset = round_up(offset, member.align)
        placed.append((offset, member))
        offset += member.size
        largest = max(largest, member.align)
    return Layout(max(round_up(offset, largest), largest), largest, members=tuple(placed), empty=not members)


def union(name: str, kind: str, members: Sequence[Layout]) -> Layout:
    """A union of `members`, shown as one region as large as its largest member's data."""
    align = max(member.align for member in members)
    ends = [region.offset + region.size for member in members for region in member.regions()]
    data = max([*ends, *(member.data for member in members)])
    return Layout(round_up(max(member.size for member in members), align), align, name, kind, data)


def array(element: Layout, count: int) -> Layout:
    """``element[count]``."""
    return Layout(count * element.size, element.align, members=tuple((i * element.size, element) for i in range(count)))


def aligned(member: Layout, align: int) -> Layout:
    """A member declared with ``alignas(align)``: its offset is aligned so; its size stays."""
    return msgspec.structs.replace(member, align=max(align, member.align))


def tuple_(members: Sequence[Layout]) -> Layout:
    """``cute::tuple``: empty members take no space, the others nest as first and rest (cute/container/tuple.hpp)."""
    present = [member for member in members if not member.empty]
    if not present:
        return EMPTY
    result = struct([present[-1]])
    for member in reversed(present[:-1]):
        result = struct([member, result])
    return result


def with_padding(layout: Layout) -> tuple[Region, ...]:
    """The layout's regions in order of offset, with every hole between them and behind them as a region of its own."""
    result: list[Region] = []
    end = 0
    for region in sorted(layout.regions(), key=lambda each: each.offset):
        if region.offset > end:
            result.append(Region("padding", "padding", end, region.offset - end))
        result.append(region)
        end = region.offset + region.size
    if layout.size > end:
        result.append(Region("padding", "padding", end, layout.size - end))
    return tuple(result)
