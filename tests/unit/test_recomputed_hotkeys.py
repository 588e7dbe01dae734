"""Frequent join values, recomputed in a few lines that share no code with the project.

The text of Afrati 2015 is not at hand; recomputed is what follows from the idea that a tuple of a
frequent value is stored once and probes all hosts of the value, or, if the other stream rarely has
the value, meets its tuples on its own host, as all hosts store them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from braid.core.run_events import BatchCommitted
from braid.papers.baselines.hash_partition import HashPartition
from braid.papers.hotkeys.hot_keys import HotKeys
from braid_lab.hotkeys.experiments import KEYS, SkewSetting, run_skewed_join

pytestmark = pytest.mark.unit
HOSTS = 8
SETTING = SkewSetting(1.2, shift=True, rows=800, batches=8, hosts=HOSTS, window_share=1.0)


def zipf(z: float) -> list[float]:
    weights = [1 / rank**z for rank in range(1, KEYS + 1)]
    total = sum(weights)
    return [w / total for w in weights]


def commits(events: Iterable[Any]) -> list[BatchCommitted]:
    return [e for e in events if isinstance(e, BatchCommitted)]


@cache
def run(kind: type[Any], setting: SkewSetting = SETTING) -> list[BatchCommitted]:
    return commits(run_skewed_join(kind(setting.hosts), setting))


def busiest_share(done: list[BatchCommitted]) -> float:
    """Return the busiest host's part of the compared pairs."""
    by_host = [
        sum(host.compared_pairs for host in each)
        for each in zip(*(e.host_metrics for e in done), strict=True)
    ]
    return max(by_host) / sum(by_host)


def test_a_hash_gives_its_busiest_host_the_pairs_of_the_first_value() -> None:
    """And HotKeys gives no host twice its part of all pairs."""
    steady = SkewSetting(1.2, rows=800, batches=8, hosts=HOSTS, window_share=1.0)
    shares = zipf(1.2)
    first = shares[0] ** 2 / sum(p * p for p in shares)
    assert busiest_share(run(HashPartition, steady)) == pytest.approx(
        first + (1 - first) / HOSTS, abs=0.1
    )
    assert busiest_share(run(HotKeys, steady)[4:]) < 2 / HOSTS


def test_stored_once_is_less_than_any_grid_of_hosts_for_one_value() -> None:
    """A grid of n x m hosts stores m |R| + n |S|, at least 2 sqrt(n m |R| |S|)."""
    sizes = Counter(int(k) for t in SETTING.make_streams().values() for k in t["k"].to_numpy())
    (_, most), *_ = sizes.most_common()
    grids = [(n * most + HOSTS // n * most) / 2 for n in (1, 2, 4, 8)]
    assert min(grids) >= (HOSTS * most * most) ** 0.5
    last = run(HotKeys)[-1]
    stored = last.total_host_metrics.stored_tuples
    assert stored == sum(last.total_received_tuples) < stored - most + min(grids)


def test_every_pair_is_found_once_while_the_frequent_values_change() -> None:
    a, b = (Counter(t["k"].to_pylist()) for t in SETTING.make_streams().values())
    assert sum(e.results for e in run(HotKeys)) == sum(a[k] * b[k] for k in a)


def test_a_rare_stream_is_stored_on_all_hosts_and_a_frequent_one_sent_once() -> None:
    """One value has most tuples of both streams: p - 1 more copies of the rare ones exist."""
    setting = SkewSetting(0.0, rows=1200, batches=6, hosts=HOSTS, window_share=1.0)
    streams = {a: t.take(np.arange(0, t.num_rows, n)) for a, t, n in make_rare_stream(setting)}
    counts = {alias: Counter(table["k"].to_pylist()) for alias, table in streams.items()}
    hot = max(counts["a"], key=lambda k: counts["a"][k])
    last = commits(run_skewed_join(HotKeys(HOSTS), setting, streams))[-1]
    stored = last.total_host_metrics.stored_tuples
    assert stored == sum(last.total_received_tuples) + (HOSTS - 1) * counts["b"][hot]
    came = streams["b"].filter(pa.compute.equal(streams["b"]["batch"], setting.batches - 1))
    copies = (HOSTS - 1) * came["k"].to_pylist().count(hot)
    assert last.total_host_metrics.received_tuples == sum(last.received_tuples) + copies
    assert stored <= 1.3 * sum(last.total_received_tuples)
    found = sum(e.results for e in commits(run_skewed_join(HashPartition(HOSTS), setting, streams)))
    assert found == sum(counts["a"][k] * n for k, n in counts["b"].items())


def make_rare_stream(setting: SkewSetting) -> list[tuple[str, pa.Table, int]]:
    """Return each stream, in which one value has 60% of the tuples, and how few rows are taken."""
    draw = np.random.default_rng(3)
    streams = setting.make_streams()
    is_hot = draw.random(setting.rows) < 0.6
    return [
        (a, t.set_column(1, "k", pa.array(np.where(is_hot, -1, t["k"].to_numpy()))), n)
        for (a, t), n in zip(streams.items(), (1, 40), strict=True)
    ]
