"""One engine of small.py in its own process, with its package on PYTHONPATH.

Usage: _small_engine.py FOLDER OUT WINDOW HOSTS. For every line on stdin it joins the two streams of
FOLDER once, under FOLDER/OUT, and prints the seconds of its batches and the number of results as
JSON. It uses only names that the previous engine has too.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from braid import HashPartition, StreamJoin, session
from pyspark.sql import DataFrame, SparkSession


def read_stream(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def run_join(
    spark: SparkSession, folder: Path, out: Path, window: int, hosts: int
) -> dict[str, Any]:
    """Return the seconds of the whole triggers of a run, and its number of results."""
    join = StreamJoin(
        {s: read_stream(spark, folder / s) for s in "ab"},
        "a.k = b.k",
        HashPartition(hosts),
        time="ts",
        windows=dict.fromkeys("ab", f"{window} seconds"),
    )
    run = join.start(out, availableNow=True)
    run.awaitTermination()
    query = run.spark_query if hasattr(run, "spark_query") else run.query  # type: ignore[attr-defined]  # earlier
    progress = [p for p in query.recentProgress if p.numInputRows > 0]
    return {
        "seconds": [p.durationMs["triggerExecution"] / 1000 for p in progress],
        "results": run.results().count(),
    }


def main() -> None:
    folder, out = Path(sys.argv[1]), sys.argv[2]
    spark = session("benchmark")
    for number, _ in enumerate(sys.stdin):
        answer = run_join(spark, folder, folder / f"{out} {number}", *map(int, sys.argv[3:]))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
