"""The ring and the stepper: frames are functions of events (or steps) alone.

Their pages need no network.
"""

from __future__ import annotations

import threading

import pytest
from braid import Centralized
from braid import Ring as Placement
from braid.core.batch_history import LiveBlocks
from braid.core.batch_report import HostMetrics
from braid.core.run_events import BatchCommitted, EventsTrimmed
from braid.papers.psp.run_events import HeadMoved, StateRelocated
from braid.simulation.simulator import simulate
from braid_lab.diffusion import reference_atr as reference_aligned
from braid_lab.diffusion import reference_ctr as reference_coordinated
from braid_lab.psp import reference as reference_ring
from braid_lab.reports.report_page import find_external_urls
from braid_widgets.base import stepper
from braid_widgets.base.controls import REFUSED
from braid_widgets.base.launcher import EARLIER, PICTURE
from braid_widgets.base.player import Player
from braid_widgets.psp import ring
from braid_widgets.psp.panel import RingPanel

WINDOWS = (10.0, 10.0, 6.0)


def run(**settings):
    return simulate(
        Placement(4, **settings),
        [(5, 8, 2)] * 25,
        windows=WINDOWS,
        selectivity=0.1,
        streams=("a", "b", "c"),
    )


@pytest.mark.parametrize("form", ["basic", "interleaved", "dynamic"])
def test_slices_add_up_to_what_the_hosts_store(form):
    events = run(form=form, resize=((10, 6),))
    commits = [e for e in events if isinstance(e, BatchCommitted)]
    for picture, commit in zip(ring.make_frames(events), commits, strict=True):
        assert (
            sum(picture["slices"]["rows"])
            == commit.total_host_metrics.stored_tuples
            == picture["stored"]
        )
        assert all(0 < share <= 1 for share in picture["slices"]["share"])
        assert len(picture["loads"]) <= picture["nodes"] <= 6 and picture["live"] == list(
            commit.live_tuples
        )


def test_slices_add_up_where_the_first_batches_are_told_no_longer():
    events, blocks, kept = run(), LiveBlocks(), []
    for event in events:
        if isinstance(event, BatchCommitted) and event.batch < 9:
            blocks.apply_commit(event)
        else:
            kept.append(event)
    gone = EventsTrimmed(8, 0, len(kept), 0, 0, 0, 0, tuple(blocks.values()), (), HostMetrics(), {})
    first = ring.make_frames([kept[0], gone, *kept[1:]])[0]
    assert sum(first["slices"]["rows"]) == first["stored"] > 0


def test_the_head_is_where_the_last_tuples_are_and_the_tail_where_the_oldest():
    events = run()
    last = ring.make_frames(events)[-1]
    commits = [e for e in events if isinstance(e, BatchCommitted)]
    for stream, (head, tail) in enumerate(map(dict.values, last["ends"])):
        mine = [b for c in commits for b in c.changed_blocks if b.stream == stream]
        assert mine[-1].hosts == (head,)
        gone = {id for c in commits for id in c.dropped_block_ids}
        assert next(b for b in mine if b.id not in gone).hosts == (tail,)
    assert any(isinstance(e, HeadMoved) for e in events)


def test_relocations_are_shown_in_their_batch_only_with_their_rows():
    events = run(form="basic")
    pictures = ring.make_frames(events)
    for e in (e for e in events if isinstance(e, StateRelocated)):
        moved = [
            rows
            for stream, *_, rows, why in map(dict.values, pictures[e.batch]["moves"])
            if stream == e.stream and why == e.reason
        ]
        assert sum(moved) == e.moved_tuples
    assert all(
        a != b and abs(a - b) == 1 for p in pictures for _, a, b, *_ in map(dict.values, p["moves"])
    ), "from node to node"
    assert not any(p["moves"] for p in ring.make_frames(run())), "PSP-D moves no state"


def test_a_resize_is_told_and_adds_sectors():
    pictures = ring.make_frames(run(resize=((10, 6),)))
    assert [p["nodes"] for p in pictures[9:12]] == [4, 6, 6]
    assert "from 4 to 6 nodes" in pictures[10]["note"] and "nodes" not in pictures[11]["note"]
    assert any(move["reason"] == "resized" for move in pictures[10]["moves"])


def test_modelled_and_measured_runs_never_look_alike():
    events = run()
    assert all(
        "modelled" in p["note"] and "modelled" in p["measure"] for p in ring.make_frames(events)
    )
    events[0] = events[0].__class__(
        **{f: getattr(events[0], f) for f in events[0].__slots__} | {"time_source": "measured"}
    )
    assert all(
        "Spark" in p["note"] and "modelled" not in p["note"] + p["measure"]
        for p in ring.make_frames(events)
    )


def test_long_runs_are_thinned_and_keep_their_end():
    pictures = ring.make_frames(run(), most=10)
    assert len(pictures) <= 11 and pictures[-1]["batch"] == "batch 25"


def test_a_run_without_a_ring_is_refused():
    with pytest.raises(ValueError, match="no ring"):
        ring.make_frames(simulate(Centralized(), [(1, 1)]))
    with pytest.raises(ValueError, match="nothing to show"):
        ring.RingPlayer([])


def test_the_pages_need_no_network():
    for view in (ring.RingPlayer(run()), stepper.Stepper(reference_ring.ring_example(), "M")):
        page = view.to_html()
        assert find_external_urls(page) == [] and '<div data-film="' in page
        assert view._repr_mimebundle_()


def test_a_film_goes_back_and_forth_and_opens_where_it_should():
    view = ring.RingPlayer(run())
    assert view.position == len(view.frames) - 1 == 24
    view.load_events(run(resize=((5, 2),))[:40])
    assert view.position == len(view.frames) - 1 < 24
    assert stepper.Stepper(reference_aligned.atr_example()).position == 0 and isinstance(
        view, Player
    )


@pytest.mark.parametrize(
    "example",
    [
        reference_ring.ring_example,
        reference_aligned.atr_example,
        reference_coordinated.ctr_example,
    ],
)
def test_every_step_is_a_picture_with_its_state_and_all_results_in_the_end(example):
    trace = example()
    pictures = stepper.step_frames(trace)
    assert [p["text"] for p in pictures] == [s.text for s in trace.steps]
    for picture, step in zip(pictures, trace.steps, strict=True):
        assert [[[c["text"] for c in held] for held in n["stored"]] for n in picture["nodes"]] == [
            [list(h) for h in n] for n in step.stored
        ]
    assert len(pictures[-1]["results"]) == len(trace.all_results)
    assert sum(c["is_new"] for p in pictures for c in p["results"]) == len(trace.all_results), (
        "each is new once"
    )


def test_what_a_step_puts_somewhere_is_marked_new():
    pictures = stepper.step_frames(reference_ring.ring_example(), "M")
    new = [
        [c["text"] for n in p["nodes"] for held in n["stored"] for c in held if c["is_new"]]
        for p in pictures
    ]
    assert new[:2] == [[], ["a1"]] and pictures[0]["nodes"][0]["name"] == "M1"
    assert ["b4"] in new, "what has aged arrives at the next node"


class Ended:
    """A run that has ended before it is first polled."""

    isActive = False

    def __init__(self, events, error=None):
        self._events, self._error = events, error

    def events(self, since=0):
        return self._events[since:]

    def exception(self):
        return self._error


def test_the_panel_simulates_each_change_and_keeps_the_picture_when_it_cannot():
    def simulated(settings):
        if settings["nodes"] > 20:
            raise ValueError("too many nodes")
        return run(form=settings["form"])

    panel = RingPanel(simulated, lambda settings: Ended([]), form="basic")
    assert "basic" in panel.view.frames[0]["title"]
    panel.inputs["form"].value = "dynamic"
    panel.wait_for_work(60)
    assert "dynamic" in panel.view.frames[0]["title"] and panel.error is None
    panel.inputs["nodes"].value = 22
    panel.wait_for_work(60)
    assert "too many nodes" in panel.message.value and "dynamic" in panel.view.frames[0]["title"]
    with pytest.raises(ValueError, match="no control 'hosts'"):
        RingPanel(simulated, lambda settings: Ended([]), hosts=3)


def test_a_change_gives_up_the_simulation_that_goes_on():
    begun, go, drawn = threading.Event(), threading.Event(), []

    def simulated(settings):
        for k, event in enumerate(events := run(form=settings["form"])):
            if settings["form"] == "interleaved" and k == 3:
                begun.set()
                go.wait(60)
            yield event
        drawn.append((settings["form"], len(events)))

    panel = RingPanel(simulated, lambda settings: Ended([]), form="basic")
    panel.inputs["form"].value = "interleaved"
    assert begun.wait(60) and panel.state == "simulating" and panel.start.disabled
    panel.inputs["form"].value = "dynamic"
    go.set()
    panel.wait_for_work(60)
    assert [form for form, _ in drawn] == ["basic", "dynamic"], "the one in between was given up"
    assert "dynamic" in panel.view.frames[0]["title"] and panel.state == "idle"


@pytest.mark.parametrize("fails", ["model", "picture"])
def test_what_fails_is_told_and_the_next_change_is_modelled(fails, monkeypatch):
    """Whatever the error, even if the next change came meanwhile."""
    begun, go = threading.Event(), threading.Event()

    def error(settings):
        begun.set()
        assert go.wait(60)
        return settings["nodes"] // 0

    def simulated(settings):
        bad = settings["form"] == "interleaved" and fails == "model"
        return [error(settings)] if bad else run(form=settings["form"])

    panel = RingPanel(simulated, lambda settings: Ended([]), form="basic")
    show, told = panel.show_events, []
    monkeypatch.setattr(panel, "show_error", lambda e: told.append(str(e)))
    if fails == "picture":
        monkeypatch.setattr(
            panel, "show_events", lambda e: show(e) if begun.is_set() else error({"nodes": 4})
        )
    panel.inputs["form"].value = "interleaved"
    assert begun.wait(60)
    panel.inputs["form"].value = "dynamic"
    go.set()
    panel.wait_for_work(60)
    assert len(told) == 1 and "zero" in told[0]
    assert "dynamic" in panel.view.frames[0]["title"] and panel.state == "idle"


def test_a_value_out_of_range_is_refused_at_its_control():
    asked = []

    def simulated(settings):
        asked.append(settings["nodes"])
        return run()

    panel = RingPanel(simulated, lambda settings: Ended([]), nodes=4)
    panel.inputs["nodes"].value = 99
    panel.wait_for_work(60)
    assert "nodes (N) is 99; it must be from 1 to 24" in panel.message.value
    assert panel.inputs["nodes"].value == 99 and REFUSED in panel.inputs["nodes"]._dom_classes
    panel.start.click()
    assert panel.state == "idle" and panel.run is None and asked == [4]
    panel.inputs["nodes"].value = 5
    panel.wait_for_work(60)
    assert asked == [4, 5] and panel.message.value == ""
    assert REFUSED not in panel.inputs["nodes"]._dom_classes


def test_every_number_says_its_range_and_the_plain_name_comes_first():
    panel = RingPanel(lambda settings: run(), lambda settings: Ended([]))
    assert panel.inputs["nodes"].description == "nodes (N) · 1 to 24"
    assert panel.inputs["sigma"].tooltip == "share of pairs that match"


def test_launch_shows_the_run_and_tells_what_made_it_fail():
    panel = RingPanel(lambda s: run(), lambda s: Ended(run(resize=((2, 5),))))
    panel.start.click()
    panel.wait_for_work(60)
    panel.follower.wait_for_end(60)
    assert (
        panel.view.frames[-1]["nodes"] == 5
        and "completed" in panel.status.value
        and not panel.start.disabled
    )
    panel = RingPanel(lambda s: run(), lambda s: Ended([], RuntimeError("no such thing")))
    panel.start.click()
    panel.wait_for_work(60)
    panel.follower.wait_for_end(60)
    assert (
        "no such thing" in panel.message.value
        and isinstance(panel.error, RuntimeError)
        and not panel.start.disabled
    )


def test_while_a_run_is_being_started_the_picture_says_that_it_is_an_earlier_one():
    gate, drawn = threading.Event(), []

    def launch(settings):
        assert gate.wait(60)
        return Ended(run(resize=((2, 5),)))

    panel = RingPanel(lambda s: run(), launch)
    panel.view.observe(lambda _: drawn.append(EARLIER in panel._dom_classes), "frames")
    assert PICTURE in panel.view._dom_classes and EARLIER not in panel._dom_classes
    panel.start.click()
    assert EARLIER in panel._dom_classes and panel.status.value == "starting Spark…"
    gate.set()
    panel.wait_for_work(60)
    panel.follower.wait_for_end(60)
    assert drawn == [True] and EARLIER not in panel._dom_classes, "until its first picture"
    panel.launch = None
    panel.start.click()
    panel.wait_for_work(60)
    assert panel.error is not None and EARLIER not in panel._dom_classes
