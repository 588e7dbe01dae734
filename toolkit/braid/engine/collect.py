"""A batch of Spark's comes to this process: once, as Arrow, and no more of it than may be held."""

from __future__ import annotations

import sys
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
    from pyspark.sql import DataFrame

_UNKNOWN = 1 << 50
"""Spark says at least so many bytes of what it knows no size of: nearly 2^63, or some of that when
columns are left out."""


class Overflow(Exception):
    """More came than may be held: ``size`` bytes, and some are left."""

    def __init__(self, size: int) -> None:
        super().__init__(f"{size} bytes came")
        self.size = size


def announced(frame: DataFrame) -> int:
    """The bytes that the sources of a batch announce before it is read, such as those of files; 0
    when they do not.

    It is what Spark's planner has; nothing is scanned.
    """
    plan: Any = frame._jdf.queryExecution().analyzed()
    size = int(plan.stats().sizeInBytes())
    return size if size < _UNKNOWN else 0


def collected(frame: DataFrame, most: int = sys.maxsize) -> list[pa.RecordBatch]:
    """The rows of a batch as ``DataFrame.toArrow`` collects them, without asking Spark for their
    schema. Raises Overflow, and lets Spark stop, when there are more than ``most`` bytes.
    """
    port, secret, server = frame._jdf.collectAsArrowToPython()
    try:
        with _load_from_socket((port, secret), _Bounded(most)) as batches:
            found = list(batches)
    except Overflow:
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

    most: int

    def load_stream(self, stream: Any) -> Iterator[pa.RecordBatch]:
        size = 0
        for batch in super().load_stream(stream):
            size += batch.nbytes
            if size > self.most:
                raise Overflow(size)
            yield batch


class _Bounded(ArrowCollectSerializer, _Counted):
    """Reads all batches, which stand in Spark's order then; its errors are raised."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
