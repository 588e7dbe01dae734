"""A hub on its network, batch by batch and change by change.

It shows the bytes counted on each link, the operators at their nodes, and the path of moved state.
Latencies are given; bytes are counted. Source: Seshadri 2008, figure 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from textwrap import wrap
from typing import Any, TypedDict

import plotly.graph_objects as go
from braid.papers.reuse.network import Network

from braid_widgets.base.charts import TEMPLATE
from braid_widgets.base.colors import BOUND, MIGRATION
from braid_widgets.base.player import Player, read_bundle, thin
from braid_widgets.base.svg_chart import chart_svg
from braid_widgets.reuse import query_details
from braid_widgets.reuse.hub_moments import HubMoment, hub_moments, start_event
from braid_widgets.reuse.network_traces import link_traces, node_traces, path_trace

_LETTERS = 24
"""Maximum letters in a line of an operator's text; longer lines would cover neighboring nodes."""
NAME = "Flows: links as wide as their bytes a batch (counted)"


class HubFrame(TypedDict):
    """A moment of a hub: its picture as SVG, and the details shown when a query's name is
    clicked.
    """

    title: str
    note: str
    svg: str
    query_texts: dict[str, str]


class HubMap(Player):
    """A player of a hub's maps, with one scale of links for all moments.

    It opens on the busiest batch.
    """

    _name = "hub"
    _esm = read_bundle("hub")

    def __init__(self, events: Sequence[Any]) -> None:
        """Create the player. Raises ValueError for events of no hub."""
        start = start_event(events)
        network = Network.from_dict(start.network)
        self.moments = thin(hub_moments(events) or [HubMoment("nothing has happened yet")])
        most = max((size for m in self.moments for size in m.links.values()), default=1)
        busy = [sum(m.links.values()) for m in self.moments]
        frames = [
            HubFrame(
                title=m.title,
                note=NAME,
                svg=moment_map(network, replace(m, title=""), most),
                query_texts={
                    name: query_details.describe_recorded_query(m, start.stream_nodes, name)
                    for name in m.queries
                },
            )
            for m in self.moments
        ]
        super().__init__(frames, busy.index(max(busy)))

    def describe_query(self, query: str, frame: Mapping[str, Any]) -> str:
        return str(frame["query_texts"][query])

    def frame_text(self, frame: Mapping[str, Any]) -> str:
        return f"<p>{escape(frame['title'])}: {NAME}</p>{frame['svg']}"

    def to_dict(self) -> dict[str, Any]:
        """Return the bytes counted on each link, as JSON values."""
        rows = [
            [i, m.title, f"{a} - {b}", size]
            for i, m in enumerate(self.moments)
            for (a, b), size in sorted(m.links.items())
        ]
        columns = ["moment", "title", "link", "bytes (counted)"]
        return {"name": NAME, "columns": columns, "rows": rows}


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
