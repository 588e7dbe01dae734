"""Shrink a failing case for as long as it fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from fuzz.cases import Case, Stream
from fuzz.grammar import count_nodes, list_columns, reduced, write_tree


@dataclass
class Budget:
    """The deadline for further attempts, in seconds of a monotonic clock."""

    seconds: float = 20.0

    def __post_init__(self) -> None:
        self.ends = time.monotonic() + self.seconds

    @property
    def is_spent(self) -> bool:
        return time.monotonic() > self.ends


def shrink(case: Case, is_wrong: Callable[[Case], bool], budget: Budget | None = None) -> Case:
    """Return the smallest case found for which ``is_wrong`` still holds.

    It has a smaller condition, fewer rows, and no column that the condition does not read.
    """
    budget = budget or Budget()
    shrinking = True
    while shrinking and not budget.is_spent:
        shrinking = False
        for smaller in _smaller(case):
            if budget.is_spent:
                break
            if is_wrong(smaller):
                case, shrinking = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    if case.tree is not None:
        for tree in sorted(reduced(case.tree), key=count_nodes):
            yield replace(case, tree=tree, on=write_tree(tree))
    if case.windows:
        yield replace(case, windows={})
    if case.match:
        yield replace(case, match="", tolerance=None, is_strict=False)
    if case.emit != "final":
        yield replace(case, emit="final")
    if case.how != "inner":
        yield replace(case, how="inner", emit="final")
    if case.placement != "Centralized()":
        yield replace(case, placement="Centralized()")
    for alias, stream in case.streams.items():
        for place in range(len(stream.rows) if len(stream.rows) > 1 else 0):
            yield _with(case, alias, _without_row(stream, place))
    if case.tree is not None:
        yield from _without_columns(case)
    for alias, stream in case.streams.items():
        if any(stream.batches):
            yield _with(case, alias, replace(stream, batches=[0] * len(stream.rows)))


def _with(case: Case, alias: str, stream: Stream) -> Case:
    return replace(case, streams={**case.streams, alias: stream})


def _without_row(stream: Stream, place: int) -> Stream:
    keep = [n for n in range(len(stream.rows)) if n != place]
    times = stream.times
    return replace(
        stream,
        rows=[stream.rows[n] for n in keep],
        batches=[stream.batches[n] for n in keep],
        times=None if times is None else [times[n] for n in keep],
    )


def _without_columns(case: Case) -> Iterator[Case]:
    """Yield the case with only the columns that are read; nothing if it has no others."""
    assert case.tree is not None
    read = list_columns(case.tree)
    streams = {}
    for alias, stream in case.streams.items():
        keep = [p for p, name in enumerate(stream.columns) if (alias, name) in read]
        names = list(stream.columns)
        streams[alias] = replace(
            stream,
            columns={names[p]: stream.columns[names[p]] for p in keep},
            rows=[[row[p] for p in keep] for row in stream.rows],
        )
    if streams != case.streams:
        yield replace(case, streams=streams)
