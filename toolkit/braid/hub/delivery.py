"""Deliver the results of operators to queries, after compensation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import attrgetter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.errors import ExpressionError
from braid.hub.flat_results import filter_demand, flat_column_name, flat_columns, microseconds_sql
from braid.hub.running_operators import OperatorRuntime
from braid.papers.reuse.query_definition import Column


@dataclass(frozen=True)
class DeliveryRule:
    """How a query's matches are made from the results of one demand of an operator.

    - ``where``: Spark SQL over flat results (see ``flat_results``) that compensates; None: nothing
      to do.
    - ``select``: the selected expressions that may fail.
    - ``tick_schedule``: ticks of a query with a SLIDE. Only matches that hold at a tick are
      evaluated.
    """

    name: str
    operator: int
    bit: int
    where: str | None
    select: tuple[str, ...]
    tick_schedule: TickSchedule | None = None


@dataclass(frozen=True)
class TickSchedule:
    """Ticks of a query.

    - ``slide``: interval, in microseconds.
    - ``windows``: windows by stream, in microseconds.
    - ``since``: event time after which ticks begin, in microseconds; None: from the start.
    """

    slide: int
    windows: Mapping[str, int]
    since: int | None


def deliver_batch(
    works: OperatorRuntime, queries: Iterable[DeliveryRule], epoch: int
) -> Iterator[tuple[str, pa.Table]]:
    """Yield each query with its matches of a batch, if its demand has results.

    Raises ExpressionError if a query's expressions fail on its matches.
    """
    for operator, of_operator in groupby(
        sorted(queries, key=attrgetter("operator", "bit")), lambda q: q.operator
    ):
        rows = works.operator_results(operator, epoch)
        if rows is None:
            continue
        for bit, of_demand in groupby(of_operator, lambda q: q.bit):
            selected = filter_demand(rows, bit)
            if selected.num_rows:
                yield from _compensate_results(works, operator, selected, list(of_demand))


def _compensate_results(
    works: OperatorRuntime, operator: int, rows: pa.Table, queries: Sequence[DeliveryRule]
) -> Iterator[tuple[str, pa.Table]]:
    columns = flat_columns(works.instances[operator].spec.result_shape)
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
    """Return the matches that hold at some tick: from their last member until a window ends."""
    wanted = {s: microseconds_sql(flat_column_name(s, works.reader.time)) for s in slide.windows}
    computed = works.reader.compute_columns(matches, columns, wanted)
    times = {s: computed[s].to_numpy() for s in wanted}
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
    """Evaluate SQL on each row, all expressions in one pass.

    Raises ExpressionError naming the query whose SQL fails.
    """
    names = {key: f"__c{i}" for i, key in enumerate(wanted)}
    if not names or not rows.num_rows:
        return {}
    try:
        computed = works.reader.compute_columns(
            rows, columns, {names[k]: sql for k, sql in wanted.items()}
        )
    except works.reader.evaluation_errors as error:
        if len(wanted) == 1:
            raise ExpressionError(error, query=next(iter(wanted))[0]) from error
        for key, sql in wanted.items():
            _compute_expressions(works, columns, rows, {key: sql})
        raise
    return {key: computed[name] for key, name in names.items()}
