"""The views of the placements' own events, compared with counts of single events."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from braid import AdaptiveGrid, HashPartition, JoinBiclique, StaticGrid
from braid.core.plan import Block
from braid.core.run_events import BatchCommitted
from braid.papers.theta.run_events import MappingChanged, MigrationAdvanced
from braid.simulation.simulator import simulate
from braid_widgets.base.run_view import RunView, fold_events
from braid_widgets.cockpit.frames import FrameCollector
from braid_widgets.cockpit.page import recorded_page
from braid_widgets.theta import grid_map, matrix, ratio_chart
from unit.scripted import list_rows, list_scenes, make_start

SWING = [(0, 900)] * 4 + [(900, 0)] * 12 + [(0, 900)] * 6
PLACEMENTS = {
    "64 hosts": AdaptiveGrid(64),
    "20 hosts": AdaptiveGrid(20),
    "growing": AdaptiveGrid(4, max_tuples_per_host=600, max_hosts=64),
    "static": StaticGrid(12, 3, 4),
    "hashed": HashPartition(7),
    "biclique": JoinBiclique(6),
}


@pytest.fixture(scope="module", params=PLACEMENTS)
def events(request: pytest.FixtureRequest) -> list[Any]:
    return simulate(PLACEMENTS[request.param], SWING)


def test_the_fold_holds_the_live_blocks(events):
    for end in (len(events) // 3, len(events)):
        blocks: dict[int, Block] = {}
        for e in (e for e in events[:end] if isinstance(e, BatchCommitted)):
            blocks |= {b.id: b for b in e.changed_blocks}
            for id in e.dropped_block_ids:
                blocks.pop(id, None)
        assert fold_events(events[:end]).blocks == blocks


def test_the_cells_tile_the_matrix(events):
    scene = fold_events(events)
    cells = matrix.matrix_cells(scene)
    area = sum((bottom - top) * (right - left) for top, bottom, left, right, *_ in cells)
    filled = 1 / 7 if scene.start.placement == "HashPartition" else 1
    assert area == pytest.approx(filled, abs=1e-3)


def test_cells_carry_the_hosts_of_the_plan(events):
    """After a quiet batch every pair of live blocks of a grid is in the cell of the host that
    stores both.
    """
    scene = fold_events(events)
    if not scene.grids or len(scene.grids) > 1 or scene.migrating:
        return
    (group,) = scene.grids.values()
    n, m = group.mapping
    where = {place: host for host, place in group.cells.items()}
    for top, bottom, left, right, host in matrix.matrix_cells(scene):
        row, column = int((top + bottom) / 2 * n), int((left + right) / 2 * m)
        assert where[row, column] == host


def test_loads_are_those_of_the_blocks(events):
    for scene in list_scenes(events):
        held = [0] * len(scene.last.host_metrics)
        for b in scene.blocks.values():
            for h in b.hosts:
                held[h] += b.rows
        assert grid_map.GridMap(scene).make_frame()["stored"] == held
        used = {h for g in scene.grids.values() for h in g.cells} or range(len(held))
        assert scene.points[-1].ilf == pytest.approx(
            sum(held[h] if h < len(held) else 0 for h in used) / len(used)
        )


def test_what_is_shown_of_a_batch_does_not_depend_on_what_came_later(events):
    page = recorded_page(events)
    ends = [k + 1 for k, e in enumerate(events) if isinstance(e, BatchCommitted)]
    for k in random.Random(1).sample(range(len(ends)), 3):
        shown = recorded_page(events[: ends[k]])
        assert shown["frames"] == page["frames"][: k + 1]
        due = [flag for flag in page["annotations"] if flag["batch"] <= k + 1]
        ended = [{**f, "end": f["end"] if (f["end"] or k + 2) <= k + 1 else None} for f in due]
        assert shown["annotations"] == ended


def test_what_comes_in_pieces_is_what_comes_at_once(events):
    whole, pieces, cuts = (
        FrameCollector(),
        FrameCollector(),
        [0, 3, 4, len(events) // 2, len(events)],
    )
    whole.apply_events(events)
    for a, b in pairwise(cuts):
        pieces.apply_events(events[a:b])
    assert pieces.frames == whole.frames and pieces.host_rows() == whole.host_rows()
    assert pieces.make_page("live") == whole.make_page("live")


def test_totals_are_sums_over_the_batches(events):
    committed = [e for e in events if isinstance(e, BatchCommitted)]
    t = fold_events(events).totals
    assert t.sent == sum(e.total_host_metrics.received_tuples for e in committed)
    assert t.moved == sum(
        e.total_host_metrics.migrated_tuples for e in committed
    ) and t.batches == len(committed)


def test_frames_are_small_and_hold_only_numbers(events):
    page = recorded_page(events)
    assert all(len(json.dumps(frame, allow_nan=False)) < 100_000 for frame in page["frames"])
    json.dumps(page, allow_nan=False)


@pytest.mark.parametrize("hosts", [64, 20])
def test_rows_are_copied_from_and_to_the_hosts_that_the_plan_names(hosts):
    events = simulate(AdaptiveGrid(hosts), SWING)
    copies = defaultdict(set)
    for e in events:
        if isinstance(e, MigrationAdvanced):
            copies[e.batch] |= {(source, target) for _, source, target in e.copies}
    seen = 0
    for scene in list_scenes(events):
        view = grid_map.GridMap(scene).make_frame()
        flights = {(source, target) for source, target, _, _ in list_rows(view["copies"])}
        assert flights <= copies[scene.last.batch]
        seen += len(flights)
    assert seen > hosts // 2


def test_the_ratio_of_the_mapping_is_the_papers():
    events = simulate(AdaptiveGrid(64, n=8, m=8), [(1, 64)] * 3, tuple_bytes=(3, 3))
    first = next(ratio_chart.ratio_table(events).itertuples())
    # Figure 2: |R| = 1, |S| = 64 under (8, 8) stores 8 1/8 a host, under (1, 64) 2.
    assert first.ilf_optimal == 2 and first.ratio == pytest.approx((1 / 8 + 64 / 8) / 2)


def test_growth_adds_hosts_to_the_grid():
    events = simulate(PLACEMENTS["growing"], SWING)
    sizes = [len(grid_map.GridMap(s).make_frame()["places"]["host"]) for s in list_scenes(events)]
    assert sizes[0] == 4 and sizes[-1] == 64 and sizes == sorted(sizes)
    changes = [e for e in events if isinstance(e, MappingChanged)]
    assert fold_events(events).grids[0].mapping == changes[-1].mapping


def test_a_placement_without_tuples_has_pictures():
    events = simulate(AdaptiveGrid(64), [(0, 0)] * 2)
    scene = fold_events(events)
    assert (
        list_rows(grid_map.GridMap(scene).make_frame()["copies"]) == []
        and grid_map.GridMap(scene).make_frame()["scale_max"] == 0
    )
    json.dumps(recorded_page(events), allow_nan=False)
    ratio_chart.ratio_chart(events)


def test_finer_keys_keep_hosts():
    scene = RunView(joined_keys={(0, 4, 0, 4): 5, (2, 4, 1, 4): 6})
    scene.start = make_start()
    size = scene.start.key_space_size
    cells = [[round(x * size) for x in cell[:4]] + [cell[4]] for cell in matrix.matrix_cells(scene)]
    assert cells == [[0, 2, 0, 4, 5], [2, 4, 0, 1, 5], [2, 4, 1, 4, 6]]


def test_rectangles_tile_equal_cells():
    assert matrix.tile_rectangles(np.array([[1, 1, 2], [1, 1, -1], [3, 2, 2]])) == [
        (0, 2, 0, 2),
        (0, 1, 2, 3),
        (2, 3, 0, 1),
        (2, 3, 1, 3),
    ]


def test_a_model_counts_its_state_in_rows():
    frame = recorded_page(simulate(StaticGrid(4, 2, 2), [(9, 5)] * 3))["frames"][-1]
    held = sum(frame["state_map"]["grid"]["stored"])
    figures = dict(zip(frame["key_figures"]["name"], frame["key_figures"]["value"], strict=True))
    assert figures["rows, all copies"] == f"{held:,}" and "state, all copies" not in figures


def test_one_host_is_not_one_of_1_hosts():
    frame = recorded_page(simulate(HashPartition(1), [(9, 5)]))["frames"][-1]
    title = "Rows of equal keys meet on one host; other pairs never meet."
    assert frame["state_map"]["grid"]["title"] == title
