"""Charts, steps and runs without JavaScript are numbers and words."""

from __future__ import annotations

import re

import pandas as pd
from braid.core.run_events import BatchCommitted
from braid.papers.theta.grid import AdaptiveGrid
from braid_lab.launches import recorded_runs
from braid_lab.theta import reference
from braid_widgets.base import line_charts, run_comparison
from braid_widgets.base.charts import Chart
from braid_widgets.base.stepper import Stepper
from braid_widgets.cockpit.page import page_html, recorded_page
from braid_widgets.slices import strategy_charts
from braid_widgets.slices.chain_panel import SOURCES
from braid_widgets.theta import ratio_chart


def of_all() -> list[Chart]:
    asked = SOURCES["arrivals"].queries
    tidy = pd.DataFrame(
        dict(x=[1, 2, 3] * 4, y=range(12), a=list("pq") * 6, b=["u"] * 6 + ["v"] * 6)
    )
    return [
        run_comparison.comparison_chart(recorded_runs.recorded_competitors()),
        ratio_chart.ratio_chart(recorded_runs.recorded_events("fluct")),
        *strategy_charts.strategy_charts(asked, ("r", "s"), 20.0, 0.3, 0.05, 2.5),
        line_charts.line_chart(tidy, "Lines", "tuples", x="x", y="y", facet_col="a", facet_row="b"),
        line_charts.bar_chart(tidy, "Bars", "tuples", x="a", y="y", color="b", barmode="relative"),
    ]


def test_every_chart_has_its_numbers_without_javascript():
    for chart in of_all():
        page = chart.to_html(first=False)
        plain = page[page.index("<noscript>") :]
        rows = 1 + min(41, len(chart.data))
        assert chart.name in page and plain.count("<tr") == rows, chart.name
        assert page.count('class="braid-plot"') == len(chart.panels), chart.name


def test_steps_without_javascript_are_all_steps_in_words():
    steps = Stepper(reference.EXAMPLE).to_html()
    assert steps.count("<li>") == len(reference.grid_example().steps)


def test_the_bound_that_is_checked_is_inside_the_picture():
    chart = ratio_chart.ratio_chart(recorded_runs.recorded_events("fluct"))
    plot = chart.panels["ILF / ILF*"]
    (bound,) = [t for t in plot.data if t.name == "bound"]
    assert 0 < max(v for v in bound.y if v == v) <= plot.layout.yaxis.range[1]
    assert recorded_runs.recorded_events("fluct")[0].placement == AdaptiveGrid.__name__


def test_a_run_without_javascript_has_the_rows_of_each_host():
    events = recorded_runs.recorded_events("eq5-SHJ-z1")
    html = page_html(recorded_page(events))
    stored = re.search(r"Rows stored by each host \(counted\): (.*?)</p>", html)
    assert stored is not None
    commit = next(e for e in reversed(events) if isinstance(e, BatchCommitted))
    rows = [f"host {h}: {m.stored_tuples:,}" for h, m in enumerate(commit.host_metrics)]
    assert stored[1].split("; ") == rows and len(rows) == 16
