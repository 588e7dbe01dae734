"""Faults of stream reuse (Seshadri 2008)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from braid.papers.reuse.hierarchy import Hierarchical
from braid.studies import airport
from braid.studies import reuse as study
from braid.studies import reuse_claims as seshadri

from mutations import Mutation, Tries


def deployed() -> Tries:
    """E4: a short morning at the airport, and what was asked once more."""
    with TemporaryDirectory() as folder:
        day = airport.again(airport.played(Path(folder) / "day", 20, 5))
        told = seshadri.deployment_claims(airport.deployments({"relaxed": day}))
    return [lambda: told]


def planned() -> Tries:
    """E9: plans of few queries."""
    return [lambda: seshadri.planners_claims(study.planners(4, (3, 4), (8,)))]


def alone(settings: Any) -> Any:
    """A hub that reuses nothing."""
    return lambda *given: replace(settings(*given), reuse="separate")


MUTATIONS = [
    Mutation(
        "a hub that reuses nothing",
        "braid.studies.airport.Settings",
        alone,
        deployed,
        ("A contained query is deployed in less time", "A contained query is deployed by planning"),
    ),
    Mutation(
        "plans from the bottom up for those from the top down",
        "braid.papers.reuse.hierarchy.Hierarchical.top_down",
        lambda top_down: Hierarchical.bottom_up,
        planned,
        ("Top-Down over a hierarchy of clusters comes within",),
    ),
    Mutation(
        "one cluster of all nodes",
        "braid.studies.reuse.Hierarchical",
        lambda planner: lambda model, most: planner(model, 200),
        planned,
        ("Top-Down looks at less than a hundredth",),
    ),
    Mutation(
        "an exact planner that joins all at the sink",
        "braid.studies.reuse.exact",
        lambda exact: study.all_to_sink,
        planned,
        ("No planner finds a cheaper plan",),
    ),
]
