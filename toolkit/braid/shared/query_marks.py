"""Compute with Spark which queries' selections each tuple passes (Wang 2008, section 7.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import sqlglot
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from sqlglot import exp

from braid.condition.spark_dialect import SparkSql
from braid.core.reserved_columns import MARK, TIME
from braid.kernels.join_spec import StreamLayout
from braid.shared.query_changes import Queries, queries_by_selection


def bitmap_sql(wanted: Mapping[str | None, int], at: Callable[[str], str] = str) -> str:
    """Return Spark SQL for the bitmap of the selections that a tuple passes.

    Each selection is evaluated once; NULL passes none. ``at`` rewrites a selection over other
    columns.
    """
    terms = (
        f"{b}L" if sql is None else f"CASE WHEN {at(sql)} THEN {b}L ELSE 0L END"
        for sql, b in wanted.items()
    )
    return " | ".join(("0L", *terms))


class BitmapTagger:
    """Tagger that adds query bitmaps to the tuples of the streams' union.

    The columns are built once, from SQL text: building a column from parts costs one call to Spark
    per part.
    """

    def __init__(self, layouts: Sequence[StreamLayout], queries: Queries) -> None:
        self.queries, self._latest = queries, latest_time_columns(layouts)
        wanted = [queries_by_selection(queries, s) for s in range(len(layouts))]
        cases = " ".join(
            f"WHEN __stream = {s} THEN "
            f"{bitmap_sql(selections, partial(_rewrite_over_union, layout=layout))}"
            for s, (selections, layout) in enumerate(zip(wanted, layouts, strict=True))
        )
        self._mark = F.expr(f"CASE {cases} ELSE 0L END")
        # The second condition is never true. It keeps Spark from removing the observed plan if it
        # finds that no tuple is selected.
        free = all(None in selections for selections in wanted)
        self._some = None if free else f"{MARK} != 0 OR __stream < 0"

    def add_bitmaps(self, frame: DataFrame, seen: Observation) -> DataFrame:
        """Return the union with a bitmap for every tuple, without tuples that no query selects.

        ``seen`` observes the latest event time of each stream. Source: Wang 2008, section 7.4.
        """
        marked = frame.observe(seen, *self._latest).withColumn(MARK, self._mark)
        return marked if self._some is None else marked.where(self._some)


def latest_time_columns(layouts: Sequence[StreamLayout]) -> list[Column]:
    """Return one column per stream with its latest event time (microseconds) in the streams' union.

    Each column is named by the stream's number.
    """
    columns = []
    for s, layout in enumerate(layouts):
        slot = layout.union_column(TIME)
        time = (
            f"unix_micros({slot})"
            if TIME in {name for name, _, _ in layout.generated_columns}
            else slot
        )
        columns.append(F.expr(f"max(CASE WHEN __stream = {s} THEN {time} END)").alias(str(s)))
    return columns


def _rewrite_over_union(sql: str, layout: StreamLayout) -> str:
    """Rewrite Spark SQL over a stream's columns to the columns of the streams' union."""
    slots = {name.lower(): slot for name, slot in layout.column_slots}
    tree = sqlglot.parse_one(sql, read=SparkSql)
    for column in list(tree.find_all(exp.Column)):
        name, *fields = column.parts
        slot: exp.Expression = exp.column(slots[name.name.lower()], quoted=True)
        for field in fields:
            slot = exp.Dot(this=slot, expression=field.copy())
        column.replace(slot)
    return tree.sql(dialect=SparkSql)
