"""Load shedding on Spark agrees with the same in this process, for many queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from braid import AdaptiveGrid, SharedJoin, Shed
from braid.core.reserved_columns import DRAW
from braid.core.run_events import BatchShed
from braid.sources.spark_streams import shedding_columns
from braid.stream_join import StreamJoin
from oracle import committed_ids, compute_expected, create_frames, make_tables, result_weights
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from scatter import Scatter

ON = "abs(a.n - b.n) <= 60"
WINDOWS = {"a": 150, "b": 110}


def join(spark: SparkSession, streams: Any, shed: Shed | None, **more: Any) -> StreamJoin:
    windows = {a: f"{w} seconds" for a, w in WINDOWS.items()}
    settings: Any = dict(windows=windows, time="ts", partitions=2, check=True) | more
    return StreamJoin(create_frames(spark, streams), ON, Scatter(), shed=shed, **settings)


def test_both_executors_find_the_same(spark: SparkSession, tmp_path: Path) -> None:
    """Results are a weighted subset of the full join; estimates give their number, in total and by
    group.
    """
    streams = make_tables("ab", 200, seed=5, batches=4)
    full = compute_expected(streams, ON, WINDOWS)
    kept = {}
    for way in ("spark", "process"):
        shed = Shed(fraction=0.5, utility={"a": "CASE WHEN a.flag THEN 5 ELSE 1 END"})
        run = join(spark, streams, shed, executor=way).start(tmp_path / way, batches="batch")
        run.awaitTermination()
        kept[way] = result_weights(run)
        assert set(kept[way]) <= set(full) and len(kept[way]) < full.total()
        whole = run.estimate_results().iloc[-1]
        assert whole["results"] == len(kept[way])
        assert abs(whole["estimated_results"] - full.total()) <= 2.5 * whole["error_95"]
        groups = run.results().groupBy("a.k").agg(F.sum("weight").alias("n")).toPandas()
        assert groups["n"].sum() == pytest.approx(whole["estimated_results"])
    assert kept["spark"] == kept["process"]


def test_a_shared_join_sheds_load(spark: SparkSession, tmp_path: Path) -> None:
    """Each query gets a subset of its own results; with a fraction of 1 it gets all."""
    streams = make_tables("ab", 120, seed=6, batches=3)
    for fraction in (1.0, 0.5):
        shared = SharedJoin(
            create_frames(spark, streams),
            ON,
            "ts",
            "memory",
            check=True,
            shed=Shed(fraction=fraction),
        )
        shared.add("short", "60 seconds")
        shared.add("long", "150 seconds", where={"a": "a.n > 0"})
        run = shared.start(tmp_path / f"{fraction}", batches="batch")
        run.awaitTermination()
        short = compute_expected(streams, ON, {"a": 60, "b": 60})
        rows = run.results("short")
        ids = rows.select(rows["a"]["id"].alias("a"), rows["b"]["id"].alias("b")).collect()
        got = {(r["a"], r["b"]) for r in ids}
        assert len(got) == len(ids) and got <= set(short)
        assert (got == set(short)) == (fraction == 1)
        assert run.results("long").columns == ["a", "b", "weight"]
        assert any(isinstance(e, BatchShed) and e.considered_pairs for e in run.events())


def test_results_as_a_stream_have_weights(spark: SparkSession, tmp_path: Path) -> None:
    streams = make_tables("ab", 60, seed=7, batches=2)
    run = join(spark, streams, Shed(fraction=0.5)).start(tmp_path / "run", batches="batch")
    run.awaitTermination()
    assert run.results_stream().columns[-1] == "weight"
    assert run.results().columns == ["a", "b", "weight"]
    assert committed_ids(run) <= compute_expected(streams, ON, WINDOWS)


def test_tuples_that_differ_are_drawn_apart(spark: SparkSession) -> None:
    """Draws depend on the position of a NULL, on the end of an array, and on maps, which Spark does
    not hash.
    """
    lists = ["array(1, 2)", "array(1)", "array()", "null", "array(null)", "array(null, 1)"]
    rows = [
        f"({x}, {y}, map(), 1, null, named_struct('n', 1, 'm', null))" for x in lists for y in lists
    ]
    rows += ["(null, null, map(), null, 1, null)", "(null, null, map(), 1, null, null)"]
    rows += [
        f"(null, null, {m}, 1, 1, null)" for m in ("map(1, 'a')", "map(1, 'b')", "map()", "null")
    ]
    rows += [
        f"(null, null, null, 2, 2, named_struct('n', {n}))" for n in ("null, 'm', 1", "1, 'm', 1")
    ]
    frame = spark.sql(
        "SELECT cast(x AS array<int>) x, cast(y AS array<int>) y, cast(m AS map<int,string>) m, "
        f"k, l, cast(s AS struct<n:int,m:int>) s FROM VALUES {', '.join(rows)} AS t(x, y, m, k, l, s)"
    )
    join = StreamJoin({"a": frame, "b": frame}, "a.x = b.x", AdaptiveGrid(2), shed=Shed(fraction=1))
    drawn = frame.select(F.expr(shedding_columns(join._join, 0, frame)[DRAW])).toArrow().column(0)
    assert len(drawn) == len(rows) == len(set(drawn.to_pylist()))


def test_a_stream_of_maps_sheds_load(spark: SparkSession, tmp_path: Path) -> None:
    maps = spark.range(200).selectExpr("map('k', id % 3, 'n', id) AS m")
    on = "a.m['k'] = b.m['k']"
    join = StreamJoin({"a": maps, "b": maps}, on, AdaptiveGrid(2), shed=Shed(fraction=0.3))
    run = join.start(tmp_path / "run", batches=1)
    run.awaitTermination()
    assert run.results().count() == pytest.approx(0.3 * 200 * 200 / 3, rel=0.3)
