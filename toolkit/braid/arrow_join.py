"""Joins of Arrow tables in this process, without Spark or a JVM.

StreamJoin uses them for tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import duckdb
import pyarrow as pa

from braid.condition.predicate import Predicate
from braid.core.reserved_columns import WEIGHT
from braid.execution.executors import Executor, check_executor, make_executor
from braid.join_config import JoinConfig
from braid.join_run import JoinRun
from braid.kernels.join_spec import JoinSpec
from braid.sources import arrow_replay, input_fingerprints
from braid.sources.batch_drivers import BatchDriver, BatchThread
from braid.storage.block_files import read_parquet
from braid.storage.run_store import RunStore
from braid.util.machine import available_cores


@dataclass(frozen=True)
class ArrowJoinConfig(JoinConfig):
    """The settings of a StreamJoin of tables."""

    most_batches = 100_000

    @property
    def static_streams(self) -> dict[str, Any]:
        """All streams, because tables are replayed."""
        return dict(self.streams)

    def stream_extent(self, alias: str) -> tuple[int, int]:
        """Return a stream's number of rows and its event-time span in microseconds."""
        return arrow_replay.measure_extent(self.streams[alias], self.event_time_columns.get(alias))

    @staticmethod
    def task_parallelism(streams: Mapping[str, Any]) -> int:
        """Return the number of tasks that run at once: one for each core."""
        return available_cores()

    @property
    def schemas(self) -> dict[str, str]:
        """The columns of each stream with their types, by alias. The alias "" has the routing hash.

        The hash differs between DuckDB versions and Spark. State stored under one hash cannot be
        read under another, so a run cannot be resumed with another hash.
        """
        routed = {"": f"tables, routed by DuckDB {duckdb.__version__}"}
        return routed | {a: _format_columns(t.schema) for a, t in self.streams.items()}

    def record_fingerprints(self) -> dict[str, Any]:
        """Return the fingerprints of the tables."""
        return {
            "fingerprints": {
                a: input_fingerprints.fingerprint_table(t).to_plain()
                for a, t in self.streams.items()
            }
        }

    def check_input(self, store: RunStore, known: Mapping[str, Any]) -> None:
        """Raise ValueError unless the tables are those that the stored run began with."""
        for alias, rows in self.streams.items() if not self.resumed else ():
            before = input_fingerprints.InputFingerprint.from_plain(known["fingerprints"][alias])
            input_fingerprints.check_rows(
                alias, store.where, before, input_fingerprints.fingerprint_table(rows)
            )

    def check_source_position(self, store: RunStore) -> None:
        """Do nothing: there is no checkpoint, and the log alone has the position in the tables."""

    @staticmethod
    def has_remote_hosts(streams: Mapping[str, Any]) -> bool:
        """Return False: all hosts are in this process."""
        return False

    @staticmethod
    def row_estimates(streams: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the number of rows of each table."""
        return tuple(float(max(1, rows.num_rows)) for rows in streams.values())

    @staticmethod
    def most_frequent_share(streams: Mapping[str, Any], predicate: Predicate) -> float:
        """Return the share of the most frequent join value, in the stream where it is greatest."""
        if predicate.equality is None:
            return 0.0
        return max(
            arrow_replay.most_frequent_share(alias, rows, predicate)
            for alias, rows in streams.items()
        )

    def prepare_workers(self) -> None:
        """Do nothing: there are no workers."""

    def check_shared_folder(self, store: RunStore) -> None:
        """Do nothing: there are no workers."""

    @staticmethod
    def parse_trigger(given: Mapping[str, Any]) -> dict[str, Any]:
        """Raise ValueError if a trigger is given."""
        if given:
            raise ValueError(
                f"a run of tables has no trigger; got {', '.join(given)}, leave it out"
            )
        return {}

    def _make_replay(self, batches: int | str) -> arrow_replay.ArrowReplay:
        return arrow_replay.ArrowReplay(self.streams, self.event_time_columns, batches)

    def make_feed(self, schemas: Mapping[str, pa.Schema]) -> arrow_replay.ArrowFeed:
        """Return the feed that reads tuples from the run's copy of the tables."""
        times = {alias: self._event_time_sql(alias) for alias in schemas}
        p = self.placement
        worth = None if self.shed is None else self.utilities
        by_value = self.shed is not None and self.shed.method == "keys"
        return arrow_replay.ArrowFeed(schemas, self.predicate, times, p, self.seed, worth, by_value)

    def _event_time_sql(self, alias: str) -> str:
        """Return Spark SQL for the event time."""
        if (name := self.event_time_columns.get(alias)) is None:
            return "cast(0 as bigint)"
        time = f"unix_micros(cast(`{name}` as timestamp))"
        return time if self.windows else f"coalesce({time}, cast(0 as bigint))"


def _format_columns(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name}: {f.type}" for f in schema)


class ArrowJoinRun(JoinRun):
    """A run of tables, on its own thread. Its results are Arrow tables."""

    config: ArrowJoinConfig
    _deep = True

    def _open_input(self) -> tuple[JoinSpec, Any]:
        setup = self.config
        schemas = {a: self.store.input.stream_schema(a) for a in setup.streams}
        columns = tuple(tuple(s.names) for s in schemas.values())
        self._schema = pa.schema([pa.field(a, pa.struct(list(s))) for a, s in schemas.items()])
        spec = JoinSpec(
            setup.predicate,
            columns,
            (),
            setup.window_limits,
            str(self.store.path),
            setup.partitions,
            setup.utility_rule,
            object_store_url=self.store.url,
        )
        return spec, setup.make_feed(schemas)

    def _make_driver(self, frame: Any, trigger: Mapping[str, Any]) -> BatchDriver:
        numbers = range(self._done_before, self._settings["batches"])
        read_later = partial(partial, frame.read_batch, self.store.input.folder)
        return BatchThread(numbers, self._stopping.is_set, read_later)

    def _check_input(self, number: int) -> None:
        self.store.input.wait_for_batch(number)
        self.store.input.check_files(number, deep=True)

    def _make_executor(self, way: str) -> Executor:
        return make_executor("process")

    def _make_empty_batch(self) -> Any:
        return {}

    def _read_results(self, files: list[str]) -> Any:
        schema = self._result_schema
        checked = {"schema": schema, "page_checksum_verification": True}
        found = [read_parquet(f, **checked) for f in files]
        return pa.concat_tables(found) if found else schema.empty_table()

    def _read_lasting_results(self, files: list[str]) -> Any:
        return self._read_results(files)

    @property
    def _result_schema(self) -> pa.Schema:
        return (
            self._schema
            if self.config.shed is None
            else self._schema.append(pa.field(WEIGHT, pa.float64()))
        )

    def set_executor(self, way: str) -> None:
        """Raise ValueError unless the executor is this process, the only one for tables."""
        if check_executor(way) == "spark":
            raise ValueError(f"the executor is {way!r}; a run of tables has 'process' only")

    def results_stream(self) -> Any:
        """Raise ValueError: a streaming DataFrame needs Spark."""
        raise ValueError(
            "a run of tables has no streaming DataFrame; read results/*.parquet of its folder, or "
            "results_since(batch)"
        )
