"""What a query, a part of one, or an operator computes, in a canonical form, and when one of them
holds another.

Source: Seshadri 2008, section 3 (base conditions) and 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from braid.papers.reuse.selections import EVERYTHING, Selection, implies_selection

Column = tuple[str, str]
"""A stream's name and a column's."""

UNBOUNDED = 1 << 55
"""A window without an end, in microseconds: 1141 years, so that none is a special case."""


@dataclass(frozen=True, order=True)
class JoinCondition:
    """A conjunct over two or more streams. ``implied``: it follows from others by transitivity."""

    text: str
    columns: frozenset[Column] = field(compare=False)
    is_implied: bool = field(default=False, compare=False)

    def __hash__(self) -> int:
        return hash(self.text)

    @cached_property
    def joined_streams(self) -> frozenset[str]:
        """The streams that it is about."""
        return frozenset(stream for stream, _ in self.columns)

    def crosses(self, streams: frozenset[str]) -> bool:
        """Whether it is about these streams and others."""
        return bool(self.joined_streams & streams) and not self.joined_streams <= streams


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
    joins: frozenset[JoinCondition]
    selections: tuple[Selection, ...]
    windows: tuple[int, ...]
    columns: tuple[frozenset[str], ...]
    slides: frozenset[int] = frozenset()
    groups: frozenset[Column] | None = None
    aggregates: frozenset[str] = frozenset()

    @classmethod
    def make(
        cls,
        windows: Mapping[str, int],
        joins: Iterable[JoinCondition] = (),
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
            union_slides(slides),
        )

    @cached_property
    def _cached_hash(self) -> int:
        return hash(
            (self.joins, self.selections, self.windows, self.columns, self.slides, self.groups)
        )

    def __hash__(self) -> int:
        return self._cached_hash

    @cached_property
    def base_conditions(
        self,
    ) -> tuple[tuple[str, ...], frozenset[JoinCondition], frozenset[Column] | None]:
        """What the base conditions are about: streams, join conditions, grouping."""
        return self.streams, self.joins, self.groups

    def stream_index(self, stream: str) -> int:
        """Where the stream stands among ``streams``."""
        return self.streams.index(stream)

    def restrict_to(self, streams: Iterable[str]) -> Definition:
        """What of this is about some of the streams alone, with the columns that the rest needs:
        an operator may compute it for one that computes all.
        """
        chosen = frozenset(streams)
        if len(chosen) == len(self.streams):
            return self
        if chosen not in self._restriction_cache:
            self._restriction_cache[chosen] = self._restrict_to_streams(chosen)
        return self._restriction_cache[chosen]

    @cached_property
    def _restriction_cache(self) -> dict[frozenset[str], Definition]:
        return {}

    def _restrict_to_streams(self, chosen: frozenset[str]) -> Definition:
        places = [i for i, s in enumerate(self.streams) if s in chosen]
        needed = self.crossing_columns(chosen)
        return Definition(
            tuple(self.streams[i] for i in places),
            frozenset(j for j in self.joins if j.joined_streams <= chosen),
            tuple(self.selections[i] for i in places),
            tuple(self.windows[i] for i in places),
            tuple(self.columns[i] | needed.get(self.streams[i], frozenset()) for i in places),
        )

    def crossing_columns(self, streams: frozenset[str]) -> dict[str, frozenset[str]]:
        """By stream, the columns on which these streams are joined with the others."""
        return join_columns(j for j in self.joins if not j.is_implied and j.crosses(streams))

    @cached_property
    def is_connected(self) -> bool:
        """Whether the joins link all streams."""
        reached, grown = {self.streams[0]}, True
        while grown:
            touched = [j.joined_streams for j in self.joins if j.joined_streams & reached]
            more = reached.union(*touched)
            grown, reached = len(more) > len(reached), more
        return len(reached) == len(self.streams)


def join_columns(joins: Iterable[JoinCondition]) -> dict[str, frozenset[str]]:
    """By stream, the columns that join conditions read."""
    found: dict[str, set[str]] = {}
    for join in joins:
        for stream, column in join.columns:
            found.setdefault(stream, set()).add(column)
    return {stream: frozenset(columns) for stream, columns in found.items()}


def union_slides(slides: Iterable[int]) -> frozenset[int]:
    """A slide for "at a multiple of one of these": those that others divide say nothing new.

    Section 3.1, step 4.

    >>> sorted(ored([60, 300, 90]))
    [60, 90]
    """
    found = frozenset(slides)
    return frozenset(s for s in found if not any(s % t == 0 and s != t for t in found))


def slides_contain(slides: frozenset[int], others: frozenset[int]) -> bool:
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
    joins: frozenset[JoinCondition]
    windows: tuple[int | None, ...]
    slides: frozenset[int]
    columns: tuple[frozenset[str], ...]

    @property
    def required_columns(self) -> tuple[frozenset[str], ...]:
        """By stream the columns that the results must have: those that are told and those that
        conditions read.
        """
        return self._cached_required_columns

    @cached_property
    def _cached_required_columns(self) -> tuple[frozenset[str], ...]:
        read = [frozenset() if s is None else s.referenced_columns for s in self.where]
        return tuple(a | b for a, b in zip(self.columns, read, strict=True))


def make_compensation(existing: Definition, wanted: Definition) -> Compensation:
    """The compensation that makes the wanted results of existing ones."""
    extra = wanted.joins - existing.joins
    inner = join_columns(j for j in extra if not j.is_implied)
    return Compensation(
        tuple(
            None if p == q else p
            for p, q in zip(wanted.selections, existing.selections, strict=True)
        ),
        extra,
        tuple(None if w == v else w for w, v in zip(wanted.windows, existing.windows, strict=True)),
        wanted.slides if wanted.slides != existing.slides else frozenset(),
        tuple(
            c | inner.get(s, frozenset())
            for s, c in zip(wanted.streams, wanted.columns, strict=True)
        ),
    )


def can_serve(existing: Definition, wanted: Definition) -> bool:
    """Whether the wanted results can be had of the existing ones by a compensation alone.

    Above an aggregate neither windows nor selections on other columns than its groups can be
    compensated; the paper's base condition is silent on that.
    """
    if not may_reuse(existing, wanted) or not slides_contain(existing.slides, wanted.slides):
        return False
    if any(w > v for w, v in zip(wanted.windows, existing.windows, strict=True)):
        return False
    if not all(
        implies_selection(p, q) for p, q in zip(wanted.selections, existing.selections, strict=True)
    ):
        return False
    needed = make_compensation(existing, wanted).required_columns
    if not all(n <= c for n, c in zip(needed, existing.columns, strict=True)):
        return False
    return existing.groups is None or _can_serve_aggregate(existing, wanted)


def _can_serve_aggregate(existing: Definition, wanted: Definition) -> bool:
    same = existing.windows == wanted.windows and existing.joins == wanted.joins
    return (
        same
        and wanted.aggregates <= existing.aggregates
        and all(
            p == q or {(s, c) for c in p.referenced_columns} <= (existing.groups or frozenset())
            for s, p, q in zip(wanted.streams, wanted.selections, existing.selections, strict=True)
        )
    )
