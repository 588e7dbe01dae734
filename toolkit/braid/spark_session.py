"""A SparkSession tuned for short micro-batches on one machine, or the one that is there."""

from __future__ import annotations

import logging
import os
import sys
import tempfile

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.session.timeZone": "UTC",
    # A query stopped in the middle of a batch overflows the default stack in a recursive regular
    # expression.
    "spark.driver.extraJavaOptions": "-Xss8m -XX:+UseParallelGC",
    "spark.driver.memory": "4g",
    # Local files without checksum files beside them: a micro-batch writes several small logs, and
    # each file costs a process.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    # The same for the logs of offsets and commits: Hadoop's FileContext starts a process for the
    # permissions of each of them. Nor have they checksum files.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # A restart needs the last batch; what is kept besides is listed in every batch.
    "spark.sql.streaming.minBatchesToRetain": "10",
}


def session(name: str = "braid", cores: int | None = None, **settings: str) -> SparkSession:
    """Start Spark in this process, or return the session that runs.

    ``cores`` worker threads (default: all); a failed task is tried four times. ``settings`` are
    Spark's, with ``_`` for ``.``. Temporary files go to one folder of the system's temporary
    directory. Spark's own errors go to stderr; what Braid logs, under the logger ``braid``, is in
    ``braid.core.log``.
    """
    # A refused condition is an exception that says so; Spark would also print it as JSON.
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(name).master(f"local[{cores or os.cpu_count()},4]")
    scratch = os.path.join(tempfile.gettempdir(), "braid-spark")
    conf = {
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": os.path.join(scratch, "warehouse"),
        **SETTINGS,
    }
    conf |= {key.replace("_", "."): value for key, value in settings.items()}
    for key, value in conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
