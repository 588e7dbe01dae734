"""Joins of DataFrames of Spark Connect, on a server that has no Braid."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import connect_client
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from braid.errors import DamagedRunError
from braid.hub.hub import QueryHub
from braid.shared.shared_join import SharedJoin
from braid.sources import connect_streams, landing_function
from braid.sources.landing_function import make_landing_function, read_marker
from braid.stream_join import StreamJoin
from connect_client import (
    AHEAD,
    FILES,
    ON,
    SCHEMA,
    WINDOW_SECONDS,
    note_batch,
    start_run,
    wait_for_worker,
    write_streams,
)
from connect_server import ConnectServer
from oracle import wait_until

ORDERS = """
    SELECT id, id % 50 AS k, cast(id AS decimal(9, 2)) AS price, concat('o', id) AS name,
        named_struct('n', id, 't', array(id, NULL)) AS more, timestamp_seconds(id) AS ts
    FROM range(2000)"""
PAYMENTS = """
    SELECT id, if(id % 7 = 0, NULL, id % 60) AS k, date_add(DATE '2026-01-01', cast(id % 9 AS int)) AS day,
        timestamp_seconds(id * 4) AS ts
    FROM range(500)"""
STATIC_ON = "o.k = p.k AND o.price <= p.id + 40"


@pytest.fixture
def spark(server: ConnectServer) -> Iterator[Any]:
    session = server.connect()
    yield session
    session.stop()


def count_rows(rows: pa.Table) -> Counter[str]:
    """Return how often each row comes, by its text."""
    return Counter(map(repr, rows.to_pylist()))


def read_own_results(spark: Any, sql: str, streams: dict[str, Any]) -> Counter[str]:
    """Return the rows of Spark's own join, a struct for each stream."""
    for alias, frame in streams.items():
        frame.createOrReplaceTempView(alias)
    structs = ", ".join(f"if({a}.id IS NULL, NULL, struct({a}.*)) AS {a}" for a in streams)
    return count_rows(spark.sql(f"SELECT {structs} FROM {sql}").toArrow())


def test_static_frames_are_joined_as_spark_does(spark: Any, tmp_path: Path) -> None:
    streams = {"o": spark.sql(ORDERS), "p": spark.sql(PAYMENTS)}
    join = StreamJoin(streams, STATIC_ON, how="left", where={"o": "o.id % 3 > 0"}, check=True)
    assert "2,000 rows" not in str(join.explain()) and "1,333" in str(join.explain(count=True))
    run = join.start(tmp_path / "run", batches=3)
    run.awaitTermination()
    own = f"(SELECT * FROM o WHERE id % 3 > 0) o LEFT JOIN p ON {STATIC_ON}"
    assert count_rows(run.results()) == read_own_results(spark, own, streams)
    assert run.results().schema == spark.createDataFrame(run.results()).toArrow().schema
    join.start(tmp_path / "run").awaitTermination()  # the same rows
    others = {**streams, "p": spark.sql(PAYMENTS + " WHERE id > 0")}
    again = StreamJoin(others, STATIC_ON, how="left", where={"o": "o.id % 3 > 0"}, check=True)
    with pytest.raises(
        ValueError, match="stream p has 499 rows where the run in .* began with 500"
    ):
        again.start(tmp_path / "run")
    StreamJoin.resume(tmp_path / "run", others).awaitTermination()
    big = StreamJoin(streams, STATIC_ON, driver_memory="100 kB")
    with pytest.raises(ValueError, match=r"stream o takes about .* kB, and this process may hold"):
        big.start(tmp_path / "big")


ALONE = (
    "stream a is a DataFrame of Spark Connect, which only StreamJoin joins; give those of a session "
    "in this process"
)
ZONE = "spark.sql.session.timeZone"
REFUSED: list[tuple[str, Callable[[Any], Any]]] = [
    (
        "stream a is a DataFrame of Spark Connect, but b is not; all streams of a join must be of "
        "one session",
        lambda c: StreamJoin(c.static | {"b": pa.table({"id": [1]})}, ON),
    ),
    (ALONE, lambda c: SharedJoin(c.static, ON, time="ts")),
    (ALONE, lambda c: QueryHub(c.static, time="ts")),
    (
        "executor is 'spark', but the streams are of Spark Connect, whose server runs no tasks of "
        "Braid; leave it out",
        lambda c: StreamJoin(c.static, ON, executor="spark"),
    ),
    (
        "'SOUNDEX(CONCAT(a.name, b.name))' in the join condition is not known to mean the same "
        "without Spark; give the streams as Spark DataFrames, or write what it says into a column",
        lambda c: StreamJoin(c.static, "soundex(concat(a.name, b.name)) = 'X'"),
    ),
    (
        "column v of stream b is of type variant; cast it, as variants are not read from a server",
        lambda c: StreamJoin(c.static | {"b": c.variant}, ON),
    ),
    (
        "landing is 's3://lake', which is for streaming DataFrames of Spark Connect; leave it out",
        lambda c: StreamJoin(c.static, ON).start(c.path, landing="s3://lake"),
    ),
    (
        "a run of tables has no trigger; got availableNow, leave it out",
        lambda c: StreamJoin(c.static, ON).start(c.path, availableNow=True),
    ),
    (
        "batches is 'id', but stream b does not end; static streams of Spark Connect come whole in "
        "the first micro-batch beside it, so leave it out",
        lambda c: StreamJoin(c.mixed, ON, windows="unbounded").start(
            c.path, batches="id", landing="s3://lake"
        ),
    ),
    (
        "the trigger is continuous='1 second'; it must be one of processingTime='1 second', "
        "availableNow=True, once=True",
        lambda c: StreamJoin(c.mixed, ON, windows="unbounded").start(c.path, continuous="1 second"),
    ),
    (
        "stream b does not end and no landing is given; it must be a folder that the server on "
        "127.0.0.1 reads and writes, as landing='s3://bucket/landing'",
        lambda c: StreamJoin(c.mixed, ON, windows="unbounded").start(c.path),
    ),
    (
        "streams a and b are of two sessions of Spark Connect; give frames of one",
        lambda c: StreamJoin({"a": c.static["a"], "b": c.elsewhere}, ON),
    ),
    (
        "spark.sql.session.timeZone is Europe/Vienna in the session of Spark Connect, but its "
        "frames are joined here, in ANSI mode and in UTC; set it to UTC",
        lambda c: StreamJoin({"a": c.elsewhere, "b": c.elsewhere}, ON),
    ),
]


def test_what_cannot_be_joined_is_refused_in_a_sentence(
    spark: Any, server: ConnectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = (
        "SELECT id, id % 3 AS k, id / 2 AS x, '' AS name, timestamp_seconds(id) AS ts FROM range(9)"
    )
    other, frame = server.connect(), spark.sql(rows)
    other.conf.set(ZONE, "Europe/Vienna")
    endless = spark.readStream.schema(SCHEMA).parquet(str(tmp_path))
    static = {"a": frame, "b": frame}
    case = SimpleNamespace(
        static=static,
        variant=spark.sql("SELECT parse_json('1') AS v"),
        mixed=static | {"b": endless},
        elsewhere=other.sql(rows),
        path=tmp_path / "run",
    )
    monkeypatch.setattr(connect_streams, "_LOCAL", ())
    for sentence, ask in REFUSED:
        with pytest.raises(ValueError) as refused:
            ask(case)
        assert str(refused.value) == sentence
    monkeypatch.setattr(pyspark, "__version__", "4.2.1")
    with pytest.raises(ValueError) as refused:
        StreamJoin(static, ON)
    assert str(refused.value) == (
        f"the server of Spark Connect has Spark {spark.version} and this process PySpark 4.2.1; "
        "they must be of the same minor version"
    )
    assert not case.path.exists()
    other.stop()


def test_a_stream_is_joined_with_a_static_frame_from_another_landing(
    spark: Any, server: ConnectServer, tmp_path: Path
) -> None:
    for number in range(2):
        rows = spark.range(number * 9, number * 9 + 9).selectExpr("id", "id % 4 AS k")
        rows.coalesce(1).write.parquet(str(tmp_path / f"a/{number}"))
    files = spark.readStream.schema("id bigint, k bigint").option("maxFilesPerTrigger", 1)
    streams = {"a": files.parquet(str(tmp_path / "a/*")), "c": spark.sql(PAYMENTS)}
    join = StreamJoin(streams, "a.k = c.k", windows="unbounded")
    landing = {"landing": str(tmp_path / "landing"), "availableNow": True}
    server.set_python("false")
    try:
        with pytest.raises(RuntimeError, match="PYSPARK_PYTHON of the server must name a Python"):
            join.start(tmp_path / "run", **landing)
    finally:
        server.set_python(sys.executable)
    with pytest.raises(ValueError, match="landing is '/elsewhere' where the run in .* began with"):
        join.start(tmp_path / "run", landing="/elsewhere")
    run = wait_for_worker(lambda: join.start(tmp_path / "run", **landing))
    run.awaitTermination()
    streams["a"] = spark.read.parquet(str(tmp_path / "a/*"))
    assert count_rows(run.results()) == read_own_results(spark, "a JOIN c ON a.k = c.k", streams)
    assert run.status["batch"] == 2 and run.spark_query.lastProgress["batchId"] == 1
    with pytest.raises(ValueError, match="a run of tables has no streaming DataFrame"):
        run.results_stream()


def test_a_micro_batch_is_landed_once_and_a_part_of_one_is_ignored(
    spark: Any, server: ConnectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    land = make_landing_function(str(tmp_path), "sum(8)", most_ahead=1)
    next_query = server.connect()
    whole, other = spark.range(5), next_query.range(7)

    def read_landed() -> tuple[int, int, int]:
        rows, size, attempt = read_marker(spark, str(tmp_path), 0)
        return pq.read_table(tmp_path / f"batches/000000/{attempt}").num_rows, rows, size

    assert read_marker(spark, str(tmp_path), 0) is None
    land(whole, 0)
    assert read_landed() == (5, 5, 40)
    land(other, 0)  # the server repeats a micro-batch that it has not recorded
    assert read_landed() == (5, 5, 40)
    (tmp_path / "done").rename(tmp_path / "lost")  # the server died while it wrote the rows
    land(other, 0)
    assert read_landed() == (7, 7, 56)

    def clear_first(_: float) -> None:
        assert read_marker(spark, str(tmp_path), 1) is None, "it did not wait"
        spark.sql("SELECT 0 LIMIT 0").write.mode("overwrite").parquet(f"{tmp_path}/batches/000000")

    monkeypatch.setattr(landing_function.time, "sleep", clear_first)
    land(other, 1)
    assert read_marker(spark, str(tmp_path), 1)["rows"] == 7
    assert pq.read_table(tmp_path / "batches/000000").num_rows == 0, "it did not wait"
    next_query.stop()


def find_files(folder: Path, kind: str) -> list[Path]:
    """Return what the landing of the run has of a kind, such as "done", in order."""
    return sorted(folder.glob(f"run/landing/*/{kind}/[0-9]*"), key=lambda path: int(path.name))


def count_landed_rows(folder: Path) -> list[int]:
    """Return the rows in each landed micro-batch."""
    return [pq.read_table(batch).num_rows for batch in find_files(folder, "batches")]


@pytest.mark.filterwarnings("ignore:.*RETRIES_EXCEEDED")
def test_client_and_server_are_killed_and_the_run_goes_on(
    spark: Any, server: ConnectServer, tmp_path: Path
) -> None:
    write_streams(spark, tmp_path)
    client = Path(connect_client.__file__)
    died = subprocess.run([sys.executable, str(client), str(server.port), str(tmp_path)])
    assert died.returncode == -signal.SIGKILL
    assert len(find_files(tmp_path, "done")) == AHEAD, "the server waits for the client"

    def kill_server(_: Any, number: int) -> None:
        note_batch(tmp_path, number)
        if number == 1:
            commits = partial(find_files, tmp_path, "checkpoint/commits")
            wait_until(lambda: len(commits()) >= FILES - 1, "landed micro-batches")
            server.kill()

    run = start_run(spark, tmp_path, kill_server)
    with pytest.raises(RuntimeError, match="the server of Spark Connect does not answer"):
        run.awaitTermination()
    assert run.status["state"] == "failed" and run.status["batch"] == 2
    server.start()
    spark = server.connect()
    lost = find_files(tmp_path, "done")[2]
    lost.rename(tmp_path / "lost")
    run = start_run(spark, tmp_path, lambda _, number: note_batch(tmp_path, number))
    with pytest.raises(
        DamagedRunError, match="micro-batch 2 is missing in .*, although the server"
    ):
        run.awaitTermination()
    (tmp_path / "lost").rename(lost)
    last = find_files(tmp_path, "checkpoint/commits")[-1]  # landed, but not recorded
    for file in (last, last.with_name(f".{last.name}.crc")):
        file.unlink()
    run = start_run(spark, tmp_path, lambda _, number: note_batch(tmp_path, number))
    run.awaitTermination()

    streams = {alias: spark.read.schema(SCHEMA).parquet(f"{tmp_path / alias}/*") for alias in "ab"}
    within = f"abs(unix_seconds(a.ts) - unix_seconds(b.ts)) < {WINDOW_SECONDS}"
    own = read_own_results(spark, f"a JOIN b ON {ON} AND {within}", streams)
    assert count_rows(run.results()) == own and len(own) > 100
    delivered = [*map(int, (tmp_path / "delivered").read_text().split())]
    assert delivered == [0, 0, 1, 2, 3]
    assert count_landed_rows(tmp_path) == [0] * FILES and len(find_files(tmp_path, "done")) == FILES
    find_files(tmp_path, "checkpoint/offsets")[0].parent.rename(tmp_path / "offsets")
    with pytest.raises(
        DamagedRunError, match="ends with micro-batch -1, but the run has committed 3"
    ):
        start_run(spark, tmp_path, note_batch)
