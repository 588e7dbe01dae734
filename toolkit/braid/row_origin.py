"""Add to each row of a stream where it comes from: ``braid.with_origin``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa

from braid.sources.frame_conversion import convert_frame

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

COLUMN = "origin"
_FILE_FIELDS = {"file_path": "file", "row_index": "row"}
"""Fields of Spark's metadata of a row of files, which are fields of its origin."""
_KAFKA_FIELDS = ("topic", "partition", "offset")


@overload
def with_origin(frame: DataFrame) -> DataFrame: ...
@overload
def with_origin(frame: Any) -> pa.Table: ...
def with_origin(frame: Any) -> Any:
    """Return a frame with a column ``origin``, which says where each row comes from.

    It is a struct, and an ordinary column: results and ``late()`` have it.

    - Rows of Spark that are read from files: ``file``, its path, and of Parquet ``row``, the
      number in the file, from 0.
    - Rows of Spark from Kafka: ``topic``, ``partition`` and ``offset``, if the frame has them.
    - Rows of a pandas or Polars frame or an Arrow table: ``row``, from 0. The result is an Arrow
      table.

    Call it on the frame that was read, before any other step. Raises ValueError if the frame has
    a column of this name, or a source of another kind; TypeError if it is no frame.
    """
    columns = getattr(frame, "column_names", None) or getattr(frame, "columns", [])
    if COLUMN in list(columns):
        raise ValueError(f"the frame has a column {COLUMN} already; rename it first")
    if type(frame).__module__.startswith("pyspark."):
        return frame.withColumn(COLUMN, _make_spark_origin(frame))
    table = convert_frame("frame", frame)
    if table is None:
        accepted = "a Spark, pandas or Polars DataFrame or an Arrow table"
        raise TypeError(f"with_origin takes {accepted}, not {type(frame).__name__}")
    rows = pa.array(range(table.num_rows), pa.int64())
    return table.append_column(COLUMN, pa.StructArray.from_arrays([rows], ["row"]))


def _make_spark_origin(frame: DataFrame) -> Column:
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    if {*_KAFKA_FIELDS} <= {*frame.columns}:
        return F.struct(*_KAFKA_FIELDS)
    try:
        metadata: Any = frame.select("_metadata").schema["_metadata"].dataType
    except AnalysisException as error:
        raise ValueError(
            "the rows of the frame are neither read from files nor from Kafka with topic, "
            "partition and offset; call with_origin on a frame as it was read"
        ) from error
    fields = [(old, new) for old, new in _FILE_FIELDS.items() if old in metadata.names]
    return F.struct(*(F.col(f"_metadata.{old}").alias(new) for old, new in fields))
