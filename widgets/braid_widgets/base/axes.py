"""Axes of a chart drawn as SVG: map values to pixels. Used by ``svg_chart``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from html import unescape
from math import floor, isfinite, log10
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

WIDTH, TOP, BOTTOM, LEFT, RIGHT = 960, 68, 72, 64, 44
"""Width of the picture and the margins around its panels, in pixels."""


class Axis(NamedTuple):
    """One axis of an SVG chart; it maps ``low`` to pixel ``start`` and ``high`` to ``end``.

    - ``log``: ``low`` and ``high`` are logarithms to base 10.
    - ``names``: the categories of a categorical axis, else empty.
    - ``marks``: tick positions and labels set by the figure, if any.
    - ``title_position``: whether the axis overlays another one, so its ticks are drawn on the
      right.
    """

    low: float
    high: float
    start: float
    end: float
    log: bool
    names: tuple[str, ...]
    title: str
    marks: tuple[tuple[Any, str], ...] | None
    title_position: bool

    def pixel(self, value: Any) -> float:
        """Return the pixel of a value; NaN if the value has no position."""
        number = category_index(value, self.names)
        if self.log:
            number = log10(number) if number > 0 else float("nan")
        return self.start + (number - self.low) / (self.high - self.low) * (self.end - self.start)

    def pixel_if_visible(self, value: Any) -> float:
        """Return the pixel of a value; NaN if it is outside the axis."""
        place = self.pixel(value)
        low, high = sorted((self.start, self.end))
        return place if low - 1 <= place <= high + 1 else float("nan")

    @property
    def is_bare(self) -> bool:
        """Return whether the axis has neither ticks nor a title."""
        return self.marks == () and not self.title

    def make_ticks(self) -> list[tuple[float, str]]:
        """Return the pixels and labels of a few ticks."""
        if self.marks is not None:
            return [(self.pixel(value), label) for value, label in self.marks]
        if self.names:
            every = -(-len(self.names) // 16)
            return [(self.pixel(n), n) for n in self.names[::every]]
        if self.log:
            powers = range(floor(self.low), floor(self.high) + 2)
            marks = [(10.0**p) for p in powers if self.low - 1e-9 <= p <= self.high + 1e-9]
            return [(self.pixel(m), f"{m:,.15g}") for m in marks]
        return [(self.pixel(m), f"{m:,.6g}") for m in _choose_round_ticks(self.low, self.high)]


def read_axis(figure: go.Figure, name: str, height: int) -> Axis:
    """Return the axis of the figure with this short name, such as "x2"."""
    layout = figure.layout[f"{name[0]}axis{name[1:]}"]
    side, group = name[0], {name}
    axes = figure.select_xaxes() if side == "x" else figure.select_yaxes()
    first = layout.matches or name
    group |= {first, *(_shorten_axis_name(a) for a in axes if a.matches == first)}
    on_axis = [t for t in figure.data if (t[f"{side}axis"] or side) in group]
    values = [v for t in on_axis for v in _collect_trace_values(t, side)] + _sum_stacked_bars(
        figure, on_axis, side
    )
    texts = tuple(dict.fromkeys(str(v) for v in values if isinstance(v, str)))
    log = layout.type == "log"
    low, high = _compute_axis_range(layout, values, texts, log)
    on = layout.overlaying or name
    low_end, high_end = figure.layout[f"{on[0]}axis{on[1:]}"].domain or (0, 1)
    start, size = (
        (LEFT, WIDTH - LEFT - RIGHT) if side == "x" else (height - BOTTOM, TOP + BOTTOM - height)
    )
    place = (start + low_end * size, start + high_end * size)
    title, over = strip_markup(layout.title.text), layout.overlaying is not None
    return Axis(low, high, *place, log, texts, title, _read_tick_labels(layout), over)


def _read_tick_labels(layout: Any) -> tuple[tuple[Any, str], ...] | None:
    """Return the tick positions and labels that the figure sets, if any."""
    if layout.showticklabels is False or layout.visible is False:
        return ()
    if layout.tickvals is None:
        return None
    labels = layout.ticktext if layout.ticktext is not None else map(str, layout.tickvals)
    return tuple(zip(layout.tickvals, map(strip_markup, labels), strict=False))


def _shorten_axis_name(axis: Any) -> str:
    """Return the short name of an axis: "x2" for "xaxis2"."""
    return str(axis.plotly_name).replace("axis", "")


def _collect_trace_values(trace: Any, side: str) -> Iterator[Any]:
    """Return the values of a trace on one of its axes, including both ends of bars."""
    values = list(trace[side]) if trace[side] is not None else []
    if trace.type == "heatmap" and not values:
        values = list(range(len(trace.z) if side == "y" else len(trace.z[0])))
    yield from values
    if trace.type == "heatmap" and len(values) > 1 and not isinstance(values[0], str):
        half = (values[1] - values[0]) / 2
        yield from (values[0] - half, values[-1] + half)
    if trace.type == "bar" and side == ("x" if trace.orientation == "h" else "y"):
        base = broadcast(trace.base, len(values), 0)
        yield from (b + v for b, v in zip(base, values, strict=False) if isinstance(v, int | float))
        yield 0


def _sum_stacked_bars(figure: go.Figure, traces: list[Any], side: str) -> list[float]:
    """Return the total heights of stacked bars."""
    sums: dict[Any, float] = defaultdict(float)
    for t in traces if figure.layout.barmode in ("stack", "relative") else ():
        if t.type == "bar" and t.base is None and side == ("x" if t.orientation == "h" else "y"):
            along, across = (t.y, t.x) if t.orientation == "h" else (t.x, t.y)
            panel = t.xaxis, t.yaxis
            for spot, size in zip(as_list(along), as_list(across), strict=False):
                if isfinite(number := category_index(size, ())):
                    sums[panel, spot, number < 0] += number
    return list(sums.values())


def _compute_axis_range(
    layout: Any, values: list[Any], texts: tuple[str, ...], log: bool
) -> tuple[float, float]:
    """Return the lowest and highest value drawn; their logarithms on a log axis."""
    if layout.range and all(isinstance(v, int | float) for v in layout.range):
        low, high = map(float, layout.range)
        return (low, high) if low != high else (low - 0.5, high + 0.5)
    if texts:
        return -0.6, len(texts) - 0.4
    numbers = [n for v in values if isfinite(n := category_index(v, ())) and (n > 0 or not log)]
    low, high = (min(numbers), max(numbers)) if numbers else (1.0, 10.0)
    if log:
        low, high = log10(low), log10(high)
    if layout.rangemode == "tozero" and not log:
        low, high = min(low, 0), max(high, 0)
    room = (high - low) * 0.04 or 0.5
    return low - (room if low else 0), high + room


def category_index(value: Any, names: tuple[str, ...]) -> float:
    """Return a value as a number: a category's index, NaN for a missing value."""
    if isinstance(value, str):
        return float(names.index(value)) if value in names else float("nan")
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")


def _choose_round_ticks(low: float, high: float) -> list[float]:
    """Return about six round numbers between low and high."""
    low, high = sorted((low, high))
    step = 10 ** floor(log10((high - low) / 5))
    step *= next(m for m in (1, 2, 5, 10) if (high - low) / (step * m) <= 7)
    first = -floor(-low / step)
    return [round(k * step, 12) for k in range(first, floor(high / step) + 1)]


def broadcast(value: Any, count: int, default: Any) -> list[Any]:
    """Return ``count`` values: the given ones, or one value repeated."""
    if value is None:
        return [default] * count
    if np.ndim(value) == 0:
        return [value] * count
    return list(value)


def as_list(values: Any) -> list[Any]:
    """Return the values as a list; empty if there are none."""
    return [] if values is None else list(values)


def strip_markup(text: Any) -> str:
    """Return the text without HTML tags and entities."""
    return unescape(re.sub(r"</?[a-zA-Z][^>]*>", "", str(text or "")))
