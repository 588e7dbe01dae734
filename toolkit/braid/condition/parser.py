"""Parse Spark SQL into a predicate: an analyzer checks the condition, sqlglot splits it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from sqlglot import exp

from braid.condition.arrow_type_checker import ArrowAnalyzer
from braid.condition.column_names import (
    limit_recursion,
    parse_condition,
    quote_condition,
    refuse_change_columns,
    resolve_columns,
)
from braid.condition.conjunct_parser import ConjunctParser
from braid.condition.constant_folding import fold_constants
from braid.condition.event_time_offsets import TimeColumn
from braid.condition.predicate import Predicate, with_windows
from braid.condition.spark_dialect import SparkSql
from braid.condition.sql_types import Analyzer
from braid.condition.time_bounds import find_time_bounds
from braid.condition.time_functions import rewrite_time_functions
from braid.errors import PredicateError


def parse_predicate(
    on: str,
    frames: Mapping[str, Any],
    windows: Sequence[int | None],
    analyser: Analyzer | None = None,
    times: Mapping[str, str] | None = None,
    timeless: Collection[int] = (),
    changes: Mapping[str, str] | None = None,
) -> Predicate:
    """Return the parsed condition for streams of these schemas and windows (microseconds).

    Only the schemas of ``frames`` are read. ``analyser`` checks the condition; default: one for the
    streams. ``times`` are event-time columns by alias; default: none. ``timeless`` are the streams
    that windows do not concern. ``changes`` are change columns by alias; default: none.

    Raises PredicateError for an unknown column, alias or function, for a condition that is not
    boolean, and for one whose bounds of event times exclude each other.
    """
    if not isinstance(on, str) or not on.strip():
        raise PredicateError(
            f"the join condition is {quote_condition(on)}; it must be Spark SQL text such as "
            "'a.x = b.x'"
        )
    with limit_recursion(on):
        analyser = analyser or make_analyzer(frames)
        tree = parse_condition(on)
        refuse_change_columns(tree, changes or {})
        tree = resolve_columns(tree, analyser.names)
        tree = rewrite_time_functions(tree, analyser)
        analyser.check_condition(tree, on)
        tree = fold_constants(tree)
        predicate = ConjunctParser(analyser).parse_predicate(tree)
        predicate = with_windows(predicate, windows, timeless)
        return _with_time_bounds(predicate, tree, analyser, times) if times else predicate


def _with_time_bounds(
    predicate: Predicate, tree: exp.Expr, analyser: Analyzer, times: Mapping[str, str]
) -> Predicate:
    """Return the predicate with the bounds of event times that the condition implies."""
    columns = {}
    for stream, alias in enumerate(predicate.aliases):
        if (name := times.get(alias)) is not None:
            kind = analyser.infer_type(alias, exp.to_identifier(name, quoted=True).sql(SparkSql))
            columns[alias, name] = TimeColumn(stream, str(kind))
    bounds = find_time_bounds(tree, len(predicate.aliases), columns, analyser.zone_spread)
    return replace(predicate, time_bounds=bounds)


def make_analyzer(streams: Mapping[str, Any]) -> Analyzer:
    """Return the analyzer for these streams: Spark's, or the one for tables."""
    if all(isinstance(s, (pa.Table, pa.Schema)) for s in streams.values()):
        return ArrowAnalyzer(streams)
    from braid.condition.spark_type_checker import SparkAnalyzer

    return SparkAnalyzer(streams)
