"""Nullability is not part of Braid's types.

A NULL struct with NOT NULL fields is joined like any other value, at every depth and by both
executors.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from random import Random

import pytest
from braid.condition.spark_type_checker import make_spark_nullable
from braid.papers.baselines.hash_partition import HashPartition
from braid.sources import static_replay
from braid.stream_join import StreamJoin
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

ROWS = 30
LEVELS = 3
"""Nesting levels above a leaf, which is the fourth."""
KINDS = {
    "struct": "named_struct('x', {0}, 'y', id)",
    "array": "array({0})",
    "map": "map(id, {0})",
}


def nested(kinds: tuple[str, ...], draw: Random) -> str:
    """Return Spark SQL of a value that nests these kinds, the first outermost, where each level is
    NULL in some rows or declared NOT NULL.
    """
    if not kinds:
        return _null_in_some_rows("cast(id as int)", draw)
    return _null_in_some_rows(KINDS[kinds[0]].format(nested(kinds[1:], draw)), draw)


def _null_in_some_rows(sql: str, draw: Random) -> str:
    divisor = draw.choice((2, 3, 5))
    return f"if(id % {divisor} = 0, null, {sql})" if draw.random() < 0.5 else sql


def expressions() -> list[str]:
    draw = Random(7)
    several = product(KINDS, repeat=LEVELS)
    return [f"{nested(kinds, draw)} AS {'_'.join(kinds)}" for kinds in several]


def deep(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("coalesce(id, 0L) AS id").selectExpr("id", *expressions())


def texts(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def has_required(kind: T.DataType) -> bool:
    """Return whether a field is NOT NULL somewhere below."""
    if isinstance(kind, T.StructType):
        return any(not f.nullable or has_required(f.dataType) for f in kind.fields)
    if isinstance(kind, T.ArrayType):
        return not kind.containsNull or has_required(kind.elementType)
    if isinstance(kind, T.MapType):
        return not kind.valueContainsNull or has_required(kind.valueType)
    return False


def streaming(spark: SparkSession, folder: Path, rows: int) -> DataFrame:
    spark.range(rows).coalesce(1).write.parquet(str(folder))
    return spark.readStream.schema("id long").parquet(str(folder))


@pytest.mark.parametrize("executor", ["process", "spark"])
@pytest.mark.parametrize("source", ["static", "written by Spark", "streaming"])
def test_null_and_not_null_at_each_of_four_levels(
    spark: SparkSession,
    tmp_path: Path,
    source: str,
    executor: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = deep(spark.range(ROWS))
    required = [f for f in expected.schema.fields if f.nullable and has_required(f.dataType)]
    assert len(required) > 5
    if source == "written by Spark":
        monkeypatch.setattr(static_replay, "_SMALL", 0)
    given = streaming(spark, tmp_path / "in", ROWS) if source == "streaming" else spark.range(ROWS)
    streams = {"a": deep(given), "b": spark.range(ROWS).withColumnRenamed("id", "k")}
    join = StreamJoin(streams, "a.id = b.k", HashPartition(2), executor=executor)
    trigger = {"availableNow": True} if source == "streaming" else {}
    run = join.start(tmp_path / "run", batches=2, **trigger)
    run.awaitTermination()
    joined = run.results().select("a.*")
    assert texts(joined) == texts(expected)
    assert joined.schema == make_spark_nullable(expected.schema)
    assert not has_required(run.results().schema)


@pytest.mark.parametrize("executor", ["process", "spark"])
def test_a_null_struct_with_a_required_field(
    spark: SparkSession, tmp_path: Path, executor: str
) -> None:
    pairs = spark.sql("SELECT 1 i, named_struct('id', 7) p UNION ALL SELECT 2, NULL")
    assert not pairs.schema["p"].dataType["id"].nullable
    streams = {"a": pairs, "b": pairs}
    run = StreamJoin(streams, "a.i = b.i", executor=executor).start(tmp_path / "run", batches=1)
    run.awaitTermination()
    oracle = pairs.alias("a").join(pairs.alias("b"), on="i").select("a.p", "b.p")
    assert texts(run.results().select("a.p", "b.p")) == texts(oracle)
    named = StreamJoin(streams, "a.p = b.p").start(tmp_path / "by value", batches=1)
    named.awaitTermination()
    assert [row.a.p.id for row in named.results().collect()] == [7]
