"""The cockpit, its pump, and the panels: no Spark, no browser, no waiting."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from braid import AdaptiveGrid, Aligned, Ring, watch
from braid.core.events import BatchCommitted, EventsDropped, RunEnded, write
from braid.core.placement import offered
from braid.core.recorded import Recorded
from braid.model.simulate import simulate
from braid_widgets.base import show as showing
from braid_widgets.base import twin
from braid_widgets.base.fold import fold
from braid_widgets.base.launcher import Launcher
from braid_widgets.base.live import Pump
from braid_widgets.base.show import show
from braid_widgets.cockpit import inspect
from braid_widgets.cockpit.view import Cockpit, Showing, recorded
from braid_widgets.diffusion.panel import DiffusionPanel
from braid_widgets.psp.panel import RingPanel
from braid_widgets.theta import timeline
from braid_widgets.theta.panel import WORKLOADS, Panel
from unit.scripted import MIGRATION, started


class FakeRun:
    """A run whose events the test releases; ``over`` says that its threads are gone."""

    def __init__(
        self, events: list[Any], shown: int | None = None, error: BaseException | None = None
    ) -> None:
        self.all, self.shown, self.error = events, len(events) if shown is None else shown, error
        self.over, self.held, self.calls = shown is None, False, []

    @property
    def isActive(self) -> bool:
        return not self.over

    def events(self, since: int = 0) -> list[Any]:
        self.calls.append(since)
        return self.all[since : self.shown]

    def exception(self) -> BaseException | None:
        return self.error

    @property
    def isPaused(self) -> bool:
        return self.held

    def pause(self) -> None:
        self.calls.append("pause")

    def unpause(self) -> None:
        self.calls.append("unpause")

    def stop(self) -> None:
        self.calls.append("stop")
        self.all = [*self.all[: self.shown], RunEnded(0, "stopped")]
        self.shown, self.over = len(self.all), True


def test_the_pump_takes_only_what_is_new_and_shows_only_what_moved():
    run, shown = FakeRun(MIGRATION, shown=4), []
    pump = Pump(run, lambda scene: shown.append(scene.totals.batches))
    assert pump.step() and shown == [1]
    assert pump.step() and shown == [1], "nothing moved, nothing is painted"
    run.shown = len(MIGRATION) - 1
    assert pump.step() and shown == [1, 3]
    run.shown += 1
    assert not pump.step() and shown == [1, 3, 3], "the end is seen"
    assert run.calls == [0, 4, 4, len(MIGRATION) - 1]


def test_the_pump_ends_with_a_run_that_died_without_a_word():
    run = FakeRun(MIGRATION[:4], error=RuntimeError("gone"))
    assert not Pump(run, lambda scene: None).step()


def sent(cockpit: Cockpit, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is sent to the browser from now on."""
    told: list[Any] = []
    monkeypatch.setattr(cockpit, "send", lambda content, buffers=None: told.append(content["more"]))
    return told


def test_a_recording_opens_on_its_last_batch_and_has_a_picture_of_each(tmp_path):
    write(tmp_path / "run.jsonl", MIGRATION)
    for source in (MIGRATION, tmp_path / "run.jsonl", tmp_path):
        if source is tmp_path:
            (tmp_path / "run.jsonl").rename(tmp_path / "events.jsonl")
        page = watch(source).page
        assert [f["batch"] for f in page["frames"]] == [1, 2, 3]
        assert page["state"] == "recorded" and page["note"].endswith("completed")
        assert page["frames"][-1]["title"].startswith("batch 3 of 3 · ")
    with pytest.raises(ValueError, match="neither a run folder nor a recording"):
        watch(tmp_path / "nothing")


def test_a_run_that_is_over_is_html_that_needs_no_kernel():
    for view in (Cockpit(MIGRATION), Cockpit(FakeRun(MIGRATION).events())):
        data, _ = view._repr_mimebundle_()
        assert set(data) == {"text/html", "text/plain"} and len(data["text/html"]) < 120_000
        assert data["text/html"].count('"matrix":') == 3
        # Where no script runs there is something to read.
        assert "<li>results so far: 21</li>" in data["text/html"]
        assert "batch 2: " in data["text/html"]


def test_a_live_run_sends_what_is_new_and_nothing_twice(monkeypatch):
    cockpit, ended, run = Cockpit(MIGRATION), threading.Event(), FakeRun(MIGRATION, shown=4)
    told = sent(cockpit, monkeypatch)
    cockpit.attach(run, lambda error: ended.set())
    assert "application/vnd.jupyter.widget-view+json" in cockpit._repr_mimebundle_()[0]
    run.shown, run.over = len(MIGRATION), True
    cockpit.wait(10)
    assert ended.is_set() and cockpit.error is None and told[-1]["state"] == "recorded"
    assert [f["batch"] for more in told for f in more["frames"]] == [1, 2, 3]
    assert [b for more in told for b in more["hosts"]["batch"]] == [1, 2, 3]
    assert cockpit.page == recorded(MIGRATION), "who looks later sees all"
    assert cockpit.events == MIGRATION


def test_the_state_of_a_run_is_said(monkeypatch):
    cockpit, run = Cockpit(), FakeRun(MIGRATION, shown=4)
    told = sent(cockpit, monkeypatch)
    cockpit._showing = showing_run = Showing(cockpit, run)
    showing_run.show(fold(MIGRATION[:4]))
    run.held = True
    showing_run.show(fold(MIGRATION[:4]))
    assert [more["state"] for more in told] == ["live", "paused"]
    assert recorded([started(clock="modelled"), *MIGRATION[1:]])["state"] == "modelled"
    assert Cockpit().page["frames"] == []


SWINGING = [(90, 10)] * 4 + [(5, 90)] * 8


def test_what_another_placement_would_do_is_drawn_beside_the_run(monkeypatch):
    events = simulate(AdaptiveGrid(16), SWINGING)
    cockpit = watch(events)
    told = sent(cockpit, monkeypatch)
    assert {"StaticGrid", "JoinBiclique"} <= set(cockpit.page["offers"])
    cockpit._asked(None, {"what_if": {"placement": "StaticGrid", "hosts": 16, "since": 0}}, [])
    cockpit._imagining.join(10)
    (curve,) = cockpit.page["line"]["panels"][-1]
    (ghost,) = curve["ghosts"]
    assert ghost["name"] == "StaticGrid(16)" and "modelled" in curve["name"]
    assert len(ghost["batch"]) > len(cockpit.page["line"]["batch"]), "it goes on"
    assert told[-1]["frames"] == [] and told[-1]["line"] == cockpit.page["line"]
    assert told[-1]["hosts"]["names"] == cockpit.page["hosts"]["names"], "else rows begin anew"
    assert "application/vnd.jupyter.widget-view+json" in cockpit._repr_mimebundle_()[0]
    assert '"offers":[]' in cockpit.to_html(), "on a page there is nobody to ask"


def test_a_host_that_is_clicked_says_what_it_holds(monkeypatch):
    cockpit, told = Cockpit(MIGRATION), []
    monkeypatch.setattr(cockpit, "send", lambda content, buffers=None: told.append(content))
    cockpit._asked(None, {"inspect": {"host": 0, "batch": 2}}, [])
    cockpit._asked(None, {"inspect": {"host": 0, "batch": 9}}, [])
    first, *blocks = told[0]["inspected"].splitlines()
    assert first == "host 0 after batch 2: 3 blocks, 7 tuples"
    assert any(line.startswith("  block 4: ") and "of s" in line for line in blocks)
    assert told[1]["inspected"] == "there is no batch 9"


def test_blocks_that_are_asked_about_tell_their_story_with_batches_from_1(monkeypatch):
    cockpit, told = Cockpit(MIGRATION), []
    monkeypatch.setattr(cockpit, "send", lambda content, buffers=None: told.append(content))
    run = Recorded.of(MIGRATION)
    met = next(m for m in run.meetings if m.batch)
    for asked in ([met.block], [met.block, met.other], [9999], [1, 2, 3]):
        cockpit._asked(None, {"inspect": {"blocks": asked}}, [])
    story, why, unknown, several = (each["inspected"] for each in told)
    assert f"  batch {met.batch + 1}: fresh block {met.block} of " in story
    assert f"met in batch {met.batch + 1}: block {met.block} probed block {met.other}" in why
    assert unknown.startswith("there is no block 9999; this run has had ")
    assert several == "3 blocks were asked about; ask about one, or about two"
    gone = EventsDropped(0, 2, 0, 0, 0, 0, 0, ())
    with pytest.raises(ValueError, match="; events are kept from batch 2 on$"):
        inspect.blocks(
            [MIGRATION[0], gone, *(e for e in MIGRATION if getattr(e, "batch", 0))], [9999]
        )


def test_what_cannot_be_simulated_is_said(monkeypatch):
    cockpit = watch(simulate(AdaptiveGrid(16), SWINGING))
    told = sent(cockpit, monkeypatch)
    cockpit._asked(None, {"what_if": {"placement": "AdaptiveGrid", "hosts": 0, "since": 0}}, [])
    cockpit._imagining.join(10)
    assert "hosts is 0" in told[-1]["told"] and len(cockpit.page["line"]["panels"]) == 3
    with pytest.raises(ValueError, match="this view cannot simulate; braid.watch makes one"):
        Cockpit(MIGRATION).what_if("StaticGrid", 4)


def test_a_follower_leaves_when_it_is_told_to():
    cockpit = Cockpit(MIGRATION)
    cockpit.attach(FakeRun(MIGRATION, shown=4))
    cockpit.detach(10)
    assert cockpit._follower is not None and not cockpit._follower.active


def test_a_run_that_fails_says_why(monkeypatch):
    error = RuntimeError("column <x> is gone")
    events = [*MIGRATION[:4], RunEnded(1, "failed", "RuntimeError: column <x> is gone")]
    cockpit = Cockpit()
    told = sent(cockpit, monkeypatch)
    cockpit.attach(FakeRun(events, error=error))
    cockpit.wait(10)
    assert cockpit.error is error and told[-1]["state"] == "failed"
    assert told[-1]["note"].endswith("failed: RuntimeError: column <x> is gone")
    assert "column &lt;x&gt; is gone" in cockpit.to_html()
    assert "\\u003cx>" in cockpit.to_html() and "<x>" not in cockpit.to_html()


def test_an_error_of_the_view_itself_is_kept_and_shown(monkeypatch):
    cockpit, ended = Cockpit(), threading.Event()
    told = sent(cockpit, monkeypatch)
    run = FakeRun(MIGRATION)
    run.events = None  # type: ignore[assignment, method-assign]
    cockpit.attach(run, lambda error: ended.set())
    cockpit.wait(10)
    assert ended.is_set() and isinstance(cockpit.error, TypeError)
    assert told[-1]["state"] == "failed" and "not callable" in told[-1]["note"]


def test_a_panel_leaves_a_picture_for_when_its_kernel_is_gone(monkeypatch):
    shown: list[Any] = []
    taken = threading.Event()
    monkeypatch.setattr(twin, "LATER", 0.01)

    class Handle:
        def update(self, picture: Any) -> None:
            shown.append(picture)
            taken.set()

    def display(view: Any, display_id: bool = False) -> Any:
        shown.append(view)
        return Handle() if display_id else None

    monkeypatch.setattr(twin, "display", display)
    monkeypatch.delenv("BRAID_HEADLESS", raising=False)
    panel = panel_with(lambda settings: FakeRun(MIGRATION))
    monkeypatch.setattr(showing, "LATER", 0.01)
    monkeypatch.setattr(showing, "asked", dict)
    warmed = threading.Event()
    showing.present(panel, panel.screen, warm=warmed.set)
    place, widget = shown[:2]
    assert "braid-twin" in place.data and "braid-live" in widget._dom_classes
    assert panel in widget.children
    assert taken.wait(10) and "batch 3 of 3" in shown[2].data
    assert warmed.wait(10), "what launches need is made ready meanwhile"
    panel.over(None)
    assert len(shown) == 4 and "braid-twin" in shown[3].data


def test_nothing_is_made_ready_where_nobody_can_press_and_a_failure_is_told(monkeypatch, caplog):
    begun: list[str] = []

    class AtOnce:
        def __init__(self, seconds: float, work: Any, given: Any) -> None:
            self.start = lambda: work(*given)

    class Still:
        def __init__(self, *given: Any) -> None:
            self.renew = None

    def warm() -> None:
        begun.append("a launch")
        raise RuntimeError("no java here")

    monkeypatch.setattr(showing.threading, "Timer", AtOnce)
    monkeypatch.setattr(showing, "Twin", Still)
    monkeypatch.delenv("BRAID_HEADLESS", raising=False)
    panel = panel_with(None)
    assert showing.asked() is None, "outside of a kernel"
    showing.present(panel, warm=warm)
    assert begun == [] and not caplog.records
    monkeypatch.setattr(showing, "asked", dict)
    showing.present(panel, warm=warm)
    (record,) = caplog.records
    assert begun == ["a launch"] and record.levelname == "WARNING"
    assert "no java here" in caplog.text


def test_headless_views_are_shown_as_html_with_plotly_once(monkeypatch):
    shown: list[Any] = []
    monkeypatch.setattr(showing, "display", lambda view, metadata=None: shown.append(view))
    monkeypatch.setattr(showing._Page, "has_plotly", False)
    monkeypatch.setenv("BRAID_HEADLESS", "1")
    chart = timeline.figure(MIGRATION)
    for view in (chart, chart, Cockpit(MIGRATION)):
        show(view)
    sizes = [len(s.data) for s in shown]
    assert sizes[0] > 4_000_000 and sizes[1] < 100_000 and sizes[2] < 200_000
    monkeypatch.delenv("BRAID_HEADLESS")
    show(chart)
    assert shown[-1] is chart


def panel_with(launch: Any, **defaults: Any) -> Panel:
    return Panel(launch, Cockpit(MIGRATION), **defaults)


def test_controls_that_a_workload_does_not_heed_are_greyed_out():
    panel = panel_with(None)
    names = ("skew", "width", "fluctuation")
    for key, workload in WORKLOADS.items():
        panel.inputs["workload"].value = key
        assert {n for n in names if not panel.inputs[n].disabled} == workload.heeds
    panel.inputs["workload"].value = "bci"
    assert panel.inputs["width"].description == "band width (days) · 0 to 365"
    panel.inputs["placement"].value = "JoinBiclique"
    assert panel.inputs["epsilon"].disabled


def test_hashing_is_offered_for_equality_only():
    panel = panel_with(None, workload="eq5", placement="HashPartition")
    panel.inputs["workload"].value = "bnci"
    shown = [key for _, key in panel.inputs["placement"].options]
    assert shown == list(offered(2, equality=False)) and "HashPartition" not in shown
    assert {"AdaptiveGrid", "StaticGrid", "StaticOpt", "JoinBiclique", "Ring"} <= set(shown)
    assert "Chain" not in shown and panel.settings()["placement"] == "AdaptiveGrid"
    panel.inputs["workload"].value = "fluct"
    shown = [key for _, key in panel.inputs["placement"].options]
    assert shown == list(offered(2)) and "HashPartition" in shown


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
        gate.wait(10)
        return run

    panel = panel_with(launch, hosts=2)
    panel.start.click()
    assert panel.status.value == "starting Spark…" and panel.start.disabled and panel.stop.disabled
    assert panel.screen.page["state"] == "earlier run" and len(panel.screen.page["frames"]) == 3
    gate.set()
    panel.wait(10)
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
    panel.wait(10)
    panel.screen.wait(10)
    assert [c for c in run.calls if isinstance(c, str)] == ["pause", "unpause", "stop"]
    assert panel.state == "idle" and not panel.start.disabled and panel.stop.disabled
    assert panel.screen.page["note"].endswith("stopped")


def test_a_launch_that_fails_gives_one_sentence_and_the_panel_is_ready_again():
    def launch(settings: dict[str, Any]) -> FakeRun:
        raise ValueError("hosts is 0; it must be 1 or more\nmore lines")

    panel = panel_with(launch)
    panel.start.click()
    panel.wait(10)
    assert "hosts is 0; it must be 1 or more<" in panel.message.value and isinstance(
        panel.error, ValueError
    )
    assert panel.state == "idle" and not panel.start.disabled


def test_a_second_click_does_not_launch_twice():
    gate, count = threading.Event(), []

    def launch(settings: dict[str, Any]) -> FakeRun:
        count.append(1)
        gate.wait(10)
        return FakeRun(MIGRATION)

    panel = panel_with(launch)
    panel.start.click()
    panel.start.click()
    gate.set()
    panel.wait(10)
    panel.screen.wait(10)
    assert count == [1] and panel.state == "idle"


def modelled(placement: Any) -> list[Any]:
    return simulate(placement, [(3, 4, 5)] * 4, windows=(2, 2, 2), selectivity=0.2)


PANELS = {
    "diffusion": lambda launch: DiffusionPanel(
        lambda s: modelled(Aligned(3)), launch, ("ATR", "CTR")
    ),
    "ring": lambda launch: RingPanel(lambda s: modelled(Ring(3)), launch),
}
LIVE = {"diffusion": modelled(Aligned(5)), "ring": modelled(Ring(5))}


@pytest.fixture(params=PANELS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def watched(panel: Launcher, monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """A semaphore that is released whenever the panel has painted a run."""
    painted, show = threading.Semaphore(0), panel.show
    monkeypatch.setattr(panel, "show", lambda events: (show(events), painted.release()))
    return painted


def first_batches(events: list[Any], count: int) -> int:
    """How many events there are when so many batches have been committed."""
    return [k for k, e in enumerate(events) if isinstance(e, BatchCommitted)][count - 1] + 1


def test_a_panel_paints_a_run_while_it_goes_on(kind: str, monkeypatch: pytest.MonkeyPatch):
    events = LIVE[kind]
    run = FakeRun(events, shown=first_batches(events, 1))
    panel = PANELS[kind](lambda settings: run)
    painted = watched(panel, monkeypatch)
    panel.start.click()
    assert painted.acquire(timeout=10)
    assert (
        panel.state == "running"
        and panel.events == events[: run.shown]
        and "batch 1 of 4 (25%)" in panel.status.value
    )
    panel.pause.click()
    assert panel.state == "paused" and panel.status.value.startswith("paused · batch 1 of 4")
    run.shown = first_batches(events, 3)
    assert painted.acquire(timeout=10)
    assert panel.events == events[: run.shown] and "batch 3 of 4" in panel.status.value
    panel.stop.click()
    panel.wait(10)
    panel.follower.wait(10)
    assert (
        panel.state == "idle"
        and "stopped" in panel.status.value
        and not panel.start.disabled
        and panel.error is None
    )
    assert panel.launched == panel.settings()


def test_a_second_launch_stops_the_first_run(kind: str, monkeypatch: pytest.MonkeyPatch):
    events, runs = LIVE[kind], []

    def launch(settings: dict[str, Any]) -> FakeRun:
        runs.append(FakeRun(events, shown=first_batches(events, 2)))
        return runs[-1]

    panel = PANELS[kind](launch)
    painted = watched(panel, monkeypatch)
    panel.start.click()
    assert painted.acquire(timeout=10) and not panel.start.disabled
    assert panel.start.tooltip == "stops the run that goes on, and starts another"
    panel.start.click()
    panel.wait(10)
    assert "The run before was stopped for this one." in panel.message.value
    assert (
        "stop" in runs[0].calls
        and "stop" not in runs[1].calls
        and panel.run is runs[1]
        and panel.state == "running"
    )
    panel.stop.click()
    panel.wait(10)
    panel.follower.wait(10)
    assert panel.state == "idle" and "stop" in runs[1].calls


def test_a_panel_says_what_was_refused_and_what_failed(kind: str):
    answers: list[Any] = [
        ValueError("copies is -1; it must be 0 or more"),
        FakeRun(LIVE[kind][:1], error=RuntimeError("gone")),
    ]

    def launch(settings: dict[str, Any]) -> FakeRun:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    panel = PANELS[kind](launch)
    before = panel.events
    panel.start.click()
    panel.wait(10)
    assert "copies is -1; it must be 0 or more<" in panel.message.value and panel.state == "idle"
    panel.start.click()
    panel.wait(10)
    panel.follower.wait(10)
    assert (
        ">gone<" in panel.message.value
        and panel.status.value == "failed"
        and panel.events is before
    )


def test_nothing_is_simulated_into_a_picture_that_is_live(
    kind: str, monkeypatch: pytest.MonkeyPatch
):
    events = LIVE[kind]
    panel = PANELS[kind](lambda settings: FakeRun(events, shown=first_batches(events, 1)))
    painted = watched(panel, monkeypatch)
    panel.start.click()
    assert painted.acquire(timeout=10)
    panel.inputs["streams"].value = 2
    if kind == "diffusion":
        assert panel.simulate.disabled
        panel.simulate.click()
    assert panel.events == events[: len(panel.events)] and panel.launched["streams"] == 3
    panel.stop.click()
    panel.follower.wait(10)


def test_a_batch_that_is_looked_at_stays_while_the_ring_goes_on():
    events = LIVE["ring"]
    view = RingPanel(lambda s: events, lambda s: FakeRun(events)).view
    view.load(events[: first_batches(events, 2)])
    assert view.position == 1
    view.load(events[: first_batches(events, 3)])
    assert view.position == 2, "the last batch is followed"
    view.position = 0
    view.load(events)
    assert (view.position, len(view.frames)) == (0, 4)
    view.load(modelled(Ring(2)))
    assert view.position == 3, "another run opens on its last batch"
