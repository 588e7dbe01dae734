"""The least-loaded host, when several choices are made before their load can be measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple
from functools import lru_cache
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from braid.core.cluster_model import GU, CostParameters, HostCapacity, compute_load
from braid.core.facts import Facts, HostUsage

Floats = npt.NDArray[np.float64]
Cluster = tuple[tuple[float, float, float], ...]
"""By host: memory in megabytes, speed in MIPS, bandwidth in megabits per second. Empty for equal
hosts.
"""
Weights = tuple[float, float, float]
"""omega_1 to omega_3 of Eq. 1: of CPU, memory and bandwidth."""
Prices = tuple[float, float, float]
"""What CPU time is reckoned by: ``transfer_ms``, ``probe_ms`` and ``compare_us`` of Costs."""
GU_PRICES: Prices = (GU.transfer_ms, GU.probe_ms, GU.compare_us)


_COUNTS = HostUsage.__struct_fields__
_counts = attrgetter(*_COUNTS)


@lru_cache(maxsize=8)
def stack_capacities(cluster: Cluster, hosts: int) -> HostCapacity:
    """All hosts as one Host whose fields are columns."""
    return HostCapacity(*np.array(cluster or (astuple(HostCapacity()),) * hosts).T)


def stack_usage(usage: Sequence[HostUsage], hosts: int) -> HostUsage:
    """What all hosts did as one Usage whose fields are columns; hosts that are not told of were
    idle.
    """
    columns = np.zeros((len(_COUNTS), hosts))
    columns[:, : len(usage)] = np.array([*map(_counts, usage[:hosts])]).reshape(-1, len(_COUNTS)).T
    return HostUsage(*columns)


@lru_cache(maxsize=8)
def _make_costs(prices: Prices) -> CostParameters:
    return CostParameters(*prices)


def compute_loads(
    did: HostUsage,
    fleet: HostCapacity,
    weights: Weights,
    seconds: float,
    prices: Prices = GU_PRICES,
) -> Floats:
    """w_i (Eq. 1) of hosts that did the same, or each what its entry of the columns says."""
    return np.asarray(compute_load(did, fleet, weights, seconds, _make_costs(prices)))


class LoadBalance:
    """The load of each host: as measured (``loads``), and as the choices that are still to take
    effect will add to it.

    ``segments`` is the number of segments that the measured load comes from; a new one is taken to
    bring what these do on average. Loads are w_i (Gu 2007, Eq. 1) for batches of ``seconds``.
    """

    def __init__(
        self,
        hosts: int,
        cluster: Cluster,
        facts: Facts,
        weights: Weights,
        seconds: float,
        segments: int,
        prices: Prices = GU_PRICES,
    ) -> None:
        fleet = stack_capacities(cluster, hosts)
        self.loads = compute_loads(
            stack_usage(facts.host_usage, hosts), fleet, weights, seconds, prices
        )
        self.brings = compute_loads(
            _compute_segment_usage(facts.host_usage, max(segments, 1)),
            fleet,
            weights,
            seconds,
            prices,
        )

    def least_loaded_host(self, chosen: Counter[int], last: int) -> int:
        """The host that one more segment leaves with the least load, given how often each has been
        ``chosen``; of equals, the next after ``last``. Of idle hosts that is the fastest.
        """
        hosts = len(self.loads)
        times = np.zeros(hosts, dtype=np.int64)
        times[list(chosen)] = list(chosen.values())
        equal = np.arange(hosts)
        for weight in (self.loads + (times + 1) * self.brings, times, (equal - last - 1) % hosts):
            equal = equal[weight[equal] == weight[equal].min()]
        return int(equal[0])


def _compute_segment_usage(usage: tuple[HostUsage, ...], segments: int) -> HostUsage:
    """What all hosts did, over a number of segments."""
    return HostUsage(
        *(sum(counts) // segments for counts in zip(*map(_counts, usage), strict=True))
    )
