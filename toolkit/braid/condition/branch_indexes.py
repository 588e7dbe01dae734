"""Find an index for each branch of a conjunct with OR.

A branch is found by one index condition. A filter of the branch is part of its key: a tuple that
does not pass has the key NULL, which finds no partner.

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

from braid.condition.access_paths import Disjunction, IndexCondition, OverflowGuard
from braid.condition.disjunctions import Literals
from braid.condition.failure_guards import has_value_in_spark
from braid.condition.key_equalities import End, add_key_column
from braid.condition.predicate import Predicate
from braid.condition.residual_predicate import ResidualPredicate
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
    def index(self) -> IndexCondition | None:
        """The index condition with the lowest cost."""
        return min(self.predicate.index_conditions, key=lambda k: k.cost_rank, default=None)

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
        conditions: Iterable[IndexCondition],
    ) -> tuple[Disjunction, ...]:
        """Return those residuals, given with their branches, that indexes find.

        None of the index conditions of the whole condition is as selective.
        """
        best = [(frozenset((k.left[0], k.right[0])), k.cost_rank) for k in conditions]
        disjunctions = []
        for branches, residual in split:
            if len(residual.streams) == 2 and len(branches) > 1:
                least = min((n for ends, n in best if ends == residual.streams), default=3)
                either = self._build_disjunction(branches, residual, least)
                disjunctions += [] if either is None else [either]
        return tuple(disjunctions)

    def _build_disjunction(
        self, branches: Sequence[Literals], residual: ResidualPredicate, least: int
    ) -> Disjunction | None:
        """Return the OR of these branches.

        None: no index below the cost rank ``least`` finds one of them, or a part may fail.
        """
        parsed = [branch for b in branches if (branch := self.parse_branch(b)) is not None]
        if len(parsed) < len(branches) or not all(self._is_branch_usable(b, least) for b in parsed):
            return None
        indexes = tuple(index for b in parsed if (index := self._add_branch_index(b)) is not None)
        guards = tuple(g for b in parsed for g in self._add_branch_guards(b))
        is_exact = all(b.is_exact for b in parsed)
        return Disjunction(indexes, residual, is_exact, tuple(dict.fromkeys(guards)))

    def make_tuple_filters(self, disjunctions: Iterable[Disjunction]) -> Iterator[tuple[int, str]]:
        """Yield, by stream, Spark SQL for the tuples that some branch may find a partner for."""
        for either in disjunctions:
            ends = dict.fromkeys(end for branch in either.branches for end in branch.ends)
            for stream in sorted(either.residual.streams):
                names = [name for s, name in ends if s == stream]
                if not {*names} & self.keys[stream].keys():
                    columns = (self.computed[stream][name] for name in names)
                    yield stream, f"({' OR '.join(f'({sql}) IS NOT NULL' for sql in columns)})"

    def _is_branch_usable(self, branch: ParsedBranch, least: int) -> bool:
        is_indexed = branch.index is not None and branch.index.cost_rank < least
        parts = [part for r in branch.predicate.residuals for part in r.fallible_parts]
        may_fail = any(part.fails_in_spark for part in parts)
        return is_indexed and not may_fail and all(self._is_part_computed(*p) for p in branch.parts)

    def _is_part_computed(self, stream: int, part: exp.Expr) -> bool:
        return has_value_in_spark(part) or strip_alias(part) in self.computed[stream].values()

    def _add_branch_index(self, branch: ParsedBranch) -> IndexCondition | None:
        """Return the index condition of a branch, over columns of the whole condition."""
        if (index := branch.index) is None:
            return None
        left, right = (self._add_branch_key(branch.predicate, *end) for end in index.ends)
        return replace(index, left=left, right=right)

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
