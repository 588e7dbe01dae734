"""The map of segments: its numbers are those of the events, counted apart from the fold."""

from __future__ import annotations

import pytest
from braid.core.run_events import BatchCommitted
from braid.papers.diffusion.aligned import Aligned
from braid.papers.diffusion.run_events import SegmentPlaced
from braid.simulation.simulator import simulate
from braid_widgets.cockpit.page import recorded_page
from unit.scripted import rows


@pytest.fixture(scope="module")
def events() -> list[object]:
    counts = [(30, 10, 10)] * 20 + [(10, 40, 10)] * 20
    return simulate(Aligned(6), counts, windows=(10.0, 10.0, 10.0))


def test_each_batch_lies_in_the_segment_that_was_placed_last(events: list[object]) -> None:
    placed = [e for e in events if isinstance(e, SegmentPlaced)]
    frames = recorded_page(events)["frames"]
    assert len(placed) > 3
    for frame in frames:
        view, batch = frame["state_map"]["segments"], frame["batch"]
        due = [e for e in placed if e.batch + 1 <= batch][-1]
        stream, host, first, last, copied = rows(view["segments"])[-1]
        assert (stream, host, first) == (due.master_stream, due.host, due.batch + 1)
        assert copied == due.copied_tuples and last <= batch
        assert view["last"] == batch and view["first"] >= batch - 23


def test_segments_follow_each_other_without_overlap(events: list[object]) -> None:
    for frame in recorded_page(events)["frames"]:
        spans = [s[2:4] for s in rows(frame["state_map"]["segments"]["segments"])]
        assert all(a[1] < b[0] for a, b in zip(spans, spans[1:], strict=False))


def test_rows_of_hosts_are_those_of_the_events(events: list[object]) -> None:
    commits = [e for e in events if isinstance(e, BatchCommitted)]
    for frame, commit in zip(recorded_page(events)["frames"], commits, strict=True):
        view = frame["state_map"]["segments"]
        assert view["stored"] == [h.stored_tuples for h in commit.host_metrics]
        assert view["sent"] == sum(h.received_tuples for h in commit.host_metrics)
