"""The tuples of a stream that can be in a pair: their conditions, in SQL."""

from __future__ import annotations

from collections.abc import Mapping

import sqlglot

from braid.condition.failure_guards import is_safe
from braid.condition.predicate import Predicate
from braid.condition.spark_dialect import SparkSql
from braid.core.reserved_columns import MEETS


def make_tuple_filter(
    columns: Mapping[str, str],
    keys: Mapping[str, str],
    passes: str | None,
    time: str | None = None,
) -> list[str]:
    """Return the conditions that a tuple must satisfy: the filter, and that no key is NULL.

    As in Spark, a key that may fail is not computed for a tuple that the other conditions reject.
    If no key may, tuples whose event time (``time``, SQL) is NULL are kept, to be counted later.
    """
    there = {n: f"({columns[n]}) IS NOT NULL" for n in keys}
    trees = {n: sqlglot.parse_one(sql, dialect=SparkSql) for n, sql in keys.items()}
    first = [there[n] for n in keys if is_safe(trees[n])]
    last = [there[n] for n in keys if not is_safe(trees[n])]
    if first and not last and time is not None:
        first = [f"(({time}) IS NULL OR ({' AND '.join(first)}))"]
    if passes is not None:
        first.append(passes)
    if not first or not last:
        return first + last
    return [f"CASE WHEN {' AND '.join(first)} THEN {' AND '.join(last)} ELSE false END"]


def make_marked_columns(predicate: Predicate, stream: int, time: str) -> dict[str, str]:
    """Return Spark SQL for the columns that the condition adds to a stream that is not filtered.

    ``time``: Spark SQL for the event time; NULL: unknown, though it is needed. One of the columns,
    ``MEETS``, marks the tuples that can be in a pair, unless all can. For the others no expression
    that may fail is computed.
    """
    keys, computed = predicate.key_columns[stream], predicate.computed_columns[stream]
    conditions = make_tuple_filter(keys, keys, predicate.filters[stream], time)
    if not conditions:
        return {**keys, **computed}
    meets = f"coalesce({' AND '.join(f'({each})' for each in conditions)}, false)"
    guarded = {
        name: sql if is_safe(_parse_sql(sql)) else f"CASE WHEN {meets} THEN {sql} END"
        for name, sql in {**keys, **computed}.items()
    }
    return {**guarded, MEETS: meets}


def _parse_sql(text: str) -> sqlglot.exp.Expr:
    return sqlglot.parse_one(text, dialect=SparkSql)
