"""The views of a load-diffused join: segments, routing paths, host loads, arrival matrix, panel."""

from __future__ import annotations

import threading
from dataclasses import replace

import pandas as pd
import pytest
from braid import Aligned, Coordinated
from braid.core.plan import Block, Derivation, Hop, Route
from braid.core.run_events import BatchPlanned
from braid.papers.diffusion.run_events import MasterSwitched, SegmentLengthTuned, SegmentPlaced
from braid.simulation.simulator import simulate
from braid_widgets.base import line_charts
from braid_widgets.diffusion import arrival_matrix, host_load, routing_path, segments
from braid_widgets.diffusion.panel import VIEWS, DiffusionPanel
from unit.scripted import committed, route, started


def plan(batch, routes, derivations=()):
    return BatchPlanned(batch, tuple(routes), tuple(derivations))


def block(id, stream, hosts):
    return Block(id, stream, (0, 1), 0, tuple(hosts))


RUN = [
    started(clock="modelled"),
    plan(0, [route(block(0, 0, [0])), route(block(1, 1, [0, 1]), {0: (0,)})]),
    SegmentPlaced(0, 0, 0, 1, False, 0),
    committed(0, [2, 2], [2, 2]),
    plan(
        1,
        [route(block(2, 0, [0]), {0: (1,)}), route(block(3, 1, [1]), {0: (0, 2)})],
        [Derivation(block(1, 1, [0, 1]), (1,), {1: 0})],
    ),
    SegmentPlaced(1, 0, 0, 1, True, 0),
    SegmentLengthTuned(1, 1, 2, 0.5),
    MasterSwitched(1, 0, 1, 0, (2.0, 1.0)),
    committed(1, [2, 2], [4, 4]),
]


def test_segments_are_stretches_of_batches_by_host():
    # The events of a batch follow its plan, as in a run.
    found = segments.segment_table(RUN)
    rows = [tuple(row) for row in found.itertuples(index=False)]
    assert rows == [
        (0, 0, 0, 0, True),
        (0, 0, 1, 1, True),
        (0, 1, 0, 0, False),
        (1, 1, 0, 1, False),
    ]


def test_the_gantt_chart_has_a_lane_for_each_stream_and_marks_switches_and_lengths():
    chart = segments.segment_chart(RUN)
    lanes = chart.figure.data
    assert [lane.name for lane in lanes] == ["stream r", "stream s"]
    assert (
        list(lanes[0].base) == [0.5, 1.5]
        and list(lanes[0].x) == [1, 1]
        and lanes[0].y[0] < lanes[1].y[0]
    )
    assert {a.text for a in chart.figure.layout.annotations} == {"master r → s", "T 1 → 2"}
    assert len(chart.figure.layout.shapes) == 2 and "modelled" in chart.figure.layout.title.text
    assert chart.figure.layout.yaxis.range[0] > chart.figure.layout.yaxis.range[1], (
        "host 0 is on top"
    )


def test_segments_of_a_master_never_overlap_and_slaves_are_replicated():
    run = simulate(
        Aligned(4, segment_batches=2, adaptive=False, master=0),
        [(5, 5, 5)] * 12,
        windows=(3,) * 3,
        streams=("a", "b", "c"),
    )
    found = segments.segment_table(run)
    held = found.loc[found.index.repeat(found["last"] - found["first"] + 1)]
    held = held.assign(batch=held["first"] + held.groupby(level=0).cumcount())
    hosts = held.groupby(["stream", "batch"])["host"].nunique().unstack(0)
    assert (hosts[0] == 1).all() and (hosts[[1, 2]].iloc[4:] > 1).all().all()
    assert found[found["master"]]["stream"].unique().tolist() == [0]
    assert (found.loc[found["master"], "last"] - found.loc[found["master"], "first"] == 1).all(), (
        "two batches each"
    )


def test_a_routing_path_goes_hop_by_hop():
    path = (Hop(1, {0: (4,), 1: (5,)}), Hop(2, {1: (6,)}))
    run = [
        replace(started(), streams=("r", "s", "t")),
        plan(0, [Route(block(9, 0, [2]), (path,))]),
    ]
    chart = routing_path.route_chart(run)
    assert chart.data.values.tolist() == [
        [0, 0, 1, 0, 1, 9],
        [0, 0, 1, 1, 1, 9],
        [0, 1, 2, 1, 1, 9],
    ]
    assert not chart.figure.layout.updatemenus, "there is no other"
    travels, stays = chart.figure.data[:2]
    assert list(travels.y) == [0, 1, None] and travels.line.dash == "solid"
    assert list(stays.y) == [1, 1, None] and stays.line.dash == "dot"


def test_another_block_can_be_chosen_and_streams_have_a_legend():
    run = simulate(Coordinated(4), [(5, 5, 5)] * 9, windows=(3,) * 3)
    chart = routing_path.route_chart(run)
    (menu,) = chart.figure.layout.updatemenus
    assert 2 < len(menu.buttons) <= routing_path.MOST + 1
    *drawn, r, s, t = chart.figure.data
    assert [trace.name for trace in (r, s, t)] == ["r", "s", "t"]
    for place, button in enumerate(menu.buttons):
        seen, title = button.args
        assert len(seen["visible"]) == len(chart.figure.data) and all(seen["visible"][-3:])
        alone = routing_path.route_chart(run, int(button.label.removeprefix("block ")))
        mine = [t for t, shown in zip(drawn, seen["visible"], strict=False) if shown]
        assert [list(t.y) for t in mine] == [list(t.y) for t in alone.figure.data[:-3]]
        assert title["xaxis.title.text"] == alone.figure.layout.xaxis.title.text
        if place == menu.active:
            assert title["xaxis.title.text"] == chart.figure.layout.xaxis.title.text
            assert [t.visible for t in drawn] == seen["visible"][:-3]


def test_a_segment_that_was_never_routed_is_refused():
    with pytest.raises(ValueError, match="no segment begins with block 77"):
        routing_path.route_chart(RUN, 77)
    with pytest.raises(ValueError, match="no segment has met anything yet"):
        routing_path.route_chart(RUN[:1])


def test_the_join_orders_that_were_compared_are_told():
    run = simulate(Coordinated(4), [(5, 5, 5)] * 6, windows=(3,) * 3)
    note = routing_path.route_chart(run).figure.layout.xaxis.title.text
    assert "estimated sends for a tuple by join order" in note


def test_loads_say_whether_they_are_measured():
    chart = host_load.load_chart(RUN)
    assert "modelled seconds" in chart.figure.layout.title.text and chart.data["host"].tolist() == [
        0,
        1,
        0,
        1,
    ]
    measured = [started(), *RUN[1:]]
    assert "measured seconds" in host_load.load_chart(measured).figure.layout.title.text


def test_every_pair_of_batches_within_the_window_is_met_and_atr_makes_a_staircase():
    run = simulate(
        Aligned(4, segment_batches=2, adaptive=False, master=1), [(5, 5)] * 10, windows=(3, 3)
    )
    found = arrival_matrix.meeting_table(run)
    assert not found.duplicated(["first", "second"]).any(), "one host for each pair"
    pairs = set(zip(found["first"], found["second"], strict=True))
    assert {(a, b) for a in range(10) for b in range(10) if abs(a - b) < 3} <= pairs
    steps = found.groupby("second")["host"].nunique()
    assert (steps == 1).all(), (
        "all that a batch of the master meets, it meets on the host of its segment"
    )
    matrix = arrival_matrix.arrival_matrix(run).figure
    assert matrix.layout.yaxis.autorange == "reversed" and matrix.layout.yaxis.scaleanchor == "x"


def test_a_series_looks_alike_in_every_panel():
    one, two = pd.DataFrame({"a": [1, 2], "b": [3, 4]}), pd.DataFrame({"b": [5, 6]})
    chart = line_charts.panel_chart("t", "x", {"one": one, "two": two}, names=("z", "a", "b"))
    a, b, again = chart.figure.data
    assert b.line.color == again.line.color != a.line.color and not again.showlegend
    assert set(chart.data["quantity"]) == {"one", "two"} and len(chart.data) == 6


@pytest.mark.parametrize(("high", "marks"), [(4.5, None), (22, "D2"), (2200, 1)])
def test_a_logarithmic_axis_has_marks_for_close_values_too_and_not_too_many(high, marks):
    tidy = pd.DataFrame({"x": [1, 2], "y": [2.2, high]})
    plot = line_charts.line_chart(tidy, "t", "u", x="x", y="y", log_y=True).figure
    assert (plot.layout.xaxis.dtick, plot.layout.yaxis.dtick) == (None, marks)
    side = pd.DataFrame({"one": [2.2, high]}, index=[1, 2])
    plot = line_charts.panel_chart("t", "x", {"u": side, "v": side * 0 + 1}, log=True).figure
    assert (plot.layout.yaxis.dtick, plot.layout.yaxis2.dtick) == (marks, None)


def panel(**more):
    def act(settings):
        if settings["hosts"] == 13:
            raise ValueError("13 hosts bring bad luck")
        return simulate(Aligned(settings["hosts"]), [(5, 5, 5)] * 5, windows=(3,) * 3)

    return DiffusionPanel(act, lambda settings: None, ("ATR", "CTR", "Centralized"), **more)


def test_the_panel_opens_on_a_run_and_shows_another_at_the_press_of_a_button():
    board = panel(hosts=4)
    assert board.error is None and board.events[0].hosts == 4
    assert [bool(output.outputs) for output in board.outputs] == [True, False, False, False], (
        "only the view in front is drawn"
    )
    for k, output in enumerate(board.outputs):
        board.tabs.selected_index = k
        assert "application/vnd.plotly.v1+json" in output.outputs[0]["data"], list(VIEWS)[k]
    board.inputs["hosts"].value = 5
    board.simulate.click()
    board.wait_for_work(60)
    assert (
        board.events[0].hosts == 5
        and "5 hosts" in board.status.value
        and not board.simulate.disabled
    )


def test_the_panel_says_what_went_wrong_and_goes_on():
    board = panel(hosts=4)
    board.inputs["hosts"].value = 13
    board.simulate.click()
    board.wait_for_work(60)
    assert "13 hosts bring bad luck" in board.message.value and isinstance(board.error, ValueError)
    assert not board.start.disabled and board.events[0].hosts == 4


def test_the_panel_greys_out_what_is_not_heeded_and_refuses_unknown_controls():
    board = panel()
    assert board.inputs["burst"].disabled and board.inputs["copies"].disabled
    board.inputs["placement"].value = "CTR"
    board.inputs["bursts"].value = True
    assert not board.inputs["burst"].disabled and not board.inputs["copies"].disabled
    assert not board.inputs["hosts"].disabled
    board.inputs["placement"].value = "Centralized"
    assert board.inputs["hosts"].disabled and board.inputs["length"].disabled
    with pytest.raises(ValueError, match="no control 'host'"):
        panel(host=3)


def test_a_change_gives_up_the_simulation_that_goes_on():
    begun, go = threading.Event(), threading.Event()

    def slowly(settings):
        events = simulate(Aligned(settings["hosts"]), [(5, 5, 5)] * 5, windows=(3,) * 3)
        for k, event in enumerate(events):
            if settings["hosts"] == 5 and k == 4:
                begun.set()
                go.wait(60)
            yield event

    board = DiffusionPanel(slowly, lambda settings: None, ("ATR", "CTR"), hosts=4)
    seen = board.events
    board.inputs["hosts"].value = 5
    board.simulate.click()
    assert begun.wait(60) and "simulating… " in board.status.value and "of 5" in board.status.value
    board.inputs["hosts"].value = 6
    go.set()
    board.wait_for_work(60)
    assert (
        board.events is seen and board.status.value.startswith("given up") and board.error is None
    )
    board.simulate.click()
    board.wait_for_work(60)
    assert board.events[0].hosts == 6
    board.inputs["hosts"].value = 999
    board.simulate.click()
    board.wait_for_work(60)
    assert board.events[0].hosts == 6 and "must be from 1 to 256" in board.message.value
