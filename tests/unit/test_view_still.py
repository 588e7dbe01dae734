"""Charts without JavaScript: the SVG shows the figure's values at their positions on the axes."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from braid.papers.theta.grid import AdaptiveGrid
from braid_lab.diffusion import experiments as diffusion_experiments
from braid_lab.launches import recorded_runs
from braid_lab.theta import reference
from braid_widgets.base import axes, colors, line_charts, run_comparison, svg_chart
from braid_widgets.base.charts import Chart
from braid_widgets.base.stepper import Stepper
from braid_widgets.cockpit.page import page_html, recorded_page
from braid_widgets.diffusion import arrival_matrix
from braid_widgets.slices import strategy_charts
from braid_widgets.slices.chain_panel import SOURCES
from braid_widgets.theta import ratio_chart
from plotly.subplots import make_subplots


def parsed(figure: Any, name: str = "a chart") -> ElementTree.Element:
    return ElementTree.fromstring(svg_chart.chart_svg(figure, name))


def boxes(root: ElementTree.Element, shade: str) -> list[tuple[float, ...]]:
    """Return x, y, width and height of the bars of a color; the legend's are 10 by 10."""
    found = [r for r in root.iter("rect") if r.get("fill") == shade and r.get("width") != "10"]
    return [tuple(float(r.get(n, 0)) for n in ("x", "y", "width", "height")) for r in found]


def words(root: ElementTree.Element) -> list[str]:
    return [t.text or "" for t in root.iter("text")]


def test_bars_are_as_high_as_their_numbers_and_stand_beside_each_other_or_on_each_other():
    beside = go.Figure([go.Bar(x=["a", "b"], y=[2, 4], marker_color=c) for c in ("red", "blue")])
    (a, b), (other, _) = boxes(parsed(beside), "red"), boxes(parsed(beside), "blue")
    assert b[3] == pytest.approx(2 * a[3], abs=0.2) and a[1] + a[3] == pytest.approx(b[1] + b[3])
    assert a[0] + a[2] == pytest.approx(other[0], abs=0.2), "next to it"
    beside.update_layout(barmode="stack")
    (low, _), (high, _) = boxes(parsed(beside), "red"), boxes(parsed(beside), "blue")
    assert high[1] + high[3] == pytest.approx(low[1], abs=0.2) and high[0] == low[0]
    assert high[1] >= axes.TOP, "the sum is inside the picture"


def test_bars_on_a_logarithmic_axis_stand_on_its_end():
    plot = go.Figure(go.Bar(x=["a", "b"], y=[1, 1000], marker_color="red"))
    plot.update_yaxes(type="log")
    (low, high), floor = boxes(parsed(plot), "red"), 450 - axes.BOTTOM
    assert low[1] + low[3] == pytest.approx(floor, abs=0.2) and high[3] > low[3]
    assert high[1] + high[3] == pytest.approx(floor, abs=0.2)


def test_lines_go_through_their_points_have_gaps_and_know_logarithms():
    plot = go.Figure(go.Scatter(x=[1, 2, 3, 4], y=[1, 10, None, 100], mode="lines"))
    plot.update_yaxes(type="log")
    (path,) = [
        p.get("d", "") for p in parsed(plot).iter("path") if p.get("stroke") == svg_chart.COLOURS[0]
    ]
    assert path.count("M") == 2 and path.count("L") == 1, "a gap where there is no value"
    (_, first), (_, second), (_, last) = re.findall(r"([\d.]+) ([\d.]+)", path)
    rise = float(first) - float(second), float(second) - float(last)
    assert rise[0] == pytest.approx(rise[1], abs=0.2), "as far from 1 to 10 as from 10 to 100"
    assert {"1", "10", "100"} <= set(words(parsed(plot)))


def test_texts_stand_where_they_are_put_and_hidden_axes_are_not_drawn():
    text = ["<b>here</b><br>two lines", "right"]
    for place, above in (("top center", True), ("bottom center", False)):
        plot = go.Figure(go.Scatter(x=[0, 1], y=[0, 1], mode="markers+text", text=text))
        plot.update_traces(textposition=place, marker=dict(size=[20, 8], color=["red", "blue"]))
        plot.update_layout(showlegend=False)
        plot.update_xaxes(visible=False)
        plot.update_yaxes(visible=False)
        root = parsed(plot)
        name, second, _ = (t for t in root.iter("text") if t.text)
        circle, _ = root.iter("circle")
        assert [t.text for t in (name, second)] == ["here", "two lines"]
        assert circle.get("r") == "10" and circle.get("fill") == "red"
        assert name.get("x") == second.get("x") == circle.get("cx")
        assert name.get("font-weight") == "bold" and second.get("font-weight") is None
        first, then, at = (
            float(e.get(k, 0)) for e, k in ((name, "y"), (second, "y"), (circle, "cy"))
        )
        assert first < then and (then < at - 10 if above else first > at + 10)
        assert not list(root.iter("path")) and not list(root.iter("rect")), (
            "neither axes nor legend"
        )


def test_a_line_says_when_pointed_at_what_it_is():
    plot = go.Figure(go.Scatter(x=[0, 1], y=[0, 1], mode="lines", text="a & b: 3 ms"))
    plot.add_trace(go.Scatter(x=[], y=[], mode="lines", text="nothing"))
    assert [t.text for t in parsed(plot).iter("title")] == ["a & b: 3 ms"]


def test_an_axis_over_another_has_its_marks_on_the_right():
    plot = make_subplots(1, 1, specs=[[{"secondary_y": True}]])
    plot.add_trace(go.Scatter(x=[0, 1], y=[0, 1], name="left"), secondary_y=False)
    plot.add_trace(go.Scatter(x=[0, 1], y=[0, 5000], name="right"), secondary_y=True)
    (mark,) = [t for t in parsed(plot).iter("text") if t.text == "5,000"]
    assert float(mark.get("x", 0)) > axes.WIDTH - axes.RIGHT - 60
    assert mark.get("text-anchor") == "start"


def test_cells_of_one_colour_in_a_row_are_one_box_and_what_is_missing_is_left_out():
    plot = go.Figure(
        go.Heatmap(z=[[0, 0, 1], [None, 1, 1]], colorscale=[[0, "#000000"], [1, "#ffffff"]])
    )
    root = parsed(plot)
    assert len(boxes(root, "rgb(0,0,0)")) == 1 and len(boxes(root, "#ffffff")) == 2
    (black,) = boxes(root, "rgb(0,0,0)")
    assert black[2] == pytest.approx(2 * (axes.WIDTH - axes.LEFT - axes.RIGHT) / 3, rel=0.15)


def test_whiskers_are_drawn_and_texts_are_text():
    bar = go.Bar(
        x=["<script>"], y=[4], name="<b>x</b> & <y", error_y=dict(array=[1], arrayminus=[2])
    )
    root = parsed(go.Figure(bar, layout=dict(title="a <i>title</i>")), '"quoted" <name>')
    assert {"a title", "<script>"} & set(words(root)) == {"a title"} and "x & " in str(words(root))
    assert root.get("aria-label") == '"quoted" <name>'
    assert len([p for p in root.iter("path") if p.get("stroke-width") == "1.5"]) == 1


ODD = {
    "an error on one side only": go.Bar(x=["a", "b"], y=[1, None], error_y=dict(array=[0.5, 1])),
    "times": go.Scatter(x=pd.date_range("2026-01-01", periods=3), y=[1, 2, 3]),
    "no values": go.Scatter(x=[], y=[]),
    "one value": go.Bar(x=[3], y=[5]),
    "colours by number": go.Scatter(x=[1, 2], y=[1, 2], mode="markers", marker_color=[3, 4]),
    "a number of NumPy": go.Bar(x=[1, 2], y=[1, 2], width=np.int64(1), opacity=np.float64(0.5)),
    "opacities": go.Bar(x=[1, 2], y=[1, 2], marker_opacity=np.array([0.5, 1.0])),
    "all alike": go.Heatmap(z=[[2, 2], [2, 2]]),
    "no cell": go.Heatmap(z=[[None, None]]),
    "names": go.Heatmap(z=[[1, 2]], x=["a", "b"], y=["c"]),
    "another kind": go.Pie(labels=["a"], values=[1]),
}


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("name", ODD)
def test_odd_figures_are_drawn_too(name: str, log: bool) -> None:
    plot = go.Figure(ODD[name])
    plot.add_annotation(text="nowhere", xref="paper", yref="paper")
    if log:
        plot.update_yaxes(type="log")
    assert parsed(plot).tag == "svg"


def of_all() -> list[Chart]:
    chosen = dict(
        placement="ATR", streams=3, window=4.0, slowest=5.0, fastest=20.0, selectivity=0.1,
        hosts=6, length=2, copies=0, bursts=False, burst=0.5,
    )  # fmt: skip
    ran = diffusion_experiments.simulate_all(chosen, 8)
    asked = [a.to_query(("r", "s")) for a in SOURCES["arrivals"].queries]
    tidy = pd.DataFrame(
        dict(x=[1, 2, 3] * 4, y=range(12), a=list("pq") * 6, b=["u"] * 6 + ["v"] * 6)
    )
    return [
        run_comparison.comparison_chart(recorded_runs.recorded_competitors()),
        ratio_chart.ratio_chart(recorded_runs.recorded_events("fluct")),
        arrival_matrix.arrival_matrix(ran),
        *strategy_charts.strategy_charts(asked, ("r", "s"), 20.0, 0.3, 0.05, 2.5),
        line_charts.line_chart(tidy, "Lines", "tuples", x="x", y="y", facet_col="a", facet_row="b"),
        line_charts.bar_chart(tidy, "Bars", "tuples", x="a", y="y", color="b", barmode="relative"),
    ]


def test_every_chart_has_a_picture_without_javascript_inside_its_frame():
    for chart in of_all():
        page = chart.to_html(first=False)
        drawn = page[page.index("<noscript>") :]
        root = ElementTree.fromstring(drawn[drawn.index("<svg") : drawn.index("</svg>") + 6])
        marks = [*root.iter("circle"), *root.iter("rect"), *root.iter("path")]
        assert len(marks) > 5, chart.name
        for_lab = chart._repr_mimebundle_()["application/vnd.plotly.v1+json"]
        assert for_lab["layout"]["meta"] == "braid" and '"meta":"braid"' in page, chart.name
        tall = float(root.get("viewBox", "").split()[3])
        for box in root.iter("rect"):
            x, y, w, h = (float(box.get(n, 0)) for n in ("x", "y", "width", "height"))
            assert w >= 0 and h >= 0 and x >= 0 and x + w <= axes.WIDTH and y >= 0, chart.name
            assert y + h <= tall + 1, chart.name
        assert "nan" not in drawn[: drawn.index("</svg>")], chart.name


def test_steps_without_javascript_are_all_steps_in_words():
    steps = Stepper(reference.EXAMPLE).to_html()
    assert steps.count("<li>") == len(reference.grid_example().steps)


def test_the_bound_that_is_checked_is_inside_the_picture():
    plot = ratio_chart.ratio_chart(recorded_runs.recorded_events("fluct")).figure
    (bound,) = [t for t in plot.data if t.name == "bound"]
    assert 0 < max(v for v in bound.y if v == v) <= plot.layout.yaxis.range[1]
    assert recorded_runs.recorded_events("fluct")[0].placement == AdaptiveGrid.__name__


def test_a_run_without_javascript_has_a_bar_for_each_host():
    html = page_html(recorded_page(recorded_runs.recorded_events("eq5-SHJ-z1")))
    root = ElementTree.fromstring(html[html.index("<svg") : html.index("</svg>") + 6])
    assert "Rows stored by each host (counted)" in words(root)
    assert len(boxes(root, colors.RATIO)) == 16
