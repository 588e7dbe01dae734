"""Joins of Arrow tables in this process: no Spark, no JVM. StreamJoin chooses this for tables."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa

from braid import fingerprints
from braid.condition.predicate import Predicate
from braid.core.columns import WEIGHT
from braid.core.waiting import wait
from braid.core.work import workers
from braid.engine import tables
from braid.engine.executor import Executor, checked, executor
from braid.engine.files import parquet
from braid.engine.memory import cores
from braid.engine.store import Store
from braid.engine.wire import JoinSpec
from braid.run import JoinRun
from braid.setup import Setup


@dataclass(frozen=True)
class TableSetup(Setup):
    """The settings of a StreamJoin of tables."""

    most_batches = 100_000

    @property
    def static(self) -> dict[str, Any]:
        """All streams: a table is replayed."""
        return dict(self.streams)

    def extent(self, alias: str) -> tuple[int, int]:
        """How many rows a stream has, and how long they last (microseconds)."""
        return tables.extent(self.streams[alias], self.times.get(alias))

    @staticmethod
    def at_once(streams: Mapping[str, Any]) -> int:
        """How many tasks run at once: one a core."""
        return cores()

    @property
    def schemas(self) -> dict[str, str]:
        """The columns of each stream and their types, by alias; and what tells a run of tables
        from one of Spark's frames or of another DuckDB: the routing hash is theirs, and state that
        is kept by it must be found by it.
        """
        routed = {"": f"tables, routed by DuckDB {duckdb.__version__}"}
        return routed | {a: _columns(t.schema) for a, t in self.streams.items()}

    def remember(self) -> dict[str, Any]:
        """Return the fingerprints of the tables."""
        return {
            "fingerprints": {a: fingerprints.of_table(t).plain() for a, t in self.streams.items()}
        }

    def check_input(self, store: Store, known: Mapping[str, Any]) -> None:
        """Raise ValueError unless the tables are those that the run in a folder began with."""
        for alias, rows in self.streams.items() if not self.resumed else ():
            before = fingerprints.Fingerprint.of_plain(known["fingerprints"][alias])
            fingerprints.check_rows(alias, store.where, before, fingerprints.of_table(rows))

    def check_source(self, store: Store) -> None:
        """There is no checkpoint: the log alone says how far the tables were read."""

    @staticmethod
    def apart(streams: Mapping[str, Any]) -> bool:
        """They are in this process."""
        return False

    @staticmethod
    def known_rows(streams: Mapping[str, Any]) -> tuple[float, ...]:
        """Tables can be counted."""
        return tuple(float(max(1, rows.num_rows)) for rows in streams.values())

    @staticmethod
    def frequent(streams: Mapping[str, Any], predicate: Predicate) -> float:
        """Of the stream in which it is greatest, without NULL."""
        if predicate.equality is None:
            return 0.0
        return max(
            tables.frequent(alias, rows, predicate.keys[i][predicate.equality[i]])
            for i, (alias, rows) in enumerate(streams.items())
        )

    def equip(self) -> None:
        """There are no workers."""

    def share(self, store: Store) -> None:
        """There are no workers."""

    @staticmethod
    def trigger(given: Mapping[str, Any]) -> dict[str, Any]:
        """Raises ValueError for any."""
        if given:
            raise ValueError(
                f"a run of tables has no trigger; got {', '.join(given)}, leave it out"
            )
        return {}

    def _replay(self, batches: int | str) -> tables.Replay:
        return tables.Replay(self.streams, self.times, batches)

    def feed(self, schemas: Mapping[str, pa.Schema]) -> tables.Feed:
        """What makes tuples of the run's copy."""
        times = {alias: self._micros(alias) for alias in schemas}
        p = self.placement
        worth = None if self.shed is None else self.utilities
        by_value = self.shed is not None and self.shed.method == "keys"
        return tables.Feed(schemas, self.predicate, times, p, self.seed, worth, by_value)

    def _micros(self, alias: str) -> str:
        """Spark SQL of the event time."""
        if (name := self.times.get(alias)) is None:
            return "cast(0 as bigint)"
        time = f"unix_micros(cast(`{name}` as timestamp))"
        return time if self.windows else f"coalesce({time}, cast(0 as bigint))"


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name}: {f.type}" for f in schema)


class TableRun(JoinRun):
    """A run of tables, on a thread of its own; results are Arrow tables."""

    setup: TableSetup
    _deep = True

    def _open(self) -> tuple[JoinSpec, Any]:
        setup = self.setup
        schemas = {a: self.store.copied.schema(a) for a in setup.streams}
        columns = tuple(tuple(s.names) for s in schemas.values())
        self._schema = pa.schema([pa.field(a, pa.struct(list(s))) for a, s in schemas.items()])
        spec = JoinSpec(
            setup.predicate,
            columns,
            (),
            setup.limits,
            str(self.store.path),
            setup.partitions,
            setup.worth,
            bucket=self.store.url,
        )
        return spec, setup.feed(schemas)

    def _launch(self, frame: Any, trigger: Mapping[str, Any]) -> Any:
        todo = range(self._done_before, self._settings["batches"])
        feed, folder = frame, self.store.input

        def turn(number: int) -> None:
            tuples: Any = partial(feed.tuples, folder, number)
            self._turn_batch(tuples, number)

        return Turns(turn, todo, self._stopping.is_set)

    def _prepare(self, frame: Any, number: int) -> None:
        self.store.copied.wait(number)
        self.store.copied.check(number, deep=True)

    def _executor(self, way: str) -> Executor:
        return executor("process")

    def _nothing(self) -> Any:
        return {}

    def _read(self, files: list[str]) -> Any:
        schema = self._result_schema
        checked = {"schema": schema, "page_checksum_verification": True}
        found = [parquet(f, **checked) for f in files]
        return pa.concat_tables(found) if found else schema.empty_table()

    def _lasting(self, files: list[str]) -> Any:
        return self._read(files)

    @property
    def _result_schema(self) -> pa.Schema:
        return (
            self._schema
            if self.setup.shed is None
            else self._schema.append(pa.field(WEIGHT, pa.float64()))
        )

    def execute_on(self, way: str) -> None:
        """Refused unless it is this process, where all of it runs."""
        if checked(way) == "spark":
            raise ValueError(f"the executor is {way!r}; a run of tables has 'process' only")

    def results_stream(self) -> Any:
        """Refused: a stream of Spark needs Spark."""
        raise ValueError(
            "a run of tables has no streaming DataFrame; read results/*.parquet of its folder, or "
            "results_since(batch)"
        )


class Turns:
    """A thread that gives batch after batch, with what a run asks of Spark's query."""

    def __init__(
        self, turn: Callable[[int], None], todo: range, stopped: Callable[[], bool] | None = None
    ) -> None:
        self._turn, self._todo = turn, todo
        self._stopped = stopped or (lambda: False)
        self._error: Exception | None = None
        self._ended = threading.Event()
        workers().start("braid-tables", self._work)

    def _work(self) -> None:
        try:
            for number in self._todo:
                if self._stopped():
                    return
                self._turn(number)
        except Exception as error:
            self._error = error
        finally:
            self._ended.set()

    def awaitTermination(self) -> None:
        """Wait for the end; raises what went wrong."""
        wait(self._ended)
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Wait for the turn that is on its way."""
        wait(self._ended)

    def exception(self) -> Exception | None:
        """What went wrong; None: nothing."""
        return self._error
