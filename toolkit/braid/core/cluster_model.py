"""Hosts of a cluster that is modelled: what they can do, how loaded they are, and how long a batch
would take on them.

Nothing here is measured. The counts that go in may be: those that the engine reports of each
logical host.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from braid.core.facts import HostUsage

REFERENCE_MIPS = 3000.0
"""The speed that costs are given for: the middle of Gu's range."""


@dataclass(frozen=True, slots=True)
class HostCapacity:
    """One machine: memory in megabytes, speed in million instructions per second, bandwidth in
    megabits per second.
    """

    memory_mb: float = 750.0
    mips: float = REFERENCE_MIPS
    mbps: float = 550.0


@dataclass(frozen=True, slots=True)
class CostParameters:
    """CPU time at REFERENCE_MIPS: milliseconds to receive or send a tuple or an intermediate
    result, milliseconds for a tuple or an intermediate result to probe one host's part of a window,
    microseconds for each pair that is compared on top of that.

    The defaults are Gu 2007, section 5.
    """

    transfer_ms: float = 1.0
    probe_ms: float = 10.0
    compare_us: float = 0.0

    def busy_seconds(self, did: HostUsage, host: HostCapacity) -> float:
        """Seconds of CPU that a batch takes on a host."""
        transfers = did.received_tuples + did.received_partials + did.sent_partials
        ms = (
            self.transfer_ms * transfers
            + self.probe_ms * did.probes
            + self.compare_us / 1000 * did.compared_pairs
        )
        return ms / 1000 * REFERENCE_MIPS / host.mips


GU = CostParameters()
"""Gu 2007, section 5: one millisecond to send or receive; ten to probe, each time that a tuple or
an intermediate result visits a host, however little is stored there.
"""
GU_SCANNED = CostParameters(probe_ms=0.0, compare_us=10_000 / 375)
"""The other reading of "one join probing takes on average 10 ms": in proportion to the tuples that
are looked at, ten milliseconds for a window of 30 s of a stream of 12.5 tuples per second, the mean
of Gu's rates.
"""


def wang_cost_parameters(kilopixels: float) -> CostParameters:
    """Wang 2008, section 16.1: nested loops over images of 5, 10 or 20 thousand pixels, so that
    pairs cost and probes do not.

    The book gives no times. A nanosecond for a pixel is what NumPy needs here for a distance of two
    images; a tuple is taken to cost 50 microseconds to send or receive on a gigabit network.
    """
    return CostParameters(transfer_ms=0.05, probe_ms=0.0, compare_us=kilopixels)


def gu_host_capacities(hosts: int, seed: int = 0) -> tuple[HostCapacity, ...]:
    """Gu 2007, section 5: 500 to 1000 MB, 1000 to 5000 MIPS, 100 to 1000 Mbit/s, each uniform and
    seeded.
    """
    draw = Random(seed)
    return tuple(
        HostCapacity(draw.uniform(500, 1000), draw.uniform(1000, 5000), draw.uniform(100, 1000))
        for _ in range(hosts)
    )


def wang_host_capacities(hosts: int) -> tuple[HostCapacity, ...]:
    """Wang 2008, section 16.1: equal machines with 1 GB and gigabit networks."""
    return (HostCapacity(1000.0, REFERENCE_MIPS, 1000.0),) * hosts


def compute_load(
    did: HostUsage,
    host: HostCapacity = HostCapacity(),
    weights: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3),
    seconds: float = 1.0,
    costs: CostParameters = GU,
) -> float:
    """The load value w_i of a host: the weighted usage of CPU, memory and bandwidth, each over its
    capacity (Gu 2007, Eq. 1).

    ``seconds`` is the event time that the batch covers, ``weights`` are omega_1 to omega_3.
    """
    cpu = costs.busy_seconds(did, host) / seconds
    memory = did.stored_bytes / (host.memory_mb * 1e6)
    bandwidth = did.network_bytes * 8 / (host.mbps * 1e6 * seconds)
    return weights[0] * cpu + weights[1] * memory + weights[2] * bandwidth


def check_weights(weights: Sequence[float]) -> None:
    """Raise ValueError unless the three weights of Eq. 1 are from 0 to 1 and add up to 1."""
    if len(weights) != 3 or any(not 0 <= w <= 1 for w in weights) or abs(sum(weights) - 1) > 1e-6:
        raise ValueError(
            f"weights are {tuple(weights)}; they must be three numbers (CPU, memory, bandwidth) "
            "that add up to 1"
        )


def check_cluster(cluster: Sequence[object], hosts: int) -> None:
    """Raise ValueError unless a cluster that is given describes every host."""
    if cluster and len(cluster) != hosts:
        raise ValueError(
            f"cluster describes {len(cluster)} hosts; it must describe all {hosts}, or be left out"
        )
