"""Every placement under the generic checks of placement_checks.py.

A new placement is covered by its definition.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from braid import AdaptiveGrid, HashPartition, JoinBiclique, StaticGrid, StaticOpt
from braid.core.run_events import BatchCommitted
from braid.simulation.simulator import simulate
from hypothesis import given, settings
from hypothesis import strategies as st
from placement_checks import (
    SWING,
    Cluster,
    check_answers,
    check_meetings,
    check_releases,
    check_start,
    describe_placement,
    draw_arrivals,
    list_examples,
)

PLACEMENTS = list_examples()
MANY_STREAMS = [p for p in PLACEMENTS.values() if p.supports_streams(3)]
TWO_STREAMS = [p for p in PLACEMENTS.values() if not p.supports_streams(3)]

WHOLE = [
    p
    for p in PLACEMENTS.values()
    if p.supports_streams(2) and p.delivery_guarantee == "exactly once"
]

OF_PAIRS = [p for p in PLACEMENTS.values() if p.supports_streams(2)]
every_placement = pytest.mark.parametrize(
    "placement", OF_PAIRS, ids=map(describe_placement, OF_PAIRS)
)

burst = st.sampled_from([(0, 0), (3, 0), (0, 3), (2, 2), (9, 0), (0, 9), (30, 1), (1, 30)])


@every_placement
@given(counts=st.lists(burst, min_size=1, max_size=14), draw=st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_every_pair_meets_exactly_once(placement, counts, draw):
    check_meetings(placement, counts, draw)


@pytest.mark.parametrize("placement", MANY_STREAMS, ids=map(describe_placement, MANY_STREAMS))
@given(
    counts=st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=5),
    draw=st.randoms(use_true_random=False),
)
@settings(max_examples=15, deadline=None)
def test_every_triple_of_three_streams_meets_exactly_once(placement, counts, draw):
    check_meetings(placement, counts, draw)


@every_placement
def test_swinging_streams_with_migrations(placement):
    cluster = check_meetings(placement, SWING, random.Random(7))
    if isinstance(placement, AdaptiveGrid) and placement.hosts > 1:
        kinds = Counter(type(e).__name__ for e in cluster.events)
        assert kinds["MigrationStarted"] >= kinds["MigrationEnded"] >= 1
        assert cluster.settled, "no tuple arrived in the middle of a migration"


@pytest.mark.parametrize("placement", WHOLE, ids=map(describe_placement, WHOLE))
def test_an_as_of_join_releases_each_tuple_once_beside_all_its_partners(placement):
    check_releases(placement, SWING, random.Random(11))


@every_placement
def test_every_tuple_is_answered_once(placement):
    check_answers(placement, SWING[::2], random.Random(3))


@every_placement
def test_a_plan_depends_on_nothing_but_its_arguments(placement):
    check_start(placement)


def test_every_placement_is_among_them():
    names = {type(p).__name__ for p in PLACEMENTS.values()}
    assert names >= {"Chain", "SemanticsUnaware", "Scatter", "ScatterByValue", "Ring", "StaticOpt"}
    assert len(PLACEMENTS) > 30 and len(TWO_STREAMS) > 14 and len(MANY_STREAMS) > 14


def test_the_controller_counts_every_tuple_once_though_blocks_are_merged():
    """On one host the sample is everything.

    At each batch |R| + |dR| and |S| + |dS| are the tuples before its last batch.
    """
    placement = AdaptiveGrid(1)
    cluster = Cluster(placement, 2)
    for batch in draw_arrivals([(3, 2)] * 30, placement.key_space_size, random.Random(0)):
        before = list(cluster.now.received)
        cluster.run(batch)
        r, s, dr, ds = cluster.state.groups[0].tuple_counts
        assert [r + dr, s + ds] == before


@pytest.mark.parametrize("placement", TWO_STREAMS, ids=map(describe_placement, TWO_STREAMS))
def test_two_stream_placements_refuse_three(placement):
    with pytest.raises(ValueError, match="two streams.* got 3$"):
        placement.initial_state(3)


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: HashPartition(0), "hosts is 0; it must be a whole number, 1 or more"),
        (lambda: StaticGrid(-1), "hosts is -1"),
        (lambda: StaticGrid(True), "hosts is True"),
        (lambda: StaticGrid(8, n=3, m=2), r"\(3, 2\); n \* m must be the number of hosts, 8"),
        (lambda: StaticGrid(8, n=8), r"\(8, None\)"),
        (lambda: StaticOpt(8, final_sizes=(-1, 2)), "sizes is"),
        (lambda: StaticOpt(8, n=2, m=4), "finds it from the sizes"),
        (lambda: AdaptiveGrid(2.0), "hosts is 2.0"),
        (lambda: AdaptiveGrid(4, epsilon=0), "epsilon is 0"),
        (lambda: AdaptiveGrid(4, epsilon=1.5), "epsilon is 1.5"),
        (lambda: AdaptiveGrid(4, size_estimation="guess"), "'sample' or 'exact'"),
        (lambda: AdaptiveGrid(4, tuple_sizes=(1, 0)), "sizes is"),
        (lambda: AdaptiveGrid(4, warmup_tuples=-1), "warmup_tuples is -1"),
        (lambda: AdaptiveGrid(4, n=4, m=2), r"\(4, 2\) with 4 hosts"),
        (lambda: AdaptiveGrid(6, n=3, m=2), r"\(3, 2\) with 6 hosts"),
        (lambda: AdaptiveGrid(4, max_tuples_per_host=10), "growth needs both"),
        (lambda: AdaptiveGrid(4, max_hosts=16), "growth needs both"),
        (lambda: AdaptiveGrid(4, max_tuples_per_host=10, max_hosts=8), "times a power of four"),
        (lambda: AdaptiveGrid(4, max_tuples_per_host=0, max_hosts=16), "max_tuples_per_host is 0"),
        (lambda: JoinBiclique(1), "needs 2 or more"),
        (lambda: JoinBiclique(4, left=4), "from 1 to 3"),
    ],
)
def test_bad_settings_are_refused_with_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_the_sides_of_a_biclique_are_of_different_hosts_whatever_their_sizes() -> None:
    run = simulate(JoinBiclique(7, left=2), [(14, 15)])
    stored = [
        {block.stream for block in e.changed_blocks if host in block.hosts}
        for e in run
        if isinstance(e, BatchCommitted)
        for host in range(7)
    ]
    assert stored == [{0}, {0}, {1}, {1}, {1}, {1}, {1}]
