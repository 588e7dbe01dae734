"""A run's results are read by others during the run: each once, batch by batch, despite crashes."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from braid.storage.published_results import PublishedResults
from braid.storage.run_medium import LocalMedium
from braid.storage.run_store import RunStore
from braid.stream_join import JoinRun, StreamJoin
from duck import connect_duckdb
from oracle import (
    Ids,
    committed_ids,
    compute_expected,
    create_frames,
    describe_difference,
    make_tables,
    wait_until,
)
from pyspark.sql import DataFrame, SparkSession
from scatter import Scatter

ON = "a.k = b.k AND a.n < b.n"
STREAMS = make_tables("ab", 120, seed=61, batches=9)


def upstream(spark: SparkSession, **settings: Any) -> StreamJoin:
    return StreamJoin(
        create_frames(spark, STREAMS), ON, Scatter(), partitions=2, executor="process", **settings
    )


def ids(rows: list[Any]) -> Ids:
    return Counter((row["a"]["id"], row["b"]["id"]) for row in rows)


def ended(run: JoinRun) -> JoinRun:
    run.awaitTermination()
    return run


def find_results_folder(run: JoinRun) -> str:
    return str(run.store.published.results)


def test_asked_batch_by_batch_every_result_comes_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("braid.storage.log_checkpointer._EVERY", 3)
    given = dict[int, Ids]()

    def give(results: DataFrame, batch: int) -> None:
        assert batch not in given
        given[batch] = ids(results.collect())

    run = upstream(spark).start(tmp_path / "run", batches="batch", foreachBatch=give)
    got, batch = Ids(), 0
    while run.isActive or batch <= run.store.log.committed_batches()[-1]:
        wait_until(lambda at=batch: not run.isActive or run.status["batch"] > at, "next batch")
        for _ in range(2):  # mostly without new results the second time
            frame, batch = run.results_since(batch)
            got += ids(frame.collect())
    ended(run)
    assert batch == 9 and [*given] == [*range(9)]
    assert describe_difference(sum(given.values(), Ids()), got) == ""
    assert run.results_since(batch)[0].count() == 0
    assert run.results_since(batch)[1] == batch
    assert describe_difference(got, compute_expected(STREAMS, ON)) == ""
    assert describe_difference(ids(run.results().collect()), got) == ""
    merged = find_results_folder(run).replace("results", "compacted")
    files = [*map(str, sorted(Path(merged).iterdir()))]
    assert len(files) == 2 and files == run.store.results.result_files()[:2], "of six batches"
    assert {unquote(f).removeprefix("file://") for f in run.results().inputFiles()} > set(files)
    assert describe_difference(ids(run.results_since(4)[0].collect()), ids(since(run, 4))) == ""
    stream = spark.readStream.schema(run.results().schema).parquet(merged)
    writer = stream.writeStream.format("parquet").option("checkpointLocation", f"{tmp_path}/c")
    writer.trigger(availableNow=True).start(f"{tmp_path}/copy").awaitTermination()
    early = ids(spark.read.parquet(f"{tmp_path}/copy").collect())
    assert describe_difference(early + ids(since(run, 6)), got) == ""


def since(run: JoinRun, batch: int) -> list[Any]:
    """Return the results of the batches from one on, from the files written by tasks."""
    names = [
        f for f in Path(find_results_folder(run)).glob("*.parquet") if int(f.name[:6]) >= batch
    ]
    return pq.read_table([*map(str, names)]).to_pylist()


def test_spark_reads_the_log_of_a_long_run(spark: SparkSession, tmp_path: Path) -> None:
    """Also after the log is compacted less often: a stream continues across that point."""
    out = PublishedResults(LocalMedium(tmp_path))
    out.make_folders()
    reader = spark.readStream.schema("batch long").parquet(str(out.results))
    seen = []
    for batch in range(212):
        name = f"{batch:06d}-0-0000cafe.parquet"
        if batch % 40 == 39 or batch > 208:
            pq.write_table(pa.table({"batch": [batch]}), out.new / name)
        out.publish_batch(batch, [name] if (out.new / name).exists() else [])
        if batch in (190, 205, 211):
            writer = reader.writeStream.foreachBatch(
                lambda frame, _: seen.extend(r.batch for r in frame.collect())
            )
            writer = writer.option("checkpointLocation", str(tmp_path / "reader"))
            writer.trigger(availableNow=True).start().awaitTermination()
            there = [b for b in range(batch + 1) if b % 40 == 39 or b > 208]
            assert sorted(r.batch for r in spark.read.parquet(str(out.results)).collect()) == there
            assert sorted(seen) == there
    out.unpublish(0, 100)
    assert [r.batch for r in spark.read.parquet(str(out.results)).orderBy("batch").collect()] == [
        b for b in there if b >= 100
    ]


def test_readers_of_plain_files_see_committed_batches(spark: SparkSession, tmp_path: Path) -> None:
    """DuckDB, pandas and Arrow list the folder.

    Half of a batch is written beside it and remains invisible.
    """
    run = upstream(spark).start(tmp_path / "run", batches="batch")
    ended(run)
    want = compute_expected(STREAMS, ON)
    (run.store.published.new / "000009-0-half.parquet").write_bytes(b"PAR1")
    with connect_duckdb() as db:
        rows = db.execute(
            f"SELECT a.id, b.id FROM read_parquet('{find_results_folder(run)}/*.parquet')"
        ).fetchall()
    assert describe_difference(Counter(rows), want) == ""
    assert describe_difference(ids(pq.read_table(find_results_folder(run)).to_pylist()), want) == ""
    assert (
        describe_difference(ids(spark.read.parquet(find_results_folder(run)).collect()), want) == ""
    )


def test_spark_streams_the_folder_while_the_run_is_killed_and_goes_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A separate Spark job reads along; the run fails between a manifest and the links to its
    files, and is resumed.
    """
    folder, table = tmp_path / "run", tmp_path / "copy"
    with monkeypatch.context() as patch:
        from braid.storage.published_results import PublishedResults

        real = PublishedResults._link_result

        def show(out: PublishedResults, names: Any) -> None:
            names = [*names]
            if any(name.startswith("000007") for name in names):
                raise OSError("killed")
            real(out, names)

        patch.setattr(PublishedResults, "_link_result", show)
        run = upstream(spark).start(folder, batches="batch")
        with pytest.raises(OSError, match="killed"):
            run.awaitTermination()
    assert RunStore(folder).log.committed_batches() == list(range(8))

    def read() -> DataFrame:
        schema = run.results().schema
        stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 3)
        frame = stream.parquet(find_results_folder(run))
        writer = frame.writeStream.format("parquet").option("checkpointLocation", f"{table}.c")
        writer.trigger(availableNow=True).start(str(table)).awaitTermination()
        return spark.read.parquet(str(table))

    before = ids(read().collect())
    want = {
        b: ids(run._read_results(RunStore(folder).results.result_files(b, b + 1)).collect())
        for b in range(8)
    }
    assert describe_difference(before, sum((want[b] for b in range(7)), Ids())) == ""
    run = ended(StreamJoin.resume(folder, create_frames(spark, STREAMS)))
    assert describe_difference(ids(read().collect()), compute_expected(STREAMS, ON)) == ""
    assert describe_difference(committed_ids(run), compute_expected(STREAMS, ON)) == ""


@pytest.mark.parametrize("flat", [False, True])
def test_joins_feed_joins(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flat: bool
) -> None:
    """The results of a windowed join meet a third stream, by event time too.

    The second join fails in the middle and is resumed, while the first one continues.
    """
    third = make_tables("c", 150, seed=62, batches=9)
    windows = {"a": "200 seconds", "b": "150 seconds"}
    first = upstream(spark, windows=windows, time="ts").start(tmp_path / "one", batches="batch")
    spans = {"ab": "240 seconds", "c": "90 seconds"}
    on = "ab.a_k = c.k AND ab.b_n < c.n + 200"
    on = on if flat else on.replace("ab.a_k", "ab.a.k").replace("ab.b_n", "ab.b.n")
    wait_until(lambda: first.store.log.committed_batches(), "first batch of the first join", 120)
    changes = spark.createDataFrame(third["c"]).drop("batch")
    changes.write.parquet(str(tmp_path / "c"))

    def streams() -> dict[str, DataFrame]:
        c = spark.readStream.schema(changes.schema).parquet(str(tmp_path / "c"))
        return {"ab": first.results_stream(flat), "c": c}

    ended(first)
    second = StreamJoin(
        streams(), on, Scatter(), spans, time="ts", lateness="1 day", partitions=2, check=True
    )
    with monkeypatch.context() as patch:
        real = RunStore.remove_old_files

        def tidy(store: RunStore, *given: Any) -> None:
            if "two" in str(store.path):
                raise OSError("cut off")
            real(store, *given)

        patch.setattr(RunStore, "remove_old_files", tidy)
        run = second.start(tmp_path / "two", availableNow=True)
        with pytest.raises(OSError, match="cut off"):
            run.awaitTermination()
    run = ended(StreamJoin.resume(tmp_path / "two", streams(), availableNow=True))
    ids = ("ab.a_id", "ab.b_id") if flat else ("ab.a.id", "ab.b.id")
    rows = run.results().selectExpr(*ids, "c.id").collect()
    assert describe_difference(Counter(tuple(r) for r in rows), both(third["c"])) == ""


def both(c: pa.Table) -> Ids:
    """Return both joins computed by DuckDB in one query."""
    with connect_duckdb() as db:
        for alias, rows in {**STREAMS, "c": c}.items():
            db.register(alias, rows)
        return Counter(
            db.execute(
                """
                WITH ab AS (
                    SELECT a.id AS a_id, b.id AS b_id, a.k AS a_k, b.n AS b_n,
                        greatest(epoch_us(a.ts), epoch_us(b.ts)) AS t
                    FROM a, b WHERE a.k = b.k AND a.n < b.n
                        AND greatest(epoch_us(a.ts), epoch_us(b.ts)) - epoch_us(a.ts) < 200000000
                        AND greatest(epoch_us(a.ts), epoch_us(b.ts)) - epoch_us(b.ts) < 150000000)
                SELECT a_id, b_id, id FROM ab, c WHERE a_k = c.k AND b_n < c.n + 200
                    AND greatest(t, epoch_us(c.ts)) - t < 240000000
                    AND greatest(t, epoch_us(c.ts)) - epoch_us(c.ts) < 90000000
                """
            ).fetchall()
        )


def test_a_name_for_two_columns_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    streams = {
        "a": spark.createDataFrame([(1, 2)], "b_x int, k int"),
        "a_b": spark.createDataFrame([(1, 2)], "x int, k int"),
    }
    run = ended(StreamJoin(streams, "a.k = a_b.k", Scatter()).start(tmp_path / "run", batches=1))
    with pytest.raises(ValueError, match="several columns.*a_b_x"):
        run.results_stream(flat=True)
    assert run.results_stream().schema == run.results().schema


def test_runs_that_have_ended_and_that_nobody_holds_are_gone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark's gateway keeps objects that it called; its last one or two calls may still refer to
    them.
    """
    few = make_tables("ab", 6, seed=62, batches=1)
    gone = []
    for n in range(4):
        join = StreamJoin(
            create_frames(spark, few), ON, Scatter(), partitions=1, executor="process"
        )
        gone.append(weakref.ref(ended(join.start(tmp_path / str(n), batches=1))))
    gc.collect()
    assert gone[0]() is None
