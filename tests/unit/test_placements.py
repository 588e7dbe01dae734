"""One generic check over all placements: add a placement to PLACEMENTS in oracle.py and it is
covered, here and on Spark.

A tuple-level model follows each plan to the letter: which host stores which tuple, which tuple
probes which, where. Every pair of tuples must meet exactly once.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from braid import AdaptiveGrid, HashPartition, JoinBiclique, StaticGrid, StaticOpt
from braid.core.codec import again
from braid.core.compaction import compact
from braid.core.cover import CoverLedger
from braid.core.facts import Facts
from braid.core.plan import Block, Plan, after, joined
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import PLACEMENTS as EVERYWHERE

PLACEMENTS = EVERYWHERE | {
    "hash, fewer": lambda: HashPartition(3),
    "biclique, one left": lambda: JoinBiclique(4, left=1),
    "static, groups": lambda: StaticGrid(7),
    "static, given": lambda: StaticGrid(6, n=3, m=2),
    "optimal": lambda: StaticOpt(8, sizes=(1, 30)),
    "adaptive, plain": lambda: AdaptiveGrid(8),
    "adaptive, exact": lambda: AdaptiveGrid(16, statistics="exact", sizes=(1, 1), epsilon=0.5),
    "adaptive, groups": lambda: AdaptiveGrid(7, sizes=(1, 2)),
    "adaptive, given": lambda: AdaptiveGrid(4, n=1, m=4, warmup=20),
    "adaptive, one host": lambda: AdaptiveGrid(1),
    "adaptive, grows": lambda: AdaptiveGrid(2, capacity=12, max_hosts=32, sizes=(1, 1)),
    "adaptive, groups grow": lambda: AdaptiveGrid(3, capacity=10, max_hosts=48, statistics="exact"),
}
TWO_STREAMS = [
    name for name in PLACEMENTS if name.startswith(("biclique", "static", "optimal", "adaptive"))
]
MANY_STREAMS = [name for name in PLACEMENTS if name not in TWO_STREAMS]

every_placement = pytest.mark.parametrize("make", PLACEMENTS.values(), ids=list(PLACEMENTS))


class Cluster:
    """Hosts that store and probe single tuples, exactly as the plans say. A tuple is (stream,
    number, routing key).
    """

    def __init__(self, placement, streams):
        self.placement, self.streams = placement, streams
        self.state = placement.start(streams)
        self.ledger = CoverLedger(streams, placement.keying)
        self.stored = {}  # (block, host) -> tuples
        self.blocks, self.pinned, self.next_id, self.batch = {}, frozenset(), 0, 0
        self.received, self.last = [0] * streams, [0] * streams
        self.met = Counter()
        self.events, self.settled = [], 0

    def run(self, arrivals):
        """One batch of new tuples."""
        plan = self._plan()
        committed = dict(self.stored)
        for d in plan.derivations:
            for dst, src in d.reads.items():
                where = self.stored if src == dst else committed
                pool = [t for s in d.sources for t in where[s, src]]
                self.stored[d.block.id, dst] = [
                    t for t in pool if d.block.keys[0] <= t[2] < d.block.keys[1]
                ]
        for block, hosts in plan.drops.items():
            for h in hosts:
                del self.stored[block, h]
        fresh = self._store(plan, arrivals)
        self._probe(plan, fresh)
        self._commit(plan, arrivals)

    def _plan(self):
        none = (None,) * self.streams
        blocks = tuple(self.blocks.values())
        kept = compact(blocks, self.next_id, self.pinned, none, none)
        facts = Facts(
            self.batch,
            ("r", "s", "t")[: self.streams],
            after(blocks, kept),
            self.next_id + len(kept.derivations),
            tuple(self.received),
            tuple(10 * n for n in self.received),
            tuple(self.last),
        )
        plan = self.placement.plan(facts, self.state)
        assert type(self.state) is self.placement.State
        saved = again(self.state, self.placement.State)
        assert saved == self.state, "the state does not survive a file"
        assert self.placement.plan(facts, saved) == plan, "a restart would plan otherwise"
        whole = joined(kept, plan)
        self.ledger.check(blocks, whole)
        return whole

    def _store(self, plan, arrivals):
        fresh = {}
        for route in (r for r in plan.routes if r.fresh):
            b = route.block
            mine = [t for t in arrivals if t[0] == b.stream and b.keys[0] <= t[2] < b.keys[1]]
            for h in route.hosts():
                fresh[b.id, h] = mine
            for h in b.hosts:
                self.stored[b.id, h] = mine
        homes = Counter(
            t for r in plan.routes if r.fresh for t in fresh.get((r.block.id, r.block.hosts[0]), ())
        )
        assert set(homes.values()) <= {1} and len(homes) == len(arrivals), (
            "a tuple belongs to exactly one fresh block"
        )
        return fresh

    def _probe(self, plan, fresh):
        self.settled += sum(not r.fresh for r in plan.routes)
        for route in plan.routes:
            at = fresh if route.fresh else self.stored
            for path in route.paths:
                for host in path[0].probes:
                    self._follow([(t,) for t in at[route.block.id, host]], path, host)

    def _follow(self, partials, path, host):
        hop, rest = path[0], path[1:]
        found = [
            p + (t,)
            for block in hop.probes[host]
            for t in self.stored[block, host]
            for p in partials
        ]
        if not rest:
            by_value = self.placement.keying == "join"  # then only tuples of one value can match
            self.met.update(
                tuple(sorted(f)) for f in found if not by_value or len({t[2] for t in f}) == 1
            )
        for next_host in rest[0].probes if rest else ():
            self._follow(found, rest, next_host)

    def _commit(self, plan, arrivals):
        fresh = [r.block for r in plan.routes if r.fresh]
        blocks: list[Block] = [*after(self.blocks.values(), plan), *fresh]
        self.blocks = {}
        for b in blocks:
            contents = [sorted(self.stored[b.id, h]) for h in b.hosts]
            assert all(c == contents[0] for c in contents), "replicas differ"
            if contents[0]:
                self.blocks[b.id] = replace(b, rows=len(contents[0]), bytes=10 * len(contents[0]))
        self.stored = {(b, h): tuples for (b, h), tuples in self.stored.items() if b in self.blocks}
        assert all(h in self.blocks[b].hosts for b, h in self.stored), (
            "a replica that no block accounts for"
        )
        self.ledger.owed = {
            (a, b) for a, b in self.ledger.owed if a in self.blocks and b in self.blocks
        }
        ids = [b.id for b in blocks] + [d.block.id for d in plan.derivations]
        self.next_id = max([self.next_id - 1, *ids]) + 1
        self.state, self.pinned = plan.state, plan.pinned
        self.last = [sum(t[0] == s for t in arrivals) for s in range(self.streams)]
        self.received = [a + b for a, b in zip(self.received, self.last, strict=True)]
        self.batch += 1
        self.events += plan.events

    def drain(self):
        """Empty batches until nothing is owed."""
        for _ in range(50):
            if not self.ledger.owed:
                return
            self.run([])
        raise AssertionError(f"{len(self.ledger.owed)} pairs are owed for ever")


def arrivals(counts, keys, draw):
    """Tuples with drawn routing keys, batch by batch."""
    number, batches = 0, []
    for batch in counts:
        batches.append([])
        for stream, n in enumerate(batch):
            for _ in range(n):
                batches[-1].append((stream, number, draw.randrange(keys)))
                number += 1
    return batches


def expected(batches, streams, keying):
    by_stream = [[t for batch in batches for t in batch if t[0] == s] for s in range(streams)]
    groups = product(*by_stream)
    return Counter(
        tuple(sorted(g)) for g in groups if keying == "tuple" or len({t[2] for t in g}) == 1
    )


def everything(placement, batches, streams=2):
    cluster = Cluster(placement, streams)
    for batch in batches:
        cluster.run(batch)
    cluster.drain()
    return cluster


burst = st.sampled_from([(0, 0), (3, 0), (0, 3), (2, 2), (9, 0), (0, 9), (30, 1), (1, 30)])


@every_placement
@given(counts=st.lists(burst, min_size=1, max_size=14), draw=st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_every_pair_meets_exactly_once(make, counts, draw):
    placement = make()
    batches = arrivals(counts, placement.keys, draw)
    assert everything(placement, batches).met == expected(batches, 2, placement.keying)


@pytest.mark.parametrize("name", MANY_STREAMS)
@given(
    counts=st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=5),
    draw=st.randoms(use_true_random=False),
)
@settings(max_examples=25, deadline=None)
def test_every_triple_of_three_streams_meets_exactly_once(name, counts, draw):
    placement = PLACEMENTS[name]()
    batches = arrivals(counts, placement.keys, draw)
    assert everything(placement, batches, 3).met == expected(batches, 3, placement.keying)


@every_placement
def test_swinging_streams_with_migrations(make):
    """Long enough for mergers, checkpoints in a row, and arrivals in the middle of migrations.

    R: ====        ========
    S:     ========        ================    (a few of the other stream all the time)
    """
    placement = make()
    counts = (
        [(4, 1)] * 4 + [(1, 8)] * 8 + [(16, 2)] * 8 + [(2, 24)] * 8 + [(0, 0)] * 2 + [(2, 24)] * 8
    )
    batches = arrivals(counts, placement.keys, random.Random(7))
    cluster = everything(placement, batches)
    assert cluster.met == expected(batches, 2, placement.keying)
    if isinstance(placement, AdaptiveGrid) and placement.hosts > 1:
        kinds = Counter(type(e).__name__ for e in cluster.events)
        assert kinds["MigrationStarted"] >= kinds["MigrationEnded"] >= 1
        assert cluster.settled, "no tuple arrived in the middle of a migration"


def test_the_controller_counts_every_tuple_once_though_blocks_are_merged():
    """On one host the sample is everything: at each batch |R| + |dR| and |S| + |dS| are what came
    before its last batch.
    """
    placement = AdaptiveGrid(1)
    cluster = Cluster(placement, 2)
    for batch in arrivals([(3, 2)] * 30, placement.keys, random.Random(0)):
        before = list(cluster.received)
        cluster.run(batch)
        r, s, dr, ds = cluster.state.groups[0].counts
        assert [r + dr, s + ds] == before


@every_placement
def test_a_plan_depends_on_nothing_but_its_arguments(make):
    placement = make()
    facts = Facts(0, ("r", "s"), (), 0, (0, 0), (0, 0), (0, 0))
    assert (
        placement.plan(facts, placement.start(2)) == make().plan(facts, make().start(2)) != Plan()
    )


@pytest.mark.parametrize("name", TWO_STREAMS)
def test_two_stream_placements_refuse_three(name):
    with pytest.raises(ValueError, match="two streams.* got 3$"):
        PLACEMENTS[name]().start(3)


@pytest.mark.parametrize(
    "make, sentence",
    [
        (lambda: HashPartition(0), "hosts is 0; it must be a whole number, 1 or more"),
        (lambda: StaticGrid(-1), "hosts is -1"),
        (lambda: StaticGrid(True), "hosts is True"),
        (lambda: StaticGrid(8, n=3, m=2), r"\(3, 2\); n \* m must be the number of hosts, 8"),
        (lambda: StaticGrid(8, n=8), r"\(8, None\)"),
        (lambda: StaticOpt(8, sizes=(-1, 2)), "sizes is"),
        (lambda: StaticOpt(8, n=2, m=4), "finds it from the sizes"),
        (lambda: AdaptiveGrid(2.0), "hosts is 2.0"),
        (lambda: AdaptiveGrid(4, epsilon=0), "epsilon is 0"),
        (lambda: AdaptiveGrid(4, epsilon=1.5), "epsilon is 1.5"),
        (lambda: AdaptiveGrid(4, statistics="guess"), "'sample' or 'exact'"),
        (lambda: AdaptiveGrid(4, sizes=(1, 0)), "sizes is"),
        (lambda: AdaptiveGrid(4, warmup=-1), "warmup is -1"),
        (lambda: AdaptiveGrid(4, n=4, m=2), r"\(4, 2\) with 4 hosts"),
        (lambda: AdaptiveGrid(6, n=3, m=2), r"\(3, 2\) with 6 hosts"),
        (lambda: AdaptiveGrid(4, capacity=10), "growth needs both"),
        (lambda: AdaptiveGrid(4, max_hosts=16), "growth needs both"),
        (lambda: AdaptiveGrid(4, capacity=10, max_hosts=8), "times a power of four"),
        (lambda: AdaptiveGrid(4, capacity=0, max_hosts=16), "capacity is 0"),
        (lambda: JoinBiclique(1), "needs 2 or more"),
        (lambda: JoinBiclique(4, left=4), "from 1 to 3"),
    ],
)
def test_bad_settings_are_refused_with_a_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
