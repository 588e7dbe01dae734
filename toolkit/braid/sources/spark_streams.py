"""Streams that are DataFrames of Spark, streaming or static."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from braid.condition.change_columns import make_raising_sign_sql
from braid.condition.spark_type_checker import make_arrow_schema, make_spark_nullable
from braid.core.reserved_columns import (
    CHANGE_TYPE,
    DRAW,
    NO_TIME,
    SIGN,
    TIME,
    WEIGHT,
    WORTH,
)
from braid.execution.executors import check_executor
from braid.execution.stream_layout import make_layouts, project_stream
from braid.kernels.join_spec import RoutingHash, StreamLayout
from braid.sources import input_fingerprints, static_replay
from braid.sources.equality_numbers import combine_numbers
from braid.sources.spark_frames import parse_spark_trigger, read_frame_watermarks
from braid.sources.stream_source import PAGES, AnalyzedJoin
from braid.sources.tuple_filter import make_marked_columns
from braid.sources.unread_streams import UnreadStreams
from braid.spark_workers import check_object_store, check_shared_folder, prepare_workers
from braid.storage.object_store import store_environment
from braid.storage.run_store import RunStore
from braid.time_arguments import Columns, Watermarks
from braid.util.time_zones import UTC

COPIES = 3
"""Maximum number of copies of the static streams in this process: as they arrive, sorted, and in
the file being written.
"""


class SparkStreams(UnreadStreams):
    """DataFrames by alias. Static ones are replayed as micro-batches."""

    is_spark = True
    most_batches = 10_000
    has_generated_rows = False

    def __init__(self, streams: Mapping[str, DataFrame]) -> None:
        self.streams = dict(streams)
        self._static = {a: f for a, f in streams.items() if not f.isStreaming}

    @property
    def spark_session(self) -> SparkSession:
        """The Spark session of the streams."""
        session: SparkSession = next(iter(self.streams.values())).sparkSession
        return session

    def read_columns(self) -> Columns:
        return {
            alias: {f.name: f.dataType.simpleString() for f in frame.schema.fields}
            for alias, frame in self.streams.items()
        }

    def read_watermarks(self) -> Watermarks:
        return read_frame_watermarks(self.streams)

    def describe_schemas(self) -> dict[str, str]:
        return {a: f.schema.simpleString() for a, f in self.streams.items()}

    def is_static(self, alias: str) -> bool:
        return alias in self._static

    def measure_extent(self, alias: str, time: str | None) -> tuple[int, int]:
        return static_replay.measure_extent(self.streams[alias], time)

    def count_parallel_tasks(self) -> int:
        """Return the number of tasks that run at once: the session's parallelism."""
        return int(self.spark_session.sparkContext.defaultParallelism)

    def has_remote_hosts(self) -> bool:
        return not str(self.spark_session.sparkContext.master).startswith("local")

    def check_execution(self, executor: Any, driver_memory: Any) -> str:
        return check_executor(executor)

    def parse_trigger(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return parse_spark_trigger(given)

    def prepare_workers(self) -> None:
        prepare_workers(self.spark_session)

    def check_shared_folder(self, store: RunStore) -> None:
        if store.remote:
            self._check_object_store(store.url)
            store.remote.has_checkpoints = not self._static
            self.spark_session.sparkContext.environment.update(store_environment())
            check_object_store(self.spark_session.sparkContext, store.url)
        else:
            check_shared_folder(self.spark_session.sparkContext, store.path)

    def _check_object_store(self, url: str) -> None:
        """Raise ValueError unless Spark can run these streams in a bucket.

        Spark reads the copy of static streams from this machine's disk. Each process stores it in
        another place, which an existing checkpoint does not know.
        """
        endless = [a for a in self.streams if a not in self._static]
        if endless and self._static:
            raise ValueError(
                f"stream {endless[0]} does not end and stream {next(iter(self._static))} "
                f"is static, which cannot be together in {url}; use a folder, or streams of one "
                "kind"
            )
        if self._static and self.has_remote_hosts():
            raise ValueError(
                f"Spark's workers on other machines cannot read the copy of static streams that a "
                f"run in {url} has on this one; use a folder that all share, or local[*]"
            )
        if url.startswith("memory:"):
            raise ValueError(
                f"{url} is in the memory of this process, which Spark's workers do not see; use "
                "another bucket or a folder"
            )

    def make_replay(
        self,
        batches: int | str,
        times: Mapping[str, str],
        memory: int,
        undivided: Collection[str] = (),
    ) -> static_replay.StaticReplay:
        return static_replay.StaticReplay(self._static, times, batches, memory // COPIES, undivided)

    def record_fingerprints(self) -> dict[str, Any]:
        zone = self.spark_session.conf.get("spark.sql.session.timeZone")
        other = {} if zone in UTC else {"zone": zone}
        return input_fingerprints.record_fingerprints(self.streams, self._static) | other

    def check_input(self, store: RunStore, stored: Mapping[str, Any], resumed: bool) -> None:
        compared = {} if resumed else self._static
        input_fingerprints.check_streams(self.streams, compared, store, stored)

    def check_source_position(self, store: RunStore) -> None:
        """Raise DamagedRunError unless Spark continues from the run's last commit.

        A run in a bucket checks this after it is taken over.
        """
        if store.url:
            return
        store.checkpoint.remove_empty_files(store.check_driver)
        state = store.last_state()
        store.checkpoint.check_epoch(-1 if state is None else state.epoch)

    def open_streams(self, store: RunStore) -> dict[str, DataFrame]:
        """Return the streams as streaming DataFrames.

        Static ones are read from their copy, one file a batch.
        """
        copies = {alias: self._read_input_snapshot(store, alias) for alias in self._static}
        return {alias: copies.get(alias, frame) for alias, frame in self.streams.items()}

    def _read_input_snapshot(self, store: RunStore, alias: str) -> DataFrame:
        schema = static_replay.stored_schema(store.input, alias, self.spark_session)
        reader = self.spark_session.readStream.schema(schema).options(maxFilesPerTrigger=1, **PAGES)
        return reader.parquet(str(store.input.folder / alias))

    def list_column_names(self, streams: Mapping[str, DataFrame]) -> list[list[str]]:
        return [frame.columns for frame in streams.values()]

    def omit_columns(self, columns: Mapping[str, str]) -> dict[str, DataFrame]:
        return {
            alias: frame.drop(columns[alias]) if alias in columns else frame
            for alias, frame in self.streams.items()
        }

    def make_result_schema(
        self,
        streams: Mapping[str, DataFrame],
        weighs: bool,
        structs: Sequence[int] = (),
        changes: Mapping[str, str] | None = None,
        has_change_types: bool = False,
    ) -> T.StructType:
        omitted = {alias: [column] for alias, column in (changes or {}).items()}
        wanted = [each for n, each in enumerate(streams.items()) if not structs or n in structs]
        nested = [
            T.StructField(a, make_spark_nullable(f.drop(*omitted.get(a, ())).schema))
            for a, f in wanted
        ]
        more = [T.StructField(WEIGHT, T.DoubleType())] if weighs else []
        more += [T.StructField(CHANGE_TYPE, T.StringType())] if has_change_types else []
        return T.StructType([*nested, *more])

    def find_result_types(self, streams: Mapping[str, DataFrame]) -> tuple[pa.DataType, ...]:
        return tuple(pa.struct(list(make_arrow_schema(f.schema))) for f in streams.values())

    def union_streams(
        self, join: AnalyzedJoin, streams: Mapping[str, DataFrame]
    ) -> tuple[DataFrame, tuple[StreamLayout, ...]]:
        p, frames = join.predicate, list(streams.values())
        wanted = [
            {TIME: _event_time_sql(join, alias, f)}
            | _condition_columns(join, i, f)
            | shedding_columns(join, i, f)
            | _sign_columns(join, alias)
            for i, (alias, f) in enumerate(streams.items())
        ]
        omitted = [join.config.changes.get(alias) for alias in streams]
        layouts = tuple(
            _with_routing_hash(join, i, each)
            for i, each in enumerate(make_layouts(frames, wanted, omitted))
        )
        parts = []
        for i, frame in enumerate(frames):
            is_filtered = i not in join.config.kind.preserved
            condition = p.filters[i] if is_filtered else None
            part = frame if condition is None else frame.filter(condition)
            rows = frame if (unsent := omitted[i]) is None else frame.drop(unsent)
            key = None if layouts[i].routing else _routing_key_sql(join, i, rows, wanted[i])
            part = project_stream(i, part, key, wanted[i], layouts[i])
            needed = dict.fromkeys(layouts[i].union_column(name) for name in p.key_columns[i])
            if needed and is_filtered:
                there = " AND ".join(f"{slot} IS NOT NULL" for slot in needed)
                time = layouts[i].union_column(TIME)  # those without are counted later
                part = part.filter(f"{time} IS NULL OR ({there})")
            parts.append(part)
        return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts), layouts


def _condition_columns(join: AnalyzedJoin, i: int, frame: DataFrame) -> dict[str, str]:
    """Return Spark SQL for the columns that the condition adds to a stream.

    A preserved stream is not filtered: its tuples that can be in no pair are marked.
    """
    p = join.predicate
    if i in join.config.kind.preserved:
        alias = list(join.config.streams)[i]
        return make_marked_columns(p, i, _event_time_sql(join, alias, frame))
    return p.key_columns[i] | p.computed_columns[i]


def _with_routing_hash(join: AnalyzedJoin, i: int, layout: StreamLayout) -> StreamLayout:
    """Return a stream's layout, with the routing hash if the receiver can compute it.

    It can if the key is the hash of a copied ``bigint`` alone. Spark takes longer to compute it.
    """
    equality = join.predicate.equality
    placement = join.placement
    if placement.routing_key_source != "join" or placement.keys_per_value > 1 or equality is None:
        return layout
    column = equality[i]
    if (column, "int64") not in {(name, kind) for name, _, kind in layout.generated_columns}:
        return layout
    routing = RoutingHash(column, join.config.seed, placement.key_space_size)
    return replace(layout, routing=routing)


def shedding_columns(join: AnalyzedJoin, i: int, frame: DataFrame) -> dict[str, str]:
    """Return, by name, Spark SQL of the columns that load shedding adds to a stream.

    They are the hash by which tuples are sampled, and their utility.
    """
    shed, equality, seed = join.config.shed, join.predicate.equality, join.config.seed
    if shed is None:
        return {}
    by = [str(i), *static_replay.identity_columns(frame)]
    if shed.method == "keys" and equality is not None:
        by = [join.predicate.key_columns[i][equality[i]]]
    columns = {DRAW: f"xxhash64({seed}, 'shed', {', '.join(by)})"}
    if shed.utility:
        columns[WORTH] = join.utilities[i] or "cast(1 as double)"
    return columns


def _sign_columns(join: AnalyzedJoin, alias: str) -> dict[str, str]:
    """Return, by name, Spark SQL of the sign of a stream of changes; empty for another stream."""
    if (column := join.config.changes.get(alias)) is None:
        return {}
    return {SIGN: make_raising_sign_sql(column, join.config.streams[alias][column], alias)}


def _routing_key_sql(
    join: AnalyzedJoin, i: int, frame: DataFrame, columns: Mapping[str, str]
) -> str:
    """Return Spark SQL for the routing key, a seeded hash in [0, keys).

    It hashes the whole tuple, the value of the join's equality, or both. If join values have
    several keys, a hash of the tuple selects one of them. In a shared join it is computed from
    query bitmaps on arrival. ``columns``: Spark SQL of the columns that the condition adds.
    """
    p, placement = join.predicate, join.placement
    if join.config.shares_queries or placement.key_space_size == 1:
        return "0"

    def hash_columns(columns: list[str], count: int) -> str:
        seeded = ", ".join([str(join.config.seed), *columns])
        return f"cast(pmod(xxhash64({seeded}), {count}) as int)"

    keying, size = placement.routing_key_source, placement.key_space_size
    hashable = static_replay.hashable_columns(frame)
    if keying == "equalities":
        return combine_numbers(
            placement, p, i, lambda d, name, n: hash_columns([str(d), columns[name]], n)
        )
    if keying == "tuple" or p.equality is None:
        return hash_columns(hashable, size)
    keys_per_value = placement.keys_per_value
    by_value = hash_columns([columns[p.equality[i]]], size // keys_per_value)
    if keys_per_value == 1:
        return by_value
    return f"{by_value} * {keys_per_value} + {hash_columns(hashable, keys_per_value)}"


def _event_time_sql(join: AnalyzedJoin, alias: str, frame: DataFrame) -> str:
    """Return Spark SQL for the event time in microseconds.

    A tuple without event time gets ``NO_TIME`` if it may have results.
    """
    if (name := join.config.event_time_columns.get(alias)) is None:
        return "cast(0 as bigint)"
    column = f"(`{name}`)"
    is_instant = frame.schema[name].dataType.simpleString() == "timestamp"
    time = f"unix_micros({column if is_instant else f'cast({column} as timestamp)'})"
    return time if join.needs_event_time(alias) else f"coalesce({time}, cast({NO_TIME} as bigint))"
