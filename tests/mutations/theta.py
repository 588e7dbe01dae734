"""Faults of the adaptive grid (Elseidy 2014)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from braid.papers.theta.groups import Group
from braid.studies import theta_dynamics as dynamics
from braid.studies.claim import Claim

from mutations import Mutation


def outgrown() -> list[Claim]:
    """One stream outgrows the other."""
    return dynamics.claims(dynamics.worst())


def late(times: float) -> Any:
    """A trigger that waits for so many times the growth that it should wait for."""
    return lambda due: lambda self: due(replace(self, epsilon=times * self.epsilon))


def scattered(placed: Any) -> Any:
    """A new grid whose hosts lie the other way round, so that everything moves."""

    def other(self: Group, *step: Any) -> Group:
        new: Group = placed(self, *step)
        return replace(new, hosts=new.hosts[::-1])

    return other


RATIO = "ILF/ILF* stays within its bound"

MUTATIONS = [
    Mutation(
        "a trigger three times too late",
        "braid.papers.theta.mapping.Decision.due",
        late(3),
        outgrown,
        (RATIO,),
    ),
    Mutation(
        "the grid never changes",
        "braid.papers.theta.mapping.Decision.due",
        lambda due: lambda self: False,
        outgrown,
        (RATIO,),
    ),
    Mutation(
        "migration moves everything",
        "braid.papers.theta.groups.Group._placed",
        scattered,
        outgrown,
        ("a migration brings each host",),
    ),
]
