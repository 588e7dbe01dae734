"""HyperCube: exactly once while shares change, with the state moving; fewer copies by rates."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from braid import HyperCube
from braid.core.join_kinds import JoinKind
from braid.core.key_boxes import Shares
from braid.core.run_events import BatchCommitted, EventContext
from braid.papers.hypercube.cells import exchange_hosts
from braid.papers.hypercube.run_events import SharesChosen
from braid.papers.hypercube.shares import (
    CubeSize,
    Dimensions,
    choose_cube_size,
    count_copies,
    count_received_tuples,
    exchange_factor,
    find_best_shares,
    list_exchanges,
    list_factorizations,
)
from braid.simulation.simulator import simulate
from braid.stream_join import StreamJoin
from oracle import compute_expected, describe_difference, result_ids, run_with_equal_plans
from placement_checks import Cluster, check_meetings, draw_arrivals
from shifting_runs import CUBES
from stages import AlternatingExecutor

CHAIN: Dimensions = ((0, 1), (1, 2))
CYCLE: Dimensions = ((0, 1), (0, 2), (1, 2))
STAR: Dimensions = ((0, 1), (0, 2), (0, 3))
LOOSE: Dimensions = ((0, 1),)
"""Of three streams, the last has no equality."""


def changes(events: Iterable[Any]) -> list[SharesChosen]:
    return [e for e in events if isinstance(e, SharesChosen)]


def commits(events: Iterable[Any]) -> list[BatchCommitted]:
    return [e for e in events if isinstance(e, BatchCommitted)]


@pytest.mark.parametrize(
    ("dimensions", "streams", "most"), [(CHAIN, 3, 5), (CYCLE, 3, 7), (STAR, 4, 3), (LOOSE, 3, 4)]
)
@pytest.mark.parametrize("seed", range(2))
def test_every_combination_meets_once_while_the_shares_change(
    dimensions: Dimensions, streams: int, most: int, seed: int
) -> None:
    draw = random.Random(seed)
    fast = [draw.randrange(streams) for _ in range(3)]
    counts = [
        tuple(most if s == fast[b // 3] else draw.randint(0, 1) for s in range(streams))
        for b in range(9)
    ]
    cluster = check_meetings(HyperCube(8, dimensions, 1.0), counts, draw)
    assert cluster.met, "no tuples match"
    if dimensions is not LOOSE:  # one dimension has all hosts
        assert len({e.shares for e in changes(cluster.events)}) > 1


def test_all_tuples_are_answered_once_while_the_shares_change() -> None:
    kind = JoinKind("keep", (0, 1, 2), (0, 1, 2), writes_unmatched=True)
    placement = HyperCube(8, CHAIN, 1.0)
    for window in (None, 40):
        cluster = Cluster(placement, 3, kind, window)
        counts = [(6, 1, 1)] * 4 + [(1, 1, 6)] * 6
        for batch in draw_arrivals(counts, placement.key_space_size, random.Random(1)):
            cluster.run(batch)
        cluster.end()
        assert cluster.answered == Counter(dict.fromkeys(cluster.came, 1))
        assert len(changes(cluster.events)) > 2


def test_a_thousand_hosts_are_simulated_in_time() -> None:
    events = simulate(HyperCube(1000, CHAIN), [(800, 100, 100)] * 2)
    assert len(commits(events)) == 2 and changes(events)[0].shares == (31, 31)


def test_state_moves_and_no_host_hops() -> None:
    events = simulate(HyperCube(16, CHAIN), [(80, 10, 10)] * 6 + [(10, 10, 80)] * 14)
    shares = [e.shares for e in changes(events)]
    assert shares == [(4, 4), (8, 2), (4, 4), (2, 8)]
    totals = [e.total_host_metrics for e in commits(events)]
    moving = [n for n, total in enumerate(totals) if total.migrated_tuples]
    assert moving == [e.batch for e in changes(events)[1:]]
    assert not any(total.sent_partials for total in totals)


@pytest.mark.parametrize(
    ("rates", "shares", "square", "by_rates"),
    [((1, 1, 1), (4, 4), 3.0, 3.0), ((8, 1, 1), (8, 2), 3.7, 2.5)],
)
def test_the_shares_of_a_chain_of_three_on_16_hosts(
    rates: tuple[int, ...], shares: Shares, square: float, by_rates: float
) -> None:
    assert find_best_shares(CubeSize(16, 16), CHAIN, rates) == shares
    received = [count_received_tuples(s, CHAIN, rates) / sum(rates) for s in ((4, 4), shares)]
    assert received == [pytest.approx(square), pytest.approx(by_rates)]


def test_the_shares_of_64_hosts_at_one_to_sixteen() -> None:
    size, rates = CubeSize(64, 64), (1, 1, 16)
    best = find_best_shares(size, CHAIN, rates)
    assert count_received_tuples(best, CHAIN, rates) / 18 == pytest.approx(3.6, abs=0.05)
    assert count_received_tuples((8, 8), CHAIN, rates) / 18 == pytest.approx(7.6, abs=0.05)


def test_a_run_receives_three_quarters_of_the_square_at_most() -> None:
    counts = [(800, 100, 100)] * 12
    found = {}
    for threshold in (0.8, 0.01):  # the second never changes the square
        events = simulate(HyperCube(16, CHAIN, threshold), counts)
        last = commits(events)[-1]
        found[threshold] = last.total_host_metrics.received_tuples / sum(last.received_tuples)
    assert found[0.01] == 3.7 and found[0.8] / found[0.01] <= 0.75


@pytest.mark.parametrize("hosts", [4, 5, 6, 7, 12, 16, 30, 97, 1024])
@pytest.mark.parametrize("dimensions", [CHAIN, CYCLE, STAR, LOOSE])
def test_more_than_half_of_the_hosts_have_a_cell(hosts: int, dimensions: Dimensions) -> None:
    size = choose_cube_size(hosts, dimensions)
    assert hosts / 2 < size.cells <= hosts and size.cells % size.finest == 0
    assert HyperCube(hosts, dimensions).key_space_size <= 1 << 18
    for shares in list_factorizations(size.cells, len(dimensions), size.finest):
        assert np.prod(shares) == size.cells


def test_of_five_hosts_four_have_a_cell() -> None:
    """A square of four sends less to each than a row of five."""
    assert choose_cube_size(5, CHAIN).cells == 4
    (first, *_) = changes(simulate(HyperCube(5, CHAIN), [(1, 1, 1)]))
    assert (first.shares, first.idle_hosts) == ((2, 2), (4,))


def test_copies_are_the_cells_along_the_dimensions_that_a_stream_lacks() -> None:
    assert [count_copies((4, 2, 3), STAR, s) for s in range(4)] == [1, 6, 12, 8]


@pytest.mark.parametrize("shares", [(4, 4), (2, 3, 4), (12, 1)])
def test_a_change_of_shares_keeps_each_host_within_its_old_cell_or_merges_it(
    shares: Shares,
) -> None:
    """Of the cells that become one, each goes on with another part of the dimension that grows."""
    cells = int(np.prod(shares))
    for grows, shrinks, factor in list_exchanges(shares, cells):
        new = exchange_factor(shares, grows, shrinks, factor)
        hosts = exchange_hosts(range(cells), shares, grows, shrinks, factor)
        assert sorted(hosts) == [*range(cells)]
        for cell, host in zip(np.ndindex(*new), hosts, strict=True):
            old = np.unravel_index(host, shares)
            assert old[grows] == cell[grows] // factor and old[shrinks] // factor == cell[shrinks]
            rest = [d for d in range(len(shares)) if d not in (grows, shrinks)]
            assert all(old[d] == cell[d] for d in rest)


def test_half_of_what_is_stored_moves_at_most_when_a_share_doubles() -> None:
    events = simulate(HyperCube(16, CHAIN), [(200, 200, 200)] * 5 + [(2000, 200, 200)] * 6)
    (_, change, *_) = changes(events)
    stored = commits(events)[change.batch - 1].total_host_metrics.stored_tuples
    moved = commits(events)[change.batch].total_host_metrics.migrated_tuples
    assert 0 < moved <= 0.5 * stored


def test_an_event_says_what_the_shares_are_and_what_they_save() -> None:
    moment = EventContext(("a", "b", "c"), None, ())
    first = SharesChosen(0, CHAIN, (), (2, 2), 2.0, 2.0, (4,))
    assert first.describe_decision(moment) == (
        "shares by equality a = b: 2, b = c: 2; host 4 without a cell"
    )
    later = replace(first, previous_shares=(2, 2), shares=(4, 1), previous_copies=2.5, copies=1.9)
    assert later.describe_decision(moment) == (
        "shares by equality a = b: 4, b = c: 1, in place of 2 x 2: 2.50 to 1.90 hosts receive a row"
    )


ON = "a.x = b.x AND b.y = c.y AND a.n < c.n + 80"


def make_streams(aliases: str, rows: int, batches: int) -> dict[str, pa.Table]:
    """Return streams with NULLs. The first is fast in the first half, then the last one is."""
    tables = {}
    for i, alias in enumerate(aliases):
        draw = np.random.default_rng([3, i])
        fast = {
            0: np.arange(batches) < batches // 2,
            len(aliases) - 1: np.arange(batches) >= batches // 2,
        }
        weights = np.where(fast.get(i, np.zeros(batches, bool)), 8.0, 1.0)
        batch = np.sort(draw.choice(batches, rows, p=weights / weights.sum()))
        tables[alias] = pa.table(
            {
                "id": np.arange(rows),
                "x": pa.array(draw.integers(0, 25, rows), mask=draw.random(rows) < 0.05),
                "y": pa.array([f"v{n}" for n in draw.integers(0, 25, rows)]),
                "n": draw.integers(0, 99, rows),
                "batch": pa.array(batch, pa.int32()),
            }
        )
    return tables


@pytest.mark.parametrize(("aliases", "on"), CUBES.values(), ids=CUBES)
def test_results_equal_brute_force_by_both_executors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aliases: str, on: str
) -> None:
    """Threads run every other batch, and stages of tasks the others."""
    monkeypatch.setattr("braid.arrow_join.make_executor", lambda _: AlternatingExecutor())
    streams = make_streams(aliases, 120, 8)
    join = StreamJoin(streams, on, HyperCube(8, threshold=1.0), partitions=2, check=True)
    run = join.start(tmp_path / "run", batches="batch")
    assert run.awaitTermination()
    want = compute_expected(streams, on)
    assert want and describe_difference(result_ids(run.results()), want) == ""
    assert len(changes(run.events())) > 1


def test_a_run_that_is_killed_in_every_batch_goes_on(tmp_path: Path) -> None:
    """Also in those in which shares change."""
    streams = make_streams("abc", 60, 7)
    join = StreamJoin(streams, ON, HyperCube(8, threshold=1.0), check=True)
    run = run_with_equal_plans(join, streams, tmp_path, 7)
    assert describe_difference(result_ids(run.results()), compute_expected(streams, ON)) == ""
    assert len(changes(run.events())) > 1


@pytest.mark.parametrize(
    ("on", "sentence"),
    [
        ("a.n < b.n AND b.n < c.n", "'a.n < b.n AND b.n < c.n' has none"),
        (
            " AND ".join(f"a.k{n} = b.k{n}" for n in range(7)) + " AND b.n < c.n",
            "at most 6; the condition has 7",
        ),
    ],
)
def test_conditions_that_it_does_not_serve_are_refused(on: str, sentence: str) -> None:
    rows = pa.table({"n": [1], **{f"k{n}": [1] for n in range(7)}})
    with pytest.raises(ValueError, match=sentence):
        StreamJoin({"a": rows, "b": rows, "c": rows}, on, HyperCube(4))


def test_layouts_of_events_that_are_no_longer_kept_are_not_in_use() -> None:
    run = simulate(
        HyperCube(16, CHAIN), [(80, 10, 10)] * 10 + [(10, 10, 80)] * 10, windows=(5,) * 3
    )
    chosen = [e for e in run if isinstance(e, SharesChosen)]
    boxes = HyperCube(16, CHAIN).find_recorded_boxes(3, chosen[-1:], 19)
    assert len(chosen) > 2 and boxes.shares == chosen[-1].shares
    assert boxes.layouts[:-1] == ((),) * chosen[-1].layout


def test_a_change_of_shares_names_those_before_and_the_first_layout_is_used_until_then() -> None:
    run = simulate(
        HyperCube(16, CHAIN), [(80, 10, 10)] * 10 + [(10, 10, 80)] * 10, windows=(5,) * 3
    )
    chosen = [e for e in run if isinstance(e, SharesChosen)]
    assert [e.previous_shares for e in chosen] == [(), *(e.shares for e in chosen[:-1])]
    none, first = (HyperCube(16, CHAIN).find_recorded_boxes(3, chosen, at) for at in (-1, 0))
    assert (none.layouts, none.current) == (((),), 0)
    assert (first.shares, first.current) == (chosen[0].shares, chosen[0].layout)


def test_two_streams_are_refused_and_six_dimensions_are_not() -> None:
    HyperCube(4, ((0, 1),) * 6)
    rows = pa.table({"n": [1]})
    with pytest.raises(ValueError, match="HyperCube joins three streams or more; got 2; HashPart"):
        StreamJoin({"a": rows, "b": rows}, "a.n = b.n", HyperCube(4))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: HyperCube(3), "hosts is 3; it must be a whole number, 4 or more"),
        (lambda: HyperCube(2000), "hosts is 2000"),
        (lambda: HyperCube(4, threshold=0.0), "threshold is 0.0; it must be a number greater"),
        (lambda: HyperCube(4, ((1, 0),)), r"streams \(1, 0\); it must have two or more"),
        (lambda: HyperCube(4, ((2,),)), r"streams \(2,\)"),
        (lambda: HyperCube(4, ((-1, 2),)), r"streams \(-1, 2\)"),
        (lambda: HyperCube(4).initial_state(3), r"dimensions is \(\), as there is no condition"),
        (lambda: HyperCube(4, CHAIN).initial_state(2), "three streams or more"),
        (lambda: HyperCube(4, STAR).initial_state(3), "dimensions name stream 3 of 3 streams"),
    ],
)
def test_settings_out_of_range_are_refused(make: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()
