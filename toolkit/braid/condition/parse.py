"""From Spark SQL to a predicate: Spark's own analyser judges the condition, sqlglot splits it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NoReturn, Protocol

import pyarrow as pa
import sqlglot
from sqlglot import exp

from braid.condition.arrow import DOUBLE, ArrowAnalyser, Compiler, type_of
from braid.condition.functions import FUNCTIONS
from braid.condition.links import End, composite, equality, implied, merged, named
from braid.condition.predicate import Link, Measure, Predicate, PredicateError, Residual, windowed
from braid.condition.residual import residual_mask
from braid.condition.sqltypes import SqlType
from braid.condition.terms import (
    conjuncts,
    days_of,
    hashed_as,
    interval_of,
    kind_of,
    literal,
    micros_of,
    nan_may_hold,
    normal_key,
    split_name,
    summands,
)

_SHARED = (
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


def parse(on: str, frames: Mapping[str, Any], windows: Sequence[int | None]) -> Predicate:
    """Take the condition apart for streams of these schemas (only the schemas are looked at) and
    windows (microseconds).

    Raises PredicateError for an unknown column, alias or function, and for a condition that is not
    boolean.
    """
    if not isinstance(on, str) or not on.strip():
        raise PredicateError(
            f"the join condition is {on!r}; it must be Spark SQL text such as 'a.x = b.x'"
        )
    analyser = _analyser(frames)
    tree = _resolve(_sql(on), analyser.names)
    analyser.judge(tree, on)
    predicate = _Parser(analyser).parse(tree)
    return windowed(predicate, windows)


def _sql(on: str) -> exp.Expression:
    try:
        tree = sqlglot.parse_one(on, dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        found = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines()[0]
        raise PredicateError(f"the join condition {on!r} is not valid Spark SQL: {found}") from None
    if tree.find(exp.Query, exp.Subquery):
        raise PredicateError(
            f"the join condition {on!r} holds a query; it must be one condition over alias.column"
        )
    return tree


def _resolve(tree: exp.Expression, schemas: Mapping[str, Sequence[str]]) -> exp.Expression:
    """Give every column its alias and both their exact spelling; refuse unknown ones."""
    aliases = {a.lower(): a for a in schemas}
    names = {a: {n.lower(): n for n in s} for a, s in schemas.items()}

    def column(node: exp.Column) -> exp.Expression:
        parts = [p.name for p in node.parts]
        alias = aliases.get(parts[0].lower())
        if alias is None or len(parts) == 1:
            owners = [a for a, n in names.items() if parts[0].lower() in n]
            if len(owners) != 1 or (
                len(parts) > 1 and alias is None and parts[0].lower() not in names[owners[0]]
            ):
                what = f"alias {parts[0]!r}" if len(parts) > 1 else f"column {parts[0]!r}"
                say = (
                    "is in several streams, write alias.column" if len(owners) > 1 else "is unknown"
                )
                raise PredicateError(
                    f"{what} in the join condition {say}; streams and columns are: {_list(names)}"
                )
            alias, parts = owners[0], ["", *parts]
        found = names[alias].get(parts[1].lower())
        if found is None:
            raise PredicateError(
                f"column '{alias}.{parts[1]}' in the join condition is unknown; {alias} has: "
                f"{', '.join(names[alias].values())}"
            )
        head: exp.Expression = exp.column(found, table=alias, quoted=True)
        for name in parts[2:]:
            head = exp.Dot(this=head, expression=exp.to_identifier(name, quoted=True))
        return head

    return tree.transform(
        lambda n: (
            column(n) if isinstance(n, exp.Column) and n.find_ancestor(exp.Column) is None else n
        )
    )


def _list(names: Mapping[str, Mapping[str, str]]) -> str:
    return "; ".join(f"{a}({', '.join(n.values())})" for a, n in names.items())


class Analyser(Protocol):
    """Judges expressions over the streams; ``names`` are their columns by alias."""

    names: Mapping[str, Sequence[str]]

    def judge(self, tree: exp.Expression, on: str) -> None:
        """Raises PredicateError for a condition that is not taken."""
        ...

    def type_of(self, alias: str, sql: str) -> SqlType | None:
        """The type of Spark SQL over a stream's own columns; None where it means nothing."""
        ...

    def arrow_type(self, alias: str, sql: str) -> pa.DataType:
        """The type of the column in Arrow."""
        ...


def _analyser(streams: Mapping[str, Any]) -> Analyser:
    if all(isinstance(s, (pa.Table, pa.Schema)) for s in streams.values()):
        return ArrowAnalyser(streams)
    from braid.condition.spark import SparkAnalyser

    return SparkAnalyser(streams)


@dataclass
class _Side:
    """The part of a comparison that belongs to one stream: a sum of signed terms."""

    stream: int
    terms: list[tuple[int, exp.Expression]] = field(default_factory=list)


class _Parser:
    def __init__(self, analyser: Analyser) -> None:
        self.analyser = analyser
        self.aliases = tuple(analyser.names)
        self.keys: tuple[dict[str, str], ...] = tuple({} for _ in self.aliases)
        self.computed: tuple[dict[str, str], ...] = tuple({} for _ in self.aliases)
        self.links: list[Link] = []
        self.residuals: list[Residual] = []
        self.equal: list[tuple[End, End]] = []

    def parse(self, tree: exp.Expression) -> Predicate:
        filters: list[list[str]] = [[] for _ in self.aliases]
        for conjunct in conjuncts(tree):
            streams = self._streams(conjunct)
            if len(streams) == 1:
                filters[next(iter(streams))].append(f"({self._own(conjunct)})")
            elif not streams:
                filters[0].append(f"({conjunct.sql(dialect='spark')})")
            elif not self._link(conjunct):
                self._residual(conjunct)
        links = [*composite(self.equal, self.keys), *self.links, *implied(self.equal)]
        return Predicate(
            self.aliases,
            tuple(" AND ".join(f) or None for f in filters),
            self.keys,
            self.computed,
            tuple(merged(links)),
            tuple(self.residuals),
            equality(self.equal, len(self.aliases)),
        )

    def _streams(self, node: exp.Expression) -> set[int]:
        return {self.aliases.index(c.table) for c in node.find_all(exp.Column)}

    def _own(self, node: exp.Expression) -> str:
        """Spark SQL over the stream's own columns, without the alias."""
        bare = node.copy().transform(
            lambda n: exp.column(n.name, quoted=True) if isinstance(n, exp.Column) else n
        )
        return bare.sql(dialect="spark")

    def _residual(self, conjunct: exp.Expression) -> None:
        home = min(self._streams(conjunct))
        measures: list[Measure] = []
        flat = self._flat(conjunct.copy(), home, conjunct, measures)
        named = {split_name(column) for column in flat.find_all(exp.Column)}
        columns = sorted(
            (self.aliases.index(alias), name) for alias, name in named if alias in self.aliases
        )
        streams = frozenset(self._streams(conjunct))
        sql = self._duckdb(flat, columns, len(measures))
        residual = Residual(sql, streams, tuple(columns), tuple(measures))
        if residual not in self.residuals:
            self._try(residual, conjunct)
            self.residuals.append(residual)

    def _duckdb(
        self, flat: exp.Expression, columns: Sequence[tuple[int, str]], measures: int
    ) -> str:
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
        self, node: exp.Expression, home: int, conjunct: exp.Expression, measures: list[Measure]
    ) -> exp.Expression:
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
                else named(self.computed[stream], "__v", self._own(node))
            )
            return exp.column(f"{self.aliases[stream]}.{name}", quoted=True)
        if node.name.lower() in FUNCTIONS and all(
            len(self._streams(side)) == 1 for side in node.expressions
        ):
            sides = [
                split_name(self._flat(side, home, conjunct, measures)) for side in node.expressions
            ]
            left, right = ((self.aliases.index(alias), name) for alias, name in sides)
            measures.append(Measure(node.name.lower(), left, right))
            return exp.column(str(len(measures) - 1), quoted=True)
        if (len(streams) > 1 and not isinstance(node, _SHARED)) or node.args.get("unit"):
            self._refuse(node, f"{type(node).__name__} is not among what they may share", conjunct)
        for child in list(node.iter_expressions()):
            child.replace(self._flat(child, home, conjunct, measures))
        return node

    def _try(self, residual: Residual, conjunct: exp.Expression) -> None:
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

    def _refuse(self, node: exp.Expression, why: str, conjunct: exp.Expression) -> NoReturn:
        raise PredicateError(
            f"{node.sql(dialect='spark').replace('`', '')!r} in the join condition cannot be "
            "evaluated over two streams at once "
            f"({why}); "
            "functions of one stream's columns alone may be any that Spark knows, and two streams "
            "may share comparisons, "
            "arithmetic, AND, OR, NOT, IN, LIKE, CASE, coalesce, greatest, least, concat, power, "
            "sqrt, the trigonometric ones, and "
            f"{', '.join(FUNCTIONS)}"
        ) from None

    def _link(self, conjunct: exp.Expression) -> bool:
        """Whether the conjunct is a comparison of one number of each of two streams; if so it is
        noted as a link.
        """
        if isinstance(conjunct, (exp.LT, exp.LTE)) and isinstance(conjunct.this, exp.Abs):
            kind = type(conjunct)
            inner, bound = conjunct.this.this, conjunct.expression
            mirrored = exp.GT if kind is exp.LT else exp.GTE
            if self._streams(bound):
                return False
            low = exp.Neg(this=bound)
            return self._compare(kind, inner, bound, conjunct) and self._compare(
                mirrored, inner, low, conjunct, capped=True
            )
        if isinstance(conjunct, (exp.GT, exp.GTE)) and isinstance(conjunct.expression, exp.Abs):
            flipped = (exp.LT if isinstance(conjunct, exp.GT) else exp.LTE)(
                this=conjunct.expression, expression=conjunct.this
            )
            return self._link(flipped)
        if isinstance(conjunct, (exp.EQ, exp.LT, exp.LTE, exp.GT, exp.GTE)):
            return self._compare(
                type(conjunct),
                conjunct.this,
                conjunct.expression,
                conjunct,
                "capped" in conjunct.meta,
            )
        return False

    def _compare(
        self,
        op: type,
        left: exp.Expression,
        right: exp.Expression,
        source: exp.Expression,
        capped: bool = False,
    ) -> bool:
        """Note ``left op right`` as a link. ``capped`` says that another comparison bounds ``left``
        from above.
        """
        terms = [*summands(left, 1), *summands(right, -1)]
        streams = sorted(set().union(*(self._streams(t) for _, t in terms)))
        if len(streams) != 2 or any(len(self._streams(t)) == 2 for _, t in terms):
            return False
        a, b = _Side(streams[0]), _Side(streams[1])
        free = []
        for sign, term in terms:
            owner = self._streams(term)
            (free if not owner else a.terms if owner == {a.stream} else b.terms).append(
                (sign, term)
            )
        nan = nan_may_hold(op, len(self._streams(left)), len(self._streams(right)), capped)
        return self._bound(op, a, _Side(b.stream, [(-s, t) for s, t in b.terms]), free, source, nan)

    def _bound(
        self,
        op: type,
        a: _Side,
        b: _Side,
        free: list[tuple[int, exp.Expression]],
        source: exp.Expression,
        nan: bool | None,
    ) -> bool:
        """Note ``A - B + free op 0`` as a link between keys, where A and B are sums over one stream
        each.
        """
        if a.terms[0][0] < 0 and b.terms[0][0] < 0:  # both sides negated: turn the comparison round
            flip = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}
            op = flip.get(op, op)
            a, b = (_Side(s.stream, [(-g, t) for g, t in s.terms]) for s in (a, b))
            free = [(-g, t) for g, t in free]
        ta, tb = self._type(a), self._type(b)
        if ta is None or tb is None:
            return False
        if self._text(op, ta, tb, a, b, free, source):
            return True
        kind = kind_of(ta, tb)
        unit = {"date": days_of, "timestamp": micros_of, "timestamp_ntz": micros_of}.get(
            kind or "", literal
        )
        constants = [unit(t) for _, t in free]
        single = len(a.terms) == len(b.terms) == 1
        if kind == "float" and nan:
            return False
        if (
            kind is None
            or None in constants
            or (kind in ("date", "timestamp", "timestamp_ntz", "bool") and not single)
        ):
            return False
        offset = -sum(
            (g * c for (g, _), c in zip(free, constants, strict=True) if c is not None), Fraction(0)
        )
        scale = max(ta.scale, tb.scale)
        left, right = (self._key(s, normal_key(kind, self._sum(s), scale)) for s in (a, b))
        lo, hi, strict = interval_of(
            op, offset * 10**scale if kind == "decimal" else offset, kind == "float"
        )
        exact = kind != "float" or (single and not free and nan is None)
        self.links.append(Link((a.stream, left), (b.stream, right), lo, hi, strict, exact))
        if not exact:
            self._residual(source)
        if op is exp.EQ and offset == 0 and (kind != "float" or (not free and nan is None)):
            self.equal.append(((a.stream, left), (b.stream, right)))
        return True

    def _text(
        self,
        op: type,
        ta: Any,
        tb: Any,
        a: _Side,
        b: _Side,
        free: list[Any],
        source: exp.Expression,
    ) -> bool:
        """Equality of text, binary and wide decimals: by their hash, then by themselves."""
        if op is not exp.EQ or free or len(a.terms) != 1 or len(b.terms) != 1:
            return False
        if (common := hashed_as(ta, tb)) is None:
            return False
        left, right = (
            self._key(s, f"xxhash64(cast({self._sum(s)} as {common}))", null=self._sum(s))
            for s in (a, b)
        )
        self.links.append(Link((a.stream, left), (b.stream, right), 0, 0, exact=False))
        self._residual(source)
        self.equal.append(((a.stream, left), (b.stream, right)))
        return True

    def _sum(self, side: _Side) -> str:
        text = ""
        for sign, term in side.terms:
            text += (" + " if sign > 0 else " - ") + f"({self._own(term)})"
        return text.removeprefix(" + ").strip()

    def _type(self, side: _Side) -> SqlType | None:
        return self.analyser.type_of(self.aliases[side.stream], self._sum(side))

    def _key(self, side: _Side, sql: str, null: str | None = None) -> str:
        """The name of the key column with this text; a hash of NULL is NULL."""
        if null is not None:
            sql = f"if(({null}) is null, null, {sql})"
        return named(self.keys[side.stream], "__k", sql)
