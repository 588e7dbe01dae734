"""Pooled probes find, count and plan what each block probed alone does, for every placement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from braid import Centralized
from braid.condition.access_paths import IndexCondition, Order
from braid.condition.predicate import Predicate
from braid.core.event_jsonl import decode_event
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted, BatchPlanned
from braid.execution import path_probing, probe_pools
from braid.execution.path_probing import PathProber
from braid.execution.probe_pools import PoolBuilder
from braid.execution.thread_executor import ThreadExecutor
from braid.kernels.block_builder import build_block, gather_blocks
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.meetings import Meetings, split_by_origin
from braid.kernels.probe import BlockJoiner, ProbeInput
from braid.papers.baselines.hash_partition import HashPartition
from braid.storage.block_files import read_parquet
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from oracle import PLACEMENTS, compute_expected, make_tables, result_ids
from shared_kind_runs import run_random_queries

EQUAL = "a.k = b.k"
FREQUENT = "a.flag = b.flag"
"""A condition whose two values are shared out."""
BAND = "a.n - b.n BETWEEN -20 AND 20"
RANGES = f"{BAND} AND a.k <= b.k AND a.f - b.f BETWEEN -2 AND 2"
"""Conditions with several ranges. The search takes two, chosen by the rows searched together."""
WITHIN = "a.k = b.k AND a.n < b.n"
CHAIN = "a.k = b.k AND b.k = c.k"
TWO_VALUES = "a.k = b.k AND b.s = c.s"
"""A condition with two equalities, for placements that use several."""
ROWS = {
    CHAIN: dict.fromkeys("abc", 60),
    TWO_VALUES: {"a": 120, "b": 30, "c": 30},
    FREQUENT: dict.fromkeys("ab", 100),
}
"""Rows by stream; 60 each of others. The fast stream changes the shares of a hypercube."""
WINDOWS = {"a": 90, "b": 150}


@pytest.fixture(autouse=True)
def _one_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each task counts its probing rows, and how many there are depends on seconds."""
    monkeypatch.setattr("braid.arrow_join.make_executor", lambda way: ThreadExecutor(1))


def _cases() -> Iterator[Any]:
    for name, placement in {type(p): (n, p) for n, p in PLACEMENTS.items()}.values():
        if placement.supports_streams(2):
            on = FREQUENT if placement.keys_per_value > 1 else EQUAL
            yield pytest.param(placement, on, WINDOWS, {"how": "left"}, id=f"{name}, left")
        if placement.supports_streams(2) and placement.routing_key_source == "tuple":
            yield pytest.param(placement, RANGES, WINDOWS, {}, id=f"{name}, ranges")
        if placement.supports_streams(3):
            on = TWO_VALUES if placement.routing_key_source == "equalities" else CHAIN
            yield pytest.param(placement, on, None, {}, id=f"{name}, 3 streams")


def _run(
    folder: Path, placement: Placement, on: str, windows: Any, more: dict[str, Any]
) -> tuple[Counter[Any], list[Any], list[Any]]:
    """Return the results, the plans, and what each host has done in each batch."""
    rows = ROWS.get(on, dict.fromkeys("ab", 60))
    streams = make_tables("".join(rows), rows, 4)
    waits = windows and {alias: f"{w} seconds" for alias, w in windows.items()}
    join = StreamJoin(streams, on, placement, waits, time="ts", check=True, **more)
    run = join.start(folder, batches="batch")
    run.awaitTermination()
    events = run.events()
    done = [e for e in events if isinstance(e, BatchCommitted)]
    work = [_drop_seconds(e) for e in done]
    how = more.get("how", "inner")
    ids = Counter(map(str, run.results().to_pylist())) if how != "inner" else Counter()
    if how == "inner":
        assert (found := result_ids(run.results())) == compute_expected(streams, on, windows)
        ids = Counter(map(str, found.elements()))
    return ids, [e for e in events if isinstance(e, BatchPlanned)], work


def _drop_seconds(event: BatchCommitted) -> tuple[list[Any], list[Any], list[Any]]:
    """Return what was counted. Bytes of partial results are estimated from averages."""
    hosts = [
        msgspec.structs.replace(metrics, seconds=0.0, received_partial_bytes=0)
        for metrics in event.host_metrics
    ]
    steps = [
        step._replace(seconds=0.0, checks=tuple(c._replace(seconds=0.0) for c in step.checks))
        for step in event.step_counts
    ]
    return hosts, steps, [metrics.received_partial_bytes for metrics in event.host_metrics]


def _compare(one: tuple[Any, Any, Any], other: tuple[Any, Any, Any]) -> None:
    assert one[:2] == other[:2]
    for (*counts, sent), (*others, received) in zip(one[2], other[2], strict=True):
        assert counts == others
        assert sent == pytest.approx(received, rel=0.05, abs=20)


@pytest.mark.parametrize(("placement", "on", "windows", "more"), [*_cases()])
def test_pools_find_and_count_what_blocks_probed_alone_do(
    placement: Placement,
    on: str,
    windows: dict[str, int] | None,
    more: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pooled = _run(tmp_path / "pooled", placement, on, windows, more)
    _probe_alone(monkeypatch)
    _compare(_run(tmp_path / "alone", placement, on, windows, more), pooled)


def _probe_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each arrival probe each block by itself."""
    real = PoolBuilder._list_meetings

    def list_alone(*given: Any) -> Iterator[Any]:
        for key, met in real(*given):
            for number in met.arrivals:
                alone = number, met.block
                yield key._replace(alone=alone), met._replace(arrivals=[number])

    monkeypatch.setattr(PoolBuilder, "_list_meetings", list_alone)


@pytest.mark.parametrize("seed", range(4))
def test_pools_of_shared_runs_find_and_count_what_blocks_probed_alone_do(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Queries of all kinds come and go; a block is probed for some of them only."""
    monkeypatch.setattr("unit.test_sharing.AlternatingExecutor", lambda: ThreadExecutor(1))
    sizes = list[int]()
    real = PoolBuilder.make_pools

    def make_pools(*given: Any) -> Any:
        pools = real(*given)
        sizes.extend(len(pool.blocks) for pool in pools)
        return pools

    monkeypatch.setattr(PoolBuilder, "make_pools", make_pools)
    pooled = _run_shared(seed, tmp_path / "pooled")
    assert max(sizes) > 1
    _probe_alone(monkeypatch)
    sizes.clear()
    _compare(_run_shared(seed, tmp_path / "alone"), pooled)
    assert max(sizes) == 1


def _run_shared(seed: int, folder: Path) -> tuple[Counter[Any], list[Any], list[Any]]:
    """Return the results, the plans, and what each host has done in each batch."""
    assert not [*run_random_queries(seed, folder)]
    store = RunStore(folder)
    store.log.read_new_entries()
    events = [*map(decode_event, (folder / "events.jsonl").read_bytes().splitlines())]
    rows = [read_parquet(file).to_pylist() for file in store.results.result_files(0, None)]
    done = [_drop_seconds(e) for e in events if isinstance(e, BatchCommitted)]
    plans = [e for e in events if isinstance(e, BatchPlanned)]
    return Counter(map(repr, chain(*rows))), plans, done


def test_hosts_share_pools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One pool for stored blocks and one for fresh ones of each stream, on any number of hosts."""
    made = []
    real = PoolBuilder.make_pools

    def make_pools(*given: Any) -> Any:
        pools = real(*given)
        made.append([(len(pool.arrivals), len(pool.blocks)) for pool in pools])
        return pools

    monkeypatch.setattr(PoolBuilder, "make_pools", make_pools)
    [hashed] = [p for n, p in PLACEMENTS.items() if n == "HashPartition(hosts=5)"]
    _run(tmp_path, replace(hashed, hosts=16), EQUAL, None, {})
    assert max(map(len, made)) == 2
    assert max(arrivals for pools in made for arrivals, _ in pools) > 8


def test_tables_and_bytes_of_pools_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [hashed] = [p for n, p in PLACEMENTS.items() if n == "HashPartition(hosts=5)"]
    whole = _run(tmp_path / "whole", hashed, CHAIN, None, {})
    monkeypatch.setattr(probe_pools, "_MOST_CELLS", 12)
    monkeypatch.setattr(probe_pools, "BYTES", 600)
    _compare(_run(tmp_path / "bounded", hashed, CHAIN, None, {}), whole)


def test_a_pair_belongs_to_the_meeting_of_its_arrival_and_its_block() -> None:
    """Pairs of an arrival and a block that do not meet are neither found nor counted."""
    predicate = Predicate(
        ("a", "b"), (None, None), ({"k": "k"}, {"k": "k"}), ({}, {}),
        (IndexCondition((0, "k"), (1, "k"), 0, 0),), (),
    )  # fmt: skip
    values = [[0, 1, 1], [1, 2], [0, 2, 2]]
    blocks = [BlockRows(build_block(_make_rows(keys), (Order("k"),))) for keys in values]
    arrivals = [PartialMatches({0: (rows, rows.row_positions())}) for rows in blocks]
    numbered = [replace(p, origins=np.full(len(p), n)) for n, p in enumerate(arrivals)]
    due = [(0, 1), (0, 2), (1, 0), (2, 2)]
    meetings = Meetings.from_pairs(*map(np.array, zip(*due, strict=True)), (3, 3))
    rows, count = gather_blocks(blocks, (Order("k"),)), SimpleNamespace(compared_pairs=0)
    probe = ProbeInput(PartialMatches.concat_all(numbered), rows, False, count, meetings=meetings)
    found = [f for _, f in BlockJoiner(predicate, (None, None)).probe_blocks([probe], 1)]
    expected = [sum(k == other for k in values[a] for other in values[b]) for a, b in due]
    assert count.compared_pairs.tolist() == expected
    assert sum(meetings.count_matches(f, 1) for f in found).tolist() == expected
    split = Counter[int]()
    for number, part in (each for f in found for each in split_by_origin(f)):
        split[number] += len(part)
    assert split == Counter(
        {a: sum(n for (x, _), n in zip(due, expected, strict=True) if x == a) for a in range(3)}
    )


def _make_rows(keys: list[int]) -> pa.RecordBatch:
    columns = {"k": keys, "__time": [0] * len(keys), "__key": [0] * len(keys)}
    return pa.record_batch({name: pa.array(each, pa.int64()) for name, each in columns.items()})


@pytest.mark.parametrize(
    ("hosts", "on", "windows", "more"),
    [
        (1, EQUAL, WINDOWS, {"how": "left"}),
        (2, CHAIN, None, {}),
        (1, BAND, None, {}),
        (1, RANGES, None, {}),
        (2, WITHIN, None, {}),
    ],
)
def test_threads_share_the_rows_of_few_hosts(
    hosts: int,
    on: str,
    windows: dict[str, int] | None,
    more: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three threads find and count what one does, and each of them finds something."""
    placement = Centralized() if hosts == 1 else HashPartition(hosts)
    one = _run(tmp_path / "one", placement, on, windows, more)
    monkeypatch.setattr("braid.arrow_join.make_executor", lambda way: ThreadExecutor(3, alone=0))
    monkeypatch.setattr(path_probing, "SMALL", 4)
    shares, real = Counter[int](), PathProber.probe_share

    def probe_share(prober: PathProber, here: Any, number: int, tasks: int) -> None:
        real(prober, here, number, tasks)
        shares[number] += prober.results.rows

    monkeypatch.setattr(PathProber, "probe_share", probe_share)
    _compare(_run(tmp_path / "shared", placement, on, windows, more), one)
    assert len(shares) == 3 and all(shares.values())
