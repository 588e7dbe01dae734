"""The player, its pump, and the panel: no Spark, no browser, no waiting."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from braid import Aligned, Ring
from braid.core.events import BatchCommitted, RunEnded
from braid.core.placement import offered
from braid.model.simulate import simulate
from braid_widgets.base import show as showing
from braid_widgets.base.fold import fold
from braid_widgets.base.launcher import Launcher
from braid_widgets.base.live import Pump
from braid_widgets.base.show import show
from braid_widgets.diffusion.panel import DiffusionPanel
from braid_widgets.psp.panel import RingPanel
from braid_widgets.theta import timeline
from braid_widgets.theta.panel import WORKLOADS, Panel
from braid_widgets.theta.player import Player
from braid_widgets.theta.stage import Stage, frame
from unit.scripted import MIGRATION, started


class FakeRun:
    """A run whose events the test releases; ``over`` says that its threads are gone."""

    def __init__(
        self, events: list[Any], shown: int | None = None, error: BaseException | None = None
    ) -> None:
        self.all, self.shown, self.error = events, len(events) if shown is None else shown, error
        self.over, self.calls = shown is None, []

    @property
    def isActive(self) -> bool:
        return not self.over

    def events(self, since: int = 0) -> list[Any]:
        self.calls.append(since)
        return self.all[since : self.shown]

    def exception(self) -> BaseException | None:
        return self.error

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


def test_the_stage_sends_one_message_a_frame_and_none_when_nothing_moved():
    stage = Stage(fold(MIGRATION[:4]))
    sent: list[set[str]] = []
    stage.send_state = lambda key=None: sent.append({key} if isinstance(key, str) else set(key))  # type: ignore[method-assign]
    assert not stage.show(fold(MIGRATION[:4])) and sent == [] and stage.seq == 0
    assert stage.show(fold(MIGRATION)) and stage.seq == 1
    assert len(sent) <= 1
    assert stage.frame == frame(fold(MIGRATION))


def test_the_stage_carries_a_picture_for_pages_without_a_kernel():
    data, _ = Stage(fold(MIGRATION))._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "batch 3 of 3" in data["text/html"] and len(data["text/html"]) < 60_000


def test_a_player_opens_on_a_recording_and_seeks():
    player = Player(MIGRATION)
    assert (player.slider.max, player.slider.value, player.play.max) == (2, 0, 2)
    assert player.stage.frame["title"].startswith("batch 1 of 3")
    player.slider.value = 2
    assert (
        player.stage.frame["title"].startswith("batch 3 of 3")
        and "completed" in player.progress.value
    )
    player.seek(1)
    assert player.slider.value == 1 and player.stage.frame["grid"]["stored"] == [7, 9]
    assert "Totals (measured)" in player.totals.value
    with pytest.raises(IndexError):
        player.seek(3)


def test_a_player_reads_a_file_and_plays_at_a_chosen_speed(tmp_path):
    from braid.core.events import write

    write(tmp_path / "run.jsonl", MIGRATION)
    player = Player(tmp_path / "run.jsonl")
    player.speed.value = 1000
    assert player.play.interval == 1000 and player.slider.max == 2


def test_a_player_without_a_source_waits_for_a_run():
    player = Player()
    assert player.slider.disabled and player.stage.frame["title"] == "No run yet"
    with pytest.raises(ValueError, match="the interval is 0.01 s; it must be 0.125 s or more"):
        Player(interval=0.01)


def test_a_live_run_replaces_the_recording_and_can_be_scrubbed_when_it_is_over():
    player, ended = Player(MIGRATION[:4]), threading.Event()
    player.attach(FakeRun(MIGRATION), lambda error: ended.set())
    player.wait(10)
    assert ended.is_set() and player.error is None and not player.slider.disabled
    assert player.stage.frame["title"].endswith("completed") and player.slider.value == 2
    player.slider.value = 0
    assert player.stage.frame["title"].startswith("batch 1 of 3")


def test_a_live_run_cannot_be_scrubbed_and_leaves_when_it_is_told_to():
    player, run = Player(MIGRATION), FakeRun(MIGRATION, shown=4)
    player.attach(run)
    player.detach(10)
    assert player.slider.disabled and player._follower is not None and not player._follower.active


def test_a_live_run_moves_the_slider():
    player = Player(MIGRATION)
    player._show_live(fold(MIGRATION[:9]))
    assert (player.slider.value, player.slider.max) == (1, 2)
    assert "left" in player.progress.value


def test_a_run_that_fails_says_why():
    error = RuntimeError("column <x> is gone")
    events = [*MIGRATION[:4], RunEnded(1, "failed", "RuntimeError: column <x> is gone")]
    player = Player()
    player.attach(FakeRun(events, error=error))
    player.wait(10)
    assert "column &lt;x&gt; is gone" in player.message.value and player.error is error
    assert "failed" in player.progress.value


def test_an_error_of_the_view_itself_is_kept_and_shown():
    player, ended = Player(), threading.Event()
    player.attach(
        FakeRun([*MIGRATION[:3], started(), None.__class__, MIGRATION[3].__class__]),
        lambda error: ended.set(),
    )
    player.wait(10)
    assert ended.is_set()
    run = FakeRun(MIGRATION)
    run.events = None  # type: ignore[assignment, method-assign]
    player.attach(run)
    player.wait(10)
    assert isinstance(player.error, TypeError) and player.message.value


def test_a_player_carries_its_replay_for_pages_without_a_kernel():
    data, _ = Player(MIGRATION)._repr_mimebundle_()
    assert data["text/html"].count('"matrix":') == 3 and "Totals" in data["text/html"]


def test_headless_views_are_shown_as_html_with_plotly_once(monkeypatch):
    shown: list[Any] = []
    monkeypatch.setattr(showing, "display", shown.append)
    monkeypatch.setattr(showing._Page, "has_plotly", False)
    monkeypatch.setenv("BRAID_HEADLESS", "1")
    chart = timeline.figure(MIGRATION)
    for view in (chart, chart, Player(MIGRATION)):
        show(view)
    sizes = [len(s.data) for s in shown]
    assert sizes[0] > 4_000_000 and sizes[1] < 100_000 and sizes[2] < 200_000
    monkeypatch.delenv("BRAID_HEADLESS")
    show(chart)
    assert shown[-1] is chart


def panel_with(launch: Any, **defaults: Any) -> Panel:
    return Panel(launch, Player(MIGRATION), **defaults)


def test_controls_that_a_workload_does_not_heed_are_greyed_out():
    panel = panel_with(None)
    names = ("skew", "width", "fluctuation")
    for key, workload in WORKLOADS.items():
        panel.inputs["workload"].value = key
        assert {n for n in names if not panel.inputs[n].disabled} == workload.heeds
    panel.inputs["workload"].value = "bci"
    assert panel.inputs["width"].description == "band width (days)"
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
    panel.player.wait(10)
    assert [c for c in run.calls if isinstance(c, str)] == ["pause", "unpause", "stop"]
    assert panel.state == "idle" and not panel.start.disabled and panel.stop.disabled
    assert panel.player.stage.frame["title"].endswith("stopped")


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
    panel.player.wait(10)
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
    panel.start.click()
    panel.wait(10)
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
