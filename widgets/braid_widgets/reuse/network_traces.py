"""Links and nodes of a network, drawn alike in both maps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
from braid.papers.reuse.network import Link, Network, make_link

from braid_widgets.base.charts import GREY

LOOK = {
    "source": ("square", "#2b8a3e"),
    "node": ("circle", "#868e96"),
    "sink": ("diamond", "#862e9c"),
    "site": ("circle", "#868e96"),
}
"""Symbol and color by kind of node."""
FLOW, WIDEST = "#2f6fde", 12.0


def link_traces(
    network: Network,
    load: Mapping[Link, float],
    most: float,
    unit: str,
    down: Collection[str] = (),
) -> Iterator[go.Scatter]:
    """Yield the links, as wide as their load; dotted if nothing flows or an end is down."""
    for a, b, ms in network.links:
        size = load.get(make_link(a, b), 0)
        yield path_trace(
            network,
            (a, b),
            f"{a} - {b}: {ms:g} ms, {size:,.0f} {unit}",
            color=FLOW if size else GREY,
            width=1 + (WIDEST * size / most if size else 0.0),
            dash="solid" if size and not {a, b} & set(down) else "dot",
        )


def path_trace(network: Network, nodes: Sequence[str], text: str, **look: Any) -> go.Scatter:
    """Return a path over these nodes."""
    ends = [network.nodes[network.node_index[n]].position for n in nodes]
    return go.Scatter(
        x=[x for x, _ in ends],
        y=[y for _, y in ends],
        mode="lines",
        line=look,
        text=text,
        hoverinfo="text",
        showlegend=False,
    )


def node_traces(
    network: Network,
    badges: Callable[[str], Sequence[str]],
    colour: Callable[[str, str], str] = lambda _name, color: color,
    **more: Any,
) -> Iterator[go.Scatter]:
    """Yield the nodes by kind, with their labels.

    ``colour`` maps a node and the color of its kind to the node's color; ``more`` is passed to each
    trace.
    """
    for kind, (symbol, color) in LOOK.items():
        nodes = [n for n in network.nodes if n.role == kind]
        if nodes:
            labels = [badges(n.name) for n in nodes]
            yield go.Scatter(
                x=[n.position[0] for n in nodes],
                y=[n.position[1] for n in nodes],
                mode="markers+text",
                name=kind,
                legendgroup=kind,
                marker=dict(
                    symbol=symbol,
                    size=[20 if s else 12 for s in labels],
                    color=[colour(n.name, color) for n in nodes],
                ),
                text=[
                    "<br>".join([f"<b>{n.name}</b>", *s])
                    for n, s in zip(nodes, labels, strict=True)
                ],
                textposition="top center",
                cliponaxis=False,
                hoverinfo="text",
                **more,
            )
