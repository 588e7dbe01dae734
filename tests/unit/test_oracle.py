"""The oracle itself, against loops in plain Python."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import product
from math import isnan
from typing import Any

import pyarrow as pa
import pytest
from oracle import Ids, compute_expected, describe_difference, make_tables

Row = dict[str, Any]
CASES: list[tuple[str, str, dict[str, int], Callable[..., Any]]] = [
    ("ab", "a.k = b.k", {}, lambda a, b: a["k"] == b["k"]),
    ("ab", "a.k = b.k", {"a": 60, "b": 90}, lambda a, b: a["k"] == b["k"]),
    (
        "ab",
        "abs(a.n - b.n) <= 3 AND a.flag",
        {"b": 30},
        lambda a, b: abs(a["n"] - b["n"]) <= 3 and a["flag"],
    ),
    ("ab", "a.f <= b.f", {}, lambda a, b: isnan(b["f"]) or a["f"] <= b["f"]),
    ("ab", "a.s = b.s AND a.d < b.d", {}, lambda a, b: a["s"] == b["s"] and a["d"] < b["d"]),
    (
        "ab",
        "a.m BETWEEN b.m - 0.05 AND b.m + 0.05",
        {},
        lambda a, b: abs(a["m"] - b["m"]) * 100 <= 5,
    ),
    (
        "abc",
        "a.k = b.k AND b.n < c.n",
        {"a": 50, "c": 70},
        lambda a, b, c: a["k"] == b["k"] and b["n"] < c["n"],
    ),
]


def brute(
    streams: dict[str, pa.Table], on: str, windows: dict[str, int], holds: Callable[..., Any]
) -> Ids:
    """Return the join by brute force; NULL in a column that the condition reads never matches."""
    read = [re.findall(rf"\b{a}\.(\w+)", on) for a in streams]
    lists = []
    for rows, names in zip(streams.values(), read, strict=True):
        lists.append([r for r in rows.to_pylist() if None not in [r[c] for c in names]])
    out: Ids = Counter()
    for rows in product(*lists):
        latest = max(r["ts"] for r in rows)
        live = all(
            latest - r["ts"] < timedelta(seconds=windows.get(a, 10**6))
            for a, r in zip(streams, rows, strict=True)
        )
        if live and holds(*rows):
            out[tuple(r["id"] for r in rows)] += 1
    return out


@pytest.mark.parametrize(
    ("aliases", "on", "windows", "holds"), CASES, ids=[f"{c[1]} {c[2]}" for c in CASES]
)
def test_duckdb_agrees_with_loops(
    aliases: str, on: str, windows: dict[str, int], holds: Callable[..., Any]
) -> None:
    streams = make_tables(aliases, 25 if len(aliases) > 2 else 80, seed=4)
    want = brute(streams, on, windows, holds)
    assert want
    assert describe_difference(compute_expected(streams, on, windows), want) == ""


def test_a_difference_is_told() -> None:
    found, want = Counter({(1, 2): 2}), Counter({(1, 2): 1, (3, 4): 1})
    assert describe_difference(found, want) == "1 of 2 lost, as [(3, 4)]; 1 too many, as [(1, 2)]"
