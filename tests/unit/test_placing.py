"""The automatically chosen placement: chosen by simulation, reported, and kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from braid import Centralized, HashPartition, HotKeys, HyperCube
from braid.core.plan_sentences import format_count
from braid.core.run_events import PlacementChosen
from braid.simulation.placement_comparison import (
    BATCHES,
    JoinStatistics,
    candidate_placements,
    choose_placement,
    simulate_cost,
)
from braid.sources.arrow_streams import ArrowStreams
from braid.stream_join import StreamJoin
from oracle import compute_expected, describe_difference, make_tables, result_ids

NONE = (None, None)


@pytest.mark.parametrize(
    ("known", "best"),
    [
        (JoinStatistics((1, 1), NONE, 4, True, 0.0), {"Centralized"}),
        (JoinStatistics((1, 1, 1), (None,) * 3, 4, True, 0.0), {"Centralized"}),
        (JoinStatistics((1, 1), NONE, 4, True, 1.0), {"HotKeys"}),
        (JoinStatistics((1, 1), NONE, 4, True, 0.0, has_remote_hosts=True), {"HotKeys"}),
        (
            JoinStatistics((1, 1, 1), (None,) * 3, 4, True, 0.0, has_remote_hosts=True),
            {"HotKeys"},
        ),
        (JoinStatistics((1, 1), NONE, 1, True, 0.0), {"HashPartition"}),
        (JoinStatistics((1, 1), NONE, 1, False, 0.0), {"Centralized"}),
        (JoinStatistics((1, 1, 1), (60.0,) * 3, 2, True, 5e-5), {"Centralized"}),
        (JoinStatistics((1, 1), NONE, 2, False, 1.0), {"StaticGrid"}),
        (
            JoinStatistics((1, 30), NONE, 4, False, 0.0, has_remote_hosts=True),
            {"AdaptiveGrid", "StaticGrid"},
        ),
        (JoinStatistics((30, 1), NONE, 4, False, 0.0, has_remote_hosts=True), {"AdaptiveGrid"}),
        (JoinStatistics((1, 1), NONE, 4, False, 1.0), {"AdaptiveGrid", "StaticGrid"}),
        (
            JoinStatistics((1, 1), NONE, 16, False, 0.0, has_remote_hosts=True),
            {"AdaptiveGrid", "StaticGrid"},
        ),
    ],
)
def test_what_is_known_decides(known: JoinStatistics, best: set[str]) -> None:
    chosen = choose_placement(known)
    assert type(chosen.placement).__name__ in best
    assert next(iter(chosen.relative_costs.values())) == 1.0, "what is chosen comes first"
    assert (
        min(chosen.relative_costs.values()) > 0.97
        and format_count(known.hosts, "host") in chosen.reason
    )
    assert choose_placement(known) == chosen, "and always the same"


def test_a_frequent_value_is_shared_out_and_weighs_on_one_host_of_a_hash() -> None:
    for share in (0.0, 0.02, 0.1, 0.6):
        known = JoinStatistics(
            (1, 1), NONE, 8, True, 0.0, most_frequent_share=share, has_remote_hosts=True
        )
        chosen = choose_placement(known)
        assert isinstance(chosen.placement, HotKeys) and chosen.relative_costs["StaticGrid"] > 0.98
        assert ("60.0%" in chosen.reason) == (share == 0.6)
        ratio = simulate_cost(HashPartition(8), known) / simulate_cost(HotKeys(8), known)
        assert ratio == 1.0 if share == 0.0 else ratio > 1.05


@pytest.mark.parametrize(("rows", "hosts"), [((1, 1, 1), 4), ((8, 1, 1), 16)])
def test_equalities_on_different_columns_take_a_hypercube_on_several_machines(
    rows: tuple[float, ...], hosts: int
) -> None:
    """Nothing hops, and no host receives more than its cells. On one machine, one host is enough."""
    dimensions = ((0, 1), (1, 2))
    known = JoinStatistics(rows, (None,) * 3, hosts, False, 0.0, dimensions=dimensions)
    chosen = choose_placement(replace(known, has_remote_hosts=True))
    assert chosen.placement == HyperCube(hosts, dimensions)
    assert min(r for name, r in chosen.relative_costs.items() if name != "HyperCube") > 2
    assert isinstance(choose_placement(known).placement, Centralized)
    linked = replace(known, equality=True, has_remote_hosts=True)
    assert isinstance(choose_placement(linked).placement, HotKeys)


def test_a_chain_is_joined_by_the_hypercube_that_is_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams, on = make_tables("abc", 60, seed=92, batches=3), "a.k = b.k AND b.n = c.n"
    monkeypatch.setattr("braid.sources.arrow_streams.available_cores", lambda: 4)
    monkeypatch.setattr(ArrowStreams, "has_remote_hosts", lambda source: True)
    join = StreamJoin(streams, on, check=True)
    assert join.placement == HyperCube(4, ((0, 1), (1, 2)))
    run = join.start(tmp_path, batches="batch")
    run.awaitTermination()
    assert describe_difference(result_ids(run.results()), compute_expected(streams, on)) == ""


@pytest.mark.parametrize("streams", [2, 3, 5])
@pytest.mark.parametrize("hosts", [1, 2, 7, 64])
@pytest.mark.parametrize("equality", [False, True])
def test_there_is_one_for_every_join(streams: int, hosts: int, equality: bool) -> None:
    windows = (60.0, None, 1.0, 600.0, 60.0)[:streams]
    known = JoinStatistics((1.0,) * streams, windows, hosts, equality, float(not equality))
    chosen = choose_placement(known)
    assert chosen.placement.supports_streams(streams) and chosen.placement.max_hosts <= hosts
    assert len(chosen.relative_costs) == len(list(candidate_placements(known))) >= 2 and BATCHES > 1


def test_a_join_without_a_placement_says_why_and_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams, on = make_tables("ab", 150, seed=91, batches=4), "a.k = b.k AND a.n < b.n"
    monkeypatch.setattr("braid.sources.arrow_streams.available_cores", lambda: 3)
    monkeypatch.setattr(ArrowStreams, "has_remote_hosts", lambda source: True)
    monkeypatch.setattr(ArrowStreams, "most_frequent_share", lambda source, predicate: 0.0)
    join = StreamJoin(streams, on, check=True)
    assert join.placement == HotKeys(3)
    why = [row[2] for row in join.explain().rows if row[:2] == ("placement", "auto")]
    assert len(why) == 1 and why[0].startswith("HotKeys for 2 streams, 3 hosts")
    run = join.start(tmp_path, batches="batch")
    run.awaitTermination()
    assert describe_difference(result_ids(run.results()), compute_expected(streams, on)) == ""
    monkeypatch.setattr("braid.sources.arrow_streams.available_cores", lambda: 2)
    for start in (
        lambda: StreamJoin(streams, on, check=True).start(tmp_path),
        lambda: StreamJoin.resume(tmp_path, streams),
    ):
        again = start()
        again.awaitTermination()
        assert again.config.placement == join.placement, "on another machine"
        chosen_events = [e for e in again.events() if isinstance(e, PlacementChosen)]
        assert [e.reason for e in chosen_events] == why and chosen_events[0].relative_costs[
            "HotKeys"
        ] == 1.0
    assert StreamJoin(streams, on, Centralized()).explain().rows != join.explain().rows


def test_a_window_of_a_microsecond_is_modelled(tmp_path: Path) -> None:
    """Equal event times are bounded by 0, so that the window is one microsecond."""
    times = pa.array([k * 10**6 for k in range(20)], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": range(20), "ts": times})
    join = StreamJoin({"a": rows, "b": rows}, "a.id = b.id AND a.ts = b.ts", time="ts")
    assert join._join.effective_windows == (1, 1)
    assert choose_placement(JoinStatistics((1, 1), (1e-6, 1e-6), 4, True, 0.01)).relative_costs
