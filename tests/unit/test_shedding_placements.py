"""Every placement during load shedding: the generic checks, with drawn tuples.

The oracle does not follow routes: it looks up the block of each partner, and draws. The pairs that
meet must be exactly those that it selects.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from braid import Shed
from braid.core import batch_step
from braid.core.batch_report import BatchReport
from braid.core.batch_work import RunRules
from braid.core.horizon import reach_of_windows
from braid.core.run_state import RunState, state_from_json, state_to_json
from braid.core.shedding_plan import ItemYield, SheddingOutcome
from braid.kernels.hashing import draw_numbers
from braid.papers.shedding.budget import Budget
from braid.papers.shedding.shed import ShedState
from hypothesis import given
from hypothesis import strategies as st
from placement_checks import SWING, Cluster, check_meetings, draw_arrivals, list_examples

PLACEMENTS = list_examples()
every_placement = pytest.mark.parametrize("placement", PLACEMENTS.values(), ids=list(PLACEMENTS))
LESS = [tuple(min(n, 6) for n in c) for c in SWING[::2]]


def draw(t, block):
    return _of_number(t[1], block)


@lru_cache(maxsize=1 << 16)
def _of_number(number, block):
    return float(draw_numbers(np.array([number * 7919 + 13], np.uint64), block)[0])


class ShedCluster(Cluster):
    """Hosts that thin probes by the harvest; ``selected`` are the pairs that the oracle expects."""

    def __init__(self, placement, streams, shed):
        super().__init__(placement, streams)
        known = self.rules
        self.rules = RunRules(
            placement, known.streams, reach_of_windows(known.windows), shedder=shed
        )
        first = placement.initial_state(streams)
        self.now = RunState.initial(streams, first, self.now.queries, shed.initial_state(streams))
        self.selected, self.due, self.yields = Counter(), 0, {}
        self.fresh_now, self.shed_pairs = {}, 0.0

    def _plan_checked(self):
        work = batch_step.plan_batch(self.rules, self.now)
        assert batch_step.plan_batch(self.rules, self.now) == work
        self.harvest = work.plan.shedding
        return work

    def share(self, item, block, rows):
        pi = self.harvest.shares[item][0]
        expected = self.harvest.expected_tuples.get(block, 0.0)
        return pi * (min(1.0, expected / max(1, rows)) if expected else 1.0)

    def _probe_routes(self, plan, fresh):
        self.yields = {}
        self._select(plan, fresh)
        for route in plan.routes:
            at = fresh if route.is_fresh else self.stored
            for path in route.paths:
                for host in path[0].blocks_by_host:
                    mine = at[route.block.id, host]
                    self._set_out(route, path, host, mine)

    def _set_out(self, route, path, host, mine):
        hop, rest = path[0], path[1:]
        for block in hop.blocks_by_host[host]:
            there = self.stored[block, host]
            drawn = mine
            if route.is_fresh:
                item = (route.block.stream, hop.stream, self.harvest.basic_windows[block])
                share = self.share(item, route.block.id, len(mine))
                drawn = [t for t in mine if draw(t, block) < share]
                found = sum((t[1] * u[1]) % (2 + item[2]) == 0 for t in drawn for u in there)
                y = self.yields.get(item, (0, 0))
                self.yields[item] = (y[0] + len(drawn) * len(there), y[1] + found)
            pairs = [(t, u) for u in there for t in drawn]
            if not rest:
                self._note_meetings(pairs)
            for following in rest[0].blocks_by_host if rest else ():
                self._follow_path(pairs, rest, following)

    def _select(self, plan, fresh):
        """Select pairs by blocks' contents alone.

        Each fresh tuple is paired with all stored ones. Pairs deferred by a migration are included,
        whatever their share.
        """
        holds = {b: tuples for (b, _), tuples in self.stored.items()}
        streams = {b.id: b.stream for b in self.now.blocks.values()}
        streams |= {d.block.id: d.block.stream for d in plan.derivations}
        new = {r.block.id: r for r in plan.routes if r.is_fresh}
        streams |= {id: r.block.stream for id, r in new.items()}
        live = set(streams) & set(holds)
        gone = {s for d in plan.derivations for s in d.source_blocks if s != d.block.id}
        gone |= {b for b in plan.drops if not any(b == key[0] for key in self.stored)}
        for id, route in new.items():
            k = route.block.stream
            mine = holds.get(id) or next((t for (b, _), t in fresh.items() if b == id), [])
            others = [
                [b for b in live - gone if streams[b] == s and (b not in new or s < k)]
                for s in range(self.streams)
                if s != k
            ]
            for blocks in product(*others):
                if not set(blocks) & set(route.deferred_blocks):
                    self._choose(route, mine, blocks, holds, streams)
        self._choose_owed(plan, holds)

    def _choose(self, route, mine, blocks, holds, streams):
        first = next(
            (
                hop_block
                for path in route.paths
                if all(set(h.probed_blocks()) & set(blocks) for h in path)
                for hop_block in path[0].probed_blocks()
                if hop_block in blocks
            ),
            None,
        )
        if first is None:
            assert (
                self.placement.delivery_guarantee == "at most once"
                or self.placement.routing_key_source != "tuple"
            )
            return
        item = (route.block.stream, streams[first], self.harvest.basic_windows[first])
        share = self.share(item, route.block.id, len(mine))
        for t in mine:
            if draw(t, first) < share:
                for group in product(*(holds[b] for b in blocks)):
                    if self.alike(whole := (t, *group)):
                        self.selected[self.numbers(whole)] += 1

    def _choose_owed(self, plan, holds):
        for route in plan.routes:
            if not route.is_fresh:
                met = {b for path in route.paths for b in path[0].probed_blocks()}
                self.selected.update(
                    self.numbers(p) for b in met for p in product(holds[route.block.id], holds[b])
                )

    def _commit_work(self, work, arrivals, answers):
        sizes = self._measure_blocks(work)
        came = SheddingOutcome(
            tuple(
                ItemYield(*item, (float(n),), (float(f),), (float(f),), 0.0)
                for item, (n, f) in sorted(self.yields.items())
            ),
            probe_seconds=0.01,
            seconds=0.02,
        )
        self.now, events = batch_step.commit_batch(
            self.rules,
            self.now,
            work,
            BatchReport(sizes, shedding=came, key_counts=self._count_values(arrivals)),
        )
        blocks = self.now.blocks
        self.stored = {(b, h): t for (b, h), t in self.stored.items() if b in blocks}
        self.events += events


def run(placement, shed, counts, seed=7):
    draw, keys = random.Random(seed), placement.key_space_size
    batches = draw_arrivals(counts, keys, draw, placement.keys_per_value)
    cluster = ShedCluster(placement, len(counts[0]), shed)
    for batch in batches:
        cluster.run(batch)
    cluster.drain()
    return cluster


@every_placement
def test_a_fraction_of_1_meets_what_no_shedding_meets(placement):
    streams = 2 if placement.supports_streams(2) else 3
    counts = [(c * streams)[:streams] for c in LESS[::2]]
    whole = check_meetings(placement, counts, random.Random(7))
    assert run(placement, Shed(fraction=1), counts).met == whole.met


SHEDS = [
    Shed(fraction=0.3),
    Shed(pairs=40, method="partial"),
    Shed(fraction=0.6, method="uniform"),
    Shed(fraction=0.2, method="direction"),
    Shed(fraction=0.5, method="time", sample=0.1),
]
FEW = [
    name
    for name in PLACEMENTS
    if name in ("Centralized()", "AdaptiveGrid(hosts=4)", "Ring(hosts=4)")
]
TRIED = [(name, shed) for name in PLACEMENTS for shed in SHEDS[:2]]
TRIED += [(name, shed) for name in FEW for shed in SHEDS[2:]]


@pytest.mark.parametrize(("name", "shed"), TRIED, ids=lambda x: getattr(x, "method", x))
def test_exactly_the_selected_pairs_are_met(name, shed):
    placement = PLACEMENTS[name]
    streams = 2 if placement.supports_streams(2) else 3
    counts = [(c * streams)[:streams] for c in LESS]
    if streams > 2:
        counts = [tuple(min(2, n) for n in c) for c in counts[:8]]
    cluster = run(placement, shed, counts)
    assert set(cluster.met.values()) <= {1}
    assert cluster.met == cluster.selected
    assert cluster.met, "nothing was selected"


@pytest.mark.parametrize(
    "placement",
    [p for p in PLACEMENTS.values() if p.supports_streams(3)],
    ids=lambda p: repr(p)[:60],
)
def test_exactly_the_selected_triples_are_met(placement):
    counts = [(2, 1, 2), (1, 2, 0), (0, 2, 2), (2, 2, 1), (1, 0, 2)]
    cluster = run(placement, Shed(fraction=0.4), counts)
    assert set(cluster.met.values()) <= {1} and cluster.met == cluster.selected


BUDGETS = [Budget("fraction", 1.0), Budget("fraction", 0.2), Budget("pairs", 30.0)]
"""Budgets, including one that sheds nothing."""
COUNTS = st.tuples(st.integers(0, 6), st.integers(0, 6))
BATCHES = st.lists(
    st.tuples(COUNTS, st.sampled_from([None, None, *BUDGETS]), st.booleans()), max_size=12
)


@given(st.sampled_from(FEW), st.sampled_from(BUDGETS), BATCHES, st.integers(0, 99))
def test_whatever_is_adjusted_and_whenever_it_stops(name, first, batches, seed):
    """Streams are silent now and then, the budget changes, and the run is resumed from its file."""
    placement, shed = PLACEMENTS[name], Shed(**{first.kind: first.amount})
    cluster = ShedCluster(placement, 2, shed)
    come = draw_arrivals(
        [counts for counts, _, _ in batches], placement.key_space_size, random.Random(seed)
    )
    for tuples, (_, budget, stops) in zip(come, batches, strict=True):
        if budget is not None:
            now = shed.with_budget(cluster.now.shedder_state, budget)
            cluster.now = replace(cluster.now, shedder_state=now)
        if stops:
            again = state_from_json(state_to_json(cluster.now), placement.State, ShedState)
            assert batch_step.plan_batch(cluster.rules, again) == batch_step.plan_batch(
                cluster.rules, cluster.now
            )
            cluster.now = again
        cluster.run(tuples)
    cluster.drain()
    assert set(cluster.met.values()) <= {1} and cluster.met == cluster.selected
