"""Events of a hub. Source: Seshadri 2008."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from logging import INFO, WARNING
from typing import Any, NamedTuple

from braid.core.plan_sentences import format_count
from braid.core.run_events import Event, EventContext
from braid.core.stream_clocks import IrregularCounts
from braid.util.batch_numbers import display_batch
from braid.util.machine import format_bytes


class OperatorMetrics(NamedTuple):
    """Counts of one operator in one batch.

    ``received_tuples`` and ``received_bytes`` include results of other operators. ``live_tuples``
    and ``live_bytes`` are its state after the batch.
    """

    operator: int
    version: int
    received_tuples: int
    received_bytes: int
    compared_pairs: int
    results: int
    live_tuples: int
    live_bytes: int
    seconds: float


class FlowMetrics(NamedTuple):
    """Counts of one flow over the network in one batch.

    ``item`` is a stream or an operator ("3"), ``consumer`` an operator or a query. ``bytes`` are
    bytes of Arrow buffers.
    """

    item: str
    consumer: str
    source_node: str
    target_node: str
    rows: int
    bytes: int

    @property
    def transfer(self) -> tuple[str, str, int]:
        """The source node, the target node, and the bytes."""
        return self.source_node, self.target_node, self.bytes


@dataclass(frozen=True, slots=True)
class HubStarted(Event):
    """The settings of a hub.

    ``network`` is plain data (``Network.to_dict``); ``stream_nodes`` has the source node of each
    stream; ``interval_seconds`` are at least from batch to batch, if they are set.
    """

    level = INFO

    streams: tuple[str, ...]
    time_column: str
    reuse_level: str
    network: Mapping[str, Any]
    stream_nodes: Mapping[str, str]
    backfill_microseconds: int
    interval_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class QuerySubmitted(Event):
    """A query is answered, starting with the batch after ``epoch``.

    ``reuse_kind`` is "new", "holds" or "relaxed". ``cost_modelled`` is the added cost;
    ``alternatives`` are the other options with their costs. ``complete_since`` is by stream (see
    ``HubQuery.complete_since``).
    """

    level = INFO

    epoch: int
    name: str
    sql: str
    sink: str
    reuse_kind: str
    operator: int
    cost_modelled: float
    alternatives: tuple[tuple[str, float], ...]
    complete_since: Mapping[str, int | None]
    planning_seconds: float
    deployment_seconds: float

    def describe_decision(self, moment: EventContext) -> str:
        """Return how the query is answered."""
        how = f"{self.reuse_kind}, operator {self.operator}"
        return f"query {self.name} is asked at {self.sink}: {how}"


@dataclass(frozen=True, slots=True)
class QueryEnded(Event):
    """A query is no longer answered; ``reason`` is a sentence or "withdrawn"."""

    level = INFO

    epoch: int
    name: str
    reason: str

    def describe_decision(self, moment: EventContext) -> str:
        """Return why the query ends."""
        return f"query {self.name} ends: {self.reason}"


@dataclass(frozen=True, slots=True)
class OperatorBuilt(Event):
    """An operator, or a new version of one, runs from the batch after ``epoch``.

    ``definition_text`` describes, by stream, what it computes. ``backfill`` has the tuples and
    bytes, of history and of other operators' results, from which its state was built in
    ``seconds``.
    """

    level = INFO

    epoch: int
    operator: int
    version: int
    node: str
    inputs: tuple[str | int, ...]
    streams: tuple[str, ...]
    definition_text: Mapping[str, str]
    demand_count: int
    backfill: tuple[int, int]
    seconds: float

    def describe_decision(self, moment: EventContext) -> str:
        """Return where the operator is built, and from how much history."""
        history = f"{format_count(self.backfill[0], 'row')} of history"
        return f"operator {self.operator} is built at {self.node}, of {history}"


@dataclass(frozen=True, slots=True)
class OperatorMoved(Event):
    """An operator continues at another node; ``moved_bytes`` of state were sent, counted."""

    level = INFO

    epoch: int
    operator: int
    source_node: str
    target_node: str
    moved_bytes: int

    def describe_decision(self, moment: EventContext) -> str:
        """Return where the operator moves, and the size of its state."""
        way = f"from {self.source_node} to {self.target_node}"
        return f"operator {self.operator} moves {way}: {format_bytes(self.moved_bytes)} of state"


@dataclass(frozen=True, slots=True)
class OperatorDropped(Event):
    """An operator, or an older version of one, has stopped."""

    epoch: int
    operator: int
    version: int

    def describe_decision(self, moment: EventContext) -> str:
        """Return which operator stops."""
        return f"operator {self.operator} goes"


@dataclass(frozen=True, slots=True)
class NodeFailed(Event):
    """A node has failed, and with it the state of its operators."""

    level = INFO

    epoch: int
    node: str
    operators: tuple[int, ...]

    def describe_decision(self, moment: EventContext) -> str:
        """Return which node fails."""
        return f"node {self.node} fails"


@dataclass(frozen=True, slots=True)
class NodeRestored(Event):
    """Operators may be placed on a node again."""

    level = INFO

    epoch: int
    node: str

    def describe_decision(self, moment: EventContext) -> str:
        """Return which node is restored."""
        return f"node {self.node} is up again"


@dataclass(frozen=True, slots=True)
class HistoryLost(Event):
    """The tuples of a stream in a ``batch`` are lost, for the ``reason``.

    From the event time ``since`` (microseconds), history is complete again, and so are queries
    that need more of it.
    """

    level = WARNING

    epoch: int
    stream: str
    batch: int
    since: int
    reason: str

    def describe_decision(self, moment: EventContext) -> str:
        """Return a sentence that says what is lost."""
        return f"history of {self.stream} loses batch {display_batch(self.batch)}: {self.reason}"


@dataclass(frozen=True, slots=True)
class HubBatchCommitted(Event):
    """A batch has passed through all operators.

    ``received_tuples`` and ``latest_event_times`` are by stream. ``network_usage_modelled`` is the
    network usage of the deployment, in bytes in transit. ``flows`` are counted, on a network only.
    ``late``, ``untimed`` and ``ahead`` count the batch's irregular tuples, by stream in the order
    of their names; ``irregular_counts`` counts them since the start (see
    ``core.stream_clocks.IrregularCounts``). ``passed_times`` has, by stream, the event time before
    which only late tuples come, in microseconds; the last one of the year 9999: it has ended.
    ``waiting_by_query`` has, by query that is not an inner join and by stream, the tuples that are
    not final for it. ``micro_batch`` is that of the source; None: it has none.
    """

    epoch: int
    received_tuples: Mapping[str, int]
    latest_event_times: Mapping[str, int | None]
    operator_metrics: tuple[OperatorMetrics, ...]
    flows: tuple[FlowMetrics, ...]
    network_usage_modelled: float
    seconds: float
    late: tuple[int, ...] = ()
    untimed: tuple[int, ...] = ()
    ahead: tuple[int, ...] = ()
    irregular_counts: IrregularCounts = field(default_factory=IrregularCounts)
    passed_times: Mapping[str, int | None] = field(default_factory=dict)
    waiting_by_query: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    micro_batch: int | None = None
