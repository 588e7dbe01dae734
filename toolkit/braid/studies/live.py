"""The studies' joins on Spark, as panels and reports launch them: a function a paper, each run in a
folder of its own. Spark starts with the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

from braid import launch
from braid.core import scratch
from braid.core.placement import Placement
from braid.core.query import Query
from braid.papers.baselines.centralized import Centralized
from braid.run import JoinRun
from braid.sharing.join import SharedJoin
from braid.sharing.run import SharedRun
from braid.spark_session import session
from braid.studies import diffusion as diffusion_study
from braid.studies import psp as psp_study
from braid.studies import shared_ring as shared_ring_study
from braid.workloads import dashboards as dashboard_workload
from braid.workloads.base import Workload
from braid.workloads.dashboards import Shared

_numbers = count()


@cache
def _runs() -> Path:
    return scratch.folder("runs")


def folder(name: str) -> Path:
    """A folder for a run that is not there yet, under a temporary one that goes with this
    process.
    """
    return _runs() / f"{name}-{next(_numbers)}"


def warm() -> None:
    """Start Spark and run a small join on it, so that who launches the next one need not wait for
    what is done once.
    """
    join = launch.workload(session(), "arrivals", rates=(5.0, 5.0), seconds=3.0, batches=3)
    launch.launch(session(), folder("warm"), join, Centralized()).awaitTermination()


def theta(settings: Mapping[str, Any]) -> JoinRun:
    """A join of two streams of Elseidy 2014 under a placement, by the settings of the panel."""
    chosen = dict(settings)
    kind, hosts, epsilon, pace = (
        chosen.pop(name) for name in ("placement", "hosts", "epsilon", "pace")
    )
    join = launch.workload(session(), chosen.pop("workload"), **chosen)
    takes = Placement.by_name(kind).takes()
    more = {"epsilon": epsilon} if "epsilon" in takes else {}
    under = launch.placement(kind, hosts if "hosts" in takes else 1, join, **more)
    return launch.launch(session(), folder(f"{join.name}-{kind}"), join, under, pace)


def diffusion(placement: str, setting: diffusion_study.Setting) -> JoinRun:
    """A setting of Gu 2007 under a placement: the same tuples, hosts and decisions as modelled."""
    join = diffusion_study.arrivals(setting).workload(session())
    under = diffusion_study.placement(placement, setting)
    return launch.launch(session(), folder(placement), join, under)


def ring(settings: Mapping[str, Any], batches: int) -> JoinRun:
    """A PSP ring (Wang 2008, Part II) by the settings of the panel, for so many seconds of event
    time.
    """
    given, placement = psp_study.by_settings(**settings, seconds=float(batches))
    return launch.launch(session(), folder("ring"), given.workload(session()), placement)


def pair(source: str, batches: int, **settings: Any) -> Workload:
    """The two streams of Wang 2008, Part I: "flights" (``days``; departures with the weather that
    their airport had) or "arrivals" (``rate``, ``join``; synthetic).
    """
    if source == "flights":
        found = launch.workload(session(), "flights", days=settings["days"], batches=batches)
        streams = {alias: found.streams[alias] for alias in "dw"}
        return Workload("flights", streams, WEATHER_THEN, time="ts", batch=found.batch)
    rates, sigma = (settings["rate"],) * 2, settings["join"]
    return launch.workload(
        session(), source, rates=rates, seconds=float(batches), batches=batches, sigma=sigma
    )


WEATHER_THEN = "d.origin = w.origin AND w.ts <= d.ts"


def slices(
    join: Workload, queries: Iterable[Query], chain: str, overhead: float, pace: float = 0.0
) -> SharedRun:
    """A chain of slices for these queries over two streams; ``overhead`` is C_sys, in
    comparisons.
    """
    joined = SharedJoin(join.streams, join.on, time="ts", chain=chain, overhead=overhead)
    for q in queries:
        joined.add(**q.asked(tuple(join.streams)))
    return joined.start(folder("slices"), batches=join.batch or 20, pace=pace)


def chosen_slices(settings: Mapping[str, Any], overhead: float, days: int) -> SharedRun:
    """A chain of slices by the settings of the panel, its queries among them."""
    values = {"days": days, "rate": settings["rate"], "join": settings["join"]}
    join = pair(settings["source"], settings["batches"], **values)
    return slices(join, settings["queries"], settings["chain"], overhead, settings["pace"])


def shared_ring(shared: Shared, hosts: int, pace: float = 0.0) -> SharedRun:
    """One run for all queries on a ring of hosts (Wang 2008, Part III)."""
    return shared_ring_study.start(shared, folder("shared"), hosts, pace)


def dashboards(streams: Sequence[str], settings: Mapping[str, Any]) -> SharedRun:
    """The queries of the panel's table over flights, arrivals and weather."""
    month, days, batches = (settings[name] for name in ("month", "days", "batches"))
    join = dashboard_workload.dashboards(session(), streams, month, days, batches).join
    return shared_ring(
        Shared(join, tuple(settings["queries"])), settings["hosts"], settings["pace"]
    )
