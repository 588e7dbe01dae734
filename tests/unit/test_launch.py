"""Workloads and placements by short names: what they take, and what they refuse. No Spark."""

from __future__ import annotations

import re

import braid as placements
import pytest
from braid.launch import MULTIWAY, PLACEMENTS, TWO_WAY, placement, workload
from braid.workloads.base import Workload

NO_SPARK = None
"""What is refused is refused before Spark is asked for anything."""


class Counted:
    """A stream that can only be counted."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def count(self) -> int:
        return self.rows


def test_every_placement_has_a_name_and_is_made_with_its_settings():
    assert {kind.__name__ for kind in PLACEMENTS.values()} <= set(placements.__all__)
    assert placement("dynamic", 16, 0.5) == placements.AdaptiveGrid(16, epsilon=0.5)
    assert placement("aligned", 6, length=3, adaptive=False) == placements.Aligned(6, 3, False)
    assert placement("coordinated", 6, copies=2) == placements.Coordinated(6, copies=2)
    assert placement("ring", 4, form="basic") == placements.Ring(4, form="basic")
    assert placement("semantics_unaware", 4) == placements.SemanticsUnaware(4)
    assert placement("centralized", 1) == placements.Centralized()
    assert placement("hash", 4, 0.5) == placements.HashPartition(4), (
        "one panel sets epsilon for all placements of two streams"
    )


def test_the_oracle_counts_the_streams():
    join = Workload("two", {"r": Counted(30), "s": Counted(7)}, "r.x = s.x")  # type: ignore[dict-item]
    assert placement("static_opt", 4, join=join) == placements.StaticOpt(4, sizes=(30, 7))
    assert placement("static_opt", 4, sizes=(1, 2)) == placements.StaticOpt(4, sizes=(1, 2))
    with pytest.raises(
        ValueError,
        match="'static_opt' takes the sizes of both streams, or the join to count them in",
    ):
        placement("static_opt", 4)


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("atr", {}, "no placement is named 'atr'; there are: dynamic, static_mid"),
        ("ring", {"copies": 2}, "placement 'ring' takes no copies; it takes: hosts, form, "),
        ("ring", {"epsilon": 0.5}, "placement 'ring' takes no epsilon; it takes: "),
        (
            "hash",
            {"length": 2, "form": "basic"},
            "placement 'hash' takes no length and no form; it takes: hosts",
        ),
        ("centralized", {}, "placement 'centralized' takes no hosts; it takes: nothing"),
        ("aligned", {"length": 0}, "length is 0"),
    ],
)
def test_a_placement_refuses_what_it_does_not_take(
    name: str, settings: dict[str, object], sentence: str
):
    with pytest.raises(ValueError, match=re.escape(sentence)) as refused:
        placement(name, 4, **settings)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        (
            "eq6",
            {},
            "no workload is named 'eq6'; there are: eq5, eq7, bci, bnci, fluct, arrivals, vectors, "
            "flights",
        ),
        (
            "arrivals",
            {"skew": 1.0},
            "workload 'arrivals' takes no skew; it takes: rates, streams, seconds, ",
        ),
        (
            "vectors",
            {"scale": 0.1, "width": 2},
            "workload 'vectors' takes no scale and no width; it takes: cost, ",
        ),
        (
            "flights",
            {"seed": 1},
            "workload 'flights' takes no seed; it takes: month, days, batches",
        ),
        (
            "eq5",
            {"sigma": 0.1},
            "workload 'eq5' takes no sigma; it takes: skew, scale, width, fluctuation, batches, "
            "seed",
        ),
    ],
)
def test_a_workload_refuses_what_it_does_not_take(
    name: str, settings: dict[str, object], sentence: str
):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        workload(NO_SPARK, name, **settings)  # type: ignore[arg-type]


def test_settings_reach_the_workload(monkeypatch: pytest.MonkeyPatch):
    def drawn(spark: object, streams: int = 3, sigma: float = 0.1) -> tuple[int, float]:
        return streams, sigma

    monkeypatch.setitem(MULTIWAY, "arrivals", drawn)
    assert workload(NO_SPARK, "arrivals", streams=5) == (5, 0.1)  # type: ignore[arg-type, comparison-overlap]
    assert set(TWO_WAY).isdisjoint(MULTIWAY)
