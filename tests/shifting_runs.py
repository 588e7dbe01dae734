"""Random runs of HotKeys and HyperCube in which frequent values and rates shift.

Drivers die before some commits. DuckDB computes the results of inner joins, and ``braid check
--answers`` recomputes those of all.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from braid import HotKeys, HyperCube
from braid.answer_check import check_answers
from braid.core.placement import Placement
from braid.papers.hotkeys.run_events import SpreadChanged
from braid.papers.hypercube.run_events import SharesChosen
from braid.stream_join import StreamJoin
from oracle import compute_expected, describe_difference, killed_before, result_ids
from stages import AlternatingExecutor

CUBES = {
    "chain": ("abc", "a.x = b.x AND b.y = c.y"),
    "cycle": ("abc", "a.x = b.x AND b.y = c.y AND c.n = a.n"),
    "star": ("abcd", "a.x = b.x AND a.y = c.y AND a.n = d.n"),
    "two equalities": ("abc", "a.x = b.x AND a.y = b.y AND b.n = c.n"),
}
"""Streams and a condition, by the form of the hypercube."""
ROWS = {2: 240, 3: 90, 4: 40}
"""Rows of a stream, by the number of streams."""


@dataclass(frozen=True)
class ShiftingCase:
    """A run.

    - ``turn``: batch from which another value is frequent, and the last stream is fast.
    - ``windows``: seconds by alias; a batch has 10 seconds.
    - ``how``: kind of the join.
    - ``killed``: batches before whose commit a driver dies.
    - ``has_stages``: whether batches alternate between two threads and the stages of Spark tasks.
    """

    seed: int
    aliases: str
    on: str
    placement: Placement
    batches: int
    turn: int
    windows: Mapping[str, int]
    how: Any
    killed: tuple[int, ...]
    has_stages: bool

    def make_streams(self) -> dict[str, pa.Table]:
        """Return the streams, with NULLs. The first is fast before the turn."""
        return {alias: self._make_stream(place) for place, alias in enumerate(self.aliases)}

    def _make_stream(self, place: int) -> pa.Table:
        draw, rows = np.random.default_rng([self.seed, place]), ROWS[len(self.aliases)]
        is_late = np.arange(self.batches) >= self.turn
        is_fast = {0: ~is_late, len(self.aliases) - 1: is_late}.get(place, is_late & False)
        weights = np.where(is_fast, 8.0, 1.0)
        batch = np.sort(draw.choice(self.batches, rows, p=weights / weights.sum()))
        hot = np.where(batch < self.turn, 5, 17)
        x = np.where(draw.random(rows) < self._hot_share, hot, draw.integers(0, 25, rows))
        time = 1_000_000 * (batch * 10 + draw.integers(0, 10, rows))
        return pa.table(
            {
                "id": np.arange(rows),
                "ts": pa.array(time, pa.timestamp("us", "UTC")),
                "x": pa.array(x, mask=draw.random(rows) < 0.05),
                "y": pa.array([f"v{n}" for n in draw.integers(0, 25, rows)]),
                "n": draw.integers(0, 25, rows),
                "batch": pa.array(batch, pa.int32()),
            }
        )

    @property
    def _hot_share(self) -> float:
        return 0.4 if isinstance(self.placement, HotKeys) else 0.0

    def make_join(self) -> StreamJoin:
        windows = {alias: f"{seconds} seconds" for alias, seconds in self.windows.items()} or None
        more: dict[str, Any] = {"time": "ts"} if windows else {}
        streams = self.make_streams()
        return StreamJoin(
            streams, self.on, self.placement, windows, check=True, how=self.how, **more
        )


def draw_case(seed: int) -> ShiftingCase:
    """Draw a case."""
    draw = random.Random(seed)
    if draw.random() < 0.5:
        aliases = draw.choice(("ab", "ab", "abc", "abcd"))
        on = " AND ".join(f"{one}.x = {other}.x" for one, other in pairwise(aliases))
        placement: Placement = HotKeys(
            draw.randint(2, 8),
            target=draw.choice((1.01, 1.12)),
            every=draw.randint(1, 2),
            rate=draw.choice((0.1, 1.0, 2.0)),
            values=draw.choice((8, 64, 1 << 14)),
            stored=(1.0, 1.3, 5.0)[seed % 3],
        )
    else:
        aliases, on = draw.choice([*CUBES.values()])
        placement = HyperCube(draw.randint(4, 16), threshold=draw.choice((0.8, 1.0)))
    batches = draw.randint(4, 10)
    timed = [alias for alias in aliases if draw.random() < 0.6] if draw.random() < 0.5 else []
    preserved = draw.sample(aliases, draw.randint(1, len(aliases))) if draw.random() < 0.4 else []
    return ShiftingCase(
        seed,
        aliases,
        on + draw.choice(("", f" AND a.n <= {aliases[-1]}.n + 10")),
        placement,
        batches,
        draw.randint(1, batches - 1),
        {alias: draw.choice((15, 30, 60)) for alias in timed},
        dict.fromkeys(preserved, "keep") or "inner",
        tuple(sorted(draw.sample(range(batches), draw.choice((0, 1, 2))))),
        draw.random() < 0.3,
    )


def check_case(case: ShiftingCase, folder: Path) -> int:
    """Run a case and check its results. Return how often the placement has changed."""
    executor = patch("braid.arrow_join.make_executor", lambda way: AlternatingExecutor())
    with executor if case.has_stages else nullcontext():
        for batch in case.killed:
            with killed_before(batch), suppress(OSError):
                case.make_join().start(folder, batches="batch").awaitTermination()
        run = case.make_join().start(folder, batches="batch")
        run.awaitTermination()
    if case.how == "inner":
        streams = case.make_streams()
        found, right = result_ids(run.results()), compute_expected(streams, case.on, case.windows)
        assert not (wrong := describe_difference(found, right)), wrong
    report = check_answers(folder)
    assert report.is_right, str(report)
    return sum(
        isinstance(e, SpreadChanged) or (isinstance(e, SharesChosen) and bool(e.previous_shares))
        for e in run.events()
    )
