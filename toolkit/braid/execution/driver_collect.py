"""A batch of Spark's comes to this process: once, as Arrow, and no more of it than may be held."""

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

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LIMIT = "spark.driver.maxResultSize"
"""The setting that says how many bytes Spark lets come to the driver; 0: any."""
_UNKNOWN = 1 << 50
"""Spark says at least so many bytes of what it knows no size of: nearly 2^63, or some of that when
columns are left out."""


class CollectLimitExceeded(Exception):
    """More came than may be held: ``size`` bytes, and some are left."""

    def __init__(self, size: int, said: str = "") -> None:
        super().__init__(said or f"{size} bytes came")
        self.size = size


class SparkResultLimitExceeded(CollectLimitExceeded):
    """Spark gave up the batch, because it hands no more to the driver than ``limit`` bytes. It
    counts what whole tasks return, before this process has seen any of it.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(
            limit,
            f"a batch has more than the {limit} bytes that {LIMIT} lets Spark hand to this "
            'process; raise that setting, or take executor="auto" or "spark"',
        )


def driver_result_limit(spark: SparkSession) -> int:
    """The bytes that Spark lets come to the driver in one job; 0: any."""
    context: Any = spark.sparkContext
    jvm: Any = context._jvm
    setting = context._jsc.sc().conf().get(LIMIT, "1g")
    return int(jvm.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(setting))


def announced_bytes(frame: DataFrame) -> int:
    """The bytes that the sources of a batch announce before it is read, such as those of files; 0
    when they do not.

    It is what Spark's planner has; nothing is scanned.
    """
    plan: Any = frame._jdf.queryExecution().analyzed()
    size = int(plan.stats().sizeInBytes())
    return size if size < _UNKNOWN else 0


def scanned_bytes(frame: DataFrame) -> int:
    """The bytes that the sources of a frame have, as far as they tell: of a join, ``announced`` has
    the product.
    """
    plan: Any = frame._jdf.queryExecution().analyzed()
    leaves = plan.collectLeaves()
    sizes = [int(leaves.apply(k).stats().sizeInBytes()) for k in range(leaves.size())]
    return sum(size for size in sizes if size < _UNKNOWN)


class ByteBudget:
    """Bytes that what comes at the same time may have together."""

    def __init__(self, most: int = sys.maxsize) -> None:
        self._left, self._turn = most, threading.Lock()

    def reserve(self, size: int) -> bool:
        """Take so many of them; returns whether there were as many."""
        with self._turn:
            self._left -= size
            return self._left >= 0


def collect_batch(frame: DataFrame, allowed: ByteBudget | None = None) -> list[pa.RecordBatch]:
    """The rows of a batch as ``DataFrame.toArrow`` collects them, without asking Spark for their
    schema. Raises Overflow, and lets Spark stop, when there are more than ``allowed`` bytes (None:
    any number); Refused when there are more than Spark hands over.
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
            found = list(batches)
    except CollectLimitExceeded:
        # Nobody reads what Spark goes on to write: it breaks off, and says so here.
        with suppress(Py4JError, PySparkException):
            server.getResult()
        raise
    except Exception:
        with unwrap_spark_exception():  # what made it break off
            server.getResult()
        raise
    server.getResult()
    return found


class _Counted(ArrowStreamSerializer):
    """Reads batches as they come, as long as they are not too many."""

    allowed: ByteBudget

    def load_stream(self, stream: Any) -> Iterator[pa.RecordBatch]:
        size = 0
        for batch in super().load_stream(stream):
            size += batch.nbytes
            if not self.allowed.reserve(batch.nbytes):
                raise CollectLimitExceeded(size)
            yield batch


class _Bounded(ArrowCollectSerializer, _Counted):
    """Reads all batches, which stand in Spark's order then; its errors are raised."""

    def __init__(self, allowed: ByteBudget) -> None:
        super().__init__()
        self.allowed = allowed
