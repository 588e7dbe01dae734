"""Conjuncts that candidate pairs are checked by: DuckDB evaluates them on streams' columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

import pyarrow as pa
from sqlglot import exp

from braid.condition.analyser import Analyser
from braid.condition.compiler import Compiler
from braid.condition.dialect import SparkSql
from braid.condition.failing import fallible, is_skipped, mark_skipped
from braid.condition.functions import FUNCTIONS
from braid.condition.guards import name_typed, overflow
from braid.condition.links import named
from braid.condition.names import quoted
from braid.condition.predicate import Common, Measure, PredicateError, Residual
from braid.condition.residual import residual_mask
from braid.condition.sets import MEASURES, check_elements, least, lowered
from braid.condition.sqltypes import DOUBLE, REAL, SqlType, type_of
from braid.condition.terms import own, split_name
from braid.condition.typed import Unknown
from braid.condition.zones import goes_by_zone

_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs)


class Residuals:
    """The residuals ``found`` in a condition, and by stream what is ``computed`` for them."""

    def __init__(self, analyser: Analyser) -> None:
        self.analyser, self.aliases = analyser, tuple(analyser.names)
        self.computed: tuple[dict[str, str], ...] = tuple({} for _ in self.aliases)
        self.found: list[Residual] = []
        self._kinds: dict[tuple[int, str], pa.DataType] = {}

    def _streams(self, node: exp.Expr) -> set[int]:
        return {self.aliases.index(c.table) for c in node.find_all(exp.Column)}

    def _two(self, node: exp.Expr) -> set[int]:
        """Of its streams two at most: in a long list of conditions they are found at once."""
        found = set[int]()
        for column in node.find_all(exp.Column):
            found.add(self.aliases.index(column.table))
            if len(found) == 2:
                break
        return found

    def add(self, conjunct: exp.Expr) -> Residual:
        """Check candidate pairs by a conjunct. Raises PredicateError where that cannot be."""
        measures, flat = self._flattened(conjunct)
        columns = self._columns(flat)
        streams = frozenset(self._streams(conjunct))
        sql = self._duckdb(flat, columns, len(measures))
        same = (columns[0], columns[1]) if self._plain(flat) else None
        fallible = tuple(self._fallible(flat, columns, len(measures)))
        residual = Residual(sql, streams, tuple(columns), tuple(measures), same, fallible)
        if residual not in self.found:
            self._try(residual, conjunct)
            self.found.append(residual)
        return residual

    def _flattened(self, conjunct: exp.Expr) -> tuple[list[Measure], exp.Expr]:
        """Return the measures of a conjunct, and the conjunct over columns.

        Parts of one stream that may fail, and that Spark skips where others decide, are left to
        DuckDB, which skips them too. Those that it does not know are computed for every tuple.
        """
        tree, home = self._lowered(conjunct), min(self._streams(conjunct))
        before, kinds = [dict(c) for c in self.computed], dict(self._kinds)
        if mark_skipped(tree):
            measures: list[Measure] = []
            try:
                flat = self._flat(tree, home, measures)
                self._duckdb(flat, self._columns(flat), len(measures))
                return measures, flat
            except PredicateError:
                self._kinds = kinds
                for computed, known in zip(self.computed, before, strict=True):
                    computed.clear()
                    computed.update(known)
        measures = []
        return measures, self._flat(self._lowered(conjunct), home, measures)

    def _columns(self, flat: exp.Expr) -> list[tuple[int, str]]:
        """The columns, by stream, that an expression over columns reads."""
        names = {split_name(column) for column in flat.find_all(exp.Column)}
        return sorted((self.aliases.index(a), name) for a, name in names if a in self.aliases)

    def _lowered(self, conjunct: exp.Expr) -> exp.Expr:
        return lowered(conjunct.copy(), self._streams, self.analyser.sized_null)

    def common(self, conjunct: exp.Expr) -> Common | None:
        """What the sets of two streams must have in common for a conjunct to hold; the conjunct is
        a residual as well.
        """
        if (found := least(conjunct, self._streams, self.analyser.sized_null)) is None:
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

    def _duckdb(
        self,
        flat: exp.Expr,
        columns: Sequence[tuple[int, str]],
        measures: int,
    ) -> str:
        """DuckDB SQL, every operand cast to the type that Spark gives it: DuckDB's own choice is
        often narrower, of a float and a decimal the float.
        """
        kinds = self._typed(columns, measures)
        if self.analyser.zoned and goes_by_zone(flat, lambda c: kinds["", c.name].name):
            self._refuse(
                self._as_given(flat.sql(dialect=SparkSql), columns),
                "it goes by the session's time zone, which is not UTC: have each stream's side say "
                "what of it is compared, or set spark.sql.session.timeZone to UTC",
            )
        try:
            return self._compiler(kinds).compile(flat)[0]
        except Unknown as found:
            why = found.why.strip() or "it may mean another thing to DuckDB"
            self._refuse(self._as_given(found.text, columns), why)

    def _typed(
        self, columns: Sequence[tuple[int, str]], measures: int
    ) -> dict[tuple[str, str], SqlType]:
        """The types of the columns and measures that a residual reads."""
        kinds = {("", str(n)): DOUBLE for n in range(measures)}
        for s, name in columns:
            kinds["", f"{self.aliases[s]}.{name}"] = type_of(self._arrow_type(s, name))
        return kinds

    def _compiler(self, kinds: Mapping[tuple[str, str], SqlType]) -> Compiler:
        by_zero = "error('DIVIDE_BY_ZERO')" if self.analyser.ansi else "NULL"
        return Compiler(kinds, by_zero=by_zero)

    def _fallible(
        self, flat: exp.Expr, columns: Sequence[tuple[int, str]], measures: int
    ) -> Iterator[tuple[str, str]]:
        """Yield the parts of an expression that may leave their types, with the sentence if they
        do.
        """
        compiler = self._compiler(self._typed(columns, measures))
        for node in fallible(flat):
            sql, kind = compiler.compile(node)
            text = self._as_given(name_typed(node, kind), columns).replace("`", "")
            yield sql, overflow(text, self.analyser.ansi)

    def _as_given(self, text: str, columns: Sequence[tuple[int, str]]) -> str:
        """Text over computed columns with what they are computed from in their place."""
        for s, name in columns:
            if name in self.computed[s]:
                text = text.replace(f"{self.aliases[s]}.{name}", self.computed[s][name])
        return text

    def _plain(self, flat: exp.Expr) -> bool:
        """Whether all that it says is that two columns of text or bytes are equal."""
        if not isinstance(flat, exp.EQ):
            return False
        sides = (flat.this, flat.expression)
        if not all(isinstance(side, exp.Column) for side in sides):
            return False
        ends = [(self.aliases.index(a), name) for a, name in map(split_name, sides)]
        kinds = {self._arrow_type(*end) for end in ends}
        return len(kinds) == 1 and kinds <= {pa.string(), pa.binary()}

    def _arrow_type(self, stream: int, name: str) -> pa.DataType:
        """The type in Arrow of a column that a residual reads."""
        if (stream, name) not in self._kinds:
            own = exp.column(name, quoted=True).sql(dialect=SparkSql)
            sql = self.computed[stream].get(name) or own
            self._kinds[stream, name] = self.analyser.arrow_type(self.aliases[stream], sql)
        return self._kinds[stream, name]

    def _flat(self, node: exp.Expr, home: int, measures: list[Measure]) -> exp.Expr:
        """The expression over columns named "alias.column"; what one stream decides (or none:
        ``home``) is such a column.

        A function of two streams' vectors becomes a column too, and is added to ``measures``.
        """
        streams = self._two(node)
        if not streams and not node.find(exp.Func):
            return node
        is_whole = not (isinstance(node, exp.If) and isinstance(node.parent, exp.Case))
        is_of_one = len(streams) < 2 and is_whole
        if is_of_one and not (is_skipped(node) or self._may_wait(node)):
            stream = next(iter(streams), home)
            name = (
                node.name
                if isinstance(node, exp.Column)
                else named(self.computed[stream], "__v", own(node))
            )
            return exp.column(f"{self.aliases[stream]}.{name}", quoted=True)
        function = FUNCTIONS.get(node.name.lower())
        if node.name in MEASURES:
            self._check_sets(node)
            function = MEASURES[node.name]
        if function and all(len(self._streams(side)) == 1 for side in node.expressions):
            sides = node.expressions  # a measure reads columns alone, so their streams compute them
            left, right = ((min(self._streams(side)), self._column(side)) for side in sides)
            measures.append(Measure(function, left, right))
            return exp.column(str(len(measures) - 1), quoted=True)
        if isinstance(node, exp.ILike):  # letters are made small by Spark
            lower = (exp.Lower(this=side.copy()) for side in (node.this, node.expression))
            node = exp.Like(this=next(lower), expression=next(lower))
        for child in list(node.iter_expressions()):
            child.replace(self._flat(child, home, measures))
        return node

    def _may_wait(self, node: exp.Expr) -> bool:
        """Whether an expression over one stream is computed pair by pair: it may overflow, and
        Spark computes it only of pairs that the other conditions admit.
        """
        parts = [part for part in fallible(node) if isinstance(part, _ARITHMETIC)]
        names = {(c.table, c.name) for c in node.find_all(exp.Column)}
        if not parts or not names or not self.analyser.ansi:
            return False
        kinds = {
            (alias, name): type_of(self._arrow_type(self.aliases.index(alias), name))
            for alias, name in names
        }
        try:
            typed = [self._compiler(kinds).compile(part)[1] for part in [node, *parts]]
        except Unknown:
            return False
        return any(kind.name not in REAL for kind in typed[1:])

    def _check_sets(self, node: exp.Expr) -> None:
        kinds = [
            str(self.analyser.type_of(self.aliases[min(self._streams(side))], own(side)))
            for side in node.expressions
        ]
        sides = " and ".join(side.sql(dialect=SparkSql) for side in node.expressions)
        check_elements((kinds[0], kinds[1]), sides.replace("`", ""))

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
            self._refuse(conjunct.sql(dialect=SparkSql), str(error).splitlines()[0])

    def _refuse(self, text: str, why: str) -> NoReturn:
        raise PredicateError(
            f"{quoted(text.replace('`', ''))} in the join condition cannot be evaluated over two "
            f"streams at once ({why}); functions of one stream's columns alone may be any that "
            "Spark knows, and two streams may share comparisons, arithmetic, AND, OR, NOT, IN, "
            "LIKE, CASE, coalesce, greatest, least, concat, substring, left, right, replace, "
            "levenshtein, power, sqrt, the trigonometric ones, "
            f"{', '.join(FUNCTIONS)}, the size of array_intersect, array_except and array_union, "
            "and arrays_overlap"
        ) from None
