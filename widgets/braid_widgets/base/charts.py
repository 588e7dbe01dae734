"""Charts that display themselves, return their data and save themselves as offline pages."""

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
from braid.util.validation import check_page_file

from braid_widgets.base.player import read_bundle

WIDTH = "1080px"
"""Maximum width of a stage or a panel, in pixels; stage.css has the same value."""
TEMPLATE = "plotly_white"
GREY = "#747a80"
"""A gray that is readable on white and on black (contrast 4.3). ``STYLE`` gives most text the color
of the theme.
"""
BELOW = dict(orientation="h", x=0, y=0, yref="container", yanchor="bottom")
"""Layout of a legend below the chart, where it covers nothing at any width."""
_OURS = "braid"
"""The layout's ``meta`` of Braid's charts. Pages resize charts with this mark (``narrow.ts`` has
the same value) and leave other charts unchanged.
"""
_GROUND = dict.fromkeys(("paper_bgcolor", "plot_bgcolor"), "rgba(0,0,0,0)")
_RULES = dict(gridcolor="rgba(128,128,128,0.25)", zerolinecolor="rgba(128,128,128,0.5)")
_AXIS = re.compile(r"[xy]axis\d*")
_ROWS = 40
"""Maximum number of rows of the table shown without JavaScript."""
STYLE = f"<style>{(Path(__file__).parent / 'stage.css').read_text(encoding='utf-8')}</style>"
"""The style sheet that a page with charts includes once."""


@dataclass(frozen=True)
class Chart:
    """A plotly figure and the data it was made from."""

    name: str
    figure: go.Figure
    data: pd.DataFrame

    def to_html(self, first: bool = True, id: str | None = None) -> str:
        """Return the chart as HTML that loads nothing from the network.

        It adapts to a light or dark page. Without JavaScript it shows a table of its numbers.

        - ``first``: include plotly.js (4.8 MB) and the style; only the first chart of a page needs
          them.
        - ``id``: the element's id; by default a new one.
        """
        options = dict(
            include_plotlyjs=first,
            include_mathjax=False,
            full_html=False,
            auto_play=False,
            div_id=id,
        )
        plain = self.data.to_html(index=False, border=0, max_rows=_ROWS, na_rep="–")
        fallback = f"<noscript><p>{escape(self.name)}</p>{plain}</noscript>"
        fitting = f'<script type="module">{read_bundle("charts")}</script>'
        return (
            (STYLE + fitting if first else "")
            + str(pio.to_html(self._to_themed_dict(), validate=False, **options))
            + fallback
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the chart's name and data as JSON values."""
        data = json.loads(self.data.to_json(orient="split", index=False, date_format="iso"))
        return {"name": self.name, "columns": data["columns"], "rows": data["data"]}

    def save(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write the chart as an offline page and return its path. Raises as ``save_page`` does."""
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
        """Return the figure for a light or dark page: with a transparent background and Braid's
        mark.

        It is plain data, because plotly would validate a figure a second time.
        """
        figure: dict[str, Any] = self.figure.to_dict()
        layout = figure["layout"]
        layout |= {"font": layout.get("font", {}) | {"color": GREY}, "meta": _OURS, **_GROUND}
        for name in {"xaxis", "yaxis", *filter(_AXIS.fullmatch, layout)}:
            layout[name] = layout.get(name, {}) | _RULES
        return figure


def save_page(path: str | Path, html: str, overwrite: bool = False) -> Path:
    """Write a page and return its path. Raises as ``check_page_file`` does."""
    path = check_page_file(path, overwrite)
    path.write_text(html, encoding="utf-8")
    return path
