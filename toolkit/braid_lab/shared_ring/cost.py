"""The cost of a ring that queries share, in closed form. All figures are modelled.

Source: Wang 2008, Eq. 21.1 and 21.2.
"""

from __future__ import annotations

from dataclasses import replace

from braid_lab.psp import cost as ring_cost


def shared_ring_workload(
    load: ring_cost.Workload, passing: tuple[float, ...]
) -> ring_cost.Workload:
    """Return the workload of a ring with selections, for L_C^share and L_PSP^share (Eq. 21.1).

    ``passing`` has for each stream S_sigma, the fraction of the tuples of its longest window that
    are held. A state shrinks by it, so ``cost.centralized_work`` and ``cost.ring_work`` of the
    result are Eq. 21.1. Pairs are charged as in Eq. 13.1, which differs from 21.1 only by S_sigma.
    Raises ValueError unless there is one fraction above 0 and up to 1 for each stream.
    """
    if len(passing) != load.stream_count or not all(0 < s <= 1 for s in passing):
        raise ValueError(
            f"passing is {passing}; there must be a fraction above 0 and up to 1 for each of "
            f"{load.stream_count} streams"
        )
    return replace(load, windows=tuple(w * s for w, s in zip(load.windows, passing, strict=True)))


def node_latency(load: ring_cost.Workload, nodes: int, node: int) -> float:
    """Return tau_i (Eq. 21.2): seconds from a tuple to its results at node i of N, i from 1.

    Raises ValueError for a node that is not in the ring.
    """
    if not 1 <= node <= nodes:
        raise ValueError(f"node is {node}; a ring of {nodes} has nodes 1 to {nodes}")
    return (node - 1) * load.hop + max(
        ring_cost.ring_work(load, nodes) / nodes, load.stream_count * nodes * load.hop
    )
