"""Workloads and placements by short names: what they accept and refuse. No Spark."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import braid as placements
import ipywidgets as W
import pytest
from braid.core.placement import registered_placements
from braid_lab.launches import live_runs
from braid_lab.launches.launching import MULTIWAY, TWO_WAY, make_placement, make_workload
from braid_lab.workloads.base import Workload
from braid_lab.workloads.tpch import WORKLOADS
from braid_widgets.base.launcher import LaunchPanel
from unit.scripted import MIGRATION

NO_SPARK = None
"""Refusals that happen before Spark is used."""


class Counted:
    """A stream that can only be counted."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def count(self) -> int:
        return self.rows


def test_every_placement_has_a_name_and_is_made_with_its_settings():
    assert {
        n for n, c in registered_placements().items() if c.__module__.startswith("braid.")
    } <= set(placements.__all__)
    made = make_placement("AdaptiveGrid", 16, epsilon=0.5)
    assert made == placements.AdaptiveGrid(16, epsilon=0.5)
    assert make_placement("Aligned", 6, segment_batches=3, adaptive=False) == placements.Aligned(
        6, 3, False
    )
    assert make_placement("Coordinated", 6, max_copies=2) == placements.Coordinated(6, max_copies=2)
    assert make_placement("Ring", 4, form="basic") == placements.Ring(4, form="basic")
    assert make_placement("SemanticsUnaware", 4) == placements.SemanticsUnaware(4)
    assert make_placement("Centralized", 1) == placements.Centralized()
    assert make_placement("HashPartition", 4) == placements.HashPartition(4)


def test_the_oracle_counts_the_streams():
    join = Workload("two", {"r": Counted(30), "s": Counted(7)}, "r.x = s.x")  # type: ignore[dict-item]
    assert make_placement("StaticOpt", 4, join=join) == placements.StaticOpt(4, final_sizes=(30, 7))
    assert make_placement("StaticOpt", 4, final_sizes=(1, 2)) == placements.StaticOpt(
        4, final_sizes=(1, 2)
    )
    with pytest.raises(
        ValueError,
        match="'StaticOpt' takes the sizes of both streams, or the join to count them in",
    ):
        make_placement("StaticOpt", 4)


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
        ("Aligned", {"segment_batches": 0}, "segment_batches is 0"),
    ],
)
def test_a_placement_refuses_what_it_does_not_take(
    name: str, settings: dict[str, object], sentence: str
):
    with pytest.raises(ValueError, match=re.escape(sentence)) as refused:
        make_placement(name, 4, **settings)
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
        make_workload(NO_SPARK, name, **settings)  # type: ignore[arg-type]


def test_settings_reach_the_workload(monkeypatch: pytest.MonkeyPatch):
    def drawn(spark: object, streams: int = 3, sigma: float = 0.1) -> tuple[int, float]:
        return streams, sigma

    monkeypatch.setitem(MULTIWAY, "arrivals", drawn)
    assert make_workload(NO_SPARK, "arrivals", streams=5) == (5, 0.1)  # type: ignore[arg-type, comparison-overlap]
    assert set(TWO_WAY).isdisjoint(MULTIWAY)


def test_the_width_of_a_band_reaches_the_workloads_that_have_one(monkeypatch: pytest.MonkeyPatch):
    for name in ("BCI", "BNCI", "EQ5", "Fluct-Join"):
        monkeypatch.setitem(WORKLOADS, name, lambda spark, **settings: settings)
    for name in ("bci", "bnci"):
        assert make_workload(NO_SPARK, name, width=3)["width"] == 3  # type: ignore[arg-type, index]
    assert "width" not in make_workload(NO_SPARK, "eq5", width=3)  # type: ignore[arg-type, operator]
    assert make_workload(NO_SPARK, "fluct", fluctuation=2)["k"] == 2  # type: ignore[arg-type, index]


class Warmed:
    """A panel, and the run that it launches, which has ``run_events`` events.

    ``waited`` is called when something waits for the run.
    """

    def __init__(self, run_events: Sequence[Any] = MIGRATION, taken: bool = False) -> None:
        self.run_events, self.taken, self.asked, self.stopped = run_events, taken, {}, False
        self.isActive, self.begun = True, 0
        self.waited: Callable[[], Any] = lambda: pytest.fail("its first batch is there")

    def can_launch(self) -> bool:
        return not self.taken

    def settings(self) -> dict[str, Any]:
        return {"scale": 1.0, "hosts": 4}

    def launch(self, settings: dict[str, Any]) -> Warmed:
        self.asked = settings
        self.begun += 1
        return self

    def events(self) -> Sequence[Any]:
        return self.run_events

    def awaitTermination(self, timeout: float | None = None) -> bool:
        self.waited()
        return False

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The small join, which needs no Spark here."""
    join = SimpleNamespace(awaitTermination=lambda: True)
    monkeypatch.setattr(live_runs, "_make_session_workload", lambda *names, **settings: None)
    monkeypatch.setattr(live_runs, "_launch_in_new_folder", lambda *names: join)
    return join


@pytest.mark.usefixtures("small")
def test_spark_warms_up_on_what_a_panel_would_launch() -> None:
    panel, busy = Warmed(), Warmed(taken=True)
    live_runs.warm_up(panel, scale=0.01)
    assert panel.asked == {"scale": 0.01, "hosts": 4} and panel.stopped
    assert panel.begun == 2, "the second is still slower than the third"
    live_runs.warm_up(busy)
    assert not busy.asked, "somebody has launched already"


@pytest.mark.usefixtures("small")
def test_what_warms_up_is_stopped_by_a_launch_and_by_a_failure() -> None:
    panel, broken = Warmed(run_events=()), Warmed(run_events=())
    panel.waited = lambda: setattr(panel, "taken", True)
    live_runs.warm_up(panel)
    assert panel.stopped and panel.begun == 1

    def failed() -> None:
        raise RuntimeError("the run failed")

    broken.waited = failed
    with pytest.raises(RuntimeError, match="the run failed"):
        live_runs.warm_up(broken)
    assert broken.stopped


def test_who_launches_while_spark_starts_has_the_only_run(small: SimpleNamespace) -> None:
    begun, go = [], threading.Event()

    def launch(settings: dict[str, Any]) -> Any:
        begun.append(settings)
        go.wait(1)
        raise RuntimeError("no more is needed")

    def is_interrupted() -> bool:
        panel.start.click()
        return True

    panel = LaunchPanel(launch, {"hosts": W.IntText(2)}, {})
    small.awaitTermination = is_interrupted
    live_runs.warm_up(panel)
    go.set()
    panel.wait_for_work(10)
    assert begun == [{"hosts": 2}] and panel.state == "idle"


@pytest.mark.usefixtures("small")
def test_nothing_warms_up_on_a_value_that_is_refused() -> None:
    hosts = W.IntText(2)
    hosts.refusal = "it must be from 1"  # type: ignore[attr-defined]
    panel = LaunchPanel(lambda settings: pytest.fail("launched"), {"hosts": hosts}, {})
    live_runs.warm_up(panel)
    assert panel.error is None, "and nothing new is told"
