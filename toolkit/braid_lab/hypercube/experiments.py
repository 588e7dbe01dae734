"""A chain of three streams whose rates change, by a hypercube and by placements that hop.

Everything is counted in joins of tables in this process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from braid.core.placement import Placement
from braid.core.run_events import BatchCommitted
from braid.papers.hypercube import hypercube
from braid.papers.hypercube.hypercube import HyperCube
from braid.papers.hypercube.run_events import SharesChosen
from braid.stream_join import StreamJoin

from braid_lab.common.recorded_settings import record_values

CONDITION = "a.x = b.x AND b.y = c.y"
SECONDS_PER_BATCH = 60
FIXED = "HyperCube, fixed"
"""The hypercube with the shares that are best at equal rates: for 16 hosts a square."""
PLACEMENTS = ("HyperCube", FIXED, "Aligned (ATR)", "Coordinated (CTR)", "Ring (PSP)")
"""The placements that are compared."""


@dataclass(frozen=True)
class ChainSetting:
    """Three streams a, b and c that join as a chain.

    - ``first_rates``, ``later_rates``: tuples of each stream in a batch, in the first and in the
      second half.
    - ``batches``: micro-batches, of a minute of event time each.
    - ``hosts``: number of hosts.
    - ``values``: distinct values of each column.
    - ``window_batches``: length of the windows, in batches.
    - ``seed``: seed of the generator.
    """

    first_rates: tuple[int, ...] = (160, 20, 20)
    later_rates: tuple[int, ...] = (20, 20, 160)
    batches: int = 36
    hosts: int = 16
    values: int = 1000
    window_batches: int = 6
    seed: int = 0

    @property
    def window(self) -> str:
        """The window of all streams."""
        return f"{self.window_batches * SECONDS_PER_BATCH} seconds"

    def list_counts(self) -> list[tuple[int, ...]]:
        """Return the tuples of each stream by batch."""
        half = self.batches // 2
        return [self.first_rates] * half + [self.later_rates] * (self.batches - half)

    def make_streams(self) -> dict[str, pa.Table]:
        """Return the streams. The event times of a batch are spread over its minute."""
        counts = np.array(self.list_counts())
        return {alias: self._make_stream(n, counts[:, n]) for n, alias in enumerate("abc")}

    def _make_stream(self, number: int, counts: np.ndarray) -> pa.Table:
        draw = np.random.default_rng([self.seed, number])
        batch, rows = np.repeat(np.arange(len(counts)), counts), int(counts.sum())
        within = np.concatenate([np.arange(n) / n for n in counts])
        micros = ((batch + within) * SECONDS_PER_BATCH * 1e6).astype(np.int64)
        columns = {
            "ts": pa.array(micros, pa.timestamp("us")),
            "x": draw.integers(0, self.values, rows),
            "y": draw.integers(0, self.values, rows),
            "batch": pa.array(batch, pa.int32()),
        }
        return pa.table(columns)


def make_placement(name: str, hosts: int) -> Placement:
    """Return one of the placements that are compared."""
    if name == FIXED:
        return HyperCube(hosts, threshold=1e-9)
    kind = Placement.class_by_name(name.split(" ")[0])
    return kind.from_settings({"hosts": hosts})


def run_chain_join(placement: Placement, setting: ChainSetting) -> list[Any]:
    """Return the events of a run in this process."""
    streams = setting.make_streams()
    windows = dict.fromkeys(streams, setting.window)
    join = StreamJoin(streams, CONDITION, placement, windows, "ts", executor="process", check=False)
    with TemporaryDirectory() as folder:
        run = join.start(Path(folder) / "run", batches="batch")
        run.awaitTermination()
        return list(run.events())


def summarize_halves(events: Iterable[Any], setting: ChainSetting) -> list[dict[str, Any]]:
    """Return figures of the last quarter of each half of a run.

    - ``rates``: tuples of each stream in a batch.
    - ``received``: tuples that hosts receive, over those that came.
    - ``intermediate``: intermediate results that travel between hosts, over the same.
    - ``sent``: both together.
    - ``stored``: tuples on all hosts, over those of a window.
    - ``compared``: compared pairs, over the tuples that came.
    - ``busiest``: busiest host over mean, by received tuples.
    - ``moved``: migrated tuples of the half, over those that came in it.
    - ``results``: all results of the half.
    """
    commits = [e for e in events if isinstance(e, BatchCommitted)][: setting.batches]
    half = setting.batches // 2
    return [_summarize_half(each, setting) for each in (commits[:half], commits[half:])]


def _summarize_half(commits: Sequence[BatchCommitted], setting: ChainSetting) -> dict[str, Any]:
    last = commits[-max(1, len(commits) // 4) :]
    arrived = sum(sum(e.received_tuples) for e in last)
    totals = [e.total_host_metrics for e in last]
    received = sum(t.received_tuples for t in totals) / arrived
    partials = sum(t.received_partials for t in totals) / arrived
    by_host = np.sum([[h.received_tuples for h in e.host_metrics] for e in last], axis=0)
    hosts = np.zeros(setting.hosts)
    hosts[: len(by_host)] = by_host
    in_window = arrived / len(last) * setting.window_batches
    moved = sum(e.total_host_metrics.migrated_tuples for e in commits)
    return {
        "rates": ":".join(map(str, last[-1].received_tuples)),
        "received": received,
        "intermediate": partials,
        "sent": received + partials,
        "stored": totals[-1].stored_tuples / in_window,
        "compared": sum(t.compared_pairs for t in totals) / arrived,
        "busiest": float(hosts.max() / hosts.mean()),
        "moved": moved / sum(sum(e.received_tuples) for e in commits),
        "results": sum(e.results for e in commits),
    }


def measure_placement(placement: Placement, setting: ChainSetting) -> list[dict[str, Any]]:
    """Return the figures of a run, by half."""
    return summarize_halves(run_chain_join(placement, setting), setting)


def compare_placements(setting: ChainSetting, names: Sequence[str] = PLACEMENTS) -> pd.DataFrame:
    """Return the figures of ``summarize_halves``, two rows for each placement."""
    rows = []
    for name in names:
        halves = measure_placement(make_placement(name, setting.hosts), setting)
        rows += [{"placement": name, "half": n} | each for n, each in enumerate(halves, 1)]
    recorded = ("hosts", "batches", "window_batches", "values", "seed")
    return record_values(
        pd.DataFrame(rows),
        first=":".join(map(str, setting.first_rates)),
        later=":".join(map(str, setting.later_rates)),
        counted=max(1, setting.batches // 2 // 4),
        threshold=HyperCube.threshold,
        memory=hypercube.MEMORY,
        **{name: getattr(setting, name) for name in recorded},
    )


def list_shares(events: Iterable[Any]) -> pd.DataFrame:
    """Return the choices of shares, with the hosts that receive a tuple before and after."""
    rows = [
        {
            "batch": e.batch + 1,
            "shares": " x ".join(map(str, e.shares)),
            "hosts that receive a tuple, before": e.previous_copies,
            "after": e.copies,
        }
        for e in events
        if isinstance(e, SharesChosen)
    ]
    return pd.DataFrame(rows)


def received_by_batch(events: Iterable[Any]) -> pd.DataFrame:
    """Return, by batch, the hosts that receive a tuple, on average, and the tuples that move."""
    return pd.DataFrame(
        [
            {
                "batch": e.batch + 1,
                "received": e.total_host_metrics.received_tuples / max(1, sum(e.received_tuples)),
                "moved": e.total_host_metrics.migrated_tuples,
            }
            for e in events
            if isinstance(e, BatchCommitted)
        ]
    )
