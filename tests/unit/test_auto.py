"""A placement that changes among placements during the join: by facts, exactly once."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from braid import Auto
from braid.core.batch_report import BlockSize, ReplicaReport, TaskReport
from braid.core.facts import Facts
from braid.core.plan import Plan
from braid.core.run_events import BatchCommitted, BatchPlanned, PlacementChanged
from braid.execution.engine import Engine
from braid.papers.shedding.shed import Shed
from braid.simulation.auto_placement import AutoState, _is_review_due
from braid.simulation.simulator import simulate
from braid.stream_join import StreamJoin
from braid_widgets.cockpit.decision_sentences import collect_decisions
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import describe_difference, expected, killed_before, result_ids
from placement_checks import SWING, arrivals, check_meetings

ORDER = ["AdaptiveGrid", "StaticGrid", "HashPartition"]


@dataclass(frozen=True)
class _Often(Auto):
    """A placement that changes every few batches, as soon as no pair is pending."""

    every: int = 3

    def plan_batch(self, facts: Facts, state: AutoState) -> Plan:
        if facts.batch - state.since_batch >= self.every and not self.has_pending_pairs(state):
            turn = 1 + ORDER.index(state.placement)
            state = self.switch_to(facts, state, ORDER[turn % len(ORDER)])
        return self.plan_with_older_blocks(facts, state)


burst = st.sampled_from([(0, 0), (3, 0), (0, 3), (2, 2), (9, 0), (0, 9), (30, 1), (1, 30)])


@pytest.mark.parametrize("hosts", [1, 3, 4, 8])
@given(counts=st.lists(burst, min_size=4, max_size=14), draw=st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_every_pair_meets_once_whatever_the_placements_were(
    hosts: int, counts: list[Any], draw: random.Random
) -> None:
    check_meetings(_Often(hosts, reviews_placement=False), counts, draw)


def test_placements_take_over_from_one_another_through_migrations() -> None:
    cluster = check_meetings(_Often(8, reviews_placement=False, every=5), SWING, random.Random(3))
    assert cluster.settled and cluster.state.first_key > 2 * 8 * 16, "it changed again and again"


def test_older_blocks_are_shared_out_once_and_lie_on_one_host_each() -> None:
    cluster = check_meetings(_Often(4, reviews_placement=False, every=17), SWING, random.Random(5))
    older = [b for b in cluster.now.blocks.values() if b.key_range[0] < cluster.state.first_key]
    assert older and all(len(b.hosts) == 1 for b in older)
    assert len({b.hosts for b in older}) == 4


def shares(hosts: int, share: float) -> list[list[float]]:
    """Return the shares of raw keys, with one frequent value in both streams."""
    each = np.full(hosts, (1 - share) / hosts)
    each[-1] += share
    return [np.tile(each / (16 * hosts), 16 * hosts).tolist()] * 2


def modelled(placement: Auto, share: float, batches: int = 20) -> list[Any]:
    given = [(3000, 3000)] * batches
    return simulate(placement, given, selectivity=0.1, key_shares=shares(placement.hosts, share))


def test_it_changes_where_values_are_frequent_and_says_why() -> None:
    events = modelled(Auto(8, has_remote_hosts=True), 0.5)
    (changed,) = (e for e in events if isinstance(e, PlacementChanged))
    assert (changed.batch, changed.previous_placement, changed.placement) == (
        3,
        "HashPartition",
        "AdaptiveGrid",
    )
    assert changed.max_host_share == pytest.approx(0.5625, abs=0.02) and changed.even_share == 1 / 8
    assert changed.remaining_work_share < 0.9 and changed.moved_tuples > 0
    (why,) = (d for d in collect_decisions(events) if d.kind == "PlacementChanged")
    assert why.batch == 3 and why.text.startswith("HashPartition to AdaptiveGrid: one host had 56")
    done = {
        e.batch: max(h.compared_pairs for h in e.host_metrics)
        for e in events
        if isinstance(e, BatchCommitted)
    }
    stays = [
        e for e in modelled(Auto(8, reviews_placement=False), 0.5) if isinstance(e, BatchCommitted)
    ]
    assert done[19] < max(h.compared_pairs for h in stays[-1].host_metrics) / 2


FEWER = [(n, n) for n in range(40_000, 0, -500)]
"""Block order: the block merged last is smallest, and the first to leave a full host."""


@pytest.mark.parametrize("shedder", [None, Shed(fraction=0.5)], ids=["", "shedding"])
@pytest.mark.parametrize("gap", [0, 1], ids=["", "after an empty batch"])
def test_a_change_in_a_batch_that_would_merge_shares_older_blocks_out(
    monkeypatch: pytest.MonkeyPatch, gap: int, shedder: Shed | None
) -> None:
    """In batch 12 every fourth block is merged; only committed blocks can move to other hosts."""
    monkeypatch.setattr("braid.simulation.auto_placement.LOOKS", 12)
    counts = [*FEWER[: 12 - gap], *[(0, 0)] * gap, *FEWER[12:14]]
    events = simulate(
        Auto(8, has_remote_hosts=True),
        counts,
        selectivity=1e-3,
        key_shares=shares(8, 0.3),
        shedder=shedder,
    )
    (changed,) = (e for e in events if isinstance(e, PlacementChanged))
    assert changed.batch == 12 and changed.moved_tuples > 0
    (done,) = (e for e in events if isinstance(e, BatchCommitted) and e.batch == 12)
    stored = [h.stored_tuples for h in done.host_metrics]
    assert max(stored) < 1.3 * sum(stored) / 8


@pytest.mark.parametrize("every", [3, 4, 8, 12])
def test_what_a_batch_has_merged_stays_where_it_is_in_that_batch(every: int) -> None:
    """As after a batch that only amends, which does not suspend compaction."""
    often = _Often(8, reviews_placement=False, every=every)
    events = simulate(often, FEWER[: 3 * every + 2], key_shares=shares(8, 0.3))
    read = [
        d
        for e in events
        if isinstance(e, BatchPlanned)
        for d in e.derivations
        if any(to != source for to, source in d.source_hosts.items())
    ]
    assert read, "some block went to another host"


@pytest.mark.parametrize(
    "placement", [Auto(8, has_remote_hosts=True), Auto(8), Auto(1, has_remote_hosts=True)], ids=repr
)
def test_it_stays_where_values_are_even(placement: Auto) -> None:
    events = modelled(placement, 0.0, 50)
    assert not any(isinstance(e, PlacementChanged) for e in events)


def test_it_looks_after_a_few_batches_and_then_now_and_then() -> None:
    assert [n for n in range(200) if _is_review_due(n)] == [3, 6, 12, 24, 48, 96, 144, 192]


def skewed(rows: int, batches: int) -> dict[str, pa.Table]:
    found = {}
    for i, alias in enumerate("ab"):
        draw = np.random.default_rng([7, i])
        k = np.where(draw.random(rows) < 0.6, 5, draw.integers(0, 60, rows))
        batch = np.arange(rows) * batches // rows
        found[alias] = pa.table(
            {
                "id": np.arange(rows),
                "k": k,
                "n": draw.integers(0, 99, rows),
                "batch": pa.array(batch, pa.int32()),
            }
        )
    return found


def test_a_join_changes_is_killed_and_goes_on_with_what_it_changed_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("braid.sources.arrow_streams.available_cores", lambda: 4)
    monkeypatch.setattr("braid.simulation.auto_placement.CLEARLY", 2.0)
    streams, on = skewed(600, 9), "a.k = b.k AND a.n < b.n"
    for killed in (3, 4, 6):
        folder = tmp_path / str(killed)
        join = StreamJoin(streams, on, Auto(4), check=True)
        with killed_before(killed), pytest.raises(OSError, match="killed"):
            join.start(folder, batches="batch").awaitTermination()
        run = StreamJoin.resume(folder, streams)
        run.awaitTermination()
        assert describe_difference(result_ids(run.results()), expected(streams, on)) == ""
        (changed,) = (e for e in run.events() if isinstance(e, PlacementChanged))
        assert changed.batch == 3 and changed.max_host_share > 0.6
    made_anew(run._engine)


def made_anew(engine: Engine) -> None:
    """Check that rebuilt blocks have the keys of the current placement."""
    state = engine.state
    replicas = [
        ReplicaReport(
            b.id, h, state.replica_addresses[b.id, h], BlockSize(b.rows, b.size_bytes, (0, 0))
        )
        for b in state.blocks.values()
        for h in b.hosts
    ]
    report = TaskReport({}, replicas, files=dict(state.block_files))
    engine.commit_change((), state.placement_state, [report], [], 0.0)
    space = engine.placement.key_space(state.placement_state)
    assert {b.key_range for b in engine.state.blocks.values()} == {(space.first, space.key_end)}
    assert space.first > 0


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="^hosts is 65; Auto takes at most 64$"):
        Auto(65)
    with pytest.raises(ValueError, match="^Auto joins two streams that an equality links; got 3$"):
        Auto(4).initial_state(3)
    assert replace(Auto(4), reviews_placement=False) == Auto(4, reviews_placement=False)
    assert arrivals([(1, 1)], Auto(4).key_space_size, random.Random(0))
