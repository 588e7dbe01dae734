"""The model of joins of every kind, tuple by tuple, with the batch of each row.

A pair is a complete combination of tuples, one of each stream. It is made in the batch in which its
last tuple comes, if none of its other tuples is below its stream's horizon by then. A tuple of a
preserved stream is unmatched if it is final and in no pair. It is final in the first batch after
its own that finds it below the horizon, or at once if it can be in no pair at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

from models.clocks import (
    END,
    Clock,
    Reach,
    Time,
    find_effective_clocks,
    find_horizons,
    find_late_limit,
    find_watermarks,
)


class Tuple(NamedTuple):
    """A tuple of a stream.

    - ``id``: unique in its stream.
    - ``batch``: the batch in which it comes.
    - ``time``: event time; None: NULL, or the stream has none.
    - ``values``: what the condition reads.
    - ``meets``: whether it can be in a pair at all: False for a NULL key, and for a filter of the
      condition that is not true.
    """

    stream: int
    id: int
    batch: int
    time: int | None
    values: Mapping[str, Any]
    meets: bool = True


@dataclass(frozen=True)
class JoinRules:
    """The rules of a join.

    - ``condition``: whether a combination of tuples, one of each stream, is a pair. Bounds of event
      times are checked beside it.
    - ``reach``: bounds of event times, closed.
    - ``how``: inner, left, right, full, semi or anti; or, for any streams, the kept ones.
    - ``lateness``: by stream; empty: none.
    - ``ahead``, ``idle``: None: unlimited.
    - ``ends``: by stream, the batch with which it ends; None: with the run's close. Empty: all None.
    - ``timeless``: streams without event time.
    - ``closes``: whether the run is closed after its last batch.
    """

    condition: Callable[..., bool]
    reach: Reach
    how: str | tuple[int, ...] = "inner"
    lateness: tuple[int, ...] = ()
    ahead: int | None = None
    idle: int | None = None
    ends: tuple[int | None, ...] = ()
    timeless: tuple[int, ...] = ()
    closes: bool = True

    @property
    def preserved(self) -> tuple[int, ...]:
        """Streams whose tuples are answered."""
        if isinstance(self.how, tuple):
            return self.how
        return {"inner": (), "right": (1,), "full": (0, 1)}.get(self.how, (0,))

    def has_ended(self, stream: int, batch: int) -> bool:
        """Return whether a stream has ended with a batch."""
        return bool(self.ends) and self.ends[stream] is not None and batch >= self.ends[stream]

    def needs_time(self, stream: int) -> bool:
        """Return whether a pair depends on the event time of a stream."""
        others = [j for j in range(len(self.reach)) if j != stream]
        return any(not (self.reach[stream][j] is self.reach[j][stream] is None) for j in others)


class Answer(NamedTuple):
    """The answer of a preserved tuple, and its batch. A matched tuple has that of its first pair."""

    batch: int
    stream: int
    id: int
    is_matched: bool


class Irregular(NamedTuple):
    """A tuple that came late, untimed or ahead. ``behind``: how far behind the limit it is late."""

    batch: int
    reason: str
    stream: int
    id: int
    behind: int | None = None


@dataclass
class Outcome:
    """The outcome of a run.

    - ``pairs``: batch and ids of each pair.
    - ``answers``: of the preserved tuples.
    - ``results``: batch and ids of each result, of the streams that the kind shows; None: absent.
    - ``irregular``: late, untimed and early tuples.
    - ``waiting``: by batch, preserved tuples not answered after it.
    - ``clocks``, ``watermarks``, ``horizons``: by batch, as they stand after it.
    """

    pairs: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    results: list[tuple[int, tuple[int | None, ...]]] = field(default_factory=list)
    irregular: list[Irregular] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    clocks: list[list[Time]] = field(default_factory=list)
    watermarks: list[list[Time]] = field(default_factory=list)
    horizons: list[list[Time]] = field(default_factory=list)


class Progress:
    """The event time of a run: clocks, watermarks and horizons, batch by batch."""

    def __init__(self, rules: JoinRules) -> None:
        self.rules, streams = rules, range(len(rules.reach))
        self.lateness = rules.lateness or tuple(0 for _ in streams)
        self.ticking = [Clock(rules.ahead) for _ in streams]
        self.batch, self.is_closed = -1, False
        self.find_times()

    def find_times(self) -> None:
        """Find clocks, watermarks and horizons as they stand after ``batch``."""
        rules, streams = self.rules, range(len(self.rules.reach))
        ended = [self.is_closed or rules.has_ended(s, self.batch) for s in streams]
        self.clocks = find_effective_clocks([c.time for c in self.ticking], ended, rules.idle)
        self.watermarks = find_watermarks(self.clocks, self.lateness, rules.timeless)
        self.horizons = find_horizons(self.clocks, self.lateness, rules.reach)

    def take_batch(self, batch: int, new: Sequence[Sequence[Tuple]]) -> list[Irregular]:
        """Advance by the tuples of a batch. Return the irregular ones."""
        limits = [find_late_limit(s, self.horizons, self.rules.reach) for s in range(len(new))]
        found: list[Irregular] = []
        for stream, tuples in enumerate(new):
            if stream in self.rules.timeless:
                continue
            timed = [t for t in tuples if t.time is not None and t.meets]
            early = self.ticking[stream].take_batch([t.time for t in timed])
            found += [
                Irregular(batch, "untimed", stream, t.id)
                for t in tuples
                if t.time is None and self.rules.needs_time(stream)
            ]
            limit = limits[stream]
            found += [
                Irregular(batch, "late", stream, t.id, limit - t.time)
                for t in timed
                if limit is not None and t.time < limit
            ]
            found += [Irregular(batch, "ahead", stream, t.id) for t in timed if t.time in early]
        self.batch = batch
        self.find_times()
        return found


def run_join(tuples: Sequence[Tuple], rules: JoinRules) -> Outcome:
    """Return the outcome of a join of these tuples."""
    run = _Run(rules)
    last = max([t.batch for t in tuples], default=-1)
    for batch in range(last + 1):
        run.take_batch([t for t in tuples if t.batch == batch])
    if rules.closes:
        run.end_all_streams()
    if run.has_ended and run.waiting:
        run.take_batch([])
    run.outcome.results = _list_written_rows(run.outcome, rules)
    return run.outcome


class _Run:
    def __init__(self, rules: JoinRules) -> None:
        self.rules, self.progress, self.outcome = rules, Progress(rules), Outcome()
        self.held: list[list[Tuple]] = [[] for _ in rules.reach]
        self.waiting: list[Tuple] = []
        self.matched: set[tuple[int, int]] = set()

    @property
    def has_ended(self) -> bool:
        """Whether all streams have ended."""
        return all(clock == END for clock in self.progress.clocks)

    def end_all_streams(self) -> None:
        """End all streams."""
        self.progress.is_closed = True
        self.progress.find_times()

    def take_batch(self, tuples: Sequence[Tuple]) -> None:
        """Answer the tuples that are final, then join the new ones."""
        batch, streams = self.progress.batch + 1, range(len(self.held))
        self._answer_final_tuples(batch)
        new = [[t for t in tuples if t.stream == s] for s in streams]
        able = [[t for t in each if _can_match(t, self.rules)] for each in new]
        pairs = [*_find_new_pairs(self.held, able, self.progress.horizons, self.rules)]
        self.outcome.pairs += [(batch, tuple(t.id for t in pair)) for pair in pairs]
        for stream in streams:
            self.held[stream] += able[stream]
            if stream in self.rules.preserved:
                self.waiting += able[stream]
                gone = [t for t in new[stream] if not _can_match(t, self.rules)]
                self.outcome.answers += [Answer(batch, stream, t.id, False) for t in gone]
        self.matched |= {(t.stream, t.id) for pair in pairs for t in pair}
        if self.rules.how != "semi":
            self._answer_matched_tuples(batch)
        self.outcome.irregular += self.progress.take_batch(batch, new)
        self.outcome.waiting.append(len(self.waiting))
        self.outcome.clocks.append(self.progress.clocks)
        self.outcome.watermarks.append(self.progress.watermarks)
        self.outcome.horizons.append(self.progress.horizons)

    def _answer_final_tuples(self, batch: int) -> None:
        if self.rules.how == "semi":
            self._answer_matched_tuples(batch)
        final = [t for t in self.waiting if _is_below(t, self.progress.horizons[t.stream])]
        final = [t for t in final if (t.stream, t.id) not in self.matched]
        self.outcome.answers += [Answer(batch, t.stream, t.id, False) for t in final]
        self.waiting = [t for t in self.waiting if t not in final]

    def _answer_matched_tuples(self, batch: int) -> None:
        found = [t for t in self.waiting if (t.stream, t.id) in self.matched]
        self.outcome.answers += [Answer(batch, t.stream, t.id, True) for t in found]
        self.waiting = [t for t in self.waiting if t not in found]


def _can_match(t: Tuple, rules: JoinRules) -> bool:
    return t.meets and (t.time is not None or not rules.needs_time(t.stream))


def _is_below(t: Tuple, horizon: Time) -> bool:
    """Return whether no tuple of a later batch can be in a pair with a stored one."""
    return horizon == END or (None not in (horizon, t.time) and t.time < horizon)


def _find_new_pairs(
    held: Sequence[Sequence[Tuple]],
    new: Sequence[Sequence[Tuple]],
    horizons: Sequence[Time],
    rules: JoinRules,
) -> Iterator[tuple[Tuple, ...]]:
    """Yield the pairs of a batch: each has a new tuple, and stored ones not below the horizon."""
    stored = [
        [t for t in each if not _is_below(t, horizon)]
        for each, horizon in zip(held, horizons, strict=True)
    ]
    for last in range(len(held)):
        sides = [
            [*stored[s], *new[s]] if s < last else new[s] if s == last else stored[s]
            for s in range(len(held))
        ]
        for pair in product(*sides):
            if _is_within_reach(pair, rules.reach) and rules.condition(*pair):
                yield pair


def _is_within_reach(pair: Sequence[Tuple], reach: Reach) -> bool:
    return all(
        most is None or pair[j].time - pair[i].time <= most
        for i, row in enumerate(reach)
        for j, most in enumerate(row)
        if i != j
    )


def _list_written_rows(
    outcome: Outcome, rules: JoinRules
) -> list[tuple[int, tuple[int | None, ...]]]:
    """Return the rows that the kind of a join writes, with their batches."""
    unmatched = [a for a in outcome.answers if not a.is_matched]
    if rules.how in ("semi", "anti"):
        matched = [a for a in outcome.answers if a.is_matched]
        return [(a.batch, (a.id,)) for a in (matched if rules.how == "semi" else unmatched)]
    streams = range(len(rules.reach))
    alone = [
        (a.batch, tuple(a.id if stream == a.stream else None for stream in streams))
        for a in unmatched
    ]
    return [*outcome.pairs, *alone]


def list_early_changes(
    outcome: Outcome, tuples: Sequence[Tuple], rules: JoinRules
) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the changes of early answers: the batch, the ids, and ``insert`` or ``delete``.

    A preserved tuple without a partner in its own batch is inserted then, and deleted in the batch of
    its first pair.
    """
    first: dict[tuple[int, int], int] = {}
    for batch, ids in outcome.pairs:
        for stream, id in enumerate(ids):
            first[stream, id] = min(batch, first.get((stream, id), batch))
    streams = range(1 if rules.how == "anti" else len(rules.reach))
    changes = []
    if rules.how != "anti":
        changes = [(batch, (*ids, "insert")) for batch, ids in outcome.pairs]
    for t in (t for t in tuples if t.stream in rules.preserved):
        ids = tuple(t.id if stream == t.stream else None for stream in streams)
        matched = first.get((t.stream, t.id))
        if matched != t.batch:
            changes.append((t.batch, (*ids, "insert")))
            changes += [] if matched is None else [(matched, (*ids, "delete"))]
    return changes
