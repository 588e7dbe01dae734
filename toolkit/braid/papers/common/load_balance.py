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
"""By host: memory in megabytes, speed in MIPS, bandwidth in megabits per second.

Empty: all hosts are equal.
"""
Weights = tuple[float, float, float]
"""omega_1 to omega_3 of Eq. 1: the weights of CPU, memory and bandwidth."""
Prices = tuple[float, float, float]
"""Prices of CPU time: ``transfer_ms``, ``probe_ms`` and ``compare_us`` of CostParameters."""
GU_PRICES: Prices = (GU.transfer_ms, GU.probe_ms, GU.compare_us)


_COUNTS = HostUsage.__struct_fields__
_counts = attrgetter(*_COUNTS)


@lru_cache(maxsize=8)
def stack_capacities(cluster: Cluster, hosts: int) -> HostCapacity:
    """Return all hosts as one HostCapacity whose fields are columns."""
    return HostCapacity(*np.array(cluster or (astuple(HostCapacity()),) * hosts).T)


def stack_usage(usage: Sequence[HostUsage], hosts: int) -> HostUsage:
    """Return the usage of all hosts as one HostUsage whose fields are columns.

    Hosts without an entry count as idle.
    """
    columns = np.zeros((len(_COUNTS), hosts))
    columns[:, : len(usage)] = np.array([*map(_counts, usage[:hosts])]).reshape(-1, len(_COUNTS)).T
    return HostUsage(*columns)


@lru_cache(maxsize=8)
def _make_costs(prices: Prices) -> CostParameters:
    return CostParameters(*prices)


def compute_loads(
    usage: HostUsage,
    fleet: HostCapacity,
    weights: Weights,
    seconds: float,
    prices: Prices = GU_PRICES,
) -> Floats:
    """Return w_i (Eq. 1) by host.

    Each field of the usage is a column, or the same for all hosts.
    """
    return np.asarray(compute_load(usage, fleet, weights, seconds, _make_costs(prices)))


class LoadBalance:
    """The load of each host: as measured (``loads``), and as pending choices will add to it.

    ``segments`` is the number of segments that the measured load comes from. A new one is expected
    to add their average. Loads are w_i (Gu 2007, Eq. 1) for batches of ``seconds``.
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
        """Return the host with the least load after one more segment.

        ``chosen`` counts the pending segments of each host. Of equal hosts, the next after ``last``
        is taken; of idle hosts, the fastest.
        """
        hosts = len(self.loads)
        times = np.zeros(hosts, dtype=np.int64)
        times[list(chosen)] = list(chosen.values())
        equal = np.arange(hosts)
        for weight in (self.loads + (times + 1) * self.brings, times, (equal - last - 1) % hosts):
            equal = equal[weight[equal] == weight[equal].min()]
        return int(equal[0])


def _compute_segment_usage(usage: tuple[HostUsage, ...], segments: int) -> HostUsage:
    """Return the usage of all hosts, divided by the number of segments."""
    return HostUsage(
        *(sum(counts) // segments for counts in zip(*map(_counts, usage), strict=True))
    )
