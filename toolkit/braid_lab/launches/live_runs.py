"""Launches of the studies' joins on Spark, for panels and reports: one function for each paper.

Each run has a folder of its own. Spark starts with the first run, or earlier with ``warm_up``.
Functions import what they need, so that a notebook shows its first view sooner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from braid.core.placement import Placement
from braid.core.query import Query
from braid.core.run_events import BatchCommitted

from braid_lab.common.run_folders import new_run_folder

if TYPE_CHECKING:
    from braid.join_run import JoinRun
    from braid.shared.shared_run import SharedRun

    from braid_lab.diffusion.experiments import DiffusionSetting
    from braid_lab.workloads.base import Workload
    from braid_lab.workloads.dashboards import SharedWorkload


def _get_spark_session() -> Any:
    from braid.spark_session import session

    return session()


def _make_session_workload(name: str, **settings: Any) -> Workload:
    from braid_lab.launches.launching import make_workload

    return make_workload(_get_spark_session(), name, **settings)


def _launch_in_new_folder(
    name: str, join: Workload, under: Placement, pace: float = 0.0
) -> JoinRun:
    from braid_lab.launches.launching import launch_join

    return launch_join(_get_spark_session(), new_run_folder(name), join, under, pace)


class LaunchPanel(Protocol):
    """The panel protocol: what its button calls, and with which settings."""

    def launch(self, settings: dict[str, Any]) -> Any:
        """Start a run with these settings."""

    def settings(self) -> dict[str, Any]:
        """Return the settings of the controls."""

    def can_launch(self) -> bool:
        """Return whether nothing has been launched, so that the button would begin a run."""


def warm_up(panel: LaunchPanel, **few: Any) -> None:
    """Start Spark and run a small join, then twice the first batch of what the panel would launch.

    A later launch then does not wait for one-time work: the third launch is faster than the second.
    ``few`` are settings that make the rehearsal smaller. If the user launches meanwhile, this ends.
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
    """Start a join of Elseidy 2014 under a placement, by the settings of the panel."""
    from braid_lab.launches.launching import make_placement

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
    """Start a setting of Gu 2007 under a placement.

    Tuples, hosts and decisions are the same as in the model.
    """
    from braid_lab.diffusion import experiments as study

    join = study.make_arrivals(setting).make_workload(_get_spark_session())
    return _launch_in_new_folder(placement, join, study.make_placement(placement, setting))


def start_ring(settings: Mapping[str, Any], batches: int) -> JoinRun:
    """Start a PSP ring (Wang 2008, Part II) by the settings of the panel.

    It runs for ``batches`` seconds of event time.
    """
    from braid_lab.psp import experiments as psp_experiments

    given, placement = psp_experiments.run_from_controls(**settings, seconds=float(batches))
    return _launch_in_new_folder("ring", given.make_workload(_get_spark_session()), placement)


def make_stream_pair(source: str, batches: int, **settings: Any) -> Workload:
    """Return the two streams of Wang 2008, Part I.

    ``source`` is "flights" (``days``; departures with the weather at their airport) or "arrivals"
    (``rate``, ``join``; synthetic).
    """
    from braid_lab.workloads.base import Workload

    if source == "flights":
        flights = _make_session_workload("flights", days=settings["days"], batches=batches)
        streams = {alias: flights.streams[alias] for alias in "dw"}
        return Workload("flights", streams, WEATHER_THEN, time="ts", batch=flights.batch)
    rates, sigma = (settings["rate"],) * 2, settings["join"]
    return _make_session_workload(
        source, rates=rates, seconds=float(batches), batches=batches, sigma=sigma
    )


WEATHER_THEN = "d.origin = w.origin AND w.ts <= d.ts"


def start_chain(
    join: Workload, queries: Iterable[Query], chain: str, overhead: float, pace: float = 0.0
) -> SharedRun:
    """Start a chain of slices for queries over two streams.

    ``overhead`` is C_sys, in comparisons.
    """
    from braid.shared.shared_join import SharedJoin

    joined = SharedJoin(join.streams, join.condition, time="ts", chain=chain, overhead=overhead)
    joined.add_all(q.to_arguments(tuple(join.streams)) for q in queries)
    return joined.start(new_run_folder("slices"), batches=join.batch or 20, pace=pace)


def start_chain_from_controls(settings: Mapping[str, Any], overhead: float, days: int) -> SharedRun:
    """Start a chain of slices by the settings of the panel, with its queries."""
    values = {"days": days, "rate": settings["rate"], "join": settings["join"]}
    join = make_stream_pair(settings["source"], settings["batches"], **values)
    return start_chain(join, settings["queries"], settings["chain"], overhead, settings["pace"])


def start_shared_ring(shared: SharedWorkload, hosts: int, pace: float = 0.0) -> SharedRun:
    """Start one run for all queries on a ring of hosts (Wang 2008, Part III)."""
    from braid_lab.shared_ring.experiments import start_shared

    return start_shared(shared, new_run_folder("shared"), hosts, pace)


def start_dashboards(streams: Sequence[str], settings: Mapping[str, Any]) -> SharedRun:
    """Start the queries of the panel over flights, arrivals and weather."""
    from braid_lab.workloads.dashboards import SharedWorkload
    from braid_lab.workloads.dashboards import flight_dashboards as made

    month, days, batches = (settings[name] for name in ("month", "days", "batches"))
    join = made(_get_spark_session(), streams, month, days, batches).join
    return start_shared_ring(
        SharedWorkload(join, tuple(settings["queries"])), settings["hosts"], settings["pace"]
    )
