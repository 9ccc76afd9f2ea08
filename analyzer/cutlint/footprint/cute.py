"""The part of CuTe's layout algebra that decides scale-factor storage, on static integers.

A layout is a flat list of (shape, stride) modes in elements. Follows cute/layout.hpp: `cosize` (also where a mode has
extent 0, which CUTLASS's integer divisions produce), `size(filter_zeros(...))`, and the divisibility conditions that
`composition` asserts.
"""

from __future__ import annotations

from cutlint.footprint.records import Refused

Mode = tuple[int, int]


def cosize(modes: list[Mode]) -> int:
    """One past the largest index that the layout reaches: 1 + sum of (shape - 1) * |stride|."""
    return 1 + sum((shape - 1) * abs(stride) for shape, stride in modes)


def stored_size(modes: list[Mode]) -> int:
    """``size(filter_zeros(layout))``: elements, those that share memory (stride 0) counted once."""
    product = 1
    for shape, stride in modes:
        product *= shape if stride else 1
    return product


def _coalesce_x(modes: list[Mode]) -> list[Mode]:
    """Adjacent modes merged; a last mode of extent 1 stays, as 2, so that the layout extends beyond its end."""
    *front, (last_shape, last_stride) = modes
    result: list[Mode] = [(2 if last_shape == 1 else last_shape, last_stride)]
    for shape, stride in reversed(front):
        if shape == 1:
            continue
        if result[0][0] == 1:
            result[0] = (shape, stride)
        elif shape * stride == result[0][1]:
            result[0] = (shape * result[0][0], stride)
        else:
            result.insert(0, (shape, stride))
    return result


def _compose(modes: list[Mode], shape: int, stride: int) -> list[Mode]:
    """``composition(layout, shape:stride)`` with its static conditions."""
    if stride == 0:
        return [(shape, 0)]
    result: list[Mode] = []
    for extent, step in modes[:-1]:
        if extent == 0 or (stride % extent and stride >= extent):
            raise Refused("Stride Divisibility Condition")
        following = -(-extent // stride)
        if following == 1 or shape == 1:
            stride = -(-stride // extent)
            continue
        kept = min(following, shape)
        if kept == 0 or shape % kept:
            raise Refused("Shape Divisibility Condition")
        result.append((kept, stride * step))
        shape //= kept
        stride = -(-stride // extent)
    if not result or shape != 1:
        result.append((shape, stride * modes[-1][1]))
    return result


def compose(layout: list[Mode], modes: list[Mode]) -> list[Mode]:
    """``composition(layout, modes)``.

    Raises:
        Refused: with the words of CuTe's assertion.
    """
    flat = _coalesce_x(layout)
    return [each for shape, stride in modes for each in _compose(flat, shape, stride)]


def divide(modes: list[Mode], tile: int) -> list[Mode]:
    """``logical_divide(layout, tile)``: the modes within a tile, then those over the tiles.

    Raises:
        Refused: with the words of CuTe's assertion.
    """
    total = 1
    for shape, _ in modes:
        total *= shape
    flat = _coalesce_x(modes)
    return _compose(flat, tile, 1) + _compose(flat, -(-total // tile), tile)


def check_slice(swizzle: tuple[int, int, int], stage: list[Mode], stages: Mode) -> None:
    """The static conditions of cutting one stage out of a swizzled layout, ``SmemLayout{}(_, _, 0)``.

    `stage` is the layout of a stage, `stages` the mode of the stages, `swizzle` the numbers of ``Swizzle<B, M, S>``. CuTe
    takes the bits that a swizzle moves apart from those it keeps, in elements whatever their width (``slice_and_offset`` in
    cute/swizzle_layout.hpp, ``to_mixed_bits`` in cute/swizzle.hpp).

    Raises:
        Refused: with the words of CuTe's assertion.
    """
    moved, base, distance = swizzle
    extents = (1 << base, 1 << moved, 1 << (distance - moved), 1 << moved, 1)
    keeps: list[Mode] = []
    moves: list[Mode] = []
    stride = 1
    for index, extent in enumerate(extents):
        keeps.append((extent, 0 if index in (1, 3) else stride))
        moves.append((extent, stride if index in (1, 3) else 0))
        stride *= extent
    compose(keeps, [stages])
    for shape, step in compose(moves, [stages]):
        if (shape * step) & (shape * step - 1):
            raise Refused("Requires pow2 shape*stride.")
    compose(moves, stage)
