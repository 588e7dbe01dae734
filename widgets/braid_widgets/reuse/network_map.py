"""The network as a map: nodes by kind, links by load, and operators at their nodes.

All flows are modelled. Source: Seshadri 2008, figure 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pandas as pd
from braid.core.plan_sentences import format_count
from braid.papers.reuse.cost import CostModel
from braid.papers.reuse.deployment import Deployment
from braid.papers.reuse.network import Link
from plotly.subplots import make_subplots

from braid_widgets.base.charts import TEMPLATE, Chart
from braid_widgets.reuse.network_traces import link_traces, node_traces


def link_loads(model: CostModel, deployment: Deployment) -> dict[Link, float]:
    """Return the modelled bytes per second on each link in use."""
    return model.network.link_loads(
        (flow.source_node, flow.target_node, model.rates.result_byte_rate(flow.definition))
        for flow in deployment.all_flows()
    )


def network_map(model: CostModel, deployments: Mapping[str, Deployment]) -> Chart:
    """Return a map of the deployments, one below the other by title, with one scale of links."""
    loads = {title: link_loads(model, d) for title, d in deployments.items()}
    most = max((rate for load in loads.values() for rate in load.values()), default=1.0)
    plot = make_subplots(len(loads), 1, subplot_titles=list(loads), vertical_spacing=0.08)
    rows = []
    for row, (title, load) in enumerate(loads.items(), 1):
        list_labels = partial(_list_node_labels, deployments[title])
        for trace in (
            *link_traces(model.network, load, most, "bytes/s"),
            *node_traces(model.network, list_labels, showlegend=row == 1),
        ):
            plot.add_trace(trace, row=row, col=1)
        rows += [
            {"deployment": title, "link": f"{a} - {b}", "bytes a second (modelled)": rate}
            for (a, b), rate in sorted(load.items())
        ]
    plot.update_xaxes(visible=False)
    plot.update_yaxes(visible=False)
    plot.update_layout(
        template=TEMPLATE,
        title="Flows: links as wide as their bytes a second (modelled)",
        height=140 + 320 * len(loads),
        margin_t=90,
        legend=dict(orientation="h", y=-0.05),
    )
    return Chart("Network", plot, pd.DataFrame(rows))


def _list_node_labels(deployment: Deployment, node: str) -> list[str]:
    """Return the labels of a node: operators with their demands, and queries."""
    operators = [
        f"σ{o.id}: {len(o.definition.streams)} streams, {format_count(len(o.demands), 'demand')}"
        for o in deployment.operators.values()
        if o.node == node
    ]
    return [*operators, *(q.name for q in deployment.queries.values() if q.sink == node)]
