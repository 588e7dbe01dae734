"""Runs of tables follow the model of clocks: results by batch, watermarks, irregular tuples."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted
from braid.core.stream_clocks import advance_idle_clocks, set_ended_clocks, to_times
from braid.execution.engine import Engine
from braid.papers.baselines.centralized import Centralized
from braid.papers.baselines.hash_partition import HashPartition
from braid.papers.theta.grid import StaticGrid
from braid.stream_join import JoinRun, StreamJoin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from models import clocks, kinds

ALIASES = ("a", "b", "c")
KEYS = st.integers(0, 1)


@dataclass(frozen=True)
class Case:
    """A join of two or three streams on ``k``, of batches that advance together.

    - ``tuples``: by stream and batch, event time after the start of the batch, and key.
    - ``is_last_timeless``: whether the last stream has no event time.
    - ``failing``: batches whose delivery fails once, so that the run is started anew.
    """

    tuples: list[list[list[tuple[int | None, int]]]]
    windows: list[int]
    lateness: list[int]
    ahead: int
    idle: int | None
    failing: frozenset[int] = frozenset()
    is_last_timeless: bool = False

    @property
    def timeless(self) -> tuple[int, ...]:
        """Streams without event time."""
        return (len(self.tuples) - 1,) if self.is_last_timeless else ()

    @property
    def rows(self) -> list[kinds.Tuple]:
        """The tuples, as the model has them."""
        found = []
        for stream, batches in enumerate(self.tuples):
            numbered = [(n, *row) for n, batch in enumerate(batches) for row in batch]
            for id, (n, time, key) in enumerate(numbered):
                at = None if time is None or stream in self.timeless else 10 * n + time
                found.append(kinds.Tuple(stream, id, n, at, {"k": key}))
        return found

    @property
    def rules(self) -> kinds.JoinRules:
        """The rules, as the model has them."""
        last = [max((n for n, b in enumerate(each) if b), default=-1) for each in self.tuples]
        reach = [
            [None if {i, j} & {*self.timeless} and i != j else most for j, most in enumerate(row)]
            for i, row in enumerate(clocks.reach_of_windows(self.windows))
        ]
        return kinds.JoinRules(
            lambda *pair: len({t.values["k"] for t in pair}) == 1,
            reach,
            lateness=tuple(self.lateness),
            ahead=self.ahead,
            idle=self.idle,
            ends=tuple(last),
            timeless=self.timeless,
            closes=False,
        )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a case. Some times are wrong, late or NULL, and some batches are empty."""
    streams = draw(st.sampled_from([2, 2, 3]))
    times = st.one_of(st.integers(0, 12), st.integers(0, 12), st.sampled_from([None, -15, 500]))
    batch = st.one_of(st.lists(st.tuples(times, KEYS), max_size=4), st.just([]))
    whole = st.lists(batch, min_size=6, max_size=6).filter(any)
    spans = st.lists(st.sampled_from([5, 12, 30]), min_size=streams, max_size=streams)
    late = st.lists(st.sampled_from([0, 4, 20]), min_size=streams, max_size=streams)
    timeless = draw(st.booleans())
    tuples = draw(st.lists(whole, min_size=streams, max_size=streams))
    if timeless and streams == 2:  # NULL is a time of 0 where nothing bounds event time
        tuples = [[[(t or 0, k) for t, k in batch] for batch in each] for each in tuples]
    return Case(
        tuples,
        draw(spans),
        draw(late),
        draw(st.sampled_from([15, 60, 10_000])),
        draw(st.sampled_from([None, 8, 25])),
        draw(st.frozensets(st.integers(0, 5), max_size=2)),
        timeless,
    )


def make_streams(case: Case) -> dict[str, pa.Table]:
    """Return the streams as tables."""
    streams = {}
    for stream, alias in enumerate(ALIASES[: len(case.tuples)]):
        rows = [t for t in case.rows if t.stream == stream]
        streams[alias] = pa.table(
            {
                "id": pa.array([t.id for t in rows], pa.int64()),
                "k": pa.array([t.values["k"] for t in rows], pa.int64()),
                "ts": pa.array([t.time for t in rows], pa.timestamp("us", tz="UTC")),
                "batch": pa.array([t.batch for t in rows], pa.int32()),
            }
        )
    return streams


def to_micros(time: datetime | None) -> int | None:
    return None if time is None else (time - datetime(1970, 1, 1, tzinfo=UTC)) // span(1)


def span(units: int) -> timedelta:
    return timedelta(microseconds=units)


def start_run(case: Case, folder: Path, give: Any = None) -> JoinRun:
    """Start the run of a case."""
    streams = make_streams(case)
    timed = [*streams][: len(streams) - len(case.timeless)]
    windows = {a: span(w) for a, w in zip(timed, case.windows, strict=False)}
    join = StreamJoin(
        streams,
        " AND ".join(f"a.k = {alias}.k" for alias in [*streams][1:]),
        Centralized() if case.idle else HashPartition(2),
        windows if len(timed) > 1 else None,
        dict.fromkeys(timed, "ts"),
        {alias: span(late) for alias, late in zip(streams, case.lateness, strict=True)},
        check=True,
        ahead=span(case.ahead),
        idle=None if case.idle is None else span(case.idle),
    )
    return join.start(folder, batches="batch", durability="process", foreachBatch=give)


TIMES = st.one_of(st.none(), st.integers(-50, 50))


@given(st.lists(st.tuples(TIMES, st.booleans()), min_size=2, max_size=4), st.integers(1, 60))
def test_no_clock_is_further_behind_than_idle(
    streams: list[tuple[int | None, bool]], idle: int
) -> None:
    times, ended = zip(*streams, strict=True)
    found = set_ended_clocks(advance_idle_clocks(times, idle), ended)
    assert list(found) == clocks.find_effective_clocks(times, ended, idle)
    assert advance_idle_clocks(times, None) == times
    without = [s for s, time in enumerate(times) if time is None]
    assert all(advance_idle_clocks(times, idle, without)[s] is None for s in without)


def list_irregular(run: JoinRun) -> Counter[Any]:
    """Return the irregular rows of a run: batch, reason, stream, id, how far behind."""
    rows: Counter[Any] = Counter()
    for row in run.late().to_pylist():
        present = {alias: tuple_ for alias, tuple_ in row["row"].items() if tuple_ is not None}
        assert [*present] == [row["stream"]]
        behind = None if row["behind"] is None else row["behind"] // span(1)
        id = present[row["stream"]]["id"]
        rows[row["batch"], row["reason"], row["stream"], id, behind] += 1
    return rows


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(cases())
def test_runs_follow_the_model_of_clocks(case: Case) -> None:
    expected = kinds.run_join(case.rows, case.rules)
    pairs: dict[int, list[Any]] = {}
    failing = set(case.failing)
    watermarks: list[list[Any]] = []
    run_batch = Engine.run_batch

    def keep_pairs(results: pa.Table, batch: int) -> None:
        ids = [results[a].combine_chunks().field("id").to_pylist() for a in results.column_names]
        pairs[batch] = [*zip(*ids, strict=True)]
        if batch in failing:
            failing.remove(batch)
            raise OSError("no room")

    def keep_watermarks(engine: Engine, *given: Any) -> None:
        run_batch(engine, *given)
        watermarks.append(list(engine.rules.find_state_watermarks(engine.state)))

    with TemporaryDirectory() as folder:
        Engine.run_batch = keep_watermarks  # type: ignore[method-assign]
        try:
            for _ in range(len(case.failing) + 1):
                run = start_run(case, Path(folder) / "run", keep_pairs)
                run._ended.wait()
                if run.exception() is None:
                    break
            assert run.awaitTermination()
        finally:
            Engine.run_batch = run_batch  # type: ignore[method-assign]
        found = [(batch, ids) for batch, each in pairs.items() for ids in each]
        assert Counter(found) == Counter(expected.pairs) and not failing & {*pairs}
        assert watermarks == expected.watermarks
        shown = [to_times(each) for each in expected.watermarks]
        assert [to_micros(time) for time in run.watermark.values()] == [*shown[-1]]
        assert run.status["watermark"] == run.watermark
        assert list_irregular(run) == Counter(
            (i.batch, i.reason, ALIASES[i.stream], i.id, i.behind) for i in expected.irregular
        )
        committed = [e for e in run.events() if isinstance(e, BatchCommitted)]
        streams = range(len(case.tuples))
        assert [e.watermarks for e in committed] == shown
        for reason, field in (("late", "late_tuples"), ("untimed", "untimed"), ("ahead", "ahead")):
            counts = Counter((i.batch, i.stream) for i in expected.irregular if i.reason == reason)
            assert [getattr(e, field) for e in committed] == [
                tuple(counts[e.batch, s] for s in streams) for e in committed
            ]


@pytest.mark.parametrize("placement", [Centralized(), StaticGrid(4)])
def test_early_tuples_of_a_first_batch_are_rows_on_every_placement(
    tmp_path: Path, placement: Placement
) -> None:
    """A grid cuts the batch into blocks, each of one event time."""
    times = pa.array([0, 65_000_000], pa.timestamp("us"))
    a = pa.table({"id": [0, 1], "ts": times, "batch": [0, 0]})
    b = pa.table({"id": [0], "ts": times[:1], "batch": [1]})
    join = StreamJoin(
        {"a": a, "b": b}, "a.id = b.id OR true", placement, "15 s", "ts", ahead="1 minute"
    )
    run = join.start(tmp_path / "run", batches="batch", durability="process")
    run.awaitTermination()
    assert run.status["ahead"] == {"a": 1}
    assert run.late()["reason"].to_pylist() == ["ahead"]


def test_times_that_wait_for_support_survive_a_resume(tmp_path: Path) -> None:
    """Eight tuples of a are far ahead, one in each batch. The last one moves the clock."""
    a = [[(0, 0), (0, 0), (0, 0), (1000 - 10 * n, 0)] for n in range(9)]
    case = Case([a, [[(0, 0)]] * 9], [5, 5], [0, 0], 100, None)
    expected = kinds.run_join(case.rows, case.rules)

    def fail_once(results: pa.Table, batch: int) -> None:
        if batch == 4 and not failed:
            failed.append(batch)
            raise OSError("no room")

    failed: list[int] = []
    start_run(case, tmp_path / "run", fail_once)._ended.wait()
    run = start_run(case, tmp_path / "run", fail_once)
    assert run.awaitTermination() and failed == [4]
    clocks_after = [e.clocks[0] for e in run.events() if isinstance(e, BatchCommitted)]
    assert expected.clocks[6][0] == 60 and clocks_after[-3:] == [60, 1000, 1000]


FACTS = pa.table(
    {
        "id": pa.array(range(40), pa.int64()),
        "k": pa.array([n % 8 for n in range(40)], pa.int64()),
        "ts": pa.array([n * 1_000_000 for n in range(40)], pa.timestamp("us", tz="UTC")),
    }
)
DIMENSION = pa.table({"k": pa.array(range(5), pa.int64()), "name": [f"no. {n}" for n in range(5)]})


def test_a_static_stream_without_event_time_comes_before_others(tmp_path: Path) -> None:
    """Facts that miss it are answered one batch later, as it has ended."""
    delivered: dict[int, list[Any]] = {}

    def keep_ids(results: pa.Table, batch: int) -> None:
        rows = results.to_pylist()
        delivered[batch] = [(r["f"]["id"], r["d"] and r["d"]["name"]) for r in rows]

    streams = {"f": FACTS, "d": DIMENSION}
    join = StreamJoin(streams, "f.k = d.k", time={"f": "ts"}, how="left", check=True)
    run = join.start(tmp_path / "run", batches=5, durability="process", foreachBatch=keep_ids)
    assert run.awaitTermination()
    received = [e.received_tuples for e in run.events() if isinstance(e, BatchCommitted)]
    assert received == [(8, 5), (8, 0), (8, 0), (8, 0), (8, 0), (0, 0)]
    for batch, rows in delivered.items():
        found = [(n, f"no. {n % 8}") for n in range(40) if n // 8 == batch and n % 8 < 5]
        missed = [(n, None) for n in range(40) if n // 8 == batch - 1 and n % 8 >= 5]
        assert Counter(rows) == Counter(found + missed)
    assert run.watermark["f"] is None and run.watermark["d"] is not None


@pytest.mark.parametrize(
    ("windows", "says"),
    [
        ({"d": "1 s"}, "a window of d is given but no event-time column of it: name it with time="),
        ("1 s", "windows are given but only stream f has event time; name that of another with"),
    ],
)
def test_a_window_of_a_stream_without_event_time_is_refused(windows: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        StreamJoin({"f": FACTS, "d": DIMENSION}, "f.k = d.k", windows=windows, time={"f": "ts"})


def test_a_window_for_all_streams_is_one_of_those_with_event_time() -> None:
    streams, on = {"f": FACTS, "g": FACTS, "d": DIMENSION}, "f.k = d.k AND f.k = g.k"
    join = StreamJoin(streams, on, windows="1 s", time={"f": "ts", "g": "ts"})
    most = 999_999
    assert join._join.bounds == ((0, most, None), (most, 0, None), (None, None, 0))
