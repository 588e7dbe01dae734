"""Functions of time that become comparisons of microseconds, against their definition."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from braid import Centralized, PredicateError
from braid.condition.parser import parse_predicate
from braid.stream_join import StreamJoin
from oracle import result_ids

SECOND = 10**6
RANDOM = Random(4)
TIMES = {
    alias: sorted(
        RANDOM.choice([0, 59, 60, 119, 300]) * SECOND * RANDOM.choice([-1, 1])
        + RANDOM.choice([-1, 0, 1, 500_000, 10**6])
        for _ in range(60)
    )
    for alias in "ab"
}
TABLES = {
    alias: pa.table(
        {"id": pa.array(range(60), pa.int64()), "ts": pa.array(times, pa.timestamp("us", "UTC"))}
    )
    for alias, times in TIMES.items()
}


def elapsed(x: int, y: int, unit: int) -> int:
    return abs(y - x) // unit * (1 if y >= x else -1)


CASES = {
    "timestampdiff(SECOND, a.ts, b.ts) <= 1": lambda a, b: elapsed(a, b, SECOND) <= 1,
    "timestampdiff(SECOND, a.ts, b.ts) < -1": lambda a, b: elapsed(a, b, SECOND) < -1,
    "-1 < timestampdiff(MINUTE, a.ts, b.ts)": lambda a, b: elapsed(a, b, 60 * SECOND) > -1,
    "timestampdiff(MINUTE, b.ts, a.ts) = 0": lambda a, b: elapsed(b, a, 60 * SECOND) == 0,
    "timestampdiff(SECOND, a.ts, b.ts) BETWEEN -60 AND -59": lambda a, b: (
        -60 <= elapsed(a, b, SECOND) <= -59
    ),
    "NOT timestampdiff(SECOND, a.ts, b.ts) >= 1": lambda a, b: elapsed(a, b, SECOND) < 1,
    "window(a.ts, '1 minute') = window(b.ts, '1 minute')": lambda a, b: (
        a // (60 * SECOND) == b // (60 * SECOND)
    ),
    "window(a.ts, '1 minute', '1 minute', '59 seconds') = window(b.ts, '60 seconds')": (
        lambda a, b: (a - 59 * SECOND) // (60 * SECOND) * 60 + 59 == b // (60 * SECOND) * 60
    ),
    "window(a.ts, '1 minute') = window(b.ts, '2 minutes')": lambda a, b: False,
}


@pytest.mark.parametrize("on", CASES)
def test_they_hold_for_the_same_times(on: str, tmp_path: Path) -> None:
    run = StreamJoin(TABLES, on, Centralized(), time="ts").start(tmp_path / "run", batches=3)
    assert run.awaitTermination()
    pairs = ((i, j) for i in range(60) for j in range(60))
    assert set(result_ids(run.results())) == {
        (i, j) for i, j in pairs if CASES[on](TIMES["a"][i], TIMES["b"][j])
    }


def test_a_sliding_window_is_refused_in_a_sentence() -> None:
    with pytest.raises(PredicateError) as refused:
        StreamJoin(TABLES, "window(a.ts, '10 minutes', '5 minutes') = window(b.ts, '10 minutes')")
    assert str(refused.value) == (
        "WINDOW(a.ts, '10 minutes', '5 minutes') in the join condition slides, so that a tuple is "
        "in several windows; a tumbling window of one width is accepted"
    )


@pytest.mark.parametrize("on", [on for on in CASES if "2 minutes" not in on])
def test_they_are_indexed(on: str) -> None:
    schemas = {alias: table.schema for alias, table in TABLES.items()}
    predicate = parse_predicate(on, schemas, (None, None))
    assert predicate.index_conditions and not predicate.residuals
