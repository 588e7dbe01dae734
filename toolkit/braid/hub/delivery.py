"""What queries are told in a batch: the results of their operators, compensated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.hub.flat_results import filter_demand, flat_column_name, flat_columns, microseconds_sql
from braid.hub.operator_runtime import ExpressionError, OperatorRuntime
from braid.papers.reuse.definition import Column


@dataclass(frozen=True)
class DeliveryRule:
    """What a query makes of the results of one demand of an operator: Spark SQL over the plain
    table (flat.py) that compensates; and of what it selects of each match, all that may fail. With
    a SLIDE (``slide``) that is looked at where a match holds at a tick.
    """

    name: str
    operator: int
    bit: int
    where: str | None
    select: tuple[str, ...]
    tick_schedule: TickSchedule | None = None


@dataclass(frozen=True)
class TickSchedule:
    """The ticks of a query: every so many microseconds, after ``since``; its windows by stream."""

    slide: int
    windows: Mapping[str, int]
    since: int | None


def deliver_batch(
    works: OperatorRuntime, queries: Iterable[DeliveryRule], epoch: int
) -> Iterator[tuple[str, pa.Table]]:
    """By query, the matches that it is told in a batch, if its demand has results. Raises Fault for
    a query whose expressions fail on them.
    """
    for operator, mine in groupby(sorted(queries, key=_demand_key), lambda q: q.operator):
        rows = works.operator_results(operator, epoch)
        if rows is None:
            continue
        for bit, asking in groupby(mine, lambda q: q.bit):
            own = filter_demand(rows, bit)
            if own.num_rows:
                yield from _compensate_results(works, operator, own, list(asking))


def _demand_key(told: DeliveryRule) -> tuple[int, int]:
    return told.operator, told.bit


def _compensate_results(
    works: OperatorRuntime, operator: int, rows: pa.Table, queries: Sequence[DeliveryRule]
) -> Iterator[tuple[str, pa.Table]]:
    columns = flat_columns(works.instances[operator].made.result_shape)
    computed = partial(_compute_expressions, works, columns)
    wheres = {(q.name, 0): q.where for q in queries if q.where is not None}
    passes = computed(rows, wheres)
    for q in queries:
        matches = rows
        if q.where is not None:
            matches = rows.filter(pc.fill_null(passes[q.name, 0], False))
        if q.select and matches.num_rows:
            looked = (
                matches
                if q.tick_schedule is None
                else _keep_tick_matches(works, columns, matches, q.tick_schedule)
            )
            computed(looked, {(q.name, i): sql for i, sql in enumerate(q.select)})
        yield q.name, matches


def _keep_tick_matches(
    works: OperatorRuntime, columns: Mapping[str, Column], matches: pa.Table, slide: TickSchedule
) -> pa.Table:
    """The matches that hold at some tick: from their last member on, until a window is over."""
    wanted = {s: microseconds_sql(flat_column_name(s, works.reader.time)) for s in slide.windows}
    made = works.reader.compute_columns(matches, columns, wanted)
    times = {s: made[s].to_numpy() for s in wanted}
    first = -(-np.maximum.reduce([*times.values()]) // slide.slide) * slide.slide
    if slide.since is not None:
        first = np.maximum(first, (slide.since // slide.slide + 1) * slide.slide)
    end = np.minimum.reduce([t + slide.windows[s] for s, t in times.items()])
    return matches.filter(pa.array(first < end))


_Asked = Mapping[tuple[str, int], str]
"""Spark SQL by query and number."""


def _compute_expressions(
    works: OperatorRuntime, columns: Mapping[str, Column], rows: pa.Table, wanted: _Asked
) -> dict[tuple[str, int], pa.ChunkedArray]:
    """What the SQL says of each row, all in one go. Raises Fault for a query whose SQL fails."""
    names = {key: f"__c{i}" for i, key in enumerate(wanted)}
    if not names or not rows.num_rows:
        return {}
    try:
        made = works.reader.compute_columns(
            rows, columns, {names[k]: sql for k, sql in wanted.items()}
        )
    except works.reader.evaluation_errors as error:
        if len(wanted) == 1:
            raise ExpressionError(error, query=next(iter(wanted))[0]) from error
        for key, sql in wanted.items():
            _compute_expressions(works, columns, rows, {key: sql})
        raise
    return {key: made[name] for key, name in names.items()}
