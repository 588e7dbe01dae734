"""Printed values of papers are drawn below our curves at their printed positions."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from braid_lab.common.printed_numbers import PrintedFigure
from braid_widgets.base import line_charts
from braid_widgets.base.charts import Chart
from braid_widgets.base.printed_values import LABEL, READ, add_printed_values

pytestmark = pytest.mark.unit


@pytest.fixture
def lines() -> Chart:
    """Return a chart of two curves in two panels each."""
    rows = [
        (x, name, wide, y * x * (2 if wide else 1))
        for wide in (False, True)
        for name, y in (("ours", 1.0), ("rival", 3.0))
        for x in (10.0, 20.0)
    ]
    data = pd.DataFrame(rows, columns=["x", "curve", "wide", "y"])
    return line_charts.line_chart(data, "title", "y", x="x", y="y", color="curve", facet_col="wide")


def printed(chart: Chart) -> list[Any]:
    """Return the printed marks of each panel."""
    curves = [t for figure in chart.panels.values() for t in figure.data]
    return [t for t in curves if t.name.endswith(LABEL)]


def test_a_value_stands_below_the_curves_of_its_panel(lines: Chart) -> None:
    one = PrintedFigure("section 1", "it is five", (10.0,), (5.0,), series="ours")
    chart = add_printed_values(lines, [one], wide=True)
    first, *rest = chart.panels["wide = True"].data
    ours = next(t for t in rest if t.name == "ours")
    assert (list(first.x), list(first.y)) == ([10.0], [5.0])
    assert first.name == f"ours, {LABEL}" and first.line.color == ours.line.color
    assert "it is five (section 1)" in first.hovertemplate
    assert rest == list(lines.panels["wide = True"].data), "ours stay, above it"
    assert chart.panels["wide = False"] is lines.panels["wide = False"]


def test_a_ratio_goes_by_the_curve_that_it_is_of(lines: Chart) -> None:
    one = PrintedFigure(
        "section 1", "half to once", y=(0.5,), y_max=(1.0,), series="ours", measure="rival"
    )
    both = printed(add_printed_values(lines, [one]))
    assert len(both) == 2, "one in each panel"
    assert list(both[0].x) == [10, 20, 20, 10] and list(both[0].y) == [30, 60, 30, 15]
    assert max(both[1].y) == 120


def test_a_level_goes_through_and_a_place_across(lines: Chart) -> None:
    level, place = (
        PrintedFigure("section 1", "seven", y=(7.0,)),
        PrintedFigure("section 1", "here", (12.0, 15.0)),
    )
    flat, across = printed(add_printed_values(lines, [level, place], wide=False))
    assert list(flat.x) == [10, 20] and list(flat.y) == [7, 7]
    assert set(across.x) == {12, 15} and {min(across.y), max(across.y)} == {10, 120}


def test_a_ratio_is_drawn_where_the_curve_that_it_is_of_has_its_place(lines: Chart) -> None:
    at = PrintedFigure(
        "section 1", "twice", (20.0, 80.0), (2.0, 3.0), series="ours", measure="rival"
    )
    assert [list(t.x) for t in printed(add_printed_values(lines, [at], wide=False))] == [[20.0]]
    elsewhere = PrintedFigure(
        "section 1", "thrice", (80.0,), (3.0,), series="ours", measure="rival"
    )
    assert printed(add_printed_values(lines, [elsewhere], wide=False)) == []


def test_a_level_of_one_place_is_a_mark_and_what_we_read_into_it_is_said() -> None:
    data = pd.DataFrame([(1.0, 2.0, "ours")], columns=["x", "y", "curve"])
    one = line_charts.line_chart(data, "title", "y", x="x", y="y", color="curve")
    level = PrintedFigure("section 1", "seven", y=(7.0,), interpretation="where, it does not say")
    drawn = add_printed_values(one, [level]).panels[""].data[0]
    assert (list(drawn.y), drawn.mode, drawn.name) == ([7.0], "markers", READ)
    assert "seven; where, it does not say (section 1)" in drawn.hovertemplate


def test_bars_have_what_is_printed_beside_them() -> None:
    rows = [("q", "ours", 2.0), ("q", "rival", 8.0)]
    data = pd.DataFrame(rows, columns=["query", "by", "y"])
    chart = line_charts.bar_chart(data, "title", "y", x="query", y="y", color="by")
    one = PrintedFigure(
        "section 1", "three to five times", y=(3.0,), y_max=(5.0,), series="rival", measure="ours"
    )
    *_, last = add_printed_values(chart, [one]).panels[""].data
    assert (last.type, list(last.base), list(last.y)) == ("bar", [6.0], [4.0])


def test_what_is_not_there_is_refused(lines: Chart) -> None:
    one = PrintedFigure("section 1", "x", y=(1.0,), series="nobody")
    with pytest.raises(ValueError, match="title has no curve 'nobody'; it has ours, rival"):
        add_printed_values(lines, [one])
    with pytest.raises(ValueError, match="title has no panel 3"):
        add_printed_values(lines, [], 3)
    with pytest.raises(ValueError, match="has no panel {'wide': 'maybe'}"):
        add_printed_values(lines, [], wide="maybe")
