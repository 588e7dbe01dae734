"""Batches of a streaming query of Spark."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from braid.execution.spark_executor import disable_adaptive_execution, weak_callback
from braid.sources.batch_drivers import RunBatch
from braid.storage.jvm_file_scheme import make_own_path

STOP_LOGGERS = (
    "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution",
    "org.apache.spark.broadcast.TorrentBroadcast",
)
"""Loggers of Spark that print errors, with traces of Java, when a batch is stopped."""
_changing = threading.Lock()
_stopping: list[SparkBatches] = []
"""The queries that are being stopped."""
_levels: dict[str, Any] = {}
"""The levels that the loggers had before the first of them."""


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
        self._has_ended = False
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
        try:
            self.handle.awaitTermination()
        finally:
            self._restore_loggers()

    def expect_stop(self) -> None:
        """Keep Spark from printing, until the query has ended, that a batch is stopped."""
        log4j = self._find_log4j()
        with _changing:
            if self._has_ended or self in _stopping:
                return
            if not _stopping:
                _levels.update({n: log4j.LogManager.getLogger(n).getLevel() for n in STOP_LOGGERS})
                self._set_levels(dict.fromkeys(STOP_LOGGERS, log4j.Level.OFF))
            _stopping.append(self)

    def _restore_loggers(self) -> None:
        with _changing:
            self._has_ended = True
            if self in _stopping:
                _stopping.remove(self)
                if not _stopping:
                    self._set_levels(_levels)

    def _find_log4j(self) -> Any:
        context: Any = self._frame.sparkSession.sparkContext
        return context._jvm.org.apache.logging.log4j

    def _set_levels(self, levels: Mapping[str, Any]) -> None:
        for name, level in levels.items():
            self._find_log4j().core.config.Configurator.setLevel(name, level)

    def stop(self) -> None:
        """Stop the query, and wait until it has ended."""
        self.handle.stop()
