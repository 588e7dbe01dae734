"""Circles: sums of squares below a constant, found by a band for each square."""

from __future__ import annotations

from collections import Counter
from math import inf, nan
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from braid.condition.parser import parse_predicate
from braid.condition.spark_dialect import SparkSql
from braid.condition.squared_distances import find_squared_distance
from braid.errors import EvaluationFailure
from indexed_runs import nested_loops, run_indexed

pytestmark = pytest.mark.unit
ROWS = 60


def points(seed: int, kind: pa.DataType | None = None) -> pa.Table:
    draw = Random(seed)
    odd = [None, nan, inf, -inf, -0.0] if kind is None else [None]

    def column() -> pa.Array:
        even = [draw.choice(range(12)) * (0.5 if kind is None else 1) for _ in range(ROWS)]
        values: list[Any] = [x if draw.random() < 0.9 else draw.choice(odd) for x in even]
        return pa.array(values, kind or pa.float64())

    return pa.table({"id": range(ROWS), "x": column(), "y": column()})


PRODUCTS = "(a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y)"
POWERS = "power(a.x - b.x, 2) + pow(b.y - a.y, 2)"
CONDITIONS = {
    f"{PRODUCTS} <= 1": True,
    f"1.5 > {PRODUCTS}": True,
    f"{POWERS} < 1": True,
    f"sqrt({POWERS}) <= 1.25": True,
    f"{PRODUCTS} <= 0": True,
    f"{POWERS} + power(a.x, 2) <= 4": True,
    f"{POWERS} <= 1 OR a.x = b.y": True,
    f"{PRODUCTS} <= 1.5e0": True,
    "abs(a.x - b.x) <= 0.5e0 AND abs(a.y - b.y) < 1.5e0 OR a.x = b.y": True,
    f"{PRODUCTS} <= 1 AND a.x < b.x": True,
    f"{POWERS} >= 1": False,
    f"{POWERS} <= a.x": False,
    "power(a.x - b.x, 3) + power(a.y - b.y, 2) <= 1": False,
    "(a.x - b.x) * (a.y - b.y) <= 1": False,
    f"{POWERS} - power(a.x - b.y, 2) <= 1": False,
}


@pytest.mark.parametrize("on", CONDITIONS)
def test_points_within_a_circle_are_found_by_a_box(tmp_path: Path, on: str) -> None:
    streams = points(1), points(2)
    results, compared = run_indexed(tmp_path, on, *streams)
    assert results == nested_loops(on, *streams)
    assert (compared < ROWS * ROWS / 2) is CONDITIONS[on]


def test_whole_numbers_are_found_by_powers_only(tmp_path: Path) -> None:
    streams = points(3, pa.int32()), points(4, pa.int32())
    results, compared = run_indexed(tmp_path / "power", f"{POWERS} <= 2", *streams)
    assert results == nested_loops(f"{POWERS} <= 2", *streams) and compared < ROWS * ROWS / 2
    again, compared = run_indexed(tmp_path / "product", f"{PRODUCTS} <= 2", *streams)
    assert again == results and compared > ROWS * ROWS / 2  # a product may overflow in Spark


def test_a_difference_that_overflows_fails(tmp_path: Path) -> None:
    most = 2**31 - 1
    a, b = (pa.table({"id": [0], "x": pa.array([x], pa.int32())}) for x in (most, -most))
    with pytest.raises(EvaluationFailure, match=r"ARITHMETIC_OVERFLOW in a\.x - b\.x \(int\)"):
        run_indexed(tmp_path, "power(a.x - b.x, 2) <= 4", a, b)


@pytest.mark.parametrize(
    ("text", "radius"), [("<= 4", 2), ("< 6.25", 2.5), ("<= -1", None), ("<= 1e308", None)]
)
def test_the_radius_is_the_root_of_the_bound(text: str, radius: float | None) -> None:
    squared = find_squared_distance(sqlglot.parse_one(f"{PRODUCTS} {text}", dialect=SparkSql))
    assert (squared and squared.radius) == (radius and pytest.approx(radius))


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_a_square_that_underflows_is_within_a_radius_of_0(
    tmp_path: Path, kind: pa.DataType
) -> None:
    values = [0.0, 1e-25, -3e-25, 1e-200, 1.0]
    rows = pa.table({"id": range(len(values)), "x": pa.array(values, kind)})
    results, _ = run_indexed(tmp_path, "(a.x - b.x) * (a.x - b.x) <= 0", rows, rows)
    with np.errstate(under="ignore"):
        apart = np.subtract.outer(*[rows["x"].to_numpy()] * 2)
        expected = Counter(zip(*np.argwhere(apart * apart <= 0).T.tolist(), strict=True))
    assert results == expected


@pytest.mark.parametrize("on", ["abs(a.x - b.x) <= 0.5D", "a.x < b.x - 0.5D", f"{POWERS} <= 4D"])
def test_a_bound_may_be_a_double(on: str) -> None:
    schema = points(1).schema
    predicate = parse_predicate(on, {"a": schema, "b": schema}, (None, None))
    assert predicate.index_conditions and not predicate.index_conditions[0].is_exact


def test_a_square_becomes_a_band_that_a_residual_decides() -> None:
    schema = points(1).schema
    predicate = parse_predicate(f"{POWERS} <= 9", {"a": schema, "b": schema}, (None, None))
    assert [c.upper for c in predicate.index_conditions] == [pytest.approx(3)] * 2
    assert not any(c.is_exact for c in predicate.index_conditions)
    assert len(predicate.residuals) == 1
