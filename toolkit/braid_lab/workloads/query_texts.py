"""Queries as text, as airlines and supply chains might submit them, with their streams.

All is synthetic: Seshadri 2008, section 5.1, names an enterprise workload of Delta Air Lines and
one of RFID and gives neither.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MINUTES = {
    "flights": (5, 10),
    "weather": (5, 10),
    "checkins": (1, 2, 5),
    "baggage": (1, 2),
    "reads": (1, 2, 5),
    "shipments": (5, 10),
    "alarms": (1, 5),
}
"""Windows by stream, similar to those of the paper's Q1 and Q2."""
SLIDES = (1, 2, 5)


@dataclass(frozen=True)
class QueryWorkload:
    """Streams and queries about them.

    - ``types``: Spark's, by stream and column.
    - ``rates``: tuples a second, by stream.
    - ``bytes``: by column.
    - ``rows``: a sample, by stream.
    - ``selectivity``: by join condition.
    - ``sql``: a function that returns the next random query.
    """

    types: Mapping[str, Mapping[str, str]]
    rates: Mapping[str, float]
    bytes: Mapping[str, float]
    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    selectivity: Mapping[str, float]
    sql: Callable[[random.Random], str]

    def generate_queries(self, count: int, seed: int = 0) -> list[str]:
        """Return ``count`` queries."""
        rng = random.Random(seed)
        return [self.sql(rng) for _ in range(count)]


def _draw_zipf_value(rng: random.Random, values: Sequence[str]) -> str:
    """Return one of the values; the n-th is n times as rare as the first."""
    return rng.choices(values, [1 / n for n in range(1, len(values) + 1)])[0]


def _draw_value_list(rng: random.Random, values: Sequence[str], most: int = 3) -> str:
    chosen = sorted({_draw_zipf_value(rng, values) for _ in range(rng.randint(1, most))})
    return "(" + ", ".join(f"'{v}'" for v in chosen) + ")"


CARRIERS = ("DL", "AA", "UA", "WN", "CO", "B6", "NW", "US", "AS", "F9")
TERMINALS = tuple("ABCDE")
GATES = tuple(f"{t}{n}" for n in range(1, 13) for t in TERMINALS)
CITIES = ("ATL", "JFK", "ORD", "LAX", "DFW", "DEN", "SFO", "BOS", "MIA", "SEA", "PHX", "MSP")


def airline_workload(seed: int = 0, sample: int = 400) -> QueryWorkload:
    """Return the workload of an airline.

    Displays query by terminal, agents by gate, managers by carrier, operations by weather.
    """
    rng = random.Random(seed)
    flights = [
        {
            "num": n,
            "carrier_code": _draw_zipf_value(rng, CARRIERS),
            "dest": _draw_zipf_value(rng, CITIES),
            "gate": (gate := _draw_zipf_value(rng, GATES)),
            "terminal": gate[0],
        }
        for n in range(sample)
    ]
    checkins = [
        {"flight": rng.randrange(sample), "status": rng.choice(("open", "closed", "boarding"))}
        | {"vacant_seats": rng.randrange(60)}
        for _ in range(sample)
    ]
    baggage = [{"flight": rng.randrange(sample), "area": rng.choice("1234")} for _ in range(sample)]
    weather = [
        {
            "city": _draw_zipf_value(rng, CITIES),
            "forecast": rng.choice(("clear", "rain", "snow", "storm")),
        }
        for _ in range(sample)
    ]
    types = {
        "flights": dict(num="int", carrier_code="string", dest="string", gate="string")
        | {"terminal": "string", "ts": "timestamp"},
        "checkins": dict(flight="int", status="string", vacant_seats="int", ts="timestamp"),
        "baggage": dict(flight="int", area="string", ts="timestamp"),
        "weather": dict(city="string", forecast="string", ts="timestamp"),
    }
    return QueryWorkload(
        types,
        {"flights": 4.0, "checkins": 25.0, "baggage": 25.0, "weather": 0.1},
        {"forecast": 40.0, "status": 12.0, "terminal": 4.0, "gate": 4.0},
        {"flights": flights, "checkins": checkins, "baggage": baggage, "weather": weather},
        {
            "checkins.flight = flights.num": 1 / sample,
            "baggage.flight = flights.num": 1 / sample,
            "baggage.flight = checkins.flight": 1 / sample,
            "flights.dest = weather.city": 0.15,
        },
        _draw_airline_query,
    )


def _draw_airline_query(rng: random.Random) -> str:
    role = rng.choices(("display", "agent", "manager", "operations"), (4, 3, 2, 1))[0]
    where = {
        "display": f"f.terminal = '{_draw_zipf_value(rng, TERMINALS)}'",
        "agent": f"f.gate = '{_draw_zipf_value(rng, GATES)}'",
        "manager": f"f.carrier_code IN {_draw_value_list(rng, CARRIERS)}",
        "operations": f"f.dest IN {_draw_value_list(rng, CITIES)}",
    }[role]
    if role == "display" and rng.random() < 0.5:
        where += f" AND f.carrier_code = '{_draw_zipf_value(rng, CARRIERS)}'"
    selected = ["f.num", rng.choice(("f.gate", "f.dest", "f.carrier_code"))]
    streams, on = ["flights"], []
    if role != "operations":
        streams.append("checkins")
        on.append("f.num = c.flight")
        selected.append(rng.choice(("c.status", "c.vacant_seats")))
    if role == "display" or rng.random() < 0.3:
        streams.append("baggage")
        on.append("f.num = b.flight")
        selected.append("b.area")
    if role == "operations" or rng.random() < 0.3:
        streams.append("weather")
        on.append("f.dest = w.city")
        selected.append("w.forecast")
    return _draw_select_query(rng, selected, streams, [*on, where])


def _draw_select_query(
    rng: random.Random, columns: Sequence[str], streams: Sequence[str], where: Sequence[str]
) -> str:
    slide = f" SLIDE {rng.choice(SLIDES)} MIN"
    read = []
    for i, stream in enumerate(streams):
        every = slide if i == 0 else ""
        read.append(f"{stream} [RANGE {rng.choice(MINUTES[stream])} MIN{every}] {stream[0]}")
    return f"SELECT {', '.join(columns)} FROM {', '.join(read)} WHERE {' AND '.join(where)}"


SITES = tuple(f"site{n}" for n in range(1, 21))
CLASSES = ("food", "drugs", "parts", "toys")


def supply_chain_workload(seed: int = 0, sample: int = 400) -> QueryWorkload:
    """Return the workload of a supply chain: reads of tags, shipments of tags, alarms at sites."""
    rng = random.Random(seed)
    reads = [
        {"tag": rng.randrange(sample), "site": _draw_zipf_value(rng, SITES)}
        | {"reader": rng.choice(("dock", "shelf", "gate"))}
        for _ in range(sample)
    ]
    shipments = [
        {"tag": n, "dest": _draw_zipf_value(rng, SITES), "class": _draw_zipf_value(rng, CLASSES)}
        for n in range(sample)
    ]
    alarms = [
        {"site": _draw_zipf_value(rng, SITES), "kind": rng.choice(("heat", "door", "power"))}
        for _ in range(sample)
    ]
    return QueryWorkload(
        {
            "reads": dict(tag="int", site="string", reader="string", ts="timestamp"),
            "shipments": {"tag": "int", "dest": "string", "class": "string", "ts": "timestamp"},
            "alarms": dict(site="string", kind="string", ts="timestamp"),
        },
        {"reads": 60.0, "shipments": 6.0, "alarms": 0.5},
        {"reader": 6.0, "site": 6.0, "dest": 6.0, "class": 6.0, "kind": 6.0},
        {"reads": reads, "shipments": shipments, "alarms": alarms},
        {"reads.tag = shipments.tag": 1 / sample, "alarms.site = reads.site": 0.1},
        _draw_supply_chain_query,
    )


def _draw_supply_chain_query(rng: random.Random) -> str:
    about = rng.choices(("track", "alarm", "both"), (5, 2, 3))[0]
    selected, streams, where = (
        ["r.tag", "r.site"],
        ["reads"],
        [f"r.site IN {_draw_value_list(rng, SITES)}"],
    )
    if about != "alarm":
        streams.append("shipments")
        where.append("r.tag = s.tag")
        selected.append(rng.choice(("s.dest", "s.class")))
        if rng.random() < 0.6:
            where.append(f"s.class = '{_draw_zipf_value(rng, CLASSES)}'")
    if about != "track":
        streams.append("alarms")
        where.append("r.site = a.site")
        selected.append("a.kind")
    return _draw_select_query(rng, selected, streams, where)
