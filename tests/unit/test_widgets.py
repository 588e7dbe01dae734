"""The cockpit and how it reads events: no Spark, no browser, no waiting."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from braid import AdaptiveGrid, watch
from braid.core.batch_report import HostMetrics
from braid.core.block_history_index import EventIndex
from braid.core.run_events import EventsTrimmed, QueryAdded, RunEnded
from braid.simulation.simulator import simulate
from braid_lab.common.recordings import write_events
from braid_widgets.base import charts
from braid_widgets.base import display as showing
from braid_widgets.base.controls import list_placements
from braid_widgets.base.display import display_view
from braid_widgets.base.live_updates import read_new_events
from braid_widgets.cockpit import block_details
from braid_widgets.cockpit.alternative_placement import simulate_alternative
from braid_widgets.cockpit.frames import FrameCollector
from braid_widgets.cockpit.page import fold_recording, recorded_page
from braid_widgets.cockpit.view import Cockpit
from braid_widgets.theta import ratio_chart
from unit.scripted import MIGRATION, make_start


class FakeRun:
    """A run whose events the test releases; ``over`` means that its threads have ended."""

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


def test_only_what_is_new_is_read_and_only_what_moved_is_shown():
    run = FakeRun(MIGRATION, shown=4)
    polls = read_new_events(run)
    assert next(polls) == MIGRATION[:4]
    assert next(polls) is None, "nothing moved, nothing is painted"
    run.held = True
    assert next(polls) == [], "a pause is shown"
    run.shown = len(MIGRATION) - 1
    assert next(polls) == MIGRATION[4:-1]
    run.shown += 1
    assert [*polls] == [MIGRATION[-1:]], "the end is seen"
    assert run.calls == [0, 4, 4, 4, len(MIGRATION) - 1]
    polls = read_new_events(FakeRun([*MIGRATION, make_start()], shown=len(MIGRATION) + 1))
    assert len(next(polls)) == len(MIGRATION) + 1 and next(polls) is None, "a resumed run goes on"


def test_nothing_is_read_after_a_run_that_died_without_a_word():
    run = FakeRun(MIGRATION[:4], error=RuntimeError("gone"))
    assert [*read_new_events(run)] == [MIGRATION[:4]]


def sent(cockpit: Cockpit, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return the list of later messages to the browser."""
    reported: list[Any] = []
    monkeypatch.setattr(
        cockpit, "send", lambda content, buffers=None: reported.append(content["more"])
    )
    return reported


def launch(cockpit: Cockpit, run: FakeRun) -> None:
    """Let a cockpit wait for the events of a run, without a thread."""
    cockpit._run, cockpit._has_begun, cockpit._track = run, False, FrameCollector(is_followed=True)


def test_a_recording_opens_on_its_last_batch_and_has_a_picture_of_each(tmp_path):
    write_events(tmp_path / "run.jsonl", MIGRATION)
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
        assert data["text/html"].count('"places":') == 3
        # Without JavaScript there is text.
        assert "<li>results so far: 21</li>" in data["text/html"]
        assert "batch 2: " in data["text/html"]


def test_a_live_run_sends_what_is_new_and_nothing_twice(monkeypatch):
    cockpit, ended, run = Cockpit(MIGRATION), threading.Event(), FakeRun(MIGRATION, shown=4)
    messages = sent(cockpit, monkeypatch)
    cockpit.follow(run, lambda error: ended.set())
    assert "application/vnd.jupyter.widget-view+json" in cockpit._repr_mimebundle_()[0]
    run.shown, run.over = len(MIGRATION), True
    cockpit.wait_for_end(60)
    assert ended.is_set() and cockpit.error is None and messages[-1]["state"] == "ended"
    assert [f["batch"] for more in messages for f in more["frames"]] == [1, 2, 3]
    assert [b for more in messages for b in more["hosts"]["batch"]] == [1, 2, 3]
    assert cockpit.page == fold_recording(MIGRATION, is_own=True).make_page(), (
        "who looks later sees all"
    )
    assert cockpit.events == MIGRATION


def test_what_was_seen_before_stays_until_there_is_a_batch(monkeypatch):
    cockpit, run = Cockpit(MIGRATION), FakeRun(MIGRATION, shown=1)
    messages = sent(cockpit, monkeypatch)
    launch(cockpit, run)
    before = cockpit.page["frames"]
    cockpit.mark_stale()
    cockpit._show_events(MIGRATION[:1])
    assert messages[-1]["state"] == cockpit.page["state"] == "earlier run"
    assert cockpit.page["frames"] == before and len(before) == 3
    cockpit._show_events(MIGRATION[1:4])
    assert cockpit.page["state"] == "live" and len(cockpit.page["frames"]) == 1
    failing = Cockpit(MIGRATION)
    failing.follow(FakeRun(MIGRATION[:1], error=OSError("no"))).wait_for_end(60)
    assert failing.page["state"] == "failed" and failing.page["frames"] == []


def test_the_state_of_a_run_is_said(monkeypatch):
    cockpit, run = Cockpit(), FakeRun(MIGRATION, shown=4)
    messages = sent(cockpit, monkeypatch)
    launch(cockpit, run)
    cockpit._show_events(MIGRATION[:4])
    run.held = True
    cockpit._show_events([])
    assert [more["state"] for more in messages] == ["live", "paused"]
    assert recorded_page([make_start(clock="modelled"), *MIGRATION[1:]])["state"] == "modelled"
    assert Cockpit().page["frames"] == []


SWINGING = [(90, 10)] * 4 + [(5, 90)] * 8


def test_what_another_placement_would_do_is_drawn_beside_the_run(monkeypatch):
    events = simulate(AdaptiveGrid(16), SWINGING)
    cockpit = watch(events)
    messages = sent(cockpit, monkeypatch)
    offered = cockpit.page["what_if_placements"]
    assert {"StaticMid (square grid)", "Join-biclique"} <= {*offered} <= {*dict(list_placements())}
    cockpit._handle_browser_message(
        None, {"what_if": {"placement": "StaticMid (square grid)", "hosts": 16, "since": 0}}, []
    )
    cockpit._imagining.join(10)
    baseline = cockpit.page["timeline"]["tracks"][-1]["series"][-1]
    assert baseline["name"] == "StaticMid, 16 hosts, modelled" and baseline["role"] == "baseline"
    assert cockpit.page["what_if_message"].startswith("StaticMid, 16 hosts, modelled: ")
    assert len(baseline["batch"]) > len(cockpit.page["timeline"]["batch"]), "it goes on"
    assert messages[-1]["frames"] == [] and messages[-1]["timeline"] == cockpit.page["timeline"]
    assert messages[-1]["hosts"]["names"] == cockpit.page["hosts"]["names"], "else rows begin anew"
    assert "application/vnd.jupyter.widget-view+json" in cockpit._repr_mimebundle_()[0]
    assert '"what_if_placements":[]' in cockpit.to_html(), "on a page there is nobody to ask"


def test_what_was_simulated_for_one_run_is_not_drawn_beside_another(monkeypatch):
    asked, go = threading.Event(), threading.Event()

    def imagine(*given):
        asked.set()
        assert go.wait(10)
        return simulate_alternative(*given)

    cockpit = Cockpit(simulate(AdaptiveGrid(16), SWINGING), imagine=imagine)
    messages = sent(cockpit, monkeypatch)
    what = {"what_if": {"placement": "StaticGrid", "hosts": 16, "since": 0}}
    cockpit._handle_browser_message(None, what, [])
    assert asked.wait(10)
    cockpit.load_run(MIGRATION)
    go.set()
    cockpit._imagining.join(10)
    assert messages == [] and "StaticGrid" not in str(cockpit.page["timeline"])
    line = cockpit.page["timeline"]
    launch(cockpit, FakeRun(MIGRATION, shown=1))
    cockpit._handle_browser_message(None, what, [])
    cockpit._imagining.join(10)
    assert (
        "this is an earlier run; ask again" in messages[-1]["what_if_message"]
        and messages[-1]["timeline"] == line
    )
    cockpit._show_batches("live")
    assert cockpit.page["what_if_message"] == ""


def test_no_batch_is_folded_while_a_what_if_is_drawn(monkeypatch):
    cockpit = watch(simulate(AdaptiveGrid(16), SWINGING))
    sent(cockpit, monkeypatch)
    track, can_fold = cockpit._track, []

    def enter():
        if entered := cockpit._gate.acquire(blocking=False):
            cockpit._gate.release()
        can_fold.append(entered)

    def note(work):
        def noted(*given, **options):
            with ThreadPoolExecutor(1) as other:
                other.submit(enter)
            return work(*given, **options)

        return noted

    for name in ("make_page", "apply_events"):
        monkeypatch.setattr(track, name, note(getattr(track, name)))
    cockpit.draw_alternative("StaticGrid", 16)
    launch(cockpit, FakeRun(MIGRATION, shown=0))
    cockpit._track = track
    cockpit._show_events([])
    assert can_fold[:2] == [False, False]


def test_a_host_that_is_clicked_says_what_it_holds(monkeypatch):
    cockpit, reported = Cockpit(MIGRATION), []
    monkeypatch.setattr(cockpit, "send", lambda content, buffers=None: reported.append(content))
    cockpit._handle_browser_message(None, {"inspect": {"host": 0, "batch": 2}}, [])
    cockpit._handle_browser_message(None, {"inspect": {"host": 0, "batch": 9}}, [])
    first, *blocks = reported[0]["inspected"].splitlines()
    assert first == "host 0 after batch 2: 3 blocks, 7 tuples"
    assert any(line.startswith("  block 4: ") and "of s" in line for line in blocks)
    assert reported[1]["inspected"] == "there is no batch 9"


def test_a_query_that_is_clicked_says_what_serves_it(monkeypatch):
    windows, where = {"r": 60_000_000, "s": 60_000_000}, {"r": "x < 3", "s": None}
    served = QueryAdded(-1, "near", 0, windows, where, {"r": None, "s": None})
    cockpit, reported = Cockpit([MIGRATION[0], served, *MIGRATION[1:]]), []
    monkeypatch.setattr(cockpit, "send", lambda content, buffers=None: reported.append(content))
    for asked in ({"query": "near", "batch": 2}, {"query": "far", "batch": 2}, {"query": "near"}):
        cockpit._handle_browser_message(None, {"inspect": asked}, [])
    cockpit._touching.submit(lambda: None).result(30)
    first, unknown, nowhere = (each["inspected"] for each in reported)
    assert first.splitlines()[:2] == [
        "query near after batch 2",
        "  windows: r 1 min, s 1 min; selections: r: x < 3",
    ]
    assert unknown == "no query 'far' is served after batch 2; there are: near"
    assert nowhere == "'batch'"


def test_blocks_that_are_asked_about_tell_their_story_with_batches_from_1(monkeypatch):
    cockpit, reported = Cockpit(MIGRATION), []
    monkeypatch.setattr(cockpit, "send", lambda content, buffers=None: reported.append(content))
    run = EventIndex.from_events(MIGRATION)
    met = next(m for m in run.meetings if m.batch)
    for asked in ([met.block], [met.block, met.other], [9999], [1, 2, 3]):
        cockpit._handle_browser_message(None, {"inspect": {"blocks": asked}}, [])
    story, why, unknown, several = (each["inspected"] for each in reported)
    assert f"  batch {met.batch + 1}: fresh block {met.block} of " in story
    assert f"met in batch {met.batch + 1}: block {met.block} probed block {met.other}" in why
    assert unknown.startswith("there is no block 9999; this run has had ")
    assert several == "3 blocks were asked about; ask about one, or about two"
    gone = EventsTrimmed(0, 2, 0, 0, 0, 0, 0, (), (), HostMetrics(), {})
    with pytest.raises(ValueError, match="; events are kept from batch 2 on$"):
        block_details.block_details(
            [MIGRATION[0], gone, *(e for e in MIGRATION if getattr(e, "batch", 0))], [9999]
        )


def test_a_closed_cockpit_leaves_no_thread() -> None:
    cockpit, workers = Cockpit(MIGRATION), list[threading.Thread]()
    cockpit._touching.submit(lambda: workers.append(threading.current_thread())).result(60)
    cockpit.close()
    workers[0].join(60)
    assert not workers[0].is_alive()


def test_what_cannot_be_simulated_is_said(monkeypatch):
    cockpit = watch(simulate(AdaptiveGrid(16), SWINGING))
    messages = sent(cockpit, monkeypatch)
    cockpit._handle_browser_message(
        None, {"what_if": {"placement": "AdaptiveGrid", "hosts": 0, "since": 0}}, []
    )
    cockpit._imagining.join(10)
    assert "hosts is 0" in messages[-1]["what_if_message"] and "modelled" not in str(
        cockpit.page["timeline"]
    )
    with pytest.raises(ValueError, match="this view cannot simulate; braid.watch makes one"):
        Cockpit(MIGRATION).draw_alternative("StaticGrid", 4)


def test_a_follower_leaves_when_it_is_told_to():
    cockpit = Cockpit(MIGRATION)
    cockpit.follow(FakeRun(MIGRATION, shown=4))
    cockpit.stop_following(10)
    assert cockpit._follower is not None and not cockpit._follower.is_active


def test_a_run_that_fails_says_why(monkeypatch):
    error = RuntimeError("column <x> is gone")
    events = [*MIGRATION[:4], RunEnded(1, "failed", "RuntimeError: column <x> is gone")]
    cockpit = Cockpit()
    messages = sent(cockpit, monkeypatch)
    cockpit.follow(FakeRun(events, error=error))
    cockpit.wait_for_end(60)
    assert cockpit.error is error and messages[-1]["state"] == "failed"
    assert messages[-1]["note"].endswith("failed: RuntimeError: column <x> is gone")
    assert "column &lt;x&gt; is gone" in cockpit.to_html()
    assert "\\u003cx>" in cockpit.to_html() and "<x>" not in cockpit.to_html()


def test_an_error_of_the_view_itself_is_kept_and_shown(monkeypatch):
    cockpit, ended = Cockpit(), threading.Event()
    messages = sent(cockpit, monkeypatch)
    run = FakeRun(MIGRATION)
    run.events = None  # type: ignore[assignment, method-assign]
    cockpit.follow(run, lambda error: ended.set())
    cockpit.wait_for_end(60)
    assert ended.is_set() and isinstance(cockpit.error, TypeError)
    assert messages[-1]["state"] == "failed" and "not callable" in messages[-1]["note"]


def test_headless_views_are_shown_as_html_with_plotly_once(monkeypatch):
    shown: list[Any] = []
    monkeypatch.setattr(showing, "display", lambda view, metadata=None: shown.append(view))
    monkeypatch.setattr(charts._Page, "has_library", False)
    monkeypatch.setenv("BRAID_HEADLESS", "1")
    chart = ratio_chart.ratio_chart(MIGRATION)
    for view in (chart, chart, Cockpit(MIGRATION)):
        display_view(view)
    sizes = [len(s.data) for s in shown]
    assert sizes[0] > 4_000_000 and sizes[1] < 100_000 and sizes[2] < 200_000
    monkeypatch.delenv("BRAID_HEADLESS")
    display_view(chart)
    assert shown[-1] is chart
