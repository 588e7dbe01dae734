"""Frequent join values, recomputed in a few lines that share no code with the project.

The text of Afrati 2015 is not at hand; recomputed is what follows from the idea that a tuple of a
frequent value is stored once and probes all hosts of the value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

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
