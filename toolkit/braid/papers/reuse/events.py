"""What a hub has to tell: Seshadri 2008."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from logging import INFO, WARNING
from typing import Any, NamedTuple

from braid.core.events import Event, EventContext
from braid.core.stream_clocks import IrregularCounts


class OperatorMetrics(NamedTuple):
    """What an operator did in a batch, counted: tuples and results of others that came in, with
    their bytes, pairs that were compared, results; what it holds after it; seconds.
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
    """What went over the network in a batch, counted: ``what`` is a stream or an operator ("3"),
    ``to`` an operator or a query; from node to node. Bytes are of Arrow buffers.
    """

    item: str
    consumer: str
    source_node: str
    target_node: str
    rows: int
    bytes: int

    @property
    def transfer(self) -> tuple[str, str, int]:
        """From where, to where, how many bytes."""
        return self.source_node, self.target_node, self.bytes


@dataclass(frozen=True, slots=True)
class HubStarted(Event):
    """The settings of a hub. ``network`` is plain data (``Network.to_dict``), ``at`` the node that
    each stream comes from.
    """

    level = INFO

    streams: tuple[str, ...]
    time_column: str
    reuse_level: str
    network: Mapping[str, Any]
    stream_nodes: Mapping[str, str]
    backfill_microseconds: int


@dataclass(frozen=True, slots=True)
class QuerySubmitted(Event):
    """A query is answered from the batch after ``epoch`` on. ``match`` is "new", "holds" or
    "relaxed". ``cost_modelled`` is what it adds; ``considered`` what could have been done and its
    cost. ``complete`` is by stream (see ``HubQuery.complete_since``). ``planning`` and
    ``deploying`` are seconds.
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
        """What, and why."""
        return f"{self.name} is asked at {self.sink}: {self.reuse_kind}, operator {self.operator}"


@dataclass(frozen=True, slots=True)
class QueryEnded(Event):
    """A query is answered no longer; ``reason`` is a sentence or "withdrawn"."""

    level = INFO

    epoch: int
    name: str
    reason: str

    def describe_decision(self, moment: EventContext) -> str:
        """What, and why."""
        return f"{self.name} ends: {self.reason}"


@dataclass(frozen=True, slots=True)
class OperatorBuilt(Event):
    """An operator, or a new version of one, runs from the batch after ``epoch`` on. ``text`` says
    what it computes, by stream. ``read`` are the tuples and bytes of history, and of results of
    others, from which its state was made, in so many seconds.
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
        """What, and why."""
        history = f"{self.backfill[0]:,} tuples of history"
        return f"operator {self.operator} is built at {self.node}, of {history}"


@dataclass(frozen=True, slots=True)
class OperatorMoved(Event):
    """An operator goes on at another node; ``bytes`` of state went there, counted."""

    level = INFO

    epoch: int
    operator: int
    source_node: str
    target_node: str
    moved_bytes: int

    def describe_decision(self, moment: EventContext) -> str:
        """What, and why."""
        way = f"from {self.source_node} to {self.target_node}"
        return f"operator {self.operator} moves {way}: {self.moved_bytes:,} bytes of state"


@dataclass(frozen=True, slots=True)
class OperatorDropped(Event):
    """An operator, or an older version of one, runs no longer."""

    epoch: int
    operator: int
    version: int

    def describe_decision(self, moment: EventContext) -> str:
        """What, and why."""
        return f"operator {self.operator} goes"


@dataclass(frozen=True, slots=True)
class NodeFailed(Event):
    """A node is down, with the state of the operators there."""

    level = INFO

    epoch: int
    node: str
    operators: tuple[int, ...]

    def describe_decision(self, moment: EventContext) -> str:
        """What, and why."""
        return f"{self.node} fails"


@dataclass(frozen=True, slots=True)
class NodeRestored(Event):
    """Operators may be put on a node again."""

    level = INFO

    epoch: int
    node: str

    def describe_decision(self, moment: EventContext) -> str:
        """What, and why."""
        return f"{self.node} is up again"


@dataclass(frozen=True, slots=True)
class HistoryLost(Event):
    """The tuples of a stream in a ``batch`` are lost, for the ``reason``: history has all of the
    stream from the event time ``since`` (microseconds) on, and so have queries that need more.
    """

    level = WARNING

    epoch: int
    stream: str
    batch: int
    since: int
    reason: str

    def describe_decision(self, moment: EventContext) -> str:
        """Return a sentence that says what is lost."""
        return f"history of {self.stream} loses batch {self.batch}: {self.reason}"


@dataclass(frozen=True, slots=True)
class HubBatchCommitted(Event):
    """A batch went through all operators. ``received`` tuples and ``latest`` event times are by
    stream; ``network_usage_modelled`` is the network usage of what is deployed, in bytes in
    transit; ``flows`` are counted, on a network only. Tuples that did not come at their time are
    counted by stream in the order of their names: ``late``, ``untimed`` and ``ahead`` ones of the
    batch, and ``irregular`` since the start; see ``core.stream_clocks.IrregularCounts``. Late ones
    lay further behind the clock of their stream than its lateness.
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
