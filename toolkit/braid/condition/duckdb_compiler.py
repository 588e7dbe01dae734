"""From Spark SQL to DuckDB SQL that means the same.

Every expression is typed by Spark's rules (ANSI, time zone UTC) and each operand is cast to the
type that Spark would give it; DuckDB's own choice is often narrower. What is not listed here is
refused:

- columns and literals of boolean, tinyint to bigint, float, double, decimal, string, binary, date
  and timestamp, with a time zone and without;
- comparisons, ``<=>``, IN, BETWEEN, IS, AND, OR, NOT, CASE, if, coalesce, nullif, greatest, least;
- ``+ - *`` of numbers, of decimals where Spark would not round, negation, abs, ceil, floor, round
  of a double, bits; a date plus or minus days, a timestamp or date plus or minus an INTERVAL of
  fixed length, the difference of two times;
- ``/``, ``%``, ``div`` but of decimals, by a literal that is not 0 (or, for residuals, by anything:
  then a division by 0 fails, as it does in Spark, unless an AND, OR, CASE or coalesce around it is
  decided before; where ``spark.sql.ansi.enabled`` is false it is NULL, as in Spark);
- levenshtein of two texts that have at most 94 different characters, or ASCII only;
- LIKE, concat, ``||``, array_contains, array_compact, size, datediff, year to second, EXTRACT of
  seconds, unix_date, unix_micros, to_date, what ``calls`` lists, and casts that lose nothing.

``tests/spark/test_arrow.py`` and ``tests/spark/test_residuals.py`` hold them against Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import sqlglot
from sqlglot import exp

from braid.condition.duckdb_arithmetic import CLOCK, TIMES
from braid.condition.duckdb_arrays import ArrayCompiler
from braid.condition.duckdb_functions import BITS, CALLS, COMPARISONS, PARTS, WIDENS
from braid.condition.evaluation_order import compare_left_first, is_safe, short_circuit
from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    INTERVAL,
    NUMERIC,
    STRING,
    TIMESTAMP,
    VOID,
    SqlType,
    duckdb_type_name,
)
from braid.condition.syntax_arguments import READ, AsWritten
from braid.condition.typed_expressions import Typed
from braid.util.durations import UNITS


class DuckDBCompiler(ArrayCompiler):
    """Turns Spark SQL into DuckDB SQL. ``columns`` are types by (alias, name).

    ``ours`` says that the text is made by the parser, which also uses hashes, and casts that it
    knows to lose nothing. ``by_zero`` is DuckDB SQL of what a division by 0 gives; where there is
    none, one must not divide by what may be 0.
    """

    def __init__(
        self,
        columns: Mapping[tuple[str, str], SqlType],
        ours: bool = False,
        by_zero: str = "",
    ) -> None:
        super().__init__(ours, by_zero)
        self.columns = columns

    def compile_text(self, sql: str) -> Typed:
        """Of Spark SQL. Raises Unknown for what is not listed above."""
        return self.compile_expression(sqlglot.parse_one(sql, dialect=SparkSql))

    def compile_expression(self, node: exp.Expr) -> Typed:
        """Raises Unknown for what is not listed above."""
        if rule := _RULES.get(type(node)):
            return rule(self, node)
        if type(node) in CALLS:
            return self._compile_listed_call(node)
        if self.ours and node.name == "xxhash64":
            parts = ", ".join(self.compile_expression(e)[0] for e in node.expressions)
            return f"CAST(hash({parts}) % 9223372036854775807 AS BIGINT)", BIGINT
        return self._compile_calls(node)

    def _compile_listed_call(self, node: exp.Expr) -> Typed:
        call = CALLS[type(node)]
        arguments = [a for name in READ[type(node)] if (a := node.args.get(name)) is not None]
        if len(arguments) != len(call.argument_types):
            self._raise_unsupported(node)
        parts = [
            self._compile_as(a, k, call.cast)
            for a, k in zip(arguments, call.argument_types, strict=True)
        ]
        return call.sql.format(*parts), call.result_type

    def _refuse_unread(self, node: AsWritten) -> Typed:
        self._raise_unsupported(node, f" has {node.args['word']}")

    # Columns and constants.

    def _compile_column(self, node: exp.Column) -> Typed:
        kind = self.columns.get((node.table, node.name))
        if kind is None or node.args.get("db"):
            self._raise_unsupported(node)
        return exp.column(node.name, table=node.table or None, quoted=True).sql("duckdb"), kind

    def _compile_literal(self, node: exp.Literal) -> Typed:
        if node.is_string:
            return node.sql("duckdb"), STRING
        text = str(node.this)
        if re.fullmatch(r"\d+", text) and int(text) < 1 << 63:
            kind = INT if int(text) < 1 << 31 else BIGINT
        elif re.fullmatch(r"\d*\.\d*", text) and 1 < len(text) < 30:
            whole, _, part = text.partition(".")
            kind = SqlType("decimal", max(1, len(whole.lstrip("0")) + len(part)), len(part))
        elif re.fullmatch(r"[\d.]+[eE][+-]?\d+", text):
            kind = DOUBLE
        else:
            self._raise_unsupported(node)
        return f"CAST({text} AS {duckdb_type_name(kind)})", kind

    def _compile_interval(self, node: exp.Interval) -> Typed:
        unit = str(node.args.get("unit") or "").lower().removesuffix("s")
        amount = node.this.name if node.this is not None else ""
        if unit not in UNITS or not re.fullmatch(r"-?\d+", amount):
            self._raise_unsupported(node)
        return str(int(amount) * UNITS[unit]), INTERVAL

    # Truth.

    def _compile_and_or(self, node: exp.And | exp.Or) -> Typed:
        """What the left sides decide must not fail for the right ones: DuckDB computes all."""
        sides = list(node.flatten())
        parts = [self._compile_as(side, BOOLEAN) for side in sides]
        both = isinstance(node, exp.And)
        if not all(map(is_safe, sides[1:])):
            return short_circuit(parts, both), BOOLEAN
        return f"({(' AND ' if both else ' OR ').join(parts)})", BOOLEAN

    def _compile_comparison(self, node: Any) -> Typed:
        (left, right), _ = self._compile_to_common_type(node, node.this, node.expression)
        made = f"({left} {COMPARISONS[type(node)]} {right})"
        if isinstance(node, (exp.NullSafeEQ, exp.NullSafeNEQ)):
            return made, BOOLEAN
        return compare_left_first(node, left, made, [node.expression]), BOOLEAN

    def _compile_in(self, node: exp.In) -> Typed:
        if not node.expressions:
            self._raise_unsupported(node)
        (value, *options), _ = self._compile_to_common_type(node, node.this, *node.expressions)
        made = f"({value} IN ({', '.join(options)}))"
        if not all(map(is_safe, node.expressions[1:])):
            made = short_circuit([f"({value} = {option})" for option in options], both=False)
        return compare_left_first(node, value, made, node.expressions), BOOLEAN

    def _compile_between(self, node: exp.Between) -> Typed:
        if node.args.get("symmetric"):
            self._raise_unsupported(node)
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
        return self._compile_and_or(exp.And(this=low, expression=high))

    def _compile_is(self, node: exp.Is) -> Typed:
        if isinstance(node.expression, exp.Boolean):
            return (
                f"({self._compile_as(node.this, BOOLEAN)} IS {node.expression.sql('duckdb')})",
                BOOLEAN,
            )
        if not isinstance(node.expression, exp.Null):
            self._raise_unsupported(node)
        return f"({self.compile_expression(node.this)[0]} IS NULL)", BOOLEAN

    # Choices.

    def _compile_case(self, node: Any) -> Typed:
        """If, CASE, nullif."""
        if isinstance(node, exp.Nullif):
            same = exp.EQ(this=node.this, expression=node.expression)
            sql, kind = self.compile_expression(node.this)
            return f"(CASE WHEN {self._compile_comparison(same)[0]} THEN NULL ELSE {sql} END)", kind
        ifs = node.args["ifs"] if isinstance(node, exp.Case) else [node]
        last = node.args.get("default" if isinstance(node, exp.Case) else "false") or exp.Null()
        whens = [i.this for i in ifs]
        if isinstance(node, exp.Case) and node.this is not None:
            whens = [exp.EQ(this=node.this, expression=value) for value in whens]
        parts, kind = self._compile_to_common_type(node, *(i.args["true"] for i in ifs), last)
        when = " ".join(
            f"WHEN {self._compile_as(condition, BOOLEAN)} THEN {part}"
            for condition, part in zip(whens, parts, strict=False)
        )
        return f"(CASE {when} ELSE {parts[-1]} END)", kind

    def _compile_coalesce(self, node: Any) -> Typed:
        """Coalesce, greatest, least."""
        parts, kind = self._compile_to_common_type(node, node.this, *node.expressions)
        return f"{type(node).__name__.lower()}({', '.join(parts)})", kind

    def _compile_cast(self, node: exp.Cast) -> Typed:
        wanted = SqlType.parse(node.to.sql(SparkSql).lower().replace("long", "bigint"))
        if isinstance(node.this, exp.Literal) and node.this.is_number and wanted == DOUBLE:
            return f"CAST({node.this.this} AS DOUBLE)", DOUBLE
        if isinstance(node.this, exp.Literal) and node.this.is_string:
            day = r"\d{4}-\d\d-\d\d"
            pattern = day if wanted == DATE else rf"{day} \d\d:\d\d:\d\d(\.\d{{1,6}})?"
            if wanted in TIMES and re.fullmatch(pattern, node.this.name):
                cast = "TRY_CAST" if node.args.get("safe") else "CAST"
                return f"{cast}({node.this.sql('duckdb')} AS {duckdb_type_name(wanted)})", wanted
        sql, kind = self.compile_expression(node.this)
        exact = self.ours and {kind.name, wanted.name} <= {*NUMERIC}
        if kind == wanted or wanted.name in WIDENS.get(kind.name, ()) or exact:
            return self._cast_to((sql, kind), wanted), wanted
        self._raise_unsupported(node)

    # Dates and text.

    def _compile_to_date(self, node: exp.Expr) -> str:
        typed = self.compile_expression(node.this if isinstance(node, exp.TsOrDsToDate) else node)
        if typed[1] not in TIMES:
            self._raise_unsupported(node)
        return self._cast_to(typed, DATE)

    def _compile_date_diff(self, node: exp.DateDiff) -> Typed:
        if node.args.get("unit"):
            self._raise_unsupported(node)
        later, earlier = (self._compile_to_date(n) for n in (node.this, node.expression))
        return f"CAST({later} - {earlier} AS INTEGER)", INT

    def _compile_date_part(self, node: Any) -> Typed:
        inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
        sql, kind = self.compile_expression(inner)
        clock = PARTS[type(node)] in ("hour", "minute", "second")
        if kind not in TIMES or (clock and kind == DATE):
            self._raise_unsupported(node)
        return f"CAST({PARTS[type(node)]}({sql}) AS INTEGER)", INT

    def _compile_extract_second(self, node: exp.Extract) -> Typed:
        """Of a minute, with their parts."""
        sql, kind = self.compile_expression(node.expression)
        if node.name.upper() != "SECOND" or kind not in (TIMESTAMP, CLOCK):
            self._raise_unsupported(node)
        micros = f"CAST(microsecond({sql}) AS DECIMAL(8, 0))"
        return f"CAST({micros} * 0.000001 AS DECIMAL(8, 6))", SqlType("decimal", 8, 6)

    def _compile_unix_micros(self, node: exp.UnixMicros) -> Typed:
        sql, kind = self.compile_expression(node.this)
        if kind not in (TIMESTAMP, CLOCK):
            self._raise_unsupported(node, f" is of type {kind} where timestamp is needed")
        return f"epoch_us({sql})", BIGINT

    def _compile_like(self, node: exp.Like | exp.Escape) -> Typed:
        """A backslash escapes, unless another character is said to. A pattern in which it stands
        before another letter is an error to Spark, and none to DuckDB.
        """
        escape, like = "\\", node
        if isinstance(node, exp.Escape):
            escape, like = node.expression.name, node.this
        if not isinstance(like, exp.Like) or len(escape) != 1:
            self._raise_unsupported(node)
        text, pattern = (self._compile_as(n, STRING) for n in (like.this, like.expression))
        mark = exp.Literal.string(escape).sql("duckdb")
        made = f"({text} LIKE {pattern} ESCAPE {mark})"
        if isinstance(like.expression, exp.Literal) and escape not in like.expression.name:
            return made, BOOLEAN
        rest = pattern
        for escaped in (escape, "%", "_"):
            rest = f"replace({rest}, {exp.Literal.string(escape + escaped).sql('duckdb')}, '')"
        is_wrong = f"{text} IS NOT NULL AND contains({rest}, {mark})"
        wrong = "error('INVALID_FORMAT of a pattern of LIKE: what it escapes is no %, _ or escape')"
        return f"(CASE WHEN {is_wrong} THEN {wrong} ELSE {made} END)", BOOLEAN

    def _compile_concat(self, node: exp.Concat) -> Typed:
        return f"({' || '.join(self._compile_as(n, STRING) for n in node.expressions)})", STRING


_C = DuckDBCompiler
_RULES: Mapping[type[exp.Expr], Callable[[DuckDBCompiler, Any], Typed]] = {
    exp.Column: _C._compile_column,
    exp.Paren: lambda c, n: c.compile_expression(n.this),
    exp.Literal: _C._compile_literal,
    exp.Boolean: lambda c, n: (n.sql("duckdb"), BOOLEAN),
    exp.Null: lambda c, n: ("NULL", VOID),
    exp.Interval: _C._compile_interval,
    exp.And: _C._compile_and_or,
    exp.Or: _C._compile_and_or,
    exp.Not: lambda c, n: (f"(NOT {c._compile_as(n.this, BOOLEAN)})", BOOLEAN),
    **dict.fromkeys(COMPARISONS, _C._compile_comparison),
    exp.In: _C._compile_in,
    exp.Between: _C._compile_between,
    exp.Is: _C._compile_is,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), _C._compile_arithmetic),
    **dict.fromkeys((exp.Div, exp.IntDiv, exp.Mod), _C._compile_division),
    **dict.fromkeys((exp.Neg, exp.Abs), _C._compile_sign),
    **dict.fromkeys(BITS, _C._compile_bit_operator),
    exp.BitwiseNot: _C._compile_bitwise_not,
    **dict.fromkeys((exp.Ceil, exp.Floor), _C._compile_ceil_floor),
    exp.Round: _C._compile_round,
    **dict.fromkeys((exp.If, exp.Case, exp.Nullif), _C._compile_case),
    **dict.fromkeys((exp.Coalesce, exp.Greatest, exp.Least), _C._compile_coalesce),
    **dict.fromkeys((exp.Cast, exp.TryCast), _C._compile_cast),
    exp.TsOrDsToDate: lambda c, n: (c._compile_to_date(n), DATE),
    exp.DateDiff: _C._compile_date_diff,
    **dict.fromkeys(PARTS, _C._compile_date_part),
    exp.Extract: _C._compile_extract_second,
    exp.UnixDate: lambda c, n: (f"({c._compile_as(n.this, DATE)} - DATE '1970-01-01')", INT),
    exp.UnixMicros: _C._compile_unix_micros,
    **dict.fromkeys((exp.Like, exp.Escape), _C._compile_like),
    exp.Concat: _C._compile_concat,
    exp.ArrayContains: _C._compile_contains,
    exp.ArraySize: _C._compile_size,
    exp.ArrayCompact: _C._compile_compact,
    AsWritten: _C._refuse_unread,
}
"""How each kind of node is turned."""
