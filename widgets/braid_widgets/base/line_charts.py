"""Line charts, bar charts and heat maps of a study's results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle
from typing import Any

import pandas as pd
import plotly.express as px
import plotly.graph_objects as go
from plotly.colors import diverging, make_colorscale, sequential

from braid_widgets.base import colors
from braid_widgets.base.charts import SYMBOLS, Chart

DASHES = ("solid", "dot", "dash", "longdash", "dashdot")
_DENSE = 30
"""Maximum number of points of a curve with markers."""


def line_chart(data: pd.DataFrame, title: str, unit: str, **look: Any) -> Chart:
    """Return a line chart of a tidy frame; ``look`` as in ``_draw_panels``.

    Curves of few points have markers, so that they differ without color too.
    """
    if data[look["x"]].nunique() <= _DENSE:
        look |= dict(markers=True, symbol=look.get("color"))
    for kind, column, values in (("symbol", "color", SYMBOLS), ("line_dash", "line_dash", DASHES)):
        if column in look:
            look[f"{kind}_map"] = dict(zip(_list_names(data, look[column]), cycle(values)))
    return _draw_panels(px.line, data, title, unit, **look)


def bar_chart(data: pd.DataFrame, title: str, unit: str, **look: Any) -> Chart:
    """Return a bar chart of a tidy frame; ``look`` as in ``_draw_panels``."""
    return _draw_panels(px.bar, data, title, unit, **{"barmode": "group", **look})


def panel_bar_chart(data: pd.DataFrame, title: str, x: str, **look: Any) -> Chart:
    """Return a bar chart with a panel for each value of the column "panel", which has its unit."""
    labels = {x: "", "panel": ""}
    panels = dict(facet_col="panel", labels=labels, has_own_scales=True)
    return bar_chart(data, title, "", x=x, **panels, **look)


def _draw_panels(
    draw: Callable[..., go.Figure],
    data: pd.DataFrame,
    title: str,
    unit: str,
    facet_row: str | None = None,
    facet_col: str | None = None,
    shades: Sequence[str] = colors.STREAMS,
    has_own_scales: bool = False,
    **look: Any,
) -> Chart:
    """Return a chart of a tidy frame, with a panel for each combination of facets.

    - ``unit``: the name of the y axis.
    - ``shades``: colors of series that are not schemes.
    - ``has_own_scales``: give each panel its own y axis; by default all include the same values.
    - ``look``: of ``plotly.express``, with x and y. A facet whose label is empty is shown by its
      values.
    """
    facets = [column for column in (facet_row, facet_col) if column]
    labels = {look["y"]: unit, **look.pop("labels", {})}
    series, values = {look[k] for k in ("color", "line_dash") if k in look}, data[look["y"]]
    names = _list_names(data, look["color"]) if "color" in look else []
    shown = dict(color_discrete_sequence=[*shades], labels=labels)
    panels = {}
    for chosen, part in _split_rows(data.astype(dict.fromkeys(series, str)), facets):
        named = [(labels.get(column, column), v) for column, v in zip(facets, chosen, strict=True)]
        heading = " · ".join(f"{label} = {v}" if label else f"{v}" for label, v in named)
        figure = draw(part, color_discrete_map=_choose_colors(names, shades), **shown, **look)
        scaled = part if has_own_scales else data
        figure.for_each_xaxis(partial(_thin_log_ticks, values=part[look["x"]]))
        figure.for_each_yaxis(partial(_thin_log_ticks, values=scaled[look["y"]]))
        if has_own_scales:
            figure.update_yaxes(rangemode="tozero")
        elif facets:  # invisible points: on logarithmic axes, autorange ignores values to include
            ends = dict(x=part[look["x"]].tolist()[:1] * 2, y=[values.min(), values.max()], name="")
            figure.add_scatter(
                mode="markers", opacity=0, hoverinfo="skip", showlegend=False, **ends
            )
        panels[heading] = figure
    return Chart(title, panels, data, columns=data[facet_col].nunique() if facet_col else 3)


def _list_names(data: pd.DataFrame, column: str) -> list[str]:
    """Return the values of a column as text, in the order of their first appearance."""
    return [str(value) for value in data[column].unique()]


def _thin_log_ticks(axis: Any, values: pd.Series) -> None:
    """Label 2 and 5 between the decades of a logarithmic axis if there are few decades.

    Over many decades only the decades are labeled, not all nine digits. If the values are so close
    that neither may be in range, plotly chooses the labels.
    """
    if axis.type != "log" or not len(positive := values[values > 0]):
        return
    if (ratio := positive.max() / positive.min()) >= 5:
        axis.dtick = "D2" if ratio < 100 else 1


def panel_chart(title: str, x: str, panels: Mapping[str, pd.DataFrame], log: bool = False) -> Chart:
    """Return a line chart with one panel per quantity and one curve per series.

    - ``panels``: a table by name (with unit) of its quantity, with a row per x and a column per
      series.
    - ``log``: make the y axes logarithmic. Each panel has its own axis.
    """
    long = pd.concat(
        t.melt(var_name="series", ignore_index=False).reset_index(names=x).assign(quantity=n)
        for n, t in panels.items()
    )
    look = dict(x=x, y="value", color="series", facet_col="quantity", labels={"quantity": ""})
    return line_chart(long, title, "", log_y=log, has_own_scales=True, **look)


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
    shades = diverging.RdBu[::-1] if middle else sequential.Viridis
    figures = {}
    for heading, chosen in panels.items():
        grid = data[chosen].pivot(index=y[0], columns=x[0], values=value)
        figures[heading] = go.Figure(layout=dict(xaxis_title=x[1], yaxis_title=y[1])).add_heatmap(
            z=grid.to_numpy().tolist(),
            x=grid.columns.tolist(),
            y=grid.index.tolist(),
            name=f"ratio, 0 to {high:g}" if middle else f"saved, 0 to {high:.0%}",
            colorscale=make_colorscale(shades),
            zmin=0,
            zmid=middle,
            zmax=high,
            showscale=False,
        )
    return Chart(title, figures, data)


def _split_rows(
    data: pd.DataFrame, columns: Sequence[str]
) -> Iterator[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Yield the rows by the values of the columns, in the order of their first appearance."""
    if not columns:
        yield (), data
        return
    for value in data[columns[0]].unique():
        for values, rows in _split_rows(data[data[columns[0]] == value], columns[1:]):
            yield (value, *values), rows


def _choose_colors(names: Sequence[str], shades: Sequence[str]) -> dict[str, str]:
    """Return a color by name; a scheme has the same color in every chart."""
    fixed = {name: colors.scheme_color(name) for name in names if name in colors.SCHEMES}
    rest = [shade for shade in shades if shade not in fixed.values()] or shades
    free = [name for name in names if name not in fixed]
    return fixed | {name: rest[k % len(rest)] for k, name in enumerate(free)}
