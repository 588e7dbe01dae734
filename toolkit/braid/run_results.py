"""The results of a run as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from braid.core.reserved_columns import WEIGHT
from braid.sources.stream_source import PAGES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_SERIAL = "spark.sql.sources.parallelPartitionDiscovery.threshold"


def read_results(spark: SparkSession, schema: StructType, files: Sequence[str]) -> DataFrame:
    """Return the content of result files.

    Spark lists more than 32 files in a job with a task for each. Its threshold is raised for this
    call: 0.2 s instead of 8 s for 500 files.
    """
    if not files:
        return spark.createDataFrame([], schema)
    before = spark.conf.get(_SERIAL) or ""
    spark.conf.set(_SERIAL, str(len(files)))
    try:
        return spark.read.schema(schema).options(**PAGES).parquet(*files)
    finally:
        spark.conf.set(_SERIAL, before)


def flatten_results(
    whole: DataFrame, columns: Mapping[str, Sequence[str]], times: Mapping[str, str], weighed: bool
) -> DataFrame:
    """Return results with flat columns, as ``JoinRun.results_stream`` has them.

    ``columns`` has the columns of each alias. Raises ValueError if two columns would have the same
    name.
    """
    from pyspark.sql import functions as F

    names = {(a, c): f"{a}_{c}" for a, several in columns.items() for c in several}
    labels = [*names.values(), *list(times.values())[:1], *([WEIGHT] if weighed else [])]
    if twice := sorted({n for n in labels if [m.lower() for m in labels].count(n.lower()) > 1}):
        raise ValueError(
            f"the results would have several columns {twice}; rename columns of the streams so "
            "that alias_column differs"
        )
    wanted = [F.col(f"`{a}`.`{c}`").alias(name) for (a, c), name in names.items()]
    if times:
        members = [F.col(f"`{a}`.`{t}`").cast("timestamp") for a, t in times.items()]
        wanted.append(F.greatest(*members).alias(next(iter(times.values()))))
    return whole.select(*wanted, *([F.col(WEIGHT)] if weighed else []))
