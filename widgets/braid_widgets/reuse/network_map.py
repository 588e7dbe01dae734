"""The network as a map: nodes by kind, links as wide as what is on them, operators where they are.

After Seshadri 2008, figure 1. All that flows is modelled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import pandas as pd
import plotly.graph_objects as go
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import Deployment
from plotly.subplots import make_subplots

from braid_widgets.base.charts import GREY, TEMPLATE, Chart

Link = tuple[str, str]

LOOK = {
    "source": ("square", "#2b8a3e"),
    "node": ("circle", "#868e96"),
    "sink": ("diamond", "#862e9c"),
    "site": ("circle", "#868e96"),
}
"""Symbol and colour by kind of node."""
FLOW, WIDEST = "#2f6fde", 12.0


def on_links(model: CostModel, deployment: Deployment) -> dict[Link, float]:
    """Bytes a second on each link that is used, by its ends in order; modelled."""
    found: dict[Link, float] = {}
    for flow in deployment.flows():
        rate = model.rates.bytes(flow.definition)
        for a, b in pairwise(model.network.path(flow.source, flow.target)):
            link = (a, b) if a < b else (b, a)
            found[link] = found.get(link, 0.0) + rate
    return found


def network_map(model: CostModel, deployments: Mapping[str, Deployment]) -> Chart:
    """Deployments side by side, by title; links have one scale in all of them."""
    loads = {title: on_links(model, d) for title, d in deployments.items()}
    most = max((rate for load in loads.values() for rate in load.values()), default=1.0)
    plot = make_subplots(1, len(loads), subplot_titles=list(loads), horizontal_spacing=0.02)
    rows = []
    for column, (title, load) in enumerate(loads.items(), 1):
        traces = [*_links(model, load, most), *_nodes(model, deployments[title], column == 1)]
        for trace in traces:
            plot.add_trace(trace, row=1, col=column)
        rows += [
            {"deployment": title, "link": f"{a} - {b}", "bytes a second (modelled)": rate}
            for (a, b), rate in sorted(load.items())
        ]
    plot.update_xaxes(visible=False)
    plot.update_yaxes(visible=False)
    plot.update_layout(
        template=TEMPLATE,
        title="What flows: links as wide as their bytes a second (modelled)",
        height=460,
        margin_t=90,
        legend=dict(orientation="h", y=-0.05),
    )
    return Chart("Network", plot, pd.DataFrame(rows))


def _links(model: CostModel, load: Mapping[Link, float], most: float) -> Iterator[go.Scatter]:
    network = model.network
    for a, b, ms in network.links:
        rate = load.get((a, b) if a < b else (b, a), 0.0)
        ends = [network.nodes[network.index[n]].at for n in (a, b)]
        yield go.Scatter(
            x=[x for x, _ in ends],
            y=[y for _, y in ends],
            mode="lines",
            line=dict(
                color=FLOW if rate else GREY,
                width=1 + WIDEST * rate / most,
                dash="solid" if rate else "dot",
            ),
            text=f"{a} - {b}: {ms:g} ms, {rate:,.0f} bytes/s",
            hoverinfo="text",
            showlegend=False,
        )


def _nodes(model: CostModel, deployment: Deployment, legend: bool) -> Iterator[go.Scatter]:
    for kind, (symbol, colour) in LOOK.items():
        nodes = [n for n in model.network.nodes if n.kind == kind]
        if nodes:
            said = [_badges(deployment, n.name) for n in nodes]
            yield go.Scatter(
                x=[n.at[0] for n in nodes],
                y=[n.at[1] for n in nodes],
                mode="markers+text",
                name=kind,
                legendgroup=kind,
                showlegend=legend,
                marker=dict(symbol=symbol, color=colour, size=[20 if s else 13 for s in said]),
                text=[
                    f"{n.name}<br>{'<br>'.join(s)}" if s else n.name
                    for n, s in zip(nodes, said, strict=True)
                ],
                textposition="top center",
            )


def _badges(deployment: Deployment, node: str) -> Sequence[str]:
    """What is at a node: operators with their demands, and queries."""
    operators = [
        f"σ{o.id}: {len(o.definition.streams)} streams, {len(o.demands)} demands"
        for o in deployment.operators.values()
        if o.node == node
    ]
    return [*operators, *(q.name for q in deployment.queries.values() if q.sink == node)]
