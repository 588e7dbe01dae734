"""``why`` on Spark: static streams, streams that do not end, and parts that only Spark evaluates."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import braid
import pyarrow as pa
import pytest
from braid import AdaptiveGrid, Centralized, SharedJoin, StreamJoin
from braid.answer_check import check_answers
from braid.storage.integrity import check_run, repair_run
from pyspark.sql import SparkSession
from spark.test_watermarks import NEAR, STREAMS, live
from unit.test_why import CAUSES, ON, SECOND, make_orders


def test_causes_are_named_in_a_run_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    streams = {alias: spark.createDataFrame(rows) for alias, rows in make_orders().items()}
    on = f"{ON} AND round(o.total, 1) > 2"
    join = StreamJoin(streams, on, Centralized(), windows="90 seconds", time="ts")
    run = join.start(tmp_path / "run", batches="batch")
    assert run.awaitTermination()
    answers = {cause: run.why({"o": o, "p": p}) for cause, (o, p) in CAUSES.items()}
    assert {cause: answer.verdict for cause, answer in answers.items()} == dict(
        zip(CAUSES, CAUSES, strict=True)
    )
    without_session = braid.why(tmp_path / "run", {"o": "id = 2", "p": "order_id = 2"})
    assert without_session.pairs[0].also == ("unknown",)
    assert "DuckDB may evaluate ROUND(o.total, 1) differently from Spark" in str(without_session)


def test_a_time_without_a_zone_is_read_in_the_zone_of_the_session(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It is 12:00 in Berlin, 11:00 in UTC: 5 minutes before the payment, which is an instant."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        orders = spark.sql("SELECT 1 AS id, timestamp_ntz'2026-01-02 12:00:00' AS ts")
        payments = spark.sql("SELECT 1 AS order_id, timestamp'2026-01-02 11:05:00Z' AS ts")
        streams = {"o": orders, "p": payments}
        join = StreamJoin(streams, "o.id = p.order_id", windows="30 minutes", time="ts")
        assert join.start(tmp_path / "run", batches=1).awaitTermination()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    answer = braid.why(tmp_path / "run", {"o": "id = 1", "p": "order_id = 1"})
    assert answer.verdict == "found", str(answer)
    assert "o id 1 (2026-01-02 11:00:00, " in str(answer)
    assert check_answers(tmp_path / "run").is_right


QUERIES: dict[str, dict[str, Any]] = {
    "pairs": {"where": {"o": "o.total > 5"}},
    "full": {"how": "full"},
    "anti": {"how": "anti"},
    "first": {"match": "first"},
    "brief": {},
}
SHARED_CAUSES = {
    "found": ("pairs", {"o": "id = 1", "p": "amount = 80"}),
    "condition": ("pairs", {"o": "id = 2", "p": "order_id = 2"}),
    "filtered": ("pairs", {"o": "id = 3", "p": "order_id = 3"}),
    "untimed": ("pairs", {"o": "id = 5", "p": "order_id = 5"}),
    "window": ("pairs", {"o": "id = 1", "p": "amount = 60"}),
    "late": ("pairs", {"o": "id = 1", "p": "amount = 70"}),
    "never arrived": ("pairs", {"o": "id = 99"}),
    "not delivered": ("pairs", {"o": "id = 8", "p": "order_id = 8"}),
    "unmatched": ("full", {"o": "id = 2"}),
    "waiting": ("full", {"o": "id = 7"}),
    "matched": ("anti", {"o": "id = 1", "p": "order_id = 1 AND amount = 80"}),
    "outranked": ("first", {"o": "id = 6", "p": "amount = 90"}),
    "not served": ("brief", {"o": "id = 6", "p": "amount = 80"}),
}
"""By verdict, a query of a shared run and selectors."""


def test_causes_are_named_for_the_queries_of_a_shared_run_on_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A query is removed before a pair comes, and the sink fails on the last batch."""
    tables = make_orders()
    again = pa.table(
        [[6], [90], pa.array([131 * SECOND], pa.timestamp("us")), [2]], tables["p"].schema
    )
    tables["p"] = pa.concat_tables([tables["p"], again])
    streams = {alias: spark.createDataFrame(rows) for alias, rows in tables.items()}
    join = SharedJoin(streams, "o.id = p.order_id AND p.amount < o.total", "ts", "memory")
    for name, arguments in QUERIES.items():
        join.add(name, "90 seconds", **arguments)
    started = Future[Any]()

    def give(results: Any, batch: int) -> None:
        if batch == 1:
            started.result(60).remove("brief")
        if batch == 5:
            raise RuntimeError("the sink is full")

    run = join.start(tmp_path / "run", batches="batch", foreachBatch=give)
    started.set_result(run)
    with pytest.raises(RuntimeError, match="the sink is full"):
        run.awaitTermination()
    for cause, (query, rows) in SHARED_CAUSES.items():
        answer = braid.why(tmp_path / "run", rows, query=query)
        assert answer.verdict == cause, str(answer)
    for query in ("pairs", "anti", "first"):
        answer = braid.why(tmp_path / "run", {"o": "true", "p": "true"}, query=query)
        assert "fault" not in {pair.verdict for pair in answer.pairs}


def test_tuples_of_a_stream_that_are_gone_are_unknown(spark: SparkSession, tmp_path: Path) -> None:
    streams = {a: live(spark, tmp_path, a).withWatermark("ts", "1 minute") for a in "ab"}
    run = StreamJoin(streams, NEAR, Centralized()).start(tmp_path / "run", availableNow=True)
    assert run.awaitTermination()
    pair = run.results().selectExpr("a.id AS a", "b.id AS b").first()
    assert pair is not None
    assert run.why({"a": {"id": pair.a}, "b": {"id": pair.b}}).verdict == "found"
    gone = run.why({"a": "id = 0", "b": "id = 149"})
    assert gone.verdict in ("unknown", "condition") and "fault" not in str(gone)
    answer = run.why({"a": "true", "b": "true"}, limit=100)
    assert "fault" not in {judged.verdict for judged in answer.pairs}
    never = run.why({"a": "id = 100000", "b": "true"})
    assert (never.verdict, never.is_certain) == ("unknown", False)
    assert 'does not end are not kept, and start(trace="7 days") keeps them' in str(never)
    partners = {row.b for row in run.results().selectExpr("b.id AS b").collect()}
    lonely = ", ".join(str(id) for id in range(150) if id not in partners)
    alone = run.why({"b": f"id IN ({lonely})"}, limit=100)
    assert {judged.verdict for judged in alone.pairs} <= {"unknown", "late", "condition"}
    ends = {(judged.verdict, step.outcome) for judged in alone.pairs for step in judged.steps}
    assert ("unknown", "unknown") in ends and ("condition", "none") not in ends
    assert not alone.is_certain


def test_tuples_of_a_traced_stream_are_known_when_they_are_gone(
    spark: SparkSession, tmp_path: Path
) -> None:
    streams = {a: live(spark, tmp_path, a).withWatermark("ts", "1 minute") for a in "ab"}
    join, path = StreamJoin(streams, NEAR, AdaptiveGrid(hosts=4)), tmp_path / "run"
    run = join.start(path, availableNow=True, trace="1 day", durability="process")
    assert run.awaitTermination()
    never = run.why({"a": "id = 100000", "b": "true"})
    assert (never.verdict, never.is_certain) == ("never arrived", True)
    keyed = STREAMS["a"].num_rows - STREAMS["a"]["k"].null_count
    assert f"no tuple of a with id = 100000 is among the {keyed} of batches 1 to 5, wi" in str(
        never
    )
    answer = run.why({"a": "true", "b": "true"}, limit=100)
    assert len(answer.pairs) == 10_000 and answer.is_certain
    verdicts = {judged.verdict for judged in answer.pairs}
    assert verdicts <= {"found", "condition", "window", "late", "untimed"}, verdicts
    assert sum(pair.verdict == "found" for pair in answer.pairs) > 0
    assert check_run(path)[0] == []
    assert len([*path.glob("trace/*.parquet")]) == 10
    (file,) = path.glob("trace/000000-*-0.parquet")
    file.write_bytes(file.read_bytes()[:-1])
    assert [fault for fault in check_run(path)[0] if file.name in fault]
    run.stop()
    assert [text for text in repair_run(path) if file.name in text]
    assert check_run(path)[0] == [] and not file.exists()
    assert run.why({"a": "id = 100000", "b": "true"}).verdict == "unknown"
