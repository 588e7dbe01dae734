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

from braid.condition.functions import Function
from braid.core.columns import TIME


class PredicateError(ValueError):
    """The condition is refused; the message says what was found and what is accepted."""


@dataclass(frozen=True)
class Link:
    """``lo <= left - right <= hi`` between key columns of two streams (indices, left < right in
    stream order).

    ``strict`` says which of the two bounds are open (floats only: integers are closed by
    construction). An inexact link finds a superset (text by its hash, floats with rounding); a
    residual then decides.
    """

    left: tuple[int, str]
    right: tuple[int, str]
    lo: float
    hi: float
    strict: tuple[bool, bool] = (False, False)
    exact: bool = True

    @property
    def rank(self) -> int:
        """0 for equality, 1 for a band or a window, 2 for one open side."""
        return (
            0
            if self.lo == self.hi and self.left[1] != TIME
            else 1
            if -inf < self.lo and self.hi < inf
            else 2
        )


@dataclass(frozen=True)
class Measure:
    """What a function of vectors or sets says of two streams' columns: (stream, column) pairs."""

    function: Function
    left: tuple[int, str]
    right: tuple[int, str]


@dataclass(frozen=True)
class Residual:
    """DuckDB SQL over columns named "alias.column"; ``columns`` are the (stream, column) pairs that
    it reads. What it says of vectors is calculated beforehand: the columns "0", "1", ... of its SQL
    are the ``measures``. Where all that it says is that two columns of text or bytes are equal,
    these are ``same``.
    """

    sql: str
    streams: frozenset[int]
    columns: tuple[tuple[int, str], ...]
    measures: tuple[Measure, ...] = ()
    same: tuple[tuple[int, str], tuple[int, str]] | None = None
    fallible: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Common:
    """The sets in two columns, (stream, column) pairs of different streams, have ``least`` elements
    in common or more. ``decides`` is the residual that says no more than this; None where one has
    to be asked besides.
    """

    left: tuple[int, str]
    right: tuple[int, str]
    least: int
    decides: Residual | None = None


@dataclass(frozen=True)
class Guard:
    """A sum of keys that Spark computes in a type which holds no less than ``low`` and no more than
    ``high``; a pair whose sum is out of them fails the run, with ``text``.

    ``ends`` are (stream, key column, factor); ``link`` are the ends of the link that was made of
    the comparison with the sum.
    """

    ends: tuple[tuple[int, str, int], ...]
    low: int
    high: int
    text: str
    link: tuple[tuple[int, str], tuple[int, str]]

    @property
    def streams(self) -> set[int]:
        """The streams whose pairs Spark computes the sum of."""
        return {self.link[0][0], self.link[1][0]}


@dataclass(frozen=True)
class Danger:
    """Which pairs Spark computes a guarded sum of: those that the ``index`` finds (None: all), and
    that the ``links`` and the step's residuals admit. The link of the sum itself is not among them.
    """

    guard: Guard
    index: Link | Common | None
    links: tuple[Link, ...]


@dataclass(frozen=True)
class Step:
    """How a partial result meets one more stream: ``index`` finds candidates (None: all pairs), the
    rest is checked. ``dangers`` are the sums that may leave their types on the way.
    """

    stream: int
    index: Link | Common | None
    links: tuple[Link, ...]
    residuals: tuple[Residual, ...]
    dangers: tuple[Danger, ...] = ()


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
    keys: tuple[dict[str, str], ...]
    computed: tuple[dict[str, str], ...]
    links: tuple[Link, ...]
    residuals: tuple[Residual, ...]
    equality: tuple[str, ...] | None = None
    commons: tuple[Common, ...] = ()
    guards: tuple[Guard, ...] = ()

    def step(self, visited: frozenset[int], stream: int) -> Step:
        """The step from the visited streams to the next: the most selective kind of link is the
        index.
        """
        ends = [
            k
            for k in self.links
            if stream in (k.left[0], k.right[0]) and {k.left[0], k.right[0]} <= visited | {stream}
        ]
        ends.sort(key=lambda k: k.rank)
        residuals = tuple(
            r for r in self.residuals if stream in r.streams and r.streams <= visited | {stream}
        )
        common = self._common(visited, stream)
        if common is not None and not (ends and ends[0].rank == 0):
            left = tuple(r for r in residuals if r != common.decides)
            links = tuple(k for k in ends if k.exact)
            return Step(stream, common, links, left, self._dangers(visited, stream, common, links))
        index = ends[0] if ends else None
        links = tuple(k for k in ends[1:] if k.exact)
        dangers = self._dangers(visited, stream, index, links)
        return Step(stream, index, links, residuals, dangers)

    def _dangers(
        self,
        visited: frozenset[int],
        stream: int,
        index: Link | Common | None,
        links: Sequence[Link],
    ) -> tuple[Danger, ...]:
        """The guarded sums of a step whose candidates the index finds and the links admit."""
        dangers = []
        for guard in self.guards:
            if stream in guard.streams and guard.streams <= visited | {stream}:
                finder = None if (index and (index.left, index.right) == guard.link) else index
                others = tuple(k for k in links if (k.left, k.right) != guard.link)
                dangers.append(Danger(guard, finder, others))
        return tuple(dangers)

    def _common(self, visited: frozenset[int], stream: int) -> Common | None:
        """The sets that find most: those that must have most in common."""
        known = [
            c
            for c in self.commons
            if stream in (c.left[0], c.right[0]) and {c.left[0], c.right[0]} <= visited | {stream}
        ]
        return max(known, key=lambda c: c.least, default=None)

    def indexes(self, stream: int) -> tuple[str, ...]:
        """Key columns by which a probe may enter a block of the stream; blocks are sorted by the
        first.
        """
        best: dict[int, Link] = {}
        for link in sorted(self.links, key=lambda k: k.rank):
            if stream in (link.left[0], link.right[0]):
                other = link.left[0] if link.right[0] == stream else link.right[0]
                best.setdefault(other, link)
        ordered = sorted(best.values(), key=lambda k: k.rank)
        names = [k.right[1] if k.right[0] == stream else k.left[1] for k in ordered]
        return tuple(dict.fromkeys(names)) or (TIME,)


def windowed(predicate: Predicate, windows: Sequence[int | None]) -> Predicate:
    """The condition and the window condition; ``windows`` as for ``window_links``."""
    return replace(predicate, links=predicate.links + window_links(windows))


def window_links(windows: Sequence[int | None]) -> tuple[Link, ...]:
    """The window condition as links on event time: T - T_i < W_i for all i is t_j - t_i < W_i for
    every pair (i, j).

    ``windows`` are W_i in microseconds by stream, None for full history.
    """
    links = []
    longest = [inf if window is None else window - 1 for window in windows]
    for i, j in combinations(range(len(windows)), 2):
        lo, hi = -longest[i], longest[j]
        if (lo, hi) != (-inf, inf):
            links.append(Link((i, TIME), (j, TIME), lo, hi))
    return tuple(links)
