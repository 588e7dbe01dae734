"""Shares of the dimensions of a hypercube: how many parts each has, and what that sends.

Source: Afrati and Ullman 2010 (the shares of the columns); the factorizations are tried one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

from braid.core.key_boxes import Shares, prime_factors

Dimensions = tuple[tuple[int, ...], ...]
"""By dimension, the streams that have it, ascending."""
MOST_KEYS = 1 << 18
"""Maximum number of routing keys of a layout; tables of this length translate them."""


class CubeSize(NamedTuple):
    """The size of a hypercube.

    - ``cells``: number of cells, each on a host of its own.
    - ``finest``: most parts that a dimension can have; the parts divide it.
    """

    cells: int
    finest: int


def list_stream_dimensions(dimensions: Dimensions, streams: int) -> tuple[tuple[int, ...], ...]:
    """Return, by stream, the dimensions that it has, ascending."""
    return tuple(
        tuple(d for d, members in enumerate(dimensions) if s in members) for s in range(streams)
    )


def count_copies(shares: Shares, dimensions: Dimensions, stream: int) -> int:
    """Return on how many hosts a tuple of a stream is stored.

    It is hashed on the dimensions of its stream, and is on all cells along the others.
    """
    return prod(p for p, members in zip(shares, dimensions, strict=True) if stream not in members)


def count_received_tuples(shares: Shares, dimensions: Dimensions, rates: Sequence[float]) -> float:
    """Return the tuples that all hosts receive, at these tuples of each stream."""
    return sum(rate * count_copies(shares, dimensions, s) for s, rate in enumerate(rates))


def find_best_shares(size: CubeSize, dimensions: Dimensions, rates: Sequence[float]) -> Shares:
    """Return the shares with the fewest received tuples. Of equal ones, the most even.

    All ordered factorizations of the number of cells are tried.
    """
    return min(
        list_factorizations(size.cells, len(dimensions), size.finest),
        key=lambda shares: (count_received_tuples(shares, dimensions, rates), max(shares), shares),
    )


@lru_cache(maxsize=1 << 12)
def list_factorizations(cells: int, dimensions: int, finest: int) -> tuple[Shares, ...]:
    """Return all ways to write ``cells`` as a product of shares, each a divisor of ``finest``."""
    if dimensions == 1:
        return ((cells,),) if finest % cells == 0 else ()
    return tuple(
        (share, *rest)
        for share in _list_divisors(cells)
        if finest % share == 0
        for rest in list_factorizations(cells // share, dimensions - 1, finest)
    )


def _list_divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def list_exchanges(shares: Shares, finest: int) -> Iterator[tuple[int, int, int]]:
    """Yield the changes of two shares: (dimension that grows, one that shrinks, by which factor).

    A factor of 2 doubles one share and halves the other.
    """
    for grows, share in enumerate(shares):
        for shrinks, other in enumerate(shares):
            if grows != shrinks:
                for factor in sorted({*prime_factors(other)}):
                    if finest % (share * factor) == 0:
                        yield grows, shrinks, factor


def exchange_factor(shares: Shares, grows: int, shrinks: int, factor: int) -> Shares:
    """Return the shares after one has been multiplied and one divided by a factor."""
    changed = list(shares)
    changed[grows] *= factor
    changed[shrinks] //= factor
    return tuple(changed)


@lru_cache(maxsize=256)
def choose_cube_size(hosts: int, dimensions: Dimensions) -> CubeSize:
    """Return the number of cells on which a host receives the fewest tuples, at equal rates.

    It is more than half of the hosts. Of equal ones, it is the largest.
    """
    streams = 1 + max(map(max, dimensions))
    most = max(map(len, list_stream_dimensions(dimensions, streams)))
    sizes = (CubeSize(n, _find_finest(n, most)) for n in range(hosts, hosts // 2, -1))
    usable = [s for s in sizes if list_factorizations(s.cells, len(dimensions), s.finest)]
    rates = (1.0,) * streams

    def received_by_host(size: CubeSize) -> float:
        return (
            count_received_tuples(find_best_shares(size, dimensions, rates), dimensions, rates)
            / size.cells
        )

    return min(usable, key=received_by_host)


def _find_finest(cells: int, dimensions: int) -> int:
    """Return the greatest divisor of ``cells`` with at most MOST_KEYS keys in these dimensions."""
    return max(n for n in _list_divisors(cells) if n**dimensions <= MOST_KEYS)
