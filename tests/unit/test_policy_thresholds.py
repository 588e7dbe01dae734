"""Numbers that policies name, each between a case that it lets pass and one that it does not."""

from __future__ import annotations

from itertools import pairwise

import pytest
from braid.core.query import Query
from braid.papers.diffusion.aligned import Aligned
from braid.papers.diffusion.run_events import MasterSwitched
from braid.papers.diffusion.segment_length import LengthSearch
from braid.papers.hotkeys.hot_keys import HotKeys
from braid.papers.hotkeys.spread import (
    SharedValue,
    ValueRanges,
    _pack_by_grain,
    drop_cooled_values,
)
from braid.papers.hotkeys.value_work import ValueWork
from braid.papers.hypercube.hypercube import HyperCube
from braid.papers.hypercube.run_events import SharesChosen
from braid.papers.hypercube.shares import _find_finest
from braid.papers.psp.ring import Ring
from braid.papers.psp.run_events import RingResized
from braid.papers.slices.chain import Chain
from braid.papers.slices.run_events import ChainChanged
from braid.papers.theta.grid import AdaptiveGrid
from braid.simulation.simulator import simulate

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("rate", "switches"), [(85, 0), (75, 1)])
def test_a_master_changes_if_the_overhead_falls_by_a_fifth(rate: int, switches: int) -> None:
    """With equal windows, a master costs what the other stream's tuples are copied."""
    run = simulate(Aligned(4, 5, master=0), [(rate, 100)] * 30, windows=(10, 10))
    assert sum(isinstance(e, MasterSwitched) for e in run) == switches


def test_mean_rates_of_a_master_cover_twenty_batches() -> None:
    batches = [(100, 100)] * 40 + [(20, 100)] * 20
    run = simulate(Aligned(4, 1, master=0), batches, windows=(10, 10))
    (switched,) = (e for e in run if isinstance(e, MasterSwitched))
    assert switched.batch == 46, "80 * 0.95 ** 6 + 20 is below 80, 80 * 0.95 ** 5 + 20 is not"
    cost, less = switched.costs
    assert less / cost == pytest.approx(0.2 + 0.8 * 0.95**6)


def test_a_length_that_costs_a_sixteenth_less_is_better() -> None:
    longer = LengthSearch(4, 4, 6, 1.0, 1)
    assert longer.add_sample(0.94, 1.0).next_length(2) == LengthSearch(4, 6, 8, 0.94, 1)
    assert longer.add_sample(0.96, 1.0).next_length(2).direction == -1


def test_a_value_goes_home_when_it_has_less_than_a_tenth_of_a_host() -> None:
    work = ValueWork({33: 1.0, 77: 1.0}, {33: 14.0, 77: 4.0}, 980.0)
    spread = {33: SharedValue(33, (3, 4)), 77: SharedValue(77, (7, 8))}
    assert drop_cooled_values(spread, work, ValueRanges(10, 100, 64)).keys() == {33}


def test_shares_follow_the_mean_rates_of_four_batches() -> None:
    batches = [(80, 10, 10)] * 10 + [(10, 10, 80)] * 10
    run = simulate(HyperCube(16, ((0, 1), (1, 2))), batches, windows=(5, 5, 5))
    chosen = {e.batch: e.shares for e in run if isinstance(e, SharesChosen)}
    assert chosen == {0: (4, 4), 2: (8, 2), 14: (4, 4), 19: (2, 8)}


def test_a_ring_grows_by_the_mean_load_and_then_rests_for_eight_batches() -> None:
    """Loads of 100, 429, 992, 1843 pairs: their fading mean is above 400 after the fourth."""
    ring = Ring(1, max_pairs_per_node=400, max_hosts=64)
    run = simulate(ring, [(10 + 3 * n, 10 + 3 * n) for n in range(30)], windows=(4, 4))
    resized = [e.batch for e in run if isinstance(e, RingResized)]
    assert resized[0] == 5, "announced a batch ahead"
    assert min(b - a for a, b in pairwise(resized)) == 9


@pytest.mark.parametrize(("hosts", "keys"), [(16, 256), (100, 512), (2000, 1024)])
def test_a_value_has_keys_for_all_hosts_to_share_and_at_most_1024(hosts: int, keys: int) -> None:
    assert HotKeys(hosts, values=16).value_ranges.keys_per_value == keys


@pytest.mark.parametrize(
    ("pairs", "light", "packed"),
    [
        (60.0, 20.0, {0: (0, 2)}),
        (60.0, 26.5, {0: (1, 2)}),
        (25.0, 20.0, {0: (0, 2)}),
        (15.0, 20.0, {}),
    ],
)
def test_a_value_of_a_third_of_the_mean_goes_to_the_least_loaded_hosts_in_steps_of_a_twentieth(
    pairs: float, light: float, packed: dict[int, tuple[int, ...]]
) -> None:
    """Three hosts with 100 each; if hosts 0 and 1 have as much, the value stays on host 1."""
    others = {1: light, 11: 27.0, 21: 3.0}
    rest = 300 - 7 - pairs - sum(others.values())
    work = ValueWork({0: 7.0, **others}, {0: pairs, **dict.fromkeys(others, 0.0)}, rest)
    assert _pack_by_grain(work, {0: SharedValue(0, (1, 2))}, ValueRanges(3, 30, 64), 1.0) == {
        v: SharedValue(v, hosts) for v, hosts in packed.items()
    }


def test_the_part_of_a_host_of_a_grid_can_be_halved_four_times() -> None:
    assert AdaptiveGrid(8).key_space_size == 8 * 2**4


@pytest.mark.parametrize(("overhead", "batches"), [(0.5, [0]), (5, [0, 32]), (50, [0, 16])])
def test_a_chain_is_reviewed_each_eighth_batch_and_changes_to_save_a_fifth(
    overhead: float, batches: list[int]
) -> None:
    """Slices cost more than they save when rates fall; a gain of less than a fifth is not enough."""
    windows = (2, 4, 9, 20)
    queries = tuple(Query.parse(f"q{w}", ("r", "s"), f"{w} seconds") for w in windows)
    chain, rates = Chain("auto", slice_overhead=overhead), [(20, 20)] * 20 + [(2, 2)] * 20
    run = simulate(chain, rates, windows=(20, 20), queries=queries, selectivity=0.02)
    assert [e.batch for e in run if isinstance(e, ChainChanged) and e.stream == 0] == batches


@pytest.mark.parametrize(("cells", "finest"), [(512, 512), (720, 360)])
def test_a_layout_of_two_dimensions_has_at_most_a_quarter_of_a_million_keys(
    cells: int, finest: int
) -> None:
    assert _find_finest(cells, 2) == finest


def test_a_given_chain_ends_once_at_the_longest_window() -> None:
    query = Query.parse("q", ("r", "s"), "9 seconds")
    chain = Chain("given", ends=((2_000_000, 9_000_000, 20_000_000), (4_000_000,)))
    run = simulate(chain, [(2, 2)] * 3, windows=(9, 9), queries=(query,))
    ends = {e.stream: e.slice_ends for e in run if isinstance(e, ChainChanged)}
    assert ends == {0: (2_000_000, 9_000_000), 1: (4_000_000, 9_000_000)}
