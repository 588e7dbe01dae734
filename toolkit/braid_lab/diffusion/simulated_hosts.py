"""The hosts of Gu 2007, section 5, as its simulations draw them, and a reading of its costs."""

from __future__ import annotations

from random import Random

from braid.core.cluster_model import CostParameters, HostCapacity

GU_SCANNED = CostParameters(probe_ms=0.0, compare_us=10_000 / 375)
"""Alternative reading of "one join probing takes on average 10 ms": cost proportional to the tuples
compared. 10 ms scan a window of 30 s at 12.5 tuples per second, the mean of Gu's rates.
"""


def gu_host_capacities(hosts: int, seed: int = 0) -> tuple[HostCapacity, ...]:
    """Return seeded random hosts of Gu 2007, section 5.

    Each value is uniform: 500 to 1000 MB, 1000 to 5000 MIPS, 100 to 1000 Mbit/s.
    """
    draw = Random(seed)
    return tuple(
        HostCapacity(draw.uniform(500, 1000), draw.uniform(1000, 5000), draw.uniform(100, 1000))
        for _ in range(hosts)
    )
