"""Rewrite functions of time that Spark refuses in a join, or that no index supports.

- ``window(t, width)`` is the tumbling window of a time. Spark refuses it in a join. Its start is
  computed from microseconds, as Spark's rule TimeWindowing does.
- ``timestampdiff(unit, x, y) <= n`` over two streams becomes a comparison of microseconds. In a
  session whose zone is not UTC, it depends on the zone and stays.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from braid.condition.event_time_offsets import read_integer
from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import Analyzer, SqlType
from braid.condition.term_normalizer import strip_alias
from braid.errors import PredicateError
from braid.util.durations import UNITS, parse_duration

_TURNED: Mapping[type, type] = {
    exp.EQ: exp.EQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}


def rewrite_time_functions(tree: exp.Expr, analyser: Analyzer) -> exp.Expr:
    """Return the condition without these functions. Raises PredicateError for a sliding window."""
    tree = tree.transform(lambda node: _rewrite_window(node, analyser))
    return tree if analyser.has_time_zone else tree.transform(_rewrite_elapsed)


def _rewrite_window(node: exp.Expr, analyser: Analyzer) -> exp.Expr:
    """Rewrite ``window(t, w).start``, ``window(t, w).end`` and the equality of two windows."""
    if isinstance(node, exp.Dot) and node.expression.name.lower() in ("start", "end"):
        if (window := _TumblingWindow.parse_call(node.this, analyser)) is None:
            return node
        end = window.width if node.expression.name.lower() == "end" else 0
        return exp.func("timestamp_micros", window.make_start(end))
    if isinstance(node, exp.EQ):
        sides = [
            _TumblingWindow.parse_call(side, analyser) for side in (node.this, node.expression)
        ]
        if sides[0] is not None and sides[1] is not None:
            if sides[0].width != sides[1].width:
                return exp.false()
            return exp.EQ(this=sides[0].make_start(), expression=sides[1].make_start())
    return node


class _TumblingWindow:
    """The call ``window(time, width, width, first)``, in microseconds."""

    def __init__(self, time: exp.Expr, width: int, first: int) -> None:
        self.time, self.width, self.first = time, width, first

    @classmethod
    def parse_call(cls, node: exp.Expr, analyser: Analyzer) -> _TumblingWindow | None:
        """Return the window of a call; None for other expressions.

        Raises PredicateError if it slides.
        """
        node = node.unnest()
        if not isinstance(node, exp.Anonymous) or str(node.this).lower() != "window":
            return None
        time, *spans = node.expressions
        if not 1 <= len(spans) <= 3 or not all(isinstance(s, exp.Literal) for s in spans):
            return None
        try:
            sizes = [parse_duration(span.name, "window", zero=True) for span in spans]
        except ValueError:
            return None
        width, slide, first = (*sizes, *([sizes[0], 0][len(sizes) - 1 :]))[:3]
        if slide != width:
            text = node.sql(dialect=SparkSql).replace("`", "")
            raise PredicateError(
                f"{text} in the join condition slides, so that a tuple is in several windows; "
                "a tumbling window of one width is accepted"
            )
        kind = _infer_type(time, analyser)
        if kind is not None and kind.name not in ("timestamp", "timestamp_ntz", "date"):
            text = node.sql(dialect=SparkSql).replace("`", "")
            raise PredicateError(
                f"{text} in the join condition is a window of type {kind}; it must be one of a "
                "timestamp"
            )
        if analyser.has_time_zone and (kind is None or kind.name != "timestamp"):
            return None
        return cls(time, width, first)

    def make_start(self, moved: int = 0) -> exp.Expr:
        """Return the start of the window of a time, in microseconds, moved by some more."""
        micros = exp.UnixMicros(this=self.time.copy())
        width = exp.Literal.number(self.width)
        since = exp.paren(micros - self.first) if self.first else micros
        rest = exp.Mod(this=exp.paren(exp.Mod(this=since, expression=width) + self.width))
        rest.set("expression", width.copy())
        start = micros.copy() - exp.paren(rest)
        return exp.paren(start + moved if moved else start)


def _infer_type(time: exp.Expr, analyser: Analyzer) -> SqlType | None:
    """Return the type of an expression over one stream; None: unknown, or over several."""
    aliases = {column.table for column in time.find_all(exp.Column)}
    if len(aliases) != 1:
        return None
    return analyser.infer_type(aliases.pop(), f"({strip_alias(time)})")


def _rewrite_elapsed(node: exp.Expr) -> exp.Expr:
    """Rewrite a comparison of ``timestampdiff`` over two streams with a whole number."""
    if isinstance(node, exp.Between) and isinstance(node.this.unnest(), exp.TimestampDiff):
        low = _compare_elapsed(exp.GTE, node.this, node.args["low"])
        high = _compare_elapsed(exp.LTE, node.this, node.args["high"])
        return exp.paren(exp.And(this=low, expression=high)) if low and high else node
    if type(node) not in _TURNED:
        return node
    if isinstance(node.this.unnest(), exp.TimestampDiff):
        return _compare_elapsed(type(node), node.this, node.expression) or node
    if isinstance(node.expression.unnest(), exp.TimestampDiff):
        return _compare_elapsed(_TURNED[type(node)], node.expression, node.this) or node
    return node


def _compare_elapsed(op: type, elapsed: exp.Expr, number: exp.Expr) -> exp.Expr | None:
    """Return ``timestampdiff(unit, x, y) op n`` in microseconds; None: it stays as it is."""
    elapsed = elapsed.unnest()
    unit, count = UNITS.get(str(elapsed.args.get("unit")).lower()), read_integer(number)
    aliases = {column.table for column in elapsed.find_all(exp.Column)}
    if unit is None or count is None or len(aliases) != 2:
        return None
    ends = (exp.UnixMicros(this=side.copy()) for side in (elapsed.this, elapsed.expression))
    span = exp.Sub(this=next(ends), expression=next(ends))
    last = count - 1 if op is exp.LT else count
    first = count + 1 if op is exp.GT else count
    most = (last + 1) * unit - 1 if last >= 0 else last * unit
    least = (first - 1) * unit + 1 if first <= 0 else first * unit
    below = exp.LTE(this=span, expression=exp.convert(most))
    above = exp.GTE(this=span.copy(), expression=exp.convert(least))
    if op is exp.EQ:
        return exp.paren(exp.And(this=above, expression=below))
    return below if op in (exp.LT, exp.LTE) else above
