"""Faults that were fixed, each put back by one patch.

The fuzzer must find every one of them within five minutes: ``make fuzz-faults``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from sqlglot import exp


@dataclass(frozen=True)
class SeededFault:
    """A fixed fault that is put back.

    - ``at``: dotted name of the replaced object.
    - ``fault``: returns its replacement, given the original.
    - ``needs``: what finds it: conditions over tables, conditions over Spark's frames, or
      statements of a hub.
    - ``shows``: a pattern of the condition or statement, or of the sentence that describes its
      wrong answer.
    """

    name: str
    at: str
    fault: Callable[[Any], Any]
    needs: Literal["tables", "Spark", "hub"]
    shows: str


def _drop_not(negate: Any) -> Any:
    """Read NOT LIKE as LIKE."""

    def replacement(self: Any, this: Any = None) -> Any:
        like = this.this if isinstance(this, exp.Escape) else this
        return this if isinstance(like, exp.Like) else negate(self, this)

    return replacement


def _keep_negated(turn: Any) -> Any:
    """Keep both sides of a comparison of floats negated, which leaves NaN the largest."""

    def replacement(*given: Any) -> Any:
        is_first_time = sys._getframe(1).f_code.co_name == "_compile_comparison"
        return given if is_first_time else turn(*given)

    return replacement


def _reading(kind: type[exp.Expr], *names: str) -> Callable[[Any], Any]:
    """Accept statements with words that no rule reads."""
    return lambda table: {**table, kind: (*table[kind], *names)}


_STATEMENT = "braid.hub.query_dialect.STATEMENT"
FAULTS = (
    SeededFault(
        "NOT LIKE", "braid.condition.spark_dialect.SparkSql.Parser._negate_range", _drop_not, "tables", "NOT LIKE"
    ),
    SeededFault("ASOF", _STATEMENT, _reading(exp.Join, "method"), "hub", "ASOF"),
    SeededFault("NATURAL", _STATEMENT, _reading(exp.Join, "method"), "hub", "NATURAL"),
    SeededFault("EXCEPT", _STATEMENT, _reading(exp.Star, "except_"), "hub", r"\* EXCEPT"),
    SeededFault("TABLESAMPLE", _STATEMENT, _reading(exp.Table, "sample"), "hub", "TABLESAMPLE"),
    SeededFault("alias columns", _STATEMENT, _reading(exp.TableAlias, "columns"), "hub", r"\w\(id"),
    SeededFault(
        "NaN turned", "braid.condition.parser._negate_comparison", _keep_negated, "tables", "too many|lost"
    ),
    SeededFault(
        "overflow", "braid.condition.parser.find_sums", lambda find: lambda *given: [], "tables", "results where Spark fails"
    ),
    SeededFault(
        "NULL of a struct with a required field",
        "braid.core.reserved_columns._make_nested_nullable",
        lambda nullable: lambda kind: kind,
        "Spark",
        "non-nullable",
    ),
)  # fmt: skip
