"""The least-loaded host, when several choices are made before their load can be measured."""

from __future__ import annotations

from collections import Counter

from toolkit.hosts import Host, load
from toolkit.plan import Facts, Usage

Cluster = tuple[tuple[float, float, float], ...]
"""By host: memory in megabytes, speed in MIPS, bandwidth in megabits per second. Empty for equal hosts."""
Weights = tuple[float, float, float]
"""omega_1 to omega_3 of Eq. 1: of CPU, memory and bandwidth."""


class Balance:
    """The load of each host: as measured (``loads``), and as the choices that are still to take effect will add to it.

    ``segments`` is the number of segments that the measured load comes from; a new one is taken to bring what these do on
    average. Loads are w_i (Gu 2007, Eq. 1) for batches of ``seconds``.
    """

    def __init__(self, hosts: int, cluster: Cluster, facts: Facts, weights: Weights, seconds: float, segments: int) -> None:
        machines = [Host(*m) for m in cluster] or [Host()] * hosts
        usage = (*facts.usage, *[Usage()] * (hosts - len(facts.usage)))
        one = _share(facts.usage, max(segments, 1))
        brings = {m: load(one, m, weights, seconds) for m in set(machines)}
        self.loads = [load(did, m, weights, seconds) for did, m in zip(usage, machines, strict=False)]
        self.brings = [brings[m] for m in machines]

    def lightest(self, chosen: Counter[int], last: int) -> int:
        """The host that one more segment leaves with the least load, given how often each has been ``chosen``; of equals, the
        next after ``last``. Of idle hosts that is the fastest."""
        hosts = len(self.loads)

        def weight(h: int) -> tuple[float, int, int]:
            return self.loads[h] + (chosen[h] + 1) * self.brings[h], chosen[h], (h - last - 1) % hosts

        return min(range(hosts), key=weight)


def _share(usage: tuple[Usage, ...], segments: int) -> Usage:
    """What all hosts did, over a number of segments."""
    return Usage(**{name: sum(getattr(did, name) for did in usage) // segments for name in Usage.__dataclass_fields__})
