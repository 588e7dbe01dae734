"""Line charts, bar charts and heat maps of a study's results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.colors import diverging, make_colorscale, sequential

from braid_widgets.base import colors
from braid_widgets.base.charts import SYMBOLS, Chart

DASHES = ("solid", "dot", "dash", "longdash", "dashdot")
_DENSE = 30
"""Maximum number of points of a curve with markers."""


def line_chart(data: pd.DataFrame, title: str, unit: str, **look: Any) -> Chart:
    """Return a line chart of a tidy frame; ``look`` as for ``bar_chart``, without ``barmode``."""
    return bar_chart(data, title, unit, barmode="", **look)


def bar_chart(
    data: pd.DataFrame,
    title: str,
    unit: str,
    *,
    x: str,
    y: str,
    color: str | None = None,
    line_dash: str | None = None,
    facet_row: str | None = None,
    facet_col: str | None = None,
    labels: Mapping[str, str] | None = None,
    log_x: bool = False,
    log_y: bool = False,
    error_y: str | None = None,
    error_y_minus: str | None = None,
    barmode: str = "group",
    names: Sequence[Any] = (),
    shades: Sequence[str] = colors.STREAMS,
    has_own_scales: bool = False,
) -> Chart:
    """Return a bar chart of a tidy frame, with a panel for each combination of facets.

    - ``x``, ``y``, ``color``, ``line_dash``, ``facet_row``, ``facet_col``, ``error_y``,
      ``error_y_minus``: columns.
    - ``labels``: names to show, by column; a facet without a name is shown by its values.
    - ``barmode``: "group", "stack" or "relative".
    - ``names``: all names of series; charts with the same ``names`` style each series alike.
    - ``shades``: colors of series that are not schemes.
    - ``has_own_scales``: give each panel its own y axis; by default all include the same values.
    """
    labels = labels or {}
    facets = [column for column in (facet_row, facet_col) if column]
    kinds = [column for column in dict.fromkeys((color, line_dash)) if column]
    series = [*dict.fromkeys([*names, *(data[color] if color else ())])]
    dashes = [*data[line_dash].unique()] if line_dash else []
    chosen = _choose_colors(series, shades)
    panels = {}
    for values, part in _split_rows(data, facets):
        named = [(labels.get(column, column), v) for column, v in zip(facets, values, strict=True)]
        heading = " · ".join(f"{label} = {v}" if label else f"{v}" for label, v in named)
        figure = panels[heading] = go.Figure(layout=dict(barmode=barmode or None))
        figure.update_xaxes(_make_axis(labels.get(x, x), data[x], log_x))
        figure.update_yaxes(_make_axis(unit, (part if has_own_scales else data)[y], log_y))
        if has_own_scales:
            figure.update_yaxes(rangemode="tozero")
        elif facets:
            figure.update_yaxes(autorangeoptions_include=[data[y].min(), data[y].max()])
        for kind, rows in _split_rows(part, kinds):
            name = ", ".join(map(str, kind)) or unit
            curve = dict(x=rows[x].tolist(), y=rows[y].tolist(), name=name)
            if error_y and rows[error_y].notna().any():
                minus = rows[error_y_minus].tolist() if error_y_minus else None
                curve |= dict(error_y=dict(array=rows[error_y].tolist(), arrayminus=minus))
            shade = chosen[kind[0]] if color else shades[0]
            if barmode:
                figure.add_bar(marker_color=shade, **curve)
            else:
                dash = DASHES[dashes.index(kind[-1]) % len(DASHES)] if dashes else "solid"
                place = series.index(kind[0]) if color else 0
                figure.add_scatter(
                    line=dict(color=shade, dash=dash),
                    marker=dict(symbol=SYMBOLS[place % len(SYMBOLS)], size=7),
                    mode="lines" if len(rows) > _DENSE else "lines+markers",
                    **curve,
                )
    return Chart(title, panels, data, columns=data[facet_col].nunique() if facet_col else 3)


def panel_chart(
    title: str,
    x: str,
    panels: Mapping[str, pd.DataFrame],
    log: bool = False,
    names: Sequence[str] = (),
) -> Chart:
    """Return a line chart with one panel per quantity and one curve per series.

    - ``panels``: a table by name (with unit) of its quantity, with a row per x and a column per
      series.
    - ``log``: make the y axes logarithmic. Each panel has its own axis.
    - ``names``: all names of series, as in ``bar_chart``.
    """
    long = pd.concat(
        t.melt(var_name="series", ignore_index=False).reset_index(names=x).assign(quantity=n)
        for n, t in panels.items()
    )
    look = dict(x=x, y="value", color="series", facet_col="quantity", labels={"quantity": ""})
    return line_chart(long, title, "", log_y=log, names=names, has_own_scales=True, **look)


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


def _choose_colors(names: Sequence[Any], shades: Sequence[str]) -> dict[Any, str]:
    """Return a color by name; a scheme has the same color in every chart."""
    fixed = {name: colors.scheme_color(name) for name in names if name in colors.SCHEMES}
    rest = [shade for shade in shades if shade not in fixed.values()] or shades
    free = [name for name in names if name not in fixed]
    return fixed | {name: rest[k % len(rest)] for k, name in enumerate(free)}


def _make_axis(title: str, values: pd.Series, is_log: bool) -> dict[str, Any]:
    """Return an axis; a logarithmic one has labels at 2 and 5 if there are few decades.

    Over many decades only the decades are labeled, not all nine digits. If the values are so close
    that neither may be in range, plotly chooses the labels.
    """
    if not is_log:
        return dict(title=title)
    positive = values[values > 0]
    ratio = positive.max() / positive.min() if len(positive) else 1
    return dict(title=title, type="log", dtick=None if ratio < 5 else "D2" if ratio < 100 else 1)
