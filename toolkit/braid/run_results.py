"""The results of a run as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.condition.residual_evaluation import query_table
from braid.core.reserved_columns import CHANGE_TYPE
from braid.sources.stream_source import PAGES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

_SERIAL = "spark.sql.sources.parallelPartitionDiscovery.threshold"


def read_results(spark: SparkSession, schema: StructType, files: Sequence[str]) -> DataFrame:
    """Return the content of result files.

    Spark lists more than 32 files in a job with a task for each. Its threshold is raised for this
    call: 0.2 s instead of 8 s for 500 files.
    """
    if not files:
        return spark.createDataFrame([], schema)
    before = spark.conf.get(_SERIAL) or ""
    spark.conf.set(_SERIAL, str(len(files)))
    try:
        return spark.read.schema(schema).options(**PAGES).parquet(*files)
    finally:
        spark.conf.set(_SERIAL, before)


def flatten_results(
    results: DataFrame, columns: Mapping[str, Sequence[str]], times: Mapping[str, str]
) -> DataFrame:
    """Return results with flat columns, as ``JoinRun.results_stream`` has them if asked to.

    ``columns`` has the columns of each alias. Weight and change keep their names. Raises ValueError
    if two columns would have the same name.
    """
    from pyspark.sql import functions as F

    names = {(a, c): f"{a}_{c}" for a, several in columns.items() for c in several}
    more = [name for name in results.columns if name not in columns]
    labels = [*names.values(), *list(times.values())[:1], *more]
    if twice := sorted({n for n in labels if [m.lower() for m in labels].count(n.lower()) > 1}):
        raise ValueError(
            f"the results would have several columns {twice}; rename columns of the streams so "
            "that alias_column differs"
        )
    wanted = [F.col(f"`{a}`.`{c}`").alias(name) for (a, c), name in names.items()]
    return results.select(*wanted, *_make_event_time(times), *map(F.col, more))


def add_event_time(
    results: DataFrame, columns: Mapping[str, Sequence[str]], times: Mapping[str, str]
) -> DataFrame:
    """Return results as they are stored, a struct for each alias, with their event time.

    ``columns`` has the columns of each alias. Raises ValueError if the event-time column would have
    the name of another one.
    """
    from pyspark.sql import functions as F

    event_times = {name.lower() for name in _name_event_time(times)}
    taken = [name for name in results.columns if name.lower() in event_times]
    if taken:
        raise ValueError(
            f"the results would have several columns {taken}; use another alias than the name of "
            "the event-time column, or flat=True"
        )
    more = [name for name in results.columns if name not in columns]
    structs = [F.col(f"`{alias}`") for alias in columns]
    return results.select(*structs, *_make_event_time(times), *map(F.col, more))


def _make_event_time(times: Mapping[str, str]) -> list[Column]:
    """Return the column of the latest event time of a result's members; none without event time.

    It is named as that of the first stream.
    """
    from pyspark.sql import functions as F

    members = [F.col(f"`{a}`.`{t}`").cast("timestamp") for a, t in times.items()]
    latest = members[0] if len(members) == 1 else F.greatest(*members) if members else None
    return [] if latest is None else [latest.alias(name) for name in _name_event_time(times)]


def _name_event_time(times: Mapping[str, str]) -> list[str]:
    return list(times.values())[:1]


def sum_changes(changes: DataFrame) -> DataFrame:
    """Return the net of changes: each row as often as it was inserted more than deleted.

    A row that was deleted more often is a deletion.
    """
    from pyspark.sql import functions as F

    rows = [name for name in changes.columns if name != CHANGE_TYPE]
    sign = F.when(F.col(CHANGE_TYPE) == "insert", 1).otherwise(-1)
    net = changes.groupBy(*rows).agg(F.sum(sign).alias("__net")).where("__net != 0")
    change = F.when(F.col("__net") > 0, "insert").otherwise("delete")
    times = F.explode(F.array_repeat(change, F.abs("__net").cast("int")))
    return net.select(*rows, times.alias(CHANGE_TYPE))


def sum_table_changes(changes: pa.Table) -> pa.Table:
    """Return the same for a table."""
    rows = [name for name in changes.column_names if name != CHANGE_TYPE]
    numbered = changes.append_column("__row", pa.array(np.arange(changes.num_rows)))
    names = ", ".join(f'"{name}"' for name in rows)
    sign = f"CASE WHEN {CHANGE_TYPE} = 'insert' THEN 1 ELSE -1 END"
    net = query_table(
        f"SELECT min(__row) AS first, sum({sign})::BIGINT AS net FROM tuples GROUP BY {names} "
        "HAVING net != 0 ORDER BY first",
        numbered,
    )
    counts = net["net"].to_numpy()
    at = np.repeat(net["first"].to_numpy(), np.abs(counts))
    change = pa.array(np.repeat(np.where(counts > 0, "insert", "delete"), np.abs(counts)))
    place = changes.column_names.index(CHANGE_TYPE)
    return changes.take(at).set_column(place, CHANGE_TYPE, change.cast(pa.string()))


def read_irregular_rows(
    spark: SparkSession, schema: StructType, files: Mapping[str, Sequence[str]]
) -> DataFrame:
    """Return irregular rows as ``JoinRun.late`` has them, from their files by alias.

    ``schema`` has a struct for each alias.
    """
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    stored = [T.StructField("batch", T.IntegerType()), T.StructField("reason", T.StringType())]
    stored.append(T.StructField("behind", T.LongType()))
    aliases = [f.name for f in schema.fields if isinstance(f.dataType, T.StructType)]
    behind = F.expr("make_dt_interval(0, 0, 0, cast(behind as decimal(20, 0)) / 1000000)")
    parts = []
    for alias in aliases:
        stored_rows = read_results(
            spark,
            T.StructType([*stored, T.StructField("row", schema[alias].dataType)]),
            files.get(alias, []),
        )
        members = [
            (F.col("row") if a == alias else F.lit(None).cast(schema[a].dataType)).alias(a)
            for a in aliases
        ]
        columns = F.lit(alias).alias("stream"), "reason", behind.alias("behind"), "batch"
        parts.append(stored_rows.select(*columns, F.struct(*members).alias("row")))
    return reduce(type(parts[0]).union, parts)


def collect_irregular_tables(
    schema: pa.Schema, tables: Mapping[str, Sequence[pa.Table]]
) -> pa.Table:
    """Return the same for tables by alias, in the order of batches and streams."""
    aliases = [field.name for field in schema if pa.types.is_struct(field.type)]
    members = pa.struct([schema.field(alias) for alias in aliases])
    result = pa.schema(
        [
            ("stream", pa.string()),
            ("reason", pa.string()),
            ("behind", pa.duration("us")),
            ("batch", pa.int32()),
            ("row", members),
        ]
    )
    parts = [result.empty_table()]
    for alias in aliases:
        for table in tables.get(alias, []):
            rows = table["row"].combine_chunks().cast(schema.field(alias).type)
            nested = [
                rows if a == alias else pa.nulls(len(rows), schema.field(a).type) for a in aliases
            ]
            columns = {
                "stream": pa.repeat(pa.scalar(alias), len(rows)),
                "reason": table["reason"],
                "behind": table["behind"].cast(pa.duration("us")),
                "batch": table["batch"],
                "row": pa.StructArray.from_arrays(nested, fields=list(members)),
            }
            parts.append(pa.table(columns, schema=result))
    return pa.concat_tables(parts).sort_by([("batch", "ascending"), ("stream", "ascending")])
