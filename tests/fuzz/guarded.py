"""Many expressions in one Spark query, in which an error of one does not end the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def parse_expression(spark: Any, text: str) -> Any:
    """Return Spark's syntax tree of an expression."""
    return spark._jsparkSession.sessionState().sqlParser().parseExpression(text)


def guard_expressions(spark: Any, trees: Sequence[Any]) -> Any:
    """Return Spark columns of expressions, each a struct with the value as its field ``it``.

    A row for which an expression raises an error has NULL instead of the struct.
    """
    jvm = spark._jvm
    rules, sql = jvm.org.apache.spark.sql.catalyst.expressions, jvm.org.apache.spark.sql
    sequence = jvm.org.apache.spark.api.python.PythonUtils.toSeq
    name, columns = parse_expression(spark, "'it'"), []
    for place, tree in enumerate(trees):
        value = rules.TryEval(rules.CreateNamedStruct(sequence([name, tree])))
        columns.append(sql.classic.ExpressionUtils.column(value).alias(f"c{place}"))
    return sequence(columns)
