"""The reuse lattice and a search in it: level by level, what it enters and what it leaves aside.

After Seshadri 2008, section 4 and figure 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go
from braid.papers.reuse.lattice import LEVELS, Visit

from braid_widgets.base.charts import GREY, TEMPLATE, Chart
from braid_widgets.base.colours import RATIO, RESULTS

_LONGEST = 22
"""Letters of a key that are shown."""


def lattice_search(visits: Sequence[Visit], regions: int = 4) -> Chart:
    """A search, as a slider lets it light up key by key. ``regions``: the bits of NIDs."""
    shown = [level for level in LEVELS if any(v.level == level for v in visits)]
    places = _places(visits, shown)
    deep = max((y for _, y in places), default=0)
    frames = [
        go.Frame(data=[_lit(visits[:n], places, regions)], traces=[1], name=str(n))
        for n in range(1, len(visits) + 1)
    ]
    whole = _boxes(visits, places, regions)
    plot = go.Figure(data=[whole, frames[-1].data[0]] if frames else [whole], frames=frames)
    for i, level in enumerate(shown):
        plot.add_annotation(x=i, y=1.12, yref="paper", text=f"<b>{level}</b>", showarrow=False)
    plot.update_layout(
        template=TEMPLATE,
        title="A search in the reuse lattice",
        height=300 + 60 * deep,
        showlegend=False,
        margin=dict(t=110, b=20, l=20, r=20),
        sliders=[_slider(visits)],
    )
    plot.update_xaxes(visible=False, range=[-0.5, len(shown) - 0.5])
    plot.update_yaxes(visible=False, range=[deep + 0.9, -0.4])
    rows = [
        {"level": v.level, "key": v.key, "NID": bits(v.nid, regions), "left aside": v.pruned}
        for v in visits
    ]
    return Chart("Lattice", plot, pd.DataFrame(rows))


def bits(nid: int, regions: int) -> str:
    """A NID as figure 2 has it: the first region first.

    >>> bits(0b1011, 4)
    '1101'
    """
    return "".join("1" if nid >> i & 1 else "0" for i in range(regions))


def _places(visits: Sequence[Visit], shown: Sequence[str]) -> list[tuple[int, int]]:
    rows = dict.fromkeys(shown, 0)
    found = []
    for v in visits:
        found.append((shown.index(v.level), rows[v.level]))
        rows[v.level] += 1
    return found


def _text(v: Visit, regions: int) -> str:
    key = v.key if len(v.key) <= _LONGEST else v.key[: _LONGEST - 1] + "…"
    return f"{key or 'none'}<br>{bits(v.nid, regions)}" + (f" · {v.pruned}" if v.pruned else "")


def _boxes(visits: Sequence[Visit], places: Sequence[tuple[int, int]], regions: int) -> go.Scatter:
    """All keys that the search may come to."""
    return go.Scatter(
        x=[x for x, _ in places],
        y=[y for _, y in places],
        mode="markers+text",
        marker=dict(color=GREY, size=12, symbol="square-open"),
        text=[_text(v, regions) for v in visits],
        hovertext=[v.key for v in visits],
        textposition="bottom center",
        textfont=dict(size=10),
    )


def _lit(visits: Sequence[Visit], places: Sequence[tuple[int, int]], regions: int) -> go.Scatter:
    """The keys that it has come to: those that it entered, found at the last level, left aside."""
    colours = [GREY if v.pruned else RESULTS if v.level == LEVELS[-1] else RATIO for v in visits]
    symbols = ["x" if v.pruned else "square" for v in visits]
    return go.Scatter(
        x=[x for (x, _), _v in zip(places, visits, strict=False)],
        y=[y for (_, y), _v in zip(places, visits, strict=False)],
        mode="markers",
        marker=dict(color=colours, size=16, symbol=symbols),
        hoverinfo="skip",
    )


def _slider(visits: Sequence[Visit]) -> dict[str, object]:
    how = dict(mode="immediate", frame=dict(duration=0, redraw=True), transition=dict(duration=0))
    marks = [
        dict(method="animate", args=[[str(n)], how], label=f"{v.level}: {v.pruned or 'entered'}")
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
