"""Modelled cost of a launch from the settings of a panel: tuples, data, seconds.

It is shown before anything starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from braid.util.durations import UNITS, format_duration

Settings = Mapping[str, Any]
START = 15.0
"""Seconds until a cold Spark has made its first batch.

Rough, from launches of notebook 01 on two cores.
"""
BATCH, ROW = 0.4, 3e-6
"""Seconds of a batch, and of generating or joining one tuple.

Rough, from benchmarks/small.py and benchmarks/spark_builtin.py on two cores.
"""
BATCH_HERE, ROW_HERE = 0.05, 7e-5
"""The same without Spark, on a grid of 16 hosts: rough, from notebook 08 on two cores."""
MB = 1e6


@dataclass(frozen=True)
class LaunchCost:
    """The size and speed of a run.

    - ``rows``: input tuples, of ``width`` bytes each.
    - ``batches``, ``pace``: number of batches, and the minimum seconds between two.
    - ``generated_rows``: number of rows that are generated first.
    - ``is_local``: the run needs no Spark.
    """

    rows: float
    width: int
    batches: int
    pace: float = 0.0
    generated_rows: float = 0.0
    is_local: bool = False

    @property
    def total_seconds(self) -> float:
        """Seconds from the click to the end of the run."""
        start, batch, row = (0.0, BATCH_HERE, ROW_HERE) if self.is_local else (START, BATCH, ROW)
        each = max(batch + row * self.rows / self.batches, self.pace)
        return start + self.batches * each + ROW * self.generated_rows

    def __str__(self) -> str:
        took = format_duration(_round_seconds(self.total_seconds) * UNITS["second"])
        return (
            f"a launch takes in about {_round_to_two_digits(self.rows):,.0f} tuples "
            f"({_format_bytes(self.rows * self.width)}) in {self.batches:,} "
            f"batches, about {took} (modelled)"
        )


def _format_bytes(volume: float) -> str:
    """Return a number of bytes as text."""
    if volume < MB:
        return "less than 1 MB"
    unit, name = (1000 * MB, "GB") if volume >= 1000 * MB else (MB, "MB")
    return f"{_round_to_two_digits(volume / unit):,g} {name}"


def _round_to_two_digits(number: float) -> float:
    """Return a number rounded to two digits: the model is no more precise."""
    return float(f"{number:.1e}")


def _round_seconds(seconds: float) -> int:
    """Return seconds rounded to 5, or to minutes from three minutes on."""
    step = 5 if seconds < 180 else 60 if seconds < 7200 else 3600
    return max(step, round(seconds / step) * step)


LINES, ORDERS, SUPPLIERS = 6_000_000, 1_500_000, 10_000
"""Rows of TPC-H tables at scale factor 1."""
LINE = 300
"""Bytes of a tuple of lineitem in memory; nearly all tuples of the five joins are of this table."""
SHARES: Mapping[str, float] = {
    "eq5": LINES + SUPPLIERS / 5,
    "eq7": 0.3 * LINES + 2 * SUPPLIERS / 25,
    "bci": (1 / 7) * 0.1 * LINES + (6 / 7) * LINES,
    "bnci": (1 / 7) * 0.04 * LINES + LINES / 4,
    "fluct": LINES + 0.6 * ORDERS,
}
"""Tuples of each join of Elseidy 2014 at scale factor 1.

They follow from the selections' shares of TPC-H's uniform values.
"""


def estimate_theta(chosen: Settings) -> LaunchCost:
    """Return the cost of ``live_runs.start_theta``.

    The first run of a scale generates TPC-H; later ones take less.
    """
    rows = SHARES[chosen["workload"]] * chosen["scale"]
    generated = (LINES + ORDERS) * chosen["scale"]
    return LaunchCost(rows, LINE, chosen["batches"], chosen["pace"], generated)


def estimate_diffusion(chosen: Settings, seconds: int) -> LaunchCost:
    """Return the cost of ``live_runs.start_diffusion``.

    Rates are drawn evenly between the slowest and the fastest; with bursts the mean is half of
    that.
    """
    rate = (chosen["slowest"] + chosen["fastest"]) / (4 if chosen["bursts"] else 2)
    lasts = chosen["window"] + seconds
    return LaunchCost(chosen["streams"] * rate * lasts, 64, max(1, round(lasts)))


def estimate_ring(chosen: Settings, batches: int) -> LaunchCost:
    """Return the cost of ``live_runs.start_ring``: one batch for each second of event time.

    Raises ValueError for settings out of range.
    """
    from braid_lab.psp.experiments import run_from_controls

    given, _ = run_from_controls(**chosen, seconds=float(batches))
    return LaunchCost(sum(given.rates) * batches, 64, batches)


def estimate_slices(chosen: Settings, days: int) -> LaunchCost:
    """Return the cost of ``live_runs.start_chain_from_controls``.

    The input is two streams at the chosen rate, or departures and weather.
    """
    flights = chosen["source"] == "flights"
    rows = (DEPARTURES + WEATHER) * days if flights else 2 * chosen["rate"] * chosen["batches"]
    return LaunchCost(rows, 64, chosen["batches"], chosen["pace"])


DEPARTURES, WEATHER = 336_776 / 365, 26_115 / 365
"""Tuples a day, of New York in 2013."""


def estimate_shedding(chosen: Settings, batches: int) -> LaunchCost:
    """Return the cost of ``shedding.runs.start_from_controls``.

    A batch is one second of event time; in the middle third there are ``burst`` times the tuples.
    """
    rows = 2 * chosen["rate"] * batches * (2 + chosen["burst"]) / 3
    return LaunchCost(rows, SET, batches, chosen["pace"])


def estimate_workbench(chosen: Settings) -> LaunchCost:
    """Return the cost of a workbench run with generated streams.

    Raises ValueError for other data: the size of a file is unknown until it is read.
    """
    from braid_lab.launches import workbench

    if chosen["data"] not in workbench.DATA:
        raise ValueError(f"how many tuples {chosen['data']!r} has is not known")
    board = workbench.WorkbenchSettings(**chosen)
    streams = workbench.make_generated_streams(board).values()
    rows = sum(int(each.count_tuples(board.batches).sum()) for each in streams)
    return LaunchCost(rows, 32, board.batches, board.pace, is_local=True)


SET = 100
"""Bytes of a tuple with a set of about five items."""


def estimate_dashboards(chosen: Settings) -> LaunchCost:
    """Return the cost of ``live_runs.start_dashboards``: departures, arrivals and weather."""
    rows = (2 * DEPARTURES + WEATHER) * chosen["days"]
    return LaunchCost(rows, 64, chosen["batches"], chosen["pace"])
