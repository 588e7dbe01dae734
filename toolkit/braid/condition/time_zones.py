"""Detect expressions over two streams that depend on the session's time zone.

DuckDB evaluates them in UTC. Spark computes parts over one stream, in any zone.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

UTC = ("UTC", "Etc/UTC", "GMT", "Z", "+00:00")
"""Names of UTC."""
_CHOOSE = (exp.Paren, exp.Coalesce, exp.Greatest, exp.Least, exp.Case, exp.If, exp.Nullif)
"""Functions that return one of their operands unchanged."""
_COMPARE = (exp.Predicate, exp.ArrayContains, exp.UnixMicros)
"""Functions for which only the instant of a timestamp matters."""


def depends_on_time_zone(tree: exp.Expr, kind: Callable[[exp.Column], str]) -> bool:
    """Return whether a timestamp is used other than in a comparison with timestamps.

    Its hour, the day before, or a comparison with a date depends on the zone. ``kind`` returns a
    column's type.
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
