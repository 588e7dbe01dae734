"""Other streaming queries of Braid's session store their state as in any session of Spark.

They use RocksDB with its default settings, before, during and after a run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from braid.stream_join import StreamJoin
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


class Counting(StatefulProcessor):
    """Counts the rows of each key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "n long")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        before = self._count.get()[0] if self._count.exists() else 0
        count = before + sum(map(len, rows))
        self._count.update((count,))
        yield pd.DataFrame({"k": [key[0]], "count": [count]})

    def close(self) -> None:
        pass


def distinct(rows: DataFrame) -> DataFrame:
    return rows.dropDuplicates(["k"]).select("k")


def counted(rows: DataFrame) -> DataFrame:
    return rows.groupBy("k").count()


def joined(rows: DataFrame) -> DataFrame:
    return rows.alias("l").join(rows.alias("r"), F.expr("l.id = r.id")).select("l.k")


def transformed(rows: DataFrame) -> DataFrame:
    return rows.groupBy("k").transformWithStateInPandas(
        Counting(), "k long, count long", "Update", "None"
    )


QUERIES: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "dropDuplicates": (distinct, "append"),
    "aggregation": (counted, "complete"),
    "join": (joined, "append"),
    "transformWithState": (transformed, "update"),
}
EXPECTED = {
    "dropDuplicates": [(0,), (1,), (2,)],
    "aggregation": [(0, 4), (1, 3), (2, 3)],
    "join": [(0,)] * 4 + [(1,)] * 3 + [(2,)] * 3,
    "transformWithState": [(0, 4), (1, 3), (2, 3)],
}


def answers(spark: SparkSession, source: Path, folder: Path) -> dict[str, list[tuple[int, ...]]]:
    """Run the queries and return the rows of each.

    The last runs after the others have ended, because it starts a Python worker for which Spark
    waits at most 10 seconds.
    """
    found: dict[str, list[tuple[int, ...]]] = {}

    def start(name: str) -> StreamingQuery:
        query, mode = QUERIES[name]
        rows = spark.readStream.schema("id long, k long").parquet(str(source))
        writer = query(rows).writeStream.outputMode(mode).foreachBatch(partial(keep, name))
        writer = writer.option("checkpointLocation", str(folder / name))
        return writer.trigger(availableNow=True).start()

    def keep(name: str, frame: DataFrame, _: int) -> None:
        found.setdefault(name, []).extend(map(tuple, frame.collect()))

    *together, last = QUERIES
    for running in [start(name) for name in together]:
        running.awaitTermination()
    start(last).awaitTermination()
    return {name: sorted(rows) for name, rows in found.items()}


@pytest.fixture
def rocksdb(spark: SparkSession) -> Iterator[SparkSession]:
    """Return a session with separate settings in the same JVM, invisible to other tests."""
    session = spark.newSession()
    session.conf.set(PROVIDER, ROCKSDB)
    yield session


def test_other_queries_keep_state_in_rocksdb_before_beside_and_after_a_run(
    spark: SparkSession, rocksdb: SparkSession, tmp_path: Path
) -> None:
    rows = spark.range(10).selectExpr("id", "id % 3 AS k")
    rows.coalesce(1).write.parquet(str(source := tmp_path / "source"))
    assert answers(rocksdb, source, tmp_path / "before") == EXPECTED

    came, go_on = threading.Event(), threading.Event()

    def wait(_: DataFrame, __: int) -> None:
        came.set()
        assert go_on.wait(300)

    join = StreamJoin({"a": rows, "b": rows}, "a.id = b.id")
    run = join.start(tmp_path / "run", batches=2, foreachBatch=wait)
    try:
        assert came.wait(300)
        assert answers(rocksdb, source, tmp_path / "beside") == EXPECTED
    finally:
        go_on.set()
    run.awaitTermination()
    assert run.results().count() == 10
    assert answers(rocksdb, source, tmp_path / "after") == EXPECTED


def test_a_stream_of_a_join_may_itself_keep_state_in_rocksdb(
    rocksdb: SparkSession, tmp_path: Path
) -> None:
    """The state is stored in the run's own checkpoint."""
    rows = rocksdb.range(10).selectExpr("id", "id % 3 AS k")
    rows.coalesce(1).write.parquet(str(source := tmp_path / "source"))
    arriving = rocksdb.readStream.schema("id long, k long").parquet(str(source))
    streams = {"a": arriving.dropDuplicates(["k"]), "b": rows}
    run = StreamJoin(streams, "a.k = b.k").start(tmp_path / "run", batches=1, availableNow=True)
    run.awaitTermination()
    assert run.results().count() == 10
    assert not [*(tmp_path / "run" / "checkpoint" / "offsets").glob(".*.crc")]
