"""The simulation and the engine share one batch step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from braid import Aligned, Centralized, Chain, SemanticsUnaware
from braid.core import batch_step, facts
from braid.core.batch_report import (
    BlockSize,
    HostMetrics,
    KeyCount,
    MatchCount,
    ReplicaReport,
    TaskReport,
    merge_reports,
    report_from_json,
)
from braid.core.facts import AGES, Facts
from braid.core.placement import Placement
from braid.core.plan import Block, Hop, Plan, Route
from braid.core.query import Query
from braid.core.run_events import BatchCommitted, BatchPlanned, Event
from braid.core.run_state import ReplicaAddress
from braid.errors import CoverageError
from braid.simulation.simulator import simulate
from msgspec import structs
from unit.test_bitmaps import Counted, make_queries


def tens(count: int, streams: int) -> list[list[tuple[int, int, int, int]]]:
    """Return batches of ten tuples of each stream, one per microsecond: (stream, k, v, later)."""
    return [
        [(s, t % 2, 0, int(s == 0 and (n, t) != (0, 0))) for t in range(10) for s in range(streams)]
        for n in range(count)
    ]


def plain(events: list[Event]) -> list[Event]:
    """Return the decisions of policies: plans and their own events, without the bytes of blocks."""
    found: list[Event] = []
    for e in events:
        if isinstance(e, BatchPlanned):
            routes = tuple(
                structs.replace(r, block=structs.replace(r.block, size_bytes=0)) for r in e.routes
            )
            cuts = tuple(
                structs.replace(d, block=structs.replace(d.block, size_bytes=0))
                for d in e.derivations
            )
            found.append(replace(e, routes=routes, derivations=cuts))
        elif not isinstance(e, BatchCommitted) and hasattr(e, "stream"):
            found.append(e)
    return found


@pytest.mark.parametrize("hosts", [1, 3])
def test_a_chain_is_simulated_as_the_engine_runs_it(tmp_path: Path, hosts: int) -> None:
    queries = make_queries((20, 20), (60, 60), (160, 160))
    run = Counted(tmp_path, queries, hosts, streams=2).fed(tens(40, 2))
    modelled = simulate(
        Chain("memory", hosts=hosts),
        [(10, 10)] * 40,
        queries=queries,
        seconds=1e-5,
        streams=("a", "b"),
        selectivity=0.5,
    )
    assert plain(modelled) == plain(run.events)
    commits = [e for e in modelled if isinstance(e, BatchCommitted)]
    for name in ("received_tuples", "total_received_tuples", "live_tuples", "late_tuples"):
        assert [getattr(e, name) for e in commits] == [getattr(e, name) for e in run.commits]
    for name in ("received_tuples", "stored_tuples", "migrated_tuples", "discarded_tuples"):
        done, expected = (
            [[getattr(h, name) for h in e.host_metrics] for e in events]
            for events in (run.commits, commits)
        )
        assert done == expected, name


@dataclass(frozen=True)
class _Watch(Centralized):
    """A placement that records its facts."""

    def plan_batch(self, facts: Facts, state: Any) -> Plan:
        SEEN.append(facts)
        return super().plan_batch(facts, state)


SEEN: list[Facts] = []


@pytest.fixture(autouse=True)
def nothing_seen() -> None:
    SEEN.clear()


def test_the_simulation_hands_on_all_facts() -> None:
    queries = (Query("a", (2_000_000, 3_000_000), (None, None)),)
    shares = [(0.25, 0.75), (1.0,)]

    @dataclass(frozen=True)
    class _Chained(Chain):
        def plan_batch(self, facts: Facts, state: Any) -> Plan:
            SEEN.append(facts)
            return super().plan_batch(facts, state)

    simulate(_Chained(), [(400, 4)] * 5, queries=queries, key_shares=shares, seconds=0.5)
    last = SEEN[-1]
    assert last.queries == queries and last.windows == (2_000_000, 3_000_000)
    assert last.watermarks == (1_999_999, 1_999_999) and last.clocks == (1_999_999, 1_999_999)
    first, second = last.key_counts
    assert set(first) == {0, 1} and 2 < first[1] / first[0] < 4 and set(second) == {0}
    assert sum(second.values()) == pytest.approx(4 * (1 + 0.75 + 0.75**2 + 0.75**3))


def test_event_time_of_each_batch_is_given() -> None:
    simulate(_Watch(), [(1, 1)] * 4, seconds=(1, 0.25, 2, 1))
    assert [f.clocks[0] for f in SEEN] == [None, 999_999, 1_249_999, 3_249_999]


@pytest.mark.parametrize("seconds", [0, (1, 1), (1, 1, -1)])
def test_event_time_that_does_not_go_on_is_refused(seconds: Any) -> None:
    with pytest.raises(ValueError, match="must be a number above 0, or one for each of the 3"):
        simulate(Centralized(), [(1, 1)] * 3, seconds=seconds)


def test_shares_of_routing_keys_add_up_to_one() -> None:
    with pytest.raises(ValueError, match="at most 1 shares that add up to 1"):
        simulate(Centralized(), [(1, 1)], key_shares=[(0.5, 0.5), (1.0,)])


# Matches by age.


def block_age(block: Block, batch: int, window: int | None, clocks: Sequence[int | None]) -> int:
    """Return the age of a block of the first of two streams."""
    return facts.block_ages([block], batch, (window, window), clocks)[block.id]


@pytest.mark.parametrize(
    "span, expected",
    [((160, 160), 0), ((150, 152), 0), ((149, 149), 1), ((70, 90), 8), ((1, 1), 15), ((0, 0), 15)],
)
def test_ages_are_parts_of_the_window(span: tuple[int, int], expected: int) -> None:
    block = Block(1, 0, (0, 1), 0, (0,), 5, 5, span)
    assert block_age(block, 7, 160, (None, 160)) == expected
    assert block_age(structs.replace(block, event_time_range=(500, 500)), 7, 160, (None, 160)) == 0
    assert (
        block_age(structs.replace(block, event_time_range=(-900, -900)), 7, 160, (900, 160))
        == AGES - 1
    )


def test_with_full_history_ages_double() -> None:
    ages = [block_age(Block(1, 0, (0, 1), b, (0,)), 8, None, (5, 5)) for b in range(9)]
    assert ages == [4, 3, 3, 3, 3, 2, 2, 1, 0]
    assert block_age(Block(1, 0, (0, 1), 6, (0,)), 8, 100, (5, None)) == 2, "the others are silent"


def test_matches_of_all_ages_are_those_of_the_steps_here_and_in_the_engine(tmp_path: Path) -> None:
    """Windows are 160: a block of a batch of 10 covers one sixteenth of it."""
    run = Counted(tmp_path, make_queries((160, 160)), 1, streams=2).fed(tens(24, 2))
    state = run.engine.state
    work = batch_step.plan_batch(run.engine.rules, state)
    by_age = work.facts.match_counts_by_age
    assert set(work.facts.match_counts) == {((0,), 1), ((1,), 0)}
    for visit, (pairs, found) in work.facts.match_counts.items():
        mine = {age: n for (v, age), n in by_age.items() if v == visit}
        assert set(mine) <= set(range(AGES)) and len(mine) > 8
        assert pairs == pytest.approx(sum(p for p, _ in mine.values()))
        assert found == pytest.approx(sum(f for _, f in mine.values()))
        young = [n for age, n in mine.items() if age < AGES - 2]  # none has left the window
        assert sum(f for _, f in young) == pytest.approx(sum(p for p, _ in young) / 2, rel=0.02)
    simulate(_Watch(), [(10, 10)] * 25, windows=(16e-5, 16e-5), seconds=1e-5, selectivity=0.5)
    modelled = SEEN[-1].match_counts_by_age
    for at, (pairs, found) in by_age.items():
        assert modelled[at][0] == pytest.approx(pairs, rel=0.02), at
        if at[1] < AGES - 2:  # at the end of the window some are too old
            assert modelled[at][1] == pytest.approx(found, rel=0.02), at


# At most once.


def counted(events: list[Event]) -> Counter[str]:
    found: Counter[str] = Counter()
    for e in events:
        if isinstance(e, BatchCommitted):
            found += Counter(
                missed=e.missed_combinations, compared=e.total_host_metrics.compared_pairs
            )
    return found


def test_what_is_missed_and_what_is_compared_are_all_pairs() -> None:
    batches = [(3, 4), (0, 2), (5, 5), (1, 0), (2, 2)]
    unaware = counted(simulate(SemanticsUnaware(3), batches))
    assert unaware.total() == 11 * 13 and unaware["missed"] > 20
    aware = counted(simulate(Aligned(3), batches, windows=(9, 9)))
    assert aware["missed"] == 0 and aware["compared"] > 0


@dataclass(frozen=True)
class _Doubles(SemanticsUnaware):
    """A placement that joins everything twice."""

    def plan_batch(self, facts: Facts, state: Any) -> Plan:
        plan = super().plan_batch(facts, state)
        return replace(
            plan, routes=tuple(structs.replace(r, paths=r.paths * 2) for r in plan.routes)
        )


def test_a_placement_that_doubles_is_refused_though_it_may_leave_out() -> None:
    assert simulate(SemanticsUnaware(1), [(2, 2)])
    with pytest.raises(CoverageError, match="on two paths"):
        simulate(_Doubles(1), [(2, 2)])


@dataclass(frozen=True)
class _Forgets(Placement):
    """A placement on one host that skips the oldest block of the other stream."""

    hosts: int = 1

    def plan_batch(self, facts: Facts, state: Any) -> Plan:
        fresh = [Block(facts.next_id + s, s, (0, 1), facts.batch, (0,)) for s in (0, 1)]
        routes = []
        for s, block in enumerate(fresh):
            others = sorted(b.id for b in facts.blocks if b.stream != s)[1:]
            others += [fresh[0].id] if s else []
            routes.append(Route(block, ((Hop(1 - s, {0: tuple(others)}),),) if others else ()))
        return Plan(tuple(routes))


def test_a_placement_that_leaves_out_is_refused_unless_it_says_so() -> None:
    with pytest.raises(CoverageError, match="meets 0 of 1 due combinations") as refused:
        simulate(_Forgets(), [(2, 3), (5, 7)])
    assert refused.value.__notes__ == [
        "The plan of batch 2, block by block:",
        "block 2: not there at the last commit\n"
        "  fresh block 2 of r, keys [0, 1), of batch 2: stored on host 0\n"
        "  probed by block 3 on host 0",
        "block 1 of s, keys [0, 1), of batch 1, 3 tuples, on host 0",
    ]

    @dataclass(frozen=True)
    class _Admits(_Forgets):
        delivery_guarantee = "at most once"

    events = simulate(_Admits(), [(2, 3), (5, 7)])
    assert [e.missed_combinations for e in events if isinstance(e, BatchCommitted)] == [
        0,
        5 * 3 + 7 * 2,
    ]
    assert counted(events)["compared"] == 2 * 3 + 5 * 7


# Reports.


def test_reports_of_tasks_are_merged() -> None:
    where, size = ReplicaAddress("f", 0, (0, 4)), BlockSize(3, 24, (5, 9), 1)
    one = TaskReport(
        {0: HostMetrics(received_tuples=2, seconds=0.5)},
        [ReplicaReport(7, 0, where, size)],
        ["r0"],
        [MatchCount((0,), 1, 3, 10, 2)],
        [KeyCount(1, 4, 2)],
        source_seconds=0.25,
        kernel_seconds=2.0,
    )
    two = TaskReport(
        {0: HostMetrics(received_tuples=1), 1: HostMetrics(results=4)},
        [ReplicaReport(7, 1, where, size)],
        ["r1"],
        [MatchCount((0,), 1, 3, 5, 1), MatchCount((0,), 1, 0, 1, 1)],
        [KeyCount(1, 4, 1), KeyCount(0, 0, 5)],
        source_seconds=0.5,
        kernel_seconds=1.0,
    )
    later = [
        TaskReport({}, stage=1, kernel_seconds=0.25),
        TaskReport({}, stage=1, kernel_seconds=0.5),
    ]
    assert [report_from_json(r.to_json()) for r in (one, two)] == [one, two]
    outcome = merge_reports([one, two, *later], 2)
    assert (
        outcome.source_seconds == 0.5 and outcome.kernel_seconds == 2.5
    )  # the slowest task of each stage
    assert outcome.block_sizes == {7: size} and outcome.replica_addresses == {
        (7, 0): where,
        (7, 1): where,
    }
    assert outcome.hosts == {
        0: HostMetrics(received_tuples=3, seconds=0.5),
        1: HostMetrics(results=4),
    }
    assert outcome.results == ["r0", "r1"]
    assert outcome.matches == {(((0,), 1), 3): (15, 3), (((0,), 1), 0): (1, 1)}
    assert outcome.key_counts == ({0: 5}, {4: 3})
    two.replicas[0] = ReplicaReport(7, 1, where, BlockSize(4, 24, (5, 9)))
    with pytest.raises(RuntimeError, match="replicas of block 7 differ: host 1 has 4 rows"):
        merge_reports([one, two], 2)
    one.replicas[0] = ReplicaReport(7, 0, where, BlockSize(3, 24, (5, 9), order_checksum=1))
    two.replicas[0] = ReplicaReport(7, 1, where, BlockSize(3, 24, (5, 9), order_checksum=2))
    with pytest.raises(RuntimeError, match="block 7 have their rows in different orders; that of"):
        merge_reports([one, two], 2)
