"""What happened, typed and in order: the only thing that views read.

Each event is one frozen dataclass, and one line of JSON (jsonl.py). A class registers itself by
deriving from ``Event``; the events of a paper live in ``papers/<paper>/events.py``. Lists of events
are what a live run, a replay and a report have in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from logging import DEBUG, INFO, WARNING
from typing import Any, ClassVar, NamedTuple

import msgspec

from braid.core.batch_report import HostMetrics
from braid.core.plan import Block, Derivation, Route
from braid.core.shedding_plan import ItemYield
from braid.core.stream_clocks import IrregularCounts
from braid.util.durations import format_duration, format_instant

KINDS: dict[str, type[Event]] = {}
"""Those of the modules that have been imported, by name; ``core.event_io.event_types`` has all."""


class Event:
    """The base of all events: a subclass, a frozen dataclass with slots, is known by its name.

    Raises TypeError when two classes have one name.
    """

    __slots__ = ()
    level: ClassVar[int] = DEBUG
    """At which ``core.event_logging`` logs it."""
    retention_key: ClassVar[tuple[str, ...] | None] = None
    """When earlier events are no longer kept, the last one stays of those that have the same values
    in these fields; None: none of this kind stays."""
    cancels: ClassVar[str] = ""
    """A lasting kind. When this event is no longer kept, and the last one of that kind that has the
    same value in its first lasting field is not either, neither of the two stays."""

    def __init_subclass__(cls) -> None:
        known = KINDS.setdefault(cls.__name__, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(
                f"event {cls.__name__} of {cls.__module__} has the name of one of "
                f"{known.__module__}; a name stands for one kind of event"
            )
        KINDS[cls.__name__] = cls  # a dataclass with slots is made twice, and the second counts

    def describe_decision(self, moment: EventContext) -> str:
        """What was decided here and why, in a few words; empty where nothing was."""
        return ""


class EventContext(NamedTuple):
    """When an event happened: the names of the ``streams``, the commit ``before`` its batch, and
    the events that its batch has, itself among them.
    """

    streams: tuple[str, ...]
    previous_commit: BatchCommitted | None
    batch_events: Sequence[Event]


class ReplicaCopy(NamedTuple):
    """A block that goes from one host to another."""

    block: int
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """The settings of a run. ``clock`` is "measured" for a run on Spark and "modelled" for a
    simulated one.

    ``batches`` is the number of micro-batches when it is known beforehand (static input), else
    None. ``resumed``: it went on with the input that it began with, and the streams that it was
    given then were not looked at.
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


@dataclass(frozen=True, slots=True)
class PlacementChosen(Event):
    """The placement was left open ("auto"): what was chosen and ``why``, and what each candidate
    was modelled to cost, compared with it.
    """

    level = INFO

    placement: str
    reason: str
    relative_costs: Mapping[str, float]

    def describe_decision(self, moment: EventContext) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class PlacementChanged(Event):
    """Another placement is at work from this batch on.

    ``fullest`` is the part of a stream's tuples that the fullest host had, ``even`` what each would
    have had; ``work`` what of the modelled work is left, with what the change costs; ``moved`` the
    tuples that went to another host.
    """

    level = INFO
    retention_key = ()

    batch: int
    previous_placement: str
    placement: str
    max_host_share: float
    even_share: float
    remaining_work_share: float
    moved_tuples: int

    def describe_decision(self, moment: EventContext) -> str:
        return (
            f"{self.previous_placement} to {self.placement}: one host had "
            f"{self.max_host_share:.0%} of a stream, "
            f"where {self.even_share:.0%} is even; {self.remaining_work_share:.2f} of the "
            "modelled work is left, with "
            f"{self.moved_tuples:,} tuples moved; older blocks are met where they are"
        )


@dataclass(frozen=True, slots=True)
class BatchPlanned(Event):
    """The plan of a batch: compaction and the placement's plan as one; see Plan for the fields."""

    batch: int
    routes: tuple[Route, ...] = ()
    derivations: tuple[Derivation, ...] = ()
    drops: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventsTrimmed(Event):
    """In place of the events of the batches up to ``batch``, which are no longer kept: it stands
    for as many numbers as they were ``events``, but for those that ``stay``, which come next.

    ``bytes`` had the run's events up to there, and ``before`` is their crc32; ``head`` is that of
    the lines around this one. The batches had ``results`` and, by stream, ``late`` tuples,
    and left these ``blocks``; ``did`` is what all hosts did in them, but for what they stored.
    ``kinds`` says how many events of each kind it stands for.
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
    """How many numbers some events have: one each, but those that stand for others."""
    return sum(e.trimmed_events if isinstance(e, EventsTrimmed) else 1 for e in happened)


@dataclass(frozen=True, slots=True)
class BatchCommitted(Event):
    """What a batch did, as counted by the hosts. Tuples are counted once, whatever their
    replicas.
    """

    batch: int
    received_tuples: tuple[int, ...]
    """By stream, tuples of the batch."""
    total_received_tuples: tuple[int, ...]
    """By stream, tuples since the start of the run."""
    live_tuples: tuple[int, ...]
    """By stream, tuples held after the batch."""
    results: int
    seconds_by_phase: Mapping[str, float]
    """Wall-clock of the parts (see ``core.batch_phases``), and of the batch: "total". Of a
    simulated one, what is "modelled".
    """
    changed_blocks: tuple[Block, ...]
    """Every block that is new or has changed."""
    dropped_block_ids: tuple[int, ...]
    """Ids of blocks that are gone."""
    host_metrics: tuple[HostMetrics, ...]
    late_tuples: tuple[int, ...] = ()
    """By stream, tuples behind the watermark, which may have missed partners."""
    untimed: tuple[int, ...] = ()
    """By stream, tuples that were left out because they have no event time."""
    ahead: tuple[int, ...] = ()
    """By stream, tuples too far ahead of their stream's clock to move it by themselves."""
    irregular_counts: IrregularCounts = field(default_factory=IrregularCounts)
    """The same since the start of the run."""
    clocks: tuple[int | None, ...] = ()
    """By stream, how far event time has come, in microseconds."""
    missed_combinations: int = 0
    """Combinations of tuples that were due and not met, under a placement that covers at most
    once."""
    received_bytes: tuple[int, ...] = ()
    """By stream, bytes of the batch's tuples as blocks hold them, replicas not counted."""
    executor: str = ""
    """Which way it went, "process" or "spark"; empty for a simulated one and one that only changes
    what is served."""
    executor_reason: str = ""
    """Why that way."""
    announced_bytes: int = 0
    """Bytes that the source announced before it was read; 0: it was not asked, or did not."""
    source_bytes: int = 0
    """Bytes that came from the source, before a shedder left tuples out; 0: not counted."""
    task_count: int = 0
    """Tasks that shared its work, in the first stage."""
    parallelism: str = ""
    """What the work could be shared among, where the way was chosen; empty where it was asked
    for."""
    previous_commit_seconds: float = 0.0
    """Seconds in which the batch before became real: its manifest, the moves of its result files,
    Spark's log of them, the events, and the removal of old files. No part of "total"; 0: there was
    none before in this process."""

    def describe_decision(self, moment: EventContext) -> str:
        """The way that it went, where the batch before went another."""
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
        """What all hosts did together."""
        return HostMetrics(
            *(
                sum(values)
                for values in zip(*map(msgspec.structs.astuple, self.host_metrics), strict=True)
            )
        )


@dataclass(frozen=True, slots=True)
class ClockJumped(Event):
    """The clock of a stream went far ahead, from ``before`` to ``after`` (event times in
    microseconds), because ``support`` tuples have such times. Tuples behind it are late from
    now on. It comes before the batch's commit.

    Where ``before`` is None, fewer than eight tuples began the stream, far ahead of another one.
    """

    level = WARNING
    retention_key = ("stream",)

    batch: int
    stream: str
    before: int | None
    after: int
    support: int

    def describe_decision(self, moment: EventContext) -> str:
        tuples = f"{self.support} tuple{'s' if self.support > 1 else ''}"
        if self.before is None:
            return (
                f"the clock of {self.stream} begins at {format_instant(self.after)}, by "
                f"{tuples} alone"
            )
        return (
            f"the clock of {self.stream} jumps from {format_instant(self.before)} to "
            f"{format_instant(self.after)}, where {tuples} are"
        )


@dataclass(frozen=True, slots=True)
class BatchShed(Event):
    """What came of a batch in which not all tuples met all that they were due to meet. It comes
    before the batch's commit, in runs that shed load only.

    ``considered`` and ``left_out`` are pairs (tuple that set out, row of a block) of the first hop.
    ``estimated`` are the results of the full join, by the weights of those that were found, and
    ``variance`` that of this estimate; None: unknown. ``utility`` is what the results are worth,
    ``estimated_utility`` what those of the full join are. ``sketches`` are those of a batch whose
    draws go on in later batches, so that variances of batches do not add up: see Harvested.
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
    """By query, the ``results`` of a batch that are its. It comes before the batch's commit, in
    runs that serve many queries only, and not in simulated ones.
    """

    batch: int
    results_by_query: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class QueryAdded(Event):
    """A shared run serves one more query, from the next batch on. By alias, ``windows`` are in
    microseconds and ``where`` the selection, or None. ``complete`` gives, by alias, the event time
    (microseconds) from which on the state held every tuple that the query can use: results whose
    members came later or are no older are complete. None: all are.
    """

    level = INFO
    retention_key = ("name", "batch")

    batch: int
    name: str
    bitmap_position: int
    windows: Mapping[str, int]
    selections: Mapping[str, str | None]
    complete_since: Mapping[str, int | None]

    def describe_decision(self, moment: EventContext) -> str:
        if self.batch < 0:
            return ""
        windows = ", ".join(f"{a} {format_duration(w)}" for a, w in self.windows.items())
        full = all(t is None for t in self.complete_since.values())
        return f"query {self.name} comes (windows {windows}), " + (
            "and finds all the state that it needs" if full else "complete once its window is full"
        )


@dataclass(frozen=True, slots=True)
class QueryRemoved(Event):
    """A shared run no longer serves a query, from the next batch on."""

    level = INFO
    retention_key = ("name", "batch")
    cancels = "QueryAdded"

    batch: int
    name: str

    def describe_decision(self, moment: EventContext) -> str:
        return f"query {self.name} goes"


@dataclass(frozen=True, slots=True)
class RunEnded(Event):
    """``reason`` is "completed", "stopped" or "failed"; ``error`` is empty unless it failed."""

    level = INFO

    batch: int
    outcome: str
    error: str = ""

    def describe_decision(self, moment: EventContext) -> str:
        return f"the run failed: {self.error}" if self.outcome == "failed" else ""
