"""Values printed in a paper, drawn dotted below the reproduced curves and marked in the legend."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go
from braid_lab.common.printed_numbers import PrintedFigure

from braid_widgets.base.charts import GREY, Chart, get_trace_color

LABEL = "printed in the paper"
READ = f"{LABEL}, as we read it"


def add_printed_values(
    chart: Chart, printed: Sequence[PrintedFigure], panel: int = 0, **facets: Any
) -> Chart:
    """Return the chart with printed values below its own curves.

    - ``panel``: the panel to draw in, from 1; by default all panels.
    - ``facets``: the panels of a ``line_chart`` or ``bar_chart``, by label.

    Raises ValueError if the chart has no such panel, or no curve that a printed value names.
    """
    named = {f"{label} = {value}" for label, value in facets.items()}
    panels = {
        heading: _draw_below(chart.name, figure, printed)
        for place, (heading, figure) in enumerate(chart.panels.items(), 1)
        if panel in (0, place) and named <= {*heading.split(" · ")}
    }
    if not panels:
        raise ValueError(f"{chart.name} has no panel {panel or facets}")
    return replace(chart, panels={**chart.panels, **panels})


def _draw_below(chart: str, figure: go.Figure, printed: Sequence[PrintedFigure]) -> go.Figure:
    """Return the figure with printed values below its curves, and beside its bars."""
    drawn = [mark for each in printed for mark in _make_traces(chart, each, figure.data)]
    bars = [mark for mark in drawn if mark.type == "bar"]
    below = [mark for mark in drawn if mark.type != "bar"]
    return go.Figure([*below, *figure.data, *bars], figure.layout)


def _make_traces(chart: str, one: PrintedFigure, traces: Sequence[Any]) -> Iterator[Any]:
    """Return the traces of one printed series in one panel."""
    named = {t.name: t for t in traces if t.name}
    for name in filter(None, (one.series, one.measure)):
        if name not in named:
            raise ValueError(f"{chart} has no curve {name!r}; it has {', '.join(named)}")
    about = named.get(one.series)
    label = READ if one.interpretation else LABEL
    reading = f"; {one.interpretation}" if one.interpretation else ""
    look = dict(
        name=f"{one.series}, {label}" if about is not None else label,
        hovertemplate=f"{one.caption}{reading} ({one.where})<extra>{label}</extra>",
    )
    shade = GREY if about is None else get_trace_color(about)
    if not one.y:
        yield from _make_vertical_bands(one, traces, look)
    elif rows := _list_ranges(one, traces, named):
        xs, low, high = map(list, zip(*rows, strict=True))
        line = dict(color=shade, width=1 if one.y_max else 2, dash="dot")
        if traces[0].type == "bar":
            heights = [b - a for a, b in zip(low, high, strict=True)]
            pattern = dict(shape="/", fgcolor=shade, bgcolor="rgba(0,0,0,0)", size=5)
            marker = dict(color=shade, pattern=pattern, line=dict(color=shade, width=1))
            yield go.Bar(x=xs, y=heights, base=low, marker=marker, opacity=0.6, **look)
        elif one.y_max:
            around = dict(x=xs + xs[::-1], y=high + low[::-1])
            fill = dict(fill="toself", opacity=0.25, mode="lines", line=line)
            yield go.Scatter(**around, **fill, **look)
        else:
            mode = "markers" if len(xs) == 1 else "lines+markers" if one.x else "lines"
            mark = dict(symbol="star-diamond-open", size=12, color=shade, line_width=2)
            yield go.Scatter(x=xs, y=low, mode=mode, marker=mark, line=line, **look)


def _list_ranges(
    one: PrintedFigure, traces: Sequence[Any], named: Mapping[str, Any]
) -> list[tuple[Any, float, float]]:
    """Return the positions on the x axis with the printed range at each.

    There are none for a ratio to a curve that has none of these positions.
    """
    base = named.get(one.measure)
    about = named.get(one.series, traces[0] if base is None else base)
    places = one.x or tuple(about.x)
    scale = dict.fromkeys(places, 1.0)
    if base is not None:
        scale = dict(zip(base.x, base.y, strict=True))
    low, high = (v * len(places) if len(v) == 1 else v for v in (one.y, one.y_max or one.y))
    ranges = zip(places, low, high, strict=True)
    return [(x, a * scale[x], b * scale[x]) for x, a, b in ranges if x in scale]


def _make_vertical_bands(
    one: PrintedFigure, traces: Sequence[Any], look: Mapping[str, Any]
) -> Iterator[go.Scatter]:
    """Return a line across the panel at one position, a band between two."""
    heights = [v for t in traces for v in t.y if v == v and v is not None]
    low, high = min(heights), max(heights)
    for left, right in pairwise(one.x * 2 if len(one.x) == 1 else one.x):
        yield go.Scatter(
            x=[left, left, right, right, left],
            y=[low, high, high, low, low],
            fill="toself",
            opacity=0.25 if left != right else 1,
            mode="lines",
            line=dict(color=GREY, width=2, dash="dot"),
            **look,
        )
