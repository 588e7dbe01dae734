"""Panels: their controls, and the runs that they launch and show."""

from __future__ import annotations

import threading
from typing import Any

import ipywidgets as W
import pytest
from braid import Ring
from braid.core.placement import placements_for
from braid.core.run_events import BatchCommitted
from braid.simulation.simulator import simulate
from braid_widgets.base import display as showing
from braid_widgets.base import static_fallback
from braid_widgets.base.controls import Row
from braid_widgets.base.live_updates import RunFollower
from braid_widgets.base.screen_panel import ScreenPanel
from braid_widgets.cockpit.view import Cockpit
from braid_widgets.theta.panel import WORKLOADS, ThetaPanel
from unit.scripted import MIGRATION
from unit.test_widgets import FakeRun


def test_a_panel_leaves_a_picture_for_when_its_kernel_is_gone(monkeypatch):
    shown: list[Any] = []
    taken = threading.Event()
    monkeypatch.setattr(static_fallback, "LATER", 0.01)

    class Handle:
        def update(self, picture: Any) -> None:
            shown.append(picture)
            taken.set()

    def display(view: Any, display_id: bool = False) -> Any:
        shown.append(view)
        return Handle() if display_id else None

    monkeypatch.setattr(static_fallback, "display", display)
    monkeypatch.delenv("BRAID_HEADLESS", raising=False)
    panel = panel_with(lambda settings: FakeRun(MIGRATION))
    monkeypatch.setattr(showing, "LATER", 0.01)
    monkeypatch.setattr(showing, "execute_request", dict)
    warmed = threading.Event()
    showing.display_panel(panel, warm=warmed.set)
    place, widget = shown[:2]
    assert "braid-fallback" in place.data and "braid-live" in widget._dom_classes
    assert panel in widget.children
    assert taken.wait(60) and "batch 3 of 3" in shown[2].data
    assert warmed.wait(60), "what launches need is made ready meanwhile"
    panel.handle_run_end(None)
    assert len(shown) == 4 and "braid-fallback" in shown[3].data


def test_nothing_is_made_ready_where_nobody_can_press_and_a_failure_is_told(monkeypatch, caplog):
    begun: list[str] = []

    class AtOnce:
        def __init__(self, seconds: float, work: Any, given: Any) -> None:
            self.start = lambda: work(*given)

    class Still:
        def __init__(self, *given: Any) -> None:
            self.refresh = None

    def warm() -> None:
        begun.append("a launch")
        raise RuntimeError("no java here")

    monkeypatch.setattr(showing.threading, "Timer", AtOnce)
    monkeypatch.setattr(showing, "StaticFallback", Still)
    monkeypatch.delenv("BRAID_HEADLESS", raising=False)
    panel = panel_with(None)
    assert showing.execute_request() is None, "outside of a kernel"
    showing.display_panel(panel, warm=warm)
    assert begun == [] and not caplog.records
    monkeypatch.setattr(showing, "execute_request", dict)
    showing.display_panel(panel, warm=warm)
    (record,) = caplog.records
    assert begun == ["a launch"] and record.levelname == "WARNING"
    assert "no java here" in caplog.text


def panel_with(launch: Any, **defaults: Any) -> ThetaPanel:
    return ThetaPanel(launch, Cockpit(MIGRATION), **defaults)


def test_controls_that_a_workload_does_not_heed_are_greyed_out():
    panel = panel_with(None)
    names = ("skew", "width", "fluctuation")
    for key, (_, used_controls) in WORKLOADS.items():
        panel.inputs["workload"].value = key
        assert {n for n in names if not panel.inputs[n].disabled} == used_controls
    panel.inputs["workload"].value = "bci"
    assert panel.inputs["width"].description == "band width · 0 to 365"
    panel.inputs["placement"].value = "JoinBiclique"
    assert panel.inputs["epsilon"].disabled


def test_hashing_is_offered_for_equality_only():
    panel = panel_with(None, workload="eq5", placement="HashPartition")
    panel.inputs["workload"].value = "bnci"
    shown = [key for _, key in panel.inputs["placement"].options]
    assert shown == list(placements_for(2, equality=False)) and "HashPartition" not in shown
    assert {"AdaptiveGrid", "StaticGrid", "StaticOpt", "JoinBiclique", "Ring"} <= set(shown)
    assert "Chain" not in shown and panel.settings()["placement"] == "AdaptiveGrid"
    panel.inputs["workload"].value = "fluct"
    shown = [key for _, key in panel.inputs["placement"].options]
    assert shown == list(placements_for(2)) and "HashPartition" in shown


def test_settings_are_plain_literals():
    settings = panel_with(None, hosts=64, skew=0.5, workload="eq7").settings()
    assert settings["hosts"] == 64 and settings["skew"] == 0.5 and settings["workload"] == "eq7"
    assert all(type(v) in (int, float, str) for v in settings.values())
    with pytest.raises(
        ValueError, match="the panel has no control 'machines'; it has: workload, skew"
    ):
        panel_with(None, machines=3)


def test_launch_returns_at_once_and_the_run_takes_the_stage():
    gate, got, run = threading.Event(), [], FakeRun(MIGRATION, shown=4)

    def launch(settings: dict[str, Any]) -> FakeRun:
        got.append(settings)
        gate.wait(60)
        return run

    panel = panel_with(launch, hosts=2)
    panel.start.click()
    assert panel.status.value == "starting Spark…" and panel.start.disabled and panel.stop.disabled
    assert panel.screen.page["state"] == "earlier run" and len(panel.screen.page["frames"]) == 3
    gate.set()
    panel.wait_for_work(60)
    assert (
        panel.state == "running"
        and got[0]["hosts"] == 2
        and not panel.stop.disabled
        and not panel.pause.disabled
    )
    panel.pause.click()
    assert panel.state == "paused" and panel.pause.description == "Resume"
    panel.pause.click()
    assert panel.state == "running" and panel.pause.description == "Pause"
    panel.stop.click()
    panel.wait_for_work(60)
    panel.screen.wait_for_end(60)
    assert [c for c in run.calls if isinstance(c, str)] == ["pause", "unpause", "stop"]
    assert panel.state == "idle" and not panel.start.disabled and panel.stop.disabled
    assert panel.screen.page["note"].endswith("stopped")


def test_a_launch_that_fails_gives_one_sentence_and_the_panel_is_ready_again():
    def launch(settings: dict[str, Any]) -> FakeRun:
        raise ValueError("hosts is 0; it must be 1 or more\nmore lines")

    panel = panel_with(launch)
    panel.start.click()
    panel.wait_for_work(60)
    assert "hosts is 0; it must be 1 or more<" in panel.message.value and isinstance(
        panel.error, ValueError
    )
    assert panel.state == "idle" and not panel.start.disabled


def test_a_second_click_does_not_launch_twice():
    gate, count = threading.Event(), []

    def launch(settings: dict[str, Any]) -> FakeRun:
        count.append(1)
        gate.wait(60)
        return FakeRun(MIGRATION)

    panel = panel_with(launch)
    panel.start.click()
    panel.start.click()
    gate.set()
    panel.wait_for_work(60)
    panel.screen.wait_for_end(60)
    assert count == [1] and panel.state == "idle"


def modelled(placement: Any) -> list[Any]:
    return simulate(placement, [(3, 4, 5)] * 4, windows=(2, 2, 2), selectivity=0.2)


EVENTS = modelled(Ring(5))


class Pictures(W.HTML):
    """A screen that keeps the events that it would draw; ``painted`` is released with each run."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Any] = []
        self.painted = threading.Semaphore(0)

    def load_run(self, source: Any) -> None:
        self.events = [*source]

    def mark_stale(self) -> None:
        pass

    def follow(self, run: Any, ended: Any) -> RunFollower:
        def show(new: list[Any]) -> None:
            if any(isinstance(event, BatchCommitted) for event in new):
                self.load_run(run.events())
                self.painted.release()

        return RunFollower(run, show, ended)


def plain(launch: Any) -> ScreenPanel:
    """Return a panel without a cockpit."""
    rows = {"streams": Row("streams", 3, (2, 5), "number of joined streams")}
    return ScreenPanel(launch, Pictures(), lambda settings: modelled(Ring(3)), rows)


def first_batches(events: list[Any], count: int) -> int:
    """Return the number of events up to the commit of this number of batches."""
    return [k for k, e in enumerate(events) if isinstance(e, BatchCommitted)][count - 1] + 1


def test_a_panel_paints_a_run_while_it_goes_on():
    run = FakeRun(EVENTS, shown=first_batches(EVENTS, 1))
    panel = plain(lambda settings: run)
    painted = panel.screen.painted
    panel.start.click()
    assert painted.acquire(timeout=60)
    assert (
        panel.state == "running"
        and panel.screen.events == EVENTS[: run.shown]
        and panel.status.value == "running"
    )
    panel.pause.click()
    assert panel.state == "paused" == panel.status.value
    run.shown = first_batches(EVENTS, 3)
    assert painted.acquire(timeout=60)
    assert panel.screen.events == EVENTS[: run.shown]
    panel.stop.click()
    panel.wait_for_work(60)
    panel.follower.wait_for_end(60)
    assert (
        panel.state == "idle"
        and panel.status.value == "ended"
        and not panel.start.disabled
        and panel.error is None
    )
    assert panel.launched == panel.settings()


def test_a_second_launch_stops_the_first_run():
    """Also if it is requested before the first launch is done, when the first run is already
    visible.
    """
    runs, asked = [], threading.Event()

    def launch(settings: dict[str, Any]) -> FakeRun:
        runs.append(FakeRun(EVENTS, shown=first_batches(EVENTS, 2)))
        return runs[-1]

    def late(run: Any) -> Any:
        follower = follow(run)
        assert asked.wait(60)
        return follower

    panel = plain(launch)
    painted, follow = panel.screen.painted, panel.follow_run
    panel.follow_run = late
    panel.start.click()
    assert painted.acquire(timeout=60) and not panel.start.disabled
    assert panel.start.tooltip == "stops the run that goes on, and starts another"
    panel.start.click()
    asked.set()
    panel.wait_for_work(60)
    assert "The run before was stopped for this one." in panel.message.value
    assert (
        "stop" in runs[0].calls
        and "stop" not in runs[1].calls
        and panel.run is runs[1]
        and panel.state == "running"
    )
    panel.stop.click()
    panel.wait_for_work(60)
    panel.follower.wait_for_end(60)
    assert panel.state == "idle" and "stop" in runs[1].calls


def test_a_panel_says_what_was_refused_and_what_failed():
    answers: list[Any] = [
        ValueError("max_copies is -1; it must be 0 or more"),
        FakeRun(EVENTS[:1], error=RuntimeError("gone")),
    ]

    def launch(settings: dict[str, Any]) -> FakeRun:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    panel = plain(launch)
    before = panel.screen.events
    panel.start.click()
    panel.wait_for_work(60)
    assert (
        "max_copies is -1; it must be 0 or more<" in panel.message.value and panel.state == "idle"
    )
    panel.start.click()
    panel.wait_for_work(60)
    panel.follower.wait_for_end(60)
    assert (
        ">gone<" in panel.message.value
        and panel.status.value == "failed"
        and panel.screen.events is before
    )


def test_nothing_is_simulated_into_a_picture_that_is_live():
    panel = plain(lambda settings: FakeRun(EVENTS, shown=first_batches(EVENTS, 1)))
    painted = panel.screen.painted
    panel.start.click()
    assert painted.acquire(timeout=60)
    panel.inputs["streams"].value = 2
    panel.wait_for_work(60)  # a follower may paint before its launch is done
    assert (
        panel.screen.events == EVENTS[: len(panel.screen.events)] and panel.launched["streams"] == 3
    )
    panel.stop.click()
    panel.follower.wait_for_end(60)


def test_the_end_of_a_run_is_heard_while_a_modelled_one_is_loaded(monkeypatch):
    """A screen that loads a run waits until it no longer follows the one before."""
    panel = plain(lambda settings: FakeRun(EVENTS))

    def load_run(source: Any) -> None:
        end = threading.Thread(target=panel.handle_run_end, args=[None], daemon=True)
        end.start()
        end.join(10)
        assert not end.is_alive(), "each waits for the other"

    monkeypatch.setattr(panel.screen, "load_run", load_run)
    panel.show_events(EVENTS)
    assert panel.events is EVENTS
