"""Conjuncts that candidate pairs are checked by: DuckDB evaluates them on streams' columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import pyarrow as pa
from sqlglot import exp

from braid.condition.analyser import Analyser
from braid.condition.arrow import DOUBLE, Compiler, type_of
from braid.condition.functions import FUNCTIONS
from braid.condition.links import named
from braid.condition.predicate import Common, Measure, PredicateError, Residual
from braid.condition.residual import residual_mask
from braid.condition.sets import OVERLAP, check_elements, least, lowered
from braid.condition.terms import own, split_name

SHARED = (
    exp.Abs,
    exp.Acos,
    exp.Add,
    exp.And,
    exp.ArrayContains,
    exp.Asin,
    exp.Atan,
    exp.Atan2,
    exp.Between,
    exp.BitwiseAnd,
    exp.BitwiseOr,
    exp.BitwiseXor,
    exp.Case,
    exp.Ceil,
    exp.Coalesce,
    exp.Concat,
    exp.Contains,
    exp.Cos,
    exp.DateDiff,
    exp.Div,
    exp.DPipe,
    exp.EndsWith,
    exp.EQ,
    exp.Escape,
    exp.Exp,
    exp.Floor,
    exp.Greatest,
    exp.GT,
    exp.GTE,
    exp.If,
    exp.ILike,
    exp.In,
    exp.IntDiv,
    exp.Is,
    exp.IsNan,
    exp.Least,
    exp.Like,
    exp.Ln,
    exp.LT,
    exp.LTE,
    exp.Mod,
    exp.Mul,
    exp.Neg,
    exp.NEQ,
    exp.Not,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Nullif,
    exp.Or,
    exp.Paren,
    exp.Pow,
    exp.RegexpLike,
    exp.Round,
    exp.Sin,
    exp.Sqrt,
    exp.StartsWith,
    exp.StrPosition,
    exp.Sub,
    exp.Tan,
)
"""What DuckDB evaluates over two streams as Spark does."""


class Residuals:
    """The residuals ``found`` in a condition, and by stream what is ``computed`` for them."""

    def __init__(self, analyser: Analyser) -> None:
        self.analyser, self.aliases = analyser, tuple(analyser.names)
        self.computed: tuple[dict[str, str], ...] = tuple({} for _ in self.aliases)
        self.found: list[Residual] = []

    def _streams(self, node: exp.Expr) -> set[int]:
        return {self.aliases.index(c.table) for c in node.find_all(exp.Column)}

    def add(self, conjunct: exp.Expr) -> Residual:
        """Check candidate pairs by a conjunct. Raises PredicateError where that cannot be."""
        home = min(self._streams(conjunct))
        measures: list[Measure] = []
        flat = self._flat(lowered(conjunct.copy(), self._streams), home, conjunct, measures)
        columns_of = map(split_name, flat.find_all(exp.Column))
        columns = sorted(
            (self.aliases.index(alias), name)
            for alias, name in set(columns_of)
            if alias in self.aliases
        )
        streams = frozenset(self._streams(conjunct))
        sql = self._duckdb(flat, columns, len(measures))
        residual = Residual(sql, streams, tuple(columns), tuple(measures))
        if residual not in self.found:
            self._try(residual, conjunct)
            self.found.append(residual)
        return residual

    def common(self, conjunct: exp.Expr) -> Common | None:
        """What the sets of two streams must have in common for a conjunct to hold; the conjunct is
        a residual as well.
        """
        if (found := least(conjunct, self._streams)) is None:
            return None
        x, y, count, exact = found
        residual = self.add(conjunct)
        left, right = sorted((min(self._streams(side)), self._column(side)) for side in (x, y))
        return Common(left, right, count, residual if exact else None)

    def _column(self, side: exp.Expr) -> str:
        """The column of its stream that has an expression over one stream."""
        stream = min(self._streams(side))
        if isinstance(side, exp.Column):
            return side.name
        return named(self.computed[stream], "__v", own(side))

    def _duckdb(self, flat: exp.Expr, columns: Sequence[tuple[int, str]], measures: int) -> str:
        """DuckDB SQL, every operand cast to the type that Spark gives it where that is known:
        DuckDB's own choice is narrower, of a float and a decimal the float.
        """
        kinds = {("", str(n)): DOUBLE for n in range(measures)}
        for s, name in columns:
            kinds["", f"{self.aliases[s]}.{name}"] = type_of(self._arrow_type(s, name))
        try:
            return Compiler(kinds).compile(flat)[0]
        except PredicateError:
            return flat.sql(dialect="duckdb")

    def _arrow_type(self, stream: int, name: str) -> pa.DataType:
        """The type in Arrow of a column that a residual reads."""
        sql = self.computed[stream].get(name) or exp.column(name, quoted=True).sql(dialect="spark")
        return self.analyser.arrow_type(self.aliases[stream], sql)

    def _flat(
        self, node: exp.Expr, home: int, conjunct: exp.Expr, measures: list[Measure]
    ) -> exp.Expr:
        """The expression over columns named "alias.column"; what one stream decides (or none:
        ``home``) is such a column.

        A function of two streams' vectors becomes a column too, and is added to ``measures``.
        """
        streams = self._streams(node)
        if not streams and not node.find(exp.Func):
            return node
        if len(streams) < 2 and not (
            isinstance(node, exp.If) and isinstance(node.parent, exp.Case)
        ):
            stream = next(iter(streams), home)
            name = (
                node.name
                if isinstance(node, exp.Column)
                else named(self.computed[stream], "__v", own(node))
            )
            return exp.column(f"{self.aliases[stream]}.{name}", quoted=True)
        function = FUNCTIONS.get(node.name.lower())
        if node.name == OVERLAP:
            self._check_sets(node, conjunct)
            function = "set_overlap"
        if function and all(len(self._streams(side)) == 1 for side in node.expressions):
            sides = [
                split_name(self._flat(side, home, conjunct, measures)) for side in node.expressions
            ]
            left, right = ((self.aliases.index(alias), name) for alias, name in sides)
            measures.append(Measure(function, left, right))
            return exp.column(str(len(measures) - 1), quoted=True)
        if (len(streams) > 1 and not isinstance(node, SHARED)) or node.args.get("unit"):
            self._refuse(node, f"{type(node).__name__} is not among what they may share", conjunct)
        for child in list(node.iter_expressions()):
            child.replace(self._flat(child, home, conjunct, measures))
        return node

    def _check_sets(self, node: exp.Expr, conjunct: exp.Expr) -> None:
        kinds = [
            str(self.analyser.type_of(self.aliases[min(self._streams(side))], own(side)))
            for side in node.expressions
        ]
        check_elements((kinds[0], kinds[1]), conjunct.sql(dialect="spark").replace("`", ""))

    def _try(self, residual: Residual, conjunct: exp.Expr) -> None:
        """Run the residual on no rows, so that what DuckDB cannot evaluate is refused before
        anything starts.
        """
        import duckdb

        empty = {(s, c): pa.array([], self._arrow_type(s, c)) for s, c in residual.columns}
        try:
            residual_mask(
                residual, self.aliases, empty, [pa.array([], pa.float64())] * len(residual.measures)
            )
        except (duckdb.Error, pa.ArrowException) as error:
            self._refuse(conjunct, str(error).splitlines()[0], conjunct)

    def _refuse(self, node: exp.Expr, why: str, conjunct: exp.Expr) -> NoReturn:
        raise PredicateError(
            f"{node.sql(dialect='spark').replace('`', '')!r} in the join condition cannot be "
            "evaluated over two streams at once "
            f"({why}); "
            "functions of one stream's columns alone may be any that Spark knows, and two streams "
            "may share comparisons, "
            "arithmetic, AND, OR, NOT, IN, LIKE, CASE, coalesce, greatest, least, concat, power, "
            "sqrt, the trigonometric ones, and "
            f"{', '.join(FUNCTIONS)}, "
            "and the size of array_intersect, array_except and array_union, and arrays_overlap"
        ) from None
