"""A model of the cluster of Elseidy 2014, section 5.

Real placements plan the joins of Table 1 at the paper's sizes, with tuples as counts; each joiner's
time follows from what it receives. Every time, throughput and latency here is modelled. Loads are
counts of the real policy, and the spread of join values over hosts is counted in real data
(``join_inputs``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted, BatchPlanned
from braid.papers.baselines.hash_partition import HashPartition
from braid.papers.theta.grid import AdaptiveGrid, StaticGrid, StaticOpt
from braid.papers.theta.run_events import MigrationEnded, MigrationStarted
from braid.simulation.simulator import iter_simulation

from braid_lab.theta.join_inputs import JoinInput

Floats = npt.NDArray[np.float64]
OPERATORS = ("SHJ", "StaticMid", "Dynamic", "StaticOpt")
"""The operators by the paper's names."""
EPSILON = 1.0
"""The adaptive grid's epsilon, that of Theorem 4.1's bound of 1.25."""
GB = 10.0
"""The paper's 10 GB are TPC-H at scale factor 10: a gigabyte is a scale factor of one."""


@dataclass(frozen=True)
class ModelledMachine:
    """One machine of the modelled cluster.

    - ``tuple_us``: microseconds to receive, store and probe with a tuple: 79 s for the 3.75 million
      that SHJ gives each of 16 machines without skew (Table 2).
    - ``result_us``: microseconds to make a result.
    - ``disk``: factor of a tuple's time if the memory is full. The paper gives neither this nor
      ``result_us``. With these values a computing join is bound by its results, and disk costs more
      than an order of magnitude, as the paper says.
    - ``memory_mb``: memory of the heap.
    - ``tuple_bytes``: bytes of a stored tuple: 14 MB for a hundredth of 7.5 million (Fig. 5a).
    - ``hop_ms``: milliseconds for a tuple to travel.
    """

    tuple_us: float = 21.0
    result_us: float = 1.0
    disk: float = 30.0
    memory_mb: float = 2000.0
    tuple_bytes: int = 190
    hop_ms: float = 5.0

    @property
    def capacity_tuples(self) -> float:
        """Tuples that fit in memory."""
        return self.memory_mb * 1e6 / self.tuple_bytes

    @property
    def prices(self) -> dict[str, float]:
        """The prices of modelled seconds by name."""
        return {name: getattr(self, name) for name in ("tuple_us", "result_us", "disk", "hop_ms")}


JOINER = ModelledMachine()
"""The paper's machine, from the numbers that it gives."""


def make_operator(name: str, hosts: int, sizes: tuple[float, float]) -> Placement:
    """Return one of OPERATORS; the oracle gets the final ``sizes`` of the streams.

    Raises ValueError for another name.
    """
    operators: dict[str, Placement] = {
        "SHJ": HashPartition(hosts),
        "StaticMid": StaticGrid(hosts),
        "Dynamic": AdaptiveGrid(hosts, epsilon=EPSILON),
        "StaticOpt": StaticOpt(hosts, final_sizes=sizes),
    }
    if name not in operators:
        raise ValueError(f"no operator is named {name!r}; there are: {', '.join(OPERATORS)}")
    return operators[name]


def even_batches(r: float, s: float, batches: int) -> list[tuple[int, int]]:
    """Return batches of R and S of equal size, but with the first one in fifths.

    The input should be small before a grid has adapted.
    """
    at = np.concatenate([np.linspace(0, 1, 6)[:-1], np.arange(1, batches + 1)]) / batches
    edges = [np.rint(n * at).astype(int) for n in (r, s)]
    return [(int(a), int(b)) for a, b in zip(*(np.diff(each) for each in edges), strict=True)]


def simulate_progress(
    name: str,
    of: JoinInput,
    times: float,
    hosts: int,
    batches: int | Sequence[tuple[int, int]] = 20,
    joiner: ModelledMachine = JOINER,
    seed: int = 0,
) -> pd.DataFrame:
    """Return a join under an operator, a row for each micro-batch.

    The input is as counted, ``times`` as large. Columns: percent (of the input that has arrived)
    and tuples (their number), stored_mean and stored_max (tuples on a host, the input-load factor),
    overflow (whether a host's memory is full), migrating, sent and moved (tuples, over all hosts,
    new ones and those of a migration), seconds_modelled and results_modelled (since the start),
    latency_ms_modelled (of the results of the batch).
    """
    r, s = of.r_tuples * times, of.s_tuples * times
    comes = even_batches(r, s, batches) if isinstance(batches, int) else list(batches)
    results = of.results * times**of.growth
    shares: Shares = ()
    weight: Floats | float = results / (r * s)
    if make_operator(name, hosts, (r, s)).routing_key_source == "join":
        on_r, on_s, matches = of.hash_distribution(hosts, seed)
        shares = tuple(tuple((on / on.sum()).tolist()) for on in (on_r, on_s))
        pairs = (on_r * on_s).astype(float)
        weight = np.divide(matches, pairs, out=np.zeros(hosts), where=pairs > 0) / times
    ran = _simulate_batches(name, hosts, (r, s), tuple(comes), seed, shares)
    return pd.DataFrame(list(_make_progress_rows(ran, weight, joiner, sum(map(sum, comes)))))


def _make_progress_rows(
    run: Iterable[_Batch], weight: Floats | float, j: ModelledMachine, total: int
) -> Iterator[dict[str, Any]]:
    received = seconds = results = 0.0
    for b in run:
        new, stored, pairs = (
            b.by_measure["received_tuples"] + b.by_measure["migrated_tuples"],
            b.by_measure["stored_tuples"],
            b.by_measure["compared_pairs"],
        )
        produced = pairs * weight
        full = stored > j.capacity_tuples
        tuples = new * np.where(full, j.disk, 1.0) * j.tuple_us / 1e6
        busy = tuples + produced * j.result_us / 1e6
        took = float(busy.max())
        received, seconds, results = received + b.arrived, seconds + took, results + produced.sum()
        yield {
            "percent": 100 * received / total,
            "tuples": received,
            "stored_mean": stored.mean(),
            "stored_max": int(stored.max()),
            "overflow": bool(full.any()),
            "migrating": b.migrating or bool(b.by_measure["migrated_tuples"].any()),
            "sent": int(b.by_measure["received_tuples"].sum()),
            "moved": int(b.by_measure["migrated_tuples"].sum()),
            "seconds_modelled": seconds,
            "results_modelled": results,
            "latency_ms_modelled": _compute_latency_ms(
                j, new, busy, b.waiting / max(pairs.sum(), 1) * took
            ),
        }


class _Batch(NamedTuple):
    """Counts of a batch, on any machines.

    ``arrived`` are arrived tuples, ``by_measure`` the counts of each host by the names of
    HostMetrics, ``waiting`` the pairs that wait for a migration.
    """

    arrived: int
    by_measure: dict[str, npt.NDArray[np.int64]]
    migrating: bool
    waiting: float


Shares = tuple[tuple[float, ...], ...]
"""By stream, the share of its tuples that has each routing key; empty for equal shares."""


@lru_cache(maxsize=64)
def _simulate_batches(
    name: str,
    hosts: int,
    sizes: tuple[float, float],
    comes: tuple[tuple[int, int], ...],
    seed: int = 0,
    shares: Shares = (),
) -> tuple[_Batch, ...]:
    """Return the batches of an operator; in memory and out of core they are the same."""
    run = iter_simulation(make_operator(name, hosts, sizes), comes, seed, key_shares=shares)
    rows, migrating, waits = [], False, _Waits()
    for e in run:
        if isinstance(e, BatchPlanned):
            waits.add_deferred_pairs(e)
        elif isinstance(e, MigrationStarted | MigrationEnded):
            migrating = isinstance(e, MigrationStarted)
        elif isinstance(e, BatchCommitted):
            counts = {n: np.array([getattr(h, n) for h in e.host_metrics]) for n in _COUNTS}
            rows.append(
                _Batch(sum(e.received_tuples), counts, migrating, waits.count_waiting_pairs(e))
            )
    return tuple(rows)


_COUNTS = ("received_tuples", "migrated_tuples", "stored_tuples", "compared_pairs")


def _compute_latency_ms(
    j: ModelledMachine, new: npt.NDArray[np.int64], busy: Floats, waited: float
) -> float:
    """Return the milliseconds from a tuple's arrival to a result of it.

    They are two hops, to the reshuffler and to the joiner; the joiner's time for it; and the mean
    wait of results for tuples that migrate.
    """
    return 2 * j.hop_ms + 1000 * float(busy.sum() / max(new.sum(), 1)) + 1000 * waited


class _Waits:
    """The pending pairs of tuples, with a member that is still to be copied (Algorithm 3)."""

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}
        self.pending: dict[int, set[int]] = {}
        """By block that is to be copied, the later blocks that have not met it yet."""

    def add_deferred_pairs(self, e: BatchPlanned) -> None:
        """Count pairs that the routes of a batch settle and defer."""
        for route in e.routes:
            id = route.block.id
            if not route.is_fresh:
                met = {b for path in route.paths for hop in path for b in hop.probed_blocks()}
                self.pending.get(id, set()).difference_update(met)
                for late in (self.pending[b] for b in met & self.pending.keys()):
                    late.discard(id)
            for b in route.deferred_blocks:
                self.pending.setdefault(b, set()).add(id)

    def count_waiting_pairs(self, e: BatchCommitted) -> float:
        """Return the pairs of tuples that wait after a batch."""
        rows = self.rows
        rows.update({b.id: b.rows for b in e.changed_blocks})
        for id in e.dropped_block_ids:
            rows.pop(id, None)
        self.pending = {
            b: left
            for b, late in self.pending.items()
            if b in rows and (left := late & rows.keys())
        }
        waiting = (rows[b] * sum(map(rows.__getitem__, late)) for b, late in self.pending.items())
        return float(sum(waiting))
