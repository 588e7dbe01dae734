"""The function that a server of Spark Connect calls with each micro-batch of streams.

It runs in a Python worker of the server and is pickled by value, so the worker needs PySpark only:
this module imports nothing of Braid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def read_marker(session: Any, folder: str, number: int) -> Any:
    """Return the marker of a micro-batch that is completely landed; None: it is not.

    It has the number of rows, their bytes, and the attempt that landed them.
    """
    from pyspark.errors import AnalysisException

    marked = session.read.schema("rows bigint, bytes bigint, attempt string")
    try:
        markers = marked.parquet(f"{folder}/done/{number:06d}").collect()
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return None
    return markers[0] if markers else None


def make_landing_function(folder: str, size_sql: str) -> Callable[[Any, int], None]:
    """Return a function for ``foreachBatch`` that lands micro-batches in a folder.

    It writes the rows, then a marker of one row, which says that the micro-batch is complete. A
    complete micro-batch is not written again. Each run of the server's query is an attempt with
    folders of its own, because writes of a query that was replaced may go on for a while.
    ``size_sql``: Spark SQL for the bytes of all rows.
    """

    def land_batch(frame: Any, number: int) -> None:
        session = frame.sparkSession
        attempt = session.session_id  # the query's own clone of the user's session
        rows = f"{folder}/batches/{number:06d}/{attempt}"
        if read_marker(session, folder, number) is not None:
            return
        frame.write.mode("overwrite").parquet(rows)
        written = session.read.schema(frame.schema).parquet(rows)
        marker = written.selectExpr("count(1) AS rows", f"{size_sql} AS bytes")
        marker.write.mode("overwrite").parquet(f"{folder}/done/{number:06d}/attempt={attempt}")

    return land_batch
