"""Render a chart as SVG for readers of a page without JavaScript.

It draws lines, points, bars, heat maps, titles and legends, more simply than plotly does.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from html import escape
from itertools import groupby
from math import isfinite
from operator import itemgetter
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.colors import get_colorscale

from braid_widgets.base.axes import (
    BOTTOM,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    as_list,
    broadcast,
    category_index,
    read_axis,
    strip_markup,
)
from braid_widgets.base.svg_marks import COLOURS, css_color, svg_text, svg_trace, trace_color

ROW = 18
"""Height of a row of the legend, in pixels."""


def chart_svg(figure: go.Figure, name: str) -> str:
    """Return the figure as it is shown first; ``name`` is its label for screen readers."""
    height = int(figure.layout.height or 450)
    legend = _render_legend(figure, height)
    parts = [_render_title(figure)]
    for x, y, traces in _collect_panels(figure, height):
        parts += [
            _render_axes(x, y),
            *_render_heatmap(figure, traces, x, y),
            *_render_bars(figure, traces, x, y),
        ]
        parts += [part for k, t in traces if t.type == "scatter" for part in svg_trace(t, k, x, y)]
    parts += [*_render_annotations(figure, height), *legend]
    tall = height + ROW * len(legend)
    return (
        f'<svg viewBox="0 0 {WIDTH} {tall}" width="100%" role="img" aria-label="{escape(name)}" '
        f'font-family="system-ui,sans-serif" font-size="12">{"".join(parts)}</svg>'
    )


def _collect_panels(
    figure: go.Figure, height: int
) -> Iterator[tuple[Axis, Axis, list[tuple[int, Any]]]]:
    """Return each pair of axes with its traces and their numbers."""
    panels: dict[tuple[str, str], list[tuple[int, Any]]] = defaultdict(list)
    for k, trace in enumerate(figure.data):
        if trace.visible in (None, True) and trace.type in ("scatter", "bar", "heatmap"):
            panels[trace.xaxis or "x", trace.yaxis or "y"].append((k, trace))
    for (x, y), traces in panels.items():
        yield read_axis(figure, x, height), read_axis(figure, y, height), traces


def _render_axes(x: Axis, y: Axis) -> str:
    """Return the lines, ticks and titles of the axes; nothing for axes without ticks and title."""
    if x.is_bare and y.is_bare:
        return ""
    left, right, low, high = x.start, x.end, y.start, y.end
    if y.title_position:
        labels = [svg_text(right + 4, at + 4, label, "start") for at, label in y.make_ticks()]
        return "".join([*labels, svg_text(right, high - 6, y.title, "end")])
    lines = [f"M{left:.0f} {high:.0f}V{low:.0f}H{right:.0f}"]
    lines += [f"M{left:.0f} {at:.1f}H{right:.0f}" for at, _ in y.make_ticks()]
    path = f'<path d="{"".join(lines)}" fill="none" stroke="currentColor" stroke-opacity="0.2"/>'
    words = _render_x_ticks(x, low)
    words += [svg_text(left - 5, at + 4, label, "end") for at, label in y.make_ticks()]
    words.append(svg_text((left + right) / 2, low + 32, x.title))
    turned = f' transform="rotate(-90 {left - 46:.0f} {(low + high) / 2:.0f})"'
    words.append(svg_text(left - 46, (low + high) / 2, y.title, more=turned))
    return path + "".join(words)


def _render_x_ticks(x: Axis, low: float) -> list[str]:
    """Return the ticks of the x axis; labels that would touch each other are slanted."""
    ticks = x.make_ticks()
    room = (x.end - x.start) / max(len(ticks), 1)
    if all(7 * len(label) < room for _, label in ticks):
        return [svg_text(at, low + 15, label) for at, label in ticks]
    turned = ' transform="rotate(-30 {:.0f} {:.0f})"'
    return [
        svg_text(at, low + 12, label[:18], "end", turned.format(at, low + 12))
        for at, label in ticks
    ]


def _render_bars(
    figure: go.Figure, traces: list[tuple[int, Any]], x: Axis, y: Axis
) -> Iterator[str]:
    """Return bars side by side, or stacked if the figure stacks them."""
    bars = [(k, t) for k, t in traces if t.type == "bar"]
    is_grouped = figure.layout.barmode in (None, "group") and len(bars) > 1
    heap: dict[tuple[Any, bool], float] = defaultdict(float)
    for place, (k, t) in enumerate(bars):
        flat = t.orientation == "h"
        along, across = (y, x) if flat else (x, y)
        spots, sizes = as_list(t.y if flat else t.x), as_list(t.x if flat else t.y)
        step = _compute_bar_width(along, spots)
        wide = step / len(bars) if is_grouped else step
        shift = (place - (len(bars) - 1) / 2) * wide if is_grouped else 0.0
        looks = zip(
            broadcast(t.marker.color, len(spots), trace_color(t, k)),
            broadcast(t.opacity if t.marker.opacity is None else t.marker.opacity, len(spots), 1),
            strict=False,
        )
        bases, widths = broadcast(t.base, len(spots), None), broadcast(t.width, len(spots), None)
        for spot, size, base, width, look in zip(spots, sizes, bases, widths, looks, strict=False):
            if not isfinite(value := category_index(size, ())) or (across.log and value <= 0):
                continue
            since = base if base is not None else 0.0 if is_grouped else heap[spot, value < 0]
            if base is None:
                heap[spot, value < 0] = since + value
            foot = 10**across.low if across.log and since <= 0 else since
            ends = across.pixel(foot), across.pixel(since + value)
            middle = along.pixel(spot) + (shift if width is None else 0)
            room = wide if width is None else abs(along.pixel(width) - along.pixel(0))
            yield _render_rectangle(
                middle, room, ends, flat, css_color(look[0], COLOURS[0]), look[1]
            )
        yield from _render_error_bars(t, x, y)


def _render_error_bars(t: Any, x: Axis, y: Axis) -> Iterator[str]:
    """Return the error bars at the ends of bars."""
    above = as_list(t.error_y.array)
    below = as_list(t.error_y.arrayminus) or above
    for spot, size, less, more in zip(as_list(t.x), as_list(t.y), below, above, strict=False):
        low, high = (
            y.pixel(category_index(size, ()) - category_index(less, ())),
            category_index(more, ()),
        )
        if not isfinite(low) or not isfinite(high):
            continue
        path = f"M{x.pixel(spot):.1f} {low:.1f}V{y.pixel(size + high):.1f}"
        yield f'<path d="{path}" stroke="currentColor" stroke-width="1.5"/>'


def _compute_bar_width(axis: Axis, spots: list[Any]) -> float:
    """Return the width of a bar in pixels: most of the distance to the next."""
    places = np.unique([p for s in spots if isfinite(p := axis.pixel(s))])
    near = float(np.diff(places).min()) if len(places) > 1 else abs(axis.end - axis.start) / 2
    return 0.8 * near


def _render_rectangle(
    at: float, wide: float, ends: tuple[float, float], flat: bool, shade: str, strength: float = 1
) -> str:
    low, size = min(ends), abs(ends[1] - ends[0])
    spots = (low, at - wide / 2, size, wide) if flat else (at - wide / 2, low, wide, size)
    x, y, w, h = (f"{v:.1f}" for v in spots)
    pale = "" if strength == 1 else f' opacity="{strength:g}"'
    return f'<rect x="{x}" y="{y}" width="{w}" height="{h}" fill="{shade}"{pale}/>'


def _render_heatmap(
    figure: go.Figure, traces: list[tuple[int, Any]], x: Axis, y: Axis
) -> Iterator[str]:
    for _, t in traces:
        if t.type != "heatmap":
            continue
        scale = figure.layout[t.coloraxis] if t.coloraxis else t
        low, high = (scale.cmin, scale.cmax) if t.coloraxis else (scale.zmin, scale.zmax)
        cells = np.array([[category_index(v, ()) for v in row] for row in t.z])
        finite = cells[np.isfinite(cells)]
        low = float(finite.min()) if low is None and finite.size else float(low or 0)
        high = float(finite.max()) if high is None and finite.size else float(high or 1)
        columns = as_list(t.x) or list(range(cells.shape[1]))
        wide = _compute_bar_width(x, columns) / 0.8
        tall = _compute_bar_width(y, rows := as_list(t.y) or list(range(cells.shape[0]))) / 0.8
        shares = np.clip((cells - low) / ((high - low) or 1), 0, 1)
        for row, line in zip(rows, shares, strict=True):
            top = y.pixel(row) - tall / 2
            shades = [_get_cell_color(scale, share) for share in line]
            for shade, run in groupby(zip(columns, shades, strict=True), itemgetter(1)):
                spots = [x.pixel(column) for column, _ in run]
                if shade:
                    room = abs(spots[-1] - spots[0]) + wide
                    middle = (spots[0] + spots[-1]) / 2
                    yield _render_rectangle(middle, room, (top, top + tall), False, shade)


def _get_cell_color(scale: Any, share: float) -> str:
    """Return the color of a cell; empty if it has no value."""
    return _interpolate_color(scale.colorscale or "Viridis", share) if isfinite(share) else ""


def _interpolate_color(scale: Any, share: float) -> str:
    """Return the color at a position from 0 to 1 of a scale.

    If the colors cannot be mixed, the lower one is returned.
    """
    stops = [tuple(stop) for stop in (get_colorscale(scale) if isinstance(scale, str) else scale)]
    low = max((s for s in stops if s[0] <= share + 1e-9), key=lambda s: s[0], default=stops[0])
    high = min((s for s in stops if s[0] > share), key=lambda s: s[0], default=low)
    first, last = _parse_rgb(low[1]), _parse_rgb(high[1])
    if first is None or last is None or high[0] == low[0]:
        return css_color(low[1], COLOURS[0])
    part = (share - low[0]) / (high[0] - low[0])
    mixed = (round(a + (b - a) * part) for a, b in zip(first, last, strict=True))
    return f"rgb({','.join(map(str, mixed))})"


def _parse_rgb(shade: str) -> tuple[int, ...] | None:
    """Return red, green and blue of "#rrggbb" or "rgb(r, g, b)"."""
    if re.fullmatch("#[0-9a-fA-F]{6}", shade):
        return tuple(int(shade[k : k + 2], 16) for k in (1, 3, 5))
    match = re.fullmatch(r"rgb\((\d+), ?(\d+), ?(\d+)\)", shade)
    return tuple(map(int, match.groups())) if match else None


def _render_annotations(figure: go.Figure, height: int) -> Iterator[str]:
    """Return texts that are placed relative to the figure, such as titles of panels."""
    for note in figure.layout.annotations:
        on_paper = note.xref == "paper" and note.yref == "paper"
        if on_paper and note.text and None not in (note.x, note.y):
            x = LEFT + note.x * (WIDTH - LEFT - RIGHT)
            y = height - BOTTOM - note.y * (height - TOP - BOTTOM) - 5
            yield svg_text(x, y, note.text)


def _render_title(figure: go.Figure) -> str:
    lines = re.split(r"<br\s*/?>", figure.layout.title.text or "")
    sizes = (' font-size="16"', "")
    sized_lines = zip(lines, sizes, strict=False)
    return "".join(
        svg_text(LEFT, 22 + 17 * k, t, "start", size) for k, (t, size) in enumerate(sized_lines)
    )


def _render_legend(figure: go.Figure, height: int) -> list[str]:
    """Return the legend below the picture, one entry per row."""
    if figure.layout.showlegend is False:
        return []
    named = {
        strip_markup(t.name): trace_color(t, k)
        for k, t in reversed(list(enumerate(figure.data)))
        if t.name and t.showlegend is not False and t.type != "heatmap"
    }
    rows, x = [""], LEFT
    for name, shade in reversed(named.items()):
        wide = 30 + 7 * len(name)
        if x + wide > WIDTH and x > LEFT:
            rows.append("")
            x = LEFT
        y = height + ROW * (len(rows) - 1) + 6
        rows[-1] += f'<rect x="{x}" y="{y}" width="10" height="10" fill="{shade}"/>' + svg_text(
            x + 15, y + 9, name, "start"
        )
        x += wide
    return rows if named else []
