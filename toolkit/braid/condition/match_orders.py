"""Add to a predicate what an as-of join compares: columns of blocks, and a condition on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import floor
from typing import NoReturn

from sqlglot import exp

from braid.condition.access_paths import IndexCondition
from braid.condition.key_equalities import add_key_column
from braid.condition.predicate import Predicate
from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import Analyzer, SqlType
from braid.condition.term_normalizer import comparison_domain, key_sql
from braid.core.match_rules import MatchOptions, MatchRule, parse_time_tolerance
from braid.core.reserved_columns import TIME
from braid.util.durations import UNITS

_TIMES = ("date", "timestamp", "timestamp_ntz")


def make_match_rule(
    options: MatchOptions,
    predicate: Predicate,
    analyser: Analyzer,
    columns: Sequence[str],
) -> tuple[MatchRule, Predicate]:
    """Return the rule of an as-of join, and the predicate with what it compares.

    ``columns``: the columns of the second stream.

    Raises ValueError if the columns of ``order`` cannot be compared, or the tolerance does not suit
    them.
    """
    if options.order:
        kind, scale, predicate, keys = _add_order_keys(options, predicate, analyser)
    else:
        kind, scale, keys = "timestamp", 0, (TIME, TIME)
    ties = tuple(columns) if options.ties is None else options.ties
    tolerance = _convert_tolerance(options, kind, scale)
    rule = MatchRule(options.match, keys, tolerance, options.is_strict, ties)
    low, high = rule.find_difference_bounds()
    condition = IndexCondition((0, keys[0]), (1, keys[1]), low, high)
    conditions = (*predicate.index_conditions, condition)
    return rule, replace(predicate, index_conditions=conditions)


def _add_order_keys(
    options: MatchOptions, predicate: Predicate, analyser: Analyzer
) -> tuple[str, int, Predicate, tuple[str, str]]:
    """Return the kind and scale in which orders are compared, and the key columns, added."""
    names = [exp.to_identifier(c, quoted=True).sql(SparkSql) for c in options.order.values()]
    types = [
        analyser.infer_type(alias, name) for alias, name in zip(options.order, names, strict=True)
    ]
    left, right = types
    kind = None if left is None or right is None else comparison_domain(left, right)
    if left is None or right is None or kind is None or kind == "bool":
        _refuse_order(options.order, types)
    scale = max(left.scale, right.scale)
    keys, columns = [], [dict(each) for each in predicate.key_columns]
    for stream, name in enumerate(names):
        sql = key_sql(kind, name, scale)
        if kind == "float":  # NaN has no distance
            sql = f"if(isnan({sql}), null, {sql})"
        keys.append(add_key_column(columns[stream], "__k", sql))
    return kind, scale, replace(predicate, key_columns=tuple(columns)), (keys[0], keys[1])


def _refuse_order(order: Mapping[str, str], types: Sequence[SqlType | None]) -> NoReturn:
    named = " and ".join(
        f"{alias}.{column} of type {kind}"
        for (alias, column), kind in zip(order.items(), types, strict=True)
    )
    raise ValueError(
        f"order names {named}; it must name two numbers, dates or timestamps that Spark compares"
    )


def _convert_tolerance(options: MatchOptions, kind: str, scale: int) -> float | None:
    """Return the tolerance in units of the order keys; None: there is none.

    Raises ValueError if it is a number for times, or a span for numbers.
    """
    given = options.tolerance
    if given is None:
        return None
    if kind in _TIMES:
        micros = parse_time_tolerance(given)
        return micros // UNITS["day"] if kind == "date" else micros
    if isinstance(given, str | bool) or not 0 <= given < float("inf"):
        raise ValueError(
            f"tolerance is {given!r}, but numbers are compared; it must be a number, 0 or more"
        )
    return float(given) if kind == "float" else floor(given * 10**scale)
