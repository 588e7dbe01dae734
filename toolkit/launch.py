"""A workload under a placement, by plain settings: what panels, reports and benchmarks start."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from toolkit.join import StreamJoin
from toolkit.placement import AdaptiveGrid, HashPartition, JoinBiclique, StaticGrid, StaticOpt
from toolkit.plan import Placement
from toolkit.run import JoinRun
from toolkit.workloads.arrivals import arrivals
from toolkit.workloads.flights import flights
from toolkit.workloads.tpch import WORKLOADS, Workload
from toolkit.workloads.vectors import vectors

MULTIWAY: dict[str, Callable[..., Workload]] = {"arrivals": arrivals, "vectors": vectors, "flights": flights}
PLACEMENTS = ("dynamic", "static_mid", "static_opt", "hash", "biclique")


def workload(
    spark: SparkSession,
    name: str,
    skew: float = 0.0,
    scale: float = 0.01,
    width: int = 1,
    fluctuation: float = 4,
    batches: int = 20,
    seed: int = 0,
    **settings: Any,
) -> Workload:
    """One of the five joins of Elseidy 2014, or of the windowed joins of several streams in MULTIWAY.

    ``width`` is the band of BCI (days) and BNCI (order keys), ``fluctuation`` is k. The joins in MULTIWAY take none of the settings
    named here but ``batches`` and, unless the data are real, ``seed``; ``settings`` are theirs: see ``arrivals``, ``vectors`` and
    ``flights``. Raises ValueError for a name that is not among them.
    """
    if name in MULTIWAY:
        drawn = {} if name == "flights" else {"seed": seed}
        return MULTIWAY[name](spark, batches=batches, **drawn, **settings)
    names = {n.lower().removesuffix("-join"): n for n in WORKLOADS}
    if name not in names:
        raise ValueError(f"no workload is named {name!r}; there are: {', '.join((*names, *MULTIWAY))}")
    if settings:
        raise TypeError(f"workload {name!r} takes no settings {', '.join(settings)}")
    more = {"k": fluctuation} if name == "fluct" else {}
    found = WORKLOADS[names[name]](spark, scale=scale, skew=skew, seed=seed, batches=batches, **more)
    if name in ("bci", "bnci"):
        found = Workload(found.name, found.streams, re.sub(r"<= 1$", f"<= {width}", found.on), batch=found.batch)
    return found


def placement(name: str, hosts: int, epsilon: float = 1.0, join: Workload | None = None) -> Placement:
    """A placement by its short name; the oracle (static_opt) counts the streams of ``join`` beforehand.

    Raises ValueError for a name that is not among PLACEMENTS.
    """
    if name == "dynamic":
        return AdaptiveGrid(hosts, epsilon=epsilon)
    if name == "static_opt" and join is not None:
        r, s = (frame.count() for frame in join.streams.values())
        return StaticOpt(hosts, sizes=(r, s))
    plain = {"static_mid": StaticGrid, "hash": HashPartition, "biclique": JoinBiclique}
    if name not in plain:
        raise ValueError(f"no placement is named {name!r}; there are: {', '.join(PLACEMENTS)}")
    return plain[name](hosts)


def launch(
    spark: SparkSession, path: str | Path, join: Workload, under: Placement, pace: float = 0.0, check: bool = False
) -> JoinRun:
    """Start a workload under a placement; ``pace`` is the least number of seconds between two micro-batches."""
    stream_join = StreamJoin(join.streams, join.on, under, join.windows, join.time, check=check)
    return stream_join.start(path, batches=join.batch or 20, pace=pace)
