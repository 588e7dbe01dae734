"""Read an operator's results as a flat table, with one column for each column of each stream.

Also builds the SQL that compensates on this table. Source: Seshadri 2008, section 3.1, compensation
operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from braid.condition.spark_dialect import SparkSql
from braid.core.reserved_columns import QUERIES
from braid.errors import DamagedRunError
from braid.papers.reuse.query_definition import UNBOUNDED, Column, Definition, make_compensation
from braid.papers.reuse.selections import EVERYTHING, Selection
from braid.storage.block_files import read_parquet

Shape = Mapping[str, Mapping[str, Column]]
"""Shape of an operator's results: by input, the names of its columns and the streams they belong
to.
"""
Texts = Mapping[tuple[str, Selection], str]
"""Spark SQL over ``stream.column`` by stream and selection, as some query states it."""


def flat_column_name(stream: str, column: str) -> str:
    """Return the name of a stream's column in flat results."""
    return f"{stream}__{column}"


def rename_columns(sql: str, name: Callable[[str, str], str]) -> str:
    """Return Spark SQL over ``stream.column`` with its columns renamed."""

    def named(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        return exp.column(name(node.table, node.name), quoted=True)

    tree = sqlglot.parse_one(sql, dialect=SparkSql).transform(named)
    return tree.sql(dialect=SparkSql, normalize_functions=False)


def microseconds_sql(column: str) -> str:
    """Return Spark SQL for an event time in microseconds."""
    return f"unix_micros(cast(`{column}` as timestamp))"


def latest_time_sql(streams: Sequence[str], time: str) -> str:
    """Return Spark SQL for the latest event time of a result's members, in microseconds."""
    times = [microseconds_sql(flat_column_name(s, time)) for s in streams]
    return times[0] if len(times) == 1 else f"greatest({', '.join(times)})"


def flat_columns(shape: Shape) -> dict[str, Column]:
    """Return the columns of flat results and the streams they belong to."""
    return {
        flat_column_name(*column): column for fields in shape.values() for column in fields.values()
    }


def filter_demand(rows: pa.Table, bit: int) -> pa.Table:
    """Return the results that serve a demand."""
    serves = rows[QUERIES].to_numpy() >> np.int64(bit) & 1
    return rows.filter(pa.array(serves != 0))


def read_flat(files: Sequence[str], shape: Shape, bit: int | None = None) -> pa.Table | None:
    """Read result files as a flat table; None if there is no result.

    The column ``QUERIES`` has the demands that each result serves. ``bit``: read the results of
    this demand only.
    """
    tables = [_read_results(f) for f in files]
    if not tables:
        return None
    results = pa.concat_tables(tables)
    if bit is not None:
        results = filter_demand(results, bit)
    if not results.num_rows:
        return None
    columns = {
        flat_column_name(*column): pc.struct_field(results[alias], field)
        for alias, fields in shape.items()
        for field, column in fields.items()
    }
    return pa.table({**columns, QUERIES: results[QUERIES]})


def _read_results(file: str) -> pa.Table:
    """Read the results in a file. Raises DamagedRunError unless its pages match their checksums."""
    try:
        return read_parquet(file, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise DamagedRunError(f"{file} is damaged: {error}") from None


def demand_filter_sql(bit: int) -> str:
    """Return a Spark SQL condition over flat results: the result serves a demand."""
    return f"(`{QUERIES}` & cast({1 << bit} as bigint)) <> 0"


def compensation_sql(
    existing: Definition, wanted: Definition, texts: Texts, time: str, aged: bool
) -> str | None:
    """Return Spark SQL that selects the wanted results from flat results; None: all are wanted.

    ``aged``: check the ages of members even if the existing windows are as short.
    """
    parts = list(_compensation_conjuncts(existing, wanted, texts, time, aged))
    return " AND ".join(f"({p})" for p in parts) or None


def _compensation_conjuncts(
    existing: Definition, wanted: Definition, texts: Texts, time: str, aged: bool
) -> Iterator[str]:
    compensation = make_compensation(existing, wanted)
    for stream, where in zip(wanted.streams, compensation.where, strict=True):
        if where is not None and where != EVERYTHING:
            yield rename_columns(texts[stream, where], flat_column_name)
    for join in sorted(compensation.joins):
        if not join.is_implied:
            yield rename_columns(join.text, flat_column_name)
    latest = latest_time_sql(wanted.streams, time)
    for stream, window, other in zip(
        wanted.streams, wanted.windows, compensation.windows, strict=True
    ):
        if window < UNBOUNDED and (aged or other is not None):
            yield f"{latest} - {microseconds_sql(flat_column_name(stream, time))} < {window}"
