"""Faults of shared chains and of what is reckoned of them (Wang 2008, Part I)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from braid.papers.slices.cuts import Statistics
from braid.studies import chain_claims, chained, slices
from braid.studies import slices_claims as paper
from braid.studies.claim import Claim

from mutations import Mutation


def three() -> list[Claim]:
    """Fig. 8.1 and 8.2, in a part of their settings, and section 5.1."""
    chained._counted.cache_clear()
    found = slices.strategies(joins=(0.025, 0.4), rates=(20.0,), seconds=40.0, step=1.0)
    each = (chain_claims.least_claim, chain_claims.service_claim, chain_claims.saved_claim)
    return [paper.one_state_claim(), *(claim(found) for claim in each)]


def many() -> list[Claim]:
    """Fig. 8.3."""
    chained._counted.cache_clear()
    found = slices.chains((12, 24), (20.0,), seconds=40.0)
    each = (
        chain_claims.uniform_claim,
        chain_claims.skewed_gain_claim,
        chain_claims.queries_claim,
    )
    merged = map(chain_claims.chain_claim, chain_claims._SAID)
    return [*(claim(found) for claim in each), *merged, chain_claims.skewed_claim()]


def closed() -> list[Claim]:
    """Fig. 5.8 to 6.7."""
    memory, cpu = slices.memory_savings(), slices.cpu_savings()
    averages = (paper.memory_average_claim(memory), paper.cpu_average_claim(cpu))
    positive = paper.positive_claim(memory, "Fig. 5.8", "memory")
    return [positive, *averages, paper.tree_parts_claim()]


def free(edge: Any) -> Any:
    """Running a slice costs nothing."""

    def fault(i: int, j: int, windows: Any, s: Statistics) -> Any:
        return edge(i, j, windows, replace(s, overhead=0.0))

    return fault


def halved(savings: Any) -> Any:
    """A chain that saves half as much state."""

    def fault(*given: float) -> Any:
        s = savings(*given)
        return replace(
            s, memory_pull_up=s.memory_pull_up / 2, memory_partition=s.memory_partition / 2
        )

    return fault


MUTATIONS = [
    Mutation(
        "selections are not pushed into the chain",
        "braid.papers.slices.chain._Planner._cut",
        lambda cut: lambda self, b, first, target: b,
        three,
        ("the chain always holds least",),
    ),
    Mutation(
        "an unmerged chain: CPU-Opt merges nothing",
        "braid.papers.slices.cuts.cpu_chain",
        lambda cpu: lambda windows, statistics: windows,
        many,
        ("CPU-Opt has fewer slices", "the gain of CPU-Opt grows", "slices of CPU-Opt for 12"),
    ),
    Mutation(
        "a chain merged to one slice",
        "braid.papers.slices.cuts.cpu_chain",
        lambda cpu: lambda windows, statistics: windows[-1:],
        many,
        ("CPU-Opt of 12 uniform windows", "slices of CPU-Opt for 12"),
    ),
    Mutation(
        "slices that cost nothing to run",
        "braid.papers.slices.cuts.edge_cost",
        free,
        many,
        ("slices of CPU-Opt for 12",),
    ),
    Mutation(
        "half the savings of Eq. 5.2",
        "braid.papers.slices.cost.savings",
        halved,
        closed,
        ("20% to 30% of memory saved on average",),
    ),
    Mutation(
        "Eq. 6.7 without the probing of C3 by AB3, as Eq. 6.8 is printed",
        "braid.papers.slices.cost_tree.slice_cpu",
        lambda work: lambda t: work(t) | {"probe AB3": 0.0},
        closed,
        ("the joins of a tree's chains compare less",),
    ),
]
