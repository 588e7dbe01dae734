"""Canonical definitions of queries, of their parts and of operators, and containment between them.

Source: Seshadri 2008, section 3 (base conditions) and 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from braid.core.match_rules import MatchRule
from braid.papers.reuse.selections import EVERYTHING, Selection, implies_selection

Column = tuple[str, str]
"""The name of a stream and the name of a column."""

INNER = "inner"
"""The kind of joins in which all pairs are results, and nothing else."""
ASOF, ASOF_LEFT = "asof", "asof left"
"""The kinds of as-of joins; the second one also has rows without partners."""

UNBOUNDED = 1 << 55
"""The length of an unbounded window, in microseconds: 1141 years. It needs no special case."""


@dataclass(frozen=True, order=True)
class JoinCondition:
    """A conjunct over two or more streams.

    ``is_implied``: it follows from other conjuncts by transitivity.
    """

    text: str
    columns: frozenset[Column] = field(compare=False)
    is_implied: bool = field(default=False, compare=False)

    def __hash__(self) -> int:
        return hash(self.text)

    @cached_property
    def joined_streams(self) -> frozenset[str]:
        """The streams that the condition refers to."""
        return frozenset(stream for stream, _ in self.columns)

    def crosses(self, streams: frozenset[str]) -> bool:
        """Return whether the condition refers to these streams and to others."""
        return bool(self.joined_streams & streams) and not self.joined_streams <= streams


@dataclass(frozen=True)
class Definition:
    """The canonical definition of a query, of a part of one, or of an operator.

    Fields of tuple type have one entry for each stream, in the order of ``streams``.

    - ``streams``: sorted names.
    - ``joins``: join conditions, with those implied by equalities.
    - ``selections``: one selection for each stream.
    - ``windows``: the paper's RANGE, in microseconds.
    - ``columns``: columns of the result. The event time is always included.
    - ``slides``: the paper's SLIDE, in microseconds. Empty: each match is emitted when it happens.
      Several: results are emitted at each multiple of one of them.
    - ``groups``: grouping columns of an aggregate; None: no aggregate.
    - ``aggregates``: the aggregates, as text.
    - ``kind``: inner, left, full, semi, anti, asof or asof left. Join conditions of a kind
      that is not inner may be over a single stream: they decide whether its tuples have partners.
      A right join is a left join whose left stream is the other one.
    - ``left_stream``: the left stream of a kind that is not inner; empty: the kind is inner.
    - ``match``: the rule of an as-of join by event time, which its windows bound; None: it is none.
    """

    streams: tuple[str, ...]
    joins: frozenset[JoinCondition]
    selections: tuple[Selection, ...]
    windows: tuple[int, ...]
    columns: tuple[frozenset[str], ...]
    slides: frozenset[int] = frozenset()
    groups: frozenset[Column] | None = None
    aggregates: frozenset[str] = frozenset()
    kind: str = INNER
    left_stream: str = ""
    match: MatchRule | None = None

    @classmethod
    def make(
        cls,
        windows: Mapping[str, int],
        joins: Iterable[JoinCondition] = (),
        where: Mapping[str, Selection] | None = None,
        columns: Mapping[str, Iterable[str]] | None = None,
        slides: Iterable[int] = (),
    ) -> Definition:
        """Return a definition of the streams that have windows.

        A stream without a selection accepts every tuple; one without columns returns none.
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
        """The streams, join conditions and grouping, which the base conditions compare."""
        return self.streams, self.joins, self.groups

    @property
    def preserved_streams(self) -> tuple[str, ...]:
        """The streams whose tuples are answered once they are final, by partners or without."""
        if self.kind == INNER:
            return ()
        return self.streams if self.kind == "full" else (self.left_stream,)

    @property
    def history_spans(self) -> tuple[int, ...]:
        """By stream, how long tuples must be retained for an operator that is built later.

        Whether a tuple that waits for partners has had some follows from older tuples.
        """
        spans = dict(zip(self.streams, self.windows, strict=True))
        preserved = self.preserved_streams
        return tuple(
            window + max((spans[p] for p in preserved if p != stream), default=0)
            for stream, window in spans.items()
        )

    def stream_index(self, stream: str) -> int:
        """Return the index of a stream in ``streams``."""
        return self.streams.index(stream)

    def restrict_to(self, streams: Iterable[str]) -> Definition:
        """Return the part over some streams, with the columns that the rest needs.

        One operator may compute the part for another that computes the whole.
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
        """Return, by stream, the columns that join these streams with the others."""
        return join_columns(j for j in self.joins if not j.is_implied and j.crosses(streams))

    @cached_property
    def is_connected(self) -> bool:
        """Whether the join conditions connect all streams."""
        reached, grown = {self.streams[0]}, True
        while grown:
            touched = [j.joined_streams for j in self.joins if j.joined_streams & reached]
            more = reached.union(*touched)
            grown, reached = len(more) > len(reached), more
        return len(reached) == len(self.streams)


def join_columns(joins: Iterable[JoinCondition]) -> dict[str, frozenset[str]]:
    """Return, by stream, the columns that join conditions read."""
    by_stream: dict[str, set[str]] = {}
    for join in joins:
        for stream, column in join.columns:
            by_stream.setdefault(stream, set()).add(column)
    return {stream: frozenset(columns) for stream, columns in by_stream.items()}


def union_slides(slides: Iterable[int]) -> frozenset[int]:
    """Return the slides for "at a multiple of any of these", without multiples of others.

    Source: section 3.1, step 4.

    >>> sorted(union_slides([60, 300, 90]))
    [60, 90]
    """
    distinct = frozenset(slides)
    return frozenset(s for s in distinct if not any(s % t == 0 and s != t for t in distinct))


def slides_contain(slides: frozenset[int], others: frozenset[int]) -> bool:
    """Return whether every multiple of ``others`` is a multiple of ``slides``. Empty: all times."""
    if not slides or not others:
        return not slides
    return all(any(other % s == 0 for s in slides) for other in others)


def may_reuse(existing: Definition, wanted: Definition) -> bool:
    """Return whether the base conditions of section 3 hold.

    They require the same streams, the same join conditions, and groups that contain the wanted
    ones. Braid is weaker in one respect: the wanted definition may have further join conditions,
    which are checked on the results. A join that is not inner is reused as it is: whether a tuple
    has a partner depends on all conditions.
    """
    if not existing.kind == wanted.kind == INNER:
        return existing == replace(wanted, columns=existing.columns)
    if existing.streams != wanted.streams or not existing.joins <= wanted.joins:
        return False
    if existing.groups is None:
        return True
    return wanted.groups is not None and wanted.groups <= existing.groups


@dataclass(frozen=True)
class Compensation:
    """The operations that turn results of an operator into those of a query (section 3.1).

    They are simple selections, a temporal filter and a projection. ``where`` and ``windows`` have
    one entry for each stream; None: no operation.
    """

    where: tuple[Selection | None, ...]
    joins: frozenset[JoinCondition]
    windows: tuple[int | None, ...]
    slides: frozenset[int]
    columns: tuple[frozenset[str], ...]

    @property
    def required_columns(self) -> tuple[frozenset[str], ...]:
        """The columns by stream that results must have: returned ones, and those of conditions."""
        return self._cached_required_columns

    @cached_property
    def _cached_required_columns(self) -> tuple[frozenset[str], ...]:
        read = [frozenset() if s is None else s.referenced_columns for s in self.where]
        return tuple(a | b for a, b in zip(self.columns, read, strict=True))


def make_compensation(existing: Definition, wanted: Definition) -> Compensation:
    """Return the compensation that computes the wanted results from existing ones."""
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
    """Return whether a compensation alone computes the wanted results from existing ones.

    Above an aggregate, a window cannot be compensated, nor a selection on other columns than the
    groups. The paper's base condition does not mention this.
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
