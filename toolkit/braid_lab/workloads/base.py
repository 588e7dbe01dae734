"""The common form of workloads: streams, a join condition, and the folder of generated data."""

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
"""The column with the number of the micro-batch, from 0, in which a tuple arrives."""


@dataclass(frozen=True)
class Workload:
    """Two or more streams and their join condition; of two, the paper's R and S.

    ``batch`` is the integer column with the number of the micro-batch (from 0), for a replay in the
    intended order.
    """

    name: str
    streams: Mapping[str, DataFrame]
    condition: str
    time: str | None = None
    windows: Mapping[str, str] = field(default_factory=dict)
    batch: str | None = BATCH


def read_table(spark: SparkSession, file: Path) -> DataFrame:
    """Return a Parquet file as a DataFrame.

    Its schema is read here, so that Spark needs no job of its own for it.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    text = pa.types.is_string_view  # Spark does not support it
    fields = [f.with_type(pa.string()) if text(f.type) else f for f in pq.read_schema(file)]
    columns = from_arrow_schema(pa.schema(fields))
    return spark.read.schema(columns).parquet(str(file))


def cache_folder() -> Path:
    """Return the folder of generated data: ``$BRAID_CACHE``, or the platform's user cache."""
    return Path(os.environ.get("BRAID_CACHE") or user_cache_path("braid", appauthor=False))
