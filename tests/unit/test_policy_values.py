"""Pieces of grids, rings, diffusion and baselines, by values computed by hand from the papers."""

from __future__ import annotations

import pytest
from braid.core.cluster_model import HostCapacity
from braid.core.facts import Facts, HostUsage
from braid.core.plan import Block, Hop
from braid.papers.baselines.hash_partition import HashPartition
from braid.papers.baselines.join_biclique import JoinBiclique
from braid.papers.common.load_balance import GU_PRICES, compute_loads
from braid.papers.diffusion.routing_table import RoutingTable, greedy_cover
from braid.papers.diffusion.segment_length import LengthSearch, atr_overhead
from braid.papers.psp.slice_table import (
    SliceTable,
    StreamState,
    event_time_extent,
    insertion_points,
    newest_first_key,
    oldest_first_key,
    plan_purges,
    plan_relocation,
    rotate_head,
)
from braid.papers.theta.grid import AdaptiveGrid, StaticGrid, StaticOpt
from braid.papers.theta.host_groups import HostGroup, mapping_event
from braid.papers.theta.mapping import (
    MappingDecision,
    input_load_factor,
    optimal_mapping,
    pad_sizes,
    powers_of_two,
    square_mapping,
)
from braid.papers.theta.migration import Migration, _count_pieces, _refill_allowances
from braid.papers.theta.run_events import Cell

pytestmark = pytest.mark.unit


def block(
    id: int, host: int, times: tuple[int, int] | None, rows: int = 1, batch: int = 0
) -> Block:
    return Block(id, 0, (0, 1), batch, (host,), rows, event_time_range=times)


# PSP


@pytest.mark.parametrize(
    ("nodes", "added", "after"),
    [(3, 1, (3,)), (4, 2, (2, 4)), (2, 3, (1, 2, 2)), (5, 5, (1, 2, 3, 4, 5))],
)
def test_new_nodes_go_after_the_least_k_with_mk_over_n_of_j(
    nodes: int, added: int, after: tuple[int, ...]
) -> None:
    assert insertion_points(nodes, added) == after


def test_a_ring_takes_nodes_in_between_or_at_its_tail() -> None:
    table = SliceTable((1, 2, 0), (10, 20, 30))
    assert table.resize(2, (), True) == SliceTable((1, 0), (10, 30))
    aggressive = table.resize(3, (3, 4), True)
    assert aggressive == SliceTable((1, 2, 3, 0, 4), (10, 20, 0, 30, 0))
    assert table.resize(3, (3, 4), False) == SliceTable((1, 2, 0, 3, 4), (10, 20, 30, 0, 0))
    assert SliceTable((0, 1, 2, 3), (5, 7, None, 3)).slice_ends() == (5, 12)


def state(
    *blocks: Block,
    window: int | None = 30,
    latest: int | None = 99,
    clock: int | None = 100,
    counted: bool = False,
    received: int = 70,
    last: int = 10,
) -> StreamState:
    return StreamState(blocks, window, latest, clock, received, last, counted)


def test_a_slice_is_the_nth_part_of_a_window_or_of_its_tuples() -> None:
    held = block(1, 0, (30, 49), 20), block(0, 0, (0, 29), 40)
    assert state(window=100).slice_width(3) == 33 and state(window=2).slice_width(3) == 1
    assert state(*held, window=100, counted=True).slice_width(3) == 40, "60 in half a window"
    assert state(*held, window=None).slice_width(3) == 20
    assert state(window=100).slice_length(3) == 33 and state(window=None).slice_length(3) is None
    assert state(counted=True).slice_width(3) == 1


def test_positions_along_a_ring_are_ages_or_newer_tuples() -> None:
    blocks = (
        block(3, 0, (120, 130), 10),
        block(2, 0, (80, 91), 20),
        block(1, 0, None, 30),
    )
    assert state(*blocks).ring_positions(100) == [0.0, 14.5, 0.0]
    assert state(*blocks).ring_positions(None) == [0.0, 0.0, 0.0]
    assert state(*blocks, counted=True).ring_positions(100) == [5.0, 20.0, 45.0]


def test_a_head_is_filled_by_time_or_by_tuples() -> None:
    table = SliceTable((0, 1), (10, 10), 60, 30)
    assert state(latest=99).head_fill(table) == 40
    assert state(counted=True).head_fill(table) == 40
    assert state(latest=None).head_fill(table) == 0
    assert state().head_fill(SliceTable((0, 1), (10, 10))) == 0


def test_blocks_are_purged_to_the_node_of_their_age() -> None:
    blocks = (
        block(5, 0, (95, 95)),
        block(4, 1, (91, 91)),
        block(3, 0, (90, 90)),
        block(2, 0, (79, 81)),
        block(1, 1, (70, 70)),
        block(0, 2, (0, 1)),
    )
    table, moves = plan_purges(SliceTable((0, 1, 2), (None,) * 3), state(*blocks))
    assert table.lengths == (10, 10, 10)
    assert [(m.block.id, m.source, m.target) for m in moves] == [(3, 0, 1), (2, 0, 2), (1, 1, 2)]
    counted = (block(1, 0, (90, 97), 6), block(0, 0, (80, 85), 6))
    table, moves = plan_purges(
        SliceTable((0, 1, 2), (None,) * 3), state(*counted, counted=True, window=18)
    )
    assert table.lengths == (8, 0, 6), "a slice has 4 tuples; the middles are the 3rd and the 9th"
    assert [(m.block.id, m.target) for m in moves] == [(0, 2)]


@pytest.mark.parametrize(
    ("latest", "nodes", "lengths", "since"),
    [
        (8, (0, 1, 2), (10, 9, 8), 0),
        (9, (2, 0, 1), (10, 10, 9), 10),
        (24, (2, 0, 1), (10, 20, 9), 20),
    ],
)
def test_the_head_moves_onto_the_tail_once_its_slice_is_full(
    latest: int, nodes: tuple[int, ...], lengths: tuple[int, ...], since: int
) -> None:
    table = rotate_head(SliceTable((0, 1, 2), (5, 9, 8), 0, 30), state(latest=latest))
    assert (table.nodes, table.lengths, table.head_start) == (nodes, lengths, since)
    assert table.head_tuples == (70 if nodes[0] == 2 else 30)
    one = SliceTable((4,), (30,), 0, 30)
    assert rotate_head(one, state(latest=latest)) == one


@pytest.mark.parametrize(("received", "last", "moves"), [(39, 10, False), (40, 10, True)])
def test_a_head_by_tuples_moves_when_half_a_batch_more_would_fill_it(
    received: int, last: int, moves: bool
) -> None:
    """A slice has 15 of 30 tuples; the head had 30 at its start."""
    held = (block(0, 0, (70, 99), 30),)
    table = SliceTable((0, 1), (5, 9), 90, 30)
    rotated = rotate_head(table, state(*held, counted=True, received=received, last=last))
    assert rotated.nodes == ((1, 0) if moves else (0, 1))
    assert rotated.head_start == (100 if moves else 90)


def test_relocation_puts_each_block_on_the_node_of_its_age() -> None:
    """The head has received 5 of 10; what is older than 15 is where the tail shares the head's."""
    ages = {5: 2, 4: 5, 3: 14, 2: 15, 1: 40}
    blocks = tuple(block(id, 1, (99 - age, 99 - age)) for id, age in ages.items())
    table, moves = plan_relocation(SliceTable((0, 1), (9, 9), 95), state(*blocks, window=20))
    assert [(m.block.id, m.source, m.target) for m in moves] == [(5, 1, 0), (2, 1, 0), (1, 1, 0)]
    assert table == SliceTable((0, 1), (10, 10), 95)
    full, _ = plan_relocation(SliceTable((0, 1), (9, 9), 20), state(*blocks, window=20))
    assert full.head_start == 90, "up to one new slice"
    counted = state(block(0, 0, (80, 99), 40), window=20, counted=True)
    assert plan_relocation(SliceTable((0, 1), (9, 9), 95, 55), counted)[0].head_tuples == 55
    assert plan_relocation(SliceTable((0, 1), (9, 9), 95, 10), counted)[0].head_tuples == 50


def test_blocks_are_ordered_by_their_ends_and_cover_event_time() -> None:
    first, second, unknown = block(0, 0, (5, 9)), block(1, 0, (2, 12)), block(2, 0, None, batch=7)
    assert newest_first_key(first) == (9, 0) and oldest_first_key(second) == (2, 1)
    assert newest_first_key(unknown) == oldest_first_key(unknown) == (7, 2)
    assert event_time_extent([first, second]) == 11 and event_time_extent([]) == 0
    assert event_time_extent([first, unknown]) is None


# The grid


def test_mappings_and_their_load() -> None:
    assert [powers_of_two(n) for n in (1, 20, 7)] == [(1,), (16, 4), (4, 2, 1)]
    assert [square_mapping(n) for n in (1, 2, 8, 64)] == [(1, 1), (1, 2), (2, 4), (8, 8)]
    assert input_load_factor(12, 40, 3, 8) == 9
    assert [optimal_mapping(1, s, 16) for s in (1, 4, 16, 99)] == [(4, 4), (2, 8), (1, 16), (1, 16)]
    assert pad_sizes(100, 5, 8) == (100, 12.5) and pad_sizes(5, 100, 8) == (12.5, 100)
    assert pad_sizes(100, 50, 8) == (100, 50)


@pytest.mark.parametrize(
    ("epsilon", "more", "is_due"),
    [
        (1.0, (99, 0), False),
        (1.0, (100, 0), True),
        (1.0, (0, 200), True),
        (1.0, (99, 199), False),
        (0.5, (49, 99), False),
        (0.5, (50, 0), True),
        (1.0, (0, 0), False),
    ],
)
def test_a_checkpoint_is_due_once_a_stream_has_grown_by_epsilon(
    epsilon: float, more: tuple[int, int], is_due: bool
) -> None:
    decision = MappingDecision(4, (2, 2), epsilon, r=100, s=200).add_counts(*more)
    assert decision.is_checkpoint_due() is is_due
    assert not MappingDecision(4, (2, 2)).is_checkpoint_due()


def test_a_checkpoint_weighs_sizes_of_tuples_and_starts_to_count_anew() -> None:
    before = MappingDecision(16, (4, 4), sizes=(1.0, 4.0), r=8, s=8).add_counts(2, 3)
    after = before.add_counts(1, 1).at_checkpoint(10, 40)
    assert after == MappingDecision(16, (1, 16), sizes=(1.0, 4.0), r=10, s=40)


@pytest.mark.parametrize(
    ("rows", "keys", "budget", "pieces"),
    [
        (100, 64, 30, 4),
        (100, 64, 100, 1),
        (100, 64, 99, 2),
        (100, 64, 50, 2),
        (100, 64, 0, 1),
        (100, 3, 1, 2),
        (100, 4, 1, 4),
        (1_000_000, 1024, 1, 16),
    ],
)
def test_a_block_is_cut_in_the_fewest_halves_within_the_budget(
    rows: float, keys: int, budget: float, pieces: int
) -> None:
    assert _count_pieces(rows, keys, budget) == pieces


def test_a_host_may_take_in_two_tuples_for_each_new_one_that_it_receives() -> None:
    blocks = (
        Block(0, 0, (0, 1), 4, (0, 1), 10),
        Block(1, 1, (0, 1), 4, (1, 2), 5),
        Block(2, 1, (0, 1), 3, (1,), 99),
    )
    migration = Migration(2, (), {0: 7, 3: 9})
    assert _refill_allowances(migration, 5, blocks, {0, 1, 3}) == {0: 27, 1: 30, 3: 9}


# Diffusion


@pytest.mark.parametrize(
    ("windows", "master", "hosts", "copies"),
    [
        ((10, 20, 40), 1, None, 150),
        ((10, 20, 40), 0, None, 220),
        ((10, 20, 40), 1, 10, 30 + 90),
        ((10, 20, 40), 1, 1, 0),
        ((None, 20, 40), 1, 3, 10 + 20),
        ((None, 20, 40), 1, None, float("inf")),
    ],
)
def test_a_slave_tuple_is_copied_to_the_segments_that_both_windows_reach(
    windows: tuple[float | None, ...], master: int, hosts: int | None, copies: float
) -> None:
    """Eq. 2 with rates 5, 20 and 10, and T = 5."""
    assert atr_overhead((5, 20, 10), windows, master, 5, hosts) == copies


@pytest.mark.parametrize(
    ("before", "cost", "after"),
    [
        (LengthSearch.start_at(4), 1.0, LengthSearch(4, 4, 6, 1.0, 1)),
        (LengthSearch(4, 4, 4, 1.0, 0), 1.25, LengthSearch(4, 4, 4, 1.0, 0)),
        (LengthSearch(4, 6, 6, 1.0, 0), 1.26, LengthSearch(6, 6, 8, 1.26, 1)),
        (LengthSearch(4, 6, 6, 1.0, 0), 0.74, LengthSearch(6, 6, 8, 0.74, 1)),
        (LengthSearch(4, 6, 8, 1.0, 1), 0.9, LengthSearch(4, 8, 10, 0.9, 1)),
        (LengthSearch(4, 4, 6, 1.0, 1), 0.96, LengthSearch(4, 4, 2, 1.0, -1)),
        (LengthSearch(4, 8, 10, 1.0, 1), 1.0, LengthSearch(4, 8, 8, 1.0, 0)),
        (LengthSearch(8, 8, 6, 1.0, -1), 0.5, LengthSearch(8, 6, 4, 0.5, -1)),
        (LengthSearch(4, 4, 2, 1.0, -1), 0.5, LengthSearch(4, 2, 2, 0.5, 0)),
        (LengthSearch(3, 3, 3, 1.0, -1), 0.5, LengthSearch(3, 3, 1, 0.5, -1)),
        (LengthSearch(4, 4, 2, 1.0, -1), 1.0, LengthSearch(4, 4, 4, 1.0, 0)),
        (LengthSearch(1, 1, 3, 1.0, 1), 1.0, LengthSearch(1, 1, 1, 1.0, 0)),
    ],
)
def test_a_search_climbs_first_to_longer_segments_then_to_shorter_ones(
    before: LengthSearch, cost: float, after: LengthSearch
) -> None:
    sampled = before.add_sample(cost, 0.5).add_sample(cost, 1.5)
    assert sampled.batches == 2
    assert sampled.next_length(2) == after


def test_a_routing_table_has_the_blocks_of_each_host() -> None:
    blocks = (
        Block(7, 0, (0, 1), 0, (0, 2), 5),
        Block(8, 1, (0, 1), 0, (1,), 6),
        Block(9, 0, (0, 1), 0, (2,), 4),
    )
    table = RoutingTable(2, blocks)
    assert table.sets == [{0: 0b01, 2: 0b11}, {1: 0b1}] and table.rows == [9, 6]
    assert table.ids == [[7, 9], [8]] and [*table.places] == [(0, 2), (1,), (2,)]
    assert table.stream_mask(0) == 0b11 and table.idle_hosts(5) == [3, 4]
    assert table.make_hop(0, {2: 0b10, 0: 0b01}) == Hop(0, {2: (9,), 0: (7,)})


@pytest.mark.parametrize(
    ("sets", "weights", "wanted", "cover"),
    [
        ({0: 0b011, 1: 0b110, 2: 0b100}, [1.0, 1.5, 0.6], 0b111, [0, 2]),
        ({0: 0b011, 1: 0b110, 2: 0b100}, [1.0, 0.9, 0.6], 0b111, [1, 0]),
        ({0: 0b111, 1: 0b111}, [1.0, 1.0], 0b101, [0]),
        ({0: 0b111, 1: 0b111}, [1.0, 0.5], 0b101, [1]),
        ({0: 0b001, 1: 0b011, 2: 0b111}, [0.3, 0.7, 1.2], 0b111, [0, 2]),
        ({0: 0b1}, [1.0], 0, []),
    ],
)
def test_a_greedy_cover_takes_the_least_weight_for_a_block_that_is_left(
    sets: dict[int, int], weights: list[float], wanted: int, cover: list[int]
) -> None:
    assert greedy_cover(sets, weights, wanted) == cover


# Baselines


def test_a_biclique_stores_a_tuple_once_and_sends_it_to_all_of_the_other_side() -> None:
    placement = JoinBiclique(5)
    assert placement.key_space_size == 6 and JoinBiclique(4, left=1).key_space_size == 3
    old = Block(3, 0, (0, 3), 0, (1,), 9)
    facts = Facts(1, ("r", "s"), (old,), 10, (9, 0), (0, 0), (9, 0))
    routes = placement.plan_batch(facts, None).routes
    stored = [(r.block.id, r.block.stream, r.block.key_range, r.block.hosts) for r in routes]
    assert stored == [
        (10, 0, (0, 3), (0,)),
        (11, 0, (3, 6), (1,)),
        (12, 1, (0, 2), (2,)),
        (13, 1, (2, 4), (3,)),
        (14, 1, (4, 6), (4,)),
    ]
    assert [r.paths for r in routes[:2]] == [(), ()]
    assert [r.paths for r in routes[2:]] == 3 * [((Hop(0, {1: (3, 11), 0: (10,)}),),)]
    assert {r.block.batch for r in routes} == {1}


def test_a_hash_has_a_key_for_each_host_and_joins_there() -> None:
    facts = Facts(0, ("r", "s"), (), 0, (0, 0), (0, 0), (0, 0))
    routes = HashPartition(3).plan_batch(facts, None).routes
    assert HashPartition(3).key_space_size == 3
    placed = [(r.block.stream, r.block.key_range, r.block.hosts) for r in routes]
    assert placed == [(s, (h, h + 1), (h,)) for s in (0, 1) for h in range(3)]
    for one in routes[3:]:
        (path,) = one.paths
        assert [(hop.stream, [*hop.blocks_by_host]) for hop in path] == [(0, [*one.block.hosts])]


def test_a_biclique_has_two_hosts_or_more() -> None:
    assert JoinBiclique(2).key_space_size == 1
    with pytest.raises(ValueError, match="hosts is 1; a join-biclique needs 2 or more"):
        JoinBiclique(1)


# Grids


def test_only_mappings_of_powers_of_two_that_use_all_hosts_are_accepted() -> None:
    assert (AdaptiveGrid(8, n=2, m=4).n, AdaptiveGrid(8).n) == (2, None)
    for hosts, n, m in [(8, 3, 3), (8, 2, 2), (6, 2, 3)]:
        with pytest.raises(ValueError, match=rf"the mapping is \({n}, {m}\) with {hosts} hosts"):
            AdaptiveGrid(hosts, n=n, m=m)


def test_sizes_of_tuples_are_above_0_and_those_of_streams_may_be_0() -> None:
    assert StaticOpt(8, final_sizes=(0, 5)).final_sizes == (0, 5)
    with pytest.raises(ValueError, match="two numbers of 0 or more"):
        StaticOpt(8, final_sizes=(-1, 5))
    with pytest.raises(ValueError, match="two numbers above 0"):
        AdaptiveGrid(8, tuple_sizes=(0.0, 1.0))
    with pytest.raises(ValueError, match="was given to StaticOpt"):
        StaticOpt(8, n=2, m=4)


def test_a_static_mapping_uses_all_hosts() -> None:
    for n, m in [(2, 2), (-2, -4), (0, 8)]:
        with pytest.raises(ValueError, match="n \\* m must be the number of hosts, 8"):
            StaticGrid(8, n=n, m=m)


def test_the_event_of_a_mapping_has_the_cell_of_each_host() -> None:
    old, new = HostGroup((0, 4), (2, 2), (4, 5, 6, 7)), HostGroup((0, 4), (1, 4), (4, 6, 5, 7))
    event = mapping_event(3, 1, old, new, (10.4, 20.0))
    assert event.cells == (Cell(4, 0, 0), Cell(6, 0, 1), Cell(5, 0, 2), Cell(7, 0, 3))
    assert event.batch == 3 and event.group == 1


# Loads


def test_the_load_of_a_host_depends_on_the_prices() -> None:
    usage = HostUsage(*(10,) * len(HostUsage.__struct_fields__))
    cheap, dear = (
        compute_loads(
            usage, HostCapacity(), (1.0, 0.0, 0.0), 1.0, (*(factor * p for p in GU_PRICES),)
        )
        for factor in (1, 3)
    )
    assert dear == pytest.approx(3 * cheap)
