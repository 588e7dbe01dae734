"""Topics of Kafka, and the join of the page on it."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections import Counter
from pathlib import Path
from runpy import run_path
from typing import Any

from confluent_kafka import Producer
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[1] / "docs/examples"
SOURCE = run_path(str(EXAMPLES / "kafka_source.py"))
INTO_SQLITE = run_path(str(EXAMPLES / "sinks.py"))["into_sqlite"]
SOURCE["start_join"].__globals__["ROWS"] = 8


def send_messages(servers: str, first: int, last: int) -> Counter[tuple[int, int]]:
    """Send orders and two payments of each; return order and amount of all payments."""
    producer = Producer({"bootstrap.servers": servers})
    paid = Counter[tuple[int, int]]()
    for id in range(first, last):
        order = {"id": id, "ts": f"2026-01-05T12:{id // 60:02d}:{id % 60:02d}Z"}
        producer.produce("orders", key=str(id), value=json.dumps(order))
        for amount in (2 * id, 2 * id + 1):
            payment = {"order_id": id, "amount": amount, "ts": order["ts"]}
            producer.produce("payments", key=str(id), value=json.dumps(payment))
            paid[id, amount] += 1
    assert producer.flush(60) == 0
    return paid


def run_join(spark: SparkSession, servers: str, folder: str, mark: Path | None = None) -> Any:
    """Run the join with a table of SQLite to its end, or continue it; return its last run.

    It starts again if the machine is so busy that Spark's ten seconds for a Python worker pass.
    With a ``mark``, it creates this file after it has written batch 1, and waits forever.
    """

    def write_batch(results: Any, batch: int) -> None:
        INTO_SQLITE(results.toArrow(), batch, f"{folder}.db")
        if mark is not None and batch == 1:
            mark.touch()
            threading.Event().wait()

    while True:
        run = SOURCE["start_join"](spark, servers, folder, write_batch)
        try:
            run.awaitTermination()
        except StreamingQueryException as error:
            if "Python worker failed to connect back" not in str(error):
                raise
        else:
            return run


class WaitingRun:
    """A thread that runs the join until its process is killed."""

    def __init__(self, *given: Any) -> None:
        self._thread = threading.Thread(target=run_join, args=given)
        self._thread.start()

    def awaitTermination(self) -> None:
        """Wait for the end, which does not come."""
        self._thread.join()


def read_rows(folder: Path) -> Counter[tuple[int, int]]:
    """Return the rows of the table of SQLite."""
    with sqlite3.connect(f"{folder}.db") as connection:
        return Counter(connection.execute("SELECT * FROM paid").fetchall())
