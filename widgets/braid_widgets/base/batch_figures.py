"""Figures of one committed batch, and totals of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from braid.core.batch_history import PHASES
from braid.core.run_events import BatchCommitted, EventsTrimmed
from braid.papers.theta.mapping import input_load_factor
from braid.papers.theta.run_events import MigrationStarted
from braid_lab.theta.bounds import optimal_ilf


@dataclass(frozen=True, slots=True)
class GroupMapping:
    """The (n, m) mapping of a group of hosts, and the mapping before it.

    - ``cells``: (row, column) by host.
    - ``before``: the previous mapping; None if there was none.
    """

    mapping: tuple[int, int]
    cells: Mapping[int, tuple[int, int]]
    before: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class BatchFigures:
    """The figures of one batch on the timeline.

    - ``ilf``, ``ilf_max``: mean and maximum of tuples stored per host in use, counted after the
      batch. The mean can dip during a migration, because copies are still to come.
    - ``ilf_mapping``: |R|/n + |S|/m of the current mapping; None for a placement without a grid.
    - ``ilf_optimal``: ILF*, the minimum over all mappings of as many hosts for the same |R| and
      |S|, computed by an oracle.
    - ``ratio``: ILF of the mapping divided by ILF*, with tuples weighted by size; NaN without a
      grid and before any tuple is live.
    - ``bound``: the bound of Theorem 4.1 on the ratio in this batch; None if the theorem does not
      apply.
    - ``ilf_before``: the ILF of the mapping before the last change; None if there was none, and for
      several groups.
    - ``seconds``: wall-clock time; NaN if the clock is modelled.
    - ``seconds_by_phase``: the phases of ``seconds``, if measured (see ``core.batch_history``);
      empty for a recording without phases.

    Source: Elseidy 2014, section 3.3 and figure 5k.
    """

    batch: int
    live: tuple[int, ...]
    hosts: int
    ilf: float
    ilf_max: int
    ilf_mapping: float | None
    ilf_optimal: float
    ratio: float
    migrating: bool
    received: int
    results: int
    sent: int
    migrated_tuples: int
    seconds: float
    seconds_by_phase: Mapping[str, float] = field(default_factory=dict)
    bound: float | None = None
    ilf_before: float | None = None


def make_batch_figures(
    event: BatchCommitted,
    grids: Mapping[int, GroupMapping],
    hosts: int,
    migrating: bool,
    modelled: bool,
    sizes: tuple[float, float] = (1.0, 1.0),
) -> BatchFigures:
    """Return the figures of a batch under the current grids.

    - ``hosts``: number of hosts in use if there are no grids.
    - ``sizes``: size of a tuple of R and of S, in any unit.
    """
    used = sorted(h for g in grids.values() for h in g.cells) or list(range(hosts))
    metrics = dict(enumerate(event.host_metrics))
    stored = [metrics[h].stored_tuples if h in metrics else 0 for h in used]
    r, s = (*event.live_tuples, 0, 0)[:2]
    sized = r * sizes[0], s * sizes[1]
    load, least = _compute_mean_ilf(grids, *sized), optimal_ilf(*sized, len(used))
    (before,) = [g.before for g in grids.values()] if len(grids) == 1 else (None,)
    seconds = {} if modelled else event.seconds_by_phase
    return BatchFigures(
        batch=event.batch,
        live=tuple(event.live_tuples),
        hosts=len(used),
        ilf=sum(stored) / len(used),
        ilf_max=max(stored),
        ilf_mapping=_compute_mean_ilf(grids, r, s),
        ilf_before=None if before is None else input_load_factor(r, s, *before),
        ilf_optimal=float(optimal_ilf(r, s, len(used))),
        ratio=load / least if load is not None and least else float("nan"),
        migrating=migrating,
        received=sum(event.received_tuples),
        results=event.results,
        sent=event.total_host_metrics.received_tuples,
        migrated_tuples=event.total_host_metrics.migrated_tuples,
        seconds=seconds.get("total", float("nan")),
        seconds_by_phase={p: seconds[p] for p in PHASES} if {*PHASES} <= seconds.keys() else {},
    )


def _compute_mean_ilf(grids: Mapping[int, GroupMapping], r: float, s: float) -> float | None:
    """Return the mean of |R|/n + |S|/m over hosts; None without a grid.

    A group of J_g of all J hosts stores J_g/J of the tuples. Source: Elseidy 2014, section 4.2.2.
    """
    total = sum(len(g.cells) for g in grids.values())
    shares = [(len(g.cells) / total, g.mapping) for g in grids.values()]
    ilf = sum(share * share * input_load_factor(r, s, n, m) for share, (n, m) in shares)
    return float(ilf) if grids else None


@dataclass(frozen=True, slots=True)
class RunTotals:
    """The totals of a run so far.

    - ``stored``, ``stored_bytes``: currently held, with replicas.
    - ``batches``, ``results``, ``received``: sums over all batches.
    - ``ratio_max``: the maximum over batches in which |R| and |S| are within a factor J, as Theorem
      4.1 assumes.
    """

    batches: int = 0
    received: tuple[int, ...] = ()
    results: int = 0
    sent: int = 0
    sent_bytes: int = 0
    stored: int = 0
    stored_bytes: int = 0
    moved: int = 0
    moved_bytes: int = 0
    late: int = 0
    migrations: int = 0
    ratio_max: float = float("nan")

    @classmethod
    def from_trimmed(cls, dropped: EventsTrimmed) -> RunTotals:
        """Return the totals of the batches whose events were trimmed; their ratio is unknown."""
        metrics, kinds = dropped.total_host_metrics, dropped.event_counts
        return cls(
            batches=dropped.batch + 1,
            results=dropped.results,
            sent=metrics.received_tuples,
            sent_bytes=metrics.received_bytes,
            moved=metrics.migrated_tuples,
            moved_bytes=metrics.migrated_bytes,
            late=sum(dropped.late_tuples),
            migrations=kinds.get(MigrationStarted.__name__, 0),
        )

    def with_batch(self, event: BatchCommitted, point: BatchFigures) -> RunTotals:
        """Return the totals with one more batch added."""
        r, s = (*point.live, 0, 0)[:2]
        is_comparable = 0 < r <= point.hosts * s and s <= point.hosts * r
        metrics = event.total_host_metrics
        return replace(
            self,
            batches=self.batches + 1,
            received=tuple(event.total_received_tuples),
            results=self.results + event.results,
            sent=self.sent + metrics.received_tuples,
            sent_bytes=self.sent_bytes + metrics.received_bytes,
            stored=metrics.stored_tuples,
            stored_bytes=metrics.stored_bytes,
            moved=self.moved + metrics.migrated_tuples,
            moved_bytes=self.moved_bytes + metrics.migrated_bytes,
            late=self.late + sum(event.late_tuples),
            ratio_max=np.fmax(self.ratio_max, point.ratio) if is_comparable else self.ratio_max,
        )
