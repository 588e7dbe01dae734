"""Charts that show themselves, hand out their data, and save themselves to a page that works
offline.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go

WIDTH = "1080px"
"""The widest that a stage or a panel gets; stage.css has it too."""
TEMPLATE = "plotly_white"
GREY = "#747a80"
"""Reads on white and on black alike (contrast 4.3); ``STYLE`` gives most text the theme's
colour.
"""
STYLE = f"<style>{(Path(__file__).parent / 'stage.css').read_text(encoding='utf-8')}</style>"
"""What a page with charts should have once."""


@dataclass(frozen=True)
class Chart:
    """A plotly figure and the numbers it was made from."""

    name: str
    figure: go.Figure
    data: pd.DataFrame

    def to_html(self, first: bool = True) -> str:
        """The chart as HTML, on the ground of its page, light or dark; nothing is loaded from
        elsewhere.

        Only the first chart of a page holds plotly.js (4.8 MB) and the style.
        """
        options = dict(
            include_plotlyjs=first, include_mathjax=False, full_html=False, auto_play=False
        )
        return (STYLE if first else "") + str(self._themed().to_html(**options))

    def save(self, path: str | Path, overwrite: bool = False) -> Path:
        """Write a page that works offline. Raises FileExistsError rather than replace a file
        silently.
        """
        page = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta '
            'name="color-scheme" content="light dark">'
        )
        page += f"<title>{self.name}</title></head><body>"
        return save_page(path, f"{page}{self.to_html()}</body></html>", overwrite)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {
            "application/vnd.plotly.v1+json": json.loads(self._themed().to_json()),
            "text/plain": f"Chart({self.name!r})",
        }

    def _themed(self) -> go.Figure:
        """The figure for a page whose theme may be light or dark: on no ground of its own."""
        figure, rule = (
            go.Figure(self.figure),
            dict(gridcolor="rgba(128,128,128,0.25)", zerolinecolor="rgba(128,128,128,0.5)"),
        )
        figure.update_layout(
            paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)", font_color=GREY
        )
        return figure.update_xaxes(**rule).update_yaxes(**rule)


def save_page(path: str | Path, html: str, overwrite: bool = False) -> Path:
    """Write a page. Raises FileExistsError rather than replace a file silently."""
    path = Path(path)
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists; pass overwrite=True to replace it")
    path.write_text(html, encoding="utf-8")
    return path


Frame = tuple[str, str, str, list[Any]]
"""Batch as text, title, note, traces."""


def frames_chart(
    name: str,
    frames: Sequence[Frame],
    layout: dict[str, Any],
    rows: Sequence[Any],
    columns: Sequence[str],
) -> Chart:
    """A chart of one frame, or of several with a slider and Play; it opens on the last."""
    traces = frames[-1][3]
    figure = go.Figure(traces)
    figure.update_layout(template=TEMPLATE, margin=dict(t=150, b=30), **layout)
    figure.update_layout(title=dict(text=_title(frames[-1]), y=0.97, yanchor="top"))
    if len(frames) > 1:
        figure.frames = [
            go.Frame(data=f[3], name=f[0], layout=dict(title=dict(text=_title(f)))) for f in frames
        ]
        figure.update_layout(sliders=[_slider([f[0] for f in frames])], updatemenus=[_play()])
    return Chart(name, figure, pd.DataFrame(rows, columns=columns))


def _title(frame: Frame) -> str:
    return f"{frame[1]}<br><sub>batch {frame[0]} · {frame[2]}</sub>"


def _slider(names: list[str]) -> dict[str, Any]:
    now = dict(mode="immediate", frame=dict(duration=0, redraw=True), transition=dict(duration=0))
    steps = [dict(method="animate", label=n, args=[[n], now]) for n in names]
    return dict(
        active=len(names) - 1,
        steps=steps,
        currentvalue=dict(prefix="batch "),
        pad=dict(t=20),
        x=0.2,
        len=0.8,
    )


def _play() -> dict[str, Any]:
    go_on = dict(
        frame=dict(duration=400, redraw=True),
        transition=dict(duration=0),
        fromcurrent=True,
        mode="immediate",
    )
    halt = dict(frame=dict(duration=0, redraw=False), mode="immediate")
    buttons = [
        dict(label="Play", method="animate", args=[None, go_on]),
        dict(label="Pause", method="animate", args=[[None], halt]),
    ]
    place = dict(x=0.17, y=-0.06, xanchor="right", yanchor="top")
    return dict(type="buttons", direction="right", showactive=False, buttons=buttons, **place)
