"""Pairs of rows that Spark's batch join finds, for ``answer_check``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from braid.storage.static_input_copy import InputSnapshot

ROWS_A_BATCH = 1 << 40
"""A row's number is its micro-batch times this, plus its position in the batch."""


def join_row_numbers(
    copied: InputSnapshot, files: Mapping[str, Sequence[str]], on: str
) -> pa.Table:
    """Return the row numbers that Spark's batch join combines, one column for each stream."""
    from functools import reduce

    numbered = [_number_rows(copied, alias, several) for alias, several in files.items()]
    joined = reduce(lambda a, b: a.crossJoin(b), numbered).filter(on)
    columns = [joined[f"__row_{alias}"].alias(alias) for alias in files]
    return joined.select(*columns).toArrow()


def select_row_numbers(
    copied: InputSnapshot, alias: str, files: Sequence[str], conditions: Sequence[str]
) -> dict[str, pa.Table]:
    """Return, by condition on a stream, the numbers of the rows that fulfill it, as ``row``."""
    rows = _number_rows(copied, alias, files)
    numbers = rows[f"__row_{alias}"].alias("row")
    return {sql: rows.filter(sql).select(numbers).toArrow() for sql in conditions}


def _number_rows(copied: InputSnapshot, alias: str, files: Sequence[str]) -> Any:
    """Return a stream as a DataFrame, with the numbers of its rows."""
    from pyspark.sql import functions as F

    from braid.sources.static_replay import stored_schema
    from braid.spark_session import session

    spark = session()
    rows = spark.read.schema(stored_schema(copied, alias, spark)).parquet(*files)
    batch = F.regexp_extract("_metadata.file_name", r"(\d+)\.parquet$", 1).cast("bigint")
    number = batch * ROWS_A_BATCH + F.col("_metadata.row_index")
    return rows.select("*", number.alias(f"__row_{alias}")).alias(alias)
