"""The marks of tuples: which queries' selections each passed, evaluated by Spark (Wang 2008,
section 7.4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

import sqlglot
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from sqlglot import exp

from braid.condition.names import SparkSql
from braid.core.columns import MARK, TIME
from braid.engine.wire import Layout
from braid.sharing.changes import Queries, selections


def marks(wanted: Mapping[str | None, int], at: Callable[[str], Column] = F.expr) -> Column:
    """The bits of the selections that a tuple passes, each evaluated once; NULL passes none. ``at``
    makes a column of Spark SQL.
    """
    terms = [
        F.lit(b) if sql is None else F.when(at(sql), F.lit(b)).otherwise(F.lit(0))
        for sql, b in wanted.items()
    ]
    return reduce(lambda a, b: a.bitwiseOR(b), terms, F.lit(0)).cast("long")


class Marking:
    """Gives tuples of the streams' union their marks for some queries. Its columns are made once:
    that takes Spark's gateway a call for each part of every selection.
    """

    def __init__(self, layouts: Sequence[Layout], queries: Queries) -> None:
        self.queries, self._latest = queries, latest(layouts)
        self._mark = F.lit(0).cast("long")
        for s, layout in enumerate(layouts):
            mine = marks(selections(queries, s), partial(_laid_out, layout=layout))
            self._mark = F.when(F.col("__stream") == s, mine).otherwise(self._mark)
        free = all(None in selections(queries, s) for s in range(len(layouts)))
        never = (
            F.col("__stream") < 0
            # beside a condition that Spark finds false it keeps the plan, which is observed, from
            # vanishing
        )
        self._some = None if free else (F.col(MARK) != 0) | never

    def marked(self, frame: DataFrame, seen: Observation) -> DataFrame:
        """The union with the marks of every tuple, without those that no query selects (Wang 2008,
        section 7.4). How far event time is, by stream, is ``seen`` on the way.
        """
        whole = frame.observe(seen, *self._latest).withColumn(MARK, self._mark)
        return whole if self._some is None else whole.where(self._some)


def latest(layouts: Sequence[Layout]) -> list[Column]:
    """By stream, the latest event time (microseconds) in the streams' union; each is named by the
    stream's number.
    """
    found = []
    for s, layout in enumerate(layouts):
        slot = F.col(layout.slot(TIME))
        time = F.unix_micros(slot) if TIME in {name for name, _, _ in layout.copies} else slot
        found.append(F.max(F.when(F.col("__stream") == s, time)).alias(str(s)))
    return found


def _laid_out(sql: str, layout: Layout) -> Column:
    """Spark SQL over a stream's columns, as a column of the streams' union."""
    slots = {name.lower(): slot for name, slot in layout.slots}
    tree = sqlglot.parse_one(sql, read=SparkSql)
    for column in list(tree.find_all(exp.Column)):
        name, *fields = column.parts
        slot: exp.Expression = exp.column(slots[name.name.lower()], quoted=True)
        for field in fields:
            slot = exp.Dot(this=slot, expression=field.copy())
        column.replace(slot)
    return F.expr(tree.sql(dialect="spark"))
