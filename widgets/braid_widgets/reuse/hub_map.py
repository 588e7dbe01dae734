"""The state map of a hub: its network, the bytes on each link, its operators and its queries.

Latencies are given; bytes are counted. Source: Seshadri 2008, figure 1.
"""

from __future__ import annotations

from collections import Counter, deque
from itertools import pairwise
from typing import Any, NamedTuple, TypedDict

from braid.core.run_events import BatchCommitted
from braid.papers.reuse.hub_events import HubBatchCommitted, HubStarted
from braid.util.machine import format_bytes

from braid_widgets.base.columnar import Columns
from braid_widgets.base.key_figures import KeyFigure
from braid_widgets.base.run_view import HISTORY, RunView
from braid_widgets.base.state_maps import StateMap
from braid_widgets.base.track_records import Track, make_series, make_track
from braid_widgets.reuse.hub_view_state import (
    HubMove,
    HubOperator,
    HubRequest,
    HubViewState,
    find_saved_share,
)


class HubNode(NamedTuple):
    """A node: its role, its place (from 0 to 1, from the left and from the top), and its state."""

    name: str
    role: str
    x: float
    y: float
    is_down: bool
    streams: list[int]


class HubLink(NamedTuple):
    """A link of the network."""

    first: str
    second: str


class HubFlow(NamedTuple):
    """Bytes from a node to the next in this batch; ``stream`` is -1 for results of operators."""

    source: str
    target: str
    stream: int
    bytes: int


class HubFrame(TypedDict):
    """A hub after a batch.

    - ``bytes``: bytes over all links in this batch.
    - ``saved_share``: modelled share of the cost of a join of its own for each query that reuse
      saves; null without queries.
    - ``scale_max``: bytes of the widest link. Frames shown together use the maximum.
    """

    streams: list[str]
    nodes: Columns[HubNode]
    links: Columns[HubLink]
    flows: Columns[HubFlow]
    operators: Columns[HubOperator]
    queries: Columns[HubRequest]
    moves: Columns[HubMove]
    bytes: int
    saved_share: float | None
    scale_max: int


class HubMap(StateMap):
    """The state map of a hub of queries."""

    name = "hub"
    rank = 3
    shown_kinds = (HubStarted,)

    def __init__(self, scene: RunView) -> None:
        super().__init__(scene)
        self.state = HubViewState()
        self._flows: list[HubFlow] = []
        self._sent: deque[tuple[int, int]] = deque(maxlen=HISTORY)

    def apply_event(self, event: Any) -> None:
        self.state.apply_event(event)
        if isinstance(event, BatchCommitted):
            self._flows = self._list_flows()
            self._sent.append((event.batch + 1, sum(flow.bytes for flow in self._flows)))

    def make_frame(self) -> HubFrame:
        links = [HubLink(a, b) for a, b, _ in self.state.network.links]
        return {
            "streams": list(self.scene.stream_aliases),
            "nodes": Columns.from_records(HubNode, self._list_nodes()),
            "links": Columns.from_records(HubLink, links),
            "flows": Columns.from_records(HubFlow, self._flows),
            "operators": Columns.from_records(HubOperator, self.state.operators.values()),
            "queries": Columns.from_records(HubRequest, self.state.queries.values()),
            "moves": Columns.from_records(HubMove, self.state.moves),
            "bytes": self._sent[-1][1],
            "saved_share": find_saved_share(self.state.submitted.values()),
            "scale_max": max((flow.bytes for flow in self._flows), default=0),
        }

    def make_key_figure(self) -> KeyFigure:
        """Return the bytes over all links in the last batch."""
        sent = format_bytes(self._sent[-1][1])
        return KeyFigure("over the network", sent, "bytes over all links, this batch")

    def make_tracks(self) -> list[Track]:
        """Return the bytes over all links, batch by batch."""
        batches, sizes = ([*column] for column in zip(*self._sent, strict=True))
        sent = make_series("sent", "main", batches, sizes)
        return [make_track("bytes sent", "lines", "bytes", [sent], None)]

    def _list_nodes(self) -> list[HubNode]:
        start, names = self.scene.find_latest(HubStarted), self.scene.stream_aliases
        sources = start.stream_nodes if start else {}
        nodes, failed = self.state.network.nodes, self.state.failed_nodes
        xs = _scale_to_unit([node.position[0] for node in nodes])
        ys = _scale_to_unit([-node.position[1] for node in nodes])
        fed = [[k for k, s in enumerate(names) if sources.get(s) == n.name] for n in nodes]
        return [
            HubNode(node.name, node.role, x, y, node.name in failed, streams)
            for node, x, y, streams in zip(nodes, xs, ys, fed, strict=True)
        ]

    def _list_flows(self) -> list[HubFlow]:
        """Return the bytes from node to node, on the shortest paths past failed nodes."""
        streams = list(self.scene.stream_aliases)
        network, failed = self.state.network, self.state.failed_nodes
        network = network.without_nodes(*failed) if failed else network  # else paths are kept
        batch = self.scene.find_latest(HubBatchCommitted)
        sums: Counter[tuple[str, str, int]] = Counter()
        for flow in batch.flows if batch else ():
            stream = streams.index(flow.item) if flow.item in streams else -1
            way = network.shortest_path(flow.source_node, flow.target_node)
            sums.update({(a, b, stream): flow.bytes for a, b in pairwise(way)})
        return [HubFlow(*key, size) for key, size in sorted(sums.items())]


def _scale_to_unit(values: list[float]) -> list[float]:
    """Return values from 0, the lowest, to 1, the highest."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [round((value - low) / max(high - low, 1e-9), 4) for value in values]
