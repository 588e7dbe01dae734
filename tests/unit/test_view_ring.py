"""The panel of a ring, and the stepper, whose frames are functions of steps alone."""

from __future__ import annotations

import threading

import pytest
from braid import Ring as Placement
from braid.simulation.simulator import simulate
from braid_lab.diffusion import reference_atr as reference_aligned
from braid_lab.diffusion import reference_ctr as reference_coordinated
from braid_lab.psp import reference as reference_ring
from braid_lab.reports.report_page import find_external_urls
from braid_widgets.base import stepper
from braid_widgets.base.controls import REFUSED
from braid_widgets.cockpit.view import Cockpit
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


def test_the_pages_of_steps_need_no_network():
    view = stepper.Stepper(reference_ring.EXAMPLE)
    page = view.to_html()
    assert find_external_urls(page) == [] and '<div data-film="' in page
    assert view._repr_mimebundle_()
    assert stepper.Stepper(reference_aligned.EXAMPLE).position == 0


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
    assert pictures[-1]["results"].split()[0] == str(len(trace.all_results))
    assert sum(len(p["matches"]) for p in pictures) == len(trace.all_results), "each is new once"


def test_what_a_step_puts_somewhere_is_marked_new():
    pictures = stepper.step_frames(reference_ring.ring_example(), "M")
    new = [
        [c["text"] for n in p["nodes"] for held in n["stored"] for c in held if c.get("is_new")]
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


def ring_panel(simulate, launch=lambda settings: Ended([]), **defaults):
    return RingPanel(launch, Cockpit([]), simulate, **defaults)


def last_ring(panel):
    return panel.screen.page["frames"][-1]["state_map"]["ring"]


def heads(panel):
    """Return the nodes that were a head: in the basic form always the same."""
    frames = [frame["state_map"]["ring"] for frame in panel.screen.page["frames"]]
    return {head for frame in frames for head in frame["heads"]}


def test_the_panel_simulates_each_change_and_keeps_the_picture_when_it_cannot():
    def simulated(settings):
        if settings["nodes"] > 20:
            raise ValueError("too many nodes")
        return run(form=settings["form"])

    panel = ring_panel(simulated, form="basic")
    assert heads(panel) == {0}
    panel.inputs["form"].value = "dynamic"
    panel.wait_for_work(60)
    assert len(heads(panel)) == 4 and panel.error is None
    panel.inputs["nodes"].value = 22
    panel.wait_for_work(60)
    assert "too many nodes" in panel.message.value and len(heads(panel)) == 4
    with pytest.raises(ValueError, match="no control 'hosts'"):
        ring_panel(simulated, hosts=3)


def test_a_change_gives_up_the_simulation_that_goes_on():
    begun, go, drawn = threading.Event(), threading.Event(), []

    def simulated(settings):
        for k, event in enumerate(events := run(form=settings["form"])):
            if settings["form"] == "interleaved" and k == 3:
                begun.set()
                go.wait(60)
            yield event
        drawn.append((settings["form"], len(events)))

    panel = ring_panel(simulated, form="basic")
    panel.inputs["form"].value = "interleaved"
    assert begun.wait(60) and panel.state == "simulating" and panel.start.disabled
    panel.inputs["form"].value = "dynamic"
    go.set()
    panel.wait_for_work(60)
    assert [form for form, _ in drawn] == ["basic", "dynamic"], "the one in between was given up"
    assert len(heads(panel)) == 4 and panel.state == "idle"


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

    panel = ring_panel(simulated, form="basic")
    show, reported = panel.show_events, []
    monkeypatch.setattr(panel, "show_error", lambda e: reported.append(str(e)))
    if fails == "picture":
        monkeypatch.setattr(
            panel, "show_events", lambda e: show(e) if begun.is_set() else error({"nodes": 4})
        )
    panel.inputs["form"].value = "interleaved"
    assert begun.wait(60)
    panel.inputs["form"].value = "dynamic"
    go.set()
    panel.wait_for_work(60)
    assert len(reported) == 1 and "zero" in reported[0]
    assert len(heads(panel)) == 4 and panel.state == "idle"


def test_a_value_out_of_range_is_refused_at_its_control():
    asked = []

    def simulated(settings):
        asked.append(settings["nodes"])
        return run()

    panel = ring_panel(simulated, nodes=4)
    panel.inputs["nodes"].value = 99
    panel.wait_for_work(60)
    assert "nodes (N) is 99; it must be from 1 to 24" in panel.message.value
    assert panel.inputs["nodes"].value == 99 and REFUSED in panel.inputs["nodes"]._dom_classes
    panel.start.click()
    assert panel.state == "idle" and panel.run is None and asked == [4]
    panel.inputs["nodes"].value = 7.5
    assert "nodes (N) is 7.5; it must be a whole number from 1 to 24" in panel.message.value
    assert panel.start.disabled
    panel.inputs["nodes"].value = 5
    panel.wait_for_work(60)
    assert asked == [4, 5] and panel.message.value == "" and not panel.start.disabled
    assert isinstance(panel.settings()["nodes"], int)
    assert REFUSED not in panel.inputs["nodes"]._dom_classes


def test_every_number_says_its_range_and_the_plain_name_comes_first():
    panel = ring_panel(lambda settings: run())
    assert panel.inputs["nodes"].description == "nodes (N) · 1 to 24"
    assert panel.inputs["sigma"].tooltip == "share of pairs that match"


def test_launch_shows_the_run_and_tells_what_made_it_fail():
    panel = ring_panel(lambda s: run(), lambda s: Ended(run(resize=((2, 5),))))
    panel.start.click()
    panel.wait_for_work(60)
    panel.follower.wait_for_end(60)
    assert (
        len(last_ring(panel)["nodes"]) == 5
        and panel.screen.page["note"].endswith("completed")
        and not panel.start.disabled
    )
    panel = ring_panel(lambda s: run(), lambda s: Ended([], RuntimeError("no such thing")))
    panel.start.click()
    panel.wait_for_work(60)
    panel.follower.wait_for_end(60)
    assert (
        "no such thing" in panel.message.value
        and isinstance(panel.error, RuntimeError)
        and not panel.start.disabled
    )


def test_while_a_run_is_being_started_the_picture_says_that_it_is_an_earlier_one():
    gate, states = threading.Event(), []

    def launch(settings):
        assert gate.wait(60)
        return Ended(run(resize=((2, 5),)))

    panel = ring_panel(lambda s: run(), launch)
    panel.screen.observe(lambda change: states.append(change["new"]["state"]), "page")
    panel.start.click()
    assert panel.screen.page["state"] == "earlier run"
    assert panel.status.value == "starting Spark…"
    gate.set()
    panel.wait_for_work(60)
    panel.follower.wait_for_end(60)
    assert states[0] == "modelled" and panel.screen.page["note"].endswith("completed")
