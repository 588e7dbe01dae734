"""The function that a server of Spark Connect calls with each micro-batch of streams.

It runs in a Python worker of the server and is pickled by value, so the worker needs PySpark only:
this module imports nothing of Braid.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

MOST_AHEAD = 16
"""Micro-batches that are landed before the run has committed the first of them."""
_PAUSE = 0.2
"""Seconds between two looks for a micro-batch that the run has committed."""


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


def is_cleared(session: Any, folder: str, number: int) -> bool:
    """Return whether the rows of a micro-batch are replaced by none, as the run has committed it.

    Rows are in folders of their attempts, the empty file that replaces them is not.
    """
    from pyspark.errors import AnalysisException

    try:
        landed = session.read.schema("rows bigint").parquet(
            f"{folder}/batches/{number:06d}/*.parquet"
        )
        return bool(landed.columns)  # the server looks for the files
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return False


def make_landing_function(
    folder: str, size_sql: str, most_ahead: int = MOST_AHEAD
) -> Callable[[Any, int], None]:
    """Return a function for ``foreachBatch`` that lands micro-batches in a folder.

    It waits while the run is ``most_ahead`` micro-batches behind, so that the folder is bounded.

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
        while number >= most_ahead and not is_cleared(session, folder, number - most_ahead):
            time.sleep(_PAUSE)
        frame.write.mode("overwrite").parquet(rows)
        written = session.read.schema(frame.schema).parquet(rows)
        marker = written.selectExpr("count(1) AS rows", f"{size_sql} AS bytes")
        marker.write.mode("overwrite").parquet(f"{folder}/done/{number:06d}/attempt={attempt}")

    return land_batch
