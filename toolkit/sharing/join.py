"""SharedJoin and SharedRun: one join state for many queries."""

from __future__ import annotations

import json
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any

import sqlglot
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T
from sqlglot import exp

from toolkit.audience import MARK, QUERIES, Served
from toolkit.events import QueryAdded, QueryRemoved
from toolkit.join import StreamJoin, micros
from toolkit.parsing import parse
from toolkit.predicate import TIME, PredicateError
from toolkit.run import JoinRun
from toolkit.sharing import chain as chains
from toolkit.sharing.calibrate import measure
from toolkit.sharing.chain import Chain, Mode
from toolkit.sharing.queries import Queries, entered, left, selections
from toolkit.sharing.remark import marks, remark, work
from toolkit.store import Store
from toolkit.upkeep import horizon
from toolkit.wire import Layout

MODES = ("auto", "memory", "cpu")


class SharedRun(JoinRun):
    """A running shared join: a JoinRun whose queries and slices change between two batches. What has been changed is committed
    when a method returns, and is there after a restart.
    """

    join: SharedJoin

    def _opening(self) -> list[Any]:
        return [*super()._opening(), *(self._told(q, -1) for q in self.join.queries)]

    def _told(self, q: Served, batch: int) -> QueryAdded:
        windows, where, since = (dict(zip(self.join.streams, each, strict=True)) for each in (q.windows, q.where, q.complete))
        return QueryAdded(batch, q.name, q.bit, windows, where, since)

    def _run(self, frame: DataFrame, number: int) -> None:
        layouts = self._engine.query.layouts
        seen = Observation()
        whole = frame.observe(seen, *_latest(layouts))
        self._engine.run(
            marked(whole, layouts, self.queries), number, lambda: [seen.get[str(s)] for s in range(len(layouts))]
        )

    @property
    def queries(self) -> tuple[Served, ...]:
        """The queries that are served now."""
        return self._engine.state.queries

    def results(self, name: str, ordered: bool = False) -> DataFrame:  # type: ignore[override]
        """The committed results of one query, as JoinRun.results; of one that was removed, those it got.

        ``ordered``: by the latest event time of their members. The commit of a batch is the punctuation of Fig. 5.7: what comes
        after it is of later batches, so results are ordered within batches, and all of a batch stand before those of the next.

        Raises ValueError for a name that no query has had.
        """
        spans = self._spans(name)
        if not spans:
            known = dict.fromkeys(e.name for e in self.events() if isinstance(e, QueryAdded))
            raise ValueError(f"no query is named {name!r}; there are: {', '.join(known)}")
        spark, schema = self.join.spark, T.StructType([*self._schema.fields, T.StructField(QUERIES, T.LongType())])
        parts = [spark.createDataFrame([], self._schema)]
        for bit, first, last in spans:
            if files := self.store.result_files(first, last):
                mine = F.col(QUERIES).bitwiseAND(F.lit(1 << bit)) != 0
                found = spark.read.schema(schema).parquet(*files).where(mine)
                parts.append((found.orderBy(*self._order()) if ordered else found).drop(QUERIES))
        return reduce(DataFrame.union, parts[1:] or parts)

    def _order(self) -> list[Column]:
        batch = F.regexp_extract(F.col("_metadata.file_name"), r"^(\d+)", 1).cast("int")
        return [batch, F.greatest(*(F.col(f"{a}.{self.join.time}") for a in self.join.streams))]

    def _spans(self, name: str) -> list[tuple[int, int, int | None]]:
        """When a query was served: its bit, the first batch, and the batch that was no longer its own."""
        spans: list[tuple[int, int, int | None]] = []
        for e in self.events():
            if isinstance(e, QueryAdded) and e.name == name:
                spans.append((e.bit, e.batch + 1, None))
            elif isinstance(e, QueryRemoved) and e.name == name:
                spans[-1] = (*spans[-1][:2], e.batch)
        return spans

    def add(
        self,
        name: str,
        windows: str | Mapping[str, str],
        where: Mapping[str, str] | None = None,
        on: str | None = None,
        streams: Sequence[str] | None = None,
    ) -> None:
        """Serve one more query from the next batch on.

        Parameters
        ----------
        windows
            One span, as "10 minutes", for all streams, or one for each by alias.
        where
            By alias, a condition over that stream's columns, as in ``{"a": "a.value > 30"}``.
        on, streams
            What the query joins, where it should be held against what this run joins.

        It gets the results of tuples that come from now on with the tuples that the state still has. Its answers are complete from
        the start when some query keeps the tuples of every stream as long, with no selection there or the same one. Otherwise
        those results are certain whose members on that stream are no older than the moment of entering less the longest window of
        such a query (the event QueryAdded tells the event times), so all are at the latest once event time has gone on by the
        query's own windows. Takes one pass over the state.

        Raises ValueError, with one sentence, for a query that this run cannot serve; nothing has changed then.
        """
        with self._turn:
            state, new = self._engine.state, self.join.query(name, windows, where, on, streams)
            queries = entered(state.queries, new, horizon(state.latest, self._engine.lateness))
            self._change(queries, [self._told(queries[-1], state.batch + 1)])

    def remove(self, name: str) -> None:
        """Serve a query no longer, and drop what only it had use for. Raises ValueError when it is not there, or the only one."""
        with self._turn:
            self._change(left(self.queries, name), [QueryRemoved(self._engine.state.batch + 1, name)])

    def split(self, age: str, stream: str | None = None) -> None:
        """Split the slice that spans an age, as "10 minutes", in the chain of one stream or of all (Fig. 7.4). From then on chains
        are as they are given. Raises ValueError where there is nothing to split.
        """
        with self._turn:
            self._slice(chains.split(self._engine.state.policy, micros(age, "age"), self._index(stream)))

    def merge(self, age: str, stream: str | None = None) -> None:
        """Merge the slices that meet at an age (Fig. 7.5); otherwise as ``split``."""
        with self._turn:
            self._slice(chains.merge(self._engine.state.policy, micros(age, "age"), self._index(stream)))

    def rebalance(self, chain: str) -> None:
        """Choose the chain anew, as "memory", "cpu" or "auto" do, and keep to that from now on."""
        if chain not in MODES:
            raise ValueError(f"chain is {chain!r}; it must be one of {', '.join(MODES)}")
        with self._turn:
            self._slice(chains.rebalance(self._engine.state.policy, chain))  # type: ignore[arg-type]

    def _index(self, stream: str | None) -> int | None:
        if stream is not None and stream not in self.join.streams:
            raise ValueError(f"no stream is named {stream!r}; there are: {', '.join(self.join.streams)}")
        return None if stream is None else list(self.join.streams).index(stream)

    def _slice(self, policy: Any) -> None:
        self._check_active()
        self._engine.amend(self.queries, policy, None, [], clock.perf_counter())

    def _change(self, queries: Queries, happened: list[Any]) -> None:
        self._check_active()
        began, engine = clock.perf_counter(), self._engine
        new = tuple(q for q in queries if q not in engine.state.queries)
        schemas = [f.dataType for f in self._schema.fields]
        lines = remark(self.join.spark, work(engine, queries), schemas, new, engine.query.partitions)  # type: ignore[arg-type]
        engine.amend(queries, engine.state.policy, lines, happened, began)

    def _check_active(self) -> None:
        if not self.isActive:
            raise RuntimeError("the run has ended; resume it to change what it serves")


def marked(frame: DataFrame, layouts: Sequence[Layout], queries: Queries) -> DataFrame:
    """The streams' union with the marks of every tuple, without those that no query selects (Wang 2008, section 7.4)."""
    mark = F.lit(0).cast("long")
    for s, layout in enumerate(layouts):
        mine = marks(selections(queries, s), partial(_laid_out, layout=layout))
        mark = F.when(F.col("__stream") == s, mine).otherwise(mark)
    frame = frame.withColumn(MARK, mark)
    free = all(None in selections(queries, s) for s in range(len(layouts)))
    return frame if free else frame.where(F.col(MARK) != 0)


def _latest(layouts: Sequence[Layout]) -> list[Column]:
    """By stream, the latest event time (microseconds) in the streams' union; each is named by the stream's number."""
    found = []
    for s, layout in enumerate(layouts):
        slot = F.col(layout.slot(TIME))
        time = F.unix_micros(slot) if TIME in {name for name, _, _ in layout.copies} else slot
        found.append(F.max(F.when(F.col("__stream") == s, time)).alias(str(s)))
    return found


def _laid_out(sql: str, layout: Layout) -> Column:
    """Spark SQL over a stream's columns, as a column of the streams' union."""
    slots = {name.lower(): slot for name, slot in layout.slots}
    tree = sqlglot.parse_one(sql, read="spark")
    for column in list(tree.find_all(exp.Column)):
        column.replace(exp.column(slots[column.name.lower()], quoted=True))
    return F.expr(tree.sql(dialect="spark"))


def _conjuncts(on: str) -> set[str]:
    return {c.sql(dialect="spark").lower() for c in sqlglot.parse_one(on, read="spark").flatten() if c} or {on}


class SharedJoin(StreamJoin):
    """One join of the same streams on the same condition for many queries, each with its own windows and selections.

    Parameters
    ----------
    streams, on, time, lateness, partitions, check
        As for StreamJoin; ``time`` is needed.
    chain
        How state is sliced (Wang 2008, chapter 7): "memory" (the least state), "cpu" (the fewest comparisons, by what is measured
        as the run goes), "auto" ("cpu" where it takes at most a tenth more state, else "memory"), or the ages at which slices end,
        as in ``["1 minute", "10 minutes"]``.
    hosts
        Logical hosts on which the slices lie: 1 is a chain, more are a ring (chapters 19 to 21).
    overhead
        C_sys of section 7.2; measured on this machine when it is left out and the chain depends on it.

    Raises ValueError, with one sentence, for whatever cannot work; nothing has been started or written then.
    """

    runs = SharedRun
    placement: Chain

    def __init__(
        self,
        streams: Mapping[str, DataFrame],
        on: str,
        time: str,
        chain: str | Sequence[str] = "auto",
        hosts: int = 1,
        lateness: str = "0 seconds",
        partitions: int | None = None,
        check: bool = False,
        overhead: float | None = None,
    ) -> None:
        self.chain, self._overhead = chain, overhead
        self.queries: Queries = ()
        placement = Chain(self._mode(), self._ends(len(streams)), hosts)
        super().__init__(streams, on, placement, None, time, lateness, partitions, 0, check)

    def _mode(self) -> Mode:
        if isinstance(self.chain, str):
            if self.chain not in MODES:
                raise ValueError(f"chain is {self.chain!r}; it must be one of {', '.join(MODES)}, or ages as ['10 minutes']")
            return self.chain  # type: ignore[return-value]
        return "given"

    def _ends(self, streams: int) -> tuple[tuple[int, ...], ...]:
        if isinstance(self.chain, str):
            return ()
        return (tuple(sorted({micros(age, "end of a slice") for age in self.chain})),) * streams

    def add(
        self,
        name: str,
        windows: str | Mapping[str, str],
        where: Mapping[str, str] | None = None,
        on: str | None = None,
        streams: Sequence[str] | None = None,
    ) -> None:
        """Serve a query from the start of the run on; see ``SharedRun.add`` for the parameters and for one that comes later."""
        self.queries = entered(self.queries, self.query(name, windows, where, on, streams))

    def remove(self, name: str) -> None:
        """Do not serve a query that was added. Raises ValueError when there is none of that name."""
        self.queries = tuple(q for q in self.queries if q.name != name) if len(self.queries) == 1 else left(self.queries, name)

    def query(
        self,
        name: str,
        windows: str | Mapping[str, str],
        where: Mapping[str, str] | None,
        on: str | None,
        streams: Sequence[str] | None,
    ) -> Served:
        """A query to be served. Raises ValueError, with one sentence, for one that this join cannot serve."""
        if streams is not None and set(streams) != set(self.streams):
            raise ValueError(f"query {name!r} joins {', '.join(streams)}; this join is of {', '.join(self.streams)}")
        if on is not None and _conjuncts(on) != _conjuncts(self.on):
            raise ValueError(f"query {name!r} joins on {on!r}; this join is on {self.on!r}; selections go in where")
        spans = dict.fromkeys(self.streams, windows) if isinstance(windows, str) else dict(windows)
        if set(spans) != set(self.streams):
            given, wanted = ", ".join(spans) or "no stream", ", ".join(self.streams)
            raise ValueError(f"query {name!r} has windows for {given}; it needs one for each of {wanted}")
        lengths = tuple(micros(spans[a], f"window of {name!r} on {a}") for a in self.streams)
        return Served(name, lengths, self._selections(name, where or {}))

    def _selections(self, name: str, where: Mapping[str, str]) -> tuple[str | None, ...]:
        """By stream, the selection as Spark SQL over the stream's own columns."""
        if unknown := set(where) - set(self.streams):
            raise ValueError(f"query {name!r} selects on {', '.join(sorted(unknown))}; the streams are {', '.join(self.streams)}")
        found: list[str | None] = []
        for alias, frame in self.streams.items():
            try:
                found.append(parse(where[alias], {alias: frame}, [None]).filters[0] if alias in where else None)
            except PredicateError as error:
                place = f"in the selection of {name!r} on {alias}"
                raise PredicateError(str(error).replace("in the join condition", place)) from None
        return tuple(found)

    def start(self, path: str | Path, batches: int | str = 20, pace: float = 0.0, **trigger: Any) -> SharedRun:
        """Start, or go on with, a shared run in the folder ``path``; see StreamJoin.start. Raises ValueError without a query.

        A folder that holds this run goes on with the queries and chains that it had, whatever was added or changed meanwhile.
        """
        if not self.queries:
            raise ValueError("no query has been added; a shared join serves one or more: add(name, windows, where)")
        known = Store(path).query()
        if known is not None and self._overhead is None:
            self.placement = replace(self.placement, overhead=known.get("settings", {}).get("overhead", 1.0))
        elif self.placement.mode in ("cpu", "auto"):
            self.placement = replace(self.placement, overhead=measure() if self._overhead is None else self._overhead)
        run = super().start(path, batches, pace, **trigger)
        assert isinstance(run, SharedRun)
        return run

    @staticmethod
    def resume(path: str | Path, streams: Mapping[str, DataFrame], **trigger: Any) -> SharedRun:
        """Go on with the shared run in ``path``, with the queries and chains that it had at its last commit."""
        query = Store(path).query()
        if query is None or "chain" not in query:
            raise ValueError(f"{path} holds no shared run that could be resumed")
        names = ("on", "time", "chain", "lateness", "partitions", "check")
        join = SharedJoin(streams, hosts=query["settings"]["hosts"], **{n: query[n] for n in names})
        join.queries = tuple(Served(n, tuple(ws), tuple(sql), bit, tuple(since)) for n, ws, sql, bit, since in query["queries"])
        return join.start(path, **trigger)

    def union(self, sources: Mapping[str, DataFrame]) -> tuple[DataFrame, tuple[Layout, ...]]:
        frame, where = super().union(sources)
        return frame, tuple(replace(layout, slots=(*layout.slots, (MARK, MARK))) for layout in where)

    def _routing_key(self, i: int, frame: DataFrame) -> Column:
        return F.lit(0)  # made of the marks, on arrival

    def _fingerprint(self) -> dict[str, Any]:
        chain = self.chain if isinstance(self.chain, str) else list(self.chain)
        return super()._fingerprint() | {"chain": chain, "queries": json.loads(json.dumps([astuple(q) for q in self.queries]))}
