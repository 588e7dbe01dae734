"""What tuples are worth: numbers in Spark SQL over the columns of one stream each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from braid.condition.analyser import Analyser
from braid.condition.names import quoted, read, resolved, shallow
from braid.condition.parse import analyser_of
from braid.condition.predicate import PredicateError
from braid.condition.sqltypes import INTEGRAL, REAL
from braid.condition.terms import own


def utilities(given: Mapping[str, str], streams: Mapping[str, Any]) -> tuple[str | None, ...]:
    """By stream, Spark SQL of what a tuple is worth, over the stream's own columns; None where
    nothing is said.

    Raises PredicateError, with one sentence, for an unknown alias, and for what is no number, has
    another value each time, or needs two streams.
    """
    if unknown := sorted(set(given) - set(streams)):
        raise PredicateError(
            f"utility is given for {', '.join(unknown)}; the streams are {', '.join(streams)}"
        )
    return tuple(_own(a, streams[a], given[a]) if a in given else None for a in streams)


def _own(alias: str, stream: Any, sql: str) -> str:
    try:
        with shallow(sql):
            return f"cast(({_number(alias, analyser_of({alias: stream}), sql)}) as double)"
    except PredicateError as error:
        place = f"in the utility of {alias}"
        raise PredicateError(str(error).replace("in the join condition", place)) from None


def _number(alias: str, analyser: Analyser, sql: str) -> str:
    text = own(resolved(read(sql), analyser.names))
    kind = analyser.type_of(alias, text)
    if kind is None or kind.name not in (*INTEGRAL, *REAL, "decimal"):
        raise PredicateError(
            f"the utility {quoted(sql)} in the join condition is "
            f"{'unknown' if kind is None else f'of type {kind}'}; it must be a number"
        )
    analyser.judge(resolved(read(f"({sql}) > 0"), analyser.names), sql)
    return text
