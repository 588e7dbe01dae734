"""Charts that display themselves and return their data."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import plotly.io as pio
from braid.util.validation import check_page_file
from IPython.display import HTML, display
from plotly.offline import get_plotlyjs

from braid_widgets.base.interactivity import is_headless
from braid_widgets.base.player import read_bundle, read_styles

WIDTH = "1080px"
"""Maximum width of a stage or a panel, in pixels; stage.css has the same value."""
GREY = "#747a80"
"""A gray that is readable on white and on black (contrast 4.3). charts.css gives text the color of
the theme.
"""
_AXIS = dict(
    automargin=True, gridcolor="rgba(128,128,128,0.25)", zerolinecolor="rgba(128,128,128,0.5)"
)
_CLEAR = "rgba(0,0,0,0)"
_COMPACT = dict(
    template=dict(layout=dict(xaxis=dict(autotickangles=[0, -45, -90], **_AXIS), yaxis=_AXIS)),
    showlegend=False,
    margin=dict(l=8, r=8, t=16, b=8),
    font=dict(color=GREY),
    paper_bgcolor=_CLEAR,
    plot_bgcolor=_CLEAR,
)
"""The layout of a figure on a light or dark page, which has its title, its legend and the names of
its axes.
"""
_GLYPHS = {
    "circle": "●",
    "square": "■",
    "diamond": "◆",
    "circle-open": "○",
    "square-open": "□",
    "triangle-up": "▲",
    "x": "✖",
    "cross": "✚",
    "star-diamond-open": "✧",
}
"""Marker symbols, and the letter of each in the legend."""
SYMBOLS = tuple(_GLYPHS)[:-1]
"""Marker symbols of curves, so that they differ without color too."""
_ROWS = 40
"""Maximum number of rows of the table shown without JavaScript."""
STYLE = f"<style>{read_styles('stage.css')}</style>"
"""The style sheet of panels."""


class _Page:
    """The process-wide state of the page: whether plotly.js is on it."""

    has_library = False


def is_first_chart() -> bool:
    """Return whether nobody in the process has asked before: the first chart needs plotly.js."""
    had, _Page.has_library = _Page.has_library, True
    return not had


def needs_library() -> bool:
    """Return whether a chart brings plotly.js.

    JupyterLab has it. Outputs of Colab are pages of their own; VS Code and reports have one page.
    """
    is_one_page = is_headless() or "VSCODE_PID" in os.environ
    return "google.colab" in sys.modules or (is_one_page and is_first_chart())


@dataclass(frozen=True)
class Chart:
    """Figures of plotly in a grid, and the data they were made from.

    - ``name``: the title.
    - ``panels``: the figures by heading. The page has the names of their axes as text.
    - ``note``: a sentence below the title.
    - ``columns``: the maximum number of figures side by side; a narrow window has fewer.
    """

    name: str
    panels: Mapping[str, go.Figure]
    data: pd.DataFrame
    note: str = ""
    columns: int = 3

    def to_html(self, first: bool = True) -> str:
        """Return the chart as HTML that loads nothing from the network.

        It adapts to a light or dark page. Without JavaScript it shows a table of its numbers.

        - ``first``: include plotly.js (4.8 MB); only the first chart of a page needs it.
        """
        library = f"<script>{get_plotlyjs()}</script>" if first else ""
        plain = self.data.to_html(index=False, border=0, max_rows=_ROWS, na_rep="–")
        style = "<style>.braid-panels, .braid-keys { display: none }</style>"
        panels = "".join(_render_panel(*panel) for panel in self.panels.items())
        return (
            f"<style>{read_styles('charts.css')}</style>{library}"
            f'<div class="braid-chart" style="--columns: {self.columns}"><b>{escape(self.name)}</b>'
            f'<p>{escape(self.note)}</p><div class="braid-keys">{self._render_keys()}</div>'
            f'<div class="braid-panels">{panels}</div><noscript>{style}{plain}</noscript></div>'
            f'<script type="module">{read_bundle("charts")}</script>'
        )

    def _render_keys(self) -> str:
        """Return the legend: a button for each name, which hides it and shows it again."""
        traces = [t for figure in self.panels.values() for t in figure.data]
        named = {t.name: t for t in traces if t.name and t.showlegend is not False}
        is_clear = len(named) < 2 and not any(t.type == "heatmap" for t in traces)
        return "" if is_clear else "".join(map(_render_key, named.values()))

    def to_dict(self) -> dict[str, Any]:
        """Return the chart's name and data as JSON values."""
        data = json.loads(self.data.to_json(orient="split", index=False, date_format="iso"))
        return {"name": self.name, "columns": data["columns"], "rows": data["data"]}

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"text/html": self.to_html(first=False), "text/plain": f"Chart({self.name!r})"}

    def _ipython_display_(self) -> None:
        html = self.to_html(first=needs_library())
        display(HTML(html))  # type: ignore[no-untyped-call]


def _render_panel(heading: str, figure: go.Figure) -> str:
    """Return a figure with its heading and the names of its axes as text, which wraps."""
    content: dict[str, Any] = figure.to_dict()
    layout = content["layout"] = content["layout"] | _COMPACT
    x, y = (layout.get(axis, {}).pop("title", {}).get("text", "") for axis in ("xaxis", "yaxis"))
    data = pio.to_json(content, validate=False).replace("<", "\\u003c")
    return (
        f"<figure><figcaption><b>{escape(heading)}</b><span>{escape(y)}</span></figcaption>"
        f'<div class="braid-plot"><script type="application/json">{data}</script></div>'
        f"<p>{escape(x)}</p></figure>"
    )


def _render_key(trace: Any) -> str:
    """Return a trace's part of the legend: its mark and its name."""
    name, glyph = escape(trace.name), ""
    if trace.type == "heatmap":
        shades = ", ".join(shade for _, shade in trace.colorscale)
        return f'<span><i style="background: linear-gradient(90deg, {shades})"></i>{name}</span>'
    if trace.type == "bar":
        glyph, dash = "▨" if trace.marker.pattern.shape else "■", ""
    else:
        dash = {"solid": "solid", "dot": "dotted"}.get(trace.line.dash or "solid", "dashed")
        mode = trace.mode or "lines"
        glyph = _GLYPHS.get(trace.marker.symbol or "circle", "●") if "markers" in mode else ""
        dash = f"; --line: {dash}" if "lines" in mode else ""
    return (
        f'<button type="button" aria-pressed="true" data-name="{name}">'
        f'<i style="color: {escape(get_trace_color(trace))}{dash}">{glyph}</i>{name}</button>'
    )


def get_trace_color(trace: Any) -> str:
    """Return the color of a curve or of bars."""
    look = trace.marker if trace.type == "bar" else trace.line
    return str(look.color or GREY)


def save_page(path: str | Path, html: str, overwrite: bool = False) -> Path:
    """Write a page and return its path. Raises as ``check_page_file`` does."""
    path = check_page_file(path, overwrite)
    path.write_text(html, encoding="utf-8")
    return path
