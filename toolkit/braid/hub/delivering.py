"""What queries are told in a batch: the results of their operators, compensated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.hub.flat import columns_of, flat, micros_of, of_demand
from braid.hub.works import Fault, Works
from braid.papers.reuse.definition import Column


@dataclass(frozen=True)
class Told:
    """What a query makes of the results of one demand of an operator: Spark SQL over the plain
    table (flat.py) that compensates; and of what it selects of each match, all that may fail. With
    a SLIDE (``slide``) that is looked at where a match holds at a tick.
    """

    name: str
    operator: int
    bit: int
    where: str | None
    select: tuple[str, ...]
    slide: Slide | None = None


@dataclass(frozen=True)
class Slide:
    """The ticks of a query: every so many microseconds, after ``since``; its windows by stream."""

    every: int
    windows: Mapping[str, int]
    since: int | None


def delivered(works: Works, queries: Iterable[Told], epoch: int) -> Iterator[tuple[str, pa.Table]]:
    """By query, the matches that it is told in a batch, if its demand has results. Raises Fault for
    a query whose expressions fail on them.
    """
    for operator, mine in groupby(sorted(queries, key=_demand), lambda q: q.operator):
        rows = works.results(operator, epoch)
        if rows is None:
            continue
        for bit, asking in groupby(mine, lambda q: q.bit):
            own = of_demand(rows, bit)
            if own.num_rows:
                yield from _told(works, operator, own, list(asking))


def _demand(told: Told) -> tuple[int, int]:
    return told.operator, told.bit


def _told(
    works: Works, operator: int, rows: pa.Table, queries: Sequence[Told]
) -> Iterator[tuple[str, pa.Table]]:
    columns = columns_of(works.instances[operator].made.shape)
    computed = partial(_computed, works, columns)
    wheres = {(q.name, 0): q.where for q in queries if q.where is not None}
    passes = computed(rows, wheres)
    for q in queries:
        matches = rows
        if q.where is not None:
            matches = rows.filter(pc.fill_null(passes[q.name, 0], False))
        if q.select and matches.num_rows:
            looked = matches if q.slide is None else _holding(works, columns, matches, q.slide)
            computed(looked, {(q.name, i): sql for i, sql in enumerate(q.select)})
        yield q.name, matches


def _holding(
    works: Works, columns: Mapping[str, Column], matches: pa.Table, slide: Slide
) -> pa.Table:
    """The matches that hold at some tick: from their last member on, until a window is over."""
    wanted = {s: micros_of(flat(s, works.reader.time)) for s in slide.windows}
    made = works.reader.computed(matches, columns, wanted)
    times = {s: made[s].to_numpy() for s in wanted}
    first = -(-np.maximum.reduce([*times.values()]) // slide.every) * slide.every
    if slide.since is not None:
        first = np.maximum(first, (slide.since // slide.every + 1) * slide.every)
    end = np.minimum.reduce([t + slide.windows[s] for s, t in times.items()])
    return matches.filter(pa.array(first < end))


_Asked = Mapping[tuple[str, int], str]
"""Spark SQL by query and number."""


def _computed(
    works: Works, columns: Mapping[str, Column], rows: pa.Table, wanted: _Asked
) -> dict[tuple[str, int], pa.ChunkedArray]:
    """What the SQL says of each row, all in one go. Raises Fault for a query whose SQL fails."""
    names = {key: f"__c{i}" for i, key in enumerate(wanted)}
    if not names or not rows.num_rows:
        return {}
    try:
        made = works.reader.computed(rows, columns, {names[k]: sql for k, sql in wanted.items()})
    except works.reader.faults as error:
        if len(wanted) == 1:
            raise Fault(error, query=next(iter(wanted))[0]) from error
        for key, sql in wanted.items():
            _computed(works, columns, rows, {key: sql})
        raise
    return {key: made[name] for key, name in names.items()}
