"""What all workloads are: streams, what to join them on, and where generated data stays."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from platformdirs import user_cache_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH = "batch"
"""The column that numbers the micro-batch, from 0, in which a tuple arrives."""


@dataclass(frozen=True)
class Workload:
    """Two or more streams and what to join them on; of two, the first is the paper's R, the second
    its S.

    ``batch`` names the integer column that numbers the micro-batches (from 0) for a replay in the
    intended order.
    """

    name: str
    streams: Mapping[str, DataFrame]
    condition: str
    time: str | None = None
    windows: Mapping[str, str] = field(default_factory=dict)
    batch: str | None = BATCH


def read_table(spark: SparkSession, file: Path) -> DataFrame:
    """A file of Parquet. Its columns are read from the file here, so that Spark has no job of its
    own for them.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    text = pa.types.is_string_view  # which Spark does not know
    known = [f.with_type(pa.string()) if text(f.type) else f for f in pq.read_schema(file)]
    columns = from_arrow_schema(pa.schema(known))
    return spark.read.schema(columns).parquet(str(file))


def cache_folder() -> Path:
    """Where generated data stays: ``$BRAID_CACHE``, or the user's cache as the platform has it."""
    return Path(os.environ.get("BRAID_CACHE") or user_cache_path("braid", appauthor=False))
