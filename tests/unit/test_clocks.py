"""A few wrong timestamps do not move a clock, and lose no result."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from braid.core.clock_events import ClockJumped
from braid.core.run_events import BatchCommitted
from braid.core.stream_clocks import SUPPORT, StreamClock, TimeSpread, advance_clock, needs_spread
from braid.health import read_health
from braid.kernels.block_builder import describe_times
from braid.papers.baselines.centralized import Centralized
from braid.stream_join import JoinRun, StreamJoin
from hypothesis import given
from hypothesis import strategies as st

DAY = 86_400_000_000
START = datetime(2024, 3, 1, tzinfo=UTC)
WRONG = datetime(2999, 1, 1, tzinfo=UTC)
TIMES = st.lists(st.integers(0, 40), max_size=30)


def follow_rule(batches: list[list[int]], ahead: int) -> list[tuple[int | None, int]]:
    """Follow the rule of clocks over all tuples.

    Return, after each batch, the clock and the number of tuples of the batch too far ahead of it.
    """
    clock: int | None = None
    came: list[int] = []
    found = []
    for batch in batches:
        came += batch
        if clock is None and batch:
            clock = sorted(batch)[(len(batch) - 1) // 2]
        moved = clock is not None
        while moved:
            assert clock is not None
            within = max((t for t in came if t <= clock + ahead), default=clock)
            beyond = sorted(t for t in came if t > max(clock, within) + ahead)
            after = max(clock, within, beyond[-8] if len(beyond) >= 8 else clock)
            moved, clock = after > clock, after
        early = 0 if clock is None else sum(t > clock + ahead for t in batch)
        found.append((clock, early))
    return found


def in_blocks(batch: list[int], blocks: int) -> list[list[int]]:
    return [part for n in range(blocks) if (part := batch[n::blocks])]


@given(st.lists(TIMES, max_size=8), st.integers(1, 12), st.integers(1, 4))
def test_clocks_follow_the_rule_however_tuples_lie_in_blocks(
    batches: list[list[int]], ahead: int, blocks: int
) -> None:
    clock, found = StreamClock(), []
    for batch in batches:
        described: list[tuple[int, int, TimeSpread | None]] = []
        for part in in_blocks(batch, blocks):
            times, span = np.array(part), (min(part), max(part))
            needed = needs_spread(span, clock.time, ahead)
            spread = describe_times(times, clock.time, ahead) if needed else None
            described.append((len(part), span[1], spread))
        after = advance_clock(clock, described, ahead)
        assert (after.support > 0) == skips(clock, batch, after.clock.time, ahead)
        clock = after.clock
        assert len(clock.pending) < SUPPORT
        found.append((clock.time, after.early))
    assert found == follow_rule(batches, ahead)


def skips(before: StreamClock, batch: list[int], after: int | None, ahead: int) -> bool:
    """Return whether no chain of tuples, each at most ``ahead`` past the previous one, leads
    there.
    """
    at = before.time
    if at is None:
        at = sorted(batch)[(len(batch) - 1) // 2] if batch else None
    if at is None or after is None:
        return False
    for time in sorted([*before.pending, *batch]):
        if at < time <= at + ahead:
            at = time
    return at < after


def test_the_median_of_a_large_first_batch_is_found_to_a_part_in_a_hundred() -> None:
    draw = np.random.default_rng(3)
    right, wrong = draw.integers(0, 10**6, 60_000), draw.integers(10**9, 10**10, 40_000)
    times = draw.permutation(np.concatenate([right, wrong]))
    blocks = [
        (len(part), int(part.max()), describe_times(part, None, 10**12))
        for part in np.array_split(times, 7)
    ]
    clock = advance_clock(StreamClock(), blocks, 1).clock.time
    assert clock is not None
    sample = sorted(t for _, _, s in blocks for t in s.sample)
    assert abs(np.searchsorted(np.sort(times), sample[(len(sample) - 1) // 2]) - 50_000) < 1_000


def test_described_times_are_few_whatever_comes() -> None:
    spread = describe_times(np.arange(100_000) * 10, None, 5)
    assert (
        len(spread.latest_times) == 8
        and len(spread.landmarks) == 1_000
        and len(spread.sample) == 256
    )


# In runs.


def stream(times: list[list[datetime | None]]) -> pa.Table:
    rows = [(n, time) for n, batch in enumerate(times) for time in batch]
    return pa.table(
        {
            "id": pa.array(range(len(rows)), pa.int64()),
            "k": pa.array([0] * len(rows), pa.int64()),
            "batch": pa.array([n for n, _ in rows], pa.int32()),
            "ts": pa.array([time for _, time in rows], pa.timestamp("us", tz="UTC")),
        }
    )


def regular(batches: int, behind: int, count: int = 1) -> list[list[datetime | None]]:
    """Return the times by batch: each starts an hour after the previous one, less ``behind``
    seconds.
    """
    return [
        [START + timedelta(hours=n, seconds=i * 0.001 - behind) for i in range(count)]
        for n in range(batches)
    ]


def delayed(batches: int) -> tuple[Any, Any]:
    """Return two streams with a pair in each hour; b's tuple is stored a batch before a's."""
    return [[], *regular(batches, 0)], [*regular(batches, 2), []]


def run_join(folder: Path, a: Any, b: Any, **more: Any) -> JoinRun:
    streams = {"a": stream(a), "b": stream(b)}
    join = StreamJoin(streams, "a.k = b.k", Centralized(), "1 minute", "ts", check=True, **more)
    run = join.start(folder, batches="batch", durability="process")
    assert run.awaitTermination()
    return run


def pairs(run: JoinRun) -> Counter[tuple[int, int]]:
    rows: Any = run.results()
    return Counter((row["a"]["id"], row["b"]["id"]) for row in rows.to_pylist())


def list_jumps(run: JoinRun) -> list[ClockJumped]:
    return [e for e in run.events() if isinstance(e, ClockJumped)]


def test_one_timestamp_of_the_year_2999_loses_no_result(tmp_path: Path) -> None:
    a, b = delayed(12)
    a[2].append(WRONG)
    run = run_join(tmp_path, a, b)
    assert pairs(run) == Counter((n + (n > 1), n) for n in range(12))
    assert run.status["ahead"] == {"a": 1} and run.status["late"] == {} and not list_jumps(run)
    assert "(1 of a ahead)" in repr(run) and "; 1 of a ahead" in str(read_health(tmp_path))
    assert [e.ahead for e in run.events() if isinstance(e, BatchCommitted)][2] == (1, 0)


@pytest.mark.parametrize("broken", range(2, 8))
def test_seven_wrong_timestamps_of_each_stream_lose_no_result(tmp_path: Path, broken: int) -> None:
    a, b = delayed(12)
    for n in range(broken):
        a[2 + n // 2].append(WRONG + timedelta(days=9 * n))
        b[3 + n].append(WRONG - timedelta(days=9 * n + 3))
    run = run_join(tmp_path, a, b)
    assert pairs(run).total() == 12 and not list_jumps(run)
    assert run.status["ahead"] == {"a": broken, "b": broken}


def test_wrong_first_rows_lose_no_result(tmp_path: Path) -> None:
    """They are a minority of the first batch, too early or too late."""
    a, b = regular(12, 0, 5), regular(12, 2, 5)
    a[0] = [WRONG, WRONG, *a[0]]
    b[0] = [datetime(1970, 1, 1, tzinfo=UTC), *b[0], WRONG]
    run = run_join(tmp_path, a, b)
    assert pairs(run).total() == 12 * 25 + 2 and not list_jumps(run), "the wrong ones meet, too"


def test_eight_wrong_timestamps_move_the_clock_and_that_is_said(tmp_path: Path) -> None:
    a, b = delayed(12)
    a[2] += [WRONG] * 5
    a[4] += [WRONG] * 3
    run = run_join(tmp_path, a, b)
    (jump,) = list_jumps(run)
    seen = START + timedelta(hours=2)
    assert jump == ClockJumped(4, "a", micros(seen), micros(WRONG), 8)
    assert pairs(run).total() < 12 and run.status["late"] == {"a": 8}
    said = "the clock of a has jumped once, to 2999-01-01 00:00:00 UTC"
    assert said in str(run.health()) and said in repr(run)


def test_a_first_row_far_ahead_of_the_other_stream_is_said(tmp_path: Path) -> None:
    a, b = regular(12, 0), regular(12, 2)
    a[0] = [WRONG]
    (jump,) = list_jumps(run_join(tmp_path / "first", a, b))
    assert jump == ClockJumped(0, "a", None, micros(WRONG), 1)
    b[0] = []
    (jump,) = list_jumps(run_join(tmp_path / "second", a, b))
    assert (jump.batch, jump.stream, jump.support) == (1, "a", 2)


def test_a_weekend_without_data_is_no_jump_until_eight_tuples_agree(tmp_path: Path) -> None:
    a, b = regular(3, 0, 4), regular(3, 2, 4)
    later = [[t + timedelta(days=3) for t in batch if t] for batch in regular(4, 0, 4)]
    run = run_join(tmp_path, [*a, *later], [*b, *later])
    assert [(j.batch, j.stream) for j in list_jumps(run)] == [(4, "a"), (4, "b")]
    assert run.status["late"] == {} and pairs(run).total() == 7 * 16


def test_sparse_streams_are_no_jumps(tmp_path: Path) -> None:
    """A batch that covers a month advances day by day."""
    days = [[START + timedelta(hours=20 * (40 * n + i)) for i in range(40)] for n in range(6)]
    run = run_join(tmp_path, days, days)
    assert not list_jumps(run) and pairs(run).total() == 240 and run.status["ahead"] == {}


def test_tuples_without_event_time_are_counted_by_stream(tmp_path: Path) -> None:
    a, b = regular(6, 0, 3), regular(6, 2, 3)
    a[2][1] = a[4][0] = b[4][2] = None
    run = run_join(tmp_path, a, b)
    assert run.status["untimed"] == {"a": 2, "b": 1} == run.health().untimed_tuples
    commits = [e for e in run.events() if isinstance(e, BatchCommitted)]
    assert commits[4].untimed == (1, 1) and commits[4].received_tuples == (2, 2)
    assert 'braid_irregular_tuples{kind="untimed",run="a ⋈ b",stream="a"} 2.0' in (
        run.health().to_prometheus()
    )


@pytest.mark.parametrize("how", ["inner", "left"])
@pytest.mark.parametrize("windows", [None, {"a": "2 hours", "b": "1 hour"}])
def test_tuples_without_event_time_are_counted_beside_a_bound_of_the_condition(
    tmp_path: Path, how: str, windows: Any
) -> None:
    """No key of such a tuple is computed: one more than the greatest number would fail."""
    a = pd.DataFrame({"x": [1, 2**63 - 1, 3], "ts": [START, None, START]})
    b = pd.DataFrame({"x": [2, 2, 4], "ts": [START, None, None]})
    on = "a.x + 1 = b.x AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR"
    run = StreamJoin({"a": a, "b": b}, on, how=how, windows=windows, time="ts").start(tmp_path)
    run.awaitTermination()
    assert run.status["untimed"] == {"a": 1, "b": 2} == run.health().untimed_tuples
    rows = [(row["stream"], row["row"][row["stream"]]["x"]) for row in run.late().to_pylist()]
    assert sorted(rows) == [("a", 2**63 - 1), ("b", 2), ("b", 4)]
    assert run.results().num_rows == (1 if how == "inner" else 3)


def test_lateness_is_by_stream(tmp_path: Path) -> None:
    """Tuples of b arrive two hours late, and meet all partners if that stream may be late."""
    a, b = regular(12, 0), regular(12, -1800)
    for n in range(2, 12):
        b[n] += regular(12, 2)[n - 2]
    found = {}
    for lateness in ("0 seconds", "3 hours", {"b": "3 hours"}, {"a": "3 hours"}):
        folder = tmp_path / str(len(found))
        run = run_join(folder, a, b, lateness=lateness)
        found[str(lateness)] = pairs(run).total(), run.status["late"]
    resumed = StreamJoin.resume(tmp_path / "2", {"a": stream(a), "b": stream(b)})
    assert (
        resumed.config.lateness_microseconds == (0, 10_800_000_000) and resumed.awaitTermination()
    )
    assert found["{'b': '3 hours'}"] == found["3 hours"] == (10, {})
    assert found["0 seconds"] == found["{'a': '3 hours'}"] == (0, {"b": 10})


@pytest.mark.parametrize(
    "given, says",
    [
        ({"lateness": {"c": "1 s"}}, r"lateness is given for \['c'\]; the streams are a, b"),
        ({"lateness": {"a": "soon"}}, "the lateness of a is 'soon'; it must be a positive span"),
        ({"ahead": "0 s"}, "the ahead is '0 s'; it must be a positive span"),
        ({"idle": 5}, "the idle is 5; it must be a positive span"),
    ],
)
def test_spans_that_cannot_be_are_refused(given: dict[str, Any], says: str) -> None:
    a = stream(regular(1, 0))
    with pytest.raises(ValueError, match=says):
        StreamJoin({"a": a, "b": a}, "a.k = b.k", windows="1 s", time="ts", **given)


def micros(time: datetime) -> int:
    return round(time.timestamp() * 1e6)
