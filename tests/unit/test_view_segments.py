"""The views of a load-diffused join: charts of studies, and the panel."""

from __future__ import annotations

import pandas as pd
import pytest
from braid import Aligned
from braid.simulation.simulator import simulate
from braid_widgets.base import line_charts
from braid_widgets.cockpit.view import Cockpit
from braid_widgets.diffusion.panel import DiffusionPanel


def test_a_series_looks_alike_in_every_panel():
    one, two = pd.DataFrame({"a": [1, 2], "b": [3, 4]}), pd.DataFrame({"b": [5, 6]})
    chart = line_charts.panel_chart("t", "x", {"one": one, "two": two})
    a, b, again = [curve for figure in chart.panels.values() for curve in figure.data]
    assert b.line.color == again.line.color != a.line.color
    assert b.marker.symbol == again.marker.symbol != a.marker.symbol
    assert chart.to_html(first=False).count("data-name=") == 2, "each once in the legend"
    assert set(chart.data["quantity"]) == {"one", "two"} and len(chart.data) == 6


def test_panels_have_the_same_scale_on_a_logarithmic_axis_too():
    tidy = pd.DataFrame({"x": [1, 2, 1, 2], "y": [1, 2, 300, 400], "of": ["a", "a", "b", "b"]})
    chart = line_charts.line_chart(tidy, "t", "u", x="x", y="y", facet_col="of", log_y=True)
    assert list(chart.panels) == ["of = a", "of = b"]
    for figure in chart.panels.values():
        seen = [y for curve in figure.data for y in curve.y]
        assert (min(seen), max(seen)) == (1, 400) and figure.layout.yaxis.type == "log"


@pytest.mark.parametrize(("high", "marks"), [(4.5, None), (22, "D2"), (2200, 1)])
def test_a_logarithmic_axis_has_marks_for_close_values_too_and_not_too_many(high, marks):
    tidy = pd.DataFrame({"x": [1, 2], "y": [2.2, high]})
    plot = line_charts.line_chart(tidy, "t", "u", x="x", y="y", log_y=True).panels[""]
    assert (plot.layout.xaxis.dtick, plot.layout.yaxis.dtick) == (None, marks)
    side = pd.DataFrame({"one": [2.2, high]}, index=[1, 2])
    chart = line_charts.panel_chart("t", "x", {"u": side, "v": side * 0 + 1}, log=True)
    assert [plot.layout.yaxis.dtick for plot in chart.panels.values()] == [marks, None]


def panel(**more):
    def act(settings):
        if settings["hosts"] == 13:
            raise ValueError("13 hosts bring bad luck")
        return simulate(Aligned(settings["hosts"]), [(5, 5, 5)] * 5, windows=(3,) * 3)

    placements = ("ATR", "CTR", "Centralized")
    return DiffusionPanel(lambda settings: None, Cockpit([]), act, placements, **more)


def test_the_panel_opens_on_a_run_and_shows_another_after_a_change():
    board = panel(hosts=4)
    assert board.error is None and board.events[0].hosts == 4
    assert "Aligned, 4 hosts" in board.screen.page["note"]
    board.inputs["hosts"].value = 5
    board.wait_for_work(60)
    assert board.events[0].hosts == 5 and "Aligned, 5 hosts" in board.screen.page["note"]
    assert board.static_views() == [board.screen]


def test_the_panel_says_what_went_wrong_and_goes_on():
    board = panel(hosts=4)
    board.inputs["hosts"].value = 13
    board.wait_for_work(60)
    assert "13 hosts bring bad luck" in board.message.value and isinstance(board.error, ValueError)
    assert not board.start.disabled and board.events[0].hosts == 4


def test_the_panel_greys_out_what_is_not_heeded_and_refuses_unknown_controls():
    board = panel()
    assert board.inputs["burst"].disabled and board.inputs["copies"].disabled
    board.inputs["placement"].value = "CTR"
    board.inputs["bursts"].value = True
    board.wait_for_work(60)
    assert not board.inputs["burst"].disabled and not board.inputs["copies"].disabled
    assert not board.inputs["hosts"].disabled
    board.inputs["placement"].value = "Centralized"
    board.wait_for_work(60)
    assert board.inputs["hosts"].disabled and board.inputs["length"].disabled
    with pytest.raises(ValueError, match="no control 'host'"):
        panel(host=3)
