"""A parsed join condition: filters, index conditions, and residuals.

Every conjunct of the condition is one of the following.

- A *filter* names one stream. Spark applies it before a tuple is routed.
- An *index condition* compares a number of one stream with a number of another: ``lower <= left -
  right <= upper``. Equality, bands, BETWEEN and inequalities are index conditions, over integers,
  floats, decimals, dates and timestamps. Spark computes the numbers (*keys*), blocks are sorted by
  them, and a probe is two binary searches.
- A *residual* is any other conjunct. DuckDB evaluates it on candidate pairs. Spark computes its
  parts over one stream in advance, so that DuckDB only compares and calculates. NumPy evaluates
  functions of two vectors.

NULL never matches: a tuple whose key is NULL does not take part in the join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf
from typing import Literal, get_args

from braid.core.reserved_columns import TIME

VectorFunction = Literal["vector_l2_distance", "vector_inner_product", "vector_cosine_similarity"]
Function = VectorFunction | Literal["set_overlap", "set_inner"]
FUNCTIONS: dict[str, Function] = {name: name for name in get_args(VectorFunction)}


@dataclass(frozen=True)
class IndexCondition:
    """The condition ``lower <= left - right <= upper`` between key columns of two streams.

    - ``left``, ``right``: (stream index, key column); the left stream comes first.
    - ``lower``, ``upper``: bounds; infinite: unbounded.
    - ``open_bounds``: whether each bound is open. Floats only; bounds of integers are closed.
    - ``is_exact``: whether it admits matches only. If not (text by its hash, rounded floats), it
      finds a superset, and a residual decides.
    """

    left: tuple[int, str]
    right: tuple[int, str]
    lower: float
    upper: float
    open_bounds: tuple[bool, bool] = (False, False)
    is_exact: bool = True

    @property
    def cost_rank(self) -> int:
        """0 for an equality, 1 for a band or a window, 2 for one open side."""
        return (
            0
            if self.lower == self.upper and self.left[1] != TIME
            else 1
            if -inf < self.lower and self.upper < inf
            else 2
        )


@dataclass(frozen=True)
class Measure:
    """A function of vectors or sets, applied to two streams' (stream, column)."""

    function: Function
    left: tuple[int, str]
    right: tuple[int, str]


@dataclass(frozen=True)
class FallibleExpression:
    """A part of an expression that has no value for some tuples, as in Spark.

    - ``sql``: its DuckDB SQL.
    - ``display_text``: its text and type for a message.
    - ``is_ansi``: whether the session's SQL is ANSI.
    """

    sql: str
    display_text: str
    is_ansi: bool = True


@dataclass(frozen=True)
class ResidualPredicate:
    """A residual: DuckDB SQL over columns named "alias.column".

    - ``streams``: the streams that it names.
    - ``columns``: (stream, column) pairs that it reads.
    - ``measures``: functions of vectors or sets, computed in advance. They are the columns "0",
      "1", ... of its SQL.
    - ``equal_columns``: the two columns if the residual is an equality of two text or binary
      columns; otherwise None.
    - ``fallible_parts``: parts that may fail, innermost first.
    """

    sql: str
    streams: frozenset[int]
    columns: tuple[tuple[int, str], ...]
    measures: tuple[Measure, ...] = ()
    equal_columns: tuple[tuple[int, str], tuple[int, str]] | None = None
    fallible_parts: tuple[FallibleExpression, ...] = ()


@dataclass(frozen=True)
class CommonElements:
    """The condition that sets of two streams share at least ``min_elements`` elements.

    - ``left``, ``right``: (stream, column).
    - ``equivalent_residual``: the residual that this condition is equivalent to; None: a residual
      decides in addition.
    """

    left: tuple[int, str]
    right: tuple[int, str]
    min_elements: int
    equivalent_residual: ResidualPredicate | None = None


@dataclass(frozen=True)
class OverflowGuard:
    """Limits of a sum of keys, given by the type in which Spark computes it.

    A pair whose sum is below ``lower_limit`` or above ``upper_limit`` fails the run with
    ``sentence``.

    - ``weighted_columns``: (stream, key column, factor).
    - ``link``: ends of the index condition that was made from the comparison with the sum.
    """

    weighted_columns: tuple[tuple[int, str, int], ...]
    lower_limit: int
    upper_limit: int
    sentence: str
    link: tuple[tuple[int, str], tuple[int, str]]

    @property
    def guarded_streams(self) -> set[int]:
        """The streams of the pairs for which Spark computes the sum."""
        return {self.link[0][0], self.link[1][0]}


@dataclass(frozen=True)
class GuardedStep:
    """The pairs for which Spark computes a guarded sum.

    They are the pairs that ``index`` finds (None: all) and that ``required_links`` and the step's
    residuals admit. The index condition of the sum itself is not among them.
    """

    guard: OverflowGuard
    index: IndexCondition | CommonElements | None
    required_links: tuple[IndexCondition, ...]


@dataclass(frozen=True)
class ProbeStep:
    """How a partial result is joined with one more stream.

    - ``index_condition``: finds candidates; None: all pairs are candidates.
    - ``conditions``, ``residuals``: conditions to check on candidates.
    - ``guarded_steps``: sums that may overflow in this step.
    """

    stream: int
    index_condition: IndexCondition | CommonElements | None
    conditions: tuple[IndexCondition, ...]
    residuals: tuple[ResidualPredicate, ...]
    guarded_steps: tuple[GuardedStep, ...] = ()


@dataclass(frozen=True)
class Predicate:
    """A parsed join condition.

    Fields with one entry for each stream follow the order of ``aliases``.

    - ``filters``: by stream, Spark SQL; None: no filter.
    - ``key_columns``: by stream, key columns by name, as Spark SQL over the stream. A key is never
      NULL in a match.
    - ``computed_columns``: likewise, columns that residuals read; may be NULL.
    - ``index_conditions``: conditions that find pairs by a sorted key.
    - ``residuals``: conditions to check on pairs.
    - ``equality``: by stream, the key that an equality links over all streams; None: there is none.
    - ``common_elements``: conditions that find pairs by an inverted index.
    - ``guards``: limits of the sums that index conditions took apart.
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
        """Return the step from the visited streams to the next.

        The most selective condition is the index.
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
            left = tuple(r for r in residuals if r != common.equivalent_residual)
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
        """Return the guarded sums of a step with these index and exact conditions."""
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
        """Return the most selective condition on common elements: the one that requires most."""
        usable = [
            c
            for c in self.common_elements
            if stream in (c.left[0], c.right[0]) and {c.left[0], c.right[0]} <= visited | {stream}
        ]
        return max(usable, key=lambda c: c.min_elements, default=None)

    def index_columns(self, stream: int) -> tuple[str, ...]:
        """Return the key columns by which a probe may search a block of the stream.

        Blocks are sorted by the first.
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
    """Return the condition with the window conditions; ``windows`` as for ``window_conditions``."""
    return replace(
        predicate, index_conditions=predicate.index_conditions + window_conditions(windows)
    )


def window_conditions(windows: Sequence[int | None]) -> tuple[IndexCondition, ...]:
    """Return the window condition as index conditions on event time.

    T - T_i < W_i for all i is equivalent to t_j - t_i < W_i for every pair (i, j). ``windows`` are
    W_i by stream, in microseconds; None: full history.
    """
    links = []
    longest = [inf if window is None else window - 1 for window in windows]
    for i, j in combinations(range(len(windows)), 2):
        lo, hi = -longest[i], longest[j]
        if (lo, hi) != (-inf, inf):
            links.append(IndexCondition((i, TIME), (j, TIME), lo, hi))
    return tuple(links)


def computed_columns(predicate: Predicate) -> list[dict[str, str]]:
    """Return the computed columns of each stream's blocks: keys and inputs of residuals."""
    return [
        {**k, **c} for k, c in zip(predicate.key_columns, predicate.computed_columns, strict=True)
    ]


End = tuple[int, str]
"""A key column: the stream, and the column's name."""

Equal = Sequence[tuple[End, End]]
"""Pairs of key columns that a condition requires to be equal."""


def add_key_column(columns: dict[str, str], prefix: str, sql: str) -> str:
    """Return the name of the column with this Spark SQL, adding it if needed."""
    for name, text in columns.items():
        if text == sql:
            return name
    name = f"{prefix}{len(columns)}"
    columns[name] = sql
    return name


def combine_equalities(equal: Equal, keys: Sequence[dict[str, str]]) -> list[IndexCondition]:
    """Return, for streams with several equalities, one condition on the hash of all their keys.

    It is more selective. The new key columns are added to ``keys``, Spark SQL by name and stream.
    """
    pairs: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for (a, left), (b, right) in equal:
        pairs.setdefault((a, b), []).append((left, right))
    links: list[IndexCondition] = []
    for (a, b), names in pairs.items():
        if len(names) > 1:
            left, right = (
                _add_hash_key(keys[stream], columns)
                for stream, columns in zip((a, b), zip(*names, strict=True), strict=True)
            )
            links.insert(0, IndexCondition((a, left), (b, right), 0, 0, is_exact=False))
    return links


def _add_hash_key(keys: dict[str, str], columns: Sequence[str]) -> str:
    sqls = ", ".join(keys[c] for c in columns)
    nulls = " or ".join(f"({keys[c]}) is null" for c in columns)
    return add_key_column(keys, "__k", f"if({nulls}, null, xxhash64({sqls}))")


def equality_classes(equal: Equal) -> list[set[End]]:
    """Return the classes of keys that chains of equalities make equal."""
    classes: list[set[End]] = []
    for pair in equal:
        touched = [c for c in classes if c & set(pair)]
        classes = [c for c in classes if c not in touched] + [set(pair).union(*touched)]
    return classes


def implied_equalities(equal: Equal) -> list[IndexCondition]:
    """Return implied equalities, such as a = c from a = b and b = c.

    They find candidates; the stated ones decide.
    """
    stated = {frozenset(pair) for pair in equal}
    return [
        IndexCondition(left, right, 0, 0, is_exact=False)
        for same in equality_classes(equal)
        for left, right in combinations(sorted(same), 2)
        if left[0] != right[0] and frozenset((left, right)) not in stated
    ]


def common_equality_key(equal: Equal, streams: int) -> tuple[str, ...] | None:
    """Return, by stream, the key that one chain of equalities links over all streams.

    It is used to partition by value. None: there is none.
    """
    for same in equality_classes(equal):
        by_stream = dict(sorted(same, reverse=True))
        if len(by_stream) == streams:
            return tuple(by_stream[s] for s in range(streams))
    return None


def intersect_conditions(links: Sequence[IndexCondition]) -> list[IndexCondition]:
    """Return one condition for each pair of keys: the intersection of its bounds.

    If it is inexact, the exact ones are kept beside it.
    """
    groups: dict[tuple[End, End], list[IndexCondition]] = {}
    for link in links:
        groups.setdefault((link.left, link.right), []).append(link)
    conditions = []
    for group in groups.values():
        lo, hi = max(k.lower for k in group), min(k.upper for k in group)
        strict = (
            any(k.open_bounds[0] for k in group if k.lower == lo),
            any(k.open_bounds[1] for k in group if k.upper == hi),
        )
        exact = all(k.is_exact for k in group)
        conditions.append(replace(group[0], lower=lo, upper=hi, open_bounds=strict, is_exact=exact))
        conditions += [] if exact else [k for k in group if k.is_exact]
    return conditions
