"""Faults of shared rings: whom results serve, selections that are pushed in, and where state is put
(Wang 2008, Part III).
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from braid.papers.slices import reference_bitmaps
from braid.studies import shared_ring
from braid.studies import shared_ring_claims as paper

from mutations import Mutation, Tries


def bitmaps() -> Tries:
    """The example of chapter 20."""
    return [lambda: paper.bitmaps_claim(reference_bitmaps.example().steps)]


def equations() -> Tries:
    """Eq. 21.1 and 21.2."""
    lengths = shared_ring.lengths()
    return [lambda: paper.pushed_claim(lengths), lambda: paper.length_claim(lengths)]


def deployment() -> Tries:
    """A run in this process: two queries, of which the one with the longer window selects."""
    from unit.test_bitmaps import Counted, made

    selective = made((12, 12), (32, 32), where=((None, None), ("v = 9", "v = 9")))
    with TemporaryDirectory() as folder:
        run = Counted(Path(folder) / "run", selective, 3, streams=2).fed(seconds(56))
    ratios = shared_ring.imbalance(shared_ring.balances(run.events), range(40, 56))
    return [lambda: paper.evener_claim(*ratios)]


def seconds(count: int) -> list[list[tuple[int, int, int, int]]]:
    """Batches of a second each, of eight tuples (stream, k, v, seconds after the last)."""
    draw = Random(0)
    return [
        [(n % 2, draw.randrange(2), draw.randrange(10), int(n == 0)) for n in range(8)]
        for _ in range(count)
    ]


def equal(deployed: Any) -> Any:
    """Equal stretches of age, whatever selections leave of them."""

    def fault(facts: Any, stream: int, windows: Any, hosts: int) -> tuple[int, ...]:
        return tuple(windows[-1] * k // hosts for k in range(1, hosts))

    return fault


MUTATIONS = [
    Mutation(
        "a member serves every query, whatever its age",
        "braid.papers.slices.reference_bitmaps._Routing.bitmap",
        lambda bitmap: lambda self, t: self.all,
        bitmaps,
        ("A result from B_2 and C_3",),
    ),
    Mutation(
        "selections are not pushed into the ring",
        "braid.studies.shared_ring.shared_ring",
        lambda shared: lambda load, passing: load,
        equations,
        ("Selections pushed in lower the work",),
    ),
    Mutation(
        "the last node answers as soon as the first",
        "braid.studies.shared_ring.node_latency",
        lambda latency: (
            lambda load, nodes, node: shared_ring.ring_cost.ring_work(load, nodes) / nodes
        ),
        equations,
        ("More nodes lower the processing part",),
    ),
    Mutation(
        "ages are shared out in equal stretches",
        "braid.papers.slices.chain.deployed",
        equal,
        deployment,
        ("Sharing out by selectivities evens the hosts out",),
    ),
]
