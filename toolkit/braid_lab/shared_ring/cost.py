"""The cost of a ring that queries share, in closed form. All figures are modelled.

Source: Wang 2008, Eq. 21.1 and 21.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pandas as pd

from braid_lab.psp import cost as ring_cost
from braid_lab.psp.experiments import HOPS, RingSetting, to_milliseconds

WINDOWS = (4.0, 12.0, 32.0)
"""Windows of the deployment's queries, in seconds."""
PASSING = 0.2
"""Fraction of both streams that the query with the longest window selects.

The other queries take all tuples.
"""
SETTING = RingSetting(sigma=0.02, window=WINDOWS[-1])
"""A three-way join of 50 tuples/s and stream, with the longest of WINDOWS.

Prices of work and network are those of psp.
"""


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


def length_table(
    nodes: Sequence[int] = tuple(range(1, 65)), hops: Sequence[float] = HOPS
) -> pd.DataFrame:
    """Return Eq. 21.1 and 21.2 by ring length.

    Columns: nodes, selections ("pulled up" or "pushed in"), hop (T_n, seconds), work_modelled
    (L_PSP of one tuple, in seconds), share_modelled (the part of a node), latency_modelled (tau of
    the last node, seconds).
    """
    held = (WINDOWS[-2] + PASSING * (WINDOWS[-1] - WINDOWS[-2])) / WINDOWS[-1]
    rows = []
    for (name, passing), hop in product((("pulled up", 1.0), ("pushed in", held)), hops):
        load = replace(shared_ring_workload(SETTING.cost_workload(), (passing,) * 3), hop=hop)
        for n in nodes:
            work = ring_cost.ring_work(load, n)
            rows.append((n, name, hop, work, work / n, node_latency(load, n, n)))
    counted = ("work_modelled", "share_modelled", "latency_modelled")
    frame = pd.DataFrame(rows, columns=["nodes", "selections", "hop", *counted])
    prices = {"pair_us": 1e6 * load.join, "send_ms": 1e3 * load.send}
    ran = {"hop_ms": to_milliseconds(hops), "windows": WINDOWS, "passing": PASSING, **prices}
    return SETTING.record_run(frame, **ran)
