"""A workload under a placement, by plain settings: what panels, reports and benchmarks start."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from inspect import signature
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from braid.core.placement import Placement
from braid.join import StreamJoin
from braid.papers.baselines.biclique import JoinBiclique
from braid.papers.baselines.centralized import Centralized
from braid.papers.baselines.hashing import HashPartition
from braid.papers.diffusion.aligned import Aligned
from braid.papers.diffusion.coordinated import Coordinated
from braid.papers.diffusion.unaware import SemanticsUnaware
from braid.papers.psp.ring import Ring
from braid.papers.theta.grid import AdaptiveGrid, StaticGrid, StaticOpt
from braid.run import JoinRun
from braid.workloads.arrivals import arrivals
from braid.workloads.base import Workload
from braid.workloads.flights import flights
from braid.workloads.tpch import WORKLOADS
from braid.workloads.vectors import vectors

TWO_WAY = {name.lower().removesuffix("-join"): name for name in WORKLOADS}
MULTIWAY: dict[str, Callable[..., Workload]] = {
    "arrivals": arrivals,
    "vectors": vectors,
    "flights": flights,
}
PLACEMENTS: dict[str, Callable[..., Placement]] = {
    "dynamic": AdaptiveGrid,
    "static_mid": StaticGrid,
    "static_opt": StaticOpt,
    "hash": HashPartition,
    "biclique": JoinBiclique,
    "aligned": Aligned,
    "coordinated": Coordinated,
    "ring": Ring,
    "semantics_unaware": SemanticsUnaware,
    "centralized": Centralized,
}
GRIDLESS = ("static_mid", "static_opt", "hash", "biclique")
"""Placements of two streams that never adapt: one panel sets epsilon for all, and these pass over
it.
"""


def workload(spark: SparkSession, name: str, **settings: Any) -> Workload:
    """One of the five joins of Elseidy 2014, or of the windowed joins of several streams in
    MULTIWAY, by short name.

    The five take skew, scale, width (the band of BCI in days, of BNCI in order keys; the others
    have none), fluctuation (k of Fluct-Join), batches and seed. For the settings of the others see
    ``arrivals``, ``vectors`` and ``flights``. Raises ValueError for an unknown name, and for a
    setting that the workload does not take.
    """
    if name not in TWO_WAY and name not in MULTIWAY:
        raise ValueError(
            f"no workload is named {name!r}; there are: {', '.join((*TWO_WAY, *MULTIWAY))}"
        )
    if name in TWO_WAY:
        _check(f"workload {name!r}", settings, _two_way, ("spark", "name"))
        return _two_way(spark, name, **settings)
    _check(f"workload {name!r}", settings, MULTIWAY[name], ("spark",))
    return MULTIWAY[name](spark, **settings)


def _two_way(
    spark: SparkSession,
    name: str,
    skew: float = 0.0,
    scale: float = 0.01,
    width: int = 1,
    fluctuation: float = 4,
    batches: int = 20,
    seed: int = 0,
) -> Workload:
    more = {"k": fluctuation} if name == "fluct" else {}
    found = WORKLOADS[TWO_WAY[name]](
        spark, scale=scale, skew=skew, seed=seed, batches=batches, **more
    )
    if name in ("bci", "bnci"):
        found = Workload(
            found.name, found.streams, re.sub(r"<= 1$", f"<= {width}", found.on), batch=found.batch
        )
    return found


def placement(
    name: str,
    hosts: int,
    epsilon: float | None = None,
    join: Workload | None = None,
    **settings: Any,
) -> Placement:
    """A placement by its short name; ``settings`` are the fields of its class, such as ``length``
    of an aligned one.

    ``epsilon`` is that of the adaptive grid. The oracle (static_opt) counts the streams of ``join``
    beforehand; all run on ``hosts`` hosts but the centralized one, which takes 1. Raises ValueError
    for an unknown name, for a setting that the placement does not take, and for one out of range.
    """
    if name not in PLACEMENTS:
        raise ValueError(f"no placement is named {name!r}; there are: {', '.join(PLACEMENTS)}")
    if epsilon is not None and name not in GRIDLESS:
        settings["epsilon"] = epsilon
    if name == "static_opt" and "sizes" not in settings:
        if join is None:
            raise ValueError(
                "placement 'static_opt' takes the sizes of both streams, or the join to count them "
                "in; give one"
            )
        settings["sizes"] = tuple(frame.count() for frame in join.streams.values())
    if name != "centralized" or hosts != 1:
        settings["hosts"] = hosts
    _check(f"placement {name!r}", settings, PLACEMENTS[name])
    return PLACEMENTS[name](**settings)


def _check(
    what: str, settings: Iterable[str], of: Callable[..., Any], given: tuple[str, ...] = ()
) -> None:
    """Raise ValueError when ``of`` does not take one of the settings; ``given`` are no settings."""
    taken = [name for name in signature(of).parameters if name not in given]
    if unknown := [name for name in settings if name not in taken]:
        raise ValueError(
            f"{what} takes no {' and no '.join(unknown)}; it takes: {', '.join(taken) or 'nothing'}"
        )


def launch(
    spark: SparkSession,
    path: str | Path,
    join: Workload,
    under: Placement,
    pace: float = 0.0,
    check: bool = False,
) -> JoinRun:
    """Start a workload under a placement; ``pace`` is the least number of seconds between two
    micro-batches.
    """
    stream_join = StreamJoin(join.streams, join.on, under, join.windows, join.time, check=check)
    return stream_join.start(path, batches=join.batch or 20, pace=pace)
