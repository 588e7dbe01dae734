"""The state map of a hub: its network, the bytes on each link, its operators and its queries.

Latencies are given; bytes are counted. Source: Seshadri 2008, figure 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple, TypedDict

from braid.core.run_events import RunStarted
from braid.papers.reuse.hub_events import (
    HubBatchCommitted,
    HubStarted,
    OperatorMoved,
    QuerySubmitted,
)
from braid.util.machine import format_bytes

from braid_widgets.base.columnar import Columns
from braid_widgets.base.key_figures import KeyFigure
from braid_widgets.base.run_view import RunView
from braid_widgets.base.state_maps import StateMap
from braid_widgets.reuse.hub_state import HubState

ALONE = "a new join"
"""Prefix in ``QuerySubmitted.alternatives`` of the plan without reuse."""


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


class HubOperator(NamedTuple):
    """An operator at its node; ``is_changed`` says whether it was built or moved since the batch
    before.
    """

    id: int
    node: str
    streams: str
    reads: list[str]
    demands: int
    results: int
    live: int
    live_bytes: int
    is_changed: bool


class HubRequest(NamedTuple):
    """A query: where it is asked, and the operator that answers it.

    - ``reuse_kind``: "new", "holds" or "relaxed".
    - ``options``, ``costs``: the plans that were considered, and the bytes in transit that each
      would add, modelled.
    """

    name: str
    sink: str
    operator: int
    sql: str
    reuse_kind: str
    options: list[str]
    costs: list[float]


class HubMove(NamedTuple):
    """State that moved to another node since the batch before."""

    operator: int
    source: str
    target: str
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

    def __init__(self, scene: RunView) -> None:
        super().__init__(scene)
        self._now = HubState()
        self._batch: HubBatchCommitted | None = None
        self._changed: set[int] = set()
        self._moves: list[OperatorMoved] = []

    @classmethod
    def can_show(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        return HubStarted in kinds

    def apply_event(self, event: Any) -> None:
        self._now.apply_event(event)
        if isinstance(event, HubBatchCommitted):
            self._batch, self._changed, self._moves = event, self._now.changed, self._now.moves
            self._now.changed, self._now.moves = set(), []

    def make_frame(self) -> HubFrame:
        """Return the frame after the last commit."""
        flows = self._list_flows()
        sums = [flow.bytes for flow in flows]
        moves = [
            HubMove(e.operator, e.source_node, e.target_node, e.moved_bytes) for e in self._moves
        ]
        links = [HubLink(a, b) for a, b, _ in self._now.network.links]
        return {
            "streams": list(self.scene.stream_aliases),
            "nodes": Columns.from_records(HubNode, self._list_nodes()),
            "links": Columns.from_records(HubLink, links),
            "flows": Columns.from_records(HubFlow, flows),
            "operators": Columns.from_records(HubOperator, self._list_operators()),
            "queries": Columns.from_records(HubRequest, self._list_queries()),
            "moves": Columns.from_records(HubMove, moves),
            "bytes": sum(sums),
            "saved_share": find_saved_share([q.submitted for q in self._now.queries.values()]),
            "scale_max": max(sums, default=0),
        }

    def make_key_figure(self) -> KeyFigure:
        """Return the bytes over all links in the last batch."""
        size = sum(flow.bytes for flow in self._list_flows())
        return KeyFigure("over the network", format_bytes(size), "bytes over all links, this batch")

    def _list_nodes(self) -> list[HubNode]:
        nodes = self._now.network.nodes
        xs, ys = ([n.position[k] for n in nodes] or [0.0] for k in (0, 1))
        wide, tall = (max(max(each) - min(each), 1e-9) for each in (xs, ys))
        sources, names = self._now.stream_nodes, self.scene.stream_aliases
        return [
            HubNode(
                node.name,
                node.role,
                round((node.position[0] - min(xs)) / wide, 4),
                round((max(ys) - node.position[1]) / tall, 4),
                node.name in self._now.failed_nodes,
                [k for k, name in enumerate(names) if sources.get(name) == node.name],
            )
            for node in nodes
        ]

    def _list_flows(self) -> list[HubFlow]:
        """Return the bytes from node to node, on the shortest paths past failed nodes."""
        failed, streams = self._now.failed_nodes, list(self.scene.stream_aliases)
        network = self._now.network
        network = network.without_nodes(*failed) if failed else network
        sums: Counter[tuple[str, str, int]] = Counter()
        for flow in self._batch.flows if self._batch else ():
            stream = streams.index(flow.item) if flow.item in streams else -1
            way = network.shortest_path(flow.source_node, flow.target_node)
            sums.update({(a, b, stream): flow.bytes for a, b in pairwise(way)})
        return [HubFlow(*key, size) for key, size in sorted(sums.items())]

    def _list_operators(self) -> list[HubOperator]:
        return [
            HubOperator(
                o.id,
                o.node,
                " ⋈ ".join(o.streams),
                [each if isinstance(each, str) else f"operator {each}" for each in o.inputs],
                o.demands,
                o.results,
                o.live,
                o.live_bytes,
                o.id in self._changed,
            )
            for o in self._now.operators.values()
        ]

    def _list_queries(self) -> list[HubRequest]:
        queries = []
        for name, (query, operator) in self._now.queries.items():
            texts = [text for text, _ in query.alternatives]
            costs = [float(f"{cost:.3g}") for _, cost in query.alternatives]
            kind = query.reuse_kind
            queries.append(HubRequest(name, query.sink, operator, query.sql, kind, texts, costs))
        return queries


def find_saved_share(queries: Sequence[QuerySubmitted]) -> float | None:
    """Return the share of the modelled cost that reuse saves these queries, when they were asked.

    None if they would have cost nothing alone.
    """
    alone = sum(map(find_isolated_cost, queries))
    return 1 - sum(e.cost_modelled for e in queries) / alone if alone else None


def find_isolated_cost(query: QuerySubmitted) -> float:
    """Return the added cost of a new join for a query, or of the chosen plan if no join was
    possible.
    """
    costs = [cost for what, cost in query.alternatives if what.startswith(ALONE) and isfinite(cost)]
    return min(costs, default=query.cost_modelled)
