"""A run resumes only with the Spark streams that it started with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import braid
import pytest
from braid.papers.baselines.centralized import Centralized
from braid.sources.input_fingerprints import (
    InputFingerprint,
    describe_sources,
    find_sockets,
    fingerprint_frame,
    record_fingerprints,
)
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from pyspark.sql import DataFrame, SparkSession


def join(frame: DataFrame, **more: Any) -> StreamJoin:
    return StreamJoin({"a": frame, "b": frame}, "a.id = b.id", Centralized(), **more)


def test_an_old_folder_refuses_other_rows(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(1, [1]), (2, None)], "id bigint, l array<int>")
    same = spark.createDataFrame([(2, None), (1, [1])], "id bigint, l array<int>")
    assert join(rows).start(tmp_path / "run", batches=2).awaitTermination()
    assert join(same).start(tmp_path / "run").awaitTermination()
    for other in ([(1, [1]), (2, [])], [(1, [1])]):
        frame = spark.createDataFrame(other, "id bigint, l array<int>")
        says = f"stream a has {len(other)} rows where the run in .* began with 2 others; use a new"
        with pytest.raises(ValueError, match=says):
            join(frame).start(tmp_path / "run")
        run = StreamJoin.resume(tmp_path / "run", {"a": frame, "b": frame})
        assert run.awaitTermination() and run.results().count() == 2


def test_a_negative_zero_is_another_value(spark: SparkSession) -> None:
    def fingerprint(zero: float) -> InputFingerprint:
        return fingerprint_frame(spark.createDataFrame([(zero,)], "x double"))

    assert fingerprint(0.0) == fingerprint(0.0) != fingerprint(-0.0)


def test_files_that_stay_are_not_scanned_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "rows")
    spark.range(9).write.parquet(file)
    assert join(spark.read.parquet(file)).start(tmp_path / "run", batches=8).awaitTermination()
    scanned: list[DataFrame] = []
    monkeypatch.setattr("braid.sources.input_fingerprints.fingerprint_frame", scanned.append)
    assert join(spark.read.parquet(file)).start(tmp_path / "run").awaitTermination()
    assert not scanned
    monkeypatch.undo()
    assert braid.doctor(tmp_path / "run", ["stale"]).findings == ()
    spark.range(9, 10).write.mode("append").parquet(file)
    with pytest.raises(ValueError, match="stream a has 10 rows where the run in .* with 9 others"):
        join(spark.read.parquet(file)).start(tmp_path / "run")
    stale = [finding.sentence for finding in braid.doctor(tmp_path / "run", ["stale"]).findings]
    assert [sentence.split(":")[0] for sentence in stale] == [
        f"files of {stream} that changed, came or went since the run copied them" for stream in "ab"
    ]
    with pytest.raises(ValueError, match="stream a has 1 rows where the run in .* with 9 others"):
        join(spark.read.parquet(file).filter("id = 9")).start(tmp_path / "run")


def test_another_streaming_source_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    frames = []
    for name in ("one", "two"):
        spark.range(3).write.parquet(str(tmp_path / name))
        frames.append(spark.readStream.schema("id bigint").parquet(str(tmp_path / name)))
    one, two = frames
    first = join(one, windows="unbounded")
    assert first.start(tmp_path / "run", availableNow=True).awaitTermination()
    query = RunStore(tmp_path / "run").read_settings()
    assert query is not None
    assert query["sources"]["a"]["path"] == str(tmp_path / "one")
    says = "stream b reads .*/two where the run in .* began with .*/one; use a new folder"
    mixed = StreamJoin({"a": one, "b": two}, "a.id = b.id", Centralized(), "unbounded")
    with pytest.raises(ValueError, match=says):
        mixed.start(tmp_path / "run", availableNow=True)
    with pytest.raises(ValueError, match=says):
        StreamJoin.resume(tmp_path / "run", {"a": one, "b": two}, availableNow=True)
    run = StreamJoin.resume(tmp_path / "run", {"a": one, "b": one}, availableNow=True)
    assert run.awaitTermination() and run.results().count() == 3


def test_a_socket_is_known_by_the_plan(spark: SparkSession, tmp_path: Path) -> None:
    """Also in a union with files and below computed columns; nothing connects to it."""
    spark.range(3).selectExpr("cast(id AS string) AS value").write.parquet(str(tmp_path / "in"))
    files = spark.readStream.schema("value string").parquet(str(tmp_path / "in"))
    lines = spark.readStream.format("socket").option("host", "there").option("port", 99).load()
    streams = {"a": files, "b": lines, "c": files.union(lines).filter("value > 'a'")}
    sources = describe_sources(streams)
    assert sources["b"] == {"type": "socket", "host": "there", "port": "99"}
    assert find_sockets(sources) == ["b", "c"]
    with pytest.warns(UserWarning, match="stream [bc] reads a socket") as warned:
        assert record_fingerprints(streams, {})["sources"] == sources
    assert len(warned) == 2
