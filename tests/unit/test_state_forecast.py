"""State that is forecast before the start, and windows that lose results."""

from __future__ import annotations

import warnings
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from braid import Centralized
from braid.core.run_events import BatchCommitted
from braid.errors import NarrowWindow
from braid.state_forecast import count_most_within
from braid.stream_join import StreamJoin
from oracle import EPOCH

SECONDS = 300
TABLE = pa.table(
    {
        "k": pa.array([n % 3 for n in range(SECONDS)], pa.int64()),
        "ts": pa.array(
            [EPOCH + timedelta(seconds=n) for n in range(SECONDS)], pa.timestamp("us", "UTC")
        ),
    }
)
STREAMS = {"a": TABLE, "b": TABLE}
NEAR = "b.ts BETWEEN a.ts - INTERVAL 20 SECONDS AND a.ts + INTERVAL 40 SECONDS"


def make_join(on: str, **more: object) -> StreamJoin:
    return StreamJoin(STREAMS, on, Centralized(), time="ts", **more)  # type: ignore[arg-type]


def explain(join: StreamJoin, subject: str, **more: object) -> dict[str, str]:
    """Return the details of explain() on a subject, by object."""
    return {row[1]: row[2] for row in join.explain(**more).rows if row[0] == subject}  # type: ignore[arg-type]


def test_the_most_tuples_in_a_window_are_counted_for_tables(tmp_path: Path) -> None:
    join = make_join(NEAR)
    assert explain(join, "held") == {
        "a": "41 rows, 1.48 kB, and a batch, of 300, counted",
        "b": "21 rows, 756 B, and a batch, of 300, counted",
    }
    run = join.start(tmp_path / "run", batches=60)
    assert run.awaitTermination()
    held = [e.live_tuples for e in run.events() if isinstance(e, BatchCommitted)]
    assert max(a for a, _ in held) <= 1.3 * (41 + 5) and max(b for _, b in held) <= 1.3 * (21 + 5)


def test_rates_forecast_streams_that_do_not_end() -> None:
    held = explain(make_join(NEAR, lateness={"b": "10 s"}), "held", rates={"a": 500, "b": 2})
    assert held["a"] == "25,000 rows, 900 kB, and a batch, at 500 rows a second"
    assert held["b"] == "40 rows, 1.44 kB, and a batch, at 2 rows a second"
    forever = explain(make_join("a.k = b.k"), "held", rates={"a": 500, "b": 1})["a"]
    assert forever.startswith("every tuple, for ever: 43,200,000 rows, 1.56 GB, a day, at 500")


@pytest.mark.parametrize("rate", [0, -1, True, "5", float("nan")])
def test_rates_are_checked(rate: object) -> None:
    with pytest.raises(ValueError, match="the rate of a is .*; it must be a number of rows a"):
        make_join(NEAR).explain(rates={"a": rate})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="a rate is given for 'x'; the streams are a, b"):
        make_join(NEAR).explain(rates={"x": 5})


def test_windows_say_where_they_come_from() -> None:
    assert explain(make_join(NEAR), "stream")["a"].endswith("window: 40 s, from the condition")
    wide = explain(make_join(NEAR, windows="1 hour"), "stream")
    assert wide["b"].endswith("window: 20 s, as the condition is narrower than 1 h")
    kept = explain(make_join(NEAR, windows={"a": "unbounded"}), "stream")
    assert kept["a"].endswith("window: full history, as asked for")


def test_a_branch_that_is_left_out_is_named() -> None:
    on = f"{NEAR} AND (b.ts >= a.ts OR b.ts > a.ts + INTERVAL 1 HOUR)"
    assert explain(make_join(on), "left out") == {
        "": "a branch of `b.ts >= a.ts OR b.ts > a.ts + INTERVAL '1' HOUR` that contradicts the "
        "rest of the condition"
    }


FIVE = "b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS"


def test_a_window_of_the_condition_s_own_length_is_narrow(tmp_path: Path) -> None:
    join = make_join(FIVE, windows="5 s")
    sentence = (
        "windows= of a is 5 s, but the condition lets b.ts - a.ts be 5 s: a window leaves its own "
        "length out. Pairs exactly 5 s apart are lost (about 17% of the pairs in time). Leave "
        "windows= out, or say '5.000001 s'"
    )
    assert explain(join, "narrow window") == {"": sentence}
    with pytest.warns(NarrowWindow) as warned:
        run = join.start(tmp_path / "run", batches=2)
    assert [str(w.message) for w in warned if w.category is NarrowWindow] == [sentence]
    assert run.awaitTermination()


def test_a_narrower_window_says_from_where_on_pairs_are_lost() -> None:
    text = explain(make_join(FIVE, windows={"a": "2 s"}), "narrow window")[""]
    assert text.startswith(
        "windows= of a is 2 s, but the condition lets b.ts - a.ts be up to 5 s. Pairs from 2 s "
        "apart on are lost (about 6"
    )


def test_wide_windows_are_not_warned_of(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = make_join(FIVE, windows="5.000001 s").start(tmp_path / "run", batches=2)
        assert run.awaitTermination()
    assert not explain(make_join("a.k = b.k", windows="5 s"), "narrow window")


def test_a_resumed_run_is_not_warned_of_again(tmp_path: Path) -> None:
    join = make_join(FIVE, windows="5 s")
    with pytest.warns(NarrowWindow):
        assert join.start(tmp_path / "run", batches=2).awaitTermination()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert StreamJoin.resume(tmp_path / "run", STREAMS).awaitTermination()


def test_most_within_counts_by_brute_force() -> None:
    import numpy as np

    times = np.array([5, 1, 1, 9, 6, 30])
    assert [count_most_within(times, w) for w in (1, 2, 5, None)] == [2, 2, 3, 6]
    assert count_most_within(times[:0], 5) == 0
