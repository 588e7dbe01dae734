"""Faults of the PSP ring, of ATR and CTR beside it, and of its cost model (Wang 2008, Part II)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from braid.core.plan import Plan
from braid.studies import psp, psp_comparison, psp_rivals
from braid.studies import psp_claims as closed
from braid.studies import psp_contest_claims as contests
from braid.studies import psp_rivals_claims as paper
from braid.studies.claim import Claim

from mutations import Mutation

QUICK = psp.Setting(seconds=14.0)


def contest() -> list[Claim]:
    """Rings, ATR and CTR on 4 and 12 nodes."""
    r = contests.Rivals(psp_rivals.contest((4, 12), setting=QUICK))
    return [claim(r) for claim in contests.SIDE_BY_SIDE]


def table() -> list[Claim]:
    """Fig. 15.1 row by row."""
    return paper.row_claims(psp_comparison.comparison(8, replace(QUICK, sigma=0.05, seconds=20.0)))


def moved() -> list[Claim]:
    """Fig. 14.1."""
    return [paper.moved_claim(psp_comparison.relocations())]


def together() -> list[Claim]:
    """PSP-I with many tuples at once."""
    few = replace(QUICK, sigma=0.05, seconds=12.0)
    return [paper.more_at_once_claim(psp_rivals.concurrent((4, 8), (15, 30), setting=few))]


def replicas() -> list[Claim]:
    """The state of ATR."""
    return [paper.grown_claim(psp_rivals.replicas((4, 8)))]


def equations() -> list[Claim]:
    """Fig. 16.1 and 16.2: counted against Eq. 13.1, and the closed forms."""
    parts = psp.breakdown(setting=replace(QUICK, seconds=20.0)).assign(streams=3)
    times = psp.response(hops=psp.HOPS)
    claims = (
        closed.interior_claim,
        closed.fourteen_claim,
        closed.grows_claim,
        closed.theorem_claim,
    )
    probing = [closed.equation_claim(parts), closed.probing_claim(parts)]
    return [*probing, *(claim(times) for claim in claims)]


def grown() -> list[Claim]:
    """Fig. 16.6."""
    return [closed.adaptation_claim(psp.adaptation("16.6", 40.0), "16.6")]


def unsent(work: Any) -> Any:
    """A cost in which nothing is sent."""
    return lambda load, lengths: work(replace(load, hop=1e-9), lengths)


def replaced(**settings: Any) -> Any:
    """A placement that takes other settings than it is given."""

    def fault(made: Any) -> Any:
        def checked(self: Any) -> None:
            for name, value in settings.items():
                object.__setattr__(self, name, value)
            made(self)

        return checked

    return fault


def undelayed(move: Any) -> Any:
    """State that travels is given up at once."""
    return lambda self, stream, moves, reason, kept: move(self, stream, moves, reason, False)


def kept(compact: Any) -> Any:
    """Upkeep that drops nothing."""
    return lambda *given: Plan()


SHARED = "The nodes of a ring do about the same"
INTERIOR = "More nodes help up to a point"

MUTATIONS = [
    Mutation(
        "blocks are merged across the ends of a ring's slices",
        "braid.papers.psp.ring.Ring.slices",
        lambda slices: lambda self, state: (),
        contest,
        (SHARED,),
    ),
    Mutation(
        "a static ring: the head never moves",
        "braid.papers.psp.ring.turned",
        lambda turned: lambda slices, state: slices,
        contest,
        (SHARED,),
    ),
    Mutation(
        "a static ring, beside ATR and CTR",
        "braid.papers.psp.ring.turned",
        lambda turned: lambda slices, state: slices,
        table,
        ("Load Balancing Granularity", "Network Transmission"),
    ),
    Mutation(
        "nothing ages from node to node",
        "braid.papers.psp.ring.aged",
        lambda aged: lambda slices, state: (slices, []),
        contest,
        (SHARED, "PSP-I holds more state"),
    ),
    Mutation(
        "PSP-I purges at once",
        "braid.papers.psp.ring._Planner._move",
        undelayed,
        together,
        ("The more tuples are processed at once",),
    ),
    Mutation(
        "nothing is purged",
        "braid.core.step.compact",
        kept,
        equations,
        ("Counted work and sends",),
    ),
    Mutation(
        "CTR with one copy",
        "braid.papers.diffusion.coordinated.Coordinated.__post_init__",
        replaced(copies=1),
        contest,
        (
            "ATR (T = W) and CTR store more",
            "State of CTR is flat in N",
            "With its best length PSP is ahead of ATR and CTR, 3-way",
        ),
    ),
    Mutation(
        "CTR with a copy on every host",
        "braid.papers.diffusion.coordinated.Coordinated.__post_init__",
        lambda made: lambda self: (object.__setattr__(self, "copies", self.hosts), made(self))[1],
        contest,
        (
            "State of CTR is flat in N",
            "Response time of CTR falls",
            "More copies mean a longer response time",
        ),
    ),
    Mutation(
        "CTR with one copy, in the table",
        "braid.papers.diffusion.coordinated.Coordinated.__post_init__",
        replaced(copies=1),
        table,
        ("State Management Cost", "Per Segment Metadata", "Duplication Removal"),
    ),
    Mutation(
        "all segments of ATR go to one host",
        "braid.papers.kit.balance.Balance.lightest",
        lambda lightest: lambda self, *given, **more: 0,
        replicas,
        ("State of ATR grows with N",),
    ),
    Mutation(
        "new nodes go in after the tail",
        "braid.papers.psp.slices.insertions",
        lambda insertions: lambda nodes, added: (nodes,) * added,
        moved,
        ("Aggressive relocation moves what Eq. 14.1 says",),
    ),
    Mutation(
        "the ring takes no node in",
        "braid.papers.psp.ring._Planner._want",
        lambda want: lambda self, nodes: (want(self, nodes)[0], nodes),
        grown,
        ("Adaptation flattens the response time",),
    ),
    Mutation(
        "hops cost nothing",
        "braid.papers.psp.cost.latency",
        unsent,
        equations,
        (INTERIOR, "14 nodes are best", "The more selectivity, the longer the best ring"),
    ),
]
