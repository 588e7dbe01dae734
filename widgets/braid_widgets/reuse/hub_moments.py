"""The states of a hub after each batch and during each change, from its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from braid.core.run_events import EventContext
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
from braid.papers.reuse.network import Link, Network


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
    """A query: the node of its sink, the operator that answers it, and its text."""

    sink: str
    operator: int
    sql: str


@dataclass(frozen=True)
class HubMoment:
    """The state of a hub at a moment.

    - ``links``: bytes counted on each link in the last batch.
    - ``migration_path``: the path on which state is being moved.
    - ``changed_operators``: the operators that change.
    """

    title: str
    operators: dict[int, OperatorBadge] = field(default_factory=dict)
    queries: dict[str, QueryBadge] = field(default_factory=dict)
    failed_nodes: frozenset[str] = frozenset()
    links: dict[Link, float] = field(default_factory=dict)
    migration_path: tuple[str, ...] = ()
    changed_operators: frozenset[int] = frozenset()


def initial_network(events: Iterable[Any]) -> Network:
    """Return the network that a hub started on. Raises ValueError for events of no hub."""
    return Network.from_dict(start_event(events).network)


def start_event(events: Iterable[Any]) -> HubStarted:
    """Return the start event of a hub. Raises ValueError for events of no hub."""
    for e in events:
        if isinstance(e, HubStarted):
            return e
    raise ValueError("the events are of no hub: there is no HubStarted among them")


def hub_moments(events: Sequence[Any]) -> list[HubMoment]:
    """Return the moments in order: one per batch, and two per change, during and after it."""
    network = initial_network(events)
    moments, now = [], HubMoment("before the first batch")
    for e in events:
        moments += list(make_next_moments(now, e, network))
        now = (
            replace(moments[-1], migration_path=(), changed_operators=frozenset())
            if moments
            else now
        )
    return moments


_KINDS = {
    HubBatchCommitted,
    NodeFailed,
    NodeRestored,
    OperatorBuilt,
    OperatorDropped,
    OperatorMoved,
    QueryEnded,
    QuerySubmitted,
}


def make_next_moments(now: HubMoment, e: Any, network: Network) -> Iterator[HubMoment]:
    """Yield the moments that an event makes of the one before; none for other kinds of events."""
    if type(e) not in _KINDS:
        return
    titled = replace(now, title=e.describe_decision(EventContext((), None, ())))
    if isinstance(e, HubBatchCommitted):
        yield _make_batch_moment(now, e, network)
    elif isinstance(e, QuerySubmitted):
        badge = QueryBadge(e.sink, e.operator, e.sql)
        yield replace(titled, queries={**now.queries, e.name: badge})
    elif isinstance(e, QueryEnded):
        rest = {n: badge for n, badge in now.queries.items() if n != e.name}
        yield replace(titled, queries=rest)
    elif isinstance(e, OperatorBuilt):
        operators = {**now.operators, e.operator: _make_badge(now.operators.get(e.operator), e)}
        yield replace(titled, operators=operators, changed_operators=frozenset([e.operator]))
    elif isinstance(e, OperatorDropped):
        yield from _make_drop_moment(titled, e)
    elif isinstance(e, OperatorMoved):
        yield from _make_move_moments(titled, e, network)
    elif isinstance(e, NodeFailed):
        yield replace(titled, failed_nodes=now.failed_nodes | {e.node})
    elif isinstance(e, NodeRestored):
        yield replace(titled, failed_nodes=now.failed_nodes - {e.node})


def _make_badge(before: OperatorBadge | None, e: OperatorBuilt) -> OperatorBadge:
    """Return an operator's badge; it includes the results of the operator's earlier versions."""
    results = 0 if before is None else before.results
    return OperatorBadge(
        e.operator, e.version, e.node, e.streams, e.demand_count, e.inputs, results
    )


def _make_batch_moment(now: HubMoment, e: HubBatchCommitted, network: Network) -> HubMoment:
    up = network.without_nodes(*now.failed_nodes) if now.failed_nodes else network
    badges = dict(now.operators)
    for metrics in e.operator_metrics:
        if b := badges.get(metrics.operator):
            results, held = b.results + metrics.results, (metrics.live_tuples, metrics.live_bytes)
            badges[b.id] = replace(b, results=results, live=held[0], live_bytes=held[1])
    answered = {f.consumer: int(f.item) for f in e.flows if f.consumer in now.queries}
    queries = {n: q._replace(operator=answered.get(n, q.operator)) for n, q in now.queries.items()}
    links = up.link_loads(f.transfer for f in e.flows)
    return replace(
        now, title=f"batch {e.epoch + 1}", operators=badges, queries=queries, links=links
    )


def _make_drop_moment(now: HubMoment, e: OperatorDropped) -> Iterator[HubMoment]:
    there = now.operators.get(e.operator)
    if there is not None and there.version == e.version:
        rest = {id: b for id, b in now.operators.items() if id != e.operator}
        yield replace(now, operators=rest)


def _make_move_moments(now: HubMoment, e: OperatorMoved, network: Network) -> Iterator[HubMoment]:
    up = network.without_nodes(*now.failed_nodes) if now.failed_nodes else network
    touched, way = frozenset([e.operator]), up.shortest_path(e.source_node, e.target_node)
    yield replace(now, migration_path=way, changed_operators=touched)
    there = replace(now.operators[e.operator], node=e.target_node)
    operators = {**now.operators, e.operator: there}
    yield replace(
        now,
        title=f"operator {e.operator} is at {e.target_node}",
        operators=operators,
        changed_operators=touched,
    )
