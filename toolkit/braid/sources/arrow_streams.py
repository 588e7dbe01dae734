"""Streams that are Arrow tables in this process, without Spark or a JVM."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

import duckdb
import numpy as np
import pyarrow as pa

from braid.condition.predicate import Predicate
from braid.condition.sql_types import sql_type_of_arrow
from braid.core.reserved_columns import CHANGE_TYPE, NO_TIME, WEIGHT
from braid.errors import EvaluationFailure
from braid.execution.executors import check_executor
from braid.kernels.join_spec import StreamLayout
from braid.sources import input_fingerprints
from braid.sources.arrow_replay import (
    ArrowFeed,
    ArrowReplay,
    measure_extent,
    most_frequent_share,
    read_event_times,
)
from braid.sources.stream_source import AnalyzedJoin, StreamSource, TupleSample
from braid.storage.run_store import RunStore
from braid.time_arguments import Columns, Watermarks
from braid.util.machine import available_cores


class ArrowStreams(StreamSource):
    """Tables by alias. They are replayed, and all hosts are in this process."""

    is_spark = False
    most_batches = 100_000
    has_generated_rows = False

    def __init__(self, streams: Mapping[str, pa.Table]) -> None:
        self.streams = dict(streams)

    @property
    def spark_session(self) -> NoReturn:
        raise ValueError("a join of tables has no Spark session")

    def read_columns(self) -> Columns:
        return {
            alias: {f.name: str(sql_type_of_arrow(f.type)) for f in rows.schema}
            for alias, rows in self.streams.items()
        }

    def read_watermarks(self) -> Watermarks:
        """Return none: tables declare no watermark."""
        return {}

    def describe_schemas(self) -> dict[str, str]:
        """Return the columns of each stream with Arrow's types. The alias "" has the routing hash.

        The hash differs between DuckDB versions and Spark. State stored under one hash cannot be
        read under another, so a run cannot be resumed with another hash.
        """
        routed = {"": f"tables, routed by DuckDB {duckdb.__version__}, integers by xxHash"}
        return routed | {
            a: ", ".join(f"{f.name}: {f.type}" for f in t.schema) for a, t in self.streams.items()
        }

    def is_static(self, alias: str) -> bool:
        return True

    def measure_extent(self, alias: str, time: str | None) -> tuple[int, int]:
        return measure_extent(self.streams[alias], time)

    def read_event_times(self, alias: str, time: str | None) -> np.ndarray | None:
        return read_event_times(self.streams[alias], time)

    def count_parallel_tasks(self) -> int:
        """Return the number of tasks that run at once: one for each core."""
        return available_cores()

    def has_remote_hosts(self) -> bool:
        return False

    def estimate_rows(self) -> tuple[float, ...]:
        """Return the number of rows of each table."""
        return tuple(float(max(1, rows.num_rows)) for rows in self.streams.values())

    def most_frequent_share(self, predicate: Predicate) -> float:
        """Return the share of the most frequent join value, in the stream where it is greatest."""
        if predicate.equality is None:
            return 0.0
        return max(
            most_frequent_share(alias, rows, predicate) for alias, rows in self.streams.items()
        )

    def sample_tuples(
        self, predicate: Predicate, times: Mapping[str, str], most: int
    ) -> list[TupleSample]:
        """Return evenly spaced tuples of each table; empty if some cannot be computed."""
        schemas = {alias: rows.schema for alias, rows in self.streams.items()}
        columns = {alias: _time_sql(times.get(alias), False, missing=0) for alias in schemas}
        feed = ArrowFeed(schemas, predicate, columns, None, 0)
        sampled: list[TupleSample] = []
        for alias, rows in self.streams.items():
            count = min(most, rows.num_rows)
            places = np.linspace(0, rows.num_rows - 1, count).astype(np.int64)
            try:
                tuples = feed.compute_tuples(alias, rows.take(pa.array(places)))
            except EvaluationFailure:  # the run fails there too, and names the expression
                return []
            if not tuples.num_rows:
                return []
            batch = tuples.combine_chunks().to_batches()[0]
            sampled.append(TupleSample(batch, rows.num_rows / count))
        return sampled

    def check_execution(self, executor: Any, driver_memory: Any) -> str:
        if check_executor(executor) == "spark":
            raise ValueError("executor is 'spark', but the streams are tables; leave it out")
        if driver_memory is not None:
            raise ValueError(
                f"driver_memory is {driver_memory!r}, but the streams are tables, which are in "
                "memory; leave it out"
            )
        return "process"

    def parse_trigger(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Raise ValueError if a trigger is given."""
        if given:
            raise ValueError(
                f"a run of tables has no trigger; got {', '.join(given)}, leave it out"
            )
        return {}

    def prepare_workers(self) -> None:
        """Do nothing: there are no workers."""

    def check_shared_folder(self, store: RunStore) -> None:
        """Do nothing: there are no workers."""

    def make_replay(
        self,
        batches: int | str,
        times: Mapping[str, str],
        memory: int,
        undivided: Collection[str] = (),
    ) -> ArrowReplay:
        return ArrowReplay(self.streams, times, batches, undivided)

    def record_fingerprints(self) -> dict[str, Any]:
        return {
            "fingerprints": {
                a: input_fingerprints.fingerprint_table(t).to_plain()
                for a, t in self.streams.items()
            }
        }

    def check_input(self, store: RunStore, stored: Mapping[str, Any], resumed: bool) -> None:
        for alias, rows in self.streams.items() if not resumed else ():
            before = input_fingerprints.InputFingerprint.from_plain(stored["fingerprints"][alias])
            input_fingerprints.check_rows(
                alias, store.where, before, input_fingerprints.fingerprint_table(rows)
            )

    def check_source_position(self, store: RunStore) -> None:
        """Do nothing: there is no checkpoint, and the log alone has the position in the tables."""

    def open_streams(self, store: RunStore) -> dict[str, pa.Schema]:
        """Return the schemas of the copies; the feed reads them batch by batch."""
        return {alias: store.input.stream_schema(alias) for alias in self.streams}

    def list_column_names(self, streams: Mapping[str, pa.Schema]) -> list[list[str]]:
        return [schema.names for schema in streams.values()]

    def omit_columns(self, columns: Mapping[str, str]) -> dict[str, pa.Table]:
        return {
            alias: rows.drop_columns([columns[alias]]) if alias in columns else rows
            for alias, rows in self.streams.items()
        }

    def make_result_schema(
        self,
        streams: Mapping[str, pa.Schema],
        weighs: bool,
        structs: Sequence[int] = (),
        changes: Mapping[str, str] | None = None,
        has_change_types: bool = False,
    ) -> pa.Schema:
        omitted = changes or {}
        schemas = {
            alias: pa.schema([f for f in schema if f.name != omitted.get(alias)])
            for alias, schema in streams.items()
        }
        types = dict(zip(streams, self.find_result_types(schemas), strict=True))
        wanted = [alias for n, alias in enumerate(streams) if not structs or n in structs]
        nested = [pa.field(alias, types[alias]) for alias in wanted]
        more = [pa.field(WEIGHT, pa.float64())] if weighs else []
        more += [pa.field(CHANGE_TYPE, pa.string())] if has_change_types else []
        return pa.schema([*nested, *more])

    def find_result_types(self, streams: Mapping[str, pa.Schema]) -> tuple[pa.DataType, ...]:
        return tuple(pa.struct(list(schema)) for schema in streams.values())

    def union_streams(
        self, join: AnalyzedJoin, streams: Mapping[str, pa.Schema]
    ) -> tuple[ArrowFeed, tuple[StreamLayout, ...]]:
        """Return the feed of tuples from the copies of the tables. It has no layouts."""
        config, shed = join.config, join.config.shed
        feed = ArrowFeed(
            streams,
            join.predicate,
            {
                alias: _time_sql(config.event_time_columns.get(alias), join.needs_event_time(alias))
                for alias in streams
            },
            join.placement,
            config.seed,
            None if shed is None else join.utilities,
            shed is not None and shed.method == "keys",
            config.kind.preserved,
            config.changes,
        )
        return feed, ()


def _time_sql(name: str | None, is_needed: bool, missing: int = NO_TIME) -> str:
    """Return Spark SQL for the event time in a column. ``missing``: that of a tuple without one."""
    if name is None:
        return "cast(0 as bigint)"
    time = f"unix_micros(cast(`{name}` as timestamp))"
    return time if is_needed else f"coalesce({time}, cast({missing} as bigint))"
