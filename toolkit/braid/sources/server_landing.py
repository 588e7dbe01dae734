"""A folder in which a server of Spark Connect lands the micro-batches of streams.

The server runs one query over all streams, as a classic session does, so that a micro-batch of the
run is one of this query. In the folder, ``batches/000012`` has the rows of micro-batch 12,
``done/000012`` says that they are complete, and ``checkpoint`` is that of the query. This process
reads and writes it through the session only, so it need not reach the folder itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from importlib import import_module
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException, PySparkException

from braid.errors import DamagedRunError
from braid.sources import landing_function
from braid.sources.arrow_replay import TableBatches
from braid.sources.batch_drivers import BatchThread, RunBatch
from braid.sources.frame_conversion import convert_frame
from braid.util.machine import format_bytes

_STREAM = "__stream"
"""Column with the number of the stream that a landed row is of."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two looks for a micro-batch."""


class ServerLanding:
    """The landing of one run.

    Parameters
    ----------
    frames
        Streaming DataFrames of one session of Spark Connect, by alias.
    schemas
        Their columns as tuples have them, by alias.
    folder
        Path or URL of the landing, as the server knows it.
    """

    def __init__(
        self, frames: Mapping[str, Any], schemas: Mapping[str, pa.Schema], folder: str
    ) -> None:
        self.folder, self._schemas = folder, schemas
        self._session = next(iter(frames.values())).sparkSession
        parts = [
            frame.selectExpr(f"{place} AS {_STREAM}", f"struct(*) AS `{alias}`")
            for place, (alias, frame) in enumerate(frames.items())
        ]
        self._union = reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)
        self._schema = self._union.schema
        self._query: Any = None

    def start_query(self, trigger: Mapping[str, Any]) -> Any:
        """Start the server's query, and return its handle.

        The server stops an older query of the same checkpoint.
        """
        size = make_size_sql([pa.field(a, pa.struct(list(s))) for a, s in self._schemas.items()])
        land_batch = landing_function.make_landing_function(self.folder, size)
        with _pickle_by_value():
            writer = self._union.writeStream.foreachBatch(land_batch)
        writer = writer.option("checkpointLocation", f"{self.folder}/checkpoint")
        try:
            self._query = (writer.trigger(**trigger) if trigger else writer).start()
        except PySparkException as error:
            if "worker to connect back" not in str(error):
                raise
            raise RuntimeError(
                "the server of Spark Connect timed out while it waited for its Python worker; the "
                "environment variable PYSPARK_PYTHON of the server must name a Python with the "
                "packages of 'pyspark[connect]'"
            ) from error
        return self._query

    def check_position(self, number: int) -> None:
        """Raise DamagedRunError unless the server continues after micro-batch ``number``."""
        offsets = self._session.read.text(f"{self.folder}/checkpoint/offsets")
        numbers = offsets.selectExpr("max(cast(_metadata.file_name AS int))")
        begun = _load_files(numbers.collect)
        last = begun[0][0] if begun and begun[0][0] is not None else -1
        if last < number:
            raise DamagedRunError(
                f"the server's checkpoint in {self.folder} ends with micro-batch {last}, but the "
                f"run has committed {number}; restore it, or use a new folder"
            )

    def wait_for_batch(self, number: int, pause: Callable[[float], bool]) -> Any:
        """Wait until a micro-batch is landed. Return its marker; None if the query ends before it.

        ``pause`` waits some seconds, and returns whether to stop. Raises the error of the query,
        and DamagedRunError if the micro-batch is missing.
        """
        seconds = _SHORTEST_PAUSE
        while not pause(0):
            if (marker := self._read_marker(number)) is not None:
                return marker
            has_ended, is_gone = not self._query.isActive, self._has_committed(number)
            if (has_ended or is_gone) and (marker := self._read_marker(number)) is not None:
                return marker
            if is_gone:
                raise DamagedRunError(
                    f"micro-batch {number} is missing in {self.folder}, although the server has "
                    "landed it; restore it, or use a new folder"
                )
            if has_ended:
                if (error := self._query.exception()) is not None:
                    raise error
                return None
            pause(seconds)
            seconds = min(2 * seconds, _LONGEST_PAUSE)
        return None

    def read_batch(self, number: int, marker: Any, memory: int) -> dict[str, pa.Table]:
        """Return the rows of a landed micro-batch by alias.

        Raises DamagedRunError if some are missing, ValueError if they take more than ``memory``.
        """
        check_size(f"micro-batch {number} of the streams", marker["bytes"] or 0, memory)
        folder = f"{self._find_batch(number)}/{marker['attempt']}"
        landed = self._session.read.schema(self._schema).parquet(folder)
        rows = _load_files(landed.toArrow)
        count = 0 if rows is None else rows.num_rows
        if rows is None or count != marker["rows"]:
            raise DamagedRunError(
                f"{folder} has {count:,} rows, {marker['rows']:,} were landed; "
                "restore it, or use a new folder"
            )
        return {
            alias: self._take_stream(rows, place, alias)
            for place, alias in enumerate(self._schemas)
        }

    def clear_batch(self, number: int) -> None:
        """Replace the rows of a committed micro-batch by none: a session cannot delete files."""
        nothing = self._session.sql(f"SELECT 0 AS {_STREAM} LIMIT 0")
        nothing.write.mode("overwrite").parquet(self._find_batch(number))

    def stop_query(self) -> None:
        """Stop the server's query."""
        self._query.stop()

    def _find_batch(self, number: int) -> str:
        return f"{self.folder}/batches/{number:06d}"

    def _read_marker(self, number: int) -> Any:
        return landing_function.read_marker(self._session, self.folder, number)

    def _has_committed(self, number: int) -> bool:
        """Return whether the server's query has completed a micro-batch, as far as it records."""
        record = self._session.read.text(f"{self.folder}/checkpoint/commits/{number}")
        return _load_files(record.limit(1).collect) is not None

    def _take_stream(self, rows: pa.Table, place: int, alias: str) -> pa.Table:
        """Return the rows of one stream as a table of its columns."""
        chosen = rows.filter(pc.equal(rows[_STREAM], place))[alias]
        table = convert_frame(alias, pa.Table.from_struct_array(chosen))
        assert table is not None
        return table.cast(self._schemas[alias])


@dataclass(frozen=True)
class LandedInput:
    """A micro-batch: landed rows by alias, and static streams from their copy."""

    copied: TableBatches
    landed: Mapping[str, pa.Table]

    def read_table_batch(self, alias: str, number: int) -> pa.Table:
        """Return the rows of a stream."""
        rows = self.landed.get(alias)
        return self.copied.read_table_batch(alias, number) if rows is None else rows


def _load_files(load: Callable[[], Any]) -> Any:
    """Return what files hold; None if they do not exist."""
    try:
        return load()
    except AnalysisException as error:
        if error.getCondition() != "PATH_NOT_FOUND":
            raise
        return None


class LandedBatches(BatchThread):
    """Driver for streams of Spark Connect: a thread that passes landed micro-batches on.

    Parameters
    ----------
    landing
        Where the server lands them.
    first
        The first micro-batch to pass on.
    pause
        Wait some seconds, and return whether to stop.
    trigger
        Spark's trigger.
    memory
        Maximum bytes of a micro-batch.
    read_batch
        Return the source of a micro-batch, given its rows by alias and its number.
    """

    def __init__(
        self,
        landing: ServerLanding,
        first: int,
        pause: Callable[[float], bool],
        trigger: Mapping[str, Any],
        memory: int,
        read_batch: Callable[[Mapping[str, pa.Table], int], Any],
    ) -> None:
        super().__init__(range(0), lambda: pause(0))
        self._landing, self._number, self._pause = landing, first, pause
        self._trigger, self._memory, self._read_rows = trigger, memory, read_batch

    @property
    def handle(self) -> Any:
        """The server's StreamingQuery."""
        return self._query

    def start(self, run_batch: RunBatch) -> None:
        """Start the server's query and the thread."""
        if self._number > 0:  # the process may have died before it did this
            self._landing.clear_batch(self._number - 1)
        self._query = self._landing.start_query(self._trigger)
        super().start(run_batch)

    def _pass_batches(self, run_batch: RunBatch) -> None:
        try:
            self._pass_landed_batches(run_batch)
        except PySparkException as error:  # the server has failed, so there is no query to stop
            if "UNAVAILABLE" not in str(error):
                raise
            raise RuntimeError(
                "the server of Spark Connect does not answer; start it again and resume the run"
            ) from error
        except BaseException:
            self._landing.stop_query()
            raise
        self._landing.stop_query()

    def _pass_landed_batches(self, run_batch: RunBatch) -> None:
        wait = partial(self._landing.wait_for_batch, pause=self._pause)
        while (marker := wait(self._number)) is not None:
            rows = self._landing.read_batch(self._number, marker, self._memory)
            run_batch(self._read_rows(rows, self._number), self._number)
            self._landing.clear_batch(self._number)
            self._number += 1


@contextmanager
def _pickle_by_value() -> Iterator[None]:
    """Pickle functions of ``landing_function`` by value, as the server has no Braid."""
    pickling: Any = import_module("pyspark.cloudpickle")
    pickling.register_pickle_by_value(landing_function)
    try:
        yield
    finally:
        pickling.unregister_pickle_by_value(landing_function)


def make_size_sql(columns: Iterable[pa.Field]) -> str:
    """Return Spark SQL for the approximate bytes that columns of all rows take in memory."""
    each = " + ".join(_size_expression(f"`{field.name}`", field.type) for field in columns)
    return f"sum({each or '0'})"


def _size_expression(column: str, kind: pa.DataType) -> str:
    if pa.types.is_struct(kind):
        fields = [_size_expression(f"{column}.`{f.name}`", f.type) for f in kind]
        return " + ".join(fields) or "0"
    if pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return str(max(1, kind.bit_width // 8) if kind != pa.null() else 0)
    text = column if pa.types.is_binary(kind) else f"cast({column} AS string)"
    return f"coalesce(octet_length({text}), 0)"


def check_size(what: str, size: int, memory: int) -> None:
    """Raise ValueError if rows take more memory than they may."""
    if size > memory:
        raise ValueError(
            f"{what} takes about {format_bytes(size)}, and this process may hold "
            f"{format_bytes(memory)} of it; raise driver_memory, or give less at once"
        )
