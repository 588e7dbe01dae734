"""Collect a Spark batch in this process as Arrow, up to a limit of bytes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.sql.pandas.serializers import ArrowCollectSerializer, ArrowStreamSerializer
from pyspark.util import _load_from_socket

from braid.errors import CollectLimitExceeded, SparkResultLimitExceeded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LIMIT = "spark.driver.maxResultSize"
"""Setting for the bytes that Spark returns to the driver; 0: no limit."""
_UNKNOWN = 1 << 50
"""Least size that Spark reports for a source of unknown size.

The size is nearly 2^63, or part of that if columns are left out.
"""


def driver_result_limit(spark: SparkSession) -> int:
    """Return the bytes that Spark returns to the driver in one job; 0: no limit."""
    context: Any = spark.sparkContext
    jvm: Any = context._jvm
    setting = context._jsc.sc().conf().get(LIMIT, "1g")
    return int(jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(setting))


def announced_bytes(frame: DataFrame) -> int:
    """Return the bytes that the sources of a batch announce before it is read, such as file sizes.

    0: unknown. The number comes from Spark's planner; nothing is scanned.
    """
    plan: Any = frame._jdf.queryExecution().analyzed()
    size = int(plan.stats().sizeInBytes())
    return size if size < _UNKNOWN else 0


def scanned_bytes(frame: DataFrame) -> int:
    """Return the bytes of all sources of a frame whose size is known.

    For a join, ``announced_bytes`` returns the product instead.
    """
    plan: Any = frame._jdf.queryExecution().analyzed()
    leaves = plan.collectLeaves()
    sizes = [int(leaves.apply(k).stats().sizeInBytes()) for k in range(leaves.size())]
    return sum(size for size in sizes if size < _UNKNOWN)


class ByteBudget:
    """Shared limit for the bytes of batches that are collected concurrently."""

    def __init__(self, most: int = sys.maxsize) -> None:
        self._left, self._turn = most, threading.Lock()

    def try_reserve(self, size: int) -> bool:
        """Reserve bytes. Return whether the limit is still met."""
        with self._turn:
            self._left -= size
            return self._left >= 0


def collect_batch(frame: DataFrame, allowed: ByteBudget | None = None) -> list[pa.RecordBatch]:
    """Return the rows of a batch as ``DataFrame.toArrow`` does, without asking for their schema.

    ``allowed``: limit of bytes; None: no limit.

    Raises CollectLimitExceeded, and lets Spark stop, if the batch exceeds the limit. Raises
    SparkResultLimitExceeded if it exceeds Spark's.
    """
    try:
        return _collect_arrow_batches(frame, allowed or ByteBudget())
    except (Py4JError, PySparkException) as error:
        if f"is bigger than {LIMIT}" in f"{error}\n{getattr(error, '_stackTrace', '')}":
            raise SparkResultLimitExceeded(driver_result_limit(frame.sparkSession)) from None
        raise


def _collect_arrow_batches(frame: DataFrame, allowed: ByteBudget) -> list[pa.RecordBatch]:
    port, secret, server = frame._jdf.collectAsArrowToPython()
    try:
        with _load_from_socket((port, secret), _Bounded(allowed)) as batches:
            collected = list(batches)
    except CollectLimitExceeded:
        # The socket is closed, so Spark's write fails and its error is raised here.
        with suppress(Py4JError, PySparkException):
            server.getResult()
        raise
    except Exception:
        with unwrap_spark_exception():  # raises the error that ended the transfer
            server.getResult()
        raise
    server.getResult()
    return collected


class _Counted(ArrowStreamSerializer):
    """Serializer that reads batches until they exceed the limit."""

    allowed: ByteBudget

    def load_stream(self, stream: Any) -> Iterator[pa.RecordBatch]:
        size = 0
        for batch in super().load_stream(stream):
            size += batch.nbytes
            if not self.allowed.try_reserve(batch.nbytes):
                raise CollectLimitExceeded(size)
            yield batch


class _Bounded(ArrowCollectSerializer, _Counted):
    """Serializer that reads all batches in Spark's order and raises Spark's errors."""

    def __init__(self, allowed: ByteBudget) -> None:
        super().__init__()
        self.allowed = allowed
