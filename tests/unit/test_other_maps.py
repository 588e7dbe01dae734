"""The numbers of the maps of shedding, frequent values and hypercubes equal a count over the
events, apart from the fold.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt
from typing import Any

import pytest
from braid import HotKeys, HyperCube
from braid.core.run_events import BatchCommitted, BatchPlanned, BatchShed
from braid.papers.hotkeys.run_events import SpreadChanged
from braid.papers.hypercube.run_events import SharesChosen
from braid.papers.shedding.run_events import SheddingPlanned
from braid_lab.hotkeys.experiments import SkewSetting, run_skewed_join
from braid_lab.hypercube.experiments import ChainSetting, run_chain_join
from braid_lab.shedding import runs as shedding_runs
from braid_widgets.cockpit.page import recorded_page
from unit.scripted import list_rows


def frames(events: list[Any], name: str) -> list[Any]:
    return [frame["state_map"][name] for frame in recorded_page(events)["frames"]]


def of_kind(events: list[Any], kind: type) -> list[Any]:
    return [e for e in events if isinstance(e, kind)]


@pytest.fixture(scope="module")
def shed() -> list[Any]:
    sets = shedding_runs.sets_from_controls(rate=40.0, seconds=16.0)
    return list(shedding_runs.simulate_shedding(sets, shedding_runs.make_shedder(fraction=0.25)))


def test_shares_and_results_of_a_shed_batch_are_those_of_the_events(shed: list[Any]) -> None:
    reported = zip(
        *(of_kind(shed, kind) for kind in (SheddingPlanned, BatchShed, BatchCommitted)),
        frames(shed, "shedding"),
        strict=True,
    )
    for plan, counted, commit, view in reported:
        assert [(i[0], i[1], i[2]) for i in list_rows(view["items"])] == [i[:3] for i in plan.items]
        pairs = sum(i.pairs for i in plan.items)
        assert view["work"] == plan.fraction == 0.25
        spent = sum(i.pairs * i.shares[0] for i in plan.items)
        assert spent == pytest.approx(0.25 * pairs, abs=1e-3 * pairs)
        full = counted.estimated_results
        assert view["recall"] == pytest.approx(commit.results / full if full else 0.25, abs=1e-4)
        for bar, item in zip(list_rows(view["items"]), plan.items, strict=True):
            assert bar[3:] == pytest.approx(
                (item.pairs, 1000 * item.expected_matches, item.shares[0]), rel=1e-3, abs=1e-3
            )
        assert view["results"] == commit.results
        assert view["estimated"] == pytest.approx(counted.estimated_results, abs=0.1)
        assert view["margin"] == pytest.approx(1.96 * sqrt(counted.variance or 0), abs=0.1)


def test_first_estimates_that_rest_on_few_results_set_no_scale(shed: list[Any]) -> None:
    views = frames(shed, "shedding")
    total = 0
    for view in views:
        total += view["results"]
        assert (view["scale_max"] > 0) == (total >= 30 and view["is_learned"])
    assert total > 30


def test_a_budget_that_is_changed_has_a_flag_in_its_batch(shed: list[Any]) -> None:
    def budgets(amounts: dict[int, float]) -> list[tuple[int, str]]:
        events = [
            replace(e, budget_amount=amounts[e.batch], fraction=amounts[e.batch])
            if isinstance(e, SheddingPlanned) and e.batch in amounts
            else e
            for e in shed
        ]
        flags = recorded_page(events)["annotations"]
        return [(f["batch"], f["short"]) for f in flags if f["short"].startswith("budget")]

    batches = [e.batch for e in of_kind(shed, SheddingPlanned)]
    assert budgets({}) == []
    assert budgets({batch: 0.1 for batch in batches if batch >= 5}) == [(6, "budget 10%")]


@pytest.fixture(scope="module")
def skewed() -> list[Any]:
    return list(run_skewed_join(HotKeys(6), SkewSetting(1.2, True, 4000, 14, 6)))


def test_frequent_values_and_their_hosts_are_those_of_the_events(skewed: list[Any]) -> None:
    changes, commits = of_kind(skewed, SpreadChanged), of_kind(skewed, BatchCommitted)
    assert len(changes) >= 2
    for view, commit in zip(frames(skewed, "hotkeys"), commits, strict=True):
        due = [e for e in changes if e.batch <= commit.batch][-1:]
        spread = due[0].spread if due else ()
        shown = ((v, set(hosts), c, part) for v, _, hosts, c, part in list_rows(view["values"]))
        assert [*shown] == [
            (v.value, set(v.hosts), [*v.copied_streams], v.copied_share) for v in spread
        ]
        assert view["values"]["share"] == pytest.approx([v.share for v in spread], abs=1e-4)
        assert view["rest"] == pytest.approx(1 - sum(v.share for v in spread), abs=1e-3)
        assert view["since"] == (due[0].batch + 1 if due else 0)
        assert view["compared"] == [h.compared_pairs for h in commit.host_metrics]
        assert view["stored"] == [h.stored_tuples for h in commit.host_metrics]
        assert view["moved"] == [h.migrated_tuples for h in commit.host_metrics]


@pytest.fixture(scope="module")
def cube() -> list[Any]:
    return list(run_chain_join(HyperCube(8), ChainSetting((80, 10, 10), (10, 10, 80), 16, 8, 200)))


def test_a_row_is_stored_on_the_cells_along_what_its_stream_lacks(cube: list[Any]) -> None:
    """Compared with the plan: where each fresh block is stored."""
    plans = of_kind(cube, BatchPlanned)
    assert len(of_kind(cube, SharesChosen)) >= 2
    for view, plan in zip(frames(cube, "hypercube"), plans, strict=True):
        cells = list_rows(view["cells"])
        dimensions = list_rows(view["dimensions"])
        parts: dict[int, set[frozenset[int]]] = {0: set(), 1: set(), 2: set()}
        for host, own in cells:
            for stream, sets in parts.items():
                fixed = [d for d, (streams, _) in enumerate(dimensions) if stream in streams]
                sets.add(
                    frozenset(h for h, p in cells if all(p[d] == own[d] for d in fixed)) | {host}
                )
        for route in plan.routes:
            if route.is_fresh:
                stream = route.block.stream
                assert frozenset(route.block.hosts) in parts[stream]
                assert len(route.block.hosts) == view["reach"][stream]


def test_rows_and_copies_of_a_hypercube_are_those_of_the_events(cube: list[Any]) -> None:
    changes, commits = of_kind(cube, SharesChosen), of_kind(cube, BatchCommitted)
    for view, commit in zip(frames(cube, "hypercube"), commits, strict=True):
        due = [e for e in changes if e.batch <= commit.batch][-1]
        assert view["copies"] == pytest.approx(due.copies, abs=0.01)
        assert view["before"] == list(due.previous_shares)
        assert [d[1] for d in list_rows(view["dimensions"])] == list(due.shares)
        assert view["stored"] == [h.stored_tuples for h in commit.host_metrics]
        assert view["rows"] == list(commit.live_tuples)
