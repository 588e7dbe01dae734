"""From an operator's results to a query's answer: selections, ages, ticks, groups, by Spark when
somebody reads it.
"""

from __future__ import annotations

from functools import reduce

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from braid.hub.dialect import QueryError
from braid.hub.query import StreamQuery

TICK = "tick"
"""The column of a ticked answer that says at which time it held."""


def answer(
    matches: DataFrame, query: StreamQuery, time: str, since: int | None, until: int | None
) -> DataFrame:
    """The rows of a query. ``matches`` has a struct column for each stream.

    Without a SLIDE: one for each match (S2). With one: at each tick after ``since`` and before
    ``until`` (microseconds), what holds then (S3), grouped if the query groups (S4).
    """
    named = matches.select(*(F.col(f"`{s}`").alias(a) for a, s in query.aliases.items()))
    if query.where is not None:
        named = named.where(F.expr(query.where))
    instants = {a: _micros(a, time) for a in query.aliases}
    latest = _of(F.greatest, list(instants.values()))
    for alias, stream in query.aliases.items():
        named = named.where(latest - instants[alias] < F.lit(query.windows[stream]))
    if query.every is None:
        return named.selectExpr(*query.select)
    ends = [instants[a] + F.lit(query.windows[s]) for a, s in query.aliases.items()]
    return _told(named, query, latest, _of(F.least, ends), since, until)


def _told(
    named: DataFrame,
    query: StreamQuery,
    start: Column,
    end: Column,
    since: int | None,
    until: int | None,
) -> DataFrame:
    every = query.every
    assert every is not None
    first, last = F.ceil(start / every), F.ceil(end / every) - 1
    if since is not None:
        first = F.greatest(first, F.lit(since // every + 1))
    last = F.least(last, F.lit(-1 if until is None else -(-until // every) - 1))
    held = named.withColumn("__first", first.cast("long")).withColumn("__last", last.cast("long"))
    held = held.where("__first <= __last").withColumn(
        "__tick", F.explode(F.sequence("__first", "__last"))
    )
    tick = F.timestamp_micros(F.col("__tick") * F.lit(every)).alias(TICK)
    select = [F.expr(s) for s in query.select]
    if not query.groups and not query.aggregates:
        return held.select(tick, *select)
    grouped = held.groupBy(F.col("__tick"), *(F.expr(g) for g in query.groups))
    having = [] if query.having is None else [F.expr(query.having).alias("__having")]
    told = grouped.agg(*(c.alias(f"__v{i}") for i, c in enumerate(select)), *having)
    if having:
        told = told.where("__having")
    names = grouped.agg(*select).columns[1 + len(query.groups) :]
    return told.select(tick, *(F.col(f"__v{i}").alias(n) for i, n in enumerate(names)))


def _micros(alias: str, time: str) -> Column:
    return F.unix_micros(F.col(f"`{alias}`.`{time}`").cast("timestamp"))


def _of(pick: object, columns: list[Column]) -> Column:
    return reduce(lambda a, b: pick(a, b), columns)  # type: ignore[operator]


def judged(matches: DataFrame, query: StreamQuery, time: str) -> None:
    """Raises QueryError if Spark does not take the query; ``matches`` is empty."""
    try:
        found = answer(matches, query, time, None, None)
        analysed = found._jdf.queryExecution().analyzed()
    except (AnalysisException, ParseException) as error:
        raise QueryError(f"Spark refuses the query: {str(error).splitlines()[0]}") from None
    if not analysed.deterministic():
        raise QueryError("the query has another answer each time; that is not taken")
