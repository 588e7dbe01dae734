"""HotKeys: frequent values are shared out, exactly once, and go home when they cool down."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from braid import HashPartition, HotKeys
from braid.core.batch_history import fade_key_counts
from braid.core.coverage import may_join
from braid.core.facts import Facts
from braid.core.frequent_values import (
    EARLIER_WEIGHT,
    LEAST_SHARE,
    MOST_VALUES,
    OTHERS,
    select_frequent_values,
)
from braid.core.plan import Block, Plan, Route
from braid.core.run_events import BatchCommitted
from braid.papers.hotkeys.hot_keys import HotKeysState, _list_spread
from braid.papers.hotkeys.run_events import SpreadChanged
from braid.papers.hotkeys.spread import (
    SharedValue,
    TileTable,
    ValueRanges,
    busiest_over_mean,
    host_micros,
    pack_values,
)
from braid.papers.hotkeys.value_work import ValueShares, ValueWork
from braid.simulation.simulator import simulate
from braid.stream_join import StreamJoin
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from oracle import compute_expected, describe_difference, result_ids, run_with_equal_plans
from placement_checks import check_answers, check_meetings, check_releases
from unit.scripted import collect_decisions

EAGER = HotKeys(4, every=1, target=1.01, values=8)
"""It changes at every occasion."""


def spread_changes(events: list[Any]) -> list[SpreadChanged]:
    return [e for e in events if isinstance(e, SpreadChanged)]


@pytest.mark.parametrize(
    ("streams", "seed"), [(2, 0), (2, 1), (2, 2), (3, 0), (3, 1), (3, 2), (4, 0)]
)
def test_every_combination_meets_once_while_the_frequent_value_changes(
    streams: int, seed: int
) -> None:
    draw = random.Random(seed)
    most = {2: 12, 3: 4, 4: 2}[streams]
    counts = [tuple(draw.randint(1, most) for _ in range(streams)) for _ in range(12)]
    cluster = check_meetings(EAGER, counts, draw)
    changes = spread_changes(cluster.events)
    assert len(changes) > 1 and len({e.spread for e in changes}) > 1
    assert any(len(v.hosts) > 1 for e in changes for v in e.spread)


@pytest.mark.parametrize("seed", range(3))
def test_kinds_and_as_of_joins_are_exact_under_changes(seed: int) -> None:
    counts = [(6, 6)] * 12
    check_answers(EAGER, counts, random.Random(seed))
    check_releases(EAGER, counts, random.Random(seed))


def draw_ranges(draw: st.DrawFn) -> ValueRanges:
    hosts = draw(st.integers(1, 9))
    return ValueRanges(hosts, draw(st.integers(hosts, 40)), draw(st.sampled_from([4, 16, 256])))


@st.composite
def spread_tables(draw: st.DrawFn) -> TileTable:
    given = draw_ranges(draw)
    hosts = st.lists(st.integers(0, given.hosts - 1), min_size=1, max_size=4, unique=True)
    shared = st.tuples(hosts.map(sorted).map(tuple), st.sampled_from([None, 0, 1]))
    spread = draw(st.dictionaries(st.integers(0, given.values - 1), shared, max_size=6))
    shares = {v: SharedValue(v, *each) for v, each in spread.items()}
    return TileTable(given, shares, draw(st.integers(0, 1)))


@given(spread_tables(), st.data())
def test_a_spread_tiles_the_keys_and_the_pieces_of_a_block_are_the_block(
    table: TileTable, data: st.DataObject
) -> None:
    size = table.ranges.values * table.ranges.keys_per_value
    bounds = [table.tiles[0].keys[0], *(tile.keys[1] for tile in table.tiles)]
    assert [tile.keys for tile in table.tiles] == [*pairwise(bounds)]
    assert (bounds[0], bounds[-1]) == (0, size)
    low, high = sorted(
        data.draw(st.lists(st.integers(0, size), min_size=2, max_size=2, unique=True))
    )
    pieces = list(table.split_keys((low, high)))
    ends = [low, *(end for (_, end), _ in pieces)]
    assert [keys for keys, _ in pieces] == [*pairwise(ends)] and ends[-1] == high
    assert all(a != b for (_, a), (_, b) in pairwise(pieces)), "a cut for nothing"
    for keys, hosts in pieces:
        met = [t.hosts for t in table.tiles if t.keys[0] < keys[1] and keys[0] < t.keys[1]]
        assert {*met} == {hosts}


@given(spread_tables())
def test_tiles_of_values_in_common_are_of_one_group(table: TileTable) -> None:
    for tile in table.tiles:
        for other in table.tiles:
            meets = may_join(
                Block(0, 0, tile.keys, 0, (0,)),
                Block(1, 1, other.keys, 0, (0,)),
                "join",
                keys_per_value=table.ranges.keys_per_value,
            )
            assert meets == (tile.group == other.group)
            assert meets == (other.group in table.overlapped_groups(tile.keys))


def test_blocks_with_parts_of_one_value_may_join() -> None:
    a, b = Block(0, 0, (0, 3), 0, (0,)), Block(1, 1, (3, 4), 0, (1,))
    assert may_join(a, b, "join", keys_per_value=4) and not may_join(a, b, "join")
    assert not may_join(a, Block(1, 1, (4, 8), 0, (1,)), "join", keys_per_value=4)


@st.composite
def value_works(draw: st.DrawFn) -> tuple[ValueWork, ValueRanges]:
    given, micros = draw_ranges(draw), st.floats(0, 1000)
    values = draw(st.lists(st.integers(0, given.values - 1), unique=True, max_size=12))
    tuples, pairs = ({v: draw(micros) for v in values} for _ in range(2))
    return ValueWork(tuples, pairs, draw(micros)), given


@given(value_works())
def test_packing_never_makes_the_busiest_host_busier(case: tuple[ValueWork, ValueRanges]) -> None:
    work, given = case
    packed = pack_values(work, {}, given)
    assert max(host_micros(work, packed, given)) <= max(host_micros(work, {}, given))
    assert all(each.hosts == tuple(sorted(set(each.hosts))) for each in packed.values())


def test_one_frequent_value_is_shared_out_by_its_pairs() -> None:
    work, given = ValueWork({7: 10.0}, {7: 1600.0}, 320.0), ValueRanges(16, 160, 256)
    packed = pack_values(work, {}, given)
    assert busiest_over_mean(host_micros(work, {}, given)) > 12
    assert len(packed[7].hosts) == 16 and busiest_over_mean(host_micros(work, packed, given)) < 1.01


def make_facts(counts: tuple[dict[int, float], ...], blocks: tuple[Block, ...] = ()) -> Facts:
    """Return facts before batch 8 of two streams."""
    held = (100, 100)
    return Facts(8, ("r", "s"), blocks, 100, held, held, held, key_counts=counts)


def routes_without_keys(plan: Plan) -> list[Route]:
    """Return the routes of a plan without the numbers of routing keys."""
    return [
        structs.replace(r, block=structs.replace(r.block, key_range=(0, 1))) for r in plan.routes
    ]


def test_a_spread_is_listed_before_any_tuple_is_counted() -> None:
    facts = SimpleNamespace(key_counts=({}, {}), streams=("a", "b"))
    listed = _list_spread({7: SharedValue(7, 2, None)}, cast(Any, facts))
    assert [(each.value, each.share) for each in listed] == [(7, 0)]


def test_frequent_values_are_listed_by_their_share_of_all_tuples() -> None:
    facts = SimpleNamespace(key_counts=({3: 10.0, 9: 30.0}, {7: 40.0, 3: 20.0}), streams=("a", "b"))
    spread = {value: SharedValue(value, (0, 1)) for value in (9, 3, 7)}
    listed = _list_spread(spread, cast(Any, facts))
    assert [(each.value, each.share) for each in listed] == [(7, 0.4), (3, 0.3), (9, 0.3)]


@pytest.mark.parametrize("hosts", [1, 3, 16])
def test_without_frequent_values_the_plan_is_that_of_a_hash(hosts: int) -> None:
    hot, hashed = HotKeys(hosts), HashPartition(hosts)
    keys_per_value = hot.keys_per_value

    def stored(id: int, host: int, is_hot: bool) -> Block:
        low, high = (hot.value_ranges.first_value(h) * keys_per_value for h in (host, host + 1))
        return Block(id, id % 2, (low, high) if is_hot else (host, host + 1), 3, (host,), 9)

    plans = []
    for placement, is_hot in ((hot, True), (hashed, False)):
        blocks = tuple(stored(id, id // 3 % hosts, is_hot) for id in range(40))
        even = make_facts(({OTHERS: 400.0},) * 2, blocks)
        plans.append(placement.plan_batch(even, placement.initial_state(2)))
    assert routes_without_keys(plans[0]) == routes_without_keys(plans[1])
    assert not plans[0].derivations and not plans[0].drops and not plans[0].events


def test_new_tuples_follow_at_once_and_stored_ones_in_the_background() -> None:
    placement, frequent = HotKeys(4, values=8, rate=0.1), ({5: 300.0, OTHERS: 100.0},) * 2
    keys_per_value = placement.keys_per_value
    blocks = tuple(
        Block(n, n % 2, (4 * keys_per_value, 6 * keys_per_value), n, (2,), 50) for n in range(6)
    )
    plan = placement.plan_batch(make_facts(frequent, blocks), HotKeysState())
    (change,) = spread_changes(list(plan.events))
    assert [v[:4] for v in change.spread] == [(5, (0, 1, 2, 3), 0.75, ())]
    assert change.after < change.before and change.tuples_to_move > 0
    stored = {r.block.hosts for r in plan.routes if r.block.key_range[0] // keys_per_value == 5}
    assert stored == {(0,), (1,), (2,), (3,)}
    moved = {s for d in plan.derivations for s in d.source_blocks}
    assert 0 < len(moved) < len(blocks) and plan.pinned_blocks == {0, 1, 2, 3, 4, 5} - moved
    assert not plan.state.is_settled


def test_a_block_that_compaction_makes_waits_for_the_next_batch() -> None:
    placement = HotKeys(4, values=8)
    block = Block(0, 0, (0, 8 * placement.keys_per_value), 0, (2,), 50)
    frequent = ({5: 300.0, OTHERS: 100.0},) * 2
    before = replace(make_facts(frequent, (block,)), compacted_blocks=frozenset({0}))
    plan = placement.plan_batch(before, HotKeysState())
    assert not plan.derivations and plan.pinned_blocks == {0}


def skewed_shares(values: int, hot: int | None, share: float = 0.6) -> list[list[float]]:
    """Return the shares of values of two streams; one value may be frequent."""
    each = np.full(values, 1.0)
    if hot is not None:
        each[hot] = share / (1 - share) * (values - 1)
    return [(each / each.sum()).tolist()] * 2


def simulate_turns(hot: list[int | None], batches: int = 12, **given: Any) -> list[Any]:
    """Return the events of a simulation in which each of these values is frequent in turn."""
    from braid.simulation.simulated_run import SimulatedRun

    placement = HotKeys(8, values=512)
    turns = [np.array(skewed_shares(512, h)) for h in hot]

    class Shifting(SimulatedRun):
        def run_batch(self, counts: Any) -> list[Any]:
            at = (self.state.batch + 1) * len(turns) // batches
            self.shares = list(turns[min(at, len(turns) - 1)])
            return super().run_batch(counts)

    given = {"windows": (4.0, 4.0)} | given
    return simulate(placement, [(800, 800)] * batches, make_run=Shifting, **given)


def test_values_come_and_go_and_everything_is_at_home_again() -> None:
    events = simulate_turns([7, 300, None, None], 32)
    spreads = [{v.value for v in e.spread} for e in spread_changes(events)]
    assert {7} in spreads and {300} in spreads and spreads[-1] == set()
    commits = [e for e in events if isinstance(e, BatchCommitted)]
    moved = [sum(h.migrated_tuples for h in e.host_metrics) for e in commits]
    assert sum(moved) > 0 and not any(moved[-3:])
    blocks: dict[int, Block] = {}
    for e in commits:
        blocks = {id: b for id, b in blocks.items() if id not in e.dropped_block_ids}
        blocks |= {b.id: b for b in e.changed_blocks}
    table = TileTable(HotKeys(8, values=512).value_ranges, {})
    assert all(h == b.hosts for b in blocks.values() for _, h in table.split_keys(b.key_range))


def test_the_busiest_host_receives_little_more_than_the_mean_after_a_shift() -> None:
    commits = [e for e in simulate_turns([7, 300]) if isinstance(e, BatchCommitted)]
    for e in commits[4:6] + commits[-2:]:
        received = [h.received_tuples for h in e.host_metrics]
        assert max(received) < 1.2 * sum(received) / 8


def test_an_event_says_which_values_are_hot_on_which_hosts() -> None:
    (first, *_) = (d for d in collect_decisions(simulate_turns([7])) if d.kind == "SpreadChanged")
    assert (
        first.text.startswith("1 frequent value shared out, the first (") and "hosts" in first.text
    )
    assert "times the mean work" in first.text and first.text.endswith("rows to move")
    (*_, last) = (
        d
        for d in collect_decisions(simulate_turns([7, None, None, None], 32))
        if d.kind == "SpreadChanged"
    )
    assert last.text.startswith("no value is frequent any more: ")


def test_a_thousand_hosts_are_simulated_in_time() -> None:
    """Ten batches take about 5 s and 0.2 GB."""
    events = simulate(HotKeys(1000), [(3000, 3000)] * 3, key_shares=skewed_shares(1 << 14, 99))
    (change, *_) = spread_changes(events)
    assert len(change.spread[0].hosts) == 256 and change.after < change.before / 100


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_a_value_that_stays_frequent_is_counted_and_no_count_is_too_high(
    data: st.DataObject,
) -> None:
    draw = np.random.default_rng(data.draw(st.integers(0, 1 << 16)))
    kept: tuple[dict[int, float], ...] = ()
    exact, values = Counter[int](), 3000
    shares = draw.dirichlet(np.full(values, 0.02))
    for _ in range(8):
        came = draw.multinomial(2000, shares)
        exact = Counter({v: EARLIER_WEIGHT * n for v, n in exact.items()})
        exact.update(dict(enumerate(came.tolist())))
        kept = fade_key_counts(kept, (select_frequent_values(came),), keys_per_value=4)
    (counts,) = kept
    assert len(counts) <= MOST_VALUES + 1 and sum(counts.values()) == pytest.approx(exact.total())
    assert all(n <= exact[v] + 1e-6 for v, n in counts.items() if v != OTHERS)
    assert all(v in counts for v in np.flatnonzero(shares > 2 * 2 / MOST_VALUES).tolist())
    assert LEAST_SHARE > MOST_VALUES


def test_values_that_come_once_or_twice_are_not_counted() -> None:
    assert select_frequent_values(np.array([2] * 500)) == {OTHERS: 1000}
    assert select_frequent_values(np.array([2] * 500 + [3])) == {500: 3, OTHERS: 1000}
    assert select_frequent_values(np.array([1, 2])) == {0: 1, 1: 2, OTHERS: 0}


def test_shares_of_ranges_add_up() -> None:
    shares = ValueShares(({3: 30.0, 5: 10.0, OTHERS: 60.0},), values=10, keys_per_value=4)
    assert shares.key_share(0, (0, 40)) == pytest.approx(1)
    assert shares.value_share(0, 3) == pytest.approx(0.36)
    assert shares.value_share(0, 4) == pytest.approx(0.06)
    assert shares.key_share(0, (12, 14)) == pytest.approx(0.18)


def skewed_streams(rows: int, batches: int) -> dict[str, pa.Table]:
    """Return two streams with a frequent value that changes after a third, and NULLs."""
    tables = {}
    for i, alias in enumerate("ab"):
        draw = np.random.default_rng([7, i])
        batch = np.arange(rows) * batches // rows
        hot = np.where(batch < batches // 3, 5, 17)
        k = np.where(draw.random(rows) < 0.6, hot, draw.integers(0, 60, rows))
        tables[alias] = pa.table(
            {
                "id": np.arange(rows),
                "k": pa.array(k, mask=draw.random(rows) < 0.05),
                "n": draw.integers(0, 99, rows),
                "batch": pa.array(batch, pa.int32()),
            }
        )
    return tables


def test_a_join_is_killed_in_every_batch_and_goes_on(tmp_path: Path) -> None:
    """Also in those in which a value is shared out, moves, and goes home."""
    streams, on = skewed_streams(320, 11), "a.k = b.k AND a.n < b.n"
    join = StreamJoin(streams, on, HotKeys(4, every=1, rate=0.5), check=True)
    run = run_with_equal_plans(join, streams, tmp_path, 11)
    assert describe_difference(result_ids(run.results()), compute_expected(streams, on)) == ""
    spreads = [{v.value for v in e.spread} for e in spread_changes(list(run.events()))]
    assert any(after - before for before, after in pairwise(spreads)), "no value is promoted"
    assert any(before - after for before, after in pairwise(spreads)), "no value goes home"


def test_a_join_without_an_equality_is_refused() -> None:
    with pytest.raises(ValueError, match="HotKeys partitions by the value that an equality joins"):
        StreamJoin(skewed_streams(20, 2), "a.n < b.n", HotKeys(4))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: HotKeys(0), "hosts is 0; it must be a whole number, 1 or more"),
        (
            lambda: HotKeys(4, target=1),
            "target is 1; it must be a number greater than 1, at most 2",
        ),
        (lambda: HotKeys(4, target=2.5), "target is 2.5"),
        (lambda: HotKeys(4, every=0), "every is 0; it must be a whole number, 1 or more"),
        (lambda: HotKeys(4, rate=0), "rate is 0; it must be a number greater than 0"),
        (lambda: HotKeys(4, values=0), "values is 0"),
    ],
)
def test_settings_out_of_range_are_refused(make: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize("hosts", [1, 16, 100, 1000, 100_000])
def test_the_key_space_is_within_its_limit_for_any_number_of_hosts(hosts: int) -> None:
    placement = HotKeys(hosts)
    assert placement.key_space_size <= 1 << 24 and placement.value_ranges.values >= hosts
    home = [
        placement.value_ranges.home_host(placement.value_ranges.first_value(h))
        for h in (0, hosts - 1)
    ]
    assert home == [0, hosts - 1]
