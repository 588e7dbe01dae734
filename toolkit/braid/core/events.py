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

from braid.core.clocks import Irregular
from braid.core.harvest import Yield
from braid.core.plan import Block, Derivation, Route
from braid.core.report import HostDid
from braid.core.spans import instant, text

KINDS: dict[str, type[Event]] = {}
"""Those of the modules that have been imported, by name; ``core.jsonl.kinds`` has all."""


class Event:
    """The base of all events: a subclass, a frozen dataclass with slots, is known by its name.

    Raises TypeError when two classes have one name.
    """

    __slots__ = ()
    level: ClassVar[int] = DEBUG
    """At which ``core.log`` logs it."""
    lasting: ClassVar[tuple[str, ...] | None] = None
    """When earlier events are no longer kept, the last one stays of those that have the same values
    in these fields; None: none of this kind stays."""
    undoes: ClassVar[str] = ""
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

    def decided(self, moment: Moment) -> str:
        """What was decided here and why, in a few words; empty where nothing was."""
        return ""


class Moment(NamedTuple):
    """When an event happened: the names of the ``streams``, the commit ``before`` its batch, and
    the events that its batch has, itself among them.
    """

    streams: tuple[str, ...]
    before: BatchCommitted | None
    beside: Sequence[Event]


class Copy(NamedTuple):
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
    on: str
    windows: Mapping[str, str]
    placement: str
    settings: Mapping[str, Any]
    hosts: int
    keys: int
    batches: int | None
    clock: str = "measured"
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class PlacementChosen(Event):
    """The placement was left open ("auto"): what was chosen and ``why``, and what each candidate
    was modelled to cost, compared with it.
    """

    level = INFO

    placement: str
    why: str
    costs: Mapping[str, float]

    def decided(self, moment: Moment) -> str:
        return self.why


@dataclass(frozen=True, slots=True)
class PlacementChanged(Event):
    """Another placement is at work from this batch on.

    ``fullest`` is the part of a stream's tuples that the fullest host had, ``even`` what each would
    have had; ``work`` what of the modelled work is left, with what the change costs; ``moved`` the
    tuples that went to another host.
    """

    level = INFO
    lasting = ()

    batch: int
    before: str
    placement: str
    fullest: float
    even: float
    work: float
    moved: int

    def decided(self, moment: Moment) -> str:
        return (
            f"{self.before} to {self.placement}: one host had {self.fullest:.0%} of a stream, "
            f"where {self.even:.0%} is even; {self.work:.2f} of the modelled work is left, with "
            f"{self.moved:,} tuples moved; older blocks are met where they are"
        )


@dataclass(frozen=True, slots=True)
class BatchPlanned(Event):
    """The plan of a batch: compaction and the placement's plan as one; see Plan for the fields."""

    batch: int
    routes: tuple[Route, ...] = ()
    derivations: tuple[Derivation, ...] = ()
    drops: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EventsDropped(Event):
    """In place of the events of the batches up to ``batch``, which are no longer kept: it stands
    for as many numbers as they were ``events``, but for those that ``stay``, which come next.

    ``bytes`` had the run's events up to there, and ``before`` is their crc32; ``head`` is that of
    the lines around this one. The batches had ``results`` and, by stream, ``late`` tuples,
    and left these ``blocks``; ``did`` is what all hosts did in them, but for what they stored.
    ``kinds`` says how many events of each kind it stands for.
    """

    batch: int
    events: int
    stay: int
    bytes: int
    before: int
    head: int
    results: int
    blocks: tuple[Block, ...]
    late: tuple[int, ...]
    did: HostDid
    kinds: Mapping[str, int]


def numbers(happened: Iterable[Event]) -> int:
    """How many numbers some events have: one each, but those that stand for others."""
    return sum(e.events if isinstance(e, EventsDropped) else 1 for e in happened)


@dataclass(frozen=True, slots=True)
class BatchCommitted(Event):
    """What a batch did, as counted by the hosts. Tuples are counted once, whatever their
    replicas.
    """

    batch: int
    received: tuple[int, ...]
    """By stream, tuples of the batch."""
    total: tuple[int, ...]
    """By stream, tuples since the start of the run."""
    live: tuple[int, ...]
    """By stream, tuples held after the batch."""
    results: int
    seconds: Mapping[str, float]
    """Wall-clock of the parts (see ``core.seconds``), and of the batch: "total". Of a simulated
    one, what is "modelled"."""
    blocks: tuple[Block, ...]
    """Every block that is new or has changed."""
    dropped: tuple[int, ...]
    """Ids of blocks that are gone."""
    hosts: tuple[HostDid, ...]
    late: tuple[int, ...] = ()
    """By stream, tuples behind the watermark, which may have missed partners."""
    untimed: tuple[int, ...] = ()
    """By stream, tuples that were left out because they have no event time."""
    ahead: tuple[int, ...] = ()
    """By stream, tuples too far ahead of their stream's clock to move it by themselves."""
    irregular: Irregular = field(default_factory=Irregular)
    """The same since the start of the run."""
    clocks: tuple[int | None, ...] = ()
    """By stream, how far event time has come, in microseconds."""
    missed: int = 0
    """Combinations of tuples that were due and not met, under a placement that covers at most
    once."""
    received_bytes: tuple[int, ...] = ()
    """By stream, bytes of the batch's tuples as blocks hold them, replicas not counted."""
    executor: str = ""
    """Which way it went, "process" or "spark"; empty for a simulated one and one that only changes
    what is served."""
    why: str = ""
    """Why that way."""
    announced: int = 0
    """Bytes that the source announced before it was read; 0: it was not asked, or did not."""
    source_bytes: int = 0
    """Bytes that came from the source, before a shedder left tuples out; 0: not counted."""
    tasks: int = 0
    """Tasks that shared its work, in the first stage."""
    machine: str = ""
    """What the work could be shared among, where the way was chosen; empty where it was asked
    for."""
    last_commit: float = 0.0
    """Seconds in which the batch before became real: its manifest, the moves of its result files,
    Spark's log of them, the events, and the removal of old files. No part of "total"; 0: there was
    none before in this process."""

    def decided(self, moment: Moment) -> str:
        """The way that it went, where the batch before went another."""
        if moment.before is None or not self.executor or self.executor == moment.before.executor:
            return ""
        way = "in this process" if self.executor == "process" else "on Spark"
        return f"tasks run {way}{f': {self.why}' if self.why else ''}"

    @property
    def all_hosts(self) -> HostDid:
        """What all hosts did together."""
        return HostDid(
            *(sum(values) for values in zip(*map(msgspec.structs.astuple, self.hosts), strict=True))
        )


@dataclass(frozen=True, slots=True)
class ClockJumped(Event):
    """The clock of a stream went far ahead, from ``before`` to ``after`` (event times in
    microseconds), because ``support`` tuples have such times. Tuples behind it are late from
    now on. It comes before the batch's commit.

    Where ``before`` is None, fewer than eight tuples began the stream, far ahead of another one.
    """

    level = WARNING
    lasting = ("stream",)

    batch: int
    stream: str
    before: int | None
    after: int
    support: int

    def decided(self, moment: Moment) -> str:
        tuples = f"{self.support} tuple{'s' if self.support > 1 else ''}"
        if self.before is None:
            return f"the clock of {self.stream} begins at {instant(self.after)}, by {tuples} alone"
        return (
            f"the clock of {self.stream} jumps from {instant(self.before)} to "
            f"{instant(self.after)}, where {tuples} are"
        )


@dataclass(frozen=True, slots=True)
class BatchHarvested(Event):
    """What came of a batch in which not all tuples met all that they were due to meet. It comes
    before the batch's commit, in runs that shed load only.

    ``considered`` and ``left_out`` are pairs (tuple that set out, row of a block) of the first hop.
    ``estimated`` are the results of the full join, by the weights of those that were found, and
    ``variance`` that of this estimate; None: unknown. ``utility`` is what the results are worth,
    ``estimated_utility`` what those of the full join are. ``sketches`` are those of a batch whose
    draws go on in later batches, so that variances of batches do not add up: see Harvested.
    """

    batch: int
    considered: float
    left_out: float
    estimated: float
    variance: float | None
    utility: float
    estimated_utility: float
    items: tuple[Yield, ...] = ()
    sketches: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class BatchServed(Event):
    """By query, the ``results`` of a batch that are its. It comes before the batch's commit, in
    runs that serve many queries only, and not in simulated ones.
    """

    batch: int
    results: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class QueryAdded(Event):
    """A shared run serves one more query, from the next batch on. By alias, ``windows`` are in
    microseconds and ``where`` the selection, or None. ``complete`` gives, by alias, the event time
    (microseconds) from which on the state held every tuple that the query can use: results whose
    members came later or are no older are complete. None: all are.
    """

    level = INFO
    lasting = ("name", "batch")

    batch: int
    name: str
    bit: int
    windows: Mapping[str, int]
    where: Mapping[str, str | None]
    complete: Mapping[str, int | None]

    def decided(self, moment: Moment) -> str:
        if self.batch < 0:
            return ""
        windows = ", ".join(f"{a} {text(w)}" for a, w in self.windows.items())
        full = all(t is None for t in self.complete.values())
        return f"query {self.name} comes (windows {windows}), " + (
            "and finds all the state that it needs" if full else "complete once its window is full"
        )


@dataclass(frozen=True, slots=True)
class QueryRemoved(Event):
    """A shared run no longer serves a query, from the next batch on."""

    level = INFO
    lasting = ("name", "batch")
    undoes = "QueryAdded"

    batch: int
    name: str

    def decided(self, moment: Moment) -> str:
        return f"query {self.name} goes"


@dataclass(frozen=True, slots=True)
class RunEnded(Event):
    """``reason`` is "completed", "stopped" or "failed"; ``error`` is empty unless it failed."""

    level = INFO

    batch: int
    reason: str
    error: str = ""

    def decided(self, moment: Moment) -> str:
        return f"the run failed: {self.error}" if self.reason == "failed" else ""
