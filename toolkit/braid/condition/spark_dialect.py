"""Spark SQL for sqlglot.

The dialect parses as Spark does, and writes expressions back unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar

from sqlglot import ErrorLevel, exp
from sqlglot.dialects.dialect import rename_func
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token

from braid.condition.expression_grammar import find_end
from braid.condition.syntax_arguments import AsWritten, keep_unread
from braid.errors import NotSparkError

_LOOKED_INTO = """
    ABS ACOS AGGREGATE ANY_VALUE APPROX_COUNT_DISTINCT ARRAY_AGG ARRAY_COMPACT ARRAY_CONTAINS
    ARRAY_DISTINCT ARRAY_EXCEPT ARRAY_INTERSECT ASIN ATAN ATAN2 AVG BITMAP_CONSTRUCT_AGG
    BITMAP_OR_AGG BIT_AND BIT_OR BIT_XOR BOOLEAN BOOL_AND BOOL_OR CEIL CEILING CHARACTER_LENGTH
    CHARINDEX CHAR_LENGTH COALESCE COLLECT_LIST COLLECT_SET CONCAT CONTAINS CORR COS COUNT COUNT_IF
    COVAR_POP COVAR_SAMP CUME_DIST CURDATE DATE DATEADD DATEDIFF DATE_ADD DATE_DIFF DAY DAYOFMONTH
    DENSE_RANK DIV DOUBLE ENDSWITH EXISTS EXP FIRST FIRST_VALUE FLOAT FLOOR GREATEST GROUPING
    GROUPING_ID HOUR IF IFNULL ILIKE INSTR INT ISNAN KURTOSIS LAG LAST LAST_VALUE LCASE LEAD LEAST
    LEFT LEN LENGTH LEVENSHTEIN LIKE LN LOCATE LOG LOWER LTRIM MAP_KEYS MAX MAX_BY MEDIAN MIN MINUTE
    MIN_BY MOD MODE MONTH NTH_VALUE NTILE NULLIF NVL PERCENTILE_CONT PERCENTILE_DISC PERCENT_RANK
    POW POWER RANK REDUCE REGR_AVGX REGR_AVGY REGR_COUNT REGR_INTERCEPT REGR_R2 REGR_SLOPE REGR_SXX
    REGR_SXY REGR_SYY REPLACE RIGHT ROUND RTRIM SECOND SIGN SIGNUM SIN SIZE SKEWNESS SQRT STARTSWITH
    STDDEV STDDEV_POP STDDEV_SAMP STRING SUBSTR SUBSTRING SUM TAN TIMESTAMP TIMESTAMPADD
    TIMESTAMPDIFF TIMESTAMP_LTZ TIMESTAMP_NTZ TO_DATE TRIM TRY_ELEMENT_AT UCASE UNIX_DATE
    UNIX_MICROS UPPER VARIANCE VAR_POP VAR_SAMP YEAR
"""
"""Functions that rules analyze, and aggregates. All others are kept as written, because sqlglot
rewrites some to a slightly different function, such as log10(x) to LOG(10, x).
"""
_OWN_SYNTAX = """
    CAST CEIL EXTRACT FLOOR OVERLAY POSITION SUBSTR SUBSTRING TRIM TRY_CAST
    APPROX_PERCENTILE LISTAGG MAX_BY MIN_BY PERCENTILE PERCENTILE_APPROX STRING_AGG
"""
"""Functions with keywords between their arguments, and aggregates."""
_TIGHTER: dict[type[exp.Expr], int] = {
    exp.BitwiseOr: 1,
    exp.BitwiseXor: 2,
    exp.BitwiseAnd: 3,
    exp.BitwiseLeftShift: 4,
    exp.BitwiseRightShift: 4,
}
"""Precedence of Spark's bit operators. A higher one binds tighter. sqlglot treats all alike."""


def _make_binary_function(name: str) -> Callable[[list[Any]], exp.Expr]:
    """Return a builder for a function of two arguments.

    With more, the function is kept as written.
    """
    make: Callable[..., exp.Expr] = SparkParser.FUNCTIONS[name]

    def build_node(args: list[Any]) -> exp.Expr:
        return make(args) if len(args) == 2 else exp.Anonymous(this=name, expressions=args)

    return build_node


_UNITS_FIRST = "DATEADD DATEDIFF DATE_ADD DATE_DIFF TIMESTAMPADD TIMESTAMPDIFF"


def _keep_unit(name: str) -> Callable[[list[Any]], exp.Expr]:
    """Return a builder for a function whose unit is kept as written.

    sqlglot writes it in capitals, and MINUTE for MIN, which Spark does not have.
    """
    make: Callable[..., exp.Expr] = SparkParser.FUNCTIONS[name]

    def build_node(args: list[Any]) -> exp.Expr:
        unit = args[0].name if len(args) == 3 else ""
        node = make(args)
        if unit:
            node.set("unit", exp.var(unit))
        return node

    return build_node


def _parse_logarithm(args: list[Any]) -> exp.Expr:
    """Build a logarithm.

    The natural one is written back as log, which Spark distinguishes from ln.
    """
    if len(args) > 2:
        return exp.Anonymous(this="LOG", expressions=args)
    if len(args) != 1:
        make: Callable[..., exp.Expr] = SparkParser.FUNCTIONS["LOG"]
        return make(args, Spark())
    node = exp.Ln(this=args[0])
    node.meta["name"] = "LOG"
    return node


class SparkSql(Spark):
    """Spark SQL for conditions and queries."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[Any] = [*Spark.Tokenizer.STRING_ESCAPES, "'", '"']

    class Parser(SparkParser):
        FUNCTIONS: ClassVar[Any] = {
            name: SparkParser.FUNCTIONS[name] for name in _LOOKED_INTO.split()
        } | {
            "INSTR": _make_binary_function("INSTR"),
            "LEVENSHTEIN": _make_binary_function("LEVENSHTEIN"),
            "LOG": _parse_logarithm,
            **{name: _keep_unit(name) for name in _UNITS_FIRST.split()},
        }
        FUNCTION_PARSERS: ClassVar[Any] = {
            name: SparkParser.FUNCTION_PARSERS[name] for name in _OWN_SYNTAX.split()
        }

        def parse(self, *args: Any, **kwargs: Any) -> Any:
            """Parse statements. A node with an argument that no rule reads is kept as written."""
            self._refuse_comments(*args, **kwargs)
            return [tree and keep_unread(tree) for tree in super().parse(*args, **kwargs)]

        def _refuse_comments(self, tokens: list[Token], sql: str | None = None) -> None:
            """Raise ParseError for text that is a comment to sqlglot only."""
            marks = [mark for mark in ("{#", "/*+") if mark in (sql or "")]
            if not marks:
                return
            ends = [-1, *(token.end for token in tokens)]
            starts = [*(token.start for token in tokens), len(str(sql))]
            gaps = [str(sql)[a + 1 : b] for a, b in zip(ends, starts, strict=True)]
            if wrong := [mark for mark in marks for gap in gaps if mark in gap]:
                raise ParseError(f"Spark's grammar has no comment {wrong[0]} here")

        _checked: tuple[int, int] = (0, 0)
        """Position up to which expressions are checked: statement, and token."""

        def reset(self) -> None:
            self._checked = (0, 0)
            super().reset()

        def _parse_disjunction(self) -> Any:
            """Parse an expression of Spark's grammar. The check covers its parts."""
            if (self._chunk_index, self._index) < self._checked:
                return super()._parse_disjunction()
            start, end, problem = self._index, *self._find_end()
            tree = super()._parse_disjunction()
            if self._index not in (start, end):
                at = self._tokens[min(self._index, end, len(self._tokens) - 1)]
                self.raise_error(problem or f"Spark's grammar has no {at.text!r} here", at)
            return tree

        def _find_end(self) -> tuple[int, str]:
            """Return the position after the expression that begins here, and "".

            If there is none, return this position and the reason.
            """
            end, problem = self._index, ""
            try:
                end = find_end(self._tokens, end, self.sql)
            except NotSparkError as error:
                problem = str(error)
                if error.at > self._index:
                    self.raise_error(problem, self._tokens[min(error.at, len(self._tokens) - 1)])
            self._checked = (self._chunk_index, end)
            return end, problem

        def _parse_bitwise(self) -> Any:
            return _regroup_bit_operators(super()._parse_bitwise())

        ARRAY_CONSTRUCTORS: ClassVar[Any] = {}  # ARRAY[1] is an element of a column named ARRAY

        def _build_predicate(
            self, klass: Any, this: Any, expression: Any, *args: Any, **kwargs: Any
        ) -> Any:
            """Raise ParseError for a comparison beside LIKE, IN or BETWEEN without parentheses.

            Spark takes all that precedes these keywords as their left side, and LIKE's pattern may
            be a comparison.
            """
            if any(map(_is_between, (this, expression))):
                self.raise_error("LIKE, IN and BETWEEN beside a comparison need parentheses")
            return super()._build_predicate(klass, this, expression, *args, **kwargs)

        def _negate_range(self, this: Any = None) -> Any:
            """Put NOT around LIKE and ILIKE, as around other nodes.

            sqlglot would put it into one of their arguments.

            NOT LIKE ANY is not the negation of LIKE ANY.
            """
            like = this.this if isinstance(this, exp.Escape) else this
            if like and isinstance(like.expression, (exp.Any, exp.All)):
                return super()._negate_range(this)
            return this and self.expression(exp.Not(this=this))

        def _parse_interval(self, *args: Any, **kwargs: Any) -> Any:
            interval = super()._parse_interval(*args, **kwargs)
            return exp.paren(interval, copy=False) if isinstance(interval, exp.Add) else interval

    class Generator(SparkGenerator):
        TYPE_MAPPING: ClassVar[Any] = {
            kind: name
            for kind, name in SparkGenerator.TYPE_MAPPING.items()
            if kind != exp.DataType.Type.TIME
        }
        TRANSFORMS: ClassVar[Any] = SparkGenerator.TRANSFORMS | {
            exp.UnixDate: rename_func("UNIX_DATE"),
            exp.Ln: lambda self, node: self.func(node.meta.get("name", "LN"), node.this),
            AsWritten: lambda self, node: self.sql(node, "this"),
        }


def to_sql(tree: exp.Expr) -> str:
    """Return the text of a tree. Raises SqlglotError if a part would be omitted."""
    return tree.sql(dialect=SparkSql, unsupported_level=ErrorLevel.RAISE)


def describe_sql_error(error: SqlglotError) -> str:
    """Return sqlglot's error in one line."""
    line = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).splitlines()[0]
    return re.sub(r"Required keyword: .* missing for <.*>", "Something is missing", line)


def _is_between(node: Any) -> bool:
    """Return whether a node is LIKE, IN or BETWEEN, or its negation."""
    inner = node.this if isinstance(node, exp.Not) else node
    return isinstance(inner, (exp.Like, exp.ILike, exp.Escape, exp.RegexpLike, exp.In, exp.Between))


def _regroup_bit_operators(node: Any) -> Any:
    """Return bit operators without parentheses, grouped by Spark's precedence."""
    if type(node) not in _TIGHTER:
        return node
    left, right = _regroup_bit_operators(node.this), node.expression
    if type(left) not in _TIGHTER or _TIGHTER[type(left)] >= _TIGHTER[type(node)]:
        return type(node)(this=left, expression=right)
    tight = type(node)(this=left.expression, expression=right)
    return type(left)(this=left.this, expression=_regroup_bit_operators(tight))
