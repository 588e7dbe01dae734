"""Find an index for each branch of a conjunct with OR.

A branch is found by an equality, ranges, or both, together with the other index conditions of the
two streams. A filter of the branch is part of its keys: a tuple that does not pass has the key
NULL, which finds no partner.

Only pairs that some branch finds are compared, so the others must not fail in Spark:

- A literal that may fail for a pair keeps the conjunct a residual, except for sums that an index
  condition takes apart. These have guards.
- A key is computed for every tuple, which Spark may not do. It must therefore never fail, or be
  computed for the residual as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from braid.condition.access_paths import (
    Branch,
    Disjunction,
    IndexCondition,
    OverflowGuard,
    UnindexedResidual,
    find_search_rank,
)
from braid.condition.disjunctions import MOST_BRANCHES, MOST_LITERALS, Literals
from braid.condition.failure_guards import has_value_in_spark
from braid.condition.key_equalities import End, add_key_column
from braid.condition.predicate import Predicate
from braid.condition.residual_predicate import ResidualPredicate
from braid.condition.spark_dialect import SparkSql
from braid.condition.term_normalizer import strip_alias

Columns = Sequence[dict[str, str]]
"""By stream, Spark SQL of columns by name."""


@dataclass(frozen=True)
class ParsedBranch:
    """A branch parsed as a condition of its own.

    ``parts``: the expressions over one stream that its keys and filters are computed from, each
    with its stream.
    """

    predicate: Predicate
    parts: Sequence[tuple[int, exp.Expr]]

    @property
    def conditions(self) -> list[IndexCondition]:
        """The conditions that one search finds pairs by: an equality, and all ranges."""
        conditions = self.predicate.index_conditions
        equalities = [condition for condition in conditions if condition.cost_rank == 0]
        return equalities[:1] + [condition for condition in conditions if condition.cost_rank]

    @property
    def is_exact(self) -> bool:
        """Whether its only index condition admits matches only, and its filters are in the keys."""
        p = self.predicate
        only = p.index_conditions[0] if len(p.index_conditions) == 1 else None
        if only is None or not only.is_exact or p.residuals or p.guards:
            return False
        return {s for s, sql in enumerate(p.filters) if sql} <= {only.left[0], only.right[0]}


@dataclass(frozen=True)
class DisjunctionBuilder:
    """A builder of the index of an OR.

    - ``keys``, ``computed``: columns of the whole condition. Keys that may be NULL are added to the
      latter.
    - ``parse_branch``: parses a branch; None: it is no condition by itself.
    """

    keys: Columns
    computed: Columns
    parse_branch: Callable[[Literals], ParsedBranch | None]

    def build_disjunctions(
        self,
        split: Iterable[tuple[Sequence[Literals], ResidualPredicate]],
        indexed: Sequence[tuple[set[int], exp.Expr]],
    ) -> Iterator[Disjunction | UnindexedResidual]:
        """Yield the residuals between two streams, given with their branches, that are an OR.

        - ``indexed``: the conjuncts that are index conditions, each with its streams.
        """
        for branches, residual in split:
            if len(residual.streams) == 2 and len(branches) != 1:
                shared = tuple(e for streams, e in indexed if streams == residual.streams)
                reason = self._explain_scan(branches, bool(shared))
                yield (
                    self._build_disjunction(branches, residual, shared)
                    if reason is None
                    else UnindexedResidual(residual, reason)
                )

    def _explain_scan(self, branches: Sequence[Literals], has_others: bool) -> str | None:
        """Return the reason why no index finds an OR of these branches; None: one does.

        ``has_others``: whether the two streams have index conditions beside the OR.
        """
        if not branches:
            return f"it has more than {MOST_BRANCHES} branches or {MOST_LITERALS} literals"
        least = 2 if has_others else 3  # one open side is worth nothing beside another index
        for branch in branches:
            parsed = self.parse_branch(branch)
            text = " AND ".join(e.sql(dialect=SparkSql) for e in branch).replace("`", "")
            if parsed is None or not parsed.conditions:
                return f"no index finds {text}"
            if find_search_rank(parsed.conditions) >= least:
                return f"{text} narrows the other conditions too little"
            if not self._is_branch_usable(parsed):
                return f"{text} may fail, and Spark may not evaluate it for every pair"
        return None

    def _build_disjunction(
        self, branches: Sequence[Literals], residual: ResidualPredicate, shared: Literals
    ) -> Disjunction:
        """Return the OR of these branches, each with the shared conjuncts if they cannot fail."""
        alone = self._parse_branches(branches)
        narrowed = self._parse_branches([branch + shared for branch in branches])
        if len(narrowed) < len(alone) or not all(map(self._is_branch_usable, narrowed)):
            shared = ()
        parsed = narrowed if shared else alone
        indexes = tuple(map(self._add_branch, parsed))
        guards = tuple(dict.fromkeys(g for b in alone for g in self._add_branch_guards(b)))
        is_exact = not shared and all(branch.is_exact for branch in parsed)
        return Disjunction(indexes, residual, is_exact, guards, bool(shared))

    def _parse_branches(self, branches: Sequence[Literals]) -> list[ParsedBranch]:
        return [parsed for branch in branches if (parsed := self.parse_branch(branch)) is not None]

    def make_tuple_filters(self, disjunctions: Iterable[Disjunction]) -> Iterator[tuple[int, str]]:
        """Yield, by stream, Spark SQL for the tuples that some branch may find a partner for."""
        for either in disjunctions:
            for stream in sorted(either.residual.streams):
                tests = [self._test_keys(branch, stream) for branch in either.branches]
                if all(tests):
                    yield stream, f"({' OR '.join(dict.fromkeys(tests))})"

    def _test_keys(self, branch: Branch, stream: int) -> str:
        """Return Spark SQL for that no key of a branch is NULL; empty: none can be."""
        names = [key for key in branch.list_keys(stream) if key not in self.keys[stream]]
        return " AND ".join(f"({self.computed[stream][name]}) IS NOT NULL" for name in names)

    def _is_branch_usable(self, branch: ParsedBranch) -> bool:
        parts = [part for r in branch.predicate.residuals for part in r.fallible_parts]
        may_fail = any(part.fails_in_spark for part in parts)
        return not may_fail and all(self._is_part_computed(*p) for p in branch.parts)

    def _is_part_computed(self, stream: int, part: exp.Expr) -> bool:
        return has_value_in_spark(part) or strip_alias(part) in self.computed[stream].values()

    def _add_branch(self, branch: ParsedBranch) -> Branch:
        """Return the index conditions of a branch, over columns of the whole condition."""
        conditions = []
        for condition in branch.conditions:
            left, right = (self._add_branch_key(branch.predicate, *end) for end in condition.ends)
            conditions.append(replace(condition, left=left, right=right))
        return Branch(tuple(conditions))

    def _add_branch_key(self, branch: Predicate, stream: int, name: str) -> End:
        sql, passes = branch.key_columns[stream][name], branch.filters[stream]
        if passes is None:
            existing = next((n for n, text in self.keys[stream].items() if text == sql), None)
            return stream, existing or self._add_nullable_column(stream, sql)
        return stream, self._add_nullable_column(stream, f"if({passes}, {sql}, null)")

    def _add_nullable_column(self, stream: int, sql: str) -> str:
        return add_key_column(self.computed[stream], "__v", sql)

    def _add_branch_guards(self, branch: ParsedBranch) -> Iterator[OverflowGuard]:
        """Yield the guards of a branch, over columns of the whole condition.

        For NULL they have 0. This only finds more pairs, and the residual decides on them.
        """
        keys = branch.predicate.key_columns
        for guard in branch.predicate.guards:
            columns = tuple(
                (s, self._add_nullable_column(s, f"coalesce({keys[s][name]}, 0)"), factor)
                for s, name, factor in guard.weighted_columns
            )
            yield replace(guard, weighted_columns=columns)
