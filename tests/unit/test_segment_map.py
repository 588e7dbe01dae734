"""The map of segments: its numbers are those of the events, counted apart from the fold."""

from __future__ import annotations

from typing import Any

import pytest
from braid.core.run_events import BatchCommitted, BatchPlanned
from braid.papers.diffusion.aligned import Aligned
from braid.papers.diffusion.coordinated import Coordinated
from braid.papers.diffusion.run_events import PathChosen, SegmentPlaced
from braid.simulation.simulator import simulate
from braid_widgets.cockpit.page import recorded_page
from unit.scripted import list_rows


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
        stream, host, first, last, _, copied = list_rows(view["segments"])[-1]
        assert (stream, host, first) == (due.master_stream, due.host, due.batch + 1)
        assert copied == due.copied_tuples and last <= batch
        assert view["last"] == batch and view["first"] >= batch - 23


def test_segments_follow_each_other_without_overlap(events: list[object]) -> None:
    for frame in recorded_page(events)["frames"]:
        spans = [s[2:4] for s in list_rows(frame["state_map"]["segments"]["segments"])]
        assert all(a[1] < b[0] for a, b in zip(spans, spans[1:], strict=False))


def test_rows_of_hosts_are_those_of_the_events(events: list[object]) -> None:
    commits = [e for e in events if isinstance(e, BatchCommitted)]
    for frame, commit in zip(recorded_page(events)["frames"], commits, strict=True):
        view = frame["state_map"]["segments"]
        assert view["stored"] == [h.stored_tuples for h in commit.host_metrics]
        assert view["sent"] == sum(h.received_tuples for h in commit.host_metrics)


def test_a_segment_is_held_until_its_last_row_has_left_the_window(events: list[object]) -> None:
    live: dict[int, Any] = {}
    left = 0
    frames = iter(recorded_page(events)["frames"])
    for commit in (e for e in events if isinstance(e, BatchCommitted)):
        live = {k: b for k, b in live.items() if k not in commit.dropped_block_ids}
        live |= {b.id: b for b in commit.changed_blocks}
        view = next(frames)["state_map"]["segments"]
        for stream, host, first, last, held, _ in list_rows(view["segments"]):
            own = [b for b in live.values() if b.stream == stream and host in b.hosts]
            assert any(first <= b.batch + 1 <= last for b in own) == (held == view["last"])
            left += held < view["last"]
    assert left > 20, "segments whose rows have left are shown too"


@pytest.fixture(scope="module")
def routed() -> list[object]:
    return simulate(Coordinated(6), [(20, 20, 20)] * 24, windows=(8.0, 8.0, 8.0), selectivity=0.1)


def test_a_path_has_the_hosts_and_the_costs_of_the_events(routed: list[object]) -> None:
    chosen = [e for e in routed if isinstance(e, PathChosen)]
    routes = {r.block.id: r for e in routed if isinstance(e, BatchPlanned) for r in e.routes}
    assert len(chosen) > 3
    for frame in recorded_page(routed)["frames"]:
        view, batch = frame["state_map"]["segments"], frame["batch"]
        newest = {e.stream: e for e in chosen if e.batch < batch}
        assert view["latest"] == max(newest.values(), key=lambda e: (e.batch, e.block)).stream
        hops = {(h[0], h[1], h[2], h[3], h[4], h[5]) for h in list_rows(view["hops"])}
        assert hops == {
            (stream, p, k, hop.stream, host, len(ids))
            for stream, e in newest.items()
            for p, path in enumerate(routes[e.block].paths)
            for k, hop in enumerate(path)
            for host, ids in hop.blocks_by_host.items()
        }
        costs = [o[2] for o in list_rows(view["orders"])]
        counted = [o.estimated_overhead for _, e in sorted(newest.items()) for o in e.join_orders]
        assert costs == pytest.approx(counted, rel=1e-3)


def test_segments_of_all_streams_are_on_the_hosts_of_their_blocks(routed: list[object]) -> None:
    planned = [e for e in routed if isinstance(e, BatchPlanned)]
    frame = recorded_page(routed)["frames"][-1]
    segments = list_rows(frame["state_map"]["segments"]["segments"])
    for plan in planned[frame["state_map"]["segments"]["first"] - 1 :]:
        for route in plan.routes:
            if route.is_fresh:
                hosts = {
                    s[1]
                    for s in segments
                    if s[0] == route.block.stream and s[2] <= plan.batch + 1 <= s[3]
                }
                assert hosts == set(route.block.hosts)
