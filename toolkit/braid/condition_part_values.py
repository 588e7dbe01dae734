"""Evaluate the parts of a run's condition for single combinations of tuples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from braid.answer_check_sql import translate_condition
from braid.answer_check_text import quote_text
from braid.condition.spark_dialect import SparkSql
from braid.core.combination_facts import PartFacts
from braid.stored_tuples import NUMBER, StoredTuples
from braid.util.durations import parse_duration

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ)
_ORDERS = {"latest": ("<=", "<"), "first": (">=", ">"), "nearest": ("", "<>")}
"""How the second stream's order compares with the first's, and the same if strict."""
_LONGEST_TEXT = 64
"""Characters by which texts that differ are compared: their differences take quadratic time."""


@dataclass(frozen=True)
class ConditionPart:
    """A conjunct.

    - ``text``: Spark SQL.
    - ``streams``: the aliases that it concerns.
    - ``sql``: DuckDB SQL; empty: DuckDB may evaluate it differently from Spark.
    - ``sides``: DuckDB SQL of what it compares; empty: it is no comparison.
    - ``reason``: why there is no ``sql``.
    - ``is_equality``: whether it requires its sides to be equal.
    """

    text: str
    streams: frozenset[str]
    sql: str = ""
    sides: tuple[str, ...] = ()
    reason: str = ""
    is_equality: bool = False


class ConditionParts:
    """The conjuncts of a run's condition, and what the order of an as-of join requires.

    - ``stored``: the tuples of the run.
    - ``name_type``: returns DuckDB's type of DuckDB SQL over the streams.
    - ``spark``: session for conjuncts that DuckDB cannot evaluate; None: none.
    """

    def __init__(
        self, stored: StoredTuples, name_type: Callable[[str], str], spark: Any = None
    ) -> None:
        self._stored, self._name_type, self._spark = stored, name_type, spark
        self._aliases = stored.aliases
        tree = sqlglot.parse_one(stored.settings["on"], dialect=SparkSql)
        conjuncts = [*tree.flatten()] if isinstance(tree, exp.And) else [tree]
        self.parts = [self._parse_part(part.unnest()) for part in conjuncts]
        if stored.settings["match"]:
            self.parts += self._list_match_parts(stored.settings["match"])

    def _parse_part(self, node: Any) -> ConditionPart:
        text = node.sql(dialect=SparkSql).replace("`", "")
        names = {column.parts[0].name.lower() for column in node.find_all(exp.Column)}
        streams = frozenset(a for a in self._aliases if a.lower() in names)
        if not names <= {alias.lower() for alias in streams}:
            streams = frozenset(self._aliases)
        try:
            sql = self._translate_node(node)
        except ValueError as error:
            reason = f"{error}; ask the run's own process, run.why(...), which has Spark"
            return ConditionPart(text, streams, reason=reason)
        sides = (node.this, node.expression) if isinstance(node, _COMPARISONS) else ()
        compared = tuple(map(self._translate_node, sides))
        is_equality = isinstance(node, (exp.EQ, exp.NullSafeEQ)) and len(streams) > 1
        return ConditionPart(text, streams, sql, compared, is_equality=is_equality)

    def _translate_node(self, node: Any) -> str:
        return translate_condition(node.sql(dialect=SparkSql), self._name_type)

    def _list_match_parts(self, match: Mapping[str, Any]) -> Iterator[ConditionPart]:
        """Yield the requirements of an as-of join on the orders of both streams."""
        times = self._stored.time_columns
        orders = dict(match["order"] or {a: times[a] for a in self._aliases})
        first, second = self._aliases
        names = [f"{a}.{orders[a]}" for a in (second, first)]
        columns = [f"{quote_text(a)}.{quote_text(orders[a])}" for a in (second, first)]
        streams = frozenset(self._aliases)
        if sign := _ORDERS[match["match"]][bool(match["strict"])]:
            yield ConditionPart(
                f" {sign} ".join(names), streams, f" {sign} ".join(columns), tuple(columns)
            )
        if match["tolerance"] is None:
            return
        if self._name_type(columns[0]).startswith(("DATE", "TIMESTAMP")):
            columns = [f"epoch_us({column}::TIMESTAMPTZ)" for column in columns]
            most: Any = parse_duration(match["tolerance"], "tolerance", zero=True)
        else:
            most = match["tolerance"]
        distance = f"greatest({', '.join(columns)}) - least({', '.join(columns)})"
        text = f"{' and '.join(names)} at most {match['tolerance']} apart"
        yield ConditionPart(text, streams, f"({distance}) <= {most!r}")

    def translate_whole_condition(self) -> str:
        """Return the whole condition as DuckDB SQL; empty if a part has none."""
        return " AND ".join(p.sql for p in self.parts) if all(p.sql for p in self.parts) else ""

    def rank_by_nearness(self) -> str:
        """Return DuckDB SQL that orders combinations: by the equalities and then by the parts that
        are true, then by the differences of texts that should be equal, then by the sum of the
        distances of compared numbers and times, NULL last.
        """
        fulfilled = [(f"CASE WHEN {p.sql} THEN 1 ELSE 0 END", p) for p in self.parts]
        counts = [" + ".join(c for c, p in fulfilled if p.is_equality), " + ".join(dict(fulfilled))]
        distances = [*zip(*map(self._measure_distances, self.parts), strict=True)]
        terms = [f"{count} DESC" for count in counts if count]
        terms += [f"{term} NULLS LAST" for d in distances if (term := " + ".join(filter(None, d)))]
        return ", ".join(terms)

    def _measure_distances(self, part: ConditionPart) -> tuple[str, str]:
        """Return DuckDB SQL for how far the sides of a part are apart: as texts, as numbers.

        Each is empty if the sides are something else.
        """
        if part.is_equality and {*map(self._name_type, part.sides)} == {"VARCHAR"}:
            sides = [f"lower(trim({side}))[:{_LONGEST_TEXT}]" for side in part.sides]
            return f"levenshtein({', '.join(sides)})", ""
        numbers = [self._read_as_number(side) for side in part.sides]
        if not numbers or not all(numbers):
            return "", ""
        return "", f"CASE WHEN {part.sql} THEN 0 ELSE abs({' - '.join(numbers)}) END"

    def _read_as_number(self, side: str) -> str:
        """Return DuckDB SQL for a number or a time as a number; empty: it is neither."""
        kind = self._name_type(side)
        if kind.startswith(("DATE", "TIMESTAMP")):
            return f"CAST(epoch_us(CAST({side} AS TIMESTAMPTZ)) AS DOUBLE)"
        is_number = kind.startswith(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "FLOAT", "DOUBLE"))
        return f"CAST({side} AS DOUBLE)" if is_number or kind.startswith("DECIMAL") else ""

    def evaluate_chosen_parts(
        self, chosen: Mapping[str, str], most: int
    ) -> Iterator[tuple[tuple[int, ...], list[PartFacts]]]:
        """Yield the numbers of each combination of chosen tuples, and the parts evaluated for it.

        - ``chosen``: tables of chosen tuples by alias. Parts of other streams are left out.
        - ``most``: greatest number of combinations.
        """
        tables = ", ".join(f"{table} AS {quote_text(a)}" for a, table in chosen.items())
        named = (part for part in self.parts if part.streams <= chosen.keys())
        parts = [self._drop_failing_sql(part, tables) for part in named]
        columns = [f"{quote_text(a)}.{NUMBER}" for a in chosen]
        for part in parts:
            columns += [part.sql, *part.sides] if part.sql else []
        order = ", ".join(str(n + 1) for n in range(len(chosen)))
        rows = self._stored.database.execute(
            f"SELECT {', '.join(columns)} FROM {tables} ORDER BY {order} LIMIT {most}"
        ).fetchall()
        unread = [part for part in parts if not part.sql]
        by_spark = {part.text: self._evaluate_with_spark(part, chosen) for part in unread}
        for row in rows:
            numbers, values = row[: len(chosen)], iter(row[len(chosen) :])
            yield (
                numbers,
                [
                    self._read_part(part, values, by_spark.get(part.text, {}).get(numbers))
                    for part in parts
                ],
            )

    def _drop_failing_sql(self, part: ConditionPart, tables: str) -> ConditionPart:
        """Return a part without SQL if that fails for a tuple, as a run would not evaluate it."""
        if not part.sql:
            return part
        try:
            self._stored.database.execute(f"SELECT {part.sql} FROM {tables}").fetchall()
        except duckdb.Error as error:
            reason = f"it fails for some of these tuples: {str(error).splitlines()[0]}"
            return replace(part, sql="", sides=(), reason=reason)
        return part

    def _read_part(self, part: ConditionPart, values: Iterator[Any], by_spark: Any) -> PartFacts:
        is_filter = len(part.streams) == 1
        if part.sql:
            value, sides = next(values), tuple(next(values) for _ in part.sides)
            if any(isinstance(side, float) and math.isnan(side) for side in sides):
                value = value if not self._stored.settings["match"] else False
            return PartFacts(part.text, value, sides or None, is_filter)
        if self._spark is None:
            return PartFacts(part.text, None, None, is_filter, part.reason)
        return PartFacts(part.text, by_spark, None, is_filter)

    def _evaluate_with_spark(
        self, part: ConditionPart, chosen: Mapping[str, str]
    ) -> dict[tuple[int, ...], bool | None]:
        """Return the value of a part by the numbers of the tuples; {} without a session."""
        if self._spark is None:
            return {}
        from functools import reduce

        from pyspark.sql import functions as F

        frames = []
        for alias, table in chosen.items():
            names = [*map(quote_text, self._stored.columns[alias])]
            rows = self._stored.database.sql(f"SELECT {', '.join(names)}, {NUMBER} FROM {table}")
            frame = self._spark.createDataFrame(rows.to_arrow_table())
            frames.append(frame.withColumnRenamed(NUMBER, f"{NUMBER}_{alias}").alias(alias))
        joined = reduce(lambda a, b: a.crossJoin(b), frames)
        numbers = [F.col(f"{NUMBER}_{alias}") for alias in chosen]
        rows = joined.select(*numbers, F.expr(part.text).alias("value")).collect()
        return {tuple(row[:-1]): row[-1] for row in rows}
