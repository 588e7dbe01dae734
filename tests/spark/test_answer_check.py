"""Answers of a Spark run, recomputed by Spark's own batch join."""

from __future__ import annotations

from pathlib import Path

import pytest
from braid.answer_check import check_answers
from braid.core.run_state import VERSION
from braid.storage import durable_files
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from oracle import compute_expected, create_frames, make_tables
from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def same_session(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the check use the session of all tests instead of one of its own."""
    monkeypatch.setattr("braid.spark_session.session", lambda: spark)


def test_answers_with_functions_that_spark_alone_knows(spark: SparkSession, tmp_path: Path) -> None:
    streams, on = make_tables("ab", 200, seed=9), "a.n < b.n AND soundex(a.s) = soundex(b.s)"
    windows = {"a": "150 seconds", "b": "110 seconds"}
    join = StreamJoin(create_frames(spark, streams), on, windows=windows, time="ts")
    join.start(tmp_path / "run", batches="batch").awaitTermination()
    report = check_answers(tmp_path / "run")
    assert report.oracle == "Spark" and report.is_right and report.results > 0

    store = RunStore(tmp_path / "run")
    query = (store.read_settings() or {}) | {
        "on": "a.n <= b.n + 50 AND soundex(a.s) = soundex(b.s)"
    }
    durable_files.write_atomically(
        store.settings.path,
        durable_files.encode_checksummed({"format_version": VERSION, **query}),
        False,
    )
    changed = check_answers(tmp_path / "run")
    assert changed.missing > 0 and changed.wrong == 0 and len(changed.examples) == 5


def test_a_stream_that_does_not_end_keeps_no_input(spark: SparkSession, tmp_path: Path) -> None:
    stored = make_tables("ab", 50, seed=2)
    for alias, frame in create_frames(spark, stored).items():
        frame.drop("batch").write.parquet(str(tmp_path / alias))
    endless = {
        a: spark.readStream.schema(spark.read.parquet(str(tmp_path / a)).schema).parquet(
            str(tmp_path / a)
        )
        for a in "ab"
    }
    join = StreamJoin(endless, "a.k = b.k", windows="unbounded")
    run = join.start(tmp_path / "run", availableNow=True)
    run.awaitTermination()
    assert run.results().count() == compute_expected(stored, "a.k = b.k").total()
    with pytest.raises(ValueError, match="stream a does not end and its input is not kept"):
        check_answers(tmp_path / "run")
