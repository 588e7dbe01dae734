"""An operator that is built from history has all that a slower stream may still meet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from braid.hub.hub import HubRun, QueryHub
from hub_cases import query_rows
from world.hub_scenario import NETWORK

pytestmark = pytest.mark.unit

FROM = "a [RANGE 15 SECONDS] a, b [RANGE 15 SECONDS] b"
TWO = f"SELECT a.id, b.id AS b FROM {FROM} WHERE a.k = b.k"
THREE = (
    f"SELECT a.id, b.id AS b, c.id AS c FROM {FROM}, c [RANGE 15 SECONDS] c "
    "WHERE a.k = b.k AND a.k = c.k"
)
ROWS = {"a": [(31, 0), (39, 0)], "b": [(22, 0), (37, 0)], "c": [(35, 0), (36, 1)]}
"""Seconds and batch; those of c come late, but at their time. Its last tuple meets those of 31 and
22 seconds, which no tuple of a or b can meet any more.
"""


def make_table(rows: Sequence[tuple[int, int]]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([*range(len(rows))], pa.int64()),
            "k": pa.array([1] * len(rows), pa.int64()),
            "ts": pa.array([t * 1_000_000 for t, _ in rows], pa.timestamp("us", "UTC")),
            "batch": pa.array([batch for _, batch in rows], pa.int64()),
        }
    )


def test_a_query_that_comes_late_meets_what_only_its_slowest_stream_still_meets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The query reads results of an operator that was built for queries over faster streams."""
    take = HubRun._join_batch

    def submit_first(run: HubRun, source: Any, epoch: int) -> None:
        if epoch == 1:
            run.submit(TWO, "two", sink="S")
            run.submit(THREE, "three", sink="S")
        take(run, source, epoch)

    monkeypatch.setattr(HubRun, "_join_batch", submit_first)
    streams = {stream: make_table(rows) for stream, rows in ROWS.items()}
    hub = QueryHub(streams, "ts", reuse="always", network=NETWORK, history="1 hour")
    run = hub.start(tmp_path, "batch")
    run.awaitTermination()
    three = run.query("three")
    assert three.reuse_kind == "derived"
    assert all(since is None for since in three.complete_since.values())
    met = {(0, 0, 1): 1, (0, 1, 1): 1, (1, 1, 1): 1}  # 39 and 22 seconds are too far apart
    assert query_rows(run, "three") == met
