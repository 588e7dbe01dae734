"""Joins of every kind of Spark's streams: the rows of the model, on both executors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from braid.execution import spark_executor
from braid.papers.theta.grid import StaticGrid
from braid.stream_join import StreamJoin
from kind_runs import check_early_case, draw_case
from oracle import create_frames, make_tables
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def test_changes_of_early_answers_and_their_net_are_those_of_the_model(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The net is the rows of final answers."""
    monkeypatch.setattr(spark_executor, "_SHORT", -1.0)  # small batches in stages, too
    case = draw_case(1003)
    first = tuple(t for t in case.tuples if t.batch < 4)
    case = replace(case, tuples=first, failing=frozenset())
    streams = create_frames(spark, case.list_tables())
    check_early_case(case, tmp_path / "run", streams=streams, executor="spark")


STREAMS = make_tables("abc", 120, seed=71, batches=4)
ON = "a.k = b.k AND a.n < b.n"


def make_frames(spark: SparkSession) -> dict[str, DataFrame]:
    return {alias: frame.drop("batch") for alias, frame in create_frames(spark, STREAMS).items()}


def join_by_spark(streams: Mapping[str, DataFrame], how: str) -> DataFrame:
    """Return Spark's own join of the whole frames."""
    words = {"semi": "left_semi", "anti": "left_anti"}.get(how, how)
    a, b = (streams[alias].alias(alias) for alias in "ab")
    return a.join(b, F.expr(ON), words)


@pytest.mark.parametrize(
    ("how", "executor"), [("full", "spark"), ("semi", "process"), ("anti", "process")]
)
def test_static_frames_have_the_rows_of_sparks_own_join(
    spark: SparkSession, tmp_path: Path, how: str, executor: str
) -> None:
    streams = make_frames(spark)
    pair = {alias: streams[alias] for alias in "ab"}
    run = StreamJoin(pair, ON, StaticGrid(4), how=how, executor=executor).start(tmp_path, 2)
    assert run.awaitTermination()
    ids = ("a.id",) if how in ("semi", "anti") else ("a.id", "b.id")
    found, expected = run.results().select(*ids), join_by_spark(streams, how).select(*ids)
    assert Counter(map(tuple, found.collect())) == Counter(map(tuple, expected.collect()))


def test_a_join_reads_the_results_of_a_left_join(spark: SparkSession, tmp_path: Path) -> None:
    """Rows without a partner are in the stream of results, beside a NULL struct."""
    streams = make_frames(spark)
    pair = {alias: streams[alias] for alias in "ab"}
    first = StreamJoin(pair, ON, how="left", executor="process").start(tmp_path / "one", 2)
    assert first.awaitTermination()
    both = {"ab": first.results_stream(), "c": streams["c"]}
    second = StreamJoin(both, "ab.a.k = c.k", windows="unbounded", executor="process")
    run = second.start(tmp_path / "two", 1, availableNow=True)
    assert run.awaitTermination()
    found = run.results().select("ab.a.id", "ab.b.id", "c.id")
    whole = join_by_spark(streams, "left").join(streams["c"].alias("c"), F.expr("a.k = c.k"))
    expected = Counter(map(tuple, whole.select("a.id", "b.id", "c.id").collect()))
    assert Counter(map(tuple, found.collect())) == expected
    assert any(b is None for _, b, _ in expected)
