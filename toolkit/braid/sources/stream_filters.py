"""Filters of streams: rows for which ``where`` is not true do not exist for the join.

A filter applies before anything else, to Spark's frames and to tables. A filter in the condition of
a join differs from it for preserved streams: there it decides which rows match.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from braid.condition.arrow_type_checker import ArrowAnalyzer
from braid.condition.parser import parse_predicate
from braid.condition.residual_evaluation import query_table, raise_failure
from braid.errors import PredicateError
from braid.util.validation import format_value

_PLACE = "__place"


def filter_streams(streams: Mapping[str, Any], where: Any) -> dict[str, Any]:
    """Return the streams with the rows for which their filter is true.

    ``where``: Spark SQL of one stream by alias; None: no filter.

    Raises ValueError if it names an unknown alias, PredicateError if it is no condition of its
    stream, EvaluationFailure if it has no value for a row of a table, as in Spark.
    """
    given = check_filters(where, streams)
    return {
        alias: _filter_stream(alias, stream, given[alias]) if alias in given else stream
        for alias, stream in streams.items()
    }


def check_filters(where: Any, aliases: Mapping[str, Any]) -> dict[str, str]:
    """Return the filters by alias.

    Raises ValueError unless they are texts of known aliases.
    """
    if where is None:
        return {}
    if not isinstance(where, Mapping) or not all(isinstance(w, str) for w in where.values()):
        raise ValueError(
            f"where is {format_value(where)}; it must be Spark SQL by alias, as {{'a': 'a.x > 1'}}"
        )
    if unknown := [alias for alias in where if alias not in aliases]:
        raise ValueError(f"where is given for {unknown}; the streams are {', '.join(aliases)}")
    return {alias: where[alias] for alias in aliases if alias in where}


def _filter_stream(alias: str, stream: Any, sql: str) -> Any:
    condition = parse_filter(alias, stream, sql)
    if isinstance(stream, pa.Table):
        return _filter_table(alias, stream, condition)
    return stream.filter(condition)


def parse_filter(alias: str, stream: Any, sql: str) -> str:
    """Return a filter as Spark SQL over the columns of its stream. Raises PredicateError."""
    try:
        condition = parse_predicate(sql, {alias: stream}, [None]).filters[0]
    except PredicateError as error:
        text = str(error).replace("the join condition", f"where of {alias}")
        raise PredicateError(text) from None
    return "true" if condition is None else condition


def _filter_table(alias: str, rows: pa.Table, condition: str) -> pa.Table:
    analyser = ArrowAnalyzer({alias: rows})
    numbered = rows.append_column(_PLACE, pa.array(np.arange(rows.num_rows)))
    sql = analyser.compile_expression(alias, condition)[0]
    try:
        chosen = query_table(f"SELECT {_PLACE} FROM tuples WHERE {sql}", numbered)
    except duckdb.Error as error:
        fallible = analyser.find_fallible_parts(alias, condition)
        raise_failure(error, fallible, rows, f", where of {alias}")
        raise
    return rows.take(chosen[_PLACE])
