"""Runs that their user changes: hosts are lost, and settings set, while batches run."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from braid import Ring
from braid.core.host_recovery import STORAGE, list_remaining_replicas, plan_recovery
from braid.core.placement import Placement
from braid.core.plan import Block
from braid.core.run_events import BatchCommitted
from braid.core.run_state import ReplicaAddress, RunState
from braid.core.touch_events import HostLost, SettingChanged
from braid.execution.engine import Engine
from braid.papers.baselines.hash_partition import HashPartition
from braid.papers.psp.run_events import RingResized
from braid.papers.theta.grid import AdaptiveGrid
from braid.run_touches import apply_touch, list_touches
from braid.storage import log_checkpointer
from braid.stream_join import StreamJoin
from braid_widgets.cockpit.view import Cockpit
from kind_runs import check_case, draw_case
from oracle import compute_expected, describe_difference, result_ids
from unit.scripted import judge_pace

KINDS = ("inner", "left", "full", "anti", "semi", "inner")
BATCHES = 6


@pytest.mark.parametrize("first", [0, 4, 8])
def test_results_are_those_of_the_model_whatever_hosts_are_lost(first: int, tmp_path: Path) -> None:
    """Any placement, by threads and by the stages of Spark; up to two hosts before a batch."""
    held = 0
    run_batch = Engine._execute_and_commit
    for seed in range(first, first + 4):
        draw = random.Random(seed)

        def lose_and_run(self: Engine, *batch: Any, draw: random.Random = draw) -> None:
            hosts = range(self.placement.max_hosts)
            self.touches.lost_hosts |= {draw.choice(hosts) for _ in range(draw.choice((0, 1, 2)))}
            run_batch(self, *batch)

        with patch.object(Engine, "_execute_and_commit", lose_and_run):
            done = check_case(draw_case(seed, KINDS), tmp_path / str(seed))
        held += sum(e.tuples for e in done.run.events() if isinstance(e, HostLost))
    assert held, "no host that holds anything is lost"


def test_no_replica_of_a_lost_host_is_read() -> None:
    hosts = ((0, 1, 2), (1, 2), (2,), (0, 3))
    blocks = [Block(id, 0, (0, 1), 0, each, rows=10) for id, each in enumerate(hosts)]
    places = {(b.id, h): ReplicaAddress(f"{b.id}-{h}", 0) for b in blocks for h in b.hosts}
    copies = plan_recovery(blocks, {1, 2})
    sources = [(c.block.id, *each) for c in copies for each in c.source_hosts.items()]
    assert sources == [(0, 1, 0), (0, 2, 0), (1, 1, STORAGE), (1, 2, STORAGE), (2, 2, STORAGE)]
    state = RunState(replica_addresses=places)
    left = list_remaining_replicas(state, {1, 2}, copies)
    assert {*left} == {(0, 0), (3, 0), (3, 3), (1, STORAGE), (2, STORAGE)}


def make_streams() -> dict[str, pa.Table]:
    """Return two streams. The second becomes the larger one."""
    draw = np.random.default_rng(3)
    return {alias: _make_stream(draw, rows) for alias, rows in (("a", 120), ("b", 400))}


def _make_stream(draw: np.random.Generator, rows: int) -> pa.Table:
    batch = np.sort(draw.integers(0, BATCHES, rows))
    time = pa.array(
        1_000_000 * (10 * batch + draw.integers(0, 10, rows)), pa.timestamp("us", "UTC")
    )
    columns = {"id": np.arange(rows), "x": draw.integers(0, 40, rows), "ts": time}
    return pa.table({**columns, "batch": pa.array(batch, pa.int32())})


def run_touched(
    folder: Path, placement: Placement, touches: Mapping[int, Callable[[Any], None]]
) -> Any:
    """Run a join, change it after these batches, and compare its results with DuckDB's."""
    streams, started = make_streams(), Future[Any]()

    def give(results: pa.Table, batch: int) -> None:
        if batch in touches:
            touches[batch](started.result(60))

    windows = {"windows": "60 seconds", "time": "ts"} if isinstance(placement, Ring) else {}
    join = StreamJoin(streams, "a.x = b.x", placement, check=True, **windows)
    run = join.start(folder, batches="batch", foreachBatch=give, pace=0.001)
    started.set_result(run)
    run.awaitTermination()
    found = result_ids(run.results())
    right = compute_expected(streams, "a.x = b.x", dict.fromkeys(streams, 60) if windows else {})
    assert not (wrong := describe_difference(found, right)), wrong
    return run


def test_a_grid_is_touched_from_the_cockpit_and_a_replay_shows_it(tmp_path: Path) -> None:
    offered: dict[str, dict[str, Any]] = {}

    def touch(run: Any) -> None:
        last = [e for e in run.events() if isinstance(e, BatchCommitted)][-1]
        offered.update({each["name"]: dict(each) for each in list_touches(run, last)})
        for name, selected, value in (
            ("lose", "host:2", ""),
            ("epsilon", "", "0.25"),
            ("interval", "", "0.002"),
        ):
            request = {"name": name, "selected": selected, "value": value}
            assert "next batch" in apply_touch(run, request)
        with pytest.raises(ValueError, match="epsilon is 'much'; it is a number from 0.01 to 1"):
            apply_touch(run, {"name": "epsilon", "value": "much"})

    run = run_touched(tmp_path / "run", AdaptiveGrid(4), {1: touch})
    assert {name: each["value"] for name, each in offered.items()} == {
        "lose": "",
        "kept hosts": "",
        "epsilon": "1",
        "interval": "0.001",
    }
    events = run.events()
    (lost,) = [e for e in events if isinstance(e, HostLost)]
    commits = {e.batch: e for e in events if isinstance(e, BatchCommitted)}
    assert (lost.batch, lost.host) == (2, 2) and 2 not in lost.copied_tuples
    assert 0 < sum(lost.copied_tuples.values()) == lost.tuples - lost.stored_tuples
    assert lost.tuples == commits[1].host_metrics[2].stored_tuples > 0
    assert commits[2].host_metrics[2].migrated_tuples >= lost.tuples
    changed = [
        (e.batch, e.name, e.before, e.after) for e in events if isinstance(e, SettingChanged)
    ]
    assert changed == [(2, "epsilon", 1.0, 0.25), (2, "interval", 0.001, 0.002)]
    page = Cockpit(events).page
    (flag,) = [flag for flag in page["annotations"] if flag["lost"]]
    assert (flag["batch"], flag["kind"], flag["short"]) == (3, "fault", "host 2 lost")
    assert f"loses its {lost.tuples:,} rows" in flag["text"] and "0.25" in flag["text"]
    assert "of 0.002 s a batch" in judge_pace(events)["figure"]


def test_what_no_other_host_holds_is_read_from_storage(tmp_path: Path) -> None:
    run = run_touched(tmp_path / "run", HashPartition(3), {2: lambda run: run.lose(1)})
    (lost,) = [e for e in run.events() if isinstance(e, HostLost)]
    assert lost.stored_tuples == lost.tuples > 0 and not lost.copied_tuples
    with pytest.raises(RuntimeError, match="has ended"):
        run.lose(1)
    with pytest.raises(RuntimeError, match="has ended"):
        run.adjust(interval=1)


def test_a_grid_grows_to_the_hosts_that_its_capacity_asks_for(tmp_path: Path) -> None:
    def shrink(run: Any) -> None:
        names = {each["name"]: each for each in list_touches(run, None)}
        assert names["max_tuples_per_host"]["value"] == "100000" and "kept hosts" not in names
        with pytest.raises(ValueError, match="is '1.5'; it is a whole number from 1 to 1e"):
            apply_touch(run, {"name": "max_tuples_per_host", "value": "1.5"})
        apply_touch(run, {"name": "max_tuples_per_host", "value": "40"})

    grid = AdaptiveGrid(2, epsilon=0.25, max_tuples_per_host=100_000, max_hosts=8)
    run = run_touched(tmp_path / "run", grid, {1: shrink})
    used = [
        len([h for h in e.host_metrics if h.received_tuples]) for e in run.events() if is_commit(e)
    ]
    assert max(used[:2]) == 2 and used[-1] == 8
    assert run.adjustable_settings["max_tuples_per_host"] == 40


def is_commit(event: Any) -> bool:
    return isinstance(event, BatchCommitted) and bool(sum(event.received_tuples))


def test_what_hosts_stay_is_said_with_the_reason(tmp_path: Path) -> None:
    notes = []

    def read(run: Any) -> None:
        notes.extend(each["cost"] for each in list_touches(run, None) if each["kind"] == "note")

        with pytest.raises(ValueError, match="takes no change 'kept hosts'"):
            apply_touch(run, {"name": "kept hosts"})

    run_touched(tmp_path / "hash", HashPartition(3), {0: read})
    run_touched(tmp_path / "ring", Ring(3), {0: read})
    (note,) = notes
    assert note == (
        "HashPartition keeps its 3 hosts in this run: with others, the hash would send nearly all "
        "rows elsewhere. Launch again with others, or ask What if."
    )


def test_a_ring_gets_the_nodes_that_its_user_asks_for(tmp_path: Path) -> None:
    def grow(run: Any) -> None:
        run.adjust(hosts=5)
        assert run.adjustable_settings["hosts"] == 3

    run = run_touched(tmp_path / "run", Ring(3), {0: grow, 3: lambda run: run.adjust(hosts=2)})
    sizes = [(e.previous_nodes, e.nodes) for e in run.events() if isinstance(e, RingResized)]
    assert sizes == [(3, 5), (5, 2)]


def test_bad_touches_change_nothing_and_a_resumed_run_keeps_what_was_set(tmp_path: Path) -> None:
    def refuse(run: Any) -> None:
        run.adjust(epsilon=0.5)
        for call, words in (
            (lambda: run.lose(4), "host is 4; it must be a whole number, 0 or more and at most 3"),
            (lambda: run.lose("2"), "host is '2'"),
            (lambda: run.adjust(epsilon=2.0), "epsilon is 2.0; it must be more than 0"),
            (lambda: run.adjust(hosts=8), "AdaptiveGrid keeps its hosts in an active run"),
            (lambda: run.adjust(interval=-1), "interval is -1; it must be a number of seconds"),
            (lambda: run.adjust(epsilon=0.5, interval=1), "one setting at a time"),
            (lambda: run.adjust(fraction=0.5), "the run sheds no load"),
        ):
            with pytest.raises(ValueError, match=words):
                call()
        raise InterruptedError("the power goes")

    with pytest.raises(RuntimeError, match="the power goes"):
        run_touched(tmp_path / "run", AdaptiveGrid(4), {1: refuse})
    run = run_touched(tmp_path / "run", AdaptiveGrid(4), {})
    assert run.adjustable_settings == {"epsilon": 0.5, "interval": 0.001}
    assert not any(isinstance(e, HostLost) for e in run.events())
    changes = [(e.batch, e.name, e.after) for e in run.events() if isinstance(e, SettingChanged)]
    assert changes == [(2, "epsilon", 0.5)], "it is reported though the process died before"


def test_a_resumed_run_is_judged_by_its_own_pace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkpoint of the log keeps the first start."""
    monkeypatch.setattr(log_checkpointer, "_EVERY", 1)
    runs = list[Any]()
    for pace, end in ((0.125, 4), (0.25, 5), (0.125, BATCHES)):
        stops = Event()

        def stop_run(_: pa.Table, batch: int, end: int = end, stops: Event = stops) -> None:
            assert stops.wait(60)
            if batch + 1 == end:
                runs[-1].stop()

        join = StreamJoin(make_streams(), "a.x = b.x", HashPartition(2))
        run = join.start(tmp_path / "run", batches="batch", foreachBatch=stop_run, pace=pace)
        runs.append(run)
        stops.set()
        run.awaitTermination()
        assert f"of {pace:g} s a batch" in judge_pace(run.events())["figure"]
    assert run.store.log.checkpoint is not None
    changes = [(e.before, e.after) for e in run.events() if isinstance(e, SettingChanged)]
    assert changes == [(0.125, 0.25), (0.25, 0.125)]
