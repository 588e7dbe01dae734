"""Faults of load shedding (Gedik 2007)."""

from __future__ import annotations

from typing import Any

from braid.papers.shedding.windows import newest
from braid.studies import shedding as study
from braid.studies import shedding_claims as gedik

from mutations import Mutation, Tries


def chosen() -> Tries:
    """Fig. 12, 16 and 17: what is processed, for one skew of items."""
    return [
        lambda: gedik.order_claims(study.outputs((0.6,))),
        lambda: gedik.utility_claims(study.utility_by_skew(), study.utility_by_types()),
    ]


def adapted() -> Tries:
    """Fig. 8: how much is processed, through a burst."""
    burst = study.adaptation()
    return [lambda: gedik.burst_claim(burst), lambda: gedik.forward_claim(burst)]


def directed() -> Tries:
    """Fig. 11: which window gives way."""
    return [lambda: gedik.direction_claim(study.parts())]


def worst_first(fill: Any) -> Any:
    """A knapsack that takes what is worth least."""
    return lambda values, *rest: fill(-values, *rest)


def turned_round(directions: Any) -> Any:
    """Each window for the other."""
    return lambda r, windows, outputs: directions(r, windows, outputs[::-1])


MUTATIONS = [
    Mutation(
        "what is worth least first",
        "braid.studies.shedding.fill",
        worst_first,
        chosen,
        ("the gain in utility grows with the skew",),
    ),
    Mutation(
        "the newest part of a window taken for the best",
        "braid.studies.shedding.best",
        lambda best: newest,
        chosen,
        ("time correlation adds to rate adaptation",),
    ),
    Mutation(
        "a fraction that is never adapted",
        "braid.papers.shedding.rate.adapt",
        lambda adapt: lambda r, *rest: r,
        adapted,
        ("r falls in a burst",),
    ),
    Mutation(
        "a burst that nobody foresees",
        "braid.papers.shedding.rate.forward",
        lambda forward: lambda *given: 1.0,
        adapted,
        ("rate adaptation keeps the join within",),
    ),
    Mutation(
        "the less useful window first",
        "braid.studies.shedding.directions",
        turned_round,
        directed,
        ("the fraction of the less useful window",),
    ),
]
