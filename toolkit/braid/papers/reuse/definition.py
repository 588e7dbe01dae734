"""What a query, a part of one, or an operator computes, in a canonical form, and when one of them
holds another.

Source: Seshadri 2008, section 3 (base conditions) and 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from braid.papers.reuse.selections import EVERYTHING, Selection, implies

Column = tuple[str, str]
"""A stream's name and a column's."""

UNBOUNDED = 1 << 55
"""A window without an end, in microseconds: 1141 years, so that none is a special case."""


@dataclass(frozen=True, order=True)
class Join:
    """A conjunct over two or more streams. ``implied``: it follows from others by transitivity."""

    text: str
    columns: frozenset[Column] = field(compare=False)
    implied: bool = field(default=False, compare=False)

    def __hash__(self) -> int:
        return hash(self.text)

    @cached_property
    def streams(self) -> frozenset[str]:
        """The streams that it is about."""
        return frozenset(stream for stream, _ in self.columns)

    def across(self, streams: frozenset[str]) -> bool:
        """Whether it is about these streams and others."""
        return bool(self.streams & streams) and not self.streams <= streams


@dataclass(frozen=True)
class Definition:
    """What is computed of some streams. ``where``, ``windows`` and ``columns`` are by stream, in
    the order of ``streams``, which are sorted.

    ``joins`` are closed: what follows from equalities is there too. ``windows`` are the paper's
    RANGE and ``slides`` its SLIDE, in microseconds. No slide: every match when it happens. Several:
    at each time that one of them divides. ``columns`` are those of the result; the event time
    is always there. ``groups`` are the columns of an aggregate; None: there is none.
    """

    streams: tuple[str, ...]
    joins: frozenset[Join]
    where: tuple[Selection, ...]
    windows: tuple[int, ...]
    columns: tuple[frozenset[str], ...]
    slides: frozenset[int] = frozenset()
    groups: frozenset[Column] | None = None
    aggregates: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        windows: Mapping[str, int],
        joins: Iterable[Join] = (),
        where: Mapping[str, Selection] | None = None,
        columns: Mapping[str, Iterable[str]] | None = None,
        slides: Iterable[int] = (),
    ) -> Definition:
        """A definition of the streams that have windows; what is left out selects everything, and
        no column.
        """
        streams = tuple(sorted(windows))
        return cls(
            streams,
            frozenset(joins),
            tuple((where or {}).get(s, EVERYTHING) for s in streams),
            tuple(windows[s] for s in streams),
            tuple(frozenset((columns or {}).get(s, ())) for s in streams),
            ored(slides),
        )

    @cached_property
    def _hash(self) -> int:
        return hash((self.joins, self.where, self.windows, self.columns, self.slides, self.groups))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def base(self) -> tuple[tuple[str, ...], frozenset[Join], frozenset[Column] | None]:
        """What the base conditions are about: streams, join conditions, grouping."""
        return self.streams, self.joins, self.groups

    def place(self, stream: str) -> int:
        """Where the stream stands among ``streams``."""
        return self.streams.index(stream)

    def part(self, streams: Iterable[str]) -> Definition:
        """What of this is about some of the streams alone, with the columns that the rest needs:
        an operator may compute it for one that computes all.
        """
        chosen = frozenset(streams)
        if len(chosen) == len(self.streams):
            return self
        if chosen not in self._parts:
            self._parts[chosen] = self._part(chosen)
        return self._parts[chosen]

    @cached_property
    def _parts(self) -> dict[frozenset[str], Definition]:
        return {}

    def _part(self, chosen: frozenset[str]) -> Definition:
        places = [i for i, s in enumerate(self.streams) if s in chosen]
        needed = self.crossing(chosen)
        return Definition(
            tuple(self.streams[i] for i in places),
            frozenset(j for j in self.joins if j.streams <= chosen),
            tuple(self.where[i] for i in places),
            tuple(self.windows[i] for i in places),
            tuple(self.columns[i] | needed.get(self.streams[i], frozenset()) for i in places),
        )

    def crossing(self, streams: frozenset[str]) -> dict[str, frozenset[str]]:
        """By stream, the columns on which these streams are joined with the others."""
        return columns_of(j for j in self.joins if not j.implied and j.across(streams))

    @cached_property
    def connected(self) -> bool:
        """Whether the joins link all streams."""
        reached, grown = {self.streams[0]}, True
        while grown:
            touched = [j.streams for j in self.joins if j.streams & reached]
            more = reached.union(*touched)
            grown, reached = len(more) > len(reached), more
        return len(reached) == len(self.streams)


def columns_of(joins: Iterable[Join]) -> dict[str, frozenset[str]]:
    """By stream, the columns that join conditions read."""
    found: dict[str, set[str]] = {}
    for join in joins:
        for stream, column in join.columns:
            found.setdefault(stream, set()).add(column)
    return {stream: frozenset(columns) for stream, columns in found.items()}


def ored(slides: Iterable[int]) -> frozenset[int]:
    """A slide for "at a multiple of one of these": those that others divide say nothing new.

    Section 3.1, step 4.

    >>> sorted(ored([60, 300, 90]))
    [60, 90]
    """
    found = frozenset(slides)
    return frozenset(s for s in found if not any(s % t == 0 and s != t for t in found))


def slides_hold(slides: frozenset[int], others: frozenset[int]) -> bool:
    """Whether at these times all is told that is told at the others. No slide: at all times."""
    if not slides or not others:
        return not slides
    return all(any(other % s == 0 for s in slides) for other in others)


def may_reuse(existing: Definition, wanted: Definition) -> bool:
    """The base conditions of section 3: the same streams, the same join conditions, and groups
    that hold those that are wanted.

    Ours is weaker in one thing: what the wanted one joins on besides can be checked on results.
    """
    if existing.streams != wanted.streams or not existing.joins <= wanted.joins:
        return False
    if existing.groups is None:
        return True
    return wanted.groups is not None and wanted.groups <= existing.groups


@dataclass(frozen=True)
class Compensation:
    """What makes one of an operator's results those of a query: simple selections, a temporal
    filter, a projection (section 3.1). ``where`` and ``windows`` are by stream; None: nothing.
    """

    where: tuple[Selection | None, ...]
    joins: frozenset[Join]
    windows: tuple[int | None, ...]
    slides: frozenset[int]
    columns: tuple[frozenset[str], ...]

    @property
    def needed(self) -> tuple[frozenset[str], ...]:
        """By stream the columns that the results must have: those that are told and those that
        conditions read.
        """
        return self._needed

    @cached_property
    def _needed(self) -> tuple[frozenset[str], ...]:
        read = [frozenset() if s is None else s.columns for s in self.where]
        return tuple(a | b for a, b in zip(self.columns, read, strict=True))


def compensation(existing: Definition, wanted: Definition) -> Compensation:
    """The compensation that makes the wanted results of existing ones."""
    extra = wanted.joins - existing.joins
    inner = columns_of(j for j in extra if not j.implied)
    return Compensation(
        tuple(None if p == q else p for p, q in zip(wanted.where, existing.where, strict=True)),
        extra,
        tuple(None if w == v else w for w, v in zip(wanted.windows, existing.windows, strict=True)),
        wanted.slides if wanted.slides != existing.slides else frozenset(),
        tuple(
            c | inner.get(s, frozenset())
            for s, c in zip(wanted.streams, wanted.columns, strict=True)
        ),
    )


def holds(existing: Definition, wanted: Definition) -> bool:
    """Whether the wanted results can be had of the existing ones by a compensation alone.

    Above an aggregate neither windows nor selections on other columns than its groups can be
    compensated; the paper's base condition is silent on that.
    """
    if not may_reuse(existing, wanted) or not slides_hold(existing.slides, wanted.slides):
        return False
    if any(w > v for w, v in zip(wanted.windows, existing.windows, strict=True)):
        return False
    if not all(implies(p, q) for p, q in zip(wanted.where, existing.where, strict=True)):
        return False
    needed = compensation(existing, wanted).needed
    if not all(n <= c for n, c in zip(needed, existing.columns, strict=True)):
        return False
    return existing.groups is None or _above_aggregate(existing, wanted)


def _above_aggregate(existing: Definition, wanted: Definition) -> bool:
    same = existing.windows == wanted.windows and existing.joins == wanted.joins
    return (
        same
        and wanted.aggregates <= existing.aggregates
        and all(
            p == q or {(s, c) for c in p.columns} <= (existing.groups or frozenset())
            for s, p, q in zip(wanted.streams, wanted.where, existing.where, strict=True)
        )
    )
