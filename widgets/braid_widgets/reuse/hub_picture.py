"""The map of a hub's moment as SVG, for the console.

Latencies are given; bytes are counted. Source: Seshadri 2008, figure 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go
from braid.papers.reuse.network import Network

from braid_widgets.base.charts import TEMPLATE
from braid_widgets.base.colors import BOUND, MIGRATION
from braid_widgets.base.svg_chart import chart_svg
from braid_widgets.reuse.hub_moments import HubMoment, hub_moments, initial_network
from braid_widgets.reuse.network_traces import link_traces, node_traces, path_trace

_LETTERS = 24
"""Maximum letters in a line of an operator's text; longer lines would cover neighboring nodes."""


class HubPicture:
    """The last moment of a hub, for a document without a kernel.

    Raises ValueError for events of no hub.
    """

    def __init__(self, events: Sequence[Any]) -> None:
        network = initial_network(events)
        moments = hub_moments(events) or [HubMoment("nothing has happened yet")]
        self._html = moment_map(network, moments[-1])

    def to_html(self) -> str:
        """Return the map as HTML that needs neither a kernel nor a network."""
        return self._html


def moment_map(network: Network, moment: HubMoment, most: float = 0.0) -> str:
    """Return the map of one moment as SVG, small enough to redraw at every change.

    ``most`` bytes give the widest link; 0: the maximum of this moment.
    """
    widest = most or max(moment.links.values(), default=1)
    plot = go.Figure(data=list(_make_moment_traces(network, moment, widest)))
    plot.update_layout(template=TEMPLATE, title=moment.title, height=440, showlegend=False)
    xs, ys = zip(*(n.position for n in network.nodes), strict=True)
    plot.update_xaxes(visible=False, range=[min(xs) - 1.5, max(xs) + 1.5])
    plot.update_yaxes(visible=False, range=[min(ys) - 0.6, max(ys) + 1.2])
    return chart_svg(plot, "the hub")


def _make_moment_traces(network: Network, moment: HubMoment, most: float) -> Iterator[go.Scatter]:
    yield from link_traces(network, moment.links, most, "bytes", moment.failed_nodes)
    yield path_trace(
        network, moment.migration_path, "state on its way", color=MIGRATION, width=4, dash="dash"
    )
    yield from node_traces(
        network, partial(_list_node_labels, moment), partial(_choose_node_color, moment)
    )


def _choose_node_color(moment: HubMoment, node: str, own: str) -> str:
    if node in moment.failed_nodes:
        return BOUND
    moving = any(
        b.node == node and b.id in moment.changed_operators for b in moment.operators.values()
    )
    return MIGRATION if moving else own


def _list_node_labels(moment: HubMoment, node: str) -> list[str]:
    """Return the labels of a node: whether it is down, its operators and its queries."""
    down = ["down"] if node in moment.failed_nodes else []
    texts = [b.label_text for b in moment.operators.values() if b.node == node]
    operators = [line for text in texts for line in wrap(text, _LETTERS)]
    return [*down, *operators, *(n for n, q in moment.queries.items() if q.sink == node)]
