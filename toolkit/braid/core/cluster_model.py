"""A model of a cluster: capacity of hosts, their load, and the duration of a batch on them.

Nothing here is measured. Its input may be: counts that the engine reports for each logical host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from braid.core.facts import HostUsage

REFERENCE_MIPS = 3000.0
"""Speed to which costs refer: the middle of Gu's range."""


@dataclass(frozen=True, slots=True)
class HostCapacity:
    """Capacity of one machine.

    - ``memory_mb``: megabytes.
    - ``mips``: million instructions per second.
    - ``mbps``: bandwidth in megabits per second.
    """

    memory_mb: float = 750.0
    mips: float = REFERENCE_MIPS
    mbps: float = 550.0


@dataclass(frozen=True, slots=True)
class CostParameters:
    """CPU time at REFERENCE_MIPS. The defaults are from Gu 2007, section 5.

    - ``transfer_ms``: milliseconds to receive or send a tuple or an intermediate result.
    - ``probe_ms``: milliseconds for a tuple or an intermediate result to probe one host's part of a
      window.
    - ``compare_us``: additional microseconds for each compared pair.
    """

    transfer_ms: float = 1.0
    probe_ms: float = 10.0
    compare_us: float = 0.0

    def busy_seconds(self, usage: HostUsage, host: HostCapacity) -> float:
        """Return the CPU seconds that a batch takes on a host."""
        transfers = usage.received_tuples + usage.received_partials + usage.sent_partials
        ms = (
            self.transfer_ms * transfers
            + self.probe_ms * usage.probes
            + self.compare_us / 1000 * usage.compared_pairs
        )
        return ms / 1000 * REFERENCE_MIPS / host.mips


GU = CostParameters()
"""Costs of Gu 2007, section 5: 1 ms to send or receive, 10 ms for each probe of a host, regardless
of how much it stores.
"""


def compute_load(
    usage: HostUsage,
    host: HostCapacity = HostCapacity(),
    weights: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3),
    seconds: float = 1.0,
    costs: CostParameters = GU,
) -> float:
    """Return the load value w_i of a host.

    It is the weighted sum of used CPU, memory and bandwidth, each divided by its capacity.

    ``seconds`` is the event time that the batch covers; ``weights`` are omega_1 to omega_3. Source:
    Gu 2007, Eq. 1.
    """
    cpu = costs.busy_seconds(usage, host) / seconds
    memory = usage.stored_bytes / (host.memory_mb * 1e6)
    bandwidth = usage.network_bytes * 8 / (host.mbps * 1e6 * seconds)
    return weights[0] * cpu + weights[1] * memory + weights[2] * bandwidth


def check_weights(weights: Sequence[float]) -> None:
    """Raise ValueError unless the three weights of Eq. 1 are from 0 to 1 and add up to 1."""
    if len(weights) != 3 or any(not 0 <= w <= 1 for w in weights) or abs(sum(weights) - 1) > 1e-6:
        raise ValueError(
            f"weights are {tuple(weights)}; they must be three numbers (CPU, memory, bandwidth) "
            "that add up to 1"
        )


def check_cluster(cluster: Sequence[object], hosts: int) -> None:
    """Raise ValueError if a cluster is given that does not describe every host."""
    if cluster and len(cluster) != hosts:
        raise ValueError(
            f"cluster describes {len(cluster)} hosts; it must describe all {hosts}, or be left out"
        )
