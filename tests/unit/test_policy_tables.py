"""Pieces of policies, by tables of values computed by hand from the formulas of the papers."""

from __future__ import annotations

import numpy as np
import pytest
from braid.core.facts import Facts
from braid.core.key_boxes import KeyBoxes
from braid.core.plan import Block
from braid.core.plan_builder import PlanBuilder
from braid.core.query import Query
from braid.core.shedding_plan import ItemYield, SheddingOutcome
from braid.papers.hotkeys.block_moves import find_stray_blocks
from braid.papers.hotkeys.spread import (
    SharedValue,
    TileTable,
    ValueRanges,
    busiest_over_mean,
    drop_cooled_values,
    host_micros,
)
from braid.papers.hotkeys.value_work import OTHERS, ValueShares, ValueWork
from braid.papers.hypercube.cells import (
    CubeCells,
    _choose_sources,
    exchange_hosts,
    move_stored_blocks,
)
from braid.papers.hypercube.shares import (
    count_copies,
    count_received_tuples,
    exchange_factor,
    list_factorizations,
    list_stream_dimensions,
)
from braid.papers.shedding.budget import Budget, affordable_pairs
from braid.papers.shedding.productivity_profile import Observation, ProductivityProfile
from braid.papers.slices import chain_optimizer as slices
from braid.papers.slices.chain_optimizer import ChainStatistics, StreamPosition

pytestmark = pytest.mark.unit

# Hot keys


@pytest.mark.parametrize(
    ("hosts", "values", "firsts"), [(3, 10, [0, 3, 6, 10]), (4, 4, [0, 1, 2, 3, 4])]
)
def test_hosts_have_ranges_of_values_of_equal_size(
    hosts: int, values: int, firsts: list[int]
) -> None:
    ranges = ValueRanges(hosts, values, 8)
    assert [ranges.first_value(h) for h in range(hosts + 1)] == firsts
    homes = [h for h in range(hosts) for _ in range(firsts[h], firsts[h + 1])]
    assert [ranges.home_host(v) for v in range(values)] == homes


@pytest.mark.parametrize(("hosts", "keys", "most"), [(9, 4, 2), (9, 12, 3), (9, 64, 9), (1, 64, 1)])
def test_a_value_is_shared_by_a_quarter_of_its_keys_and_by_two_hosts_at_least(
    hosts: int, keys: int, most: int
) -> None:
    assert ValueRanges(hosts, 16, keys).most_sharing_hosts() == most


BOTH = {value: SharedValue(value, (0, 1)) for value in range(3)}
TABLE = TileTable(ValueRanges(2, 4, 4), {1: BOTH[1], 2: BOTH[2]})
"""Hosts 0 and 1 have values 0, 1 and 2, 3; they share 1 and 2."""


def test_the_tiles_of_a_spread_are_those_of_its_values_in_order() -> None:
    tiles = [(t.keys, *t.hosts, t.group) for t in TABLE.tiles]
    assert tiles == [
        ((0, 4), 0, 0),
        ((4, 6), 0, 1),
        ((6, 8), 1, 1),
        ((8, 10), 0, 2),
        ((10, 12), 1, 2),
        ((12, 16), 1, 3),
    ]
    assert TABLE.group_starts == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("keys", "groups", "pieces"),
    [
        ((0, 4), (0, 1), [((0, 4), 0)]),
        ((3, 5), (0, 2), [((3, 5), 0)]),
        ((4, 8), (1, 2), [((4, 6), 0), ((6, 8), 1)]),
        ((8, 16), (2, 4), [((8, 10), 0), ((10, 16), 1)]),
        ((5, 11), (1, 3), [((5, 6), 0), ((6, 8), 1), ((8, 10), 0), ((10, 11), 1)]),
    ],
)
def test_keys_are_cut_where_their_host_changes(
    keys: tuple[int, int], groups: tuple[int, int], pieces: list[tuple[tuple[int, int], int]]
) -> None:
    assert TABLE.overlapped_groups(keys) == range(*groups)
    assert [(part, *hosts) for part, hosts in TABLE.split_keys(keys)] == pieces
    for host in (0, 1):
        block = Block(7, 0, keys, 0, (host,), 5)
        assert bool(find_stray_blocks([block], [TABLE])) == any(h != host for _, h in pieces)


def test_hosts_share_the_pairs_of_a_value_and_each_receives_its_tuples() -> None:
    work, ranges = ValueWork({1: 6.0}, {1: 4.0}, 10.0), ValueRanges(2, 4, 4)
    assert host_micros(work, {}, ranges) == [15.0, 5.0]
    assert host_micros(work, {1: BOTH[1]}, ranges) == [13.0, 13.0]
    assert busiest_over_mean([15.0, 5.0]) == 1.5
    assert busiest_over_mean([0.0, 0.0]) == 1.0
    assert work.total_micros() == 20 and work.value_micros(1) == 10 and not work.value_micros(2)


def test_a_value_with_a_tenth_of_a_host_stays_shared() -> None:
    """A host has 1,000 in the mean: 100 stay."""
    work = ValueWork({0: 50.0, 1: 50.0}, {0: 50.0, 1: 49.0}, 1801.0)
    spread = {0: BOTH[0], 1: BOTH[1]}
    assert drop_cooled_values(spread, work, ValueRanges(2, 4, 4)) == {0: BOTH[0]}


def test_shares_of_values_and_of_parts_of_them() -> None:
    shares = ValueShares(({1: 30.0, 3: 10.0, OTHERS: 60.0}, {}), values=6, keys_per_value=4)
    assert shares.frequent_values() == [1, 3]
    assert [shares.value_share(0, v) for v in range(4)] == pytest.approx([0.1, 0.4, 0.1, 0.2])
    assert shares.key_share(0, (4, 6)) == pytest.approx(0.2)
    assert shares.key_share(0, (0, 24)) == pytest.approx(1.0)
    assert shares.value_share(1, 1) == 0.0


# Hypercubes

CHAIN = ((0, 1), (1, 2))
"""R(A), S(A, B), T(B): dimension 0 is A, of streams 0 and 1."""


def test_copies_and_tuples_received_by_shares() -> None:
    assert list_stream_dimensions(CHAIN, 3) == ((0,), (0, 1), (1,))
    assert [count_copies((2, 8), CHAIN, s) for s in range(3)] == [8, 1, 2]
    assert count_received_tuples((2, 8), CHAIN, (10, 100, 1000)) == 80 + 100 + 2000
    assert exchange_factor((2, 8, 3), 0, 1, 4) == (8, 2, 3)


@pytest.mark.parametrize(
    ("cells", "dimensions", "finest", "shares"),
    [
        (4, 1, 8, {(4,)}),
        (4, 1, 6, set()),
        (12, 2, 12, {(1, 12), (2, 6), (3, 4), (4, 3), (6, 2), (12, 1)}),
        (12, 2, 6, {(2, 6), (6, 2)}),
        (8, 3, 2, {(2, 2, 2)}),
    ],
)
def test_all_ways_to_write_cells_as_shares_that_divide_the_finest(
    cells: int, dimensions: int, finest: int, shares: set[tuple[int, ...]]
) -> None:
    found = list_factorizations(cells, dimensions, finest)
    assert set(found) == shares and len(found) == len(shares)


def test_a_host_keeps_a_part_of_its_cell_when_shares_change() -> None:
    assert exchange_hosts((0, 1, 2, 3), (2, 2), 0, 1, 2) == (0, 1, 2, 3)
    assert exchange_hosts((0, 1, 2, 3), (2, 2), 1, 0, 2) == (0, 2, 1, 3)
    assert exchange_hosts((4, 5, 6, 7), (4, 1), 1, 0, 2) == (4, 5, 6, 7)
    assert exchange_hosts((4, 5, 6, 7), (1, 4), 0, 1, 2) == (4, 6, 5, 7)


def test_a_host_reads_its_own_replica_and_others_read_each_in_turn() -> None:
    block = Block(0, 0, (0, 4), 0, (5, 6), 9)
    assert _choose_sources(block, (5, 7, 8, 9)) == {5: 5, 7: 6, 8: 5, 9: 6}


def test_blocks_are_copied_cut_and_dropped_as_cells_want_them() -> None:
    boxes = KeyBoxes(2, ((0,), (0, 1), (1,)), ((2, 2),), 0)
    cells = CubeCells(boxes, (0, 1, 2, 3))
    assert cells.hosts_by_part(0) == {(0,): (0, 1), (1,): (2, 3)}
    assert cells.hosts_by_part(1) == {(0, 0): (0,), (0, 1): (1,), (1, 0): (2,), (1, 1): (3,)}
    assert cells.hosts_by_part(2) == {(0,): (0, 2), (1,): (1, 3)}
    half = boxes.find_cell_keys(0, (0,))
    whole = (half[0], boxes.find_cell_keys(0, (1,))[1])
    blocks = (Block(0, 0, half, 0, (0, 3), 9), Block(1, 0, whole, 0, (2,), 8))
    draft = PlanBuilder(Facts(1, ("r", "s", "t"), blocks, 10, (0,) * 3, (0,) * 3, (0,) * 3))
    move_stored_blocks(draft, cells, blocks)
    made = {(d.block.key_range, d.block.hosts): d for d in draft.derivations if d.block.id >= 10}
    assert {d.source_blocks for d in made.values()} == {(1,)}
    assert {hosts for _, hosts in made} == {(0, 1), (2, 3)}
    (copied,) = (d for d in draft.derivations if d.block.id < 10)
    assert copied.block.id == 0 and set(copied.block.hosts) >= {1}
    assert draft.make_plan([], None, []).drops == {0: (3,), 1: (2,)}


# State slices


def statistics(**other: object) -> ChainStatistics:
    given: dict[str, object] = dict(
        rates=(3.0, 5.0),
        join_selectivity=0.1,
        surviving_fractions=((1.0, 0.5, 0.2), (1.0, 0.4, 0.1)),
        slice_overhead=2.0,
        queries=(2, 3, 1),
    )
    return ChainStatistics(**(given | other))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("i", "j", "held", "probing", "inside"),
    [
        (0, 1, 3.0 * 1.0 * 10, 5.0, 0),
        (1, 2, 3.0 * 0.5 * 20, 2.0, 0),
        (2, 3, 3.0 * 0.2 * 30, 0.5, 0),
        (0, 2, 3.0 * 1.0 * 30, 5.0, 2),
        (1, 3, 3.0 * 0.5 * 50, 2.0, 3),
        (0, 3, 3.0 * 1.0 * 60, 5.0, 5),
    ],
)
def test_the_edges_of_a_merge_graph_cost_what_section_7_2_says(
    i: int, j: int, held: float, probing: float, inside: int
) -> None:
    windows = (10, 30, 60)
    assert slices.edge_memory(i, j, windows, statistics()) == pytest.approx(held)
    compared = probing * (1 + 2 + held * (1 + 0.1 * inside))
    assert slices.edge_cost(i, j, windows, statistics()) == pytest.approx(compared)
    looked_up = probing * (1 + 2 + held * (1 + 0.1 * min(inside, 1)))
    found = slices.edge_cost(i, j, windows, statistics(lookup_cost=True))
    assert found == pytest.approx(looked_up)
    assert (i, j, slices.edge_cost(i, j, windows, statistics())) in slices.merge_graph(
        windows, statistics()
    )


def shared_facts(counts: dict[int, float], later: int = 0) -> Facts:
    """Return facts of two streams and three queries, 2 s after the first batch, or later."""
    queries = tuple(Query.parse(f"q{w}", ("r", "s"), f"{w} seconds") for w in (1, 3, 3))
    clocks = (3_000_000 + later, 5_000_000 + later)
    pairs = {((0,), 1): (100, 10), ((1,), 0): (50, 25), ((0, 1), 1): (100, 40)}
    return Facts(
        4, ("r", "s"), (), 0, (50, 90), (0, 0), (0, 0), clocks=clocks,
        match_counts=pairs, queries=queries, key_counts=(counts, {0: 1.0, 1: 3.0}),
    )  # fmt: skip


WINDOWS = ((1_000_000, 3_000_000),) * 2
BEFORE = StreamPosition(0, (10, 30), (1_000_000, 3_000_000))


def test_statistics_of_a_chain_are_rates_matches_and_what_survives() -> None:
    found = slices.measure_chain_statistics(
        shared_facts({0: 30.0, 1: 10.0}), BEFORE, 1, WINDOWS, 7.0
    )
    assert found is not None
    assert found.rates == pytest.approx((30e-6, 20e-6)), "stored, probing: by microsecond"
    assert found.join_selectivity == pytest.approx(50 / 200)
    assert found.surviving_fractions == ((1.0, 0.75), (1.0, 0.25))
    assert found.slice_overhead == 7.0 and found.queries == (1, 2)
    first = slices.measure_chain_statistics(shared_facts({}), BEFORE, 0, WINDOWS, 0.0)
    assert first is not None and first.rates == pytest.approx((20e-6, 30e-6))
    assert first.join_selectivity == 0.5 and first.surviving_fractions == ((1.0, 1.0), (1.0, 0.75))
    assert slices.measure_chain_statistics(shared_facts({}), None, 0, WINDOWS, 0.0) is None
    still = shared_facts({}, later=-2_000_000)
    assert slices.measure_chain_statistics(still, BEFORE, 0, WINDOWS, 0.0) is None


@pytest.mark.parametrize(
    ("counts", "hosts", "ages"),
    [
        ({}, 2, (1_500_000,)),
        ({}, 3, (1_000_000, 2_000_000)),
        ({0: 3.0, 1: 1.0}, 2, (750_000,)),
        ({0: 1.0, 1: 1.0}, 4, (500_000, 1_000_000, 2_000_000)),
    ],
)
def test_hosts_hold_equal_numbers_of_tuples(
    counts: dict[int, float], hosts: int, ages: tuple[int, ...]
) -> None:
    assert slices.choose_host_ages(shared_facts(counts), 0, WINDOWS[0], hosts) == ages


def test_a_chain_with_a_tenth_more_state_is_taken() -> None:
    """Two slices hold 10 and 10 s; one alone 20 s, as much as a tenth more than 10 + 8.18 s."""
    for fraction, ends in ((0.82, (20,)), (0.81, (10, 20))):
        some = ChainStatistics((1.0, 1.0), 0.0, ((1.0, fraction), (1.0, 1.0)), 99.0, (1, 1))
        assert slices.cpu_chain((10, 20), some) == (20,)
        assert slices.choose_chain((10, 20), some) == ends


def test_fractions_that_survive_are_at_most_one() -> None:
    with pytest.raises(ValueError, match="fractions are from 0 to 1"):
        statistics(surviving_fractions=((1.5, 0.5, 0.2), (1.0, 0.4, 0.1)))


# Load shedding


@pytest.mark.parametrize(
    ("kind", "amount", "allowance"),
    [("seconds", 3.0, 3.0), ("speed", 2.0, 0.5), ("pairs", 9.0, None), ("fraction", 0.5, None)],
)
def test_a_batch_may_take_seconds_or_its_event_time(
    kind: str, amount: float, allowance: float | None
) -> None:
    budget = Budget(kind, amount)  # type: ignore[arg-type]
    assert budget.allowed_seconds(1_000_000) == allowance
    assert budget.allowed_seconds(0) == (3.0 if kind == "seconds" else None)


def test_pairs_that_fit_a_batch() -> None:
    assert affordable_pairs(10.0, 1.0, 0.5) == 16.0
    assert affordable_pairs(1.0, 1.0, 0.5) == 0.0
    assert Budget("pairs", 100.0).affordable_pairs(None, 0.0, 0.0, 30.0) == 70.0
    assert Budget("pairs", 100.0).affordable_pairs(None, 0.0, 0.0, 130.0) == 0.0
    timed = Budget("seconds", 10.0)
    assert timed.affordable_pairs(10.0, 0.5, 1.0, 6.0) == 10.0
    assert timed.affordable_pairs(10.0, 0.5, 1.0, 60.0) == 0.0
    assert timed.affordable_pairs(10.0, 0.0, 1.0, 6.0) is None
    assert timed.affordable_pairs(None, 0.5, 1.0, 6.0) is None


@pytest.mark.parametrize(
    ("volume", "fits", "chosen"),
    [
        (200.0, 50.0, (0.25, True)),
        (200.0, 200.0, (1.0, True)),
        (200.0, 500.0, (1.0, True)),
        (0.0, 0.0, (1.0, True)),
        (2000.0, 2.0, (0.001, True)),
        (2000.0, 1.0, (0.001, False)),
        (200.0, None, (0.7, True)),
    ],
)
def test_the_fraction_is_that_of_the_pairs_that_fit(
    volume: float, fits: float | None, chosen: tuple[float, bool]
) -> None:
    assert Budget("pairs", 9.0).choose_fraction(volume, fits, 0.7) == chosen
    assert Budget("fraction", 0.3).choose_fraction(volume, fits, 0.7) == (0.3, True)


def learn(*batches: SheddingOutcome) -> ProductivityProfile:
    profile = ProductivityProfile()
    for one in batches:
        profile = profile.update(one, ((0, 10), (0,)))
    return profile


def outcome(pairs: tuple[float, float], found: tuple[float, float]) -> SheddingOutcome:
    """Return what tuples of stream 0, of two types, found in basic window 2 of stream 1."""
    value = (2 * found[0], 5 * found[1])
    return SheddingOutcome((ItemYield(0, 1, 2, pairs, found, value, 0.0),), ({0: 6, 10: 2}, {0: 1}))


def test_a_profile_adds_the_types_of_an_item_and_fades_by_a_tenth() -> None:
    once = learn(outcome((30.0, 10.0), (6.0, 2.0)))
    assert once.parts == (Observation(0, 1, 2, 40.0, 8.0),)
    assert once.types_seen == (
        Observation(0, 1, 0, 30.0, 12.0),
        Observation(0, 1, 10, 10.0, 10.0),
    )
    twice = learn(outcome((30.0, 10.0), (6.0, 2.0)), outcome((10.0, 0.0), (0.0, 0.0)))
    (part,) = twice.parts
    assert part[3:] == pytest.approx((46.0, 7.2))
    assert twice.types_seen[1][3:] == pytest.approx((9.0, 9.0))
    assert twice.counts[0] == pytest.approx({0: 11.4, 10: 3.8})
    assert twice.type_frequencies(0, (0, 10)) == pytest.approx((0.75, 0.25))
    assert twice.common_types(1) == ((0,), (0,)) and twice.common_types() == ((0, 10), (0,))


def test_pairs_without_a_match_and_types_that_no_longer_arrive_are_remembered() -> None:
    """With a tenth less each batch."""
    nothing = SheddingOutcome(
        (ItemYield(0, 1, 2, (3.0, 2.0), (0.0, 0.0), (0.0, 0.0), 0.0),), ({0: 4}, {0: 1})
    )
    profile = learn(outcome((30.0, 10.0), (6.0, 2.0)), nothing)
    assert ProductivityProfile().update(nothing, ()).parts == (Observation(0, 1, 2, 5.0, 0.0),)
    assert profile.counts[0] == pytest.approx({0: 9.4, 10: 1.8})


def test_productivity_is_matches_over_pairs_with_one_match_at_the_mean() -> None:
    profile = learn(outcome((30.0, 10.0), (6.0, 2.0)))
    found = profile.matches_per_pair([(0, 1, 2), (0, 1, 3)])
    assert found == pytest.approx({(0, 1, 2): 9 / 45, (0, 1, 3): 0.2})
    utility = profile.utility_per_pair(0, 1, (0, 10))
    mean = 8 / 40
    expected = ((12 + 1) / (30 + 5) / mean, (10 + np.exp(1)) / (10 + 5) / mean)
    assert utility == pytest.approx(expected)
    assert profile.utility_per_pair(0, 1, ()) == (1.0,)
    assert ProductivityProfile().matches_per_pair([(0, 1, 0)]) == {(0, 1, 0): 1.0}
