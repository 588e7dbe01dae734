"""Read a hub's streams with one Spark streaming query. Answers are DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from braid.condition.spark_type_checker import make_arrow_schema, make_spark_nullable
from braid.condition.sql_types import SqlType
from braid.core.reserved_columns import QUERIES
from braid.errors import EvaluationFailure, SparkResultLimitExceeded
from braid.execution.spark_to_arrow import LIMIT, collect_batch
from braid.execution.stream_layout import make_layouts, project_stream
from braid.hub.flat_results import flat_column_name, flat_columns
from braid.hub.hub_backend import AnswerPart, StreamReader, TickRange
from braid.hub.query_parser import StreamQuery
from braid.hub.spark_answers import TICK, answer_query, check_query
from braid.kernels.join_spec import StreamLayout
from braid.papers.reuse.query_definition import Column
from braid.run_results import read_irregular_rows, read_results
from braid.sources.spark_batches import SparkBatches
from braid.storage.spark_checkpoint import SparkCheckpoint
from braid.util.time_zones import UTC

if TYPE_CHECKING:
    from braid.util.row_tables import RowTable


@dataclass(frozen=True)
class _Arriving:
    """Positions and types of a stream's columns in a batch."""

    layout: StreamLayout
    schema: pa.Schema

    def make_table(self, batches: Sequence[pa.RecordBatch]) -> pa.Table:
        """Return the tuples in these record batches as a table."""
        if not batches:
            return self.schema.empty_table()
        return pa.Table.from_batches(batches).select(self.schema.names).cast(self.schema)


def plan_arrivals(
    frames: Mapping[str, DataFrame], wanted: Mapping[str, Mapping[str, str]]
) -> dict[str, _Arriving]:
    """Return the layout of each stream's tuples with their computed columns: Spark SQL by name."""
    where = make_layouts(list(frames.values()), [wanted[s] for s in frames])
    arrivals = {}
    for (s, frame), layout in zip(frames.items(), where, strict=True):
        columns = [F.col(f"`{c}`") for c in frame.columns]
        computed = frame.select(*columns, *(F.expr(sql).alias(n) for n, sql in wanted[s].items()))
        arrivals[s] = _Arriving(layout, make_arrow_schema(computed.schema))
    return arrivals


def _collect_batch(frame: DataFrame) -> list[pa.RecordBatch]:
    """Collect a batch in this process. Raises RuntimeError if it exceeds Spark's result limit."""
    try:
        return collect_batch(frame)
    except SparkResultLimitExceeded as refused:
        raise RuntimeError(
            f"a batch has more than the {refused.size:,} bytes that {LIMIT} lets Spark hand to a "
            "hub; raise that setting, or let fewer rows come in a batch"
        ) from None


class SparkStreamReader(StreamReader):
    """Reader of streaming DataFrames. ``batches``, ``last_batches``: see StreamReader."""

    evaluation_errors = (PySparkException, duckdb.Error, EvaluationFailure)
    may_hash = False

    def __init__(
        self,
        frames: Mapping[str, DataFrame],
        time: str,
        batches: int | None,
        last_batches: Mapping[str, int] | None = None,
    ) -> None:
        types = {
            s: {f.name: SqlType.parse(f.dataType.simpleString()) for f in frame.schema.fields}
            for s, frame in frames.items()
        }
        super().__init__(types, time, batches, last_batches)
        self.frames = frames
        self.columns = {s: make_spark_nullable(frame.schema) for s, frame in frames.items()}
        self.spark = next(iter(frames.values())).sparkSession
        self._read = plan_arrivals(frames, {s: {} for s in frames})
        self._arriving: dict[str, dict[str, _Arriving]] = {}
        self.utc = self.spark.conf.get("spark.sql.session.timeZone") in UTC
        self.ansi = self.spark.conf.get("spark.sql.ansi.enabled") == "true"

    def _make_field(self, name: str, column: Column) -> T.StructField:
        stream, column_name = column
        return T.StructField(name, self.columns[stream][column_name].dataType)

    def empty_frame(self, columns: Mapping[str, Column]) -> DataFrame:
        return self.spark.createDataFrame([], self._make_schema(columns))

    def find_struct_type(self, columns: Mapping[str, Column]) -> pa.DataType:
        return pa.struct(list(make_arrow_schema(self._make_schema(columns))))

    def _make_schema(self, columns: Mapping[str, Column]) -> T.StructType:
        return T.StructType([self._make_field(n, c) for n, c in columns.items()])

    def read_batch(
        self, source: Any, wanted: Mapping[str, Mapping[str, str]]
    ) -> Mapping[str, pa.Table]:
        """Read a batch in one job. Spark only reads if DuckDB can compute all columns."""
        columns = {s: {c: (s, c) for c in self.schemas[s]} for s in wanted}
        if all(
            self._compile_all_to_duckdb(columns[s], sql) is not None for s, sql in wanted.items()
        ):
            tables = self._split_by_stream(_collect_batch(source), self._read)
            return {s: self.with_computed_columns(s, tables[s], sql) for s, sql in wanted.items()}
        arriving = self._plan_cached_arrivals(wanted)
        parts = [
            project_stream(
                i, self._select_stream_rows(source, i), "0", wanted[s], arriving[s].layout
            )
            for i, s in enumerate(self.frames)
            if s in wanted
        ]
        union = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), parts)
        return self._split_by_stream(_collect_batch(union), arriving)

    def _select_stream_rows(self, source: DataFrame, number: int) -> DataFrame:
        """Return the tuples of a stream in a batch."""
        slots = self._read[list(self.frames)[number]].layout.column_slots
        stream_rows = source.where(F.col("__stream") == number)
        return stream_rows.select(*(F.col(slot).alias(name) for name, slot in slots))

    def _plan_cached_arrivals(
        self, wanted: Mapping[str, Mapping[str, str]]
    ) -> dict[str, _Arriving]:
        """Return the layout of tuples with their computed columns, from a cache of one entry."""
        key = repr(wanted)
        if key not in self._arriving:
            self._arriving = {key: plan_arrivals({s: self.frames[s] for s in wanted}, wanted)}
        return self._arriving[key]

    def _split_by_stream(
        self, batches: Sequence[pa.RecordBatch], arriving: Mapping[str, _Arriving]
    ) -> dict[str, pa.Table]:
        """Return the tuples of a batch by stream."""
        parts: dict[str, list[pa.RecordBatch]] = {s: [] for s in arriving}
        streams = list(self.frames)
        for rows in batches:
            numbers = rows.column("__stream").to_numpy()
            for n in np.unique(numbers).tolist():
                if (stream := streams[n]) in arriving:
                    layout = arriving[stream].layout
                    parts[stream].append(layout.extract_rows(rows, np.flatnonzero(numbers == n)))
        return {s: arriving[s].make_table(stream_rows) for s, stream_rows in parts.items()}

    def compute_columns(
        self, rows: pa.Table, columns: Mapping[str, Column], wanted: Mapping[str, str]
    ) -> pa.Table:
        """Compute Spark SQL for each tuple. Spark decides whether an expression fails.

        Unlike DuckDB, Spark does not evaluate the right side of AND or OR if the left side decides.
        """
        try:
            return super().compute_columns(rows, columns, wanted)
        except duckdb.Error:
            return self.compute_in_spark(rows, columns, wanted)

    def compute_in_spark(
        self, rows: pa.Table, columns: Mapping[str, Column], wanted: Mapping[str, str]
    ) -> pa.Table:
        schema, names = self._make_schema(columns), list(columns)
        if QUERIES in rows.column_names:
            schema, names = schema.add(QUERIES, T.LongType()), [*names, QUERIES]
        given = self.spark.createDataFrame(rows.select(names), schema)
        return given.select(*(F.expr(sql).alias(n) for n, sql in wanted.items())).toArrow()

    def read_irregular_rows(self, files: Mapping[str, Sequence[str]]) -> DataFrame:
        schema = T.StructType([T.StructField(s, columns) for s, columns in self.columns.items()])
        return read_irregular_rows(self.spark, schema, files)

    def check_query(self, query: StreamQuery) -> None:
        fields = [T.StructField(a, self.columns[s]) for a, s in query.aliases.items()]
        check_query(self.spark.createDataFrame([], T.StructType(fields)), query, self.time)

    def answer_query(
        self, query: StreamQuery, parts: Sequence[AnswerPart], ticks: TickRange
    ) -> DataFrame:
        named = [self._read_matches(query, p) for p in parts]
        union = reduce(DataFrame.unionByName, named)
        return answer_query(union, query, self.time, ticks)

    def read_last_rows(self, answer: DataFrame, limit: int, is_ticked: bool) -> RowTable:
        if is_ticked:
            return answer.orderBy(F.desc(TICK)).limit(limit).toPandas()
        return self.spark.createDataFrame(answer.tail(limit), answer.schema).toPandas()

    def _read_matches(self, query: StreamQuery, part: AnswerPart) -> DataFrame:
        """Return the matches of a part: for each alias, a struct of the columns the query reads."""
        plain = self._read_flat_results(part)
        if part.compensation is not None:
            plain = plain.where(F.expr(part.compensation))
        columns = query.columns_read(self.time)
        return plain.select(
            *(
                F.struct(
                    *(
                        F.col(f"`{flat_column_name(s, c)}`").alias(c)
                        for c in self.schemas[s]
                        if c in columns[s]
                    )
                ).alias(a)
                for a, s in query.aliases.items()
            )
        )

    def _read_flat_results(self, part: AnswerPart) -> DataFrame:
        if not part.files:
            return self.empty_frame(flat_columns(part.shape))
        fields = [T.StructField(a, self._make_schema(fields)) for a, fields in part.shape.items()]
        schema = T.StructType([*fields, T.StructField(QUERIES, T.LongType())])
        serves_part = F.col(QUERIES).bitwiseAND(F.lit(1 << part.bit)) != 0
        results = read_results(self.spark, schema, part.files).where(serves_part)
        return results.select(
            *(
                F.col(f"`{alias}`.`{field}`").alias(flat_column_name(*column))
                for alias, fields_of in part.shape.items()
                for field, column in fields_of.items()
            )
        )

    def make_driver(
        self,
        folder: Path,
        done: int,
        trigger: Mapping[str, Any],
        is_stopped: Callable[[], bool],
    ) -> SparkBatches:
        checkpoint = SparkCheckpoint(folder / "checkpoint")
        checkpoint.remove_empty_files()
        checkpoint.check_epoch(done)
        parts = [
            project_stream(i, frame, "0", {}, self._read[s].layout)
            for i, (s, frame) in enumerate(self.frames.items())
        ]
        union = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), parts)
        return SparkBatches(union, checkpoint.folder, trigger, self.last_batch is not None)
