"""A hub on its network, batch by batch and change by change: what was counted on each link,
operators where they are, the way that state takes when one moves.

After Seshadri 2008, figure 1. Latencies are given; bytes are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from braid.papers.reuse.network import Network

from braid_widgets.base.charts import GREY, TEMPLATE, Chart
from braid_widgets.base.colours import BOUND, MIGRATION
from braid_widgets.base.still import svg
from braid_widgets.reuse.scenes import Step, network_of, steps
from braid_widgets.reuse.traces import line, link_traces, node_traces


def hub_map(
    events: Sequence[Any], title: str = "What flows: links as wide as their bytes a batch (counted)"
) -> Chart:
    """The map of a hub's events, with a slider that begins at the busiest batch; links have one
    scale in all moments.
    """
    network, moments = network_of(events), steps(events)
    most = max((size for m in moments for size in m.links.values()), default=1)
    shown = moments or [Step("nothing has happened yet")]
    frames = [
        go.Frame(data=list(_traces(network, m, most)), name=str(i)) for i, m in enumerate(shown)
    ]
    first = max(range(len(shown)), key=lambda i: sum(shown[i].links.values()))
    plot = _drawn(network, frames[first].data, title, 640)
    plot.frames = frames
    plot.update_layout(sliders=[_slider(shown, first)], updatemenus=[_play()])
    rows = [
        {"moment": i, "title": m.title, "link": f"{a} - {b}", "bytes (counted)": size}
        for i, m in enumerate(shown)
        for (a, b), size in sorted(m.links.items())
    ]
    return Chart("Hub", plot, pd.DataFrame(rows))


def moment_map(network: Network, moment: Step) -> str:
    """The map of one moment as SVG: small enough to be drawn anew whenever it changes."""
    most = max(moment.links.values(), default=1)
    return svg(_drawn(network, list(_traces(network, moment, most)), moment.title, 440), "the hub")


def _drawn(network: Network, traces: Sequence[go.Scatter], title: str, height: int) -> go.Figure:
    plot = go.Figure(data=traces)
    plot.update_layout(
        template=TEMPLATE,
        title=title,
        height=height,
        margin=dict(t=60, b=20, l=20, r=20),
        showlegend=False,
    )
    xs, ys = zip(*(n.at for n in network.nodes), strict=True)
    plot.update_xaxes(visible=False, range=[min(xs) - 1.5, max(xs) + 1.5])
    plot.update_yaxes(visible=False, range=[min(ys) - 0.6, max(ys) + 1.2])
    return plot


def _slider(moments: Sequence[Step], active: int) -> dict[str, Any]:
    how = dict(mode="immediate", frame=dict(duration=0, redraw=True), transition=dict(duration=0))
    marks = [
        dict(method="animate", args=[[str(i)], how], label=m.title) for i, m in enumerate(moments)
    ]
    return dict(
        active=active,
        steps=marks,
        currentvalue=dict(prefix="", font=dict(size=15, color=GREY)),
        pad=dict(t=10, l=130),
        ticklen=0,
        font=dict(color="rgba(0,0,0,0)"),
        tickcolor="rgba(0,0,0,0)",
    )


def _play() -> dict[str, Any]:
    how = dict(frame=dict(duration=700, redraw=True), fromcurrent=True, transition=dict(duration=0))
    stop = dict(frame=dict(duration=0), mode="immediate")
    buttons = [
        dict(label="Play", method="animate", args=[None, how]),
        dict(label="Stop", method="animate", args=[[None], stop]),
    ]
    return dict(type="buttons", direction="right", x=0, y=-0.06, xanchor="left", buttons=buttons)


def _traces(network: Network, moment: Step, most: float) -> Iterator[go.Scatter]:
    yield from link_traces(network, moment.links, most, "bytes", moment.down)
    yield line(network, moment.way, "state on its way", color=MIGRATION, width=4, dash="dash")
    yield from node_traces(network, partial(_badges, moment), partial(_colour, moment))


def _colour(moment: Step, node: str, own: str) -> str:
    if node in moment.down:
        return BOUND
    moving = any(b.node == node and b.id in moment.touched for b in moment.operators.values())
    return MIGRATION if moving else own


def _badges(moment: Step, node: str) -> list[str]:
    """What is at a node: that it is down, its operators, the queries that are asked there."""
    down = ["down"] if node in moment.down else []
    operators = [b.text for b in moment.operators.values() if b.node == node]
    return [*down, *operators, *(q for q, sink in moment.queries.items() if sink == node)]
