"""Where the session's time zone matters to an expression over two streams. DuckDB goes by UTC; what
one stream says alone Spark computes, in whatever zone.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

UTC = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")
"""Names of it."""
_CHOOSE = (exp.Paren, exp.Coalesce, exp.Greatest, exp.Least, exp.Case, exp.If, exp.Nullif)
"""They give one of their operands as it is."""
_COMPARE = (exp.Predicate, exp.ArrayContains, exp.UnixMicros)
"""They say no more of timestamps than which instants they are."""


def depends_on_time_zone(tree: exp.Expr, kind: Callable[[exp.Column], str]) -> bool:
    """Whether a timestamp is more than compared with other timestamps: its hour, the day before, or
    whether it is later than a date, depend on where that is. ``kind`` names a column's type.
    """
    if any(
        str(cast.to).upper().startswith(("TIMESTAMP", "DATE")) for cast in tree.find_all(exp.Cast)
    ):
        return True
    for column in tree.find_all(exp.Column):
        if kind(column) != "timestamp":
            continue
        node = column.parent
        while isinstance(node, _CHOOSE):
            node = node.parent
        if not isinstance(node, _COMPARE):
            return True
        if any(kind(c) in ("date", "timestamp_ntz") for c in node.find_all(exp.Column)):
            return True
    return False
