"""A search in the reuse lattice, key by key: what it enters and what it prunes.

Source: Seshadri 2008, section 4 and figure 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

import pandas as pd
import plotly.graph_objects as go
from braid_lab.reuse.lattice_trace import LEVELS, SearchStep

from braid_widgets.base.charts import GREY, TEMPLATE, Chart
from braid_widgets.base.colors import RATIO, RESULTS

_LETTERS, _LINES = 36, 4
"""Maximum letters per line and lines of a text, to fit a narrow window."""
_INDENT, _LINE, _GAP = 14, 14, 16
"""Pixels between levels, of a line, and between two keys; for a window of this width:"""
_NARROW = 300


def lattice_search(visits: Sequence[SearchStep], regions: int = 4) -> Chart:
    """Return the search as a chart with a slider that highlights one visited key after another.

    Keys are listed in order of the visit and indented by level. ``regions`` is the number of bits
    of a NID.
    """
    texts = [_format_visit(v, regions) for v in visits]
    places, end = _place_visits(visits, texts)
    frames = [
        go.Frame(data=[_make_visited_trace(visits[:n], places)], traces=[1], name=str(n))
        for n in range(1, len(visits) + 1)
    ]
    trace = _make_key_trace(visits, places, texts)
    plot = go.Figure(data=[trace, frames[-1].data[0]] if frames else [trace], frames=frames)
    plot.update_layout(
        template=TEMPLATE,
        title="A search in the reuse lattice",
        height=end + 190,
        showlegend=False,
        margin=dict(t=70, b=120, l=8, r=8),
        sliders=[_make_slider(visits)],
    )
    bare = dict(showgrid=False, zeroline=False, showticklabels=False)
    plot.update_xaxes(range=[-0.8, _NARROW / _INDENT], **bare)
    plot.update_yaxes(range=[end, 0], **bare)
    rows = [
        {
            "level": v.level,
            "key": v.key,
            "NID": format_indicator(v.nid, regions),
            "left aside": v.prune_reason,
        }
        for v in visits
    ]
    return Chart("Lattice", plot, pd.DataFrame(rows))


def format_indicator(nid: int, regions: int) -> str:
    """Return a NID in the notation of figure 2: the first region first.

    >>> format_indicator(0b1011, 4)
    '1101'
    """
    return "".join("1" if nid >> i & 1 else "0" for i in range(regions))


def _place_visits(
    visits: Sequence[SearchStep], texts: Sequence[str]
) -> tuple[list[tuple[int, float]], int]:
    """Return the level and vertical position (pixels) of each key, and the bottom of the last
    one.
    """
    places, top = [], 0
    shown = [level for level in LEVELS if any(v.level == level for v in visits)]
    for v, text in zip(visits, texts, strict=True):
        tall = _LINE * (1 + text.count("<br>")) + _GAP
        places.append((shown.index(v.level), top + tall / 2))
        top += tall
    return places, top


def _format_visit(v: SearchStep, regions: int) -> str:
    """Return a key's text: its level, the key in lines, its NID and why it is pruned."""
    lines = wrap(f"{v.level}: {v.key or 'none'}", _LETTERS, max_lines=_LINES, placeholder=" …")
    lines[0] = lines[0].replace(f"{v.level}:", f"<b>{v.level}</b>", 1)
    text = f"NID {format_indicator(v.nid, regions)}" + (
        f" · {v.prune_reason}" if v.prune_reason else ""
    )
    return "<br>".join([*lines, text])


def _make_key_trace(
    visits: Sequence[SearchStep], places: Sequence[tuple[int, float]], texts: Sequence[str]
) -> go.Scatter:
    """Return the trace of all keys that the search may visit."""
    return go.Scatter(
        x=[x for x, _ in places],
        y=[y for _, y in places],
        mode="markers+text",
        marker=dict(color=GREY, size=22, symbol="square-open"),
        text=list(texts),
        hovertext=[v.key for v in visits],
        hoverinfo="text",
        textposition="middle right",
        textfont=dict(size=11),
        cliponaxis=False,
    )


def _make_visited_trace(
    visits: Sequence[SearchStep], places: Sequence[tuple[int, float]]
) -> go.Scatter:
    """Return the trace of visited keys: entered, found at the last level, or pruned."""
    colours = [
        GREY if v.prune_reason else RESULTS if v.level == LEVELS[-1] else RATIO for v in visits
    ]
    symbols = ["x" if v.prune_reason else "square" for v in visits]
    return go.Scatter(
        x=[x for (x, _), _v in zip(places, visits, strict=False)],
        y=[y for (_, y), _v in zip(places, visits, strict=False)],
        mode="markers",
        marker=dict(color=colours, size=14, symbol=symbols),
        hoverinfo="skip",
    )


def _make_slider(visits: Sequence[SearchStep]) -> dict[str, object]:
    how = dict(mode="immediate", frame=dict(duration=0, redraw=True), transition=dict(duration=0))
    marks = [
        dict(
            method="animate",
            args=[[str(n)], how],
            label=f"{v.level}: {v.prune_reason or 'entered'}",
        )
        for n, v in enumerate(visits, 1)
    ]
    return dict(
        active=len(visits) - 1,
        steps=marks,
        currentvalue=dict(prefix="", font=dict(color=GREY)),
        font=dict(color="rgba(0,0,0,0)"),
        ticklen=0,
        tickcolor="rgba(0,0,0,0)",
    )
