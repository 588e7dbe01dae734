"""An operator of a hub: a shared join on the engine, whose queries are the operator's demands."""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from braid.core.columns import MARK, QUERIES, ROUTING, TIME
from braid.core.compaction import watermarks_of
from braid.core.query import Query
from braid.core.spans import text
from braid.engine.engine import Engine
from braid.engine.executor import Executor
from braid.engine.store import Store
from braid.engine.wire import JoinSpec
from braid.sharing.changes import Queries, entered, left, selections
from braid.sharing.join import SharedJoin
from braid.sharing.marks import marks
from braid.sharing.remark import remark, work

Times = Mapping[str, int | None]
"""By stream the latest event time that came, in microseconds."""


def name_of(bit: int) -> str:
    """What a demand is called among the engine's queries."""
    return f"d{bit}"


class Running:
    """A deployed operator: its engine and its store, in a folder of its own.

    ``frames`` are the hub's streams; only their schemas are looked at. Results of a batch of Spark
    are committed once, whatever is done again after a crash.
    """

    def __init__(
        self,
        folder: Path,
        frames: Mapping[str, DataFrame],
        on: str,
        time: str,
        lateness: str,
        executor: Executor,
    ) -> None:
        join = SharedJoin(frames, on, time, "memory", 1, lateness, 1, executor="process")
        self.setup, self.streams = join.setup, tuple(frames)
        self.spark, self.schemas = join.spark, {s: f.schema for s, f in frames.items()}
        self.store = Store(folder)
        if self.store.query() is None:
            self.store.create({"on": on, "streams": list(frames)})
        self.store.clean()
        columns = tuple(tuple(f.columns) for f in frames.values())
        spec = JoinSpec(self.setup.predicate, columns, (), self.setup.limits, str(folder), 1)
        self.happened: list[Any] = []
        placement, slack = self.setup.placement, self.setup.slack
        publish = self.happened.extend
        self.engine = Engine(spec, placement, self.store, slack, False, publish, executor)

    @property
    def queries(self) -> Queries:
        """The demands that are served, as the engine knows them."""
        return self.engine.state.queries

    @property
    def batch(self) -> int:
        """The number of the last commit."""
        return self.engine.state.batch

    def expressions(self, stream: str) -> Mapping[str, str]:
        """What it needs of a stream besides its columns: Spark SQL by name."""
        i = self.streams.index(stream)
        predicate = self.setup.predicate
        return {**predicate.keys[i], **predicate.computed[i]}

    def marks(self, stream: str) -> Column:
        """The demands whose selections a tuple of a stream passes."""
        return marks(selections(self.queries, self.streams.index(stream)))

    def run(self, arrived: Mapping[str, Arrived], epoch: int, own: str) -> None:
        """Join and commit a batch; ``own`` is the column of this operator's marks."""
        tuples = {
            i: found
            for i, s in enumerate(self.streams)
            if (found := self._tuples(i, arrived[s], own))
        }
        self.engine.run(tuples, epoch, lambda: [arrived[s].latest for s in self.streams])

    def _tuples(self, i: int, arrived: Arrived, own: str) -> list[pa.RecordBatch]:
        stream, rows = self.streams[i], arrived.rows
        needed = {n: arrived.names[sql] for n, sql in self.expressions(stream).items()}
        found = pc.not_equal(rows[own], 0)
        for name in (TIME, *(needed[k] for k in self.setup.predicate.keys[i])):
            found = pc.and_(found, rows[name].is_valid())
        rows = rows.filter(found)
        if not rows.num_rows:
            return []
        columns = {n: rows[n] for n in (*self.schemas[stream].names, TIME)}
        columns |= {name: rows[source] for name, source in needed.items()}
        mark = rows[own].combine_chunks()
        bitmaps = self.engine.bitmaps
        assert bitmaps is not None, "an operator has a demand"
        columns |= {MARK: mark, ROUTING: pa.array(bitmaps.rank(i, mark.to_numpy()))}
        whole: list[pa.RecordBatch] = pa.table(columns).combine_chunks().to_batches()
        return whole

    def begin(self, demand: Query, epoch: int, latest: Times) -> Query:
        """Serve the first demand, from the batch after ``epoch`` on."""
        came = [latest.get(s) for s in self.streams]
        since = tuple(None if t is None else t + 1 for t in came)
        first = Query(demand.name, demand.windows, demand.where, 0, since)
        engine = self.engine
        engine.state = replace(engine.state, epoch=epoch, latest=tuple(came))
        engine.amend((first,), engine.state.policy, None, [], clock.perf_counter())
        return first

    def add(self, demand: Query) -> Query:
        """Serve one more demand from the next batch on; stored tuples are marked for it."""
        state = self.engine.state
        limits = watermarks_of(state.latest, self.engine.lateness)
        queries = entered(state.queries, demand, limits, state.latest)
        self._change(queries)
        return queries[-1]

    def remove(self, names: Sequence[str]) -> None:
        """Serve some demands no longer."""
        queries = self.queries
        for name in names:
            queries = left(queries, name)
        self._change(queries)

    def _change(self, queries: Queries) -> None:
        began, engine = clock.perf_counter(), self.engine
        new = tuple(q for q in queries if q not in engine.state.queries)
        job = work(engine, queries)
        lines = remark(self.spark, job, list(self.schemas.values()), new, 1)
        engine.amend(queries, engine.state.policy, lines, [], began)

    def demand(self, bit: int, windows: Mapping[str, int], where: Mapping[str, str]) -> Query:
        """A demand as the engine takes it. Raises ValueError for a selection that Spark does not
        take.
        """
        spans = {s: text(windows[s], exact=True) for s in self.streams}
        return self.setup.query(name_of(bit), spans, where)

    def finish(self) -> None:
        """At the end of the input: what is still owed."""
        self.engine.finish({}, lambda: False)


def matches(
    folder: Path,
    frames: Mapping[str, DataFrame],
    bit: int,
    first: int,
    end: int | None,
) -> DataFrame:
    """The committed results of a demand in the batches from ``first`` up to, not with, ``end``: a
    struct column for each stream. ``frames`` are those of the operator, in its order.
    """
    spark = next(iter(frames.values())).sparkSession
    plain = T.StructType([T.StructField(s, f.schema) for s, f in frames.items()])
    files = Store(folder).result_files(first, end)
    if not files:
        return spark.createDataFrame([], plain)
    schema = T.StructType([*plain.fields, T.StructField(QUERIES, T.LongType())])
    mine = F.col(QUERIES).bitwiseAND(F.lit(1 << bit)) != 0
    return spark.read.schema(schema).parquet(*files).where(mine).drop(QUERIES)


class Arrived:
    """What came of a stream in a batch: ``rows`` with all that operators need, and by Spark SQL the
    ``names`` of the columns that it has.
    """

    def __init__(self, rows: pa.Table, names: Mapping[str, str]) -> None:
        self.rows, self.names = rows, names
        ends = pc.max(rows[TIME]).as_py() if rows.num_rows else None
        self.latest: int | None = ends


def arrived(
    frame: DataFrame, number: int, stream: str, time: str, operators: Mapping[int, Running]
) -> Arrived:
    """The tuples of a stream in a batch of the hub, with what all operators need, by one job."""
    own = frame.where(F.col("__stream") == number).select(f"`__s{number}`.*")
    names: dict[str, str] = {}
    for operator in operators.values():
        for sql in operator.expressions(stream).values():
            names.setdefault(sql, f"__x{len(names)}")
    told = [
        *(F.col(f"`{c}`") for c in own.columns),
        F.unix_micros(F.col(f"`{time}`").cast("timestamp")).alias(TIME),
        *(F.expr(sql).alias(name) for sql, name in names.items()),
        *(o.marks(stream).alias(marks_of(id)) for id, o in operators.items()),
    ]
    return Arrived(own.select(*told).toArrow(), names)


def marks_of(operator: int) -> str:
    """The column of an operator's marks."""
    return f"__m{operator}"


def streams_of(frames: Mapping[str, DataFrame]) -> DataFrame:
    """The hub's streams as one: the stream's number, and its tuple as a struct."""
    parts: Iterator[DataFrame] = (
        f.select(F.lit(i).alias("__stream"), F.struct(*f.columns).alias(f"__s{i}"))
        for i, f in enumerate(frames.values())
    )
    whole = next(parts)
    for part in parts:
        whole = whole.unionByName(part, allowMissingColumns=True)
    return whole
