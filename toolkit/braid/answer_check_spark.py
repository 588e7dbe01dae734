"""Pairs of rows that Spark's batch join finds, for ``answer_check``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from braid.storage.static_input_copy import InputSnapshot

ROWS_A_BATCH = 1 << 40
"""A row's number is its micro-batch times this, plus its position in the batch."""


def join_row_numbers(
    copied: InputSnapshot, files: Mapping[str, Sequence[str]], on: str
) -> pa.Table:
    """Return the row numbers that Spark's batch join combines, one column for each stream."""
    from functools import reduce

    from pyspark.sql import functions as F

    from braid.sources.static_replay import stored_schema
    from braid.spark_session import session

    spark = session()
    numbered = []
    for alias, several in files.items():
        rows = spark.read.schema(stored_schema(copied, alias, spark)).parquet(*several)
        batch = F.regexp_extract("_metadata.file_name", r"(\d+)\.parquet$", 1).cast("bigint")
        number = batch * ROWS_A_BATCH + F.col("_metadata.row_index")
        numbered.append(rows.select("*", number.alias(f"__row_{alias}")).alias(alias))
    joined = reduce(lambda a, b: a.crossJoin(b), numbered).filter(F.expr(on))
    return joined.select(*(F.col(f"__row_{a}").alias(a) for a in files)).toArrow()
