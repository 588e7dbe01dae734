"""Simulated runs whose hosts take time: machines, costs, and work that waits or is left undone.

Source: Gu, Yu and Wang 2007, section 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from braid.core.batch_work import BatchWork
from braid.core.cluster_model import (
    GU,
    REFERENCE_MIPS,
    CostParameters,
    HostCapacity,
    check_cluster,
)
from braid.core.facts import HostUsage
from braid.core.placement import Placement
from braid.core.plan import Block
from braid.core.run_events import Event
from braid.simulation.expected_work import ExpectedWork
from braid.simulation.simulated_run import SimulatedRun
from braid.simulation.simulator import iter_simulation

Floats = npt.NDArray[np.float64]
_PASSES = 10
"""Maximum passes to find the share of its work that each host completes. They end earlier if all
busy hosts are within 5 %.
"""

_REFERENCE = HostCapacity()


def iter_cluster_simulation(
    placement: Placement,
    batches: Iterable[Sequence[int]],
    *,
    cluster: Sequence[HostCapacity],
    costs: CostParameters = GU,
    patience: float = 0.0,
    **settings: Any,
) -> Iterator[Any]:
    """Yield the events of a simulated run on a cluster.

    Each host's ``seconds`` are the modelled time that it is busy, and ``seconds_by_phase`` has the
    modelled makespan. A host with too little time does a smaller share of its probes, as in a join
    that sheds load, and the results shrink.

    Parameters
    ----------
    placement, batches
        As for ``iter_simulation``, which takes the other ``settings``.
    cluster
        The machine of every host.
    costs
        Costs of sending, probing and comparing. Default: Gu 2007.
    patience
        Seconds of work that may wait at a host before it sheds. Waiting work is done in later
        batches with spare time; its results count for the batch of its tuples. The placement sees
        the work that a host processed in a batch, so a host with a backlog appears busy. Default:
        0.

    Raises ValueError and CoverageError as ``iter_simulation``, and ValueError if the cluster does
    not describe every host.
    """
    check_cluster(cluster, placement.max_hosts)
    run = partial(ClusterRun, tuple(cluster), costs, patience)
    return iter_simulation(placement, batches, make_run=run, **settings)


class HostQueues:
    """The backlog of each host.

    - ``backlog_seconds``: by host, seconds of waiting work.
    - ``counts``: by host, counts of waiting work: the first five fields of HostUsage.
    - ``done``: the same for the work of the last batch.
    """

    def __init__(self, hosts: int) -> None:
        self.backlog_seconds = np.zeros(hosts)
        self.counts = self.done = np.zeros((5, hosts))

    def process(self, counts: Floats, busy: Floats, seconds: float, patience: float) -> Floats:
        """Add a batch's work, ``busy`` seconds of it, and process for as long as the batch lasts.

        Return the seconds that each host works.
        """
        due = self.backlog_seconds + busy
        worked = np.minimum(due, seconds)
        share = np.divide(worked, due, out=np.ones_like(due), where=due > 0)
        self.counts = self.counts + counts
        self.done = self.counts * share
        self.counts = self.counts - self.done
        self.backlog_seconds = np.clip(due - worked, 0.0, patience)
        return np.asarray(worked)

    def processed_usage(self, usage: Sequence[HostUsage]) -> tuple[HostUsage, ...]:
        """Return the usage of the hosts with processed instead of requested work."""
        columns = np.rint(self.done).astype(np.int64).tolist()
        return tuple(
            HostUsage(
                received,
                arrived,
                sent,
                probed,
                compared,
                h.stored_tuples,
                h.stored_bytes,
                h.network_bytes,
            )
            for h, received, arrived, sent, probed, compared in zip(usage, *columns, strict=False)
        )


class ClusterRun(SimulatedRun):
    """A simulated run on a cluster of machines."""

    def __init__(
        self,
        cluster: tuple[HostCapacity, ...],
        costs: CostParameters,
        patience: float,
        *inputs: Any,
    ) -> None:
        super().__init__(*inputs)
        self.costs, self.patience, self.queue = costs, patience, HostQueues(len(cluster))
        self.slowness = np.array([REFERENCE_MIPS / host.mips for host in cluster])

    def run_batch(self, counts: Sequence[int]) -> list[Event]:
        """Run one batch and return its events.

        The placement then sees the work that hosts have processed.
        """
        events = super().run_batch(counts)
        usage = self.queue.processed_usage(self.state.host_usage)
        self.state = replace(self.state, host_usage=usage)
        return events

    def _model_work(
        self, work: BatchWork, live: Mapping[int, Block], received: np.ndarray
    ) -> tuple[ExpectedWork, Floats, dict[str, float]]:
        """Return the work if every host does what it has time for, with modelled seconds.

        Work that one host leaves undone reduces the work of the hosts after it, so several passes
        are needed.
        """
        paths, share = self._trace_paths(work, live), np.ones(len(received))
        for _ in range(_PASSES):
            expected = ExpectedWork(paths, share)
            busy = self._model_busy_seconds(received, expected)
            needed = busy.sum(axis=0) / (self.seconds + self.patience - self.queue.backlog_seconds)
            if np.all((needed < 1.05) & ((needed > 0.95) | (share == 1))):
                break
            share = np.clip(share / np.sqrt(np.maximum(needed, 1e-6)), 0.0, 1.0)
        self._add_harvest(work, paths, expected)
        makespan = float(busy.max(axis=1).sum())
        if (harvested := expected.harvested) is not None:
            probing = busy.sum(axis=0) - self._model_receiving_seconds(received)
            expected.harvested = replace(
                harvested, probe_seconds=float(probing.max()), seconds=makespan
            )
        demanded = np.vstack([received, np.sum(expected.stages, axis=0)])
        worked = self.queue.process(demanded, busy.sum(axis=0), self.seconds, self.patience)
        return expected, worked, {"modelled": makespan}

    def _model_receiving_seconds(self, received: np.ndarray) -> Any:
        """Return the modelled CPU seconds by host to receive tuples."""
        none = [np.zeros_like(received)] * 4
        counts: list[Any] = [received, *none]
        took: Any = self.costs.busy_seconds(HostUsage(*counts), _REFERENCE)
        return took * self.slowness

    def _model_busy_seconds(self, received: np.ndarray, expected: ExpectedWork) -> np.ndarray:
        """Return the modelled CPU seconds by hop and host.

        A batch takes the sum, over the hops, of the seconds of each hop's busiest host.
        """
        # Each count is an array over all hops and hosts.
        arriving = np.zeros((len(expected.stages), len(received)))
        arriving[0] = received
        work: list[Any] = [arriving, *expected.stages.transpose(1, 0, 2)]
        seconds: Any = self.costs.busy_seconds(HostUsage(*work), _REFERENCE)
        return np.asarray(seconds * self.slowness)
