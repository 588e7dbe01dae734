"""What a hub looks like after each batch and each change, from its events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from braid.core.events import Moment
from braid.papers.reuse.events import (
    HubCommitted,
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
class Badge:
    """An operator as it is drawn: ``results`` so far, and what it holds."""

    id: int
    version: int
    node: str
    streams: tuple[str, ...]
    demands: int
    inputs: tuple[str | int, ...] = ()
    results: int = 0
    live: int = 0
    live_bytes: int = 0

    @property
    def text(self) -> str:
        """What it says of itself."""
        name = f"σ{self.id}" + (f" v{self.version}" if self.version else "")
        shared = f" · {self.demands} demands" if self.demands > 1 else ""
        return f"{name} {' ⋈ '.join(self.streams)}{shared}"


class Served(NamedTuple):
    """A query: where it is asked, by which operator it is answered, and its text."""

    sink: str
    operator: int
    sql: str


@dataclass(frozen=True)
class Step:
    """A moment of a hub: what is where, and what went over each link in the last batch, counted.
    ``way`` is a path on which state goes just now, ``touched`` the operators that change.
    """

    title: str
    operators: dict[int, Badge] = field(default_factory=dict)
    queries: dict[str, Served] = field(default_factory=dict)
    down: frozenset[str] = frozenset()
    links: dict[Link, float] = field(default_factory=dict)
    way: tuple[str, ...] = ()
    touched: frozenset[int] = frozenset()


def network_of(events: Iterable[Any]) -> Network:
    """The network that a hub started on. Raises ValueError for events of no hub."""
    return Network.from_dict(started(events).network)


def started(events: Iterable[Any]) -> HubStarted:
    """How a hub started. Raises ValueError for events of no hub."""
    for e in events:
        if isinstance(e, HubStarted):
            return e
    raise ValueError("the events are of no hub: there is no HubStarted among them")


def steps(events: Sequence[Any]) -> list[Step]:
    """The moments, in order: one for each batch, and two for each change, while it happens and
    after it.
    """
    network = network_of(events)
    found, now = [], Step("before the first batch")
    for e in events:
        found += list(_after(now, e, network))
        now = replace(found[-1], way=(), touched=frozenset()) if found else now
    return found


def _after(now: Step, e: Any, network: Network) -> Iterator[Step]:
    told = replace(now, title=e.decided(Moment((), None, ())))
    if isinstance(e, HubCommitted):
        yield _batch(now, e, network)
    elif isinstance(e, QuerySubmitted):
        asked = Served(e.sink, e.operator, e.sql)
        yield replace(told, queries={**now.queries, e.name: asked})
    elif isinstance(e, QueryEnded):
        rest = {n: asked for n, asked in now.queries.items() if n != e.name}
        yield replace(told, queries=rest)
    elif isinstance(e, OperatorBuilt):
        whole = {**now.operators, e.operator: _built(now.operators.get(e.operator), e)}
        yield replace(told, operators=whole, touched=frozenset([e.operator]))
    elif isinstance(e, OperatorDropped):
        yield from _dropped(told, e)
    elif isinstance(e, OperatorMoved):
        yield from _moved(told, e, network)
    elif isinstance(e, NodeFailed):
        yield replace(told, down=now.down | {e.node})
    elif isinstance(e, NodeRestored):
        yield replace(told, down=now.down - {e.node})


def _built(before: Badge | None, e: OperatorBuilt) -> Badge:
    """The results of an operator's earlier versions are its own."""
    found = 0 if before is None else before.results
    return Badge(e.operator, e.version, e.node, e.streams, e.demands, e.inputs, found)


def _batch(now: Step, e: HubCommitted, network: Network) -> Step:
    up = network.without(*now.down) if now.down else network
    badges = dict(now.operators)
    for did in e.operators:
        if b := badges.get(did.operator):
            found, held = b.results + did.results, (did.live, did.live_bytes)
            badges[b.id] = replace(b, results=found, live=held[0], live_bytes=held[1])
    answered = {f.to: int(f.what) for f in e.flows if f.to in now.queries}
    asked = {n: q._replace(operator=answered.get(n, q.operator)) for n, q in now.queries.items()}
    links = up.on_links(f.sent for f in e.flows)
    return replace(now, title=f"batch {e.epoch + 1}", operators=badges, queries=asked, links=links)


def _dropped(now: Step, e: OperatorDropped) -> Iterator[Step]:
    there = now.operators.get(e.operator)
    if there is not None and there.version == e.version:
        rest = {id: b for id, b in now.operators.items() if id != e.operator}
        yield replace(now, operators=rest)


def _moved(now: Step, e: OperatorMoved, network: Network) -> Iterator[Step]:
    up = network.without(*now.down) if now.down else network
    touched, way = frozenset([e.operator]), up.path(e.source, e.target)
    yield replace(now, way=way, touched=touched)
    there = replace(now.operators[e.operator], node=e.target)
    whole = {**now.operators, e.operator: there}
    yield replace(
        now, title=f"operator {e.operator} is at {e.target}", operators=whole, touched=touched
    )
