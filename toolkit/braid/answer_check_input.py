"""The stored input of a run, as SQL of DuckDB, for the check of its answers."""

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
        if self.is_table_run and alias not in self.landed:
            return self._read_table(alias)
        if (self.store.input.folder / f"{alias}.arrow").exists():
            raise ValueError(
                f"the input of stream {alias} is not in its final files yet; resume the run in "
                f"{self.store.where} once, then check its answers"
            )
        files = list_input_files(self.store, alias, len(self.batches))
        if not files:
            raise ValueError(
                f"stream {alias} does not end and its input is not kept, so the answers of "
                f"{self.store.where} cannot be recomputed"
            )
        table, names = self._name_table(alias), [*self.store.input.stream_schema(alias).names]
        if "file_row_number" in names:
            raise ValueError(
                f"stream {alias} has a column file_row_number, as DuckDB calls the number of a row "
                f"in its file, so the answers of {self.store.where} cannot be recomputed"
            )
        numbers = [int(Path(f).stem) for f in files]
        named = {"file": files, "of": numbers, "batch": [self.batches[n] for n in numbers]}
        self.database.register(table, pa.table(named))
        columns = ", ".join(f"r.{quote_text(n)}" for n in names)
        row = f"b.of * {ROWS_A_BATCH} + r.file_row_number"
        of_file = f"filename = '{FILE}', file_row_number = true"
        source = f"read_parquet({format_text_list(files)}, {of_file})"
        joined = f"{source} r JOIN {table} b ON b.file = r.{FILE}"
        return f"SELECT {columns}, b.batch AS __batch, {row} AS __row FROM {joined}", names

    def _name_table(self, alias: str) -> str:
        return f"__input_{self.aliases.index(alias)}"

    def _read_table(self, alias: str) -> tuple[str, list[str]]:
        """Return the same for a table."""
        numbers = range(len(self.batches))
        parts = [self.store.input.read_table_batch(alias, number) for number in numbers]
        sizes = [part.num_rows for part in parts]
        rows = pa.concat_tables([*parts, self.store.input.stream_schema(alias).empty_table()])
        names = [*rows.column_names]
        batch = np.repeat(np.array(self.batches, np.int64), sizes)
        rows = rows.append_column("__batch", pa.array(batch, pa.int64()))
        self.database.register(self._name_table(alias), rows)
        return f"SELECT *, 0 AS __row FROM {self._name_table(alias)}", names


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
