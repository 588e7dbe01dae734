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
    Tuples that pass the filter and whose event time (``time``, SQL) is NULL are kept, to be counted
    later. No key of them is computed here, see ``guard_untimed_column``.
    """
    there = {n: f"({columns[n]}) IS NOT NULL" for n in keys}
    trees = {n: sqlglot.parse_one(sql, dialect=SparkSql) for n, sql in keys.items()}
    first = [there[n] for n in keys if is_safe(trees[n])]
    last = [there[n] for n in keys if not is_safe(trees[n])]
    untimed = [] if time is None else [f"({time}) IS NULL"]
    if first and not last and untimed:
        first = [f"({untimed[0]} OR ({' AND '.join(first)}))"]
    passed = [] if passes is None else [passes]
    if not last or not (first or passed or untimed):
        return first + passed + last
    cases = [(untimed + passed, ["true"])] if untimed else []
    cases.append((first + passed or ["true"], last))
    whens = (f"WHEN {' AND '.join(when)} THEN {' AND '.join(then)}" for when, then in cases)
    return [f"CASE {' '.join(whens)} ELSE false END"]


def guard_untimed_column(sql: str, column: str, condition: str) -> str:
    """Return SQL that computes a column only if the condition holds, unless it never fails.

    ``sql``: the column in Spark SQL; ``column``: the same in the dialect of the condition.
    """
    return column if is_safe(_parse_sql(sql)) else f"CASE WHEN {condition} THEN {column} END"


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
    timed = f"({time}) IS NOT NULL AND {meets}"
    guarded = {name: guard_untimed_column(s, s, timed) for name, s in {**keys, **computed}.items()}
    return {**guarded, MEETS: meets}


def _parse_sql(text: str) -> sqlglot.exp.Expr:
    return sqlglot.parse_one(text, dialect=SparkSql)
