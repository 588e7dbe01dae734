"""Line charts, bar charts and heat maps of a study's results."""

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
"""Marker symbols, so that curves differ without color too."""


def panel_chart(
    title: str,
    x: str,
    panels: Mapping[str, pd.DataFrame],
    log: bool = False,
    names: Sequence[str] = (),
) -> Chart:
    """Return a chart with one panel per quantity and one curve per series.

    - ``panels``: a table by name (with unit) of its quantity, with a row per x and a column per
      series.
    - ``log``: make the y axes logarithmic. Each panel has its own axis.
    - ``names``: all names of series; charts with the same ``names`` style each series alike.
    """
    plot = make_subplots(1, len(panels), subplot_titles=list(panels), horizontal_spacing=0.1)
    series = list(
        dict.fromkeys([*names, *(name for table in panels.values() for name in table.columns)])
    )
    labels: set[str] = set()
    for place, table in enumerate(panels.values(), 1):
        for name in table.columns:
            k = series.index(name)
            plot.add_trace(_style_line(table[name], name, k, name not in labels), row=1, col=place)
            labels.add(name)
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
    """Return colors of the palette; a scheme has the same color in every chart."""
    if look.get("color") not in data.columns or data[look["color"]].dtype.kind in "fiu":
        return {"color_discrete_sequence": colors.STREAMS}
    names = [str(name) for name in dict.fromkeys(data[look["color"]])]
    fixed = {name: colors.scheme_color(name) for name in names if name in colors.SCHEMES}
    rest = [c for c in colors.STREAMS if c not in fixed.values()]
    return {"color_discrete_map": fixed, "color_discrete_sequence": rest}


def line_chart(data: pd.DataFrame, title: str, unit: str, **look: Any) -> Chart:
    """Return a line chart of a tidy frame; ``look`` goes to ``plotly.express.line``, with x and
    y.
    """
    look = {"markers": True, "height": 420, **_choose_colors(data, look), **look}
    look["labels"] = {look["y"]: unit, **look.get("labels", {})}
    plot = px.line(data, title=title, template=TEMPLATE, **look)
    plot.for_each_xaxis(lambda axis: _thin_log_ticks(axis, data[look["x"]]))
    plot.for_each_yaxis(lambda axis: _thin_log_ticks(axis, data[look["y"]]))
    return Chart(title, plot, data)


def _thin_log_ticks(axis: Any, values: pd.Series) -> None:
    """Label 2 and 5 between the decades of a logarithmic axis if there are few decades.

    Over many decades only the decades are labeled, not all nine digits. If the values are so close
    that neither may be in range, plotly chooses the labels.
    """
    if axis.type != "log" or not len(positive := values[values > 0]):
        return
    if (ratio := positive.max() / positive.min()) >= 5:
        axis.dtick = "D2" if ratio < 100 else 1


def bar_chart(data: pd.DataFrame, title: str, unit: str, **look: Any) -> Chart:
    """Return a bar chart of a tidy frame; ``look`` goes to ``plotly.express.bar``, with x and y."""
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
    """Return heat maps side by side.

    - ``panels``: the rows to show, by title.
    - ``x``, ``y``: columns with their labels.
    - ``high``: the maximum of values that are a saved share, from 0.
    - ``middle``: makes values a ratio, blue below it and red above.
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
