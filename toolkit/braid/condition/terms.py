"""Terms of a comparison: what is added up, which constants there are, in which numbers two types
are compared.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, inf

from sqlglot import exp
from sqlglot.optimizer.simplify import simplify

from braid.condition.sqltypes import INTEGRAL, NUMERIC, REAL, SqlType
from braid.core.spans import UNITS

_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}


def nan_may_hold(op: type, left: int, right: int, capped: bool) -> bool | None:
    """Whether floats that add up to NaN, the largest number, may satisfy a comparison whose sides
    name that many streams.

    None where no side names two, so that order among the keys tells all. Infinities of one sign
    differ by NaN.
    """
    if left < 2 and right < 2:
        return None
    safe = (exp.LT, exp.LTE, exp.EQ) if left == 2 else (exp.GT, exp.GTE, exp.EQ)
    return left + right > 2 or (op not in safe and not capped)


def split_name(column: exp.Expr) -> tuple[str, str]:
    """The alias and the name in "alias.column"; a name may hold dots."""
    alias, _, name = column.name.partition(".")
    return alias, name


def conjuncts(tree: exp.Expr) -> list[exp.Expr]:
    """The conditions that AND and BETWEEN combine, each on its own."""
    tree = tree.unnest()
    if isinstance(tree, exp.And):
        return [*conjuncts(tree.this), *conjuncts(tree.expression)]
    if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        low, high = tree.args["low"], tree.args["high"]
        both: list[exp.Expr] = [
            exp.GTE(this=tree.this, expression=low),
            exp.LTE(this=tree.this.copy(), expression=high),
        ]
        if not low.find(exp.Column) and not high.find(exp.Column):
            both[0].meta["capped"] = True
        return both
    return [tree]


def summands(node: exp.Expr, sign: int) -> list[tuple[int, exp.Expr]]:
    """The signed summands of an expression; a difference of days is one of day numbers."""
    node = node.unnest()
    if isinstance(node, (exp.Add, exp.Sub)):
        other = sign if isinstance(node, exp.Add) else -sign
        return [*summands(node.this, sign), *summands(node.expression, other)]
    if isinstance(node, exp.Neg):
        return summands(node.this, -sign)
    if isinstance(node, exp.DateDiff) and not node.args.get("unit"):
        days = [
            exp.func("unix_date", exp.cast(side.copy(), "date"))
            for side in (_date(node.this), _date(node.expression))
        ]
        return [(sign, days[0]), (-sign, days[1])]
    return [(sign, node)]


def _date(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, exp.TsOrDsToDate) else node


def literal(node: exp.Expr) -> Fraction | None:
    """The number that an expression is without reading a column; None for any other expression."""
    node = simplify(node.copy())
    if isinstance(node, exp.Neg):
        inner = literal(node.this)
        return None if inner is None else -inner
    return Fraction(node.this) if isinstance(node, exp.Literal) and node.is_number else None


def _span(node: exp.Expr) -> Fraction | None:
    """A literal interval in microseconds."""
    sign = 1
    while isinstance(node, (exp.Neg, exp.Paren)):
        sign, node = (-sign if isinstance(node, exp.Neg) else sign), node.this
    if not isinstance(node, exp.Interval) or node.this is None:
        return None
    unit = str(node.args.get("unit") or "").lower().removesuffix("s")
    try:
        return sign * Fraction(str(node.this.name)) * UNITS[unit]
    except (KeyError, ValueError):
        return None


def micros_of(node: exp.Expr) -> Fraction | None:
    """The microseconds of an interval; None for what is none."""
    return _span(node)


def days_of(node: exp.Expr) -> Fraction | None:
    """The whole days of an interval or a number; None for what is no whole number of days."""
    span = _span(node)
    days = literal(node) if span is None else span / UNITS["day"]
    return days if days is not None and days.denominator == 1 else None


def kind_of(a: SqlType, b: SqlType) -> str | None:
    """In which numbers two types are compared, or None where they are not."""
    pair = {a.name, b.name}
    if pair == {"boolean"}:
        return "bool"
    if pair <= {*INTEGRAL}:
        return "int"
    if len(pair) == 1 and pair <= {"date", "timestamp", "timestamp_ntz"}:
        return a.name
    if not pair <= {*NUMERIC}:
        return None
    if pair & {*REAL}:
        return "float"
    return "decimal" if sum(_extent(a, b)) <= 18 else None


def hashed_as(a: SqlType, b: SqlType) -> str | None:
    """The type in which values of two types are hashed to find equal ones; None where they are
    numbers, or not equal.
    """
    pair = {a.name, b.name}
    if len(pair) == 1 and pair <= {"string", "binary"}:
        return a.name
    if kind_of(a, b) is not None or not pair <= {"decimal", *INTEGRAL}:
        return None
    digits, scale = _extent(a, b)
    return f"decimal({digits + scale}, {scale})" if digits + scale <= 38 else None


def _extent(a: SqlType, b: SqlType) -> tuple[int, int]:
    """Digits before and after the point that hold the values of two exact types."""
    scale = max(a.scale, b.scale)
    return max(_DIGITS.get(t.name, t.precision) - t.scale for t in (a, b)), scale


def normal_key(kind: str, sql: str, scale: int) -> str:
    """Spark SQL of the key: a BIGINT that keeps the order, or a DOUBLE."""
    return {
        "bool": f"cast(cast({sql} as int) as bigint)",
        "int": f"cast({sql} as bigint)",
        "date": f"cast(unix_date({sql}) as bigint)",
        "timestamp": f"unix_micros({sql})",
        "timestamp_ntz": f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', {sql})",
        "decimal": f"cast(cast(({sql}) as decimal(18, {scale})) * {10**scale} as bigint)",
        "float": f"cast({sql} as double)",
    }[kind]


def interval_of(op: type, offset: Fraction, real: bool) -> tuple[float, float, tuple[bool, bool]]:
    """The interval of ``left - right`` for ``left - right op offset``; integers get closed integer
    bounds.
    """
    strict = op in (exp.LT, exp.GT)
    below, above = op in (exp.LT, exp.LTE, exp.EQ), op in (exp.GT, exp.GTE, exp.EQ)
    if real:
        value = float(offset)
        return (
            value if above else -inf,
            value if below else inf,
            (strict and above, strict and below),
        )
    hi = (ceil(offset) - 1 if strict else floor(offset)) if below else inf
    lo = (floor(offset) + 1 if strict else ceil(offset)) if above else -inf
    return lo, hi, (False, False)


def own(node: exp.Expr) -> str:
    """Spark SQL over the stream's own columns, without the alias."""
    bare = node.copy().transform(
        lambda n: exp.column(n.name, quoted=True) if isinstance(n, exp.Column) else n
    )
    return bare.sql(dialect="spark")
