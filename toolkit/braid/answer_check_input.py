"""The stored input of a run, as SQL of DuckDB, for the check of its answers and ``why``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from braid.answer_check_spark import ROWS_A_BATCH
from braid.answer_check_text import format_text_list, quote_text
from braid.core.run_events import BatchCommitted
from braid.storage import micro_batch_files
from braid.storage.run_store import RunStore
from braid.storage.staged_input import StagedStream
from braid.time_arguments import parse_lateness

_UNKNOWN = 1 << 62
"""Value for an unknown clock, later than every event time."""
FILE = "__file"
"""Name of the column with the file of a row."""


@dataclass(frozen=True)
class StoredInput:
    """The stored input of a run.

    - ``database``: where files and tables are registered.
    - ``aliases``: the streams, in order.
    - ``batches``: by micro-batch that is committed, the batch of the run.
    - ``is_table_run``: whether it is a run of tables, without Spark.
    - ``landed``: streams that a server of Spark Connect landed.
    """

    database: duckdb.DuckDBPyConnection
    store: RunStore
    aliases: Sequence[str]
    batches: Sequence[int]
    is_table_run: bool
    landed: Collection[str] = ()

    def read_stream(self, alias: str) -> tuple[str, list[str]]:
        """Return SQL for a stream's rows with ``__batch`` and ``__row``, and its column names.

        Raises ValueError if the rows are not kept, or not readable yet.
        """
        if not self._is_table(alias) and self._find_staged_file(alias).exists():
            raise ValueError(
                f"the input of stream {alias} is not in its final files yet; resume the run in "
                f"{self.store.where} once, then check its answers"
            )
        source = self.find_rows(alias, "__row")
        if source is None:
            raise ValueError(
                f"stream {alias} does not end and its input is not kept, so the answers of "
                f"{self.store.where} cannot be recomputed"
            )
        names = [*self.store.input.stream_schema(alias).names]
        if "file_row_number" in names and not self._is_table(alias):
            raise ValueError(
                f"stream {alias} has a column file_row_number, as DuckDB calls the number of a row "
                f"in its file, so the answers of {self.store.where} cannot be recomputed"
            )
        return source, names

    def find_rows(self, alias: str, number: str = "") -> str | None:
        """Return SQL for a stream's rows with ``__batch``; None if they are not kept.

        ``number``: a further column for the number of a row; empty: none.
        """
        zero = f", 0 AS {number}" if number else ""
        if self._is_table(alias):
            parts = [self.store.input.read_table_batch(alias, n) for n in range(len(self.batches))]
            empty = self.store.input.stream_schema(alias).empty_table()
            sizes, rows = [part.num_rows for part in parts], pa.concat_tables([*parts, empty])
            return f"SELECT *{zero} FROM {self._register_rows(alias, rows, sizes)}"
        if (staged := self._find_staged_file(alias)).exists():
            unsplit = StagedStream(staged)
            ends = unsplit.ends[: len(self.batches)]
            rows = unsplit.rows.slice(0, int(ends[-1]) if len(ends) else 0)
            return (
                f"SELECT *{zero} FROM {self._register_rows(alias, rows, np.diff(ends, prepend=0))}"
            )
        files = list_input_files(self.store, alias, len(self.batches))
        return self._read_files(alias, files, number) if files else None

    def _is_table(self, alias: str) -> bool:
        return self.is_table_run and alias not in self.landed

    def _find_staged_file(self, alias: str) -> Path:
        return self.store.input.folder / f"{alias}.arrow"

    def _read_files(self, alias: str, files: Sequence[str], number: str) -> str:
        numbers, table = [int(Path(f).stem) for f in files], self._name_table(alias)
        named = {"file": files, "of": numbers, "batch": [self.batches[n] for n in numbers]}
        self.database.register(table, pa.table(named))
        columns = ", ".join(
            f"r.{quote_text(n)}" for n in self.store.input.stream_schema(alias).names
        )
        row = f", b.of * {ROWS_A_BATCH} + r.file_row_number AS {number}" if number else ""
        options = f"filename = '{FILE}'" + (", file_row_number = true" if number else "")
        source = f"read_parquet({format_text_list(files)}, {options})"
        return (
            f"SELECT {columns}, b.batch AS __batch{row} FROM {source} r "
            f"JOIN {table} b ON b.file = r.{FILE}"
        )

    def _name_table(self, alias: str) -> str:
        return f"__input_{self.aliases.index(alias)}"

    def _register_rows(self, alias: str, rows: pa.Table, sizes: Any) -> str:
        """Return the name of a table of rows with ``__batch``, by the number of rows of each."""
        batch = np.repeat(np.array(self.batches[: len(sizes)], np.int64), sizes)
        name = self._name_table(alias)
        self.database.register(name, rows.append_column("__batch", pa.array(batch, pa.int64())))
        return name


def list_input_batches(store: RunStore, last: int) -> list[int]:
    """Return, by micro-batch up to ``last``, the batch of a run that committed it.

    Older events do not say the micro-batch, so that those of batches with an executor are counted.
    """
    events = store.archive.committed_events_of_type(BatchCommitted)
    counted = [] if store.log.first_retained_batch else [e.batch for e in events if e.executor]
    committed: dict[int | None, int] = dict(enumerate(counted))
    return assign_batches(last, committed | {e.micro_batch: e.batch for e in events})


def assign_batches(last: int, committed: Mapping[int | None, int]) -> list[int]:
    """Return the batch of each micro-batch up to ``last``, given some of them.

    One whose event is trimmed gets the first batch that may have committed it.
    """
    batches: list[int] = []
    for micro_batch in range(last + 1):
        batches.append(committed.get(micro_batch, batches[-1] + 1 if batches else 0))
    return batches


def list_input_files(store: RunStore, alias: str, micro_batches: int) -> list[str]:
    """Return the files of a stream's first micro-batches, in order."""
    folder = store.input.folder / alias
    files = [micro_batch_files.batch_file(folder, n) for n in range(micro_batches)]
    return [str(f) for f in files if f.exists()]


def list_late_limits(store: RunStore, settings: Mapping[str, Any], last_batch: int) -> pa.Table:
    """Return the event times before which a tuple is late, by position of the stream and batch.

    It is the stream's clock after the batch before, read from the run's events, minus the stream's
    lateness. If the events of a batch are trimmed, all its tuples count as late.
    """
    allowed = parse_lateness(settings["lateness"], settings["streams"])
    events = store.archive.committed_events_of_type(BatchCommitted)
    committed = {e.batch: e.clocks for e in events}
    rows = []
    for place, slack in enumerate(allowed.values()):
        for batch in range(1, last_batch + 1):
            clocks = committed.get(batch - 1)
            clock = _UNKNOWN if clocks is None else clocks[place]
            rows.append((place, batch, None if clock is None else clock - slack))
    columns = [*zip(*rows, strict=True)] or [(), (), ()]
    arrays = [pa.array(column, pa.int64()) for column in columns]
    return pa.table(arrays, names=["stream", "batch", "before"])
