"""Launches of a workload under a placement by plain settings, as panels and reports have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import Any

from braid.core.placement import Placement
from braid.join_run import JoinRun
from braid.papers.theta.grid import StaticOpt
from braid.stream_join import StreamJoin
from braid.util.validation import check_settings
from pyspark.sql import SparkSession

from braid_lab.workloads.base import Workload
from braid_lab.workloads.flights import flight_delays
from braid_lab.workloads.poisson_arrivals import gu_streams
from braid_lab.workloads.tpch import WORKLOADS
from braid_lab.workloads.vectors import vector_streams

TWO_WAY = {name.lower().removesuffix("-join"): name for name in WORKLOADS}
MULTIWAY: dict[str, Callable[..., Workload]] = {
    "arrivals": gu_streams,
    "vectors": vector_streams,
    "flights": flight_delays,
}


def make_workload(spark: SparkSession, name: str, **settings: Any) -> Workload:
    """Return a workload by its short name.

    It is one of the five joins of Elseidy 2014, or of the windowed joins of several streams in
    MULTIWAY. The five take skew, scale, width (the band of BCI in days, of BNCI in order keys; the
    others have none), fluctuation (k of Fluct-Join), batches and seed. For the settings of the
    others see ``gu_streams``, ``vector_streams`` and ``flight_delays``.

    Raises ValueError for an unknown name, and for a setting that the workload does not take.
    """
    if not isinstance(name, str) or name not in (*TWO_WAY, *MULTIWAY):
        raise ValueError(
            f"no workload is named {name!r}; there are: {', '.join((*TWO_WAY, *MULTIWAY))}"
        )
    if name in TWO_WAY:
        _check_settings(f"workload {name!r}", settings, _make_two_way_workload, ("spark", "name"))
        return _make_two_way_workload(spark, name, **settings)
    _check_settings(f"workload {name!r}", settings, MULTIWAY[name], ("spark",))
    return MULTIWAY[name](spark, **settings)


def _make_two_way_workload(
    spark: SparkSession,
    name: str,
    skew: float = 0.0,
    scale: float = 0.01,
    width: int = 1,
    fluctuation: float = 4,
    batches: int = 20,
    seed: int = 0,
) -> Workload:
    more: dict[str, Any] = {"k": fluctuation} if name == "fluct" else {}
    if name in ("bci", "bnci"):
        more["width"] = width
    return WORKLOADS[TWO_WAY[name]](
        spark, scale=scale, skew=skew, seed=seed, batches=batches, **more
    )


def make_placement(
    name: str, hosts: int, join: Workload | None = None, **settings: Any
) -> Placement:
    """Return a placement by its registered name.

    ``settings`` are the fields of its class, such as ``segment_batches`` of ``Aligned``. The
    oracle, ``StaticOpt``, counts the streams of ``join`` beforehand. All run on ``hosts`` hosts
    except the centralized one, which takes 1.

    Raises ValueError for an unknown name, for a setting that the placement does not take, and for
    one out of range.
    """
    kind = Placement.class_by_name(name)
    if kind is StaticOpt and "final_sizes" not in settings:
        if join is None:
            raise ValueError(
                "placement 'StaticOpt' takes the sizes of both streams, or the join to count them "
                "in; give one"
            )
        settings["final_sizes"] = tuple(frame.count() for frame in join.streams.values())
    if "hosts" in kind.setting_names() or hosts != 1:
        settings["hosts"] = hosts
    return kind.from_settings(settings)


def _check_settings(
    what: str, settings: Mapping[str, Any], of: Callable[..., Any], given: tuple[str, ...] = ()
) -> None:
    """Raise ValueError if ``of`` does not take one of the settings, or not with that type.

    ``given`` are parameters that are not settings.
    """
    taken = [name for name in signature(of).parameters if name not in given]
    if unknown := [name for name in settings if name not in taken]:
        raise ValueError(
            f"{what} takes no {' and no '.join(unknown)}; it takes: {', '.join(taken) or 'nothing'}"
        )
    check_settings(of, settings)


def launch_join(
    spark: SparkSession,
    path: str | Path,
    join: Workload,
    under: Placement,
    pace: float = 0.0,
    check: bool = False,
) -> JoinRun:
    """Start a workload under a placement.

    ``pace`` is the minimum number of seconds between two micro-batches.
    """
    stream_join = StreamJoin(
        join.streams, join.condition, under, join.windows, join.time, check=check
    )
    return stream_join.start(path, batches=join.batch or 20, pace=pace)
