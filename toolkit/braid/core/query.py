"""A query that a shared run serves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST = 63
"""How many queries one run can serve: the bits of a signed 64-bit number but for the sign."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query that a run serves. By stream, ``windows`` are W_i in microseconds and ``where`` the
    selection, Spark SQL over the stream's columns (None: every tuple). ``bit`` is its place in
    bitmaps. ``complete`` is the event time from which on the state held all tuples that it can use
    when it came; None: all of them.
    """

    name: str
    windows: tuple[int, ...]
    where: tuple[str | None, ...]
    bit: int = 0
    complete: tuple[int | None, ...] = ()


def longest(queries: Sequence[Query]) -> tuple[int, ...]:
    """By stream, the longest window of any query."""
    return tuple(max(ws) for ws in zip(*(q.windows for q in queries), strict=True))
