"""The state of a PSP ring is evenly distributed over its nodes, by simulation and by the engine.

Source: Wang 2008, section 13.4.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from braid.core.run_events import BatchCommitted
from braid.papers.psp.ring import Ring
from braid.simulation.simulator import simulate
from braid.stream_join import StreamJoin

every_form = pytest.mark.parametrize("form", ["basic", "interleaved", "dynamic"])


def unevenness(events: list[Any], nodes: int, full: int) -> float:
    """Return the maximum of a node divided by the mean of all ``nodes``.

    It is the mean of the batches from ``full`` on; infinite if some node is empty.
    """
    held = [
        [h.stored_tuples for h in e.host_metrics]
        for e in events
        if isinstance(e, BatchCommitted) and e.batch >= full
    ]
    if min(map(len, held)) < nodes or min(map(min, held)) == 0:
        return float("inf")
    return float(np.mean([max(each) * nodes / sum(each) for each in held]))


def simulated(form: str, nodes: int) -> float:
    """Simulate W = 10 s in batches of W / (5 N), with three streams of 50 tuples/s."""
    step = 10 / (5 * nodes)
    counts = [(round(50 * step),) * 3] * (8 * nodes)
    run = simulate(Ring(nodes, form), counts, windows=(10.0,) * 3, seconds=step)  # type: ignore[arg-type]
    return unevenness(run, nodes, 6 * nodes)


@every_form
@pytest.mark.parametrize("nodes", [4, 8, 16])
def test_all_nodes_are_used_and_none_holds_much_more_than_the_mean(form: str, nodes: int) -> None:
    assert simulated(form, nodes) < 1.4


@pytest.mark.parametrize("form", ["basic", "interleaved"])
def test_blocks_merged_across_the_ends_of_slices_lie_unevenly(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ring without boundaries of slices in its plans."""
    monkeypatch.setattr(Ring, "merge_boundaries", lambda ring, state: ())
    assert simulated(form, 8) > 1.4


def streams(seconds: float, rate: int) -> dict[str, pa.Table]:
    """Return two streams of steady tuples, in batches of a tenth of a second."""
    start = datetime(2024, 1, 1, tzinfo=UTC)
    at = np.arange(0, seconds, 1 / rate)
    tables = {}
    for n, alias in enumerate("ab"):
        key = np.random.default_rng(n).integers(0, 50, len(at))
        ts = [start + timedelta(seconds=float(t)) for t in at]
        batch = pa.array((at * 10 + 1e-6).astype(int), pa.int32())
        tables[alias] = pa.table({"id": range(len(at)), "ts": ts, "k": key, "batch": batch})
    return tables


@pytest.mark.parametrize("form", ["basic", "dynamic"])
def test_the_engine_hands_on_where_slices_end(form: str, tmp_path: Path) -> None:
    """W = 2 s on 4 nodes, joined by the engine in this process."""
    ring, windows = Ring(4, form), dict.fromkeys("ab", "2 seconds")  # type: ignore[arg-type]
    join = StreamJoin(streams(4.0, 50), "a.k = b.k", ring, windows, time="ts")
    run = join.start(tmp_path / "run", batches="batch")
    assert run.awaitTermination()
    assert unevenness(run.events(), 4, 25) < 1.4
