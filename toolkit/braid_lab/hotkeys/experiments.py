"""Joins of two streams with Zipf skew, by a hash, a grid and HotKeys.

Everything is counted in joins of tables in this process. ``work`` is modelled: the microseconds by
which HotKeys decides, of the counted tuples and pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted
from braid.papers.baselines.hash_partition import HashPartition
from braid.papers.hotkeys.hot_keys import HotKeys
from braid.papers.hotkeys.run_events import SpreadChanged
from braid.papers.hotkeys.value_work import PAIR, TUPLE
from braid.stream_join import StreamJoin

from braid_lab.common.recorded_settings import record_values
from braid_lab.workloads.zipf_skew import zipf_probabilities

KEYS = 30_000
"""Distinct join values."""
SECONDS_PER_BATCH = 60
PLACEMENTS = ("HashPartition", "AdaptiveGrid", "HotKeys")
"""The placements that are compared."""


@dataclass(frozen=True)
class SkewSetting:
    """Two streams that join on a value.

    - ``skew``: z of the Zipf distribution of join values.
    - ``shift``: whether half-way the frequent values are exchanged for others.
    - ``rows``: rows of each stream.
    - ``batches``: micro-batches, of a minute of event time each.
    - ``hosts``: number of hosts.
    - ``window_share``: length of the windows, as a share of the run. Default: a third.
    - ``kept_share``: one pair of this many with equal values is a result; 1: all. Default: 1.
    - ``seed``: seed of the generator.
    - ``rarity``: rows of the first stream for each row of the second. Default: 1, equal rates.
    """

    skew: float = 1.2
    shift: bool = False
    rows: int = 20_000
    batches: int = 20
    hosts: int = 16
    window_share: float = 1 / 3
    kept_share: int = 1
    seed: int = 0
    rarity: int = 1

    @property
    def join_condition(self) -> str:
        """The condition of the join."""
        rest = f" AND (a.n + b.n) % {self.kept_share} = 0" if self.kept_share > 1 else ""
        return f"a.k = b.k{rest}"

    @property
    def window_length(self) -> str:
        """The window of both streams."""
        return f"{round(self.batches * SECONDS_PER_BATCH * self.window_share)} seconds"

    def make_streams(self) -> dict[str, pa.Table]:
        """Return the streams a and b. Their batches have event times of a minute each."""
        a, b = (self._make_stream(n) for n in range(2))
        return {"a": a, "b": b.take(np.arange(0, self.rows, self.rarity))}

    def _make_stream(self, number: int) -> pa.Table:
        draw = np.random.default_rng([self.seed, number])
        ranks = draw.choice(KEYS, self.rows, p=zipf_probabilities(KEYS, self.skew))
        batch = np.arange(self.rows) * self.batches // self.rows
        deal = np.random.default_rng(self.seed)
        first, second = deal.permutation(KEYS), deal.permutation(KEYS)
        is_late = np.full(self.rows, self.shift) & (batch >= self.batches // 2)
        micros = np.arange(self.rows) * self.batches * SECONDS_PER_BATCH * 10**6 // self.rows
        columns = {
            "ts": pa.array(micros, pa.timestamp("us")),
            "k": np.where(is_late, second[ranks], first[ranks]),
            "n": draw.integers(0, 1000, self.rows),
            "batch": pa.array(batch, pa.int32()),
        }
        return pa.table(columns)


def run_skewed_join(
    placement: Placement, setting: SkewSetting, streams: Mapping[str, pa.Table] | None = None
) -> list[Any]:
    """Return the events of a run in this process."""
    tables = dict(streams or setting.make_streams())
    windows = dict.fromkeys(tables, setting.window_length)
    join = StreamJoin(
        tables, setting.join_condition, placement, windows, "ts", executor="process", check=False
    )
    with TemporaryDirectory() as folder:
        run = join.start(Path(folder) / "run", batches="batch")
        run.awaitTermination()
        return list(run.events())


def summarize_run(events: Iterable[Any], setting: SkewSetting) -> dict[str, float]:
    """Return figures of a run.

    - ``work``, ``compared``, ``received``: busiest host over mean, in the last half; after a shift,
      in the last quarter.
    - ``sent``: received tuples over those that came, in the same batches.
    - ``stored``: tuples stored on all hosts, on average over the batches.
    - ``moved``: migrated tuples over those that came, in all batches.
    - ``changes``: changes of the spread.
    - ``results``: all results.
    """
    events = list(events)
    commits = [e for e in events if isinstance(e, BatchCommitted)]
    late = commits[-max(1, len(commits) // (4 if setting.shift else 2)) :]
    received = _sum_by_host(late, "received_tuples")
    compared = _sum_by_host(late, "compared_pairs")
    arrived = [sum(e.received_tuples) for e in commits]
    moved = sum(e.total_host_metrics.migrated_tuples for e in commits)
    return {
        "work": _busiest_over_mean(TUPLE * received + PAIR * compared),
        "compared": _busiest_over_mean(compared),
        "received": _busiest_over_mean(received),
        "sent": float(received.sum() / sum(arrived[-len(late) :])),
        "stored": sum(e.total_host_metrics.stored_tuples for e in commits) / len(commits),
        "moved": moved / sum(arrived),
        "changes": sum(isinstance(e, SpreadChanged) for e in events),
        "results": sum(e.results for e in commits),
    }


def _sum_by_host(commits: Sequence[BatchCommitted], metric: str) -> np.ndarray:
    """Return the sums of a metric over some batches, by host."""
    counts = [[getattr(h, metric) for h in e.host_metrics] for e in commits]
    totals: np.ndarray = np.array(counts, dtype=np.int64).sum(axis=0)
    return totals


def _busiest_over_mean(counts: np.ndarray) -> float:
    return float(counts.max() / counts.mean()) if counts.any() else 1.0


def compare_placements(
    settings: Iterable[SkewSetting], names: Sequence[str] = PLACEMENTS
) -> pd.DataFrame:
    """Return the figures of ``summarize_run`` for placements, a row for each setting and name.

    ``stored_over_hash`` is the ratio to the first placement's stored tuples.

    Raises RuntimeError if placements find different numbers of results.
    """
    kinds = {name: Placement.class_by_name(name) for name in names}
    cases = [
        (s, {n: k.from_settings({"hosts": s.hosts}) for n, k in kinds.items()}) for s in settings
    ]
    return _compare(cases)


def compare_forms(settings: Iterable[SkewSetting]) -> pd.DataFrame:
    """Return the same for a hash, and HotKeys without and with copies of rare tuples."""
    return _compare(
        (
            s,
            {
                "HashPartition": HashPartition(s.hosts),
                "HotKeys, each tuple stored once": HotKeys(s.hosts, stored=1),
                "HotKeys": HotKeys(s.hosts),
            },
        )
        for s in settings
    )


def _compare(cases: Iterable[tuple[SkewSetting, Mapping[str, Placement]]]) -> pd.DataFrame:
    rows, settings, spreading = [], [], []
    for setting, placements in cases:
        settings.append(setting)
        spreading += [p for name, p in placements.items() if name == "HotKeys"]
        streams = setting.make_streams()
        for name, placement in placements.items():
            figures = summarize_run(run_skewed_join(placement, setting, streams), setting)
            at: dict[str, Any] = {"z": setting.skew, "seed": setting.seed, "shift": setting.shift}
            rows.append(at | {"placement": name} | figures)
    table = pd.DataFrame(rows)
    same = table.groupby(["z", "seed", "shift"])
    if (same["results"].nunique() > 1).any():
        raise RuntimeError(f"placements differ in their results:\n{table}")
    first = same["stored"].transform("first")
    table = table.assign(stored_over_hash=table["stored"] / first)
    recorded = ("rows", "batches", "hosts", "window_length", "seed")
    values = {n: [getattr(s, n) for s in settings] for n in recorded}
    chosen = {n: [getattr(p, n) for p in spreading] for n in ("target", "rate", "stored")}
    return record_values(table, keys=KEYS, tuple_us=TUPLE, pair_us=PAIR, **values, **chosen)


def busiest_by_batch(events: Iterable[Any]) -> pd.DataFrame:
    """Return, by batch, the work of the busiest host over the mean, and tuples moved."""
    rows = []
    for e in events:
        if isinstance(e, BatchCommitted):
            received = _sum_by_host([e], "received_tuples")
            compared = _sum_by_host([e], "compared_pairs")
            work = _busiest_over_mean(TUPLE * received + PAIR * compared)
            moved = e.total_host_metrics.migrated_tuples
            rows.append({"batch": e.batch + 1, "busiest / mean": work, "moved": moved})
    return pd.DataFrame(rows)


def list_spread_changes(events: Iterable[Any], most: int = 3) -> pd.DataFrame:
    """Return the changes of the spread, with their most frequent values and the hosts of each."""
    rows = [
        {
            "batch": e.batch + 1,
            "frequent values": len(e.spread),
            "the first (value: share, hosts)": "; ".join(
                f"{v.value}: {v.share:.1%}, {len(v.hosts)}" for v in e.spread[:most]
            ),
            "with copies": sum(bool(v.copied_streams) for v in e.spread),
            "busiest / mean before": e.before,
            "after": e.after,
            "tuples to move": e.tuples_to_move,
        }
        for e in events
        if isinstance(e, SpreadChanged)
    ]
    return pd.DataFrame(rows)


def with_shifts(settings: Iterable[SkewSetting]) -> list[SkewSetting]:
    """Return the settings, each also with a shift of the frequent values."""
    return [replace(s, shift=shift) for s in settings for shift in (False, True)]
