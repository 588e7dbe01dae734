"""The recorded runs that notebooks open on: their settings, their files, and how to make them.

``python -m braid_lab.launches.recorded_runs`` makes all of them, or the named ones, with
Spark. They are runs of fixed settings, so another machine makes the same plans and
counts; only times differ.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from braid.core.event_jsonl import read_events
from braid.core.query import Query

from braid_lab.common.recordings import write_events
from braid_lab.theta.compared_operators import RIVALS

if TYPE_CHECKING:
    from braid.join_run import JoinRun
    from braid.shared.shared_run import SharedRun

_PACKAGED = Path(__file__).parents[1] / "reports" / "data" / "recordings"
FOLDER = _PACKAGED if _PACKAGED.exists() else Path(__file__).parents[3] / "data" / "recordings"
"""The folder of recordings in an installed package, else in the checkout."""
SKEWS = (0, 1)
"""Zipf parameters of the recorded competitors."""
RIVAL_SCALE = 0.01
"""TPC-H scale factor of the recorded competitors."""

_RIVAL = dict(workload="eq5", scale=RIVAL_SCALE, hosts=16, epsilon=1.0, batches=6, pace=0.0)

SETTINGS: Mapping[str, Mapping[str, Any]] = {
    "fluct": dict(
        workload="fluct",
        placement="AdaptiveGrid",
        scale=0.02,
        skew=0.0,
        fluctuation=4,
        hosts=64,
        epsilon=1.0,
        batches=48,
        pace=0.0,
    )
} | {
    f"eq5-{name}-z{z}": {**_RIVAL, "placement": kind, "skew": float(z)}
    for z in SKEWS
    for name, kind in RIVALS.items()
}
"""By name, the ``launch_join`` settings of a recording."""

SHARED: Mapping[str, Mapping[str, Any]] = {
    "slices": dict(
        source="arrivals", chain="memory", rate=20.0, join=0.05, batches=40, pace=1.0, hosts=1
    ),
    "shared_ring": dict(month=2, days=3, batches=18, hosts=4, pace=1.0),
}
"""By name, the settings of shared joins.

These are a chain of slices with the queries of ``ASKED``, and the dashboards on a ring.
"""

ASKED = (
    Query.parse("alarm", "rs", "5 seconds"),
    Query.parse("watch", "rs", "15 seconds"),
    Query.parse("trend", "rs", "30 seconds", {"r": "r.u_s < 300000"}),
)
C_SYS = 2.5
"""C_sys of the recorded chain, in comparisons."""


def recording_path(name: str) -> Path:
    """Return the file of a recording. Raises ValueError for one in neither SETTINGS nor SHARED."""
    if name not in (names := (*SETTINGS, *SHARED)):
        raise ValueError(f"no recording is named {name!r}; there are: {', '.join(names)}")
    return FOLDER / f"{name}.jsonl"


def recorded_events(name: str) -> list[Any]:
    """Return the events of a recorded run. Raises ValueError as ``recording_path`` does."""
    return read_events(recording_path(name))


def recorded_competitors() -> dict[str, list[Any]]:
    """Return the recorded runs of Table 2: events by name, as in ``theta.run_competitors``."""
    return {f"{name}, z={z}": recorded_events(f"eq5-{name}-z{z}") for z in SKEWS for name in RIVALS}


def make_recording(name: str, folder: Path = FOLDER) -> Path:
    """Make a recording again, on Spark. Raises ValueError as ``recording_path`` does."""
    target = folder / recording_path(name).name
    run = start_recorded_run(name)
    run.awaitTermination()
    folder.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    write_events(target, run.events())
    return target


def start_recorded_run(name: str) -> JoinRun | SharedRun:
    """Start the run of a recording."""
    from braid.spark_session import session

    from braid_lab.launches import live_runs
    from braid_lab.workloads.dashboards import flight_dashboards

    if name == "slices":
        return live_runs.start_chain_from_controls({**SHARED[name], "queries": ASKED}, C_SYS, 0)
    if name == "shared_ring":
        chosen = dict(SHARED[name])
        hosts, pace = chosen.pop("hosts"), chosen.pop("pace")
        return live_runs.start_shared_ring(
            flight_dashboards(session(), ("a", "d", "w"), **chosen), hosts, pace
        )
    return live_runs.start_theta(SETTINGS[name])


def main() -> None:
    """Make the named recordings, or all."""
    parser = ArgumentParser("python -m braid_lab.launches.recorded_runs", description=__doc__)
    parser.add_argument("names", nargs="*", help="by default all")
    for name in parser.parse_args().names or (*SETTINGS, *SHARED):
        print(make_recording(name), flush=True)


if __name__ == "__main__":
    main()
