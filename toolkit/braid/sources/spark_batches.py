"""Batches of a streaming query of Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from braid.execution.spark_executor import disable_adaptive_execution, weak_callback
from braid.sources.batch_drivers import RunBatch
from braid.storage.jvm_file_scheme import make_own_path


class SparkBatches:
    """Driver for Spark's streams: a streaming query.

    Parameters
    ----------
    frame
        Union of the streams.
    checkpoint
        Folder of Spark's checkpoint.
    trigger
        Spark's trigger, as arguments of ``DataStreamWriter.trigger``.
    is_finite
        Whether the query ends by itself if no trigger is given.
    """

    handle: StreamingQuery

    def __init__(
        self, frame: DataFrame, checkpoint: Path, trigger: Mapping[str, Any], is_finite: bool
    ) -> None:
        self._frame, self._checkpoint = frame, checkpoint
        self._trigger = dict(trigger) or ({"availableNow": True} if is_finite else {})

    def start(self, run_batch: RunBatch) -> None:
        """Start the streaming query."""
        run_weakly = weak_callback(run_batch)

        def run_unadapted(frame: DataFrame, number: int) -> None:
            disable_adaptive_execution(frame)
            run_weakly(frame, number)

        location = make_own_path(self._frame.sparkSession, self._checkpoint)
        writer = self._frame.writeStream.foreachBatch(run_unadapted)
        writer = writer.option("checkpointLocation", location)
        self.handle = (writer.trigger(**self._trigger) if self._trigger else writer).start()

    def wait(self) -> None:
        """Wait until the query has ended. Raises its error."""
        self.handle.awaitTermination()

    def stop(self) -> None:
        """Stop the query, and wait until it has ended."""
        self.handle.stop()
