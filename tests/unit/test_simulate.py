"""A simulated run has the counts of an executed one."""

from __future__ import annotations

import pytest
from braid import AdaptiveGrid, Centralized, HashPartition, JoinBiclique, Ring, Shed, StaticGrid
from braid.core import answers, event_jsonl, query_answers
from braid.core.answer_events import TuplesAnswered
from braid.core.cluster_model import CostParameters, HostCapacity
from braid.core.match_rules import MATCHES, MatchRule
from braid.core.plan import Block, Plan, Route
from braid.core.reserved_columns import TIME
from braid.core.run_events import BatchCommitted, BatchPlanned, BatchShed, RunEnded, RunStarted
from braid.errors import CoverageError
from braid.papers.shedding.run_events import SheddingPlanned
from braid.papers.theta.run_events import MigrationEnded, MigrationStarted
from braid.simulation.simulated_answers import SimulatedAnswers
from braid.simulation.simulator import simulate
from braid_lab.common.recordings import write_events
from braid_lab.common.simulated_cluster import iter_cluster_simulation
from oracle import PLACEMENTS

BATCHES = [(40, 10), (0, 80), (30, 30), (0, 90)]


def committed(run):
    return [e for e in run if isinstance(e, BatchCommitted)]


def test_a_run_starts_ends_and_tells_every_batch():
    run = simulate(StaticGrid(4), BATCHES, tuple_bytes=(8, 16), streams=("l", "o"))
    start, *middle, end = run
    assert (
        isinstance(start, RunStarted)
        and start.time_source == "modelled"
        and start.streams == ("l", "o")
        and start.planned_batches == 4
    )
    assert end == RunEnded(3, "completed")
    assert [e.batch for e in middle if isinstance(e, BatchPlanned)] == [0, 1, 2, 3]
    assert [e.received_tuples for e in committed(run)] == BATCHES
    assert committed(run)[-1].total_received_tuples == committed(run)[-1].live_tuples == (70, 210)


def test_events_survive_a_file(tmp_path):
    run = simulate(AdaptiveGrid(4), BATCHES)
    write_events(tmp_path / "run.jsonl", run)
    assert event_jsonl.read_events(tmp_path / "run.jsonl") == run


def test_the_same_seed_gives_the_same_run():
    assert simulate(AdaptiveGrid(8), BATCHES, seed=5) == simulate(AdaptiveGrid(8), BATCHES, seed=5)
    assert simulate(AdaptiveGrid(8), BATCHES, seed=5) != simulate(AdaptiveGrid(8), BATCHES, seed=6)


@pytest.mark.parametrize(
    "placement, sent, stored",
    [
        (Centralized(), 1, 1),
        (HashPartition(6), 1, 1),
        (StaticGrid(4), 2, 2),
        (StaticGrid(16), 4, 4),
        (JoinBiclique(8), 5, 1),
    ],
)
def test_what_a_tuple_costs(placement, sent, stored):
    """Copies sent and replicas stored of 280 tuples, in tuples and in bytes.

    The biclique adds the other side.
    """
    run = committed(simulate(placement, [(40, 40), (100, 100)], tuple_bytes=(10, 10)))
    first, last = run
    assert (
        last.total_host_metrics.stored_tuples == 280 * stored
        and last.total_host_metrics.stored_bytes == 2800 * stored
    )
    assert (
        last.total_host_metrics.received_tuples == 200 * sent
        and last.total_host_metrics.received_bytes == 2000 * sent
    )
    assert not any(
        e.total_host_metrics.migrated_tuples + e.total_host_metrics.discarded_tuples for e in run
    )


@pytest.mark.parametrize(
    "placement", [Centralized(), StaticGrid(6), JoinBiclique(3), AdaptiveGrid(16)]
)
def test_every_pair_of_tuples_is_compared_once(placement):
    run = committed(simulate(placement, BATCHES))
    assert sum(e.total_host_metrics.compared_pairs for e in run) == 70 * 210


def test_tuples_are_conserved_host_by_host_in_migrations():
    run = simulate(AdaptiveGrid(16), [(50, 1)] * 12 + [(1, 400)] * 12)
    moves = sum(isinstance(e, MigrationStarted) for e in run)
    assert moves >= 2 and moves == sum(isinstance(e, MigrationEnded) for e in run)
    stored = [0] * 16
    for e in committed(run):
        came = [
            a + b + c - d
            for a, b, c, d in zip(
                stored,
                [h.received_tuples for h in e.host_metrics],
                [h.migrated_tuples for h in e.host_metrics],
                [h.discarded_tuples for h in e.host_metrics],
                strict=True,
            )
        ]
        assert came == [h.stored_tuples for h in e.host_metrics]
        stored = [h.stored_tuples for h in e.host_metrics]


def test_block_facts_add_up_to_what_hosts_store():
    run = simulate(AdaptiveGrid(8), [(50, 1)] * 12 + [(1, 400)] * 12)
    blocks = {}
    for e in committed(run):
        for id in e.dropped_block_ids:
            del blocks[id]
        blocks |= {b.id: b for b in e.changed_blocks}
        stored = [sum(b.rows for b in blocks.values() if h in b.hosts) for h in range(8)]
        assert stored == [h.stored_tuples for h in e.host_metrics]


def test_a_migration_that_runs_at_the_end_is_finished_in_empty_batches():
    run = simulate(AdaptiveGrid(16, size_estimation="exact"), [(100, 100), (400, 0), (0, 10)])
    extra = [e for e in committed(run) if not any(e.received_tuples)]
    assert (
        extra
        and isinstance(run[-2], BatchCommitted)
        and run[0].planned_batches == 3 + len(extra) == run[-1].batch + 1
    )
    assert (
        sum(isinstance(e, MigrationEnded) for e in run)
        == sum(isinstance(e, MigrationStarted) for e in run)
        >= 1
    )
    assert sum(e.total_host_metrics.compared_pairs for e in committed(run)) == 500 * 110


def test_an_unsound_plan_is_caught():
    class _Forgetful(Centralized):
        """A placement that stores everything and joins nothing."""

        def plan_batch(self, facts, state):
            blocks = [Block(facts.next_id + s, s, (0, 1), facts.batch, (0,)) for s in (0, 1)]
            return Plan(tuple(Route(b, ()) for b in blocks))

    with pytest.raises(CoverageError, match="blocks never met"):
        simulate(_Forgetful(), BATCHES)


def test_lengths_must_agree():
    with pytest.raises(ValueError, match="one entry per stream; the first batch has 2"):
        simulate(Centralized(), [(1, 2), (1, 2, 3)])
    with pytest.raises(ValueError, match="one entry per stream"):
        simulate(Centralized(), [(1, 2)], tuple_bytes=(8,))
    with pytest.raises(ValueError, match="two streams"):
        simulate(StaticGrid(4), [(1, 2, 3)])


def pulses(placement, patience):
    """Return the events of bursts with pauses, on one slow host each."""
    batches = [(40, 40), (0, 0), (0, 0), (0, 0)] * 3
    slow = (HostCapacity(mips=300.0),) * placement.hosts
    return committed(
        iter_cluster_simulation(
            placement, batches, windows=(2.0, 2.0), cluster=slow, patience=patience
        )
    )


def test_a_modelled_host_works_no_longer_than_a_batch_lasts():
    """Remaining work waits, and is done in the pauses."""
    seconds = [e.host_metrics[0].seconds for e in pulses(Centralized(), 100.0)]
    assert max(seconds) <= 1.0 and seconds[0] == seconds[1] == 1.0
    assert sum(seconds) > 1.5 * sum(e.host_metrics[0].seconds for e in pulses(Centralized(), 0.0))


def test_a_placement_is_told_what_hosts_work_on_and_so_sees_what_waits():
    """In the pause the host still has probes to make, and in total no more than requested."""
    seen = []

    class _Curious(Centralized):
        def plan_batch(self, facts, state):
            seen.append(facts.host_usage[0].probes if facts.host_usage else 0)
            return super().plan_batch(facts, state)

    events = pulses(_Curious(), 100.0)
    asked = [e.host_metrics[0].probes for e in events]
    assert asked[0] > 0 == asked[1] and 0 < seen[1] < asked[0] and seen[2] > 0
    assert sum(seen) <= sum(asked) + len(seen)


def test_a_hop_is_held_against_the_last_stream_or_against_all_that_were_visited():
    """Eq. 3 of Gu 2007 has one selectivity per hop; independent pairs have one for each pair."""
    sigma = [[1, 0.5, 0.25], [0.5, 1, 0.1], [0.25, 0.1, 1]]
    calm = dict(windows=(9.0,) * 3, selectivity=sigma)
    found = {
        selects: sum(
            e.results
            for e in committed(simulate(Centralized(), [(20,) * 3] * 4, selects=selects, **calm))
        )
        for selects in ("pair", "hop")
    }
    assert found["pair"] == pytest.approx(80**3 * 0.5 * 0.25 * 0.1, rel=0.01)
    assert found["pair"] < 0.5 * found["hop"]


LOADED = [(50, 60)] * 6 + [(150, 180)] * 6 + [(50, 60)] * 6


@pytest.mark.parametrize("placement", [Centralized(), StaticGrid(4), AdaptiveGrid(4), Ring(3)])
def test_load_is_shed_in_a_simulation(placement):
    """A share of the pairs and of the results is processed; sums of weights and stored tuples are
    equal.
    """
    settings = dict(windows=(5.0, 5.0), selectivity=0.01)
    whole = simulate(placement, LOADED, **settings)
    shed = Shed(fraction=0.3, method="uniform")
    part = simulate(placement, LOADED, shedder=shed, **settings)
    pairs, results = (
        [sum(getattr(e.total_host_metrics, what) for e in committed(run)) for run in (whole, part)]
        for what in ("compared_pairs", "results")
    )
    assert pairs[1] == pytest.approx(0.3 * pairs[0], rel=0.05)
    assert results[1] == pytest.approx(0.3 * results[0], rel=0.05)
    assert [e.live_tuples for e in committed(part)] == [e.live_tuples for e in committed(whole)]
    came = [e for e in part if isinstance(e, BatchShed)]
    assert sum(e.estimated_results for e in came) == pytest.approx(results[0], rel=0.02)
    assert sum(e.considered_pairs for e in came) == pytest.approx(pairs[1], rel=0.02)
    assert sum(e.considered_pairs + e.skipped_pairs for e in came) == pytest.approx(
        pairs[0], rel=0.02
    )
    hosts = [h.skipped_pairs for e in committed(part) for h in e.host_metrics]
    assert sum(hosts) == pytest.approx(sum(e.skipped_pairs for e in came), rel=0.02)
    assert not any(e.total_host_metrics.skipped_pairs for e in committed(whole))
    assert simulate(placement, LOADED, shedder=Shed(fraction=1), **settings)[-1] == whole[-1]


def test_a_simulated_burst_is_kept_within_its_seconds():
    """On a cluster seconds are modelled, and r follows them: it falls in the burst and rises after
    it.

    A batch of the burst takes about its limit, which it exceeds without shedding.
    """
    costs = CostParameters(transfer_ms=0.1, probe_ms=0.1, compare_us=20.0)
    settings = dict(windows=(5.0, 5.0), selectivity=0.01, cluster=(HostCapacity(),), costs=costs)
    free = committed(iter_cluster_simulation(Centralized(), LOADED, patience=1e9, **settings))
    shedder = Shed(seconds=0.8, basic_window="1 second")
    run = list(
        iter_cluster_simulation(Centralized(), LOADED, shedder=shedder, patience=1e9, **settings)
    )
    took, r = [e.seconds_by_phase["modelled"] for e in committed(run)], fractions(run)
    assert max(e.seconds_by_phase["modelled"] for e in free[6:12]) > 1.6
    assert took[6] < 1.5 * 0.8, "the guard, before r knows of the burst"
    assert max(took[7:]) < 1.15 * 0.8
    assert min(r[7:12]) < 0.5 and r[-1] > 0.9 and r[5] > 0.9


def fractions(run):
    return [e.fraction for e in run if isinstance(e, SheddingPlanned)]


def test_tuples_cannot_be_left_out_by_values_that_a_simulation_lacks():
    with pytest.raises(ValueError, match="tuples have no values in a simulation"):
        simulate(Centralized(), LOADED[:2], shedder=Shed(fraction=0.5, method="drop"))


def count_answered(run):
    events = [e for e in run if isinstance(e, TuplesAnswered)]
    return tuple(map(sum, zip(*(e.answered for e in events), strict=True))), events[-1].waiting


FIRST = MatchRule("first")
LONG = [(9, 4), (0, 30), (20, 0), (3, 40), (0, 0), (12, 5), (1, 60), (7, 7)]


@pytest.mark.parametrize("name", PLACEMENTS)
def test_every_placement_answers_all_tuples_of_a_simulated_join_once(name):
    """The ledger checks every plan, and at the end that no tuple waits."""
    placement = PLACEMENTS[name]
    if not placement.supports_streams(2):
        pytest.skip("it joins other numbers of streams")
    received = tuple(map(sum, zip(*LONG, strict=True)))
    for windows in ((None, None), (2.5, 1.2)):
        given = {"windows": windows, "selectivity": 0.01, "seed": 3}
        assert count_answered(simulate(placement, LONG, how="full", **given)) == (received, (0, 0))
        left = simulate(placement, LONG, how="anti", **given)
        assert count_answered(left) == ((received[0], 0), (0, 0))
    for match in MATCHES:
        rule = MatchRule(match, (TIME, TIME), tolerance=1_500_000)
        run = simulate(placement, LONG, match=rule)
        assert count_answered(run) == ((received[0], 0), (0, 0))


def test_a_match_may_be_named():
    named, ruled = (list(simulate(StaticGrid(4), LONG, match=m)) for m in ("first", FIRST))
    assert named == ruled
    with pytest.raises(ValueError, match="match is 'last'; match must be one of latest, first, n"):
        list(simulate(StaticGrid(4), LONG, match="last"))


def test_the_expected_share_without_a_partner_falls_with_the_selectivity():
    def unmatched(selectivity):
        run = simulate(StaticGrid(4), LONG, how="left", selectivity=selectivity)
        return sum(e.unmatched[0] for e in run if isinstance(e, TuplesAnswered))

    assert unmatched(0.0) == sum(a for a, _ in LONG) > unmatched(0.01) > unmatched(0.5) == 0


def test_a_simulation_finds_tuples_that_are_forgotten(monkeypatch):
    """A plan shows a block that is not answered; only counts show a tuple."""

    def forget_block(*given):
        return answers.find_due_settles(*given)[1:]

    with monkeypatch.context() as patched:
        patched.setattr(query_answers, "find_due_settles", forget_block)
        with pytest.raises(CoverageError, match="has final tuples .* that are not answered"):
            simulate(AdaptiveGrid(4), LONG, how="left")

    def forget_tuple(self, work, state):
        counts = real(self, work, state)
        return {
            s: c._replace(answered=c.answered - (work.facts.batch > 7)) for s, c in counts.items()
        }

    real = SimulatedAnswers.count_answers
    monkeypatch.setattr(SimulatedAnswers, "count_answers", forget_tuple)
    with pytest.raises(CoverageError, match="all streams have ended, but tuples are not answered"):
        simulate(AdaptiveGrid(4), LONG, how="left")
