"""A join condition in pieces: what one stream decides alone, what an index finds, what is left to
check on pairs.

Every conjunct of the condition is one of

- a *filter*, when it names one stream: Spark applies it before a tuple is routed;
- a *link*, when it compares a number of one stream with a number of another: ``lo <= left - right
  <= hi``. Equality, bands, BETWEEN and inequalities are links, over integers, floats, decimals,
  dates and timestamps. Spark computes the numbers (*keys*), blocks are sorted by them, and a probe
  is two binary searches;
- a *residual* for the rest, evaluated by DuckDB on candidate pairs only. What it needs of one
  stream alone is computed by Spark beforehand, so that DuckDB does no more than compare and
  calculate. Functions of two vectors are left to NumPy.

NULL never matches: a tuple whose key is NULL takes no part in the join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf

from braid.condition.vector_functions import Function
from braid.core.reserved_columns import TIME


class PredicateError(ValueError):
    """The condition is refused; the message says what was found and what is accepted."""


@dataclass(frozen=True)
class IndexCondition:
    """``lo <= left - right <= hi`` between key columns of two streams (indices, left < right in
    stream order).

    ``strict`` says which of the two bounds are open (floats only: integers are closed by
    construction). An inexact link finds a superset (text by its hash, floats with rounding); a
    residual then decides.
    """

    left: tuple[int, str]
    right: tuple[int, str]
    lower: float
    upper: float
    is_strict: tuple[bool, bool] = (False, False)
    is_exact: bool = True

    @property
    def cost_rank(self) -> int:
        """0 for equality, 1 for a band or a window, 2 for one open side."""
        return (
            0
            if self.lower == self.upper and self.left[1] != TIME
            else 1
            if -inf < self.lower and self.upper < inf
            else 2
        )


@dataclass(frozen=True)
class Measure:
    """What a function of vectors or sets says of two streams' columns: (stream, column) pairs."""

    function: Function
    left: tuple[int, str]
    right: tuple[int, str]


@dataclass(frozen=True)
class ResidualPredicate:
    """DuckDB SQL over columns named "alias.column"; ``columns`` are the (stream, column) pairs that
    it reads. What it says of vectors is calculated beforehand: the columns "0", "1", ... of its SQL
    are the ``measures``. Where all that it says is that two columns of text or bytes are equal,
    these are ``same``.
    """

    sql: str
    streams: frozenset[int]
    columns: tuple[tuple[int, str], ...]
    measures: tuple[Measure, ...] = ()
    is_symmetric: tuple[tuple[int, str], tuple[int, str]] | None = None
    can_fail: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class CommonElements:
    """The sets in two columns, (stream, column) pairs of different streams, have ``least`` elements
    in common or more. ``decides`` is the residual that says no more than this; None where one has
    to be asked besides.
    """

    left: tuple[int, str]
    right: tuple[int, str]
    min_elements: int
    is_exact: ResidualPredicate | None = None


@dataclass(frozen=True)
class OverflowGuard:
    """A sum of keys that Spark computes in a type which holds no less than ``low`` and no more than
    ``high``; a pair whose sum is out of them fails the run, with ``text``.

    ``ends`` are (stream, key column, factor); ``link`` are the ends of the link that was made of
    the comparison with the sum.
    """

    weighted_columns: tuple[tuple[int, str, int], ...]
    lower_limit: int
    upper_limit: int
    sentence: str
    link: tuple[tuple[int, str], tuple[int, str]]

    @property
    def guarded_streams(self) -> set[int]:
        """The streams whose pairs Spark computes the sum of."""
        return {self.link[0][0], self.link[1][0]}


@dataclass(frozen=True)
class GuardedStep:
    """Which pairs Spark computes a guarded sum of: those that the ``index`` finds (None: all), and
    that the ``links`` and the step's residuals admit. The link of the sum itself is not among them.
    """

    guard: OverflowGuard
    index: IndexCondition | CommonElements | None
    required_links: tuple[IndexCondition, ...]


@dataclass(frozen=True)
class ProbeStep:
    """How a partial result meets one more stream: ``index`` finds candidates (None: all pairs), the
    rest is checked. ``dangers`` are the sums that may leave their types on the way.
    """

    stream: int
    index_condition: IndexCondition | CommonElements | None
    conditions: tuple[IndexCondition, ...]
    residuals: tuple[ResidualPredicate, ...]
    guarded_steps: tuple[GuardedStep, ...] = ()


@dataclass(frozen=True)
class Predicate:
    """The condition in pieces. ``keys`` maps, by stream, the names of key columns to their Spark
    SQL over that stream; ``computed`` likewise what residuals read (it may be NULL). ``commons``
    are what sets must have in common, which an inverted index finds pairs by; ``guards`` the sums
    that links took apart.

    ``equality`` lists, by stream, the Spark SQL of the one key that an equality links over all
    streams, or None.
    """

    aliases: tuple[str, ...]
    filters: tuple[str | None, ...]
    key_columns: tuple[dict[str, str], ...]
    computed_columns: tuple[dict[str, str], ...]
    index_conditions: tuple[IndexCondition, ...]
    residuals: tuple[ResidualPredicate, ...]
    equality: tuple[str, ...] | None = None
    common_elements: tuple[CommonElements, ...] = ()
    guards: tuple[OverflowGuard, ...] = ()

    def next_step(self, visited: frozenset[int], stream: int) -> ProbeStep:
        """The step from the visited streams to the next: the most selective kind of link is the
        index.
        """
        ends = [
            k
            for k in self.index_conditions
            if stream in (k.left[0], k.right[0]) and {k.left[0], k.right[0]} <= visited | {stream}
        ]
        ends.sort(key=lambda k: k.cost_rank)
        residuals = tuple(
            r for r in self.residuals if stream in r.streams and r.streams <= visited | {stream}
        )
        common = self._choose_common_elements(visited, stream)
        if common is not None and not (ends and ends[0].cost_rank == 0):
            left = tuple(r for r in residuals if r != common.is_exact)
            links = tuple(k for k in ends if k.is_exact)
            return ProbeStep(
                stream, common, links, left, self._guard_step(visited, stream, common, links)
            )
        index = ends[0] if ends else None
        links = tuple(k for k in ends[1:] if k.is_exact)
        dangers = self._guard_step(visited, stream, index, links)
        return ProbeStep(stream, index, links, residuals, dangers)

    def _guard_step(
        self,
        visited: frozenset[int],
        stream: int,
        index: IndexCondition | CommonElements | None,
        links: Sequence[IndexCondition],
    ) -> tuple[GuardedStep, ...]:
        """The guarded sums of a step whose candidates the index finds and the links admit."""
        dangers = []
        for guard in self.guards:
            if stream in guard.guarded_streams and guard.guarded_streams <= visited | {stream}:
                finder = None if (index and (index.left, index.right) == guard.link) else index
                others = tuple(k for k in links if (k.left, k.right) != guard.link)
                dangers.append(GuardedStep(guard, finder, others))
        return tuple(dangers)

    def _choose_common_elements(
        self, visited: frozenset[int], stream: int
    ) -> CommonElements | None:
        """The sets that find most: those that must have most in common."""
        known = [
            c
            for c in self.common_elements
            if stream in (c.left[0], c.right[0]) and {c.left[0], c.right[0]} <= visited | {stream}
        ]
        return max(known, key=lambda c: c.min_elements, default=None)

    def index_columns(self, stream: int) -> tuple[str, ...]:
        """Key columns by which a probe may enter a block of the stream; blocks are sorted by the
        first.
        """
        best: dict[int, IndexCondition] = {}
        for link in sorted(self.index_conditions, key=lambda k: k.cost_rank):
            if stream in (link.left[0], link.right[0]):
                other = link.left[0] if link.right[0] == stream else link.right[0]
                best.setdefault(other, link)
        ordered = sorted(best.values(), key=lambda k: k.cost_rank)
        names = [k.right[1] if k.right[0] == stream else k.left[1] for k in ordered]
        return tuple(dict.fromkeys(names)) or (TIME,)


def with_windows(predicate: Predicate, windows: Sequence[int | None]) -> Predicate:
    """The condition and the window condition; ``windows`` as for ``window_links``."""
    return replace(
        predicate, index_conditions=predicate.index_conditions + window_conditions(windows)
    )


def window_conditions(windows: Sequence[int | None]) -> tuple[IndexCondition, ...]:
    """The window condition as links on event time: T - T_i < W_i for all i is t_j - t_i < W_i for
    every pair (i, j).

    ``windows`` are W_i in microseconds by stream, None for full history.
    """
    links = []
    longest = [inf if window is None else window - 1 for window in windows]
    for i, j in combinations(range(len(windows)), 2):
        lo, hi = -longest[i], longest[j]
        if (lo, hi) != (-inf, inf):
            links.append(IndexCondition((i, TIME), (j, TIME), lo, hi))
    return tuple(links)
