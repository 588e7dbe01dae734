"""Compute a query's answer from its matches with Spark: ticks, groups and columns."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from braid.errors import QueryError
from braid.hub.hub_backend import TickRange
from braid.hub.query_parser import StreamQuery

TICK = "tick"
"""Column of a ticked answer that has the time at which a row held."""


def answer_query(matches: DataFrame, query: StreamQuery, time: str, ticks: TickRange) -> DataFrame:
    """Return the answer to a query. ``matches`` has a struct column for each alias.

    Without a SLIDE: one row per match (S2). With one: the matches that hold at each tick (S3),
    grouped if the query groups (S4). An aggregate without GROUP BY has a row at every tick, as SQL
    has for no rows. One with GROUP BY has none at a tick without matches.
    """
    if query.slide is None:
        return matches.selectExpr(*query.select)
    held = _expand_to_ticks(matches, query, time, ticks)
    tick = F.timestamp_micros(F.col("__tick") * F.lit(query.slide)).alias(TICK)
    select = [F.expr(s) for s in query.select]
    if not query.groups and not query.aggregates:
        return held.select(tick, *select)
    grouped = held.groupBy("__tick", *(F.expr(g) for g in query.groups))
    rows = _aggregate_groups(grouped.agg, query, "__tick")
    if not query.groups:
        rows = rows.unionByName(_aggregate_empty_ticks(held, query, ticks))
    rows = rows.where("__having").select(tick, *(f"__v{i}" for i in range(len(select))))
    names = grouped.agg(*select).columns[1 + len(query.groups) :]
    return rows.toDF(TICK, *names)


def _expand_to_ticks(
    matches: DataFrame, query: StreamQuery, time: str, ticks: TickRange
) -> DataFrame:
    """Return every match at every tick at which it holds."""
    every, windows = query.slide, query.windows_by_stream
    assert every is not None
    instants = {a: F.unix_micros(F.col(f"`{a}`.`{time}`").cast("timestamp")) for a in query.aliases}
    ends = [instants[a] + F.lit(windows[s]) for a, s in query.aliases.items()]
    first = F.ceil(_reduce_columns(F.greatest, list(instants.values())) / every)
    last = F.ceil(_reduce_columns(F.least, ends) / every) - 1
    if ticks.since is not None:
        first = F.greatest(first, F.lit(ticks.since // every + 1))
    last = F.least(last, F.lit(-1 if ticks.until is None else -(-ticks.until // every) - 1))
    held = matches.withColumn("__first", first.cast("long")).withColumn("__last", last.cast("long"))
    return held.where("__first <= __last").withColumn(
        "__tick", F.explode(F.sequence("__first", "__last"))
    )


def _aggregate_groups(agg: Callable[..., DataFrame], query: StreamQuery, *keys: str) -> DataFrame:
    """Return the selected expressions of groups, by number, and whether HAVING accepts them."""
    having = F.lit(True) if query.having is None else F.coalesce(F.expr(query.having), F.lit(False))
    select = [F.expr(s).alias(f"__v{i}") for i, s in enumerate(query.select)]
    aggregated = agg(*select, having.alias("__having"))
    return aggregated.select(*keys, *(f"__v{i}" for i in range(len(select))), "__having")


def _aggregate_empty_ticks(held: DataFrame, query: StreamQuery, ticks: TickRange) -> DataFrame:
    """Return the aggregates of no rows, at the ticks at which nothing holds."""
    numbers = ticks.tick_numbers(query.slide or 1)
    spark = held.sparkSession
    silent = spark.range(numbers.start, max(numbers.start, numbers.stop)).withColumnRenamed(
        "id", "__tick"
    )
    silent = silent.join(held.select("__tick").distinct(), "__tick", "left_anti")
    return silent.crossJoin(_aggregate_groups(held.where(F.lit(False)).agg, query))


def _reduce_columns(pick: Any, columns: list[Column]) -> Column:
    return reduce(pick, columns)


def check_query(matches: DataFrame, query: StreamQuery, time: str) -> None:
    """Raise QueryError if Spark refuses the query. ``matches`` is empty."""
    try:
        if query.where is not None:
            matches = matches.where(F.expr(query.where))
        answer = answer_query(matches, query, time, TickRange(None, None, None))
        analysed = answer._jdf.queryExecution().analyzed()
    except (AnalysisException, ParseException) as error:
        raise QueryError(f"Spark refuses the query: {str(error).splitlines()[0]}") from None
    if not analysed.deterministic():
        raise QueryError("the query is not deterministic, which is not supported")
