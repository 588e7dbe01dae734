"""Type-check conditions over Spark DataFrames by Spark's own analyzer."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType
from sqlglot import exp

from braid.condition.column_names import parse_condition, quote_condition, resolve_columns
from braid.condition.duckdb_functions import COMPARISONS
from braid.condition.spark_dialect import SparkSql, to_sql
from braid.condition.sql_types import SqlType
from braid.condition.syntax_arguments import has_supported_syntax
from braid.core.reserved_columns import make_nullable
from braid.errors import PredicateError
from braid.util.error_summary import summarize_error
from braid.util.time_zones import UTC, find_zone_spread

_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"
"""Spark's metadata of a column that is declared with CHAR or VARCHAR."""


class SparkAnalyzer:
    """Spark's analysis of expressions over these streams. Only their schemas are read."""

    def __init__(self, frames: Mapping[str, DataFrame]) -> None:
        self.empty = {alias: _make_empty_frame(frame) for alias, frame in frames.items()}
        self.columns = {alias: _index_columns(frame.schema) for alias, frame in frames.items()}
        self.names: Mapping[str, Sequence[str]] = {a: f.schema.names for a, f in frames.items()}
        conf = next(iter(frames.values())).sparkSession.conf
        self.is_ansi = conf.get("spark.sql.ansi.enabled") == "true"
        self.sized_null = not self.is_ansi and conf.get("spark.sql.legacy.sizeOfNull") == "true"
        zone = conf.get("spark.sql.session.timeZone")
        self.has_time_zone, self.zone_spread = zone not in UTC, find_zone_spread(zone)
        self._padded = {
            (alias, field.name): text
            for alias, frame in frames.items()
            for field in frame.schema
            if re.search(r"\bchar\(", text := str(field.metadata.get(_CHAR_TYPE, "")))
        }
        self._taken = set[str]()
        self._fields: dict[tuple[str, str], StructField] = {}

    def check_all(self, conditions: Sequence[str]) -> Sequence[str]:
        """Check conditions together in one analysis, and return those accepted: all or none.

        ``check_condition`` accepts these without asking Spark again. If none are returned, it names
        the faulty one.
        """
        try:
            trees = [resolve_columns(parse_condition(text), self.names) for text in conditions]
        except (PredicateError, RecursionError):
            return []
        if not all(map(has_supported_syntax, trees)) or any(map(self._find_padding, trees)):
            return []
        texts = [_to_spark_sql(tree) for tree in trees]
        each = ", ".join(f"'{k}', ({text})" for k, text in enumerate(texts))
        try:  # a filter refuses aggregates, and a struct keeps the types of its fields
            checked = self._join_streams.filter(f"named_struct({each}) IS NOT NULL")
        except (PySparkException, Py4JJavaError):
            return []
        plan: Any = checked._jdf.queryExecution().analyzed()
        fields = json.loads(plan.condition().child().dataType().json())["fields"]
        if not plan.deterministic() or [f["type"] for f in fields] != ["boolean"] * len(texts):
            return []
        self._taken.update(texts)
        return conditions

    def check_condition(self, tree: exp.Expr, on: str) -> None:
        """Raise PredicateError for a condition that Spark refuses or that is not deterministic."""
        if _to_spark_sql(tree) in self._taken:
            return
        if (comparison := self._find_padding(tree)) is not None:
            raise PredicateError(
                f"{quote_condition(comparison.sql(dialect=SparkSql).replace('`', ''))} in the join "
                "condition compares CHAR with another length or a constant, which Spark pads with "
                "blanks first; write rpad(column, length, ' ') for the CHAR"
            )
        joined = self._join_streams
        try:
            filtered = joined.filter(_to_spark_sql(tree))
            if not has_supported_syntax(tree) and not _is_read_exactly(joined, on):
                raise PredicateError(
                    f"the join condition {quote_condition(on)} was understood as "
                    f"{to_sql(parse_condition(on))}, which means another thing to Spark; write it "
                    "otherwise, or write what it says into a column"
                )
        except PySparkException as error:  # also errors of constants, which the rules fold
            condition = str(error.getCondition() or "")
            if condition.startswith("UNRESOLVED_ROUTINE"):
                parameter = (error.getMessageParameters() or {}).get("routineName", "").strip("`")
                raise PredicateError(
                    f"function {parameter!r} in the join condition is unknown; built-in functions "
                    "of Spark SQL and functions registered in this session are accepted"
                ) from None
            if "FILTER_NOT_BOOLEAN" in condition:
                parameter = (error.getMessageParameters() or {}).get("type", "").strip('"')
                raise PredicateError(
                    f"the join condition {quote_condition(on)} is of type {parameter}; it must be "
                    "boolean"
                ) from None
            first = next((line for line in str(error).splitlines() if line.strip()), condition)
            raise PredicateError(
                f"Spark refuses the join condition {quote_condition(on)}: {first}"
            ) from None
        except Py4JJavaError as error:  # internal errors of Spark's analyzer
            raise PredicateError(
                f"Spark refuses the join condition {quote_condition(on)}: {summarize_error(error)}"
            ) from None
        if not filtered._jdf.queryExecution().analyzed().deterministic():
            raise PredicateError(
                f"{quote_condition(on)} in the join condition has another answer each time, so "
                "that a task that is done again would lose or double results; write what it needs "
                "into a column of the stream"
            )

    def _find_padding(self, tree: exp.Expr) -> exp.Expr | None:
        """Return a comparison whose sides Spark pads to one length; None: there is none."""
        for node in tree.find_all(*COMPARISONS, exp.In, exp.Between, exp.Nullif, exp.Case):
            sides = [side.unnest() for side in node.iter_expressions()]
            sides = [side.this.unnest() if isinstance(side, exp.If) else side for side in sides]
            kinds = {kind for side in sides if (kind := self._find_padded_type(side))}
            has_constant = any(side.find(exp.Column) is None for side in sides)
            if len(kinds) > 1 or (kinds and has_constant):
                return node
        return None

    def _find_padded_type(self, side: exp.Expr) -> str | None:
        """Return the type with a CHAR of a column or of a field; None for other expressions."""
        while isinstance(side, exp.Dot):
            side = side.this
        if not isinstance(side, exp.Column):
            return None
        return self._padded.get((side.table, side.name))

    @cached_property
    def _join_streams(self) -> DataFrame:
        """The cross join of the streams without rows, by alias."""
        named = (frame.alias(alias) for alias, frame in self.empty.items())
        return reduce(DataFrame.crossJoin, named)

    def infer_type(self, alias: str, sql: str) -> SqlType | None:
        """Return Spark's type; None if the expression is invalid, such as a negated date."""
        try:
            kind = self._infer_field(alias, sql).dataType
        except AnalysisException:
            return None
        return SqlType.parse(kind.simpleString())

    def infer_arrow_type(self, alias: str, sql: str) -> pa.DataType:
        """Return the column's type in Arrow.

        Raises PredicateError if the expression is not a value (the patterns of LIKE ALL).
        """
        try:
            schema = StructType([self._infer_field(alias, sql)])
        except (AnalysisException, ParseException):
            raise PredicateError(
                f"{quote_condition(sql)} in the join condition is no value that Spark computes of "
                f"stream {alias} alone; write what it says into a column"
            ) from None
        return make_arrow_schema(schema).field(0).type

    def _infer_field(self, alias: str, sql: str) -> StructField:
        """Return the field of an expression. A plain column needs no analysis."""
        if (field := self.columns[alias].get(sql.removeprefix("(").removesuffix(")"))) is not None:
            return field
        if (alias, sql) not in self._fields:
            selected = self.empty[alias].select(F.expr(sql).alias("it"))
            self._fields[alias, sql] = selected.schema[0]
        return self._fields[alias, sql]


def make_arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema: all fields nullable, timestamps in UTC."""
    return make_nullable(to_arrow_schema(schema, timezone="UTC"))


def make_spark_nullable(schema: StructType) -> StructType:
    """Return the schema with every field nullable at every depth, as ``make_nullable`` does."""
    return StructType([_make_field_nullable(field) for field in schema.fields])


def _make_field_nullable(field: StructField) -> StructField:
    return StructField(field.name, _make_type_nullable(field.dataType), True, field.metadata)


def _make_type_nullable(kind: DataType) -> DataType:
    if isinstance(kind, StructType):
        return make_spark_nullable(kind)
    if isinstance(kind, ArrayType):
        return ArrayType(_make_type_nullable(kind.elementType), True)
    if isinstance(kind, MapType):
        return MapType(_make_type_nullable(kind.keyType), _make_type_nullable(kind.valueType), True)
    return kind


def _index_columns(schema: StructType) -> dict[str, StructField]:
    """Return the columns by their quoted names."""
    return {exp.to_identifier(f.name, quoted=True).sql(dialect=SparkSql): f for f in schema}


def _to_spark_sql(tree: exp.Expr) -> str:
    return tree.sql(dialect=SparkSql, normalize_functions=False)


def _is_read_exactly(joined: DataFrame, on: str) -> bool:
    """Return whether Spark reads a condition as sqlglot does.

    If so, the original and the rewritten text have the same plan after constants are folded.

    Raises PySparkException if Spark refuses the text, or if a constant in it has no value.
    """
    jvm: Any = joined.sparkSession._jvm
    rules = jvm.org.apache.spark.sql.catalyst.optimizer
    texts = [f"({text}) IS NOT NULL" for text in (on, to_sql(parse_condition(on)))]
    plan = joined.selectExpr(*texts)._jdf.queryExecution().analyzed()
    for rule in (rules.ComputeCurrentTime, rules.ConstantFolding, rules.BooleanSimplification):
        plan = rule.apply(plan)  # one plan, so both get the same now()
    one, other = (plan.projectList().apply(k).child() for k in range(2))
    return bool(one.semanticEquals(other))


def _make_empty_frame(frame: DataFrame) -> DataFrame:
    """Return an empty DataFrame of the same schema. The JVM creates it, which is much faster."""
    spark = frame.sparkSession
    jvm: Any = spark._jvm
    rows = spark._jsparkSession.createDataFrame(jvm.java.util.ArrayList(), frame._jdf.schema())
    return DataFrame(rows, spark)
