"""Routing keys of streams that equalities on different columns link: boxes of a hypercube.

A *dimension* stands for columns that the condition makes equal, such as ``r.a = s.a``. Each tuple
has a number from 0 to ``finest - 1`` in each dimension of its stream, which is a hash of its value.
A *layout* cuts each dimension into a number of equal parts, its *share*; a *cell* is one part of
each dimension. The routing keys of a layout number the cells of a stream one after the other, and
the tuples within a cell in the order in which it is halved. So the tuples of a cell have
consecutive keys, and those of half a cell few ranges of keys.

Tuples keep the keys under which they arrived. Keys of all layouts are compared as *boxes*: a range
of numbers in each dimension that the stream has.

Source: Afrati and Ullman, "Optimizing Joins in a Map-Reduce Environment", EDBT 2010.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Shares = tuple[int, ...]
"""By dimension, the number of parts into which it is cut."""
Range = tuple[int, int]
Box = tuple[Range, ...]
"""By dimension of a stream, a half-open range of numbers."""
Cell = tuple[int, ...]
"""By dimension of a stream, the index of a part."""


class KeyPiece(NamedTuple):
    """Consecutive routing keys whose tuples belong to one cell of another layout."""

    key_range: Range
    cell: Cell


@dataclass(frozen=True, slots=True)
class KeyBoxes:
    """The routing keys of a run whose streams have one or more dimensions, or none.

    - ``finest``: number of values of each dimension.
    - ``dimensions``: by stream, the dimensions that its tuples have, ascending.
    - ``layouts``: shares by layout; each divides ``finest``. Empty: the layout is not in use.
    - ``current``: layout of arriving tuples.
    """

    finest: int
    dimensions: tuple[tuple[int, ...], ...]
    layouts: tuple[Shares, ...]
    current: int

    @property
    def size(self) -> int:
        """The number of routing keys of a layout, the same for all streams."""
        return int(self.finest ** max(map(len, self.dimensions)))

    @property
    def shares(self) -> Shares:
        """The shares of the current layout."""
        return self.layouts[self.current]

    @property
    def first_key(self) -> int:
        """The first routing key of the current layout."""
        return self.current * (self.size + 1)  # ranges of two layouts never touch

    def find_layout(self, keys: Range) -> int:
        """Return the layout under which the tuples of some keys arrived."""
        return keys[0] // (self.size + 1)

    def select_cell_shares(self, stream: int, shares: Shares) -> Shares:
        """Return the shares of the dimensions that a stream has."""
        return tuple(shares[d] for d in self.dimensions[stream])

    def digit_weights(self, stream: int) -> tuple[int, ...]:
        """Return the weight of each dimension's number in the number that a tuple arrives with."""
        dimensions = len(self.dimensions[stream])
        return tuple(self.size // int(self.finest ** (n + 1)) for n in range(dimensions))

    def routing_keys(self, numbers: Any, stream: int) -> Any:
        """Return the current routing keys of tuples of a stream.

        ``numbers``: their numbers in all dimensions of the stream, as digits of one number in [0,
        ``size``), the first dimension highest. Accepts an array, too.
        """
        unit = self._key_unit(stream)
        order = order_numbers(self.finest, self.select_cell_shares(stream, self.shares))
        return self.first_key + order.positions[numbers // unit] * unit

    def find_cell_keys(self, stream: int, cell: Cell) -> Range:
        """Return the current routing keys of a cell of a stream."""
        shares, number = self.select_cell_shares(stream, self.shares), 0
        for share, part in zip(shares, cell, strict=True):
            number = number * share + part
        width = self.size // prod(shares)
        return self.first_key + number * width, self.first_key + (number + 1) * width

    def find_box(self, stream: int, keys: Range) -> Box:
        """Return the smallest box that contains some keys of a stream."""
        return _find_smallest_box(self, stream, keys)

    def may_join(self, a: tuple[int, Range], b: tuple[int, Range]) -> bool:
        """Return whether tuples of two streams' keys may join: in all dimensions that both have.

        ``a``, ``b``: stream and keys.
        """
        return not self.find_differences(a, b)

    def find_differences(
        self, a: tuple[int, Range], b: tuple[int, Range]
    ) -> list[tuple[int, Range, Range]]:
        """Return the dimensions in which no tuples of two streams' keys are equal, with their
        ranges.

        ``a``, ``b``: stream and keys.
        """
        (s, keys), (t, others) = a, b
        ranges = dict(zip(self.dimensions[s], self.find_box(s, keys), strict=True))
        return [
            (d, ranges[d], (low, high))
            for d, (low, high) in zip(self.dimensions[t], self.find_box(t, others), strict=True)
            if d in ranges and not (ranges[d][0] < high and low < ranges[d][1])
        ]

    def split_key_range(self, stream: int, keys: Range) -> Iterator[KeyPiece]:
        """Yield the pieces of some keys of a stream, by cell of the current layout."""
        shares, low, high = self.locate_keys(stream, keys)
        unit, current = self._key_unit(stream), self.select_cell_shares(stream, self.shares)
        order, number = order_numbers(self.finest, shares), np.zeros(high - low, np.int64)
        for share, values in zip(current, order.coordinates, strict=True):
            number = number * share + values[low:high] * share // self.finest
        starts = np.flatnonzero(np.diff(number, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], high - low], strict=True):
            piece = keys[0] + start * unit, keys[0] + end * unit
            yield KeyPiece(piece, _split_cell_number(int(number[start]), current))

    def _key_unit(self, stream: int) -> int:
        """Return the number of routing keys of one combination of a stream's numbers."""
        return self.size // int(self.finest ** len(self.dimensions[stream]))

    def locate_keys(self, stream: int, keys: Range) -> tuple[Shares, int, int]:
        """Return the shares under which keys were made, and their range within that layout."""
        layout, unit = self.find_layout(keys), self._key_unit(stream)
        low, high = (key - layout * (self.size + 1) for key in keys)
        return self.select_cell_shares(stream, self.layouts[layout]), low // unit, -(-high // unit)


class NumberOrder(NamedTuple):
    """The order of the numbers of a stream's tuples under a layout.

    - ``positions``: position by combination of numbers, the first dimension highest.
    - ``coordinates``: by dimension, its number by position.
    """

    positions: Ints
    coordinates: tuple[Ints, ...]


@lru_cache(maxsize=64)
def order_numbers(finest: int, shares: Shares) -> NumberOrder:
    """Return the order of all combinations of numbers: cell by cell, then half by half."""
    values = np.indices((finest,) * len(shares)).reshape(len(shares), finest ** len(shares))
    cells = [each // (finest // p) for each, p in zip(values, shares, strict=True)]
    within = [
        _split_digits(each % (finest // p), finest // p)
        for each, p in zip(values, shares, strict=True)
    ]
    levels = range(max(map(len, within), default=0))
    digits = [each[level] for level in levels for each in within if level < len(each)]
    columns = [*cells, *digits]
    order = np.lexsort(columns[::-1]) if columns else np.zeros(1, np.int64)
    positions = np.empty_like(order)
    positions[order] = np.arange(len(order))
    return NumberOrder(positions, tuple(each[order] for each in values))


def _split_digits(numbers: Ints, size: int) -> list[Ints]:
    """Return the digits of numbers below ``size``, the highest first, one for each prime factor."""
    digits = []
    for factor in prime_factors(size):
        size //= factor
        digits.append(numbers // size)
        numbers = numbers % size
    return digits


@lru_cache(maxsize=256)
def prime_factors(number: int) -> tuple[int, ...]:
    """Return the prime factors of a number, ascending."""
    factors, factor = [], 2
    while number > 1:
        while number % factor == 0:
            factors.append(factor)
            number //= factor
        factor += 1
    return tuple(factors)


@lru_cache(maxsize=1 << 14)
def _find_smallest_box(boxes: KeyBoxes, stream: int, keys: Range) -> Box:
    """Return the smallest box that contains some keys of a stream."""
    shares, low, high = boxes.locate_keys(stream, keys)
    order = order_numbers(boxes.finest, shares)
    parts = (values[low:high] for values in order.coordinates)
    return tuple((int(each.min()), int(each.max()) + 1) for each in parts)


def _split_cell_number(number: int, shares: Shares) -> Cell:
    """Return the parts of a cell from its number."""
    parts = []
    for share in reversed(shares):
        number, part = divmod(number, share)
        parts.append(part)
    return tuple(reversed(parts))
