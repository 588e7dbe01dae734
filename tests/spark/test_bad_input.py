"""Invalid input is refused with one clear sentence before anything is written.

Later failures are reported with their cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.core import event_jsonl, run_events
from braid.core.placement import Placement
from braid.core.plan import Route
from braid.papers.baselines.centralized import Centralized
from braid.papers.baselines.hash_partition import HashPartition
from braid.papers.baselines.join_biclique import JoinBiclique
from braid.papers.common.route_builders import local_routes
from braid.papers.theta.grid import AdaptiveGrid, StaticGrid
from braid.papers.theta.run_events import MappingChanged
from braid.stream_join import JoinRun, StreamJoin
from msgspec import structs
from oracle import EPOCH, list_files
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T


@pytest.fixture(scope="module")
def streams(spark: SparkSession) -> dict[str, DataFrame]:
    rows = pa.table(
        {
            "id": range(20),
            "x": pa.array([i % 5 for i in range(20)], pa.int32()),
            "s": [str(i) for i in range(20)],
            "ts": pa.array([EPOCH] * 20, pa.timestamp("us", tz="UTC")),
            "batch": [i // 5 for i in range(20)],
        }
    )
    return {a: spark.createDataFrame(rows) for a in ("a", "b")}


CONDITIONS = [
    ("a.y = b.x", "column 'a.y' in the join condition is unknown; a has: id, x, s, ts, batch"),
    (
        "c.x = b.x",
        "alias 'c' in the join condition is unknown; streams and columns are: a(id, x, s, ts, "
        "batch); b(",
    ),
    ("y = b.x", "column 'y' in the join condition is unknown"),
    ("x = 3", "column 'x' in the join condition is in several streams, write alias.column"),
    ("nosuch(a.x) = b.x", "function 'nosuch' in the join condition is unknown"),
    ("a.x = b.x AND nosuch(a.x, b.x) > 1", "function 'nosuch' in the join condition is unknown"),
    ("a.x + b.x", "the join condition 'a.x + b.x' is of type INT; it must be boolean"),
    ("a.s", "it must be boolean"),
    ("a.x = ", "is not valid Spark SQL"),
    ("a.x = b.x)", "is not valid Spark SQL"),
    ("a.x = (SELECT max(x) FROM b)", "holds a query; it must be one condition over alias.column"),
    ("a.x IN (SELECT 1)", "holds a query"),
    ("a.x = b.x AND rand() < 0.5", "has another answer each time"),
    ("", "it must be Spark SQL text such as 'a.x = b.x'"),
    ("max(a.x) = b.x", "Spark refuses the join condition"),
    ("a.x = a.ts OR b.x = 1", "Spark refuses the join condition"),
    (
        "reverse(concat(a.s, b.s)) = 'x'",
        "'REVERSE(CONCAT(a.s, b.s))' in the join condition cannot be evaluated over two streams at "
        "once",
    ),
    ("months_between(a.ts, b.ts) < 2", "cannot be evaluated over two streams at once"),
    ("cast(a.x + b.x AS float) = 3", "cannot be evaluated over two streams at once"),
    ("concat(a.s, b.s) RLIKE 'x.*'", "cannot be evaluated over two streams at once"),
    (
        "cast(a.x AS decimal(20, 4)) * cast(b.x AS decimal(20, 4)) > 7",
        "cannot be evaluated over two streams at once (may have more than 38 digits)",
    ),
    ("a.s < b.x OR a.s = b.s", "brings together int and string"),
]


@pytest.mark.parametrize(("on", "message"), CONDITIONS, ids=[c[0] for c in CONDITIONS])
def test_conditions(streams: dict[str, DataFrame], on: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as refusal:
        StreamJoin(streams, on, Centralized())
    assert "\n" not in str(refusal.value)


def one(streams: dict[str, DataFrame]) -> dict[str, DataFrame]:
    return {"a": streams["a"]}


def same(streams: dict[str, DataFrame]) -> dict[str, DataFrame]:
    return streams


def renamed(**aliases: str) -> Callable[[dict[str, DataFrame]], dict[str, DataFrame]]:
    return lambda streams: {aliases.get(a, a): f for a, f in streams.items()}


SETTINGS: list[tuple[str, Callable[[dict[str, DataFrame]], Any], dict[str, Any], str]] = [
    ("one stream", one, {}, "a join needs two or more streams; got 1: a"),
    ("no stream", lambda _: {}, {}, "a join needs two or more streams; got 0: none"),
    (
        "a table",
        lambda s: s | {"b": pa.table({"k": [1]})},
        {},
        "stream b is a table, but the others are Spark DataFrames",
    ),
    ("not a frame", lambda s: s | {"b": 3}, {}, "stream b is 3; it must be a Spark DataFrame"),
    ("odd alias", renamed(b="b c"), {}, "the alias 'b c' is not accepted"),
    (
        "aliases alike",
        renamed(b="A"),
        {},
        "the aliases a, A must differ by more than upper and lower case",
    ),
    (
        "columns alike",
        lambda s: s | {"b": s["b"].withColumn("__k0", F.lit(1))},
        {},
        "names must differ and not begin with __",
    ),
    (
        "no time",
        same,
        {"windows": {"a": "1 minute"}},
        "windows are given but no event-time column: name it with time=",
    ),
    (
        "missing time",
        same,
        {"time": "when"},
        "stream a has no event-time column 'when'; it has: id, x, s, ts, batch",
    ),
    (
        "time of a wrong type",
        same,
        {"time": "x"},
        "the event-time column a.x is of type int; it must be a timestamp or a date",
    ),
    (
        "window of a stranger",
        same,
        {"windows": {"c": "1 day"}, "time": "ts"},
        "windows are given for ['c']; the streams are a, b",
    ),
    (
        "negative lateness",
        same,
        {"lateness": "-1 second"},
        "the lateness is '-1 second'; it must be a positive span",
    ),
    (
        "no partitions",
        same,
        {"partitions": 0},
        "partitions is 0; it must be a whole number, 1 or more",
    ),
]


@pytest.mark.parametrize(
    ("change", "settings", "message"), [s[1:] for s in SETTINGS], ids=[s[0] for s in SETTINGS]
)
def test_settings(
    streams: dict[str, DataFrame], change: Any, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        StreamJoin(change(streams), "a.x = b.x", Centralized(), **settings)


@pytest.mark.parametrize(
    "window",
    ["-5 seconds", "0 seconds", "soon", "5", "5 parsecs", "1 second ago", "", 60, "1e-9 seconds"],
)
def test_windows(streams: dict[str, DataFrame], window: Any) -> None:
    with pytest.raises(ValueError, match=r"the window of b is .*; it must be a positive span"):
        StreamJoin(streams, "a.x = b.x", Centralized(), {"b": window}, time="ts")


@pytest.mark.parametrize("kind", [AdaptiveGrid, StaticGrid, HashPartition, JoinBiclique])
@pytest.mark.parametrize("hosts", [0, -3])
def test_hosts(kind: Callable[[int], Placement], hosts: int) -> None:
    with pytest.raises(
        ValueError, match=rf"hosts is {hosts}; it must be a whole number, 1 or more"
    ):
        kind(hosts)


def test_a_placement_by_value_needs_an_equality(streams: dict[str, DataFrame]) -> None:
    with pytest.raises(
        ValueError, match="HashPartition partitions by the value .* but 'a.x < b.x' has no"
    ):
        StreamJoin(streams, "a.x < b.x", HashPartition(4))


def test_a_grid_serves_two_streams(streams: dict[str, DataFrame]) -> None:
    with pytest.raises(ValueError, match="AdaptiveGrid joins two streams, .*; got 3"):
        StreamJoin(streams | {"c": streams["a"]}, "a.x = b.x AND b.x = c.x", AdaptiveGrid(4))


@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (0, "batches is 0; it must be a whole number, 1 or more, or the name of a column"),
        ("turn", "stream a has no column 'turn' that numbers its micro-batches"),
        ("s", "the column a.s is of type string; to number micro-batches it must be an integer"),
        ("minus", "the column a.minus numbers micro-batches and holds -4; it must count from 0"),
        ("gaps", "the column a.gaps numbers micro-batches and holds None; it must count from 0"),
    ],
)
def test_batches(
    streams: dict[str, DataFrame], tmp_path: Path, batches: int | str, message: str
) -> None:
    more = {
        a: f.withColumn("minus", F.lit(-4)).withColumn("gaps", F.nullif("x", F.lit(3)))
        for a, f in streams.items()
    }
    with pytest.raises(ValueError, match=message):
        StreamJoin(more, "a.x = b.x", Centralized()).start(tmp_path / "run", batches=batches)
    assert list_files(tmp_path) == set()


def test_a_folder_of_something_else_is_left_alone(
    streams: dict[str, DataFrame], tmp_path: Path
) -> None:
    (tmp_path / "thesis.tex").write_text("precious")
    join = StreamJoin(streams, "a.x = b.x", Centralized())
    with pytest.raises(
        ValueError,
        match="holds files but no run of Braid, as thesis.tex; a new run needs a new or empty folder",
    ):
        join.start(tmp_path)
    with pytest.raises(ValueError, match="holds files but no run"):
        StreamJoin.resume(tmp_path, streams)
    with pytest.raises(ValueError, match="holds no run that could be resumed"):
        StreamJoin.resume(tmp_path / "nowhere", streams)
    assert list_files(tmp_path) == {"thesis.tex"}


def test_the_life_of_a_run(streams: dict[str, DataFrame], tmp_path: Path) -> None:
    """A run is paused before its first batch, refused to other drivers, unpaused, and ends."""
    path = tmp_path / "run"
    join = StreamJoin(streams, "a.x = b.x", StaticGrid(4), partitions=2)
    run = join.start(path, batches="batch", pace=0.3)
    run.pause()
    assert run.isActive
    assert run.status["state"] == "paused"
    with pytest.raises(
        RuntimeError, match="is in use by a run that has not ended; stop that run first"
    ):
        join.start(path)
    other = StreamJoin(streams, "a.x < b.x", StaticGrid(4), partitions=2)
    with pytest.raises(
        ValueError,
        match=r"holds a run of another query: on is 'a\.x = b\.x' there and 'a\.x < b\.x' here",
    ):
        other.start(path)
    assert run.awaitTermination(0.01) is False
    run.unpause()
    assert run.awaitTermination() is True
    assert (run.isActive, run.exception(), run.status["state"]) == (False, None, "completed")
    assert {k: run.status[k] for k in ("batch", "batches", "tuples", "seconds_left")} == {
        "batch": 4,
        "batches": 4,
        "tuples": 40,
        "seconds_left": 0,
    }
    chosen_events = run.events()
    assert [type(e) for e in chosen_events if not isinstance(e, MappingChanged)] == [
        run_events.RunStarted,
        *[run_events.BatchPlanned, run_events.BatchCommitted] * 4,
        run_events.RunEnded,
    ]
    assert event_jsonl.read_events(path / "events.jsonl") == chosen_events
    assert run.events(since=len(chosen_events) - 1) == [run_events.RunEnded(3, "completed")]
    metrics = run.metrics()
    assert (len(metrics), metrics["results"].sum()) == (16, 80)
    assert metrics["received_tuples"].sum() == 80  # a 2 x 2 grid sends each tuple to two hosts
    run.stop()
    assert run.status["state"] == "completed"
    with pytest.raises(ValueError, match="holds a run of another query"):
        other.start(path)
    again = StreamJoin.resume(path, streams)
    assert again.awaitTermination()
    assert again.results().count() == 80


def failed(run: JoinRun) -> str:
    """Return the complete report of a failed run: its exception and every cause."""
    with pytest.raises(BaseException) as raised:
        run.awaitTermination()
    error: BaseException | None = run.exception()
    assert error is raised.value
    last = run.events()[-1]
    assert isinstance(last, run_events.RunEnded)
    assert last.outcome == run.status["state"] == "failed"
    assert last.error.startswith(type(error).__name__)
    assert "\n" not in last.error and last.error.endswith(str(error).splitlines()[0])
    story = ""
    while error is not None:
        story += f"{error}\n"
        error = error.__cause__
    run.stop()
    assert run.exception() is raised.value
    return story


FAILING = [
    ("10 / a.x = b.x", "DIVIDE_BY_ZERO"),
    ("a.x * 2147483647 = b.x", "ARITHMETIC_OVERFLOW"),
    (
        "a.x < 3 AND (a.id + 9223372036854775000) * b.id > 5 OR a.id = b.id",
        "ARITHMETIC_OVERFLOW in (a.id + 9223372036854775000) * b.id (bigint)",
    ),
    ("brittle(a.x) = b.x", "too brittle for 3"),
    ("cast(a.s || 'x' AS int) = b.x", "CAST_INVALID_INPUT"),
]


@pytest.mark.parametrize(("on", "cause"), FAILING, ids=[c[0] for c in FAILING])
def test_a_failing_condition_is_told_with_its_cause(
    spark: SparkSession, streams: dict[str, DataFrame], tmp_path: Path, on: str, cause: str
) -> None:
    def brittle(x: int) -> int:
        if x == 3:
            raise KeyError("too brittle for 3")
        return x

    spark.udf.register("brittle", brittle, T.IntegerType())
    run = StreamJoin(streams, on, Centralized(), check=True).start(tmp_path / "run", batches=1)
    assert cause in failed(run)
    assert cause in str(run.exception()).splitlines()[0] and cause in run.events()[-1].error
    assert run.results().count() == 0


def test_workers_of_any_session_find_braid(
    spark: SparkSession,
    streams: dict[str, DataFrame],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Even in a session created with another Python on the path."""
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python3")
    join = StreamJoin(streams, "a.x = b.x", Centralized(), executor="spark")
    run = join.start(tmp_path / "run", batches=1)
    assert run.awaitTermination() and run.results().count() == 80


def test_a_failing_source_is_told_and_can_be_resumed(
    spark: SparkSession, streams: dict[str, DataFrame], tmp_path: Path
) -> None:
    """One file is not Parquet; after its repair the run continues from the last commit."""
    source = tmp_path / "source"
    rows = streams["a"].select("id", "x").toArrow()
    for i in range(2):
        spark.createDataFrame(rows.slice(10 * i, 10)).coalesce(1).write.mode("append").parquet(
            str(source)
        )
    sound = sorted(source.glob("*.parquet"))[0]
    kept = sound.read_bytes()
    for f in source.glob(f".{sound.name}.crc"):
        f.unlink()
    sound.write_bytes(b"PAR1 no more")
    live = spark.readStream.schema("id long, x int").parquet(str(source))
    join = StreamJoin({"a": live, "b": live}, "a.id = b.id", Centralized(), "unbounded")
    run = join.start(tmp_path / "run", availableNow=True)
    assert sound.name in failed(run)
    sound.write_bytes(kept)
    again = StreamJoin.resume(tmp_path / "run", join.streams, availableNow=True)
    again.awaitTermination()
    assert again.results().count() == 20
    spark.createDataFrame(rows.slice(0, 10)).coalesce(1).write.mode("append").parquet(str(source))
    later = join.start(tmp_path / "run", availableNow=True)
    assert later.awaitTermination()
    assert later.results().count() == 50, "the same start reads the files that have come since"


def test_a_failing_placement_is_told(
    streams: dict[str, DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan that breaks the cover rule never runs."""

    def routes(*given: Any) -> list[Route]:
        return [structs.replace(r, paths=()) for r in local_routes(*given)]

    monkeypatch.setattr("braid.papers.baselines.centralized.local_routes", routes)
    run = StreamJoin(streams, "a.x = b.x", Centralized(), check=True).start(
        tmp_path / "run", batches=2
    )
    assert "block 1 meets 0 of 1 due combinations" in failed(run)
    assert run.status["tuples"] == 0


def test_chars_of_other_lengths_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Spark pads them with blanks to compare them."""
    frames = {}
    for alias, length in (("a", 5), ("b", 8)):
        name = f"chars_of_{length}"
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql(
            f"CREATE TABLE {name} (id BIGINT, c CHAR({length}), s STRING) USING parquet "
            f"LOCATION '{tmp_path / name}'"
        )
        spark.sql(f"INSERT INTO {name} VALUES (0, 'ab', 'ab'), (1, '{alias}', 'ab')")
        frames[alias] = spark.table(name)
    for on in ("a.c = b.c", "b.c <> a.c AND a.id = b.id", "a.id = b.id AND a.c IN ('ab')"):
        with pytest.raises(ValueError, match=r"compares CHAR with another length or a constant"):
            StreamJoin(frames, on, Centralized())
    run = StreamJoin(frames, "rpad(a.c, 8, ' ') = b.c", Centralized(), executor="process")
    started = run.start(tmp_path / "run", batches=1)
    started.awaitTermination()
    assert [(row.a.id, row.b.id) for row in started.results().collect()] == [(0, 0)]


def test_structs_of_other_fields_are_refused(spark: SparkSession) -> None:
    """Spark compares their fields by position, and DuckDB by name."""
    a = spark.sql("SELECT 1L AS id, named_struct('k', 1L, 's', 2L) AS x")
    b = spark.sql("SELECT 1L AS id, named_struct('s', 1L, 'k', 2L) AS x")
    for on in ("a.x = b.x", "a.x <=> b.x"):
        with pytest.raises(ValueError, match=r"brings together struct<k:.* and struct<s:"):
            StreamJoin({"a": a, "b": b}, on, Centralized())
