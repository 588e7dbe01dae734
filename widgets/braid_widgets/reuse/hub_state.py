"""The visible state of a hub after each batch, from its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

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


@dataclass(frozen=True)
class OperatorBadge:
    """An operator in a picture: its ``results`` so far and its state."""

    id: int
    version: int
    node: str
    streams: tuple[str, ...]
    demands: int
    inputs: tuple[str | int, ...] = ()
    results: int = 0
    live: int = 0
    live_bytes: int = 0


class QueryBadge(NamedTuple):
    """A query: the event that submitted it, and the operator that answers it."""

    submitted: QuerySubmitted
    operator: int


def initial_network(events: Iterable[Any]) -> Network:
    """Return the network that a hub started on. Raises ValueError for events of no hub."""
    for event in events:
        if isinstance(event, HubStarted):
            return Network.from_dict(event.network)
    raise ValueError("the events are of no hub: there is no HubStarted among them")


@dataclass
class HubState:
    """The visible state of a hub; fold events into it in order with ``apply_event``.

    - ``changed``, ``moves``: operators built or moved, and the moves, since the last batch.
    """

    stream_nodes: dict[str, str] = field(default_factory=dict)
    network: Network = field(default_factory=lambda: Network(()))
    operators: dict[int, OperatorBadge] = field(default_factory=dict)
    queries: dict[str, QueryBadge] = field(default_factory=dict)
    failed_nodes: set[str] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)
    moves: list[OperatorMoved] = field(default_factory=list)

    def apply_event(self, event: Any) -> None:
        """Fold in one event; ignore kinds that change nothing visible."""
        match event:
            case HubStarted():
                self.stream_nodes = dict(event.stream_nodes)
                self.network = Network.from_dict(event.network)
            case QuerySubmitted():
                self.queries[event.name] = QueryBadge(event, event.operator)
            case QueryEnded():
                self.queries.pop(event.name, None)
            case OperatorBuilt():
                self._build_operator(event)
            case OperatorDropped():
                there = self.operators.get(event.operator)
                if there is not None and there.version == event.version:
                    del self.operators[event.operator]
            case OperatorMoved():
                there = self.operators[event.operator]
                self.operators[event.operator] = replace(there, node=event.target_node)
                self.changed.add(event.operator)
                self.moves.append(event)
            case NodeFailed():
                self.failed_nodes.add(event.node)
            case NodeRestored():
                self.failed_nodes.discard(event.node)
            case HubBatchCommitted():
                self._apply_commit(event)

    def _build_operator(self, event: OperatorBuilt) -> None:
        """Add an operator; its results include those of its earlier versions."""
        e, before = event, self.operators.get(event.operator)
        self.operators[e.operator] = OperatorBadge(
            e.operator,
            e.version,
            e.node,
            e.streams,
            e.demand_count,
            e.inputs,
            before.results if before else 0,
        )
        self.changed.add(e.operator)

    def _apply_commit(self, event: HubBatchCommitted) -> None:
        for m in event.operator_metrics:
            if b := self.operators.get(m.operator):
                results = b.results + m.results
                self.operators[b.id] = replace(
                    b, results=results, live=m.live_tuples, live_bytes=m.live_bytes
                )
        for flow in event.flows:
            if query := self.queries.get(flow.consumer):
                self.queries[flow.consumer] = query._replace(operator=int(flow.item))
