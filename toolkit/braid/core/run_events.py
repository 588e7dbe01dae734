"""The events of a run: typed, ordered, and the only input of views.

Each event is a frozen dataclass and one line of JSON (``core.event_jsonl``), and registers itself
by deriving from ``Event``. ``papers/<paper>/run_events.py`` has the events of a paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from logging import DEBUG, INFO
from typing import Any, ClassVar, NamedTuple

import msgspec

from braid.core.batch_report import HostMetrics
from braid.core.batch_symptoms import BatchSymptoms
from braid.core.plan import Block, Derivation, Release, Route
from braid.core.registry import ClassRegistry
from braid.core.shedding_plan import ItemYield
from braid.core.step_counts import StepCounts
from braid.core.stream_clocks import IrregularCounts
from braid.util.durations import format_duration

EVENTS: ClassRegistry[Event] = ClassRegistry("event")
"""Event classes of the imported modules, by name; ``core.event_jsonl.event_types`` returns all."""


class Event:
    """Base class of all events.

    A subclass is a frozen dataclass with slots. Raises TypeError if two have the same name.
    """

    __slots__ = ()
    level: ClassVar[int] = DEBUG
    """Level at which ``core.event_jsonl`` logs the event."""
    retention_key: ClassVar[tuple[str, ...] | None] = None
    """Fields that identify a lasting event; None: none of this kind is retained. If earlier events
    are trimmed, the last event with each combination of these fields' values is retained.
    """
    cancels: ClassVar[str] = ""
    """A lasting kind that this event cancels. If this event is trimmed, and so is the last one of
    that kind with the same value in its first lasting field, neither is retained.
    """

    def __init_subclass__(cls) -> None:
        EVENTS.register_class(cls)

    @property
    def sentence(self) -> str:
        """The event as a sentence, to be logged; empty: its fields are logged."""
        return ""

    def describe_decision(self, moment: EventContext) -> str:
        """Return the decision that this event reports, with its reason; empty if none."""
        return ""


class EventContext(NamedTuple):
    """The context of an event.

    - ``streams``: names of the streams.
    - ``previous_commit``: commit of the batch before; None: there is none.
    - ``batch_events``: all events of the batch, including this one.
    """

    streams: tuple[str, ...]
    previous_commit: BatchCommitted | None
    batch_events: Sequence[Event]


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """The settings of a run.

    - ``planned_batches``: number of micro-batches if known in advance (static input), or None.
    - ``time_source``: "measured" for a run on Spark, "modelled" for a simulated one.
    - ``resumed``: whether the run continues with its original input. The streams passed to the
      resume are then not read.
    - ``condition_parts``: the conjuncts of the condition, which ``StepCounts`` refers to.
    - ``interval_seconds``: seconds from the start of a batch to that of the next, if they are set.
    - ``cores``: processors that the process may use; 0: unknown, as for a simulated run.
    """

    level = INFO

    streams: tuple[str, ...]
    condition: str
    windows: Mapping[str, str]
    placement: str
    placement_settings: Mapping[str, Any]
    hosts: int
    key_space_size: int
    planned_batches: int | None
    time_source: str = "measured"
    resumed: bool = False
    condition_parts: tuple[str, ...] = ()
    interval_seconds: float | None = None
    cores: int = 0

    @property
    def sentence(self) -> str:
        """The join, and that static streams are read as they are now."""
        join = f"{' ⋈ '.join(self.streams)} on {self.condition}, {self.placement}"
        if self.planned_batches is None or self.resumed:
            return f"{join}{', resumed' if self.resumed else ''}"
        return f"{join}; streams as they are now, in {self.planned_batches:,} micro-batches"


@dataclass(frozen=True, slots=True)
class PlacementChosen(Event):
    """The placement chosen for "auto".

    - ``placement``: name of the chosen placement.
    - ``reason``: why it was chosen.
    - ``relative_costs``: by candidate, its modelled cost divided by that of the chosen placement.
    """

    level = INFO

    placement: str
    reason: str
    relative_costs: Mapping[str, float]

    def describe_decision(self, moment: EventContext) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class BatchPlanned(Event):
    """The plan of a batch, compaction included. See ``Plan`` for the fields.

    - ``releases``: stored tuples of an as-of join that take their partners before all else.
    """

    batch: int
    routes: tuple[Route, ...] = ()
    derivations: tuple[Derivation, ...] = ()
    drops: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    releases: tuple[Release, ...] = ()


@dataclass(frozen=True, slots=True)
class EventsTrimmed(Event):
    """Placeholder for the trimmed events of the batches up to ``batch``.

    - ``trimmed_events``: number of events up to there, including retained ones.
    - ``retained_events``: lasting events that follow this one. The placeholder occupies
      ``trimmed_events`` minus ``retained_events`` sequence numbers.
    - ``trimmed_bytes``, ``trimmed_crc32``: size and checksum of the run's event log up to there.
    - ``header_crc32``: checksum of the lines around this one.
    - ``results``: results of these batches.
    - ``live_blocks``: blocks after ``batch``.
    - ``late_tuples``: by stream, late tuples of these batches.
    - ``total_host_metrics``: work of all hosts in these batches, without what they store.
    - ``event_counts``: number of trimmed events by kind.
    """

    batch: int
    trimmed_events: int
    retained_events: int
    trimmed_bytes: int
    trimmed_crc32: int
    header_crc32: int
    results: int
    live_blocks: tuple[Block, ...]
    late_tuples: tuple[int, ...]
    total_host_metrics: HostMetrics
    event_counts: Mapping[str, int]


def count_event_numbers(happened: Iterable[Event]) -> int:
    """Return how many sequence numbers some events occupy: one each, more for a placeholder."""
    return sum(e.trimmed_events if isinstance(e, EventsTrimmed) else 1 for e in happened)


@dataclass(frozen=True, slots=True)
class BatchCommitted(Event):
    """The outcome of a batch, as counted by the hosts. Replicas of a tuple count once."""

    batch: int
    received_tuples: tuple[int, ...]
    """By stream, tuples of the batch."""
    total_received_tuples: tuple[int, ...]
    """By stream, tuples since the start of the run."""
    live_tuples: tuple[int, ...]
    """By stream, tuples held after the batch."""
    results: int
    seconds_by_phase: Mapping[str, float]
    """Wall-clock seconds by phase (see ``core.batch_history``) and for the batch ("total"). A
    simulated batch has "modelled" only.
    """
    changed_blocks: tuple[Block, ...]
    """Blocks that are new or changed."""
    dropped_block_ids: tuple[int, ...]
    """Ids of dropped blocks."""
    host_metrics: tuple[HostMetrics, ...]
    late_tuples: tuple[int, ...] = ()
    """By stream, tuples behind the watermark. They may have missed partners."""
    untimed: tuple[int, ...] = ()
    """By stream, tuples skipped because they have no event time."""
    ahead: tuple[int, ...] = ()
    """By stream, tuples too far ahead of the clock to advance it by themselves."""
    irregular_counts: IrregularCounts = field(default_factory=IrregularCounts)
    """Late, untimed and early tuples since the start of the run."""
    clocks: tuple[int | None, ...] = ()
    """By stream, the event time reached, in microseconds."""
    watermarks: tuple[int | None, ...] = ()
    """By stream, the earliest event time still expected of the others; see ``to_times``."""
    missed_combinations: int = 0
    """Due combinations of tuples that were not met. 0 unless the placement covers at most once."""
    received_bytes: tuple[int, ...] = ()
    """By stream, bytes of the batch's tuples as blocks hold them, without replicas."""
    executor: str = ""
    """"process" or "spark". Empty for a simulated batch, or one that only changes queries."""
    executor_reason: str = ""
    """Reason for the executor."""
    announced_bytes: int = 0
    """Bytes that the source announced in advance. 0: not asked, or not announced."""
    source_bytes: int = 0
    """Bytes read from the source, before a shedder skipped tuples. 0: not counted."""
    task_count: int = 0
    """Tasks of the first stage that had work."""
    parallelism: str = ""
    """Available parallelism when the executor was chosen. Empty if the caller set the executor."""
    previous_commit_seconds: float = 0.0
    """Duration of the previous commit: manifest, publishing of result files, Spark's sink log,
    events, and removal of old files. Not part of "total". 0: first batch of this process.
    """
    previous_sink_seconds: float = 0.0
    """Duration of ``foreachBatch`` for the previous batch. Not part of "total". 0: there is none.
    """
    step_counts: tuple[StepCounts, ...] = ()
    """Pairs of each probe step; empty for a simulated batch."""
    micro_batch: int | None = None
    """Micro-batch of the source. None: it has none, since it only answers or changes queries."""
    symptoms: BatchSymptoms = field(default_factory=BatchSymptoms)
    """Measures for a diagnosis."""
    disk_free: float | None = None
    """Share of the disk of the run that is free. None: no disk has it."""

    def describe_decision(self, moment: EventContext) -> str:
        """Return the executor and its reason if the batch before ran on another one."""
        if (
            moment.previous_commit is None
            or not self.executor
            or self.executor == moment.previous_commit.executor
        ):
            return ""
        way = "in this process" if self.executor == "process" else "on Spark"
        return f"tasks run {way}{f': {self.executor_reason}' if self.executor_reason else ''}"

    @property
    def total_host_metrics(self) -> HostMetrics:
        """The sum of all hosts' metrics."""
        return HostMetrics(
            *(
                sum(values)
                for values in zip(*map(msgspec.structs.astuple, self.host_metrics), strict=True)
            )
        )


@dataclass(frozen=True, slots=True)
class BatchShed(Event):
    """Load shed in a batch. It precedes the batch's commit, in runs that shed load only.

    - ``considered_pairs``, ``skipped_pairs``: pairs (probing tuple, row of a block) of the first
      hop.
    - ``estimated_results``: estimate of the full join's results, from the weights of those found.
    - ``variance``: variance of this estimate; None: unknown.
    - ``utility``, ``estimated_utility``: utility of the results, and estimated utility of the full
      join's.
    - ``items``: yield by item.
    - ``sketches``: set if the draws of a batch continue in later batches, so that their variances
      do not add up; see ``SheddingOutcome``.
    """

    batch: int
    considered_pairs: float
    skipped_pairs: float
    estimated_results: float
    variance: float | None
    utility: float
    estimated_utility: float
    items: tuple[ItemYield, ...] = ()
    sketches: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class BatchQueryResults(Event):
    """The results of a batch by query.

    It precedes the batch's commit, in shared runs on Spark only.
    """

    batch: int
    results_by_query: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class QueryAdded(Event):
    """A query added to a shared run, from the next batch on.

    - ``bitmap_position``: bit of the query in bitmaps; ``how``: kind of its join; ``match``:
      arguments of an as-of query.
    - ``windows``: by alias, microseconds.
    - ``selections``: by alias, Spark SQL; None: every tuple.
    - ``complete_since``: by alias, the event time (microseconds) from which the state held every
      tuple that the query uses. Results of later tuples are complete. None: all are.
    """

    level = INFO
    retention_key = ("name", "batch")

    batch: int
    name: str
    bitmap_position: int
    windows: Mapping[str, int]
    selections: Mapping[str, str | None]
    complete_since: Mapping[str, int | None]
    how: str | Mapping[str, str] = "inner"
    match: Mapping[str, Any] | None = None

    def describe_decision(self, moment: EventContext) -> str:
        if self.batch < 0:
            return ""
        windows = ", ".join(f"{a} {format_duration(w)}" for a, w in self.windows.items())
        lacks = any(t is not None for t in self.complete_since.values())
        state = "complete once its window is full" if lacks else "and finds all that it needs"
        return f"query {self.name} comes (windows {windows}), {state}"


@dataclass(frozen=True, slots=True)
class QueryRemoved(Event):
    """A query removed from a shared run, from the next batch on."""

    level = INFO
    retention_key = ("name", "batch")
    cancels = "QueryAdded"

    batch: int
    name: str

    def describe_decision(self, moment: EventContext) -> str:
        return f"query {self.name} goes"


@dataclass(frozen=True, slots=True)
class RunEnded(Event):
    """The end of a run.

    - ``outcome``: "completed", "stopped" or "failed".
    - ``error``: the error of a failed run; otherwise empty.
    """

    level = INFO

    batch: int
    outcome: str
    error: str = ""

    def describe_decision(self, moment: EventContext) -> str:
        return f"the run failed: {self.error}" if self.outcome == "failed" else ""
