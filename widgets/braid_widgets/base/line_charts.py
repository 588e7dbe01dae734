"""Curves of a study: one line for each series, one panel for each quantity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from braid_widgets.base import colors
from braid_widgets.base.charts import TEMPLATE, Chart

SYMBOLS = (
    "circle",
    "square",
    "diamond",
    "circle-open",
    "square-open",
    "triangle-up",
    "x",
    "cross",
)
"""So that curves are told apart without colour too."""


def panel_chart(
    title: str,
    x: str,
    panels: Mapping[str, pd.DataFrame],
    log: bool = False,
    names: Sequence[str] = (),
) -> Chart:
    """``panels`` are tables by the name (with unit) of what they hold: a row for each x, a column
    for each series.

    Each panel has an axis of its own; ``log`` makes them logarithmic. A series looks alike in all
    panels, and in all figures that are given the same ``names`` of series.
    """
    plot = make_subplots(1, len(panels), subplot_titles=list(panels), horizontal_spacing=0.1)
    series = list(
        dict.fromkeys([*names, *(name for table in panels.values() for name in table.columns)])
    )
    told: set[str] = set()
    for place, table in enumerate(panels.values(), 1):
        for name in table.columns:
            k = series.index(name)
            plot.add_trace(_style_line(table[name], name, k, name not in told), row=1, col=place)
            told.add(name)
        plot.update_xaxes(title=x, row=1, col=place)
        plot.update_yaxes(
            type="log" if log else "linear",
            rangemode="normal" if log else "tozero",
            row=1,
            col=place,
        )
        plot.for_each_yaxis(partial(_thin_log_ticks, values=table.stack()), row=1, col=place)
    plot.update_layout(
        template=TEMPLATE,
        title=dict(text=title, y=0.97, yanchor="top"),
        height=470,
        margin=dict(t=90, b=120),
    )
    plot.update_layout(legend=dict(orientation="h", y=-0.2, yanchor="top"))
    long = [
        t.melt(var_name="series", ignore_index=False).reset_index(names=x).assign(quantity=n)
        for n, t in panels.items()
    ]
    return Chart(title, plot, pd.concat(long, ignore_index=True))


def _style_line(values: pd.Series, name: str, k: int, legend: bool) -> go.Scatter:
    dense = len(values) > 30
    return go.Scatter(
        x=values.index.tolist(),
        y=values.tolist(),
        name=name,
        legendgroup=name,
        showlegend=legend,
        line=dict(color=colors.scheme_color(name, k)),
        mode="lines" if dense else "lines+markers",
        marker=dict(symbol=SYMBOLS[k % len(SYMBOLS)], size=8),
    )


def _choose_colors(data: pd.DataFrame, look: Mapping[str, Any]) -> dict[str, Any]:
    """Colours of the palette; a scheme has its own in every chart."""
    if look.get("color") not in data.columns or data[look["color"]].dtype.kind in "fiu":
        return {"color_discrete_sequence": colors.STREAMS}
    names = [str(name) for name in dict.fromkeys(data[look["color"]])]
    known = {name: colors.scheme_color(name) for name in names if name in colors.SCHEMES}
    rest = [c for c in colors.STREAMS if c not in known.values()]
    return {"color_discrete_map": known, "color_discrete_sequence": rest}


def line_chart(data: pd.DataFrame, title: str, unit: str, **look: Any) -> Chart:
    """A line chart of a tidy frame; ``look`` is that of ``plotly.express.line``, with x and y."""
    look = {"markers": True, "height": 420, **_choose_colors(data, look), **look}
    look["labels"] = {look["y"]: unit, **look.get("labels", {})}
    plot = px.line(data, title=title, template=TEMPLATE, **look)
    plot.for_each_xaxis(lambda axis: _thin_log_ticks(axis, data[look["x"]]))
    plot.for_each_yaxis(lambda axis: _thin_log_ticks(axis, data[look["y"]]))
    return Chart(title, plot, data)


def _thin_log_ticks(axis: Any, values: pd.Series) -> None:
    """Between the decades of a logarithmic axis stand 2 and 5 where there are few, else nothing,
    and not all nine digits; where values are so close that neither may be among them, what plotly
    chooses.
    """
    if axis.type != "log" or not len(known := values[values > 0]):
        return
    if (ratio := known.max() / known.min()) >= 5:
        axis.dtick = "D2" if ratio < 100 else 1


def bar_chart(data: pd.DataFrame, title: str, unit: str, **look: Any) -> Chart:
    """A bar chart of a tidy frame; ``look`` is that of ``plotly.express.bar``, with x and y."""
    look = {"barmode": "group", "height": 400, **_choose_colors(data, look), **look}
    look["labels"] = {look["y"]: unit, **look.get("labels", {})}
    return Chart(title, px.bar(data, title=title, template=TEMPLATE, **look), data)


def heat_maps(
    data: pd.DataFrame,
    title: str,
    x: tuple[str, str],
    y: tuple[str, str],
    value: str,
    panels: Mapping[str, pd.Series],
    high: float,
    middle: float | None = None,
) -> Chart:
    """Heat maps side by side: ``panels`` maps a title to the rows that it shows, ``x`` and ``y``
    are columns with what they are called.

    Values from 0 to ``high`` are a share that is saved; with a ``middle`` they are a ratio, blue
    below it and red above.
    """
    plot = make_subplots(
        1, len(panels), subplot_titles=list(panels), shared_yaxes=True, horizontal_spacing=0.03
    )
    for place, chosen in enumerate(panels.values(), 1):
        grid = data[chosen].pivot(index=y[0], columns=x[0], values=value)
        axes = dict(x=grid.columns.tolist(), y=grid.index.tolist())
        heat = go.Heatmap(z=grid.to_numpy().tolist(), coloraxis="coloraxis", **axes)
        plot.add_trace(heat, row=1, col=place)
        plot.update_xaxes(title=x[1], row=1, col=place)
    plot.update_yaxes(title=y[1], col=1)
    bar = dict(title="ratio") if middle else dict(title="saved", tickformat=".0%")
    scale = dict(colorscale="RdBu_r" if middle else "Viridis", cmin=0, cmax=high, cmid=middle)
    plot.update_layout(coloraxis=scale | dict(colorbar=bar), template=TEMPLATE)
    plot.update_layout(title=title, height=400, margin_t=90)
    return Chart(title, plot, data)
