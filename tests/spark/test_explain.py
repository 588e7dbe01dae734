"""Explaining a join describes it before it starts, and starts nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from braid import Centralized, SharedJoin, StaticGrid, StreamJoin
from braid.explain import Explanation
from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def streams(spark: SparkSession):
    columns = "id bigint, k int, name string, ts timestamp"
    return {a: spark.createDataFrame([], columns) for a in "ab"}


ON = "a.k = b.k AND a.id BETWEEN b.id - 3 AND b.id + 3 AND a.name LIKE '%x' AND a.name < b.name"


def rows(found: Explanation, what: str) -> list[tuple[str, str]]:
    return [(which, how) for kind, which, how in found.rows if kind == what]


def test_a_join_tells_what_it_will_do(streams, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    join = StreamJoin(streams, ON, StaticGrid(8, 2, 4), {"a": "90 seconds"}, "ts", "5 seconds")
    found = join.explain()
    assert rows(found, "filter") == [("a", "(`name` LIKE '%x')")]
    assert [how for _, how in rows(found, "index condition")] == [
        "index: equality: a.k = b.k",
        "index: band: a.id BETWEEN b.id - 3 AND b.id + 3",
        "check: window: -89999999 <= time of a (µs) - time of b (µs)",
    ]
    assert str(found).endswith("residual")
    assert rows(found, "event time") == [("ts", "lateness: 5 s; ahead: 1 d")]
    assert [how for _, how in rows(found, "stream")] == [
        "static, replayed in micro-batches as it is at start(); window: 1 min 30 s",
        "static, replayed in micro-batches as it is at start(); window: full history",
    ]
    (placement,) = rows(found, "placement")
    assert "hosts: 8" in placement[1] and "exactly once" in placement[1]
    copies = [how for _, how in rows(found, "stored")]
    assert "4 copies" in copies[0] and "2 copies" in copies[1]
    assert not list(tmp_path.iterdir())


def test_what_one_host_holds_is_held_once(streams):
    found = StreamJoin(streams, "a.k < b.k", Centralized()).explain()
    assert all("; 1 copies" in how for _, how in rows(found, "stored"))
    assert rows(found, "event time") == [] and "residual" not in str(found)


def test_a_placement_that_is_left_out_is_chosen(streams):
    join = StreamJoin(streams, "a.k = b.k", partitions=3)
    assert join.placement == Centralized()
    said = rows(join.explain(), "placement")
    assert said[1][0] == "auto" and said[1][1].startswith("Centralized for 2 streams, 3 hosts")


def test_a_shared_join_lists_its_queries(streams):
    join = SharedJoin(streams, "a.k = b.k", "ts", "memory")
    join.add("near", "1 minute", {"a": "a.id > 3"})
    found = join.explain()
    assert rows(found, "query") == [("near", "a 1 min; b 1 min; a: (`id` > 3)")]
    assert rows(found, "routing key")[0][1] == "from the queries that a tuple serves"
    (executor,) = rows(found, "executor")
    assert executor[0] == "auto" and "1 threads of this process, or by Spark's tasks" in executor[1]
    assert all("; 1 copies (modelled, in the windows)" in how for _, how in rows(found, "stored"))
    empty = SharedJoin(streams, "a.k = b.k", "ts", "memory").explain(count=True)
    assert all("copies" not in how for _, how in rows(empty, "stored"))
    assert not rows(empty, "state")


def test_the_state_of_a_shared_join_is_estimated_from_its_longest_windows(spark: SparkSession):
    few = spark.range(101).selectExpr("id", "timestamp_seconds(id) AS ts")
    join = SharedJoin({"a": few, "b": few}, "a.id = b.id", "ts", "memory", hosts=2)
    join.add("near", "10 seconds")
    join.add("far", {"a": "50 seconds", "b": "20 seconds"})
    a, b = (how for _, how in rows(join.explain(count=True), "state"))
    assert "estimated: 50 of 101 rows" in a and "1 copies" in a
    assert "estimated: 20 of 101 rows" in b and "no filter counted" in b
    assert not rows(join.explain(), "state")


def test_joins_show_themselves(streams):
    join = StreamJoin(streams, "a.k = b.k", Centralized(), {"a": "1 hour"}, "ts")
    assert repr(join) == "StreamJoin(a ⋈ b on 'a.k = b.k', a within 1 h, Centralized())"
    assert str(join.explain()).splitlines()[0] == "a ⋈ b on a.k = b.k"
    assert join._repr_html_().startswith("<b>a ⋈ b on a.k = b.k</b><table>")


def test_a_shared_run_shows_itself_and_escapes_names(spark: SparkSession, tmp_path: Path):
    few = spark.range(4).selectExpr("id", "timestamp_seconds(id) AS ts")
    join = SharedJoin({"a": few, "b": few}, "a.id = b.id", "ts", "memory")
    join.add("<script>", "1 minute")
    assert "<script>" not in join._repr_html_() and "&lt;script&gt;" in join._repr_html_()
    run = join.start(tmp_path / "<script>", batches=2)
    run.awaitTermination()
    assert repr(run).startswith("SharedRun(a ⋈ b: ") and "batch 2 of 2, 8 tuples" in repr(run)
    page = run._repr_html_().replace(' style="text-align: left"', "")
    assert page.startswith("<b>SharedRun in ") and "<td>batches</td><td>2</td>" in page
    assert "<script>" not in page and "&lt;script&gt;" in page
