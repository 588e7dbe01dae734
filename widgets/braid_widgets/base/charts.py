"""Charts that show themselves, hand out their data, and save themselves to a page that works
offline.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import plotly.io as pio

from braid_widgets.base import svg_chart
from braid_widgets.base.player import read_bundle

WIDTH = "1080px"
"""The widest that a stage or a panel gets; stage.css has it too."""
TEMPLATE = "plotly_white"
GREY = "#747a80"
"""Reads on white and on black alike (contrast 4.3); ``STYLE`` gives most text the theme's
colour.
"""
BELOW = dict(orientation="h", x=0, y=0, yref="container", yanchor="bottom")
"""A legend below everything else, where it is over nothing, however narrow the chart."""
_OURS = "braid"
"""What the layout's ``meta`` is in these charts: pages fit them to their width (``narrow.ts`` has
it too), and leave other charts as they are.
"""
_GROUND = dict.fromkeys(("paper_bgcolor", "plot_bgcolor"), "rgba(0,0,0,0)")
_RULES = dict(gridcolor="rgba(128,128,128,0.25)", zerolinecolor="rgba(128,128,128,0.5)")
_RAIL = dict(bgcolor="rgba(128,128,128,0.35)", bordercolor=GREY, activebgcolor=GREY)
"""What a slider is drawn with."""
_AXIS = re.compile(r"[xy]axis\d*")
_ROWS = 40
"""Of the table without JavaScript."""
STYLE = f"<style>{(Path(__file__).parent / 'stage.css').read_text(encoding='utf-8')}</style>"
"""What a page with charts should have once."""


@dataclass(frozen=True)
class Chart:
    """A plotly figure and the numbers it was made from."""

    name: str
    figure: go.Figure
    data: pd.DataFrame

    def to_html(self, first: bool = True, id: str | None = None) -> str:
        """The chart as HTML, on the ground of its page, light or dark; nothing is loaded from
        elsewhere. Without JavaScript it is a simpler picture, and a table of its numbers.

        Only the first chart of a page holds plotly.js (4.8 MB) and the style. ``id`` is that of its
        element on the page, by default one of its own.
        """
        options = dict(
            include_plotlyjs=first,
            include_mathjax=False,
            full_html=False,
            auto_play=False,
            div_id=id,
        )
        plain = self.data.to_html(index=False, border=0, max_rows=_ROWS, na_rep="–")
        drawn = svg_chart.chart_svg(self.figure, self.name)
        told = f"<noscript>{drawn}<p>{escape(self.name)}</p>{plain}</noscript>"
        fitting = f'<script type="module">{read_bundle("charts")}</script>'
        return (
            (STYLE + fitting if first else "")
            + str(pio.to_html(self._to_themed_dict(), validate=False, **options))
            + told
        )

    def to_dict(self) -> dict[str, Any]:
        """The chart's name and data, as JSON has it."""
        data = json.loads(self.data.to_json(orient="split", index=False, date_format="iso"))
        return {"name": self.name, "columns": data["columns"], "rows": data["data"]}

    def save(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write a page that works offline. Raises FileExistsError rather than replace a file
        silently.
        """
        page = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta '
            'name="color-scheme" content="light dark">'
        )
        page += f"<title>{escape(self.name)}</title></head><body>"
        return save_page(path, f"{page}{self.to_html()}</body></html>", overwrite)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {
            "application/vnd.plotly.v1+json": json.loads(
                pio.to_json(self._to_themed_dict(), validate=False)
            ),
            "text/plain": f"Chart({self.name!r})",
        }

    def _to_themed_dict(self) -> dict[str, Any]:
        """The figure for a page whose theme may be light or dark: on no ground of its own; and with
        the mark of our charts. It is plain data: plotly would look at all of it once more.
        """
        figure: dict[str, Any] = self.figure.to_dict()
        layout = figure["layout"]
        layout |= {"font": layout.get("font", {}) | {"color": GREY}, "meta": _OURS, **_GROUND}
        layout["sliders"] = [slider | _RAIL for slider in layout.get("sliders", ())]
        for name in {"xaxis", "yaxis", *filter(_AXIS.fullmatch, layout)}:
            layout[name] = layout.get(name, {}) | _RULES
        return figure


def save_page(path: str | Path, html: str, overwrite: bool = False) -> Path:
    """Write a page. Raises FileExistsError rather than replace a file silently."""
    path = Path(path)
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists; pass overwrite=True to replace it")
    path.write_text(html, encoding="utf-8")
    return path
