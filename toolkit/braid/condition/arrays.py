"""Arrays of Spark SQL as DuckDB SQL: how many elements they have, and which."""

from __future__ import annotations

from sqlglot import exp

from braid.condition.numbers import Numbers
from braid.condition.sets import INNER, OVERLAP, calls, sized
from braid.condition.sqltypes import BOOLEAN, DOUBLE, INT
from braid.condition.typed import Typed


class Arrays(Numbers):
    """Sizes, without NULL elements, and whether an element is there. NULL is an element as others
    to Spark, which DuckDB's lists of distinct elements leave out.
    """

    def _array(self, node: exp.Expr) -> Typed:
        sql, kind = self.compile(node)
        if not kind.name.startswith("array<"):
            self._refuse(node, f" is of type {kind} where an array is needed")
        return sql, kind

    def _calls(self, node: exp.Expr) -> Typed:
        """What sqlglot has no class for."""
        if calls(node, OVERLAP):  # evaluated by a kernel of its own; here it is only typed
            x, y = (self._array(side)[0] for side in node.expressions)
            return f"{OVERLAP}({x}, {y})", INT
        if calls(node, INNER):
            maps = [self.compile(side) for side in node.expressions]
            if not all(kind.name.startswith("map<") for _, kind in maps):
                self._refuse(node, " is of maps")
            return f"{INNER}({maps[0][0]}, {maps[1][0]})", DOUBLE
        if sized(node) is not None:
            return self._size(node)
        self._refuse(node)

    def _size(self, node: exp.Expr) -> Typed:
        """Of an array, or of its distinct elements."""
        inner = sized(node)
        assert inner is not None
        distinct = isinstance(inner, exp.ArrayDistinct)
        array = self._array(inner.this if distinct else inner)[0]
        if not distinct:
            return f"CAST(len({array}) AS INTEGER)", INT
        gaps = f"CAST({_gaps(array)} AS INTEGER)"
        return f"CAST(len(list_distinct({array})) + {gaps} AS INTEGER)", INT

    def _compact(self, node: exp.ArrayCompact) -> Typed:
        array, kind = self._array(node.this)
        return f"list_filter({array}, lambda x: x IS NOT NULL)", kind

    def _contains(self, node: exp.ArrayContains) -> Typed:
        """NULL where it is not found among others that are NULL."""
        (array, kind), (value, item) = (self.compile(n) for n in (node.this, node.expression))
        if kind.name != f"array<{item}>":
            self._refuse(node, f" looks for a value of type {item} in one of type {kind}")
        return (
            f"(CASE WHEN list_contains({array}, {value}) THEN true "
            f"WHEN {array} IS NULL OR {value} IS NULL OR {_gaps(array)} THEN NULL ELSE false END)"
        ), BOOLEAN


def _gaps(array: str) -> str:
    """Whether an array has a NULL."""
    return f"(len(list_filter({array}, lambda x: x IS NULL)) > 0)"
