"""Real drivers are killed; each run reports what an undisturbed run reports.

A driver has several runs, each at another moment when it is killed, so that few drivers are needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import driver
import hub_cases
import kafka_cases
import pyarrow as pa
import pytest
from braid.core.run_events import BatchCommitted
from braid.storage.integrity import check_run
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from driver import Run
from driver_process import kill_driver, launch_driver
from hub_cases import LONG, THREE, WIDE, query_rows
from input_splitting import list_input
from kafka_broker import run_broker
from oracle import (
    Ids,
    committed_ids,
    compute_expected,
    create_frames,
    describe_difference,
    result_weights,
    wait_until,
)
from pyspark.sql import SparkSession

KINDS = {"left": {"how": "left"}, "latest": {"match": "latest", "ties": "id"}}
"""Arguments of joins that are not inner."""


@pytest.fixture(scope="module")
def kafka() -> Iterator[str]:
    """Yield the address of a broker that has messages of 40 orders."""
    with run_broker() as servers:
        kafka_cases.send_messages(servers, 0, 40)
        yield servers


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory, kafka: str) -> Path:
    """Yield runs whose driver was killed with signal 9.

    - "spark": after a task of batch 2 had written its files, and right before the commit of batch
      4.
    - "turns": right before the commit of batch 4, which ran in the driver, and of batch 6, which
      ran on Spark.
    - "shed", and "left" and "latest", joins of these kinds: right before the commit of batch 4.
    - "cut": before the input of batch 3 was written.
    - "hub": in the middle of a submission.
    - "kafka": in the sink of batch 1, after it had written.
    """
    folder = tmp_path_factory.mktemp("killed")
    log = folder / "log"
    names = ("spark", "turns", "shed", "hub", "cut")
    spark, turns, shed, hub, cut = (folder / name for name in names)
    stalling = Run(str(spark), "start", stalls=2)
    process = launch_driver(
        log,
        Run(str(turns), "start", 4, "process"),
        Run(str(shed), "start", 4, "spark", 0.4),
        *(Run(str(folder / name), "start", 4, "spark", more=more) for name, more in KINDS.items()),
        Run(str(hub), "hub"),
        Run(str(folder / "kafka"), "kafka", more={"servers": kafka}),
        Run(str(cut), "start", cuts=3),
        stalling,
    )
    try:
        wait_until(lambda: stalling.stalled.exists() or process.poll(), "task to stall", 300)
    finally:
        kill_driver(process, log)
    assert RunStore(spark).log.committed_batches() == [0, 1]
    assert [*RunStore(spark).blocks.folder.glob("000002-*")]
    assert (
        RunStore(turns).log.committed_batches()
        == RunStore(shed).log.committed_batches()
        == [0, 1, 2, 3]
    )
    assert RunStore(cut).log.committed_batches() == [0, 1, 2]
    assert list_input(cut) == {"whole": ["a", "b"], "cut": {"a": [0, 1, 2], "b": [0, 1, 2]}}

    again = [Run(str(spark), "resume", 4), Run(str(turns), "resume", 6)]
    for run in again:
        run.mark.unlink(missing_ok=True)
    process = launch_driver(log, *again)
    try:
        wait_until(
            lambda: all(r.mark.exists() for r in again) or process.poll(), "moment to be held", 300
        )
    finally:
        kill_driver(process, log)
    assert RunStore(turns).log.committed_batches() == [*range(6)]
    return folder


@pytest.mark.parametrize("name", KINDS)
def test_a_driver_of_a_join_of_another_kind_is_killed(
    spark: SparkSession, tmp_path: Path, killed: Path, name: str
) -> None:
    """Results are those of an undisturbed run, without Spark."""
    whole = driver.make_join(driver.STREAMS, **KINDS[name]).start(
        tmp_path / "whole", batches="batch"
    )
    assert whole.awaitTermination()
    store = RunStore(killed / name)
    assert store.log.committed_batches() == [0, 1, 2, 3]
    run = StreamJoin.resume(store.path, create_frames(spark, driver.STREAMS))
    assert run.awaitTermination() and check_run(store.path)[0] == []
    rows = [count_pairs(run.results().toArrow()), count_pairs(whole.results())]
    assert rows[0] == rows[1] and any(b is None for _, b in rows[0]) == (name == "left")


def count_pairs(rows: pa.Table) -> Counter[tuple[int, int | None]]:
    return Counter((row["a"]["id"], row["b"] and row["b"]["id"]) for row in rows.to_pylist())


def truth() -> Ids:
    return compute_expected(driver.STREAMS, driver.ON, driver.WINDOWS)


def test_a_driver_killed_twice(spark: SparkSession, killed: Path) -> None:
    """Files of the interrupted batch are invisible, and are removed."""
    store = RunStore(killed / "spark")
    assert store.log.committed_batches() == [0, 1, 2, 3]
    assert list(store.published.new.glob("000004-*"))
    assert not list(store.published.results.glob("000004-*"))
    run = StreamJoin.resume(store.path, create_frames(spark, driver.STREAMS))
    run.awaitTermination()
    assert store.log.committed_batches() == list(range(8))
    assert describe_difference(committed_ids(run), truth()) == ""
    named = {Path(f).name for f in store.results.result_files()}
    assert {f.name for f in store.published.results.glob("*.parquet")} == named
    assert not list(store.published.new.iterdir())


def test_killed_on_threads_and_resumed_on_spark(spark: SparkSession, killed: Path) -> None:
    store = RunStore(killed / "turns")
    run = StreamJoin.resume(store.path, create_frames(spark, driver.STREAMS), executor="process")
    run.awaitTermination()
    assert store.log.committed_batches() == list(range(8))
    ways = [e.executor for e in run.events() if isinstance(e, BatchCommitted)]
    assert ways == ["process"] * 4 + ["spark"] * 2 + ["process"] * 2
    assert describe_difference(committed_ids(run), truth()) == ""


def test_killed_while_its_input_is_written(spark: SparkSession, killed: Path) -> None:
    run = StreamJoin.resume(killed / "cut", create_frames(spark, driver.STREAMS))
    run.awaitTermination()
    assert run.store.log.committed_batches() == list(range(8))
    assert describe_difference(committed_ids(run), truth()) == ""
    assert list_input(run.store.path)["whole"] == [] and check_run(run.store.path)[0] == []


def test_a_driver_that_sheds_load_is_killed(
    spark: SparkSession, tmp_path: Path, killed: Path
) -> None:
    """Results and weights are those of an undisturbed run."""
    streams = create_frames(spark, driver.STREAMS)
    whole = driver.make_join(streams, fraction=0.4).start(tmp_path / "whole", batches="batch")
    run = StreamJoin.resume(killed / "shed", streams)
    run.awaitTermination()
    whole.awaitTermination()
    assert result_weights(run) == result_weights(whole)
    full = truth()
    assert 0 < len(result_weights(run)) < full.total() and set(result_weights(run)) <= set(full)


def test_a_hub_is_killed_in_the_middle_of_a_submission(
    spark: SparkSession, killed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = hub_cases.make_hub_tables(5)
    script = {3: lambda r: [r.submit(LONG, "again")]}
    run = hub_cases.run_scripted_hub(spark, data, killed / "hub", script, monkeypatch)
    assert set(run.queries) == {"wide", "three", "again"}, "what was not committed is not there"
    for name, sql in (("wide", WIDE), ("three", THREE)):
        assert query_rows(run, name) == hub_cases.expect_rows(data, sql), name
    again, most = run.query("again"), hub_cases.expect_rows(data, LONG, 4)
    sure = hub_cases.expect_rows(data, LONG, 4, complete=again.complete_since)
    assert not sure - query_rows(run, "again") and not query_rows(run, "again") - most


def test_each_message_of_kafka_is_joined_once(
    spark: SparkSession, killed: Path, kafka: str
) -> None:
    """More messages have come while no driver ran. Batch 1 is delivered again."""
    folder = killed / "kafka"
    assert 0 < kafka_cases.read_rows(folder).total() < 80
    paid = kafka_cases.send_messages(kafka, 40, 60)
    run = kafka_cases.run_join(spark, kafka, str(folder))
    assert run.status["batch"] >= 4
    expected = paid + Counter({(n // 2, n): 1 for n in range(80)})
    results = run.results().toArrow().to_pylist()
    assert Counter((row["o"]["id"], row["p"]["amount"]) for row in results) == expected
    assert kafka_cases.read_rows(folder) == expected
