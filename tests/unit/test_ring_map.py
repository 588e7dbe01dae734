"""The numbers of the map of a ring equal a count over the events, apart from the fold."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from braid import Ring
from braid.core.batch_history import LiveBlocks
from braid.core.batch_report import HostMetrics
from braid.core.run_events import BatchCommitted, EventsTrimmed
from braid.papers.psp.run_events import SliceTableChanged, StateRelocated
from braid.simulation.simulator import simulate
from braid_widgets.cockpit.page import recorded_page
from unit.scripted import list_rows


def run(**settings: Any) -> list[Any]:
    return simulate(
        Ring(4, **settings),
        [(5, 8, 2)] * 25,
        windows=(10.0, 10.0, 6.0),
        selectivity=0.1,
        streams=("a", "b", "c"),
    )


def rings(events: list[Any]) -> list[Any]:
    return [frame["state_map"]["ring"] for frame in recorded_page(events)["frames"]]


def held_rows(commits: list[BatchCommitted]) -> Counter[tuple[int, int]]:
    """Return rows by stream and node after some batches."""
    blocks = {b.id: b for commit in commits for b in commit.changed_blocks}
    dropped = {id for commit in commits for id in commit.dropped_block_ids}
    held: Counter[tuple[int, int]] = Counter()
    for block in blocks.values():
        if block.id not in dropped:
            held.update({(block.stream, host): block.rows for host in block.hosts})
    return held


@pytest.mark.parametrize("form", ["basic", "interleaved", "dynamic"])
def test_slices_heads_and_moves_are_those_of_the_events(form: str) -> None:
    events = run(form=form, resize=((10, 6),))
    commits = [e for e in events if isinstance(e, BatchCommitted)]
    tables = [e for e in events if isinstance(e, SliceTableChanged)]
    moved = [e for e in events if isinstance(e, StateRelocated)]
    for k, view in enumerate(rings(events)):
        slices = {(s, node): held for s, node, held, *_ in list_rows(view["slices"])}
        held = held_rows(commits[: k + 1])
        assert {place: n for place, n in slices.items() if n} == dict(held)
        assert view["scale_max"] == max(held.values()) and view["rows"] == list(
            commits[k].live_tuples
        )
        last = {e.stream: e.nodes for e in tables if e.batch <= k}
        assert view["heads"] == [last[s][0] for s in range(3)]
        places = {(s, node): p for s, node, _, p, _ in list_rows(view["slices"])}
        assert all(
            places[s, node] == p for s, nodes in last.items() for p, node in enumerate(nodes)
        )
        of_batch = [e for e in moved if e.batch == k]
        assert sum(m[3] for m in list_rows(view["moves"])) == sum(e.moved_tuples for e in of_batch)
        assert {m[:3] for m in map(tuple, list_rows(view["moves"]))} == {
            (e.stream, move.source, move.target) for e in of_batch for move in e.moves
        }


def test_nodes_are_in_ring_order_not_by_number() -> None:
    views = rings(run(form="basic", resize=((10, 6),)))
    assert [len(view["nodes"]) for view in views[9:12]] == [4, 6, 6]
    assert views[-1]["nodes"] == [0, 1, 4, 2, 3, 5], "new nodes are put between others"
    order = rings(run(form="dynamic"))[-1]["nodes"]
    assert order == [0, 1, 2, 3], "whatever node is the head"


def test_the_tail_holds_the_oldest_rows() -> None:
    events = run()
    commits = [e for e in events if isinstance(e, BatchCommitted)]
    gone = {id for c in commits for id in c.dropped_block_ids}
    for stream, tail in enumerate(rings(events)[-1]["tails"]):
        mine = [b for c in commits for b in c.changed_blocks if b.stream == stream]
        assert next(b for b in mine if b.id not in gone).hosts == (tail,)


def test_slices_add_up_if_the_events_of_the_first_batches_are_trimmed() -> None:
    events, blocks, kept = run(), LiveBlocks(), []
    for event in events:
        if isinstance(event, BatchCommitted) and event.batch < 9:
            blocks.apply_commit(event)
        else:
            kept.append(event)
    gone = EventsTrimmed(8, 0, len(kept), 0, 0, 0, 0, tuple(blocks.values()), (), HostMetrics(), {})
    first = rings([kept[0], gone, *kept[1:]])[0]
    commit = next(e for e in kept if isinstance(e, BatchCommitted))
    assert sum(first["slices"]["rows"]) == commit.total_host_metrics.stored_tuples > 0
