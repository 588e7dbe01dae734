"""What a hub has to tell: Seshadri 2008."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from logging import INFO, WARNING
from typing import Any, NamedTuple

from braid.core.clocks import Irregular
from braid.core.events import Event, Moment


class Did(NamedTuple):
    """What an operator did in a batch, counted: tuples and results of others that came in, with
    their bytes, pairs that were compared, results; what it holds after it; seconds.
    """

    operator: int
    version: int
    received: int
    received_bytes: int
    compared: int
    results: int
    live: int
    live_bytes: int
    seconds: float


class Flowed(NamedTuple):
    """What went over the network in a batch, counted: ``what`` is a stream or an operator ("3"),
    ``to`` an operator or a query; from node to node. Bytes are of Arrow buffers.
    """

    what: str
    to: str
    source: str
    target: str
    rows: int
    bytes: int

    @property
    def sent(self) -> tuple[str, str, int]:
        """From where, to where, how many bytes."""
        return self.source, self.target, self.bytes


@dataclass(frozen=True, slots=True)
class HubStarted(Event):
    """The settings of a hub. ``network`` is plain data (``Network.to_dict``), ``at`` the node that
    each stream comes from.
    """

    level = INFO

    streams: tuple[str, ...]
    time: str
    reuse: str
    network: Mapping[str, Any]
    at: Mapping[str, str]
    history: int


@dataclass(frozen=True, slots=True)
class QuerySubmitted(Event):
    """A query is answered from the batch after ``epoch`` on. ``match`` is "new", "holds" or
    "relaxed". ``cost_modelled`` is what it adds; ``considered`` what could have been done and its
    cost. ``complete`` is by stream (see ``HubQuery.complete``). ``planning`` and ``deploying`` are
    seconds.
    """

    level = INFO

    epoch: int
    name: str
    sql: str
    sink: str
    match: str
    operator: int
    cost_modelled: float
    considered: tuple[tuple[str, float], ...]
    complete: Mapping[str, int | None]
    planning: float
    deploying: float

    def decided(self, moment: Moment) -> str:
        """What, and why."""
        return f"{self.name} is asked at {self.sink}: {self.match}, operator {self.operator}"


@dataclass(frozen=True, slots=True)
class QueryEnded(Event):
    """A query is answered no longer; ``reason`` is a sentence or "withdrawn"."""

    level = INFO

    epoch: int
    name: str
    reason: str

    def decided(self, moment: Moment) -> str:
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
    text: Mapping[str, str]
    demands: int
    read: tuple[int, int]
    seconds: float

    def decided(self, moment: Moment) -> str:
        """What, and why."""
        history = f"{self.read[0]:,} tuples of history"
        return f"operator {self.operator} is built at {self.node}, of {history}"


@dataclass(frozen=True, slots=True)
class OperatorMoved(Event):
    """An operator goes on at another node; ``bytes`` of state went there, counted."""

    level = INFO

    epoch: int
    operator: int
    source: str
    target: str
    bytes: int

    def decided(self, moment: Moment) -> str:
        """What, and why."""
        way = f"from {self.source} to {self.target}"
        return f"operator {self.operator} moves {way}: {self.bytes:,} bytes of state"


@dataclass(frozen=True, slots=True)
class OperatorDropped(Event):
    """An operator, or an older version of one, runs no longer."""

    epoch: int
    operator: int
    version: int

    def decided(self, moment: Moment) -> str:
        """What, and why."""
        return f"operator {self.operator} goes"


@dataclass(frozen=True, slots=True)
class NodeFailed(Event):
    """A node is down, with the state of the operators there."""

    level = INFO

    epoch: int
    node: str
    operators: tuple[int, ...]

    def decided(self, moment: Moment) -> str:
        """What, and why."""
        return f"{self.node} fails"


@dataclass(frozen=True, slots=True)
class NodeRestored(Event):
    """Operators may be put on a node again."""

    level = INFO

    epoch: int
    node: str

    def decided(self, moment: Moment) -> str:
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

    def decided(self, moment: Moment) -> str:
        """Return a sentence that says what is lost."""
        return f"history of {self.stream} loses batch {self.batch}: {self.reason}"


@dataclass(frozen=True, slots=True)
class HubCommitted(Event):
    """A batch went through all operators. ``received`` tuples and ``latest`` event times are by
    stream; ``usage_modelled`` is the network usage of what is deployed, in bytes in transit;
    ``flows`` are counted, on a network only. Tuples that did not come at their time are counted by
    stream in the order of their names: ``late``, ``untimed`` and ``ahead`` ones of the batch, and
    ``irregular`` since the start; see ``core.clocks.Irregular``. Late ones lay further behind the
    clock of their stream than its lateness.
    """

    epoch: int
    received: Mapping[str, int]
    latest: Mapping[str, int | None]
    operators: tuple[Did, ...]
    flows: tuple[Flowed, ...]
    usage_modelled: float
    seconds: float
    late: tuple[int, ...] = ()
    untimed: tuple[int, ...] = ()
    ahead: tuple[int, ...] = ()
    irregular: Irregular = field(default_factory=Irregular)
