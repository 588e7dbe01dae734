"""One run, several executors: the same plan gives the same blocks and results with each."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from braid import AdaptiveGrid, Coordinated, HotKeys, HyperCube, Ring, SharedJoin
from braid.core.batch_history import PHASE_COLUMNS, PHASES
from braid.core.irregular_rows import IrregularRowsWritten
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted
from braid.core.step_counts import StepCounts
from braid.core.touch_events import HostLost
from braid.errors import SparkResultLimitExceeded
from braid.execution.executors import Executor, make_executor
from braid.execution.spark_executor import SparkExecutor
from braid.execution.thread_executor import ThreadExecutor
from braid.explain import explain_join
from braid.papers.hotkeys.run_events import SpreadChanged
from braid.papers.hypercube.run_events import SharesChosen
from braid.stream_join import JoinRun, StreamJoin
from oracle import (
    committed_ids,
    compute_expected,
    create_frames,
    describe_difference,
    list_files,
    make_tables,
    wait_until,
)
from placement_checks import check_counts, describe_placement
from pyspark.sql import SparkSession
from scatter import Scatter

ON = "a.k = b.k AND a.n < b.n AND a.s <> concat(b.s, a.s)"
"""A condition with an index, a link and a residual, so that every local join and DuckDB take
part.
"""

CHAIN = "a.f = b.f AND b.s = c.s AND a.n < c.n"


class Packed(SparkExecutor):
    """An executor that packs every batch on the same number of partitions."""

    def __init__(self, partitions: int) -> None:
        super().__init__()
        self.partitions = partitions

    def execute_batch(self, frame: Any, batch: Any) -> Any:
        assert batch.spec.partitions == 2
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "braid.execution.spark_executor.choose_partitions", lambda *_: self.partitions
            )
            return super().execute_batch(frame, batch)


class Turning:
    """An executor that uses the next of several executors in each batch."""

    def __init__(self, *ways: Executor) -> None:
        self.ways = cycle(ways)

    def execute_batch(self, frame: Any, batch: Any) -> Any:
        return next(self.ways).execute_batch(frame, batch)


def way(name: str) -> Executor:
    """Return an executor.

    Two stages of two tasks, one task, two threads, the product's choice for "process", or turns of
    these.
    """
    if " " in name:
        return Turning(*map(way, name.split()))
    made: dict[str, Callable[[], Executor]] = {
        "stages": lambda: Packed(2),
        "one": lambda: Packed(1),
        "threads": lambda: ThreadExecutor(2, alone=0),
        "process": lambda: make_executor("process"),
    }
    return made[name]()


def ran(join: StreamJoin, folder: Path, way: Executor, patch: pytest.MonkeyPatch) -> JoinRun:
    patch.setattr("braid.engine_run.make_executor", lambda *_: way)
    run = join.start(folder, batches="batch")
    run.awaitTermination()
    return run


def without_tasks(step: StepCounts) -> StepCounts:
    """Return counts without seconds and probes, which depend on the tasks."""
    checks = tuple(check._replace(seconds=0.0) for check in step.checks)
    return step._replace(rows=0, seconds=0.0, checks=checks)


def seen(run: JoinRun) -> list[Any]:
    """Return the events of batches without fields that depend on time, and the irregular rows.

    Tasks write the latter to files, whose number and names differ.
    """
    plain: list[Any] = []
    for e in run.events():
        if isinstance(e, IrregularRowsWritten):
            continue
        if isinstance(e, BatchCommitted):
            hosts = tuple(msgspec.structs.replace(h, seconds=0.0) for h in e.host_metrics)
            e = replace(
                e,
                seconds_by_phase={},
                host_metrics=hosts,
                executor="",
                executor_reason="",
                announced_bytes=0,
            )
            e = replace(
                e, source_bytes=0, task_count=0, previous_commit_seconds=0.0, disk_free=None
            )
            e = replace(e, symptoms=msgspec.structs.replace(e.symptoms, late_by={}))
            e = replace(e, step_counts=tuple(map(without_tasks, e.step_counts)))
        plain.append(e)
    late = run.late().select("stream", "reason", "batch").collect()
    return [*plain, *sorted(map(tuple, late))]


PLACEMENTS = [
    (Scatter(pieces=3), "threads stages process one"),
    (AdaptiveGrid(hosts=5, epsilon=0.5), "one stages threads process"),
    (Coordinated(hosts=5, segment_batches=2), "process one stages threads"),
    (Ring(hosts=4, form="interleaved", max_tuples_in_flight=50), "process one threads stages"),
    (HotKeys(hosts=3, target=1.01, every=1, values=8), "threads one stages process"),
]


@pytest.mark.parametrize(
    ("placement", "turns"), PLACEMENTS, ids=[describe_placement(p) for p, _ in PLACEMENTS]
)
def test_the_way_of_a_batch_changes_nothing(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    placement: Placement,
    turns: str,
) -> None:
    """Blocks, results and counts of every batch are the same with every executor.

    Executors are stages of tasks, one task for a batch, threads of this process, and turns of them.
    Two placements, one with migrations, run with each of them, the others only with turns. Each
    stream has another name for its event time. HotKeys changes at any cost.
    """
    monkeypatch.setattr("braid.papers.hotkeys.value_work.PAIR", 10.0)
    streams, windows = make_tables("ab", 150, seed=71, batches=4), {"a": 130, "b": 70}
    streams = {alias: with_wrong_times(rows) for alias, rows in streams.items()}
    given = create_frames(spark, streams)
    join = StreamJoin(
        given | {"b": given["b"].withColumnRenamed("ts", "came at")},
        ON,
        placement,
        {a: f"{w} seconds" for a, w in windows.items()},
        time={"a": "ts", "b": "came at"},
        lateness="1 minute",
        partitions=2,
        check=True,
    )
    want, first = compute_expected(streams, ON, windows), None
    whole = (
        ("stages", "one", "process")
        if isinstance(placement, Scatter | AdaptiveGrid)
        else ("stages",)
    )
    for name in (*whole, turns):
        run = ran(join, tmp_path / name, way(name), monkeypatch)
        assert describe_difference(committed_ids(run), want) == ""
        check_all_counts(run, streams.values())
        reported = seen(run)
        first = first or reported
        assert reported == first
        spread = any(isinstance(e, SpreadChanged) for e in run.events())
        assert spread == isinstance(placement, HotKeys)
        spent, phases = run.metrics(by="batch"), [PHASE_COLUMNS[p] for p in PHASES]
        assert (spent[phases] > 0).all(axis=None)
        assert name not in ("stages", "one") or (spent[phases] > 0).all(axis=None)
        assert spent[phases].sum(axis=1).to_numpy() == pytest.approx(
            spent["total_seconds"].to_numpy()
        )


def test_a_hypercube_joins_on_spark_as_in_this_process(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark SQL makes the routing keys, of NaN, -0.0 and text; batches run by tasks and threads."""
    streams, on = make_tables("abc", {"a": 200, "b": 60, "c": 60}, seed=72, batches=4), CHAIN
    want = compute_expected(streams, on)
    join = StreamJoin(
        create_frames(spark, streams), on, HyperCube(4, threshold=1.0), partitions=2, check=True
    )
    run = ran(join, tmp_path / "run", way("stages process"), monkeypatch)
    assert want and describe_difference(committed_ids(run), want) == ""
    shares = [e.shares for e in run.events() if isinstance(e, SharesChosen)]
    assert len(shares) > 1 and any(h.received_tuples for h in last_hosts(run)[1:])
    local = StreamJoin(streams, on, HyperCube(4, threshold=1.0), check=True)
    local_run = local.start(tmp_path / "local", batches="batch")
    local_run.awaitTermination()
    assert describe_difference(committed_ids(local_run), want) == ""
    assert shares == [e.shares for e in local_run.events() if isinstance(e, SharesChosen)]


def last_hosts(run: JoinRun) -> Sequence[Any]:
    """Return the metrics of the hosts in the last batch."""
    return [e for e in run.events() if isinstance(e, BatchCommitted)][-1].host_metrics


def with_wrong_times(rows: pa.Table) -> pa.Table:
    """Return the rows with a few event times that are NULL or in the year 2999."""
    times = rows["ts"].to_pylist()
    for place in (20, 60, 61, 140):
        times[place] = None
    for place in (50, 90, 91):
        times[place] = datetime(2999, 1, 1, tzinfo=UTC) + timedelta(days=place)
    return rows.set_column(2, "ts", pa.array(times, rows.schema.field("ts").type))


def check_all_counts(run: JoinRun, streams: Iterable[pa.Table]) -> None:
    """Check that all tuples were taken, dropped for a NULL key, or untimed, by stream and batch.

    A tuple without key and time is untimed.
    """
    commits = [e for e in run.events() if isinstance(e, BatchCommitted)]
    for n, e in enumerate(commits[:4]):
        batches = [rows.filter(pc.equal(rows["batch"], n)) for rows in streams]
        keyed = [
            pc.or_(pc.and_(b["k"].is_valid(), b["n"].is_valid()), b["ts"].is_null())
            for b in batches
        ]
        dropped = [
            b.num_rows - (pc.sum(k).as_py() or 0) for b, k in zip(batches, keyed, strict=True)
        ]
        check_counts([b.num_rows for b in batches], dropped, e)
    assert set(run.status["untimed"]) == set(run.status["ahead"]) == set("ab")


def ways(run: JoinRun) -> list[str]:
    return [e.executor for e in run.events() if isinstance(e, BatchCommitted) and e.executor]


def test_small_batches_stay_in_this_process_and_say_why(
    spark: SparkSession, tmp_path: Path
) -> None:
    streams, on = make_tables("ab", 80, seed=15, batches=3), "a.k = b.k"
    run = StreamJoin(create_frames(spark, streams), on, Scatter(), check=True).start(
        tmp_path / "run", batches="batch"
    )
    run.awaitTermination()
    assert describe_difference(committed_ids(run), compute_expected(streams, on)) == ""
    assert ways(run) == ["process"] * 3
    chosen_events = [e for e in run.events() if isinstance(e, BatchCommitted)]
    assert all(
        "s in this process" in e.executor_reason and e.announced_bytes > 0 for e in chosen_events
    )
    assert [*run.metrics(by="batch")["executor"]] == ["process"] * 3


@pytest.mark.parametrize("is_announced", [True, False], ids=["announced", "not announced"])
def test_what_is_too_large_for_the_driver_goes_to_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_announced: bool
) -> None:
    """If the source does not announce its size, collecting stops at the limit."""
    streams, on = (
        make_tables("ab", {"a": 200, "b": 3000}, seed=16, batches=3),
        "a.k = b.k AND a.n < b.n",
    )
    join = StreamJoin(
        create_frames(spark, streams),
        on,
        Scatter(),
        partitions=2,
        check=True,
        driver_memory="60 kB",
    )
    if not is_announced:
        monkeypatch.setattr("braid.execution.spark_to_arrow.announced_bytes", lambda frame: 0)
    run = join.start(tmp_path / "run", batches="batch")
    run.awaitTermination()
    assert describe_difference(committed_ids(run), compute_expected(streams, on)) == ""
    assert ways(run) == ["spark"] * 3
    last = [e for e in run.events() if isinstance(e, BatchCommitted)][-1]
    assert "the driver may hold 60 kB" in last.executor_reason
    assert (last.announced_bytes > 0) == is_announced


@pytest.fixture
def little(spark: SparkSession) -> Iterator[None]:
    """Limit results that Spark sends to the driver to 1 MB, as a session setting would."""
    context: Any = spark.sparkContext
    conf = context._jsc.sc().conf()
    conf.set("spark.driver.maxResultSize", "1m")
    yield
    conf.remove("spark.driver.maxResultSize")


def test_what_spark_does_not_hand_over_goes_to_spark(
    spark: SparkSession, tmp_path: Path, little: None
) -> None:
    """Spark cancels the job before this process has read anything, because compressed files
    announce little.

    A run restricted to this process fails, and continues without the restriction.
    """
    rows = spark.range(4000).selectExpr("id", "id AS k", f"'{'x' * 600}' AS pad")
    join = StreamJoin(
        {"a": rows, "b": rows}, "a.k = b.k AND a.k < 9", AdaptiveGrid(2), executor="process"
    )
    run = join.start(tmp_path / "run", batches=2)
    with pytest.raises(
        SparkResultLimitExceeded,
        match="more than the 1048576 bytes that spark.driver.maxResultSize",
    ):
        run.awaitTermination()
    run = StreamJoin.resume(tmp_path / "run", {"a": rows, "b": rows})
    run.awaitTermination()
    assert committed_ids(run) == Counter((n, n) for n in range(9))
    first, second = (e for e in run.events() if isinstance(e, BatchCommitted))
    assert first.executor == second.executor == "spark"
    assert "spark.driver.maxResultSize" in first.executor_reason
    assert "the driver may hold 3.15 MB" in second.executor_reason, (
        "learned, so that it is not tried again"
    )
    bound = explain_executor(join, "auto")
    assert "over 786 kB of tuples always by Spark (the driver may hold 3.15 MB)" in bound


def explain_executor(join: StreamJoin, way: str) -> str:
    """Return the rows of a join's explanation about its executor."""
    changed = replace(join._join, config=replace(join.config, executor=way))
    return next(how for what, _, how in explain_join(changed).rows if what == "executor")


def test_the_ways_meet_in_any_time_zone(spark: SparkSession, tmp_path: Path) -> None:
    """The executor changes during the run, on a batch's own thread and on another.

    Blocks written by one executor are merged with those of the other. Before each batch a host
    loses its state.
    """
    streams, on = make_tables("ab", 150, seed=17, batches=8), "a.k = b.k AND a.ts < b.ts"
    zone, begun = spark.conf.get("spark.sql.session.timeZone"), threading.Event()

    def turn(results: Any, batch: int) -> None:
        begun.wait()
        run.lose(batch % 5)
        if batch == 3:
            run.pause()
        else:
            run.set_executor("spark" if batch % 2 else "process")

    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        join = StreamJoin(
            create_frames(spark, streams), on, Scatter(), partitions=2, check=True, executor="spark"
        )
        run = join.start(tmp_path / "run", batches="batch", foreachBatch=turn)
        begun.set()
        with pytest.raises(
            ValueError, match="executor is 'threads'; it must be one of auto, process, spark"
        ):
            run.set_executor("threads")
        wait_until(lambda: run.isPaused, "batch 3")
        run.set_executor("spark")
        run.unpause()
        run.awaitTermination()
        assert describe_difference(committed_ids(run), compute_expected(streams, on)) == ""
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    assert ways(run) == ["spark", "process"] * 4
    commits = {e.batch: e.executor for e in run.events() if isinstance(e, BatchCommitted)}
    lost = [e for e in run.events() if isinstance(e, HostLost) and e.tuples]
    assert {commits[e.batch] for e in lost} == {"spark", "process"}
    assert all(e.stored_tuples == e.tuples for e in lost), "each block is on one host"


@pytest.mark.parametrize("turns", [True, False], ids=["turns", "too large"])
def test_a_shared_join_goes_either_way(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: bool
) -> None:
    """Every query gets its own results, even if a batch that started here moves to Spark.

    test_sharing.py has the case that all batches run in this process.
    """
    streams, on = make_tables("ab", 200, seed=18, batches=5), "a.k = b.k"
    memory = None if turns else "20 kB"
    join = SharedJoin(
        create_frames(spark, streams), on, "ts", "memory", hosts=2, partitions=2, check=True,
        driver_memory=memory,
    )  # fmt: skip
    join.add("short", "40 seconds", {"a": "a.n > 0"})
    join.add("long", {"a": "100 seconds", "b": "70 seconds"})
    if turns:
        chosen = way("threads stages process one")
        monkeypatch.setattr("braid.engine_run.make_executor", lambda *_: chosen)
    else:
        monkeypatch.setattr("braid.execution.spark_to_arrow.announced_bytes", lambda frame: 0)
    run = join.start(tmp_path / "run", batches="batch")
    run.awaitTermination()
    asked = {"short": ({"a": 40, "b": 40}, f"{on} AND a.n > 0"), "long": ({"a": 100, "b": 70}, on)}
    for name, (windows, condition) in asked.items():
        ids = run.results(name).select("a.id", "b.id").toArrow()
        got = Counter(zip(*(c.to_pylist() for c in ids.columns), strict=True))
        assert describe_difference(got, compute_expected(streams, condition, windows)) == ""
    assert set(ways(run)) == ({"process", "spark"} if turns else {"spark"})


def test_an_unknown_executor_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    streams = create_frames(spark, make_tables("ab", 5, seed=1))
    with pytest.raises(
        ValueError, match="executor is 'dask'; it must be one of auto, process, spark"
    ):
        StreamJoin(streams, "a.k = b.k", Scatter(), executor="dask")
    assert list_files(tmp_path) == set()


@pytest.mark.parametrize(
    ("on", "placement"),
    [
        ("a.flag = b.flag AND a.n BETWEEN b.n - 9 AND b.n + 20", AdaptiveGrid(4)),
        ("a.n <= b.n + 40 AND b.n <= a.n + 30 AND a.f < b.f", Ring(3)),
    ],
)
def test_tasks_search_stored_orders_as_threads_do(
    spark: SparkSession, tmp_path: Path, on: str, placement: Placement
) -> None:
    """Blocks with and without ranks are stored, merged and cut; a run changes executors."""
    streams = make_tables("ab", 200, seed=21, batches=4)
    join = StreamJoin(create_frames(spark, streams), on, placement, partitions=2, check=True)
    with pytest.MonkeyPatch.context() as patch:
        chosen = Turning(SparkExecutor(), ThreadExecutor(2))
        patch.setattr("braid.engine_run.make_executor", lambda *_: chosen)
        run = join.start(tmp_path / "run", batches="batch")
        run.awaitTermination()
    assert describe_difference(committed_ids(run), compute_expected(streams, on)) == ""
