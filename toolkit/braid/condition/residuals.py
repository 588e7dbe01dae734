"""Build residuals: conjuncts that DuckDB evaluates on the columns of candidate pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

import pyarrow as pa
from sqlglot import exp

from braid.condition.access_paths import CommonElements
from braid.condition.column_names import quote_condition
from braid.condition.duckdb_compiler import DuckDBCompiler
from braid.condition.failure_guards import (
    NEVER_FAILING,
    find_fallible_parts,
    is_skipped,
    marks_skipped,
)
from braid.condition.key_equalities import add_key_column
from braid.condition.overflow_guards import describe_with_type
from braid.condition.residual_evaluation import evaluate_residual
from braid.condition.residual_predicate import (
    FUNCTIONS,
    FallibleExpression,
    Measure,
    ResidualPredicate,
)
from braid.condition.set_similarity import (
    MEASURES,
    check_element_types,
    min_common_elements,
    rewrite_to_overlap,
)
from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import (
    DOUBLE,
    REAL,
    Analyzer,
    SqlType,
    depends_on_time_zone,
    sql_type_of_arrow,
)
from braid.condition.term_normalizer import split_name, strip_alias
from braid.errors import PredicateError, UnsupportedExpressionError

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs)


class ResidualBuilder:
    """A builder of residuals: ``predicates``, and the columns ``computed`` for them by stream."""

    def __init__(self, analyser: Analyzer) -> None:
        self.analyser, self.aliases = analyser, tuple(analyser.names)
        self.computed: tuple[dict[str, str], ...] = tuple({} for _ in self.aliases)
        self.predicates: list[ResidualPredicate] = []
        self._kinds: dict[tuple[int, str], pa.DataType] = {}

    def _find_streams(self, node: exp.Expr) -> set[int]:
        return {self.aliases.index(c.table) for c in node.find_all(exp.Column)}

    def _find_two_streams(self, node: exp.Expr) -> set[int]:
        """Return at most two of the node's streams.

        In a long list of conditions this stops early.
        """
        aliases = set[int]()
        for column in node.find_all(exp.Column):
            aliases.add(self.aliases.index(column.table))
            if len(aliases) == 2:
                break
        return aliases

    def add_conjunct(self, conjunct: exp.Expr) -> ResidualPredicate:
        """Add a conjunct as a residual and return it.

        Raises PredicateError if it cannot be evaluated.
        """
        measures, flat = self._flatten_structs(conjunct)
        columns = self._list_columns(flat)
        streams = frozenset(self._find_streams(conjunct))
        sql = self._compile_to_duckdb(flat, columns, len(measures))
        same = (columns[0], columns[1]) if self._is_plain_equality(flat) else None
        fallible = tuple(self._find_fallible_parts(flat, columns, len(measures)))
        residual = ResidualPredicate(sql, streams, tuple(columns), tuple(measures), same, fallible)
        if residual not in self.predicates:
            self._check_evaluates(residual, conjunct)
            self.predicates.append(residual)
        return residual

    def _flatten_structs(self, conjunct: exp.Expr) -> tuple[list[Measure], exp.Expr]:
        """Return the measures of a conjunct, and the conjunct over columns.

        Spark skips a part that may fail if another part decides. Such parts over one stream are
        left to DuckDB, which skips them, too. Parts that DuckDB cannot evaluate are computed for
        every tuple.
        """
        tree, home = self._rewrite_set_conditions(conjunct), min(self._find_streams(conjunct))
        before, kinds = [dict(c) for c in self.computed], dict(self._kinds)
        if marks_skipped(tree):
            measures: list[Measure] = []
            try:
                flat = self._flatten_to_columns(tree, home, measures)
                self._compile_to_duckdb(flat, self._list_columns(flat), len(measures))
                return measures, flat
            except PredicateError:
                self._kinds = kinds
                for computed, earlier in zip(self.computed, before, strict=True):
                    computed.clear()
                    computed.update(earlier)
        measures = []
        return measures, self._flatten_to_columns(
            self._rewrite_set_conditions(conjunct), home, measures
        )

    def _list_columns(self, flat: exp.Expr) -> list[tuple[int, str]]:
        """Return the (stream, column) pairs that an expression over columns reads."""
        names = {split_name(column) for column in flat.find_all(exp.Column)}
        return sorted((self.aliases.index(a), name) for a, name in names if a in self.aliases)

    def _rewrite_set_conditions(self, conjunct: exp.Expr) -> exp.Expr:
        return rewrite_to_overlap(conjunct.copy(), self._find_streams, self.analyser.sized_null)

    def common_elements(self, conjunct: exp.Expr) -> CommonElements | None:
        """Return the common elements that a conjunct requires; None if it requires none.

        The conjunct is also added as a residual.
        """
        if (
            minimum := min_common_elements(conjunct, self._find_streams, self.analyser.sized_null)
        ) is None:
            return None
        x, y, count, exact = minimum
        residual = self.add_conjunct(conjunct)
        left, right = sorted(
            (min(self._find_streams(side)), self.add_computed_column(side)) for side in (x, y)
        )
        return CommonElements(left, right, count, residual if exact else None)

    def add_computed_column(self, side: exp.Expr) -> str:
        """Return the column of an expression over one stream, adding it if needed."""
        stream = min(self._find_streams(side))
        if isinstance(side, exp.Column):
            return side.name
        return add_key_column(self.computed[stream], "__v", strip_alias(side))

    def _compile_to_duckdb(
        self,
        flat: exp.Expr,
        columns: Sequence[tuple[int, str]],
        measures: int,
    ) -> str:
        """Return DuckDB SQL with every operand cast to Spark's type.

        DuckDB's own choice is often narrower; for a float and a decimal it is the float.
        """
        kinds = self._find_column_types(columns, measures)
        if self.analyser.has_time_zone and depends_on_time_zone(
            flat, lambda c: kinds["", c.name].name
        ):
            self._raise_unsupported(
                self._restore_original_text(flat.sql(dialect=SparkSql), columns),
                "it goes by the session's time zone, which is not UTC: have each stream's side say "
                "what of it is compared, or set spark.sql.session.timeZone to UTC",
            )
        try:
            return self._make_compiler(kinds).compile_expression(flat)[0]
        except UnsupportedExpressionError as error:
            why = error.why.strip() or "it may mean another thing to DuckDB"
            self._raise_unsupported(self._restore_original_text(error.text, columns), why)

    def _find_column_types(
        self, columns: Sequence[tuple[int, str]], measures: int
    ) -> dict[tuple[str, str], SqlType]:
        """Return the types of the columns and measures that a residual reads."""
        kinds = {("", str(n)): DOUBLE for n in range(measures)}
        for s, name in columns:
            kinds["", f"{self.aliases[s]}.{name}"] = sql_type_of_arrow(
                self._find_arrow_type(s, name)
            )
        return kinds

    def _make_compiler(self, kinds: Mapping[tuple[str, str], SqlType]) -> DuckDBCompiler:
        by_zero = "error('DIVIDE_BY_ZERO')" if self.analyser.is_ansi else "NULL"
        return DuckDBCompiler(kinds, by_zero=by_zero)

    def _find_fallible_parts(
        self, flat: exp.Expr, columns: Sequence[tuple[int, str]], measures: int
    ) -> Iterator[FallibleExpression]:
        """Yield the parts of an expression that may fail, innermost first.

        Arithmetic of floats does not overflow.
        """
        compiler = self._make_compiler(self._find_column_types(columns, measures))
        for node in find_fallible_parts(flat):
            sql, kind = compiler.compile_expression(node)
            if isinstance(node, _ARITHMETIC) and kind.name in REAL:
                continue
            text = self._restore_original_text(describe_with_type(node, kind), columns).replace(
                "`", ""
            )
            may_fail = not isinstance(node, NEVER_FAILING)
            yield FallibleExpression(sql, text, self.analyser.is_ansi, may_fail)

    def _restore_original_text(self, text: str, columns: Sequence[tuple[int, str]]) -> str:
        """Return text in which computed columns are replaced by their expressions."""
        for s, name in columns:
            if name in self.computed[s]:
                text = text.replace(f"{self.aliases[s]}.{name}", self.computed[s][name])
        return text

    def _is_plain_equality(self, flat: exp.Expr) -> bool:
        """Return whether the expression is only an equality of two text or binary columns."""
        if not isinstance(flat, exp.EQ):
            return False
        sides = (flat.this, flat.expression)
        if not all(isinstance(side, exp.Column) for side in sides):
            return False
        ends = [(self.aliases.index(a), name) for a, name in map(split_name, sides)]
        kinds = {self._find_arrow_type(*end) for end in ends}
        return len(kinds) == 1 and kinds <= {pa.string(), pa.binary()}

    def _find_arrow_type(self, stream: int, name: str) -> pa.DataType:
        """Return the Arrow type of a column that a residual reads."""
        if (stream, name) not in self._kinds:
            column = exp.column(name, quoted=True).sql(dialect=SparkSql)
            sql = self.computed[stream].get(name) or column
            self._kinds[stream, name] = self.analyser.infer_arrow_type(self.aliases[stream], sql)
        return self._kinds[stream, name]

    def _flatten_to_columns(self, node: exp.Expr, home: int, measures: list[Measure]) -> exp.Expr:
        """Return the expression over columns named "alias.column".

        A part over one stream becomes such a column; one over no stream becomes a column of
        ``home``. A function of two streams' vectors becomes a column, too, and is added to
        ``measures``.
        """
        streams = self._find_two_streams(node)
        if not streams and not node.find(exp.Func):
            return node
        is_whole = not (isinstance(node, exp.If) and isinstance(node.parent, exp.Case))
        is_of_one = len(streams) < 2 and is_whole
        if is_of_one and not (is_skipped(node) or self._is_checked_per_pair(node)):
            stream = next(iter(streams), home)
            name = (
                node.name
                if isinstance(node, exp.Column)
                else add_key_column(self.computed[stream], "__v", strip_alias(node))
            )
            return exp.column(f"{self.aliases[stream]}.{name}", quoted=True)
        called = node.name.lower() if isinstance(node, exp.Anonymous) else ""
        function = FUNCTIONS.get(called) or MEASURES.get(called)
        if called in MEASURES:
            self._check_sets(node)
        if function and all(len(self._find_streams(side)) == 1 for side in node.expressions):
            sides = node.expressions  # a measure reads columns only
            left, right = (
                (min(self._find_streams(side)), self.add_computed_column(side)) for side in sides
            )
            measures.append(Measure(function, left, right))
            return exp.column(str(len(measures) - 1), quoted=True)
        if isinstance(node, exp.ILike):  # Spark lowers the case
            lower = (exp.Lower(this=side.copy()) for side in (node.this, node.expression))
            node = exp.Like(this=next(lower), expression=next(lower))
        for child in list(node.iter_expressions()):
            child.replace(self._flatten_to_columns(child, home, measures))
        return node

    def _is_checked_per_pair(self, node: exp.Expr) -> bool:
        """Return whether an expression over one stream is computed for each pair.

        It is if it may overflow: Spark computes it only for pairs that the other conditions admit.
        """
        parts = [part for part in find_fallible_parts(node) if isinstance(part, _ARITHMETIC)]
        names = {(c.table, c.name) for c in node.find_all(exp.Column)}
        if not parts or not names or not self.analyser.is_ansi:
            return False
        kinds = {
            (alias, name): sql_type_of_arrow(self._find_arrow_type(self.aliases.index(alias), name))
            for alias, name in names
        }
        try:
            typed = [
                self._make_compiler(kinds).compile_expression(part)[1] for part in [node, *parts]
            ]
        except UnsupportedExpressionError:
            return False
        return any(kind.name not in REAL for kind in typed[1:])

    def _check_sets(self, node: exp.Expr) -> None:
        kinds = [
            str(
                self.analyser.infer_type(
                    self.aliases[min(self._find_streams(side))], strip_alias(side)
                )
            )
            for side in node.expressions
        ]
        sides = " and ".join(side.sql(dialect=SparkSql) for side in node.expressions)
        check_element_types((kinds[0], kinds[1]), sides.replace("`", ""))

    def _check_evaluates(self, residual: ResidualPredicate, conjunct: exp.Expr) -> None:
        """Evaluate the residual on no rows.

        Raises PredicateError, before anything starts, if DuckDB cannot.
        """
        import duckdb

        empty = {(s, c): pa.array([], self._find_arrow_type(s, c)) for s, c in residual.columns}
        try:
            evaluate_residual(
                residual, self.aliases, empty, [pa.array([], pa.float64())] * len(residual.measures)
            )
        except (duckdb.Error, pa.ArrowException) as error:
            self._raise_unsupported(conjunct.sql(dialect=SparkSql), str(error).splitlines()[0])

    def _raise_unsupported(self, text: str, why: str) -> NoReturn:
        raise PredicateError(
            f"{quote_condition(text.replace('`', ''))} in the join condition cannot be evaluated "
            f"over two streams at once ({why}); functions of one stream's columns alone may be any "
            "that Spark knows, and two streams may share comparisons, arithmetic, AND, OR, NOT, "
            "IN, LIKE, CASE, coalesce, greatest, least, concat, substring, left, right, replace, "
            f"levenshtein, power, sqrt, the trigonometric ones, {', '.join(FUNCTIONS)}, the size "
            "of array_intersect, array_except and array_union, and arrays_overlap"
        ) from None
