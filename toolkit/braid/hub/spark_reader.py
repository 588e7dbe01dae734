"""A hub's streams by Spark: one streaming query for all of them; answers are DataFrames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from braid.condition.sqltypes import SqlType
from braid.core.columns import QUERIES
from braid.hub.answers import answer, judged
from braid.hub.flat import columns_of, flat
from braid.hub.query import StreamQuery
from braid.hub.reader import Part, Reader, Ticks, Turn
from braid.papers.reuse.definition import Column


class SparkReader(Reader):
    """Reads DataFrames, all streaming. ``finite``: they end."""

    faults = (PySparkException, duckdb.Error)
    ours = False

    def __init__(self, frames: Mapping[str, DataFrame], time: str, finite: bool) -> None:
        types = {
            s: {f.name: SqlType.of(f.dataType.simpleString()) for f in frame.schema.fields}
            for s, frame in frames.items()
        }
        super().__init__(types, time)
        self.frames, self.finite = frames, finite
        self.spark = next(iter(frames.values())).sparkSession
        self.ansi = self.spark.conf.get("spark.sql.ansi.enabled") == "true"

    def _field(self, name: str, column: Column) -> T.StructField:
        stream, own = column
        return T.StructField(name, self.frames[stream].schema[own].dataType)

    def frame(self, columns: Mapping[str, Column]) -> DataFrame:
        return self.spark.createDataFrame([], self._schema(columns))

    def _schema(self, columns: Mapping[str, Column]) -> T.StructType:
        return T.StructType([self._field(n, c) for n, c in columns.items()])

    def batch(self, source: Any, stream: str, wanted: Mapping[str, str]) -> pa.Table:
        number = list(self.frames).index(stream)
        own = source.where(F.col("__stream") == number).select(f"`__s{number}`.*")
        told = [F.col(f"`{c}`") for c in own.columns]
        return own.select(*told, *(F.expr(sql).alias(n) for n, sql in wanted.items())).toArrow()

    def elsewhere(
        self, rows: pa.Table, columns: Mapping[str, Column], wanted: Mapping[str, str]
    ) -> pa.Table:
        schema, names = self._schema(columns), list(columns)
        if QUERIES in rows.column_names:
            schema, names = schema.add(QUERIES, T.LongType()), [*names, QUERIES]
        known = self.spark.createDataFrame(rows.select(names), schema)
        return known.select(*(F.expr(sql).alias(n) for n, sql in wanted.items())).toArrow()

    def judge(self, query: StreamQuery) -> None:
        fields = [T.StructField(a, self.frames[s].schema) for a, s in query.aliases.items()]
        judged(self.spark.createDataFrame([], T.StructType(fields)), query, self.time)

    def answer(self, query: StreamQuery, parts: Sequence[Part], ticks: Ticks) -> DataFrame:
        named = [self._named(query, p) for p in parts]
        whole = reduce(DataFrame.unionByName, named)
        return answer(whole, query, self.time, ticks)

    def _named(self, query: StreamQuery, part: Part) -> DataFrame:
        """The matches of a part: a struct for each alias, of the columns that the query reads."""
        plain = self._plain(part)
        if part.where is not None:
            plain = plain.where(F.expr(part.where))
        columns = query.read(self.time)
        return plain.select(
            *(
                F.struct(
                    *(F.col(f"`{flat(s, c)}`").alias(c) for c in self.schemas[s] if c in columns[s])
                ).alias(a)
                for a, s in query.aliases.items()
            )
        )

    def _plain(self, part: Part) -> DataFrame:
        if not part.files:
            return self.frame(columns_of(part.shape))
        fields = [T.StructField(a, self._schema(fields)) for a, fields in part.shape.items()]
        schema = T.StructType([*fields, T.StructField(QUERIES, T.LongType())])
        mine = F.col(QUERIES).bitwiseAND(F.lit(1 << part.bit)) != 0
        told = self.spark.read.schema(schema).parquet(*part.files).where(mine)
        return told.select(
            *(
                F.col(f"`{alias}`.`{field}`").alias(flat(*column))
                for alias, fields_of in part.shape.items()
                for field, column in fields_of.items()
            )
        )

    def start(self, turn: Turn, folder: Path, done: int, trigger: Mapping[str, Any]) -> Any:
        def taken(frame: DataFrame, number: int) -> None:
            frame.sparkSession.conf.set("spark.sql.adaptive.enabled", "false")
            turn(frame, number)

        writer = _union(self.frames).writeStream.foreachBatch(taken)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        how = dict(trigger) or ({"availableNow": True} if self.finite else {})
        return (writer.trigger(**how) if how else writer).start()


def _union(frames: Mapping[str, DataFrame]) -> DataFrame:
    """The hub's streams as one: the stream's number, and its tuple as a struct."""
    parts: Iterator[DataFrame] = (
        f.select(F.lit(i).alias("__stream"), F.struct(*f.columns).alias(f"__s{i}"))
        for i, f in enumerate(frames.values())
    )
    whole = next(parts)
    for part in parts:
        whole = whole.unionByName(part, allowMissingColumns=True)
    return whole
