"""Curves of a study: one line for each series, one panel for each quantity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from braid_widgets.base.charts import TEMPLATE, Chart

SHADES = ("#2f6fde", "#d9480f", "#f08c00", "#74a0ea", "#862e9c", "#2b8a3e", "#868e96")
SYMBOLS = ("circle", "square", "diamond", "circle-open", "square-open", "triangle-up", "x")


def figure(
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
            k = series.index(name) % len(SHADES)
            plot.add_trace(_line(table[name], name, k, name not in told), row=1, col=place)
            told.add(name)
        plot.update_xaxes(title=x, row=1, col=place)
        plot.update_yaxes(
            type="log" if log else "linear",
            rangemode="normal" if log else "tozero",
            row=1,
            col=place,
        )
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


def _line(values: pd.Series, name: str, k: int, legend: bool) -> go.Scatter:
    dense = len(values) > 30
    return go.Scatter(
        x=values.index.tolist(),
        y=values.tolist(),
        name=name,
        legendgroup=name,
        showlegend=legend,
        line=dict(color=SHADES[k]),
        mode="lines" if dense else "lines+markers",
        marker=dict(symbol=SYMBOLS[k], size=8),
    )
