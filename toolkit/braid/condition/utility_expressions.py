"""Parse the utility of tuples: numbers in Spark SQL over the columns of one stream each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from braid.condition.column_names import (
    limit_recursion,
    parse_condition,
    quote_condition,
    resolve_columns,
)
from braid.condition.parser import make_analyzer
from braid.condition.sql_types import INTEGRAL, REAL, Analyzer
from braid.condition.term_normalizer import strip_alias
from braid.errors import PredicateError


def parse_utilities(given: Mapping[str, str], streams: Mapping[str, Any]) -> tuple[str | None, ...]:
    """Return, by stream, Spark SQL for a tuple's utility; None: not given.

    The SQL is over the stream's own columns.

    Raises PredicateError for an unknown alias, and for an expression that is not a number, is not
    deterministic, or needs two streams.
    """
    if unknown := sorted(set(given) - set(streams)):
        raise PredicateError(
            f"utility is given for {', '.join(unknown)}; the streams are {', '.join(streams)}"
        )
    return tuple(_compile_utility(a, streams[a], given[a]) if a in given else None for a in streams)


def _compile_utility(alias: str, stream: Any, sql: str) -> str:
    try:
        with limit_recursion(sql):
            return f"cast(({_check_number(alias, make_analyzer({alias: stream}), sql)}) as double)"
    except PredicateError as error:
        place = f"in the utility of {alias}"
        raise PredicateError(str(error).replace("in the join condition", place)) from None


def _check_number(alias: str, analyser: Analyzer, sql: str) -> str:
    text = strip_alias(resolve_columns(parse_condition(sql), analyser.names))
    kind = analyser.infer_type(alias, text)
    if kind is None or kind.name not in (*INTEGRAL, *REAL, "decimal"):
        raise PredicateError(
            f"the utility {quote_condition(sql)} in the join condition is "
            f"{'unknown' if kind is None else f'of type {kind}'}; it must be a number"
        )
    analyser.check_condition(resolve_columns(parse_condition(f"({sql}) > 0"), analyser.names), sql)
    return text
