"""Faults of the hypercube: its shares, its cells, its moves and the cover rule of boxes."""

from __future__ import annotations

from typing import Any

from braid_lab.hypercube import claims as paper
from braid_lab.hypercube import experiments as study

from mutations import Broken, Mutation, Tries, cached_run

CUBE, BOXES = "unit.test_hypercube.", "unit.test_key_boxes."
QUICK = study.ChainSetting((24, 3, 3), (3, 3, 24), batches=28, hosts=4, values=10)


def claims() -> Tries:
    """Return all claims about a short run in this process."""
    measure = study.measure_placement

    def made(placement: Any, setting: Any) -> Any:
        return cached_run((placement, setting), lambda: measure(placement, setting))

    def tested() -> Any:
        study.measure_placement = made
        try:
            table = study.compare_placements(QUICK, ("HyperCube", study.FIXED))
        finally:
            study.measure_placement = measure
        return paper.CLAIMS.test_claims(table=table, hosts=QUICK.hosts)

    return [tested]


MUTATIONS = [
    Mutation(
        "shares stay those of equal rates",
        "braid.papers.hypercube.hypercube._Planner._choose_exchange",
        lambda choose: lambda self: (),
        claims,
        ("shares are optimized for a fixed number", "shares follow the rates"),
        runs=("HyperCube",),
    ),
    Mutation(
        "all shares of one dimension",
        "braid.papers.hypercube.hypercube.find_best_shares",
        lambda best: lambda size, dimensions, rates: (1,) * (len(dimensions) - 1) + (size.cells,),
        claims,
        ("tuples are replicated by the shares",),
        runs=("HyperCube",),
    ),
    Mutation(
        "stored blocks stay when shares change",
        "braid.papers.hypercube.hypercube.move_stored_blocks",
        lambda move: lambda draft, cells, blocks: None,
        claims,
        ("all placements find as many results",),
        runs=("HyperCube",),
    ),
]
BROKEN = [
    Broken(
        "boxes ignored in the cover rule",
        "braid.core.key_boxes.KeyBoxes.may_join",
        lambda may: lambda self, a, b: True,
        BOXES + "test_the_cover_rule_is_what_brute_force_finds",
        "",
    ),
    Broken(
        "the other dimension ignored in the cover rule",
        "braid.core.key_boxes.KeyBoxes.find_box",
        lambda find: (
            lambda self, s, keys: (
                (find(self, s, keys) + ((0, 1),) * 9)[: len(self.dimensions[s])][:1]
                + ((0, self.finest),) * (len(self.dimensions[s]) - 1)
            )
        ),
        BOXES + "test_the_cover_rule_is_what_brute_force_finds",
        "",
    ),
    Broken(
        "blocks that are to move are merged before",
        "braid.papers.hypercube.hypercube.PlanBuilder.make_plan",
        lambda make: (
            lambda self, routes, state, events=(), pinned=(): make(self, routes, state, events)
        ),
        CUBE + "test_state_moves_and_no_host_hops",
        "",
    ),
    Broken(
        "cells are numbered anew when shares change",
        "unit.test_hypercube.exchange_hosts",
        lambda exchange: lambda hosts, *change: tuple(hosts),
        CUBE + "test_a_change_of_shares_keeps_each_host_within_its_old_cell_or_merges_it",
        "",
        {"shares": (4, 4)},
    ),
]
