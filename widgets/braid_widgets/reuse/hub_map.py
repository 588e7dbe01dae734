"""The state map of a hub: its network, the bytes on each link, its operators and its queries.

Latencies are given; bytes are counted. Source: Seshadri 2008, figure 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple, TypedDict

from braid.core.run_events import BatchCommitted
from braid.papers.reuse.hub_events import (
    HubBatchCommitted,
    HubStarted,
    NodeFailed,
    NodeRestored,
    OperatorBuilt,
    OperatorDropped,
    OperatorMoved,
    QueryEnded,
    QuerySubmitted,
)
from braid.papers.reuse.network import Network
from braid.util.machine import format_bytes

from braid_widgets.base.columnar import Columns
from braid_widgets.base.key_figures import KeyFigure
from braid_widgets.base.run_view import RunView
from braid_widgets.base.state_maps import StateMap

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
    shown_kinds = (HubStarted,)

    def __init__(self, scene: RunView) -> None:
        super().__init__(scene)
        self.network, self.failed_nodes = Network(()), set[str]()
        self.operators: dict[int, HubOperator] = {}
        self.queries: dict[str, HubRequest] = {}
        self._versions: dict[int, int] = {}
        self._submitted: dict[str, QuerySubmitted] = {}
        self._moves: list[HubMove] = []
        self._is_shown = False

    def apply_event(self, event: Any) -> None:
        if self._is_shown:  # what changed before the last commit is in its frame
            self.operators = {o.id: o._replace(is_changed=False) for o in self.operators.values()}
            self._moves, self._is_shown = [], False
        match event:
            case HubStarted():
                self.network = Network.from_dict(event.network)
            case QuerySubmitted():
                self._submitted[event.name] = event
                self.queries[event.name] = _make_request(event)
            case QueryEnded():
                self.queries.pop(event.name, None)
            case OperatorBuilt():
                self._build_operator(event)
            case OperatorDropped() if self._versions.get(event.operator) == event.version:
                del self.operators[event.operator], self._versions[event.operator]
            case OperatorMoved(operator=id, source_node=source, target_node=target):
                self.operators[id] = self.operators[id]._replace(node=target, is_changed=True)
                self._moves.append(HubMove(id, source, target, event.moved_bytes))
            case NodeFailed():
                self.failed_nodes.add(event.node)
            case NodeRestored():
                self.failed_nodes.discard(event.node)
            case HubBatchCommitted():
                self._apply_commit(event)
            case BatchCommitted():
                self._is_shown = True

    def _build_operator(self, event: OperatorBuilt) -> None:
        """Add an operator; its results include those of its earlier versions."""
        id, before = event.operator, self.operators.get(event.operator)
        streams, results = " ⋈ ".join(event.streams), before.results if before else 0
        reads = [each if isinstance(each, str) else f"operator {each}" for each in event.inputs]
        self._versions[id] = event.version
        self.operators[id] = HubOperator(
            id, event.node, streams, reads, event.demand_count, results, 0, 0, True
        )

    def _apply_commit(self, event: HubBatchCommitted) -> None:
        for m in event.operator_metrics:
            if o := self.operators.get(m.operator):
                self.operators[o.id] = o._replace(
                    results=o.results + m.results, live=m.live_tuples, live_bytes=m.live_bytes
                )
        for flow in event.flows:
            if query := self.queries.get(flow.consumer):
                self.queries[flow.consumer] = query._replace(operator=int(flow.item))

    def make_frame(self) -> HubFrame:
        flows = self._list_flows()
        sizes = [flow.bytes for flow in flows]
        links = [HubLink(a, b) for a, b, _ in self.network.links]
        return {
            "streams": list(self.scene.stream_aliases),
            "nodes": Columns.from_records(HubNode, self._list_nodes()),
            "links": Columns.from_records(HubLink, links),
            "flows": Columns.from_records(HubFlow, flows),
            "operators": Columns.from_records(HubOperator, self.operators.values()),
            "queries": Columns.from_records(HubRequest, self.queries.values()),
            "moves": Columns.from_records(HubMove, self._moves),
            "bytes": sum(sizes),
            "saved_share": find_saved_share(self._submitted[name] for name in self.queries),
            "scale_max": max(sizes, default=0),
        }

    def make_key_figure(self) -> KeyFigure:
        """Return the bytes over all links in the last batch."""
        size = sum(flow.bytes for flow in self._list_flows())
        return KeyFigure("over the network", format_bytes(size), "bytes over all links, this batch")

    def _list_nodes(self) -> list[HubNode]:
        start, names = self.scene.find_latest(HubStarted), self.scene.stream_aliases
        sources = start.stream_nodes if start else {}
        nodes = self.network.nodes
        xs = _scale_to_unit([node.position[0] for node in nodes])
        ys = _scale_to_unit([-node.position[1] for node in nodes])
        return [
            HubNode(
                node.name,
                node.role,
                x,
                y,
                node.name in self.failed_nodes,
                [k for k, name in enumerate(names) if sources.get(name) == node.name],
            )
            for node, x, y in zip(nodes, xs, ys, strict=True)
        ]

    def _list_flows(self) -> list[HubFlow]:
        """Return the bytes from node to node, on the shortest paths past failed nodes."""
        network, streams = self.network, list(self.scene.stream_aliases)
        network = network.without_nodes(*self.failed_nodes) if self.failed_nodes else network
        batch = self.scene.find_latest(HubBatchCommitted)
        sums: Counter[tuple[str, str, int]] = Counter()
        for flow in batch.flows if batch else ():
            stream = streams.index(flow.item) if flow.item in streams else -1
            way = network.shortest_path(flow.source_node, flow.target_node)
            sums.update({(a, b, stream): flow.bytes for a, b in pairwise(way)})
        return [HubFlow(*key, size) for key, size in sorted(sums.items())]


def _make_request(event: QuerySubmitted) -> HubRequest:
    texts = [text for text, _ in event.alternatives]
    costs = [float(f"{cost:.3g}") for _, cost in event.alternatives]
    kind = event.reuse_kind
    return HubRequest(event.name, event.sink, event.operator, event.sql, kind, texts, costs)


def _scale_to_unit(values: list[float]) -> list[float]:
    """Return values from 0, the lowest, to 1, the highest."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    return [round((value - low) / max(high - low, 1e-9), 4) for value in values]


def find_saved_share(queries: Iterable[QuerySubmitted]) -> float | None:
    """Return the share of the modelled cost that reuse saves these queries, when they were asked.

    Alone, a query costs what its cheapest new join adds, or the chosen plan if there is none. None
    if they would have cost nothing alone.
    """
    alone = chosen = 0.0
    for query in queries:
        joins = [cost for plan, cost in query.alternatives if plan.startswith(ALONE)]
        alone += min(filter(isfinite, joins), default=query.cost_modelled)
        chosen += query.cost_modelled
    return 1 - chosen / alone if alone else None
