"""Replay static DataFrames as streams, with one Parquet file per micro-batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from braid.condition.spark_type_checker import make_arrow_schema, make_spark_nullable
from braid.core.reserved_columns import make_nullable
from braid.errors import CollectLimitExceeded
from braid.execution.spark_to_arrow import ByteBudget, collect_batch, scanned_bytes
from braid.storage import durable_files, micro_batch_files, staged_input
from braid.storage.jvm_file_scheme import make_own_path
from braid.storage.micro_batch_files import MicroBatches
from braid.storage.static_input_copy import InputSnapshot
from braid.util.clock_and_threads import current_environment, current_workers
from braid.util.file_system import current_file_system

_NUMBER = "__batch"
_SMALL = 128 << 20
"""Bytes up to which this process sorts and writes faster than Spark's tasks."""
_SCHEMA = "org.apache.spark.sql.parquet.row.metadata"
"""Metadata key under which Spark stores column types in a Parquet file."""
_PLAIN = frozenset(
    (
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double"),
        *("string", "binary", "date", "timestamp", "timestamp_ntz"),
    )
)


class StaticReplay:
    """Static frames to replay in micro-batches, by stream.

    - ``times``: event-time columns by alias. Micro-batches are quantiles of event time over all
      frames, so that streams advance together. Without event times, tuples are spread by a hash.
    - ``batches``: number of micro-batches, or an integer column that numbers them from 0. That
      column is not part of the stream.
    - ``undivided``: streams that come whole in the first micro-batch, unless a column numbers them.
    - ``most``: bytes up to which rows are collected in this process. Beyond that, Spark writes the
      files.

    Raises ValueError unless the column exists and numbers the micro-batch of every tuple.
    """

    def __init__(
        self,
        frames: Mapping[str, DataFrame],
        times: Mapping[str, str],
        batches: int | str,
        most: int,
        undivided: Collection[str] = (),
    ) -> None:
        self.frames, self.times, self.batches, self.undivided = frames, times, batches, undivided
        if isinstance(batches, str):
            for alias, frame in frames.items():
                _check_column(alias, frame, batches)
        self.tables = self._collect_tables(min(most, _SMALL))
        if isinstance(batches, str):
            for alias, frame in frames.items():
                if self.tables is None:
                    _check_numbers(alias, frame, batches)
                else:
                    micro_batch_files.check_numbering(alias, batches, self.tables[alias][_NUMBER])

    def _collect_tables(self, most: int) -> dict[str, pa.Table] | None:
        """Return the collected rows with the column that determines their micro-batch.

        None if they are too large, or have types that Arrow and Spark write differently.
        """
        frames = self.frames.values()
        is_supported = all(
            _has_same_encoding(f.dataType) for frame in frames for f in frame.schema.fields
        )
        if not is_supported or sum(map(scanned_bytes, frames)) > most:
            return None
        allowed = ByteBudget(most)
        with current_workers().open_pool("braid-collect", len(self.frames)) as at_once:
            collected = at_once.map(lambda alias: self._collect_rows(alias, allowed), self.frames)
            try:
                return dict(zip(self.frames, collected, strict=True))
            except CollectLimitExceeded:
                return None

    def _collect_rows(self, alias: str, allowed: ByteBudget) -> pa.Table:
        """Return a stream's collected rows. Raises CollectLimitExceeded."""
        frame = self.frames[alias]
        numbered = frame.withColumn(_NUMBER, self._micro_batch_source(alias, frame))
        batches = collect_batch(numbered, allowed)
        if not batches:
            return make_arrow_schema(numbered.schema).empty_table()
        rows = pa.Table.from_batches(batches)
        return rows.cast(make_nullable(rows.schema))

    def _micro_batch_source(self, alias: str, frame: DataFrame) -> Column:
        if isinstance(self.batches, int):
            if alias in self.undivided:
                return F.lit(0)
            if (time := self.times.get(alias)) is not None:
                return _event_time_column(time)
        return _micro_batch_column(frame, None, self.batches, [])

    def write_input(
        self, folder: Path, check: Callable[[], None] = durable_files.skip_check
    ) -> MicroBatches:
        """Write the streams under ``folder``. Return their extent.

        Collected rows are staged for splitting; Spark writes one file per micro-batch. ``check``
        raises FencedError if another driver has taken over the run.
        """
        if self.tables is None:
            extent = self._write_with_spark(folder, check)
            micro_batch_files.remove_extra_files(
                folder, self.frames, extent.batches, check, keeps_staged=False
            )
            return extent
        extent = self._write_on_driver(folder, self.tables, check)
        micro_batch_files.remove_extra_files(folder, self.frames, extent.batches, check)
        self.tables = None  # free the rows while the run goes on
        pa.default_memory_pool().release_unused()
        return extent

    def _write_on_driver(
        self, folder: Path, tables: Mapping[str, pa.Table], check: Callable[[], None]
    ) -> MicroBatches:
        column, batches = {a: t[_NUMBER] for a, t in tables.items()}, self.batches
        if isinstance(batches, int) and self.times:
            timed = {alias: column[alias] for alias in self.times}
            numbers = {alias: column[alias].to_numpy() for alias in self.undivided}
            numbers |= micro_batch_files.number_by_time(timed, batches)
        else:
            numbers = {a: n.to_numpy() for a, n in column.items()}
        extent = micro_batch_files.count_batches(numbers, batches)
        for alias, rows in tables.items():
            selected = rows.select(self._stream_schema(alias).names)
            selected = selected.replace_schema_metadata(self._schema_metadata(alias))
            staged_input.write_stream(
                selected, numbers[alias], extent.batches, folder, alias, check
            )
        return extent

    def _stream_schema(self, alias: str) -> T.StructType:
        """Return the columns of the stream."""
        fields = self.frames[alias].schema.fields
        return make_spark_nullable(T.StructType([f for f in fields if f.name != self.batches]))

    def _schema_metadata(self, alias: str) -> dict[str, str]:
        return {_SCHEMA: self._stream_schema(alias).json()}

    def _write_with_spark(self, folder: Path, check: Callable[[], None]) -> MicroBatches:
        frames, times, batches = self.frames, self.times, self.batches
        cuts = (
            _find_time_quantiles(frames, times, batches)
            if isinstance(batches, int) and times
            else []
        )
        count = (
            batches
            if isinstance(batches, int)
            else 1 + max(0, *(_find_last_number(f, batches) for f in frames.values()))
        )
        last: dict[str, int] = {}
        for alias, frame in frames.items():
            number = _micro_batch_column(frame, times.get(alias), batches, cuts)
            if isinstance(batches, int) and alias in self.undivided:
                number = F.lit(0)
            numbered = frame.withColumn(_NUMBER, number)
            if isinstance(batches, str):
                numbered = numbered.drop(batches)
            written = folder / f".{alias}-{current_environment().make_token()}"
            writer = numbered.repartition(F.col(_NUMBER)).write.partitionBy(_NUMBER)
            writer.option("maxRecordsPerFile", 0).parquet(
                make_own_path(frame.sparkSession, written)
            )
            schema = make_arrow_schema(self._stream_schema(alias))
            check()
            last[alias] = _arrange_micro_batches(
                written, folder / alias, count, schema.with_metadata(self._schema_metadata(alias))
            )
            current_file_system().remove_folder(written)
        return MicroBatches(count, last)


def stored_schema(copied: InputSnapshot, alias: str, spark: SparkSession) -> T.StructType:
    """Return the columns of a copied stream, from the metadata that Spark's writer leaves.

    If a file lacks the metadata, Spark reads its schema.
    """
    encoded = (copied.stream_schema(alias).metadata or {}).get(_SCHEMA.encode())
    return make_spark_nullable(
        spark.read.parquet(str(micro_batch_files.batch_file(copied.folder / alias, 0))).schema
        if encoded is None
        else T.StructType.fromJson(json.loads(encoded))
    )


def _check_column(alias: str, frame: DataFrame, column: str) -> None:
    if column not in frame.columns:
        raise ValueError(f"stream {alias} has no column {column!r} that numbers its micro-batches")
    if not isinstance(frame.schema[column].dataType, T.IntegralType):
        raise ValueError(
            f"the column {alias}.{column} is of type "
            f"{frame.schema[column].dataType.simpleString()}; to number micro-batches it "
            "must be an integer"
        )


def _check_numbers(alias: str, frame: DataFrame, column: str) -> None:
    number = F.col(f"`{column}`")
    wrong = frame.filter(number.isNull() | (number < 0)).select(number).first()
    if wrong is not None:
        raise micro_batch_files.numbering_error(alias, column, wrong[0])


def _has_same_encoding(kind: T.DataType) -> bool:
    """Return whether Arrow and Spark write the type to Parquet alike."""
    if isinstance(kind, T.ArrayType):
        return _has_same_encoding(kind.elementType)
    if isinstance(kind, T.MapType):
        return _has_same_encoding(kind.keyType) and _has_same_encoding(kind.valueType)
    if isinstance(kind, T.StructType):
        return all(_has_same_encoding(f.dataType) for f in kind.fields)
    return kind.simpleString() in _PLAIN or isinstance(kind, T.DecimalType)


def measure_extent(frame: DataFrame, time: str | None) -> tuple[int, int]:
    """Return the number of rows and the microseconds between the first and last event time."""
    times = F.lit(0) if time is None else _event_time_column(time)
    row = frame.agg(F.count(F.lit(1)), F.coalesce(F.max(times) - F.min(times), F.lit(0))).first()
    assert row is not None
    return int(row[0]), int(row[1])


def hashable_columns(frame: DataFrame) -> list[str]:
    """Return Spark SQL for the columns that Spark can hash: all except maps and variants.

    Columns that contain maps or variants are left out too.
    """
    return [f"`{f.name}`" for f in frame.schema.fields if _is_hashable(f.dataType)]


def identity_columns(frame: DataFrame) -> list[str]:
    """Return Spark SQL for expressions whose hash distinguishes tuples.

    The hash of the columns alone ignores NULLs and the ends of arrays, and does not exist for maps.
    """
    return [text for f in frame.schema.fields for text in _identity_expressions(f)]


def _identity_expressions(f: T.StructField) -> list[str]:
    name = f"`{f.name}`"
    hashable = [name] if _is_hashable(f.dataType) else []
    is_real = isinstance(f.dataType, (T.FloatType, T.DoubleType))
    nested = isinstance(f.dataType, (T.ArrayType, T.StructType, T.MapType, T.VariantType))
    return [
        *hashable,
        *([f"cast({name} as string)"] if nested else []),
        *([f"if({name} = 0, cast({name} as string), null)"] if is_real else []),  # -0.0
        *([f"{name} is null"] if f.nullable else []),
    ]


def _is_hashable(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return all(_is_hashable(f.dataType) for f in kind.fields)
    return (
        _is_hashable(kind.elementType)
        if isinstance(kind, T.ArrayType)
        else not isinstance(kind, (T.MapType, T.VariantType))
    )


def _micro_batch_column(
    frame: DataFrame, time: str | None, batches: int | str, cuts: list[int]
) -> Column:
    if isinstance(batches, str):
        return F.expr(f"cast(`{batches}` as int)")
    if time is None:
        return F.expr(
            f"cast(pmod(xxhash64({', '.join(['0', *hashable_columns(frame)])}), {batches}) as int)"
        )
    return count_cuts_below(f"unix_micros(CAST(`{time}` AS TIMESTAMP))", cuts).cast("int")


def count_cuts_below(value: str, cuts: Sequence[int]) -> Column:
    """Return the number of ascending ``cuts`` below ``value``, as a balanced tree of comparisons.

    ``value``: SQL text; NULL counts none. Text goes to Spark in one call, whereas a tree of columns
    takes a call for each part.
    """
    return F.expr(_make_search_tree_sql(value, cuts, 0))


def _make_search_tree_sql(value: str, cuts: Sequence[int], low: int) -> str:
    if not cuts:
        return str(low)
    middle = len(cuts) // 2
    below, above = (
        _make_search_tree_sql(value, cuts[:middle], low),
        _make_search_tree_sql(value, cuts[middle + 1 :], low + middle + 1),
    )
    return f"CASE WHEN {value} > {cuts[middle]}L THEN {above} ELSE {below} END"


def _event_time_column(time: str) -> Column:
    return F.expr(f"unix_micros(cast(`{time}` as timestamp))")


def _find_time_quantiles(
    frames: Mapping[str, DataFrame], named: Mapping[str, str], batches: int
) -> list[int]:
    """Return the event times at which micro-batches begin: quantiles over all frames."""
    shares = [k / batches for k in range(1, batches)]
    if not shares:
        return []
    times = reduce(
        DataFrame.unionAll,
        (frames[a].select(_event_time_column(name).alias("t")) for a, name in named.items()),
    )
    row = times.select(F.percentile_approx("t", F.array(*map(F.lit, shares)), 10_000)).first()
    return sorted(set(row[0])) if row is not None and row[0] is not None else []


def _find_last_number(frame: DataFrame, column: str) -> int:
    row = frame.agg(F.max(f"`{column}`")).first()
    return -1 if row is None or row[0] is None else int(row[0])


def _arrange_micro_batches(written: Path, target: Path, count: int, schema: pa.Schema) -> int:
    """Move written files into place, one per micro-batch, with empty ones for the rest.

    Return the last micro-batch that has tuples; -1: none has.
    """
    current_file_system().make_folder(target)
    last = -1
    for k in range(count):
        file = micro_batch_files.batch_file(target, k)
        parts = current_file_system().find_files(written / f"{_NUMBER}={k}", "*.parquet")
        if parts:
            current_file_system().replace_file(parts[0], file)
            last = k
        else:
            with current_file_system().open_sink(file) as sink:
                pq.write_table(schema.empty_table(), sink)
    micro_batch_files.order_by_mtime(target, count)
    return last
