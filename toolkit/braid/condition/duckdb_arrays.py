"""Compile array functions of Spark SQL to DuckDB SQL."""

from __future__ import annotations

from sqlglot import exp

from braid.condition.duckdb_arithmetic import ArithmeticCompiler
from braid.condition.set_similarity import INNER, OVERLAP, is_call_to, size_argument
from braid.condition.sql_types import BOOLEAN, DOUBLE, INT
from braid.condition.typed_expressions import Typed


class ArrayCompiler(ArithmeticCompiler):
    """Compilation rules for array sizes, array_compact and array_contains.

    To Spark, NULL is an element like others. DuckDB's lists of distinct elements omit it.
    """

    def _compile_array(self, node: exp.Expr) -> Typed:
        sql, kind = self.compile_expression(node)
        if not kind.name.startswith("array<"):
            self._raise_unsupported(node, f" is of type {kind} where an array is needed")
        return sql, kind

    def _compile_calls(self, node: exp.Expr) -> Typed:
        """Compile functions that sqlglot has no class for."""
        if is_call_to(node, OVERLAP):  # a kernel evaluates it; only its type is needed here
            x, y = (self._compile_array(side)[0] for side in node.expressions)
            return f"{OVERLAP}({x}, {y})", INT
        if is_call_to(node, INNER):
            maps = [self.compile_expression(side) for side in node.expressions]
            if not all(kind.name.startswith("map<") for _, kind in maps):
                self._raise_unsupported(node, " is of maps")
            return f"{INNER}({maps[0][0]}, {maps[1][0]})", DOUBLE
        if size_argument(node) is not None:
            return self._compile_size(node)
        self._raise_unsupported(node)

    def _compile_size(self, node: exp.Expr) -> Typed:
        """Compile the size of an array, or of its distinct elements."""
        inner = size_argument(node)
        assert inner is not None
        distinct = isinstance(inner, exp.ArrayDistinct)
        array = self._compile_array(inner.this if distinct else inner)[0]
        if not distinct:
            return f"CAST(len({array}) AS INTEGER)", INT
        gaps = f"CAST({_null_check_sql(array)} AS INTEGER)"
        return f"CAST(len(list_distinct({array})) + {gaps} AS INTEGER)", INT

    def _compile_compact(self, node: exp.ArrayCompact) -> Typed:
        array, kind = self._compile_array(node.this)
        return f"list_filter({array}, lambda x: x IS NOT NULL)", kind

    def _compile_contains(self, node: exp.ArrayContains) -> Typed:
        """Compile array_contains. It is NULL if the value is not found and an element is NULL."""
        (array, kind), (value, item) = (
            self.compile_expression(n) for n in (node.this, node.expression)
        )
        if kind.name != f"array<{item}>":
            self._raise_unsupported(
                node, f" looks for a value of type {item} in one of type {kind}"
            )
        return (
            f"(CASE WHEN list_contains({array}, {value}) THEN true "
            f"WHEN {array} IS NULL OR {value} IS NULL OR {_null_check_sql(array)} THEN NULL ELSE "
            "false END)"
        ), BOOLEAN


def _null_check_sql(array: str) -> str:
    """Return DuckDB SQL for whether an array contains NULL."""
    return f"(len(list_filter({array}, lambda x: x IS NULL)) > 0)"
