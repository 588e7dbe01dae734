"""SharedJoin: one join state for many queries. What people call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import sqlglot
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from sqlglot import exp

from braid.condition.parse import parse
from braid.condition.predicate import PredicateError
from braid.condition.terms import conjuncts
from braid.core.columns import MARK
from braid.core.query import Query
from braid.core.spans import micros
from braid.engine.store import Store
from braid.engine.wire import Layout
from braid.join import StreamJoin
from braid.papers.slices.chain import MODES, Chain, Mode
from braid.sharing.calibrate import measure
from braid.sharing.changes import Queries, entered, left
from braid.sharing.run import SharedRun


class SharedJoin(StreamJoin):
    """One join of the same streams on the same condition for many queries, each with its own
    windows and selections.

    Parameters
    ----------
    streams, on, time, lateness, partitions, check
        As for StreamJoin; ``time`` is needed.
    chain
        How state is sliced (Wang 2008, chapter 7): "memory" (the least state), "cpu" (the fewest
        comparisons, by what is measured as the run goes), "auto" ("cpu" where it takes at most a
        tenth more state, else "memory"), or the ages at which slices end, as in ``["1 minute", "10
        minutes"]``.
    hosts
        Logical hosts on which the slices lie: 1 is a chain, more are a ring (chapters 19 to 21).
    overhead
        C_sys of section 7.2; measured on this machine when it is left out and the chain depends on
        it.

    Raises ValueError, with one sentence, for whatever cannot work; nothing has been started or
    written then.
    """

    runs = SharedRun
    shared = True
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
        if time is None:
            raise ValueError(
                "a shared join has no event-time column; its queries have windows, so name it with "
                "time="
            )
        placement = Chain(self._mode(), self._ends(len(streams)), hosts)
        super().__init__(streams, on, placement, None, time, lateness, partitions, 0, check)

    def _mode(self) -> Mode:
        if isinstance(self.chain, str):
            if self.chain not in MODES:
                raise ValueError(
                    f"chain is {self.chain!r}; it must be one of {', '.join(MODES)}, or ages as "
                    "['10 minutes']"
                )
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
        """Serve a query from the start of the run on; see ``SharedRun.add`` for the parameters and
        for one that comes later.
        """
        self.queries = entered(self.queries, self.query(name, windows, where, on, streams))

    def remove(self, name: str) -> None:
        """Do not serve a query that was added. Raises ValueError when there is none of that
        name.
        """
        self.queries = left(self.queries, name)

    def query(
        self,
        name: str,
        windows: str | Mapping[str, str],
        where: Mapping[str, str] | None,
        on: str | None,
        streams: Sequence[str] | None,
    ) -> Query:
        """A query to be served. Raises ValueError, with one sentence, for one that this join cannot
        serve.
        """
        if streams is not None and set(streams) != set(self.streams):
            raise ValueError(
                f"query {name!r} joins {', '.join(streams)}; this join is of "
                f"{', '.join(self.streams)}"
            )
        if on is not None and _conjuncts(on) != _conjuncts(self.on):
            raise ValueError(
                f"query {name!r} joins on {on!r}; this join is on {self.on!r}; selections go in "
                "where"
            )
        spans = dict.fromkeys(self.streams, windows) if isinstance(windows, str) else dict(windows)
        if set(spans) != set(self.streams):
            given, wanted = ", ".join(spans) or "no stream", ", ".join(self.streams)
            raise ValueError(
                f"query {name!r} has windows for {given}; it needs one for each of {wanted}"
            )
        lengths = tuple(micros(spans[a], f"window of {name!r} on {a}") for a in self.streams)
        return Query(name, lengths, self._selections(name, where or {}))

    def _selections(self, name: str, where: Mapping[str, str]) -> tuple[str | None, ...]:
        """By stream, the selection as Spark SQL over the stream's own columns."""
        if unknown := set(where) - set(self.streams):
            raise ValueError(
                f"query {name!r} selects on {', '.join(sorted(unknown))}; the streams are "
                f"{', '.join(self.streams)}"
            )
        found: list[str | None] = []
        for alias, frame in self.streams.items():
            try:
                found.append(
                    parse(where[alias], {alias: frame}, [None]).filters[0]
                    if alias in where
                    else None
                )
            except PredicateError as error:
                place = f"in the selection of {name!r} on {alias}"
                raise PredicateError(str(error).replace("in the join condition", place)) from None
        return tuple(found)

    def start(
        self, path: str | Path, batches: int | str = 20, pace: float = 0.0, **trigger: Any
    ) -> SharedRun:
        """Start, or go on with, a shared run in the folder ``path``; see StreamJoin.start. Raises
        ValueError without a query.

        A folder that holds this run goes on with the queries and chains that it had, whatever was
        added or changed meanwhile.
        """
        if not self.queries:
            raise ValueError(
                "no query has been added; a shared join serves one or more: add(name, windows, "
                "where)"
            )
        known = Store(path).query()
        if known is not None and self._overhead is None:
            self.placement = replace(
                self.placement, overhead=known.get("settings", {}).get("overhead", 1.0)
            )
        elif self.placement.mode in ("cpu", "auto"):
            self.placement = replace(
                self.placement, overhead=measure() if self._overhead is None else self._overhead
            )
        run = super().start(path, batches, pace, **trigger)
        assert isinstance(run, SharedRun)
        return run

    @staticmethod
    def resume(path: str | Path, streams: Mapping[str, DataFrame], **trigger: Any) -> SharedRun:
        """Go on with the shared run in ``path``, with the queries and chains that it had at its
        last commit.
        """
        query = Store(path).query()
        if query is None or "chain" not in query:
            raise ValueError(f"{path} holds no shared run that could be resumed")
        names = ("on", "time", "chain", "lateness", "partitions", "check")
        join = SharedJoin(streams, hosts=query["settings"]["hosts"], **{n: query[n] for n in names})
        join.queries = tuple(
            Query(n, tuple(ws), tuple(sql), bit, tuple(since))
            for n, ws, sql, bit, since in query["queries"]
        )
        return join.start(path, **trigger)

    def union(self, sources: Mapping[str, DataFrame]) -> tuple[DataFrame, tuple[Layout, ...]]:
        frame, where = super().union(sources)
        return frame, tuple(
            replace(layout, slots=(*layout.slots, (MARK, MARK))) for layout in where
        )

    def _routing_key(self, i: int, frame: DataFrame) -> Column:
        return F.lit(0)  # made of the marks, on arrival

    def _fingerprint(self) -> dict[str, Any]:
        chain = self.chain if isinstance(self.chain, str) else list(self.chain)
        return super()._fingerprint() | {
            "chain": chain,
            "queries": json.loads(json.dumps([astuple(q) for q in self.queries])),
        }


def _conjuncts(on: str) -> set[str]:
    """What a condition asks for, in no order; equalities read from either side."""
    tree, found = sqlglot.parse_one(on, read="spark"), set()
    for identifier in tree.find_all(exp.Identifier):
        identifier.set("this", identifier.name.lower())
    for c in conjuncts(tree):
        sides = (
            sorted(side.sql(dialect="spark") for side in c.iter_expressions())
            if isinstance(c, exp.EQ)
            else []
        )
        found.add(" = ".join(sides) or c.sql(dialect="spark"))
    return found
