"""An operator's results as a plain table, a column for each column of each stream, and the SQL that
compensates on it.

Source: Seshadri 2008, section 3.1, compensation operators.
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
from braid.papers.reuse.definition import UNBOUNDED, Column, Definition, make_compensation
from braid.papers.reuse.selections import EVERYTHING, Selection
from braid.storage.block_files import read_parquet
from braid.storage.durable_files import DamagedRunError

Shape = Mapping[str, Mapping[str, Column]]
"""Of an operator's results: by input, the names of its columns and which streams' they are."""
Texts = Mapping[tuple[str, Selection], str]
"""By stream and selection, its Spark SQL over ``stream.column``, as some query has it."""


def flat_column_name(stream: str, column: str) -> str:
    """The name of a stream's column in a plain table of results."""
    return f"{stream}__{column}"


def rename_columns(sql: str, name: Callable[[str, str], str]) -> str:
    """Spark SQL over ``stream.column`` with other names of columns."""

    def named(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        return exp.column(name(node.table, node.name), quoted=True)

    tree = sqlglot.parse_one(sql, dialect=SparkSql).transform(named)
    return tree.sql(dialect=SparkSql, normalize_functions=False)


def microseconds_sql(column: str) -> str:
    """Spark SQL of an event time in microseconds."""
    return f"unix_micros(cast(`{column}` as timestamp))"


def latest_time_sql(streams: Sequence[str], time: str) -> str:
    """Spark SQL of the latest event time of a result's members, in microseconds."""
    times = [microseconds_sql(flat_column_name(s, time)) for s in streams]
    return times[0] if len(times) == 1 else f"greatest({', '.join(times)})"


def flat_columns(shape: Shape) -> dict[str, Column]:
    """The columns of the plain table, and which streams' they are."""
    return {
        flat_column_name(*column): column for fields in shape.values() for column in fields.values()
    }


def filter_demand(rows: pa.Table, bit: int) -> pa.Table:
    """The results that serve a demand."""
    serves = rows[QUERIES].to_numpy() >> np.int64(bit) & 1
    return rows.filter(pa.array(serves != 0))


def read_flat(files: Sequence[str], shape: Shape, bit: int | None = None) -> pa.Table | None:
    """The results in these files as a plain table, with the demands that each serves in the column
    ``QUERIES``; those of one demand if a ``bit`` is given. None if there is none.
    """
    tables = [_read_results(f) for f in files]
    if not tables:
        return None
    whole = pa.concat_tables(tables)
    if bit is not None:
        whole = filter_demand(whole, bit)
    if not whole.num_rows:
        return None
    columns = {
        flat_column_name(*column): pc.struct_field(whole[alias], field)
        for alias, fields in shape.items()
        for field, column in fields.items()
    }
    return pa.table({**columns, QUERIES: whole[QUERIES]})


def _read_results(file: str) -> pa.Table:
    """Return the results in a file. Raises Damaged unless its pages have their checksums."""
    try:
        return read_parquet(file, page_checksum_verification=True)
    except (OSError, pa.ArrowException) as error:
        raise DamagedRunError(f"{file} is damaged: {error}") from None


def demand_filter_sql(bit: int) -> str:
    """Spark SQL over a plain table: whether a result is one of a demand."""
    return f"(`{QUERIES}` & cast({1 << bit} as bigint)) <> 0"


def compensation_sql(
    existing: Definition, wanted: Definition, texts: Texts, time: str, aged: bool
) -> str | None:
    """Spark SQL over a plain table of existing results that makes the wanted ones of them; None if
    all are wanted. ``aged``: the ages of members must be looked at, whatever the existing windows.
    """
    parts = list(_compensation_conjuncts(existing, wanted, texts, time, aged))
    return " AND ".join(f"({p})" for p in parts) or None


def _compensation_conjuncts(
    existing: Definition, wanted: Definition, texts: Texts, time: str, aged: bool
) -> Iterator[str]:
    own = make_compensation(existing, wanted)
    for stream, where in zip(wanted.streams, own.where, strict=True):
        if where is not None and where != EVERYTHING:
            yield rename_columns(texts[stream, where], flat_column_name)
    for join in sorted(own.joins):
        if not join.is_implied:
            yield rename_columns(join.text, flat_column_name)
    latest = latest_time_sql(wanted.streams, time)
    for stream, window, other in zip(wanted.streams, wanted.windows, own.windows, strict=True):
        if window < UNBOUNDED and (aged or other is not None):
            yield f"{latest} - {microseconds_sql(flat_column_name(stream, time))} < {window}"
