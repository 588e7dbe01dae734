"""Values printed in a paper, drawn dotted below the reproduced curves and marked in the legend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go
from braid_lab.common.printed_numbers import PrintedFigure

from braid_widgets.base.charts import GREY, Chart

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
    in_panel = [t for t in chart.figure.data if _is_in_panel(t, panel, facets)]
    if not in_panel:
        raise ValueError(f"{chart.name} has no panel {panel or facets}")
    drawn: list[Any] = []
    for axis in dict.fromkeys(t.xaxis for t in in_panel):
        on_axis = [t for t in in_panel if t.xaxis == axis]
        drawn += [mark for each in printed for mark in _make_traces(chart.name, each, on_axis)]
    labels: set[str] = set()
    for mark in drawn:
        mark.showlegend = mark.name not in labels
        labels.add(mark.name)
    bars = [t for t in drawn if t.type == "bar"]
    below = [t for t in drawn if t.type != "bar"]
    figure = go.Figure([*below, *chart.figure.data, *bars], chart.figure.layout)
    return replace(chart, figure=figure)


def _as_list(values: Any) -> list[Any]:
    return [] if values is None else list(values)


def _is_in_panel(trace: Any, panel: int, facets: dict[str, Any]) -> bool:
    if panel and (trace.xaxis or "x") != ("x" if panel == 1 else f"x{panel}"):
        return False
    template = f"{trace.hovertemplate or ''}<"
    return all(f"{label}={value}<" in template for label, value in facets.items())


def _make_traces(chart: str, one: PrintedFigure, traces: list[Any]) -> Iterator[Any]:
    """Return the traces of one printed series in one panel."""
    named = {t.name: t for t in traces}
    for name in filter(None, (one.series, one.measure)):
        if name not in named:
            raise ValueError(f"{chart} has no curve {name!r}; it has {', '.join(named)}")
    about = named.get(one.series)
    label = READ if one.interpretation else LABEL
    look = dict(
        name=f"{one.series}, {label}" if about is not None else label,
        xaxis=traces[0].xaxis,
        yaxis=traces[0].yaxis,
        hovertemplate=f"{_format_hover_text(one)}<extra>{label}</extra>",
        legendgroup=f"{LABEL}: {one.series}",
    )
    shade = GREY if about is None else _get_trace_color(about)
    if not one.y:
        yield from _make_vertical_bands(one, traces, look)
        return
    xs, low, high = _compute_value_ranges(one, traces, named)
    if not xs:
        return
    if traces[0].type == "bar":
        heights = [b - a for a, b in zip(low, high, strict=True)]
        pattern = dict(shape="/", fgcolor=shade, bgcolor="rgba(0,0,0,0)", size=5)
        marker = dict(color=shade, pattern=pattern, line=dict(color=shade, width=1))
        yield go.Bar(x=xs, y=heights, base=low, marker=marker, opacity=0.6, **look)
    elif one.y_max:
        around = [*zip(xs, high, strict=True), *reversed([*zip(xs, low, strict=True)])]
        x, y = zip(*around, strict=True)
        line = dict(color=shade, width=1, dash="dot")
        fill = dict(fill="toself", opacity=0.25, mode="lines", line=line)
        yield go.Scatter(x=x, y=y, **fill, **look)
    else:
        mode = "markers" if len(xs) == 1 else "lines+markers" if one.x else "lines"
        mark = dict(symbol="star-diamond-open", size=12, color=shade, line_width=2)
        line = dict(color=shade, width=2, dash="dot")
        yield go.Scatter(x=xs, y=low, mode=mode, marker=mark, line=line, **look)


def _format_hover_text(one: PrintedFigure) -> str:
    reading = f"; {one.interpretation}" if one.interpretation else ""
    return f"{one.caption}{reading} ({one.where})"


def _compute_value_ranges(
    one: PrintedFigure, traces: list[Any], named: dict[Any, Any]
) -> tuple[list[Any], list[float], list[float]]:
    """Return the positions on the x axis and the printed range at each.

    There are none for a ratio to a curve that has none of these positions.
    """
    base = named.get(one.measure)
    about = named.get(one.series, traces[0] if base is None else base)
    at = {} if base is None else dict(zip(_as_list(base.x), _as_list(base.y), strict=True))
    places = one.x or tuple(_as_list(about.x))
    there = [k for k, x in enumerate(places) if base is None or x in at]
    xs = [places[k] for k in there]
    scale = [at[x] if base is not None else 1.0 for x in xs]

    def scaled(values: tuple[float, ...]) -> list[float]:
        each = values * len(places) if len(values) == 1 else values
        return [each[k] * by for k, by in zip(there, scale, strict=True)]

    return xs, scaled(one.y), scaled(one.y_max or one.y)


def _make_vertical_bands(
    one: PrintedFigure, traces: list[Any], look: dict[str, Any]
) -> Iterator[go.Scatter]:
    """Return a line across the panel at one position, a band between two."""
    heights = [v for t in traces for v in _as_list(t.y) if v == v and v is not None]
    low, high = min(heights), max(heights)
    ends = one.x * 2 if len(one.x) == 1 else one.x
    for left, right in pairwise(ends):
        yield go.Scatter(
            x=[left, left, right, right, left],
            y=[low, high, high, low, low],
            fill="toself",
            opacity=0.25 if left != right else 1,
            mode="lines",
            line=dict(color=GREY, width=2, dash="dot"),
            **look,
        )


def _get_trace_color(trace: Any) -> str:
    """Return the color of a reproduced curve."""
    of = trace.marker.color if trace.type == "bar" else trace.line.color
    return str(of or GREY)
