"""A join of two streams of Spark Connect, and a client process that is killed in the middle.

Usage: ``python connect_client.py PORT FOLDER``; it kills itself when it has the results of batch 0
and the server waits with micro-batch 2.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from braid.sources import landing_function
from braid.stream_join import StreamJoin
from oracle import wait_until
from pyspark.sql.connect.session import SparkSession

ON = "a.k = b.k AND a.x < b.x"
WINDOW_SECONDS = 40
AHEAD = 2
"""Micro-batches that the server lands before the first of them is committed, in this process."""
FILES = 4
SCHEMA = "id bigint, k bigint, x double, name string, ts timestamp"
Sink = Callable[[Any, int], None]


def write_streams(spark: Any, folder: Path) -> None:
    """Write the files of two streams, in order of event time."""
    for place, alias in enumerate("ab"):
        for number in range(FILES):
            rows = spark.range(number * 80, number * 80 + 80).selectExpr(
                "id",
                f"(id * {place + 7}) % 5 AS k",
                f"cast((id * {place + 11}) % 17 AS double) AS x",
                f"if(id % 9 = {place}, NULL, concat('{alias}', id)) AS name",
                "timestamp_seconds(id) AS ts",
            )
            rows.coalesce(1).write.parquet(str(folder / alias / f"{number}"))


def read_streams(spark: Any, folder: Path) -> dict[str, Any]:
    """Return the streams, one file in each micro-batch."""
    return {
        alias: spark.readStream.schema(SCHEMA)
        .option("maxFilesPerTrigger", 1)
        .parquet(f"{folder / alias}/*")
        .withWatermark("ts", "10 seconds")
        for alias in "ab"
    }


def start_run(spark: Any, folder: Path, sink: Sink) -> Any:
    """Start the run, or continue it."""
    streams = read_streams(spark, folder)
    join = StreamJoin(streams, ON, windows=f"{WINDOW_SECONDS} seconds", check=True)
    return wait_for_worker(lambda: join.start(folder / "run", foreachBatch=sink, availableNow=True))


def wait_for_worker(start: Callable[[], Any]) -> Any:
    """Start a run, again if the machine is so busy that Spark's ten seconds for a worker pass."""
    while True:
        try:
            return start()
        except RuntimeError as error:
            if "timed out while it waited for its Python worker" not in str(error):
                raise


def note_batch(folder: Path, number: int) -> None:
    """Append the number of a batch to those that were delivered."""
    with (folder / "delivered").open("a") as file:
        file.write(f"{number}\n")


def main(port: str, folder: Path) -> None:
    """Run until batch 0 is delivered, then die."""

    def die_after_batch(_: Any, number: int) -> None:
        note_batch(folder, number)
        if number == 0:
            begun = f"run/landing/*/checkpoint/offsets/{AHEAD}"
            wait_until(lambda: [*folder.glob(begun)], "the micro-batch that is too far ahead")
            os.kill(os.getpid(), signal.SIGKILL)

    make = partial(landing_function.make_landing_function, most_ahead=AHEAD)
    landing_function.make_landing_function = make  # type: ignore[assignment]
    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    start_run(spark, folder, die_after_batch).awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
