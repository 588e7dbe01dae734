"""A stream that has ended has a clock after all times; others do not wait for it."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import inf
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.core.batch_work import RunRules
from braid.core.horizon import reach_of_windows
from braid.core.run_state import RunState
from braid.core.stream_clocks import END, Clock, find_watermarks, set_ended_clocks
from braid.execution.engine import Engine
from braid.papers.baselines.centralized import Centralized
from braid.storage.run_store import RunStore
from braid.stream_join import JoinRun, StreamJoin
from hypothesis import given
from hypothesis import strategies as st

CLOCKS = st.one_of(st.none(), st.just(END), st.integers(-50, 50))


@given(st.lists(st.tuples(CLOCKS, st.integers(0, 5), st.booleans()), min_size=2, max_size=4))
def test_a_watermark_is_the_least_of_the_other_streams_that_have_event_time(
    streams: list[tuple[Clock, int, bool]],
) -> None:
    clocks, lateness, timed = zip(*streams, strict=True)
    timeless = [s for s, has_time in enumerate(timed) if not has_time]
    found = find_watermarks(clocks, lateness, timeless)
    for stream, watermark in enumerate(found):
        others = [
            (clock, late)
            for s, (clock, late, has_time) in enumerate(streams)
            if has_time and s != stream
        ]
        if not others or any(clock is None for clock, _ in others):
            assert watermark is None
        elif all(clock == END for clock, _ in others):
            assert watermark == END
        else:
            assert watermark == min(c - late for c, late in others if c is not None)
            assert type(watermark) is int


def test_an_end_is_after_all_times_whatever_the_lateness() -> None:
    assert set_ended_clocks((1, None, 3), (True, True, False)) == (END, END, 3)
    assert set_ended_clocks((1, None), ()) == (1, None)
    assert find_watermarks((END, 7), (1 << 62, 2)) == (5, END) and END > 1 << 63


def test_only_a_stream_with_a_last_batch_ends_and_it_stays_so() -> None:
    rules = RunRules(
        Centralized(), ("a", "b", "c"), reach_of_windows((None,) * 3), last_epochs=(None, 2, -1)
    )
    ended = (False,) * 3
    for epoch in range(5):
        ended = rules.find_ended_streams(ended, epoch)
        assert ended == (False, epoch >= 2, True)
    assert rules.find_ended_streams((True,) * 3, 0) == (True,) * 3
    state = RunState.initial(3, None)
    assert rules.find_state_watermarks(state) == (None,) * 3
    forgotten = rules.find_retention(RunState(clocks=(1, 2, 3), ended=(False, True, True)))
    assert forgotten.horizons == (inf, None, None)


def make_stream_rows(batches: dict[int, list[int]]) -> pa.Table:
    """Return a stream with keys by batch. Each batch is ten seconds after the one before."""
    found = [(n, n * 10_000_000 + i, k) for n, keys in batches.items() for i, k in enumerate(keys)]
    number, time, key = zip(*found, strict=True)
    return pa.table(
        {
            "k": pa.array(key, pa.int64()),
            "batch": pa.array(number, pa.int32()),
            "ts": pa.array(time, pa.timestamp("us", tz="UTC")),
        }
    )


A = make_stream_rows({n: [0, 1, 2] for n in range(7)})
B = make_stream_rows({0: [0, 1], 2: [1, 2, 2]})


def count_result_pairs(run: JoinRun) -> Counter[Any]:
    found = run.results()
    both = zip(found["a"].to_pylist(), found["b"].to_pylist(), strict=True)
    return Counter((a["ts"], b["ts"]) for a, b in both)


def find_expected_pairs() -> Counter[Any]:
    both = product(A.to_pylist(), B.to_pylist())
    return Counter((a["ts"], b["ts"]) for a, b in both if a["k"] == b["k"])


def start_equi_join(folder: Path, give: Any = None) -> JoinRun:
    join = StreamJoin({"a": A, "b": B}, "a.k = b.k", Centralized(), time="ts", check=True)
    return join.start(folder, batches="batch", durability="process", foreachBatch=give)


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> list[RunState]:
    """The states after each batch of all runs."""
    found: list[RunState] = []
    run_batch = Engine.run_batch

    def run_and_keep(engine: Engine, *given: Any) -> None:
        run_batch(engine, *given)
        found.append(engine.state)

    monkeypatch.setattr(Engine, "run_batch", run_and_keep)
    return found


def test_a_static_stream_ends_with_its_last_tuple(tmp_path: Path, states: list[RunState]) -> None:
    run = start_equi_join(tmp_path / "run")
    assert run.awaitTermination() and count_result_pairs(run) == find_expected_pairs()
    assert [s.ended for s in states] == [(n == 6, n >= 2) for n in range(7)]
    held = [sum(b.rows for b in s.blocks.values() if b.stream == 0) for s in states]
    assert held == [3, 6, 9, 3, 3, 3, 3]


def test_a_resumed_run_knows_which_streams_have_ended(
    tmp_path: Path, states: list[RunState]
) -> None:
    def fail_at(last: int) -> Any:
        def give(results: Any, batch: int) -> None:
            if batch == last:
                raise OSError(f"no room for batch {batch}")

        return give

    for last in (1, 3):
        with pytest.raises(RuntimeError, match=f"no room for batch {last}"):
            start_equi_join(tmp_path / "run", fail_at(last)).awaitTermination()
    run = start_equi_join(tmp_path / "run", fail_at(99))
    assert run.awaitTermination() and count_result_pairs(run) == find_expected_pairs()
    assert [s.ended for s in states] == [(n == 6, n >= 2) for n in range(7)]
    assert RunStore(tmp_path / "run").last_state().ended == (True, True)
