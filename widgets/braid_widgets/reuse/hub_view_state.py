"""The visible state of a hub: its network, its operators, and its queries.

Source: Seshadri 2008, figure 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any, NamedTuple

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

ALONE = "a new join"
"""Prefix in ``QuerySubmitted.alternatives`` of the plan without reuse."""


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


class HubViewState:
    """The visible state of a hub, from its events.

    - ``operators``, ``queries``: those that run, by number and by name.
    - ``submitted``: the events of these queries, with the plans that were considered.
    - ``moves``: state that moved since the last commit.
    """

    def __init__(self) -> None:
        self.network, self.failed_nodes = Network(()), set[str]()
        self.operators: dict[int, HubOperator] = {}
        self.queries: dict[str, HubRequest] = {}
        self.submitted: dict[str, QuerySubmitted] = {}
        self.moves: list[HubMove] = []
        self._versions: dict[int, int] = {}
        self._is_shown = False

    def apply_event(self, event: Any) -> None:
        """Fold in one event of the hub."""
        if self._is_shown:  # what changed before the last commit is in its frame
            self.operators = {o.id: o._replace(is_changed=False) for o in self.operators.values()}
            self.moves, self._is_shown = [], False
        match event:
            case HubStarted():
                self.network = Network.from_dict(event.network)
            case QuerySubmitted():
                self.submitted[event.name] = event
                self.queries[event.name] = _make_request(event)
            case QueryEnded():
                self.queries.pop(event.name, None)
                self.submitted.pop(event.name, None)
            case OperatorBuilt():
                self._build_operator(event)
            case OperatorDropped() if self._versions.get(event.operator) == event.version:
                del self.operators[event.operator], self._versions[event.operator]
            case OperatorMoved(operator=id, source_node=source, target_node=target):
                self.operators[id] = self.operators[id]._replace(node=target, is_changed=True)
                self.moves.append(HubMove(id, source, target, event.moved_bytes))
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


def _make_request(event: QuerySubmitted) -> HubRequest:
    texts = [text for text, _ in event.alternatives]
    costs = [float(f"{cost:.3g}") for _, cost in event.alternatives]
    kind = event.reuse_kind
    return HubRequest(event.name, event.sink, event.operator, event.sql, kind, texts, costs)


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
