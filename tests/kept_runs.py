"""Random joins of three streams whose tuples are kept, compared with the tuple-level model."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from braid.answer_check import check_answers
from braid.stream_join import StreamJoin
from kind_runs import make_stream_table
from models.clocks import reach_of_windows
from models.kinds import JoinRules, Tuple, run_join
from oracle import PLACEMENTS
from stages import AlternatingExecutor

SECOND = 1_000_000
ON = "a.k = b.k AND b.k = c.k AND a.n <= c.n"


def check_kept(seed: int, folder: Path) -> None:
    """Run a join of three streams and compare its rows, and their batches, with the model."""
    draw = random.Random(seed)
    usable = [p for p in PLACEMENTS.values() if p.supports_streams(3)]
    placement, window = draw.choice(usable), draw.choice([None, 15, 30])
    preserved = draw.choice([(0,), (1,), (2,), (0, 2), (0, 1, 2)])
    tuples = [
        _draw_tuple(draw, stream, id, batch)
        for batch in range(draw.randint(2, 9))
        for stream in range(3)
        for id in range(batch * 10, batch * 10 + draw.choice([0, 1, 3, 6]))
    ]
    tuples.append(Tuple(0, 1000, 0, 100 * SECOND, {"k": 1, "n": 1}))
    streams = {alias: make_stream_table(tuples, stream) for stream, alias in enumerate("abc")}
    delivered: list[tuple[int, tuple[int | None, ...]]] = []

    def collect_rows(results: pa.Table, batch: int) -> None:
        for row in results.to_pylist():
            delivered.append((batch, tuple(s and s["id"] for s in row.values())))

    how = {"abc"[stream]: "keep" for stream in preserved}
    span = window and f"{window} seconds"
    patched = patch("braid.arrow_join.make_executor", lambda way: AlternatingExecutor())
    with patched if draw.random() < 0.6 else nullcontext():
        join = StreamJoin(streams, ON, placement, span, "ts", check=True, how=how)
        run = join.start(folder, batches="batch", durability="process", foreachBatch=collect_rows)
    run.awaitTermination()
    model = run_join(
        [t._replace(meets=_can_meet(t)) for t in tuples], _make_rules(tuples, preserved, window)
    )
    assert sorted(delivered, key=repr) == sorted(model.results, key=repr)
    if seed < 3:
        report = check_answers(folder)
        assert report.is_right, report


def _draw_tuple(draw: random.Random, stream: int, id: int, batch: int) -> Tuple:
    key = None if draw.random() < 0.1 else draw.randint(0, 4)
    time = None if draw.random() < 0.05 else (100 + batch * 10 + draw.randint(0, 9)) * SECOND
    return Tuple(stream, id, batch, time, {"k": key, "n": draw.randint(0, 6)})


def _can_meet(t: Tuple) -> bool:
    return t.values["k"] is not None


def _make_rules(tuples: list[Tuple], preserved: tuple[int, ...], window: int | None) -> JoinRules:
    def can_join(a: Tuple, b: Tuple, c: Tuple) -> bool:
        keys = Counter(t.values["k"] for t in (a, b, c))
        return len(keys) == 1 and bool(a.values["n"] <= c.values["n"])

    span = None if window is None else window * SECOND
    ends = tuple(max([t.batch for t in tuples if t.stream == s], default=-1) for s in range(3))
    rules: dict[str, Any] = {"how": preserved, "ahead": 86_400 * SECOND, "ends": ends}
    return JoinRules(can_join, reach_of_windows([span] * 3), **rules)
