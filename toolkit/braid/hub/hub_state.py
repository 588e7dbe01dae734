"""State of a hub: deployment, queries, progress, and the files that it names.

Each commit of the hub's log has one. A file of the hub exists only if the last state names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import msgspec

from braid.core.run_state import VERSION
from braid.core.stream_clocks import LAST_TIME, IrregularCounts, find_least_time
from braid.papers.reuse.deployment import Deployment
from braid.papers.reuse.deployment_codec import deployment_from_plain, deployment_to_plain
from braid.storage.hub_files import HistoryFile, OperatorPin, operator_key
from braid.util.json_codec import from_plain


@dataclass
class ServingInterval:
    """Batches in which a query is answered by one demand of one operator.

    - ``bit``: bit of the demand.
    - ``first_epoch``, ``end_epoch``: batches of Spark, end exclusive; None: still answered.
    - ``compensation``: Spark SQL over flat results (see ``flat_results``); None: all results are
      wanted.
    """

    operator: int
    version: int
    bit: int
    first_epoch: int
    end_epoch: int | None = None
    compensation: str | None = None


@dataclass
class RegisteredQuery:
    """A query that is or was served.

    - ``number``: its id.
    - ``start_time``, ``end_time``: event times of its ticks, in microseconds; None: unbounded.
    - ``lifetime``: microseconds of event time; None: until it is withdrawn.
    - ``complete_since``: by stream, the event time from which every usable tuple was held; None:
      all.
    - ``end_epoch``: first batch in which it was not answered any more; None: it is active.
    - ``end_reason``: why it ended.
    """

    number: int
    name: str
    sql: str
    windows: Any
    slide: str | None
    sink: str
    reuse_kind: str
    serving_intervals: list[ServingInterval]
    complete_since: dict[str, int | None]
    lifetime: int | None = None
    start_time: int | None = None
    end_time: int | None = None
    end_epoch: int | None = None
    end_reason: str = ""


@dataclass
class HubState:
    """Complete state of a hub as of its last commit.

    - ``epoch``: last batch that all operators have committed, with or without tuples; -1: none.
    - ``micro_batch``: the source's last micro-batch; -1: none. A batch without tuples has none.
    - ``is_closed``: whether the hub was closed, so that it takes no more tuples.
    - ``clocks``: event-time progress by stream, in microseconds; None: the stream has not begun.
    - ``pending``: event times too far ahead to advance the clock.
    - ``passed_times``: by stream, the event time before which only late tuples come, in
      microseconds (see ``HubSettings.find_passed_times``).
    - ``first_event_times``: first event time by stream.
    - ``received_counts``: tuples and bytes by stream.
    - ``backfill_batches``: files of history by stream.
    - ``backfill_start``: event time from which history is complete; None: from the start.
    - ``failed_nodes``: nodes that are down.
    - ``irregular_counts``: irregular tuples, with streams in the order of their names.
    - ``operators``: pins of the operators that run or have answered a query; see ``operator_key``.
    """

    epoch: int = -1
    micro_batch: int = -1
    is_closed: bool = False
    clocks: dict[str, int | None] = field(default_factory=dict)
    pending: dict[str, tuple[int, ...]] = field(default_factory=dict)
    passed_times: dict[str, int | None] = field(default_factory=dict)
    first_event_times: dict[str, int | None] = field(default_factory=dict)
    received_counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    backfill_batches: dict[str, list[HistoryFile]] = field(default_factory=dict)
    backfill_start: dict[str, int | None] = field(default_factory=dict)
    queries: list[RegisteredQuery] = field(default_factory=list)
    failed_nodes: list[str] = field(default_factory=list)
    irregular_counts: IrregularCounts = field(default_factory=IrregularCounts)
    operators: dict[str, OperatorPin] = field(default_factory=dict)
    deployment: Deployment = field(default_factory=lambda: Deployment({}))

    @classmethod
    def from_json(cls, body: bytes) -> HubState:
        """Return the state from its JSON. Raises ValueError for JSON of another shape."""
        stored = msgspec.json.decode(body, type=dict[str, Any])
        deployment = deployment_from_plain(stored.pop("deployment"))
        del stored["format_version"]
        state = from_plain({**stored, "deployment": {"stream_nodes": {}}}, cls, "the hub's state")
        state.deployment = deployment
        return state

    def to_json(self) -> bytes:
        """Return the state as JSON."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return msgspec.json.encode(
            {
                "format_version": VERSION,
                **values,
                "deployment": deployment_to_plain(self.deployment),
            }
        )

    def copy_mutable(self) -> HubState:
        """Return a copy that can be changed. The deployment is shared, as it is immutable."""
        return replace(
            self,
            clocks=dict(self.clocks),
            pending=dict(self.pending),
            passed_times=dict(self.passed_times),
            first_event_times=dict(self.first_event_times),
            received_counts=dict(self.received_counts),
            backfill_batches={
                stream: list(files) for stream, files in self.backfill_batches.items()
            },
            backfill_start=dict(self.backfill_start),
            queries=[
                replace(q, serving_intervals=list(map(replace, q.serving_intervals)))
                for q in self.queries
            ],
            failed_nodes=list(self.failed_nodes),
            operators=dict(self.operators),
        )

    def set_pins(self, pins: Mapping[str, OperatorPin]) -> None:
        """Pin the operators that run or have answered a query, by ``pins`` or as before."""
        running = {operator_key(o.id, o.version) for o in self.deployment.operators.values()}
        spans = (span for q in self.queries for span in q.serving_intervals)
        answering = {operator_key(span.operator, span.version) for span in spans}
        all_pins = {**self.operators, **pins}
        self.operators = {
            key: all_pins[key]._replace(is_running=key in running)
            for key in sorted(running | answering)
        }

    def find_serving(self, name: str) -> RegisteredQuery | None:
        """Return the active query of this name; None if there is none."""
        return next((q for q in self.queries if q.name == name and q.end_epoch is None), None)

    @property
    def serving_queries(self) -> list[RegisteredQuery]:
        """Queries that are served now."""
        return [q for q in self.queries if q.end_epoch is None]

    def latest_event_times(self, stream: str) -> int | None:
        """Return the latest event time of a stream, plausible or not; None: it has not begun."""
        return max(self.pending.get(stream, ()), default=self.clocks.get(stream))

    def event_time_progress(self, streams: Sequence[str]) -> int | None:
        """Return the event time that all of these streams have passed; None if one has not begun.

        If all have ended, it is the latest clock of them.
        """
        passed = find_least_time(self.passed_times, streams)
        if passed != LAST_TIME:
            return passed
        return max((t for s in streams if (t := self.clocks.get(s)) is not None), default=None)

    def has_ended(self, streams: Sequence[str]) -> bool:
        """Return whether all of these streams have ended."""
        return find_least_time(self.passed_times, streams) == LAST_TIME

    def describe_irregular(self) -> str:
        """Return a description of the irregular tuples; empty if there are none."""
        names = sorted(self.clocks)
        return self.irregular_counts.describe_counts(names, [self.clocks[s] for s in names])
