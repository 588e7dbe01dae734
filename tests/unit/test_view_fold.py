"""The fold of events into view states, on a small run written by hand."""

from __future__ import annotations

from braid.core.run_events import BatchPlanned, RunEnded, RunStarted
from braid.papers.theta.run_events import MappingChanged
from braid_widgets.base.run_view import HISTORY, RunView, fold_events
from braid_widgets.cockpit.page import recorded_page
from braid_widgets.theta import grid_map, matrix
from unit.scripted import MIGRATION, list_rows, list_scenes, make_commit, make_start

# The run of scripted.MIGRATION: J = 2 hosts, keys 0..1. R tuples a (key 0) and b (key 1); S tuples
# c and d.
#
#   batch 0, mapping (2, 1)    S: c,d          batch 1, mapping (1, 2)     c        d
#                 R: a       host 0                         R: a,b      host 0   host 1
#                    b       host 1


def test_a_batch_colours_the_cells_by_the_host_that_joined_them():
    scene = list_scenes(MIGRATION)[0]
    assert matrix.matrix_cells(scene) == [
        (0.0, 0.5, 0.0, 1.0, 0),
        (0.5, 1.0, 0.0, 1.0, 1),
    ]
    assert scene.grids[0].mapping == (2, 1)
    assert scene.totals.received == (4, 6)
    assert scene.points[0].ilf == (2 + 6 + 2 + 6) / 2


def test_a_migration_shows_copies():
    scene = list_scenes(MIGRATION)[1]
    view = grid_map.GridMap(scene).make_frame()
    # Fresh S meets only half of R on each host: block 1 (key 1) is not on host 0 yet, block 0 not
    # on host 1.
    by_box = {cell[:4]: cell.host for cell in matrix.matrix_cells(scene)}
    assert by_box[(0.0, 0.5, 0.0, 0.5)] == 0
    assert list_rows(view["copies"]) == [(0, 1, 0, 2)] and view["moved_blocks"] == 1
    assert (view["n"], view["m"], view["before"], view["is_moving"]) == (1, 2, [2, 1], True)
    assert (view["load"], view["load_before"]) == (4 / 1 + 10 / 2, 4 / 2 + 10 / 1)
    assert scene.points[-1].migrating


def test_the_migration_ends():
    scene = list_scenes(MIGRATION)[2]
    assert not scene.migrating
    view = grid_map.GridMap(scene).make_frame()
    assert view["waiting"] == 0 and view["title"].endswith("1 × 2 hosts share the cells.")
    assert scene.end is not None and scene.totals.migrations == 1


def test_blocks_that_are_dropped_leave_the_scene():
    events = [*MIGRATION[:-3], make_commit(2, [0, 0], [4, 10], dropped=[1])]
    scene = fold_events(events)
    assert 1 not in scene.blocks and 4 in scene.blocks


def test_a_plan_that_was_not_committed_counts_for_nothing():
    # A driver that dies after planning plans the batch again.
    twice = [e for e in MIGRATION for _ in range(2 if isinstance(e, BatchPlanned) else 1)]
    a, b = fold_events(MIGRATION), fold_events(twice)
    assert a.joined_keys == b.joined_keys and a.totals == b.totals


def test_going_on_after_a_restart_keeps_what_was_there():
    scene = fold_events([*MIGRATION, MIGRATION[0], make_commit(3, [1, 0], [5, 10])])
    assert scene.end is None and scene.totals.batches == 4


def test_kinds_of_events_that_show_nothing_are_passed_over():
    scene = RunView()
    scene.apply_event("something else")
    assert scene.start is None


def test_memory_is_bounded_however_long_the_run():
    scene = fold_events([make_start(batches=None)])
    for k in range(HISTORY + 50):
        scene.apply_event(make_commit(k, [1, 1], [k + 1, k + 1]))
    assert len(scene.points) == HISTORY and scene.points[0].batch == 50
    assert scene.totals.batches == HISTORY + 50


def test_an_empty_run_has_a_page_without_frames():
    for events in ([], [make_start()], [make_start(), RunEnded(-1, "failed", "no source")]):
        page = recorded_page(events)
        assert (page["frames"], page["hosts"]["batch"], page["timeline"]["batch"]) == ([], [], [])
        assert fold_events(events).totals.batches == 0


def test_hosts_that_came_by_growth_are_in_use_and_in_grid_order():
    grow = MappingChanged(3, 0, (1, 2), (2, 4), [[7 - k, k // 4, k % 4] for k in range(8)], [4, 10])
    scene = fold_events([*MIGRATION[:-1], grow, make_commit(3, [0, 0], [4, 10], hosts=8)])
    assert scene.points[-1].hosts == 8
    assert grid_map.GridMap(scene).make_frame()["places"]["host"] == [*range(7, -1, -1)]


def test_streams_without_a_grid_have_no_places_in_one():
    scene = fold_events(
        [make_start(placement="HashPartition", hosts=5), make_commit(0, [3, 3], [3, 3], hosts=5)]
    )
    view = grid_map.GridMap(scene).make_frame()
    assert (view["n"], view["m"], view["load"]) == (0, 0, None) and view["places"]["host"] == []
    assert scene.points[-1].ilf_mapping is None and scene.points[-1].ratio != scene.points[-1].ratio


def test_the_started_run_is_known():
    assert isinstance(fold_events(MIGRATION).start, RunStarted)
