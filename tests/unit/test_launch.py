"""Workloads and placements by short names: what they take, and what they refuse. No Spark."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import braid as placements
import pytest
from braid.core.placement import registry
from braid.launch import MULTIWAY, TWO_WAY, placement, workload
from braid.studies import live
from braid.workloads.base import Workload
from braid.workloads.tpch import WORKLOADS
from unit.scripted import MIGRATION

NO_SPARK = None
"""What is refused is refused before Spark is asked for anything."""


class Counted:
    """A stream that can only be counted."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def count(self) -> int:
        return self.rows


def test_every_placement_has_a_name_and_is_made_with_its_settings():
    assert {n for n, c in registry().items() if c.__module__.startswith("braid.")} <= set(
        placements.__all__
    )
    made = placement("AdaptiveGrid", 16, epsilon=0.5)
    assert made == placements.AdaptiveGrid(16, epsilon=0.5)
    assert placement("Aligned", 6, length=3, adaptive=False) == placements.Aligned(6, 3, False)
    assert placement("Coordinated", 6, copies=2) == placements.Coordinated(6, copies=2)
    assert placement("Ring", 4, form="basic") == placements.Ring(4, form="basic")
    assert placement("SemanticsUnaware", 4) == placements.SemanticsUnaware(4)
    assert placement("Centralized", 1) == placements.Centralized()
    assert placement("HashPartition", 4) == placements.HashPartition(4)


def test_the_oracle_counts_the_streams():
    join = Workload("two", {"r": Counted(30), "s": Counted(7)}, "r.x = s.x")  # type: ignore[dict-item]
    assert placement("StaticOpt", 4, join=join) == placements.StaticOpt(4, sizes=(30, 7))
    assert placement("StaticOpt", 4, sizes=(1, 2)) == placements.StaticOpt(4, sizes=(1, 2))
    with pytest.raises(
        ValueError,
        match="'StaticOpt' takes the sizes of both streams, or the join to count them in",
    ):
        placement("StaticOpt", 4)


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("atr", {}, "no placement is named 'atr'; there are: AdaptiveGrid, Aligned"),
        ("Ring", {"copies": 2}, "Ring takes no copies; it takes: hosts, form, "),
        ("Ring", {"epsilon": 0.5}, "Ring takes no epsilon; it takes: "),
        (
            "HashPartition",
            {"length": 2, "form": "basic"},
            "HashPartition takes no length and no form; it takes: hosts",
        ),
        ("Centralized", {}, "Centralized takes no hosts; it takes: nothing"),
        ("Aligned", {"length": 0}, "length is 0"),
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


def test_the_width_of_a_band_reaches_the_workloads_that_have_one(monkeypatch: pytest.MonkeyPatch):
    for name in ("BCI", "BNCI", "EQ5", "Fluct-Join"):
        monkeypatch.setitem(WORKLOADS, name, lambda spark, **settings: settings)
    for name in ("bci", "bnci"):
        assert workload(NO_SPARK, name, width=3)["width"] == 3  # type: ignore[arg-type, index]
    assert "width" not in workload(NO_SPARK, "eq5", width=3)  # type: ignore[arg-type, operator]
    assert workload(NO_SPARK, "fluct", fluctuation=2)["k"] == 2  # type: ignore[arg-type, index]


class Warmed:
    """A panel, and the run that it launches."""

    def __init__(self, run: object = None) -> None:
        self.run, self.asked, self.stopped = run, {}, False
        self.isActive = True

    def settings(self) -> dict[str, Any]:
        return {"scale": 1.0, "hosts": 4}

    def launch(self, settings: dict[str, Any]) -> Warmed:
        self.asked = settings
        return self

    def events(self) -> list[Any]:
        return MIGRATION

    def awaitTermination(self, timeout: float | None = None) -> bool:
        raise AssertionError("its first batch is there")

    def stop(self) -> None:
        self.stopped = True


def test_spark_warms_up_on_what_a_panel_would_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    small = SimpleNamespace(awaitTermination=lambda: True)
    monkeypatch.setattr(live, "_workload", lambda *names, **settings: None)
    monkeypatch.setattr(live, "_launched", lambda *names: small)
    panel, busy = Warmed(), Warmed(run=small)
    live.warm(panel, scale=0.01)
    assert panel.asked == {"scale": 0.01, "hosts": 4} and panel.stopped
    live.warm(busy)
    assert not busy.asked, "somebody has launched already"
