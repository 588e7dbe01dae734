"""Records of the frames that show a chain of slices. The front end reads them as JSON."""

from __future__ import annotations

from typing import TypedDict


class ChainMark(TypedDict):
    """An age in microseconds, in words, and its position from 0 to 1."""

    age: int
    text: str
    place: float


class ChainSlice(TypedDict):
    """A slice of ages from ``first`` to ``last`` (microseconds).

    - ``rows``: tuples held.
    - ``share``: its tuples divided by those of the fullest slice.
    - ``serves``: the queries that it serves.
    """

    first: int
    last: int
    rows: int
    share: float
    serves: str


class ChainAged(TypedDict):
    """Tuples that moved from one slice to the next."""

    source: int
    target: int
    rows: int


class ChainCut(TypedDict):
    """Tuples dropped at the start of a slice, because no query with a longer window needs them."""

    slice: int
    rows: int


class ChainQuery(TypedDict):
    """A query with its window (microseconds) and selection."""

    name: str
    window: int
    selection: str


class ChainStream(TypedDict):
    """A stream's slices, youngest first, and the flow of its tuples in the batch."""

    name: str
    index: int
    received_tuples: int
    expired: int
    marks: list[ChainMark]
    slices: list[ChainSlice]
    aged: list[ChainAged]
    trimmed: list[ChainCut]
    queries: list[ChainQuery]


class ChainFrame(TypedDict):
    """The chain after a ``batch`` (from 1); with ``pick`` slices are clickable."""

    title: str
    note: str
    batch: int
    pick: bool
    streams: list[ChainStream]
