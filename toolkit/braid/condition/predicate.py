"""A parsed join condition: filters, index conditions, and residuals.

Every conjunct of the condition is one of the following.

- A *filter* names one stream. Spark applies it before a tuple is routed.
- An *index condition* compares a number of one stream with a number of another: ``lower <= left -
  right <= upper``. Equality, bands, BETWEEN and inequalities are index conditions, over integers,
  floats, decimals, dates and timestamps. Spark computes the numbers (*keys*), blocks are sorted by
  them, and a probe is two binary searches.
- A *disjunction* is a conjunct with OR over two streams. Each of its branches is found by an index
  condition of its own (see ``branch_indexes``).
- A *text match* bounds the edits between two texts, or names a prefix of one. A residual decides.
- A *residual* is any other conjunct. DuckDB evaluates it on candidate pairs. Spark computes its
  parts over one stream in advance, so that DuckDB only compares and calculates. NumPy evaluates
  functions of two vectors.

NULL never matches: a tuple whose key is NULL does not take part in the join. The keys of branches
are computed columns instead, which may be NULL. A tuple that no branch can find is filtered.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import inf

from braid.condition.access_paths import (
    AccessPath,
    CommonElements,
    Disjunction,
    IndexCondition,
    Order,
    OrderSearch,
    OverflowGuard,
    TextMatch,
    TextPrefix,
    UnindexedResidual,
    find_search_rank,
)
from braid.condition.condition_parts import ConditionPart, KeyPair
from braid.condition.order_choice import choose_orders, choose_search
from braid.condition.residual_predicate import ResidualPredicate
from braid.core.horizon import Reach, TimeBounds
from braid.core.reserved_columns import TIME


@dataclass(frozen=True)
class GuardedStep:
    """The pairs for which Spark computes a guarded sum.

    They are the pairs that ``access_path`` finds (None: all) and that ``required_links`` and the
    step's residuals admit. The index condition of the sum itself is not among them.

    ``fails_in_residual``: whether a residual contains the sum, and fails by itself.
    """

    guard: OverflowGuard
    access_path: AccessPath | None
    required_links: tuple[IndexCondition, ...]
    fails_in_residual: bool = False


@dataclass(frozen=True)
class ProbeStep:
    """How a partial result is joined with one more stream.

    - ``access_path``: finds candidates; None: all pairs are candidates.
    - ``conditions``, ``residuals``: conditions to check on candidates.
    - ``guarded_steps``: sums that may overflow in this step.
    """

    stream: int
    access_path: AccessPath | None
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
    - ``disjunctions``: conditions with OR that find pairs by several sorted keys, which are among
      ``computed_columns``.
    - ``time_bounds``: bounds of event times that it implies; None: no event time.
    - ``parts``: the conjuncts as written.
    - ``text_matches``: conditions on texts that find pairs by prefixes or segments.
    - ``unindexed``: residuals that no index finds, with the reasons, if they are known.
    - ``written_filters``: the filters without those that follow from an OR, by stream.
    - ``equality_keys``: for each chain of equalities, its key by stream.
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
    disjunctions: tuple[Disjunction, ...] = ()
    time_bounds: TimeBounds | None = None
    parts: tuple[ConditionPart, ...] = ()
    text_matches: tuple[TextMatch, ...] = ()
    unindexed: tuple[UnindexedResidual, ...] = ()
    written_filters: tuple[str | None, ...] = ()
    equality_keys: tuple[dict[int, str], ...] = ()

    def next_step(self, visited: frozenset[int], stream: int) -> ProbeStep:
        """Return the step from the visited streams to the next.

        The most selective condition is the index, with those that its order also finds pairs by.
        """
        ends = self._usable_conditions(visited, stream)
        residuals = tuple(
            r for r in self.residuals if stream in r.streams and r.streams <= visited | {stream}
        )
        either = self._choose_disjunction(visited, stream)
        common = self._choose_common_elements(visited, stream)
        text = self._choose_text_match(visited, stream)
        path: AccessPath | None
        searched: tuple[IndexCondition, ...] = ()
        rank = find_search_rank(ends)
        if either is not None and either.cost_rank < rank + either.is_narrower:
            path = either
            residuals = tuple(r for r in residuals if not either.is_exact or r != either.residual)
        elif common is not None and rank > 0:
            path = common
            residuals = tuple(r for r in residuals if r != common.equivalent_residual)
        elif text is not None and rank > (1 if _is_pattern(text) else 0):
            path = text
        else:
            path = search = choose_search(ends, stream, self.stream_orders(stream))
            if search is not None:
                searched = search.all_conditions
                path = search if len(searched) > 1 else searched[0]
        links = tuple(k for k in ends if k.is_exact and k not in searched)
        guarded = self._guard_step(visited, stream, path, links)
        return ProbeStep(stream, path, links, residuals, guarded)

    def _usable_conditions(self, visited: frozenset[int], stream: int) -> list[IndexCondition]:
        """Return the index conditions of a stream with the visited ones, most selective first."""
        ends = [
            k
            for k in self.index_conditions
            if stream in (k.left[0], k.right[0]) and {k.left[0], k.right[0]} <= visited | {stream}
        ]
        return sorted(ends, key=lambda k: k.cost_rank)

    def _guard_step(
        self,
        visited: frozenset[int],
        stream: int,
        path: AccessPath | None,
        links: Sequence[IndexCondition],
    ) -> tuple[GuardedStep, ...]:
        """Return the guarded sums of a step with this access path and these exact conditions."""
        dangers = []
        if isinstance(path, Disjunction):
            dangers = [GuardedStep(g, None, tuple(links), True) for g in path.guards]
        for guard in self.guards:
            if stream in guard.guarded_streams and guard.guarded_streams <= visited | {stream}:
                finder, required = path, [*links]
                if isinstance(path, OrderSearch):
                    finder = path.drop_condition(guard.link)
                    searched = () if finder is None else finder.all_conditions
                    required += [k for k in path.all_conditions if k.is_exact and k not in searched]
                elif _may_search_by(path, guard.link):
                    finder = None
                others = tuple(k for k in required if k.ends != guard.link)
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

    def _choose_text_match(self, visited: frozenset[int], stream: int) -> TextMatch | None:
        """Return the condition on texts of the stream and a visited one that was written first."""
        usable = (
            match
            for match in self.text_matches
            if stream in match.residual.streams and match.residual.streams <= visited | {stream}
        )
        return next(usable, None)

    def _choose_disjunction(self, visited: frozenset[int], stream: int) -> Disjunction | None:
        """Return the most selective OR between the stream and a visited one."""
        usable = [
            d
            for d in self.disjunctions
            if stream in d.residual.streams and d.residual.streams <= visited | {stream}
        ]
        return min(usable, key=lambda d: d.cost_rank, default=None)

    def stream_orders(self, stream: int) -> tuple[Order, ...]:
        """Return the orders in which a probe may search a block of the stream.

        Blocks are sorted in the first. There is one for each other stream, and one for all of them
        together, as an equality may come from one and a range from another.
        """
        return self._orders[stream]

    @cached_property
    def _orders(self) -> tuple[tuple[Order, ...], ...]:
        return tuple(self._choose_orders(stream) for stream in range(len(self.aliases)))

    def _choose_orders(self, stream: int) -> tuple[Order, ...]:
        others = [s for s in range(len(self.aliases)) if s != stream]
        sets = [frozenset({other}) for other in others]
        usable = [
            self._usable_conditions(visited, stream) for visited in (*sets, frozenset(others))
        ]
        ranked = sorted((ends for ends in usable if ends), key=lambda ends: ends[0].cost_rank)
        distinct = dict.fromkeys(order for e in ranked for order in choose_orders(e, stream))
        refined = {order.column for order in distinct if order.within is not None}
        needed = [o for o in distinct if o.within is not None or o.column not in refined]
        branches = [branch for either in self.disjunctions for branch in either.branches]
        single = [branch for branch in branches if len(branch.conditions) == 1]
        alone = [Order(key) for branch in single for key in branch.list_keys(stream)]
        return tuple(dict.fromkeys([*(needed or [Order(TIME)]), *alone]))


def _may_search_by(path: AccessPath | None, ends: KeyPair) -> bool:
    """Return whether a path other than an ``OrderSearch`` may find pairs by these two keys."""
    if isinstance(path, Disjunction):
        return path.is_narrower
    return isinstance(path, IndexCondition) and path.ends == ends


def _is_pattern(text: TextMatch) -> bool:
    """Return whether a text matches a pattern, which may begin with a wildcard."""
    return isinstance(text, TextPrefix) and text.is_pattern


def with_windows(
    predicate: Predicate, windows: Sequence[int | None], timeless: Collection[int] = ()
) -> Predicate:
    """Return the condition with the window conditions; arguments as for ``window_conditions``."""
    return replace(
        predicate,
        index_conditions=predicate.index_conditions + window_conditions(windows, timeless),
    )


def with_derived_windows(predicate: Predicate, bounds: Reach) -> Predicate:
    """Return the condition with the bounds of event times that it implies.

    They find candidates where no other condition of the two streams has the same bounds, and decide
    nothing.
    """
    stated = {(k.left[0], k.right[0], k.lower, k.upper) for k in predicate.index_conditions}
    derived = []
    for i, j in combinations(range(len(bounds)), 2):
        low, high = bounds[i][j], bounds[j][i]
        lo, hi = -inf if low is None else -low, inf if high is None else high
        if (lo, hi) != (-inf, inf) and (i, j, lo, hi) not in stated:
            derived.append(IndexCondition((i, TIME), (j, TIME), lo, hi, is_exact=False))
    return replace(predicate, index_conditions=(*predicate.index_conditions, *derived))


def window_conditions(
    windows: Sequence[int | None], timeless: Collection[int] = ()
) -> tuple[IndexCondition, ...]:
    """Return the window condition as index conditions on event time.

    T - T_i < W_i for all i is equivalent to t_j - t_i < W_i for every pair (i, j). ``windows`` are
    W_i by stream, in microseconds; None: full history. ``timeless`` streams have no event time.
    """
    links = []
    longest = [inf if window is None else window - 1 for window in windows]
    for i, j in combinations(range(len(windows)), 2):
        lo, hi = -longest[i], longest[j]
        if (lo, hi) != (-inf, inf) and not {i, j} & {*timeless}:
            links.append(IndexCondition((i, TIME), (j, TIME), lo, hi))
    return tuple(links)


def computed_columns(predicate: Predicate) -> list[dict[str, str]]:
    """Return the computed columns of each stream's blocks: keys and inputs of residuals."""
    return [
        {**k, **c} for k, c in zip(predicate.key_columns, predicate.computed_columns, strict=True)
    ]
