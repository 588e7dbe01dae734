"""Twelve dashboards over New York's flights and weather of 2013: one join, many queries.

Every dashboard joins departures, the previous arrivals elsewhere of the same aircraft, and the
hourly weather at the airport of departure. It has its own windows and selections. Streams and
columns are those of ``flights``. The windows rank the dashboards differently on each stream, so
that slices of different streams serve different queries (Wang 2008, section 19.2).
"""

from __future__ import annotations

import calendar
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

from braid.core.query import Query

from braid_lab.workloads.base import Workload
from braid_lab.workloads.flights import flight_delays

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONDITIONS = {
    ("a", "d"): "a.tailnum = d.tailnum AND a.ts < d.ts",
    ("d", "w"): "d.origin = w.origin",
}
"""The join conditions of pairs of streams.

A departure joins the aircraft's earlier arrivals elsewhere, and the weather of its airport.
Arrivals and weather join through departures only.
"""


DASHBOARD_STREAMS = ("a", "d", "w")
"""The streams of all dashboards: arrivals, departures, weather."""


def _make_dashboard_query(name: str, a: int, d: int, w: int, /, **where: str) -> Query:
    hours = (timedelta(hours=n) for n in (a, d, w))
    return Query.parse(
        name, DASHBOARD_STREAMS, dict(zip(DASHBOARD_STREAMS, hours, strict=True)), where
    )


DASHBOARDS = (
    _make_dashboard_query("now", 3, 1, 1),
    _make_dashboard_query("turnarounds", 6, 2, 1),
    _make_dashboard_query("late in, late out", 8, 1, 2, a="a.delay >= 15", d="d.delay >= 15"),
    _make_dashboard_query("wind", 4, 2, 3, w="w.wind >= 20"),
    _make_dashboard_query("poor sight", 4, 1, 4, w="w.visib < 5"),
    _make_dashboard_query("rain", 6, 3, 2, d="d.delay >= 15", w="w.precip > 0"),
    _make_dashboard_query("Kennedy", 5, 2, 2, d="d.origin = 'JFK'", w="w.origin = 'JFK'"),
    _make_dashboard_query("JetBlue in gusts", 8, 2, 6, d="d.carrier = 'B6'", w="w.gust >= 25"),
    _make_dashboard_query("long delays", 12, 4, 8, d="d.delay >= 60"),
    _make_dashboard_query("after the wind", 12, 12, 3, d="d.delay >= 30", w="w.wind >= 20"),
    _make_dashboard_query("cold", 24, 6, 12, a="a.delay >= 30", w="w.temp < 32"),
    _make_dashboard_query("the whole day", 24, 24, 24, a="a.delay >= 60", d="d.delay >= 60"),
)
"""The dashboards over DASHBOARD_STREAMS, roughly from short to long windows.

The longer the windows, the more selective.
"""


@dataclass(frozen=True)
class SharedWorkload:
    """A join and the queries that share it, and ``values``, by name, that made its streams."""

    join: Workload
    queries: tuple[Query, ...]
    values: Mapping[str, object] = field(default_factory=dict)


def flight_dashboards(
    spark: SparkSession,
    streams: Sequence[str] = DASHBOARD_STREAMS,
    month: int = 1,
    days: int = 3,
    batches: int = 12,
) -> SharedWorkload:
    """Return the dashboards over the first days of a month, in batches of equal event time.

    ``streams`` are ``d`` (departures) with ``a`` (arrivals), ``w`` (weather) or both. Raises
    ValueError for other streams and as ``flight_delays`` does.
    """
    if "d" not in streams or len(set(streams)) < 2 or not set(streams) <= set(DASHBOARD_STREAMS):
        raise ValueError(
            f"streams are {', '.join(streams) or 'none'}; they must be d with a, w or both"
        )
    delays = flight_delays(spark, month, days, batches)
    on = " AND ".join(text for pair, text in CONDITIONS.items() if set(pair) <= set(streams))
    frames = {alias: delays.streams[alias] for alias in streams}
    places = [DASHBOARD_STREAMS.index(alias) for alias in streams]
    return SharedWorkload(
        Workload("Dashboards", frames, on, delays.time),
        tuple(q.restrict_to(places) for q in DASHBOARDS),
        {"days": days, "month": f"{calendar.month_name[month]} 2013"},
    )
