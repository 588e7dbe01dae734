"""The studies' joins on Spark, as panels and reports launch them: a function a paper, each run in a
folder of its own. Spark starts with the first, or before it with ``warm``.

What a launch needs is imported by it: a notebook has its first picture the sooner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from braid.core.events import BatchCommitted
from braid.core.placement import Placement
from braid.core.query import Query
from braid.util import temp_dirs

if TYPE_CHECKING:
    from braid.join_run import JoinRun
    from braid.shared.shared_run import SharedRun

    from braid_lab.diffusion.experiments import DiffusionSetting
    from braid_lab.workloads.base import Workload
    from braid_lab.workloads.dashboards import SharedWorkload

_numbers = count()


@cache
def _make_runs_folder() -> Path:
    return temp_dirs.make_temp_dir("runs")


def new_run_folder(name: str) -> Path:
    """A folder for a run that is not there yet, under a temporary one that goes with this
    process.
    """
    return _make_runs_folder() / f"{name}-{next(_numbers)}"


def _get_spark_session() -> Any:
    from braid.spark_session import session

    return session()


def _make_session_workload(name: str, **settings: Any) -> Workload:
    from braid_lab.common.launching import make_workload

    return make_workload(_get_spark_session(), name, **settings)


def _launch_in_new_folder(
    name: str, join: Workload, under: Placement, pace: float = 0.0
) -> JoinRun:
    from braid_lab.common.launching import launch_join

    return launch_join(_get_spark_session(), new_run_folder(name), join, under, pace)


class LaunchPanel(Protocol):
    """What a panel has: what its button calls, and with what."""

    def launch(self, settings: dict[str, Any]) -> Any:
        """Start a run by these settings."""

    def settings(self) -> dict[str, Any]:
        """What the controls say."""

    def can_launch(self) -> bool:
        """Whether nothing has been launched, and the button would begin a run now."""


def warm_up(panel: LaunchPanel, **few: Any) -> None:
    """Start Spark and run a small join on it, then twice the first batch of what the panel would
    launch, so that who launches need not wait for what is done once, or is slow at first: the third
    launch takes less than the second. ``few`` are settings that make it less. Who launches
    meanwhile is not disturbed: once the panel is not free, this ends.
    """
    from braid.papers.baselines.centralized import Centralized

    join = _make_session_workload("arrivals", rates=(5.0, 5.0), seconds=3.0, batches=3)
    _launch_in_new_folder("warm", join, Centralized()).awaitTermination()
    for _ in range(2):
        if panel.can_launch():
            _run_first_batch(panel, few)


def _run_first_batch(panel: LaunchPanel, few: dict[str, Any]) -> None:
    """Run the first batch of what the panel would launch."""
    run = panel.launch(panel.settings() | few)
    try:
        while panel.can_launch() and run.isActive and not _has_committed_batch(run):
            run.awaitTermination(0.1)
    finally:
        run.stop()


def _has_committed_batch(run: Any) -> bool:
    return any(isinstance(e, BatchCommitted) for e in run.events())


def start_theta(settings: Mapping[str, Any]) -> JoinRun:
    """A join of two streams of Elseidy 2014 under a placement, by the settings of the panel."""
    from braid_lab.common.launching import make_placement

    chosen = dict(settings)
    kind, hosts, epsilon, pace = (
        chosen.pop(name) for name in ("placement", "hosts", "epsilon", "pace")
    )
    join = _make_session_workload(chosen.pop("workload"), **chosen)
    takes = Placement.class_by_name(kind).setting_names()
    more = {"epsilon": epsilon} if "epsilon" in takes else {}
    under = make_placement(kind, hosts if "hosts" in takes else 1, join, **more)
    return _launch_in_new_folder(f"{join.name}-{kind}", join, under, pace)


def start_diffusion(placement: str, setting: DiffusionSetting) -> JoinRun:
    """A setting of Gu 2007 under a placement: the same tuples, hosts and decisions as modelled."""
    from braid_lab.diffusion import experiments as study

    join = study.make_arrivals(setting).make_workload(_get_spark_session())
    return _launch_in_new_folder(placement, join, study.make_placement(placement, setting))


def start_ring(settings: Mapping[str, Any], batches: int) -> JoinRun:
    """A PSP ring (Wang 2008, Part II) by the settings of the panel, for so many seconds of event
    time.
    """
    from braid_lab.psp import experiments as psp_experiments

    given, placement = psp_experiments.run_from_controls(**settings, seconds=float(batches))
    return _launch_in_new_folder("ring", given.make_workload(_get_spark_session()), placement)


def make_stream_pair(source: str, batches: int, **settings: Any) -> Workload:
    """The two streams of Wang 2008, Part I: "flights" (``days``; departures with the weather that
    their airport had) or "arrivals" (``rate``, ``join``; synthetic).
    """
    from braid_lab.workloads.base import Workload

    if source == "flights":
        found = _make_session_workload("flights", days=settings["days"], batches=batches)
        streams = {alias: found.streams[alias] for alias in "dw"}
        return Workload("flights", streams, WEATHER_THEN, time="ts", batch=found.batch)
    rates, sigma = (settings["rate"],) * 2, settings["join"]
    return _make_session_workload(
        source, rates=rates, seconds=float(batches), batches=batches, sigma=sigma
    )


WEATHER_THEN = "d.origin = w.origin AND w.ts <= d.ts"


def start_chain(
    join: Workload, queries: Iterable[Query], chain: str, overhead: float, pace: float = 0.0
) -> SharedRun:
    """A chain of slices for these queries over two streams; ``overhead`` is C_sys, in
    comparisons.
    """
    from braid.shared.shared_join import SharedJoin

    joined = SharedJoin(join.streams, join.condition, time="ts", chain=chain, overhead=overhead)
    joined.add_all(q.to_arguments(tuple(join.streams)) for q in queries)
    return joined.start(new_run_folder("slices"), batches=join.batch or 20, pace=pace)


def start_chain_from_controls(settings: Mapping[str, Any], overhead: float, days: int) -> SharedRun:
    """A chain of slices by the settings of the panel, its queries among them."""
    values = {"days": days, "rate": settings["rate"], "join": settings["join"]}
    join = make_stream_pair(settings["source"], settings["batches"], **values)
    return start_chain(join, settings["queries"], settings["chain"], overhead, settings["pace"])


def start_shared_ring(shared: SharedWorkload, hosts: int, pace: float = 0.0) -> SharedRun:
    """One run for all queries on a ring of hosts (Wang 2008, Part III)."""
    from braid_lab.shared_ring.experiments import start_shared

    return start_shared(shared, new_run_folder("shared"), hosts, pace)


def start_dashboards(streams: Sequence[str], settings: Mapping[str, Any]) -> SharedRun:
    """The queries of the panel's table over flights, arrivals and weather."""
    from braid_lab.workloads.dashboards import SharedWorkload
    from braid_lab.workloads.dashboards import flight_dashboards as made

    month, days, batches = (settings[name] for name in ("month", "days", "batches"))
    join = made(_get_spark_session(), streams, month, days, batches).join
    return start_shared_ring(
        SharedWorkload(join, tuple(settings["queries"])), settings["hosts"], settings["pace"]
    )
