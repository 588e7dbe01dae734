"""Recent tuples of the streams, from which a running hub builds operators."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from braid.core.reserved_columns import TIME
from braid.core.run_state import FileChecksum
from braid.errors import DamagedRunError, LostTuples
from braid.hub.hub_state import HubState
from braid.storage import durable_files
from braid.storage.block_files import read_parquet
from braid.storage.hub_files import HistoryFile
from braid.util.clock_and_threads import current_environment
from braid.util.file_system import current_file_system


@dataclass(frozen=True)
class HistoryWrite:
    """Files of one batch that are being forced to disk.

    - ``files``: names, latest event times in microseconds and pending checksums, by stream.
    - ``synced``: pending sync of their folder; None: no file was written.
    """

    epoch: int
    files: Mapping[str, tuple[str, int, Future[FileChecksum]]]
    synced: Future[None] | None

    def finish_write(self) -> dict[str, HistoryFile]:
        """Wait until all files are on disk. Return them by stream."""
        if self.synced is not None:
            self.synced.result()
        return {
            stream: HistoryFile(name, self.epoch, latest, checksum.result())
            for stream, (name, latest, checksum) in self.files.items()
        }


class BackfillBuffer:
    """Recent tuples in a folder, one file for each stream and batch.

    A file is valid only if the hub state names it. Each attempt at a batch, also of another driver,
    writes files of other names.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write_batch(self, epoch: int, batch: Mapping[str, pa.Table]) -> HistoryWrite:
        """Write a batch's tuples with their event times, and start to force the files to disk.

        Event times are in microseconds. A stream without event times gets no file.
        """
        files: dict[str, tuple[str, int, Future[FileChecksum]]] = {}
        for stream, rows in batch.items():
            if rows[TIME].null_count < rows.num_rows:
                name = f"{epoch:06d}-{stream}-{current_environment().make_token()}.parquet"
                self._write_file(self.folder / name, rows)
                compute = partial(durable_files.checksum_file, self.folder / name, True)
                latest = pc.max(rows[TIME]).as_py()
                files[stream] = name, latest, durable_files.run_in_background(compute)
        synced = partial(durable_files.fsync_path, self.folder)
        return HistoryWrite(
            epoch, files, durable_files.run_in_background(synced) if files else None
        )

    def _write_file(self, file: Path, rows: pa.Table) -> None:
        plain: dict[str, Any] = dict(use_dictionary=False, write_statistics=False)
        # Fast to write: it is read at most once.
        with current_file_system().open_sink(file) as sink:
            pq.write_table(rows, sink, compression="lz4", **plain)

    def read_rows(self, ledger: HubState, stream: str, after: int | None = None) -> pa.Table | None:
        """Return the retained tuples of a stream that are later than ``after``; None: none are.

        ``after``: event time in microseconds; None: all tuples. Raises LostTuples if a file is
        missing or damaged.
        """
        files = [
            f for f in ledger.backfill_batches.get(stream, []) if after is None or f.latest > after
        ]
        if not files:
            return None
        rows = pa.concat_tables([self._read_file(stream, file) for file in files])
        if after is not None:
            rows = rows.filter(pc.greater(rows[TIME], after))
        return rows.drop_columns([TIME]) if rows.num_rows else None

    def sample_rows(self, ledger: HubState, stream: str, most: int) -> pa.Table | None:
        """Return up to ``most`` of the latest tuples of a stream. Raises LostTuples."""
        for file in reversed(ledger.backfill_batches.get(stream, [])):
            rows = self._read_file(stream, file).drop_columns([TIME])
            return rows.slice(max(0, rows.num_rows - most))
        return None

    def _read_file(self, stream: str, file: HistoryFile) -> pa.Table:
        path = self.folder / file.name
        try:
            durable_files.check_file(path, file.checksum)
        except DamagedRunError as damaged:
            raise LostTuples(stream, file.epoch, damaged) from damaged
        return read_parquet(path)


def trim_backfill(ledger: HubState, need: Mapping[str, int | None]) -> None:
    """Drop the files whose tuples are all earlier than needed from the hub state.

    ``need``: the earliest event time needed, by stream; None: all tuples are needed.
    """
    for stream, since in need.items():
        if since is not None:
            files = ledger.backfill_batches.get(stream, [])
            _release_rows(ledger, stream, {file.epoch for file in files if file.latest < since})


def remove_lost_file(ledger: HubState, lost: LostTuples) -> None:
    """Drop a lost file from the hub state."""
    _release_rows(ledger, lost.stream, {lost.epoch})


def _release_rows(ledger: HubState, stream: str, epochs: Collection[int]) -> None:
    files, floor = ledger.backfill_batches.get(stream, []), ledger.backfill_start.get(stream)
    gone = [file.latest + 1 for file in files if file.epoch in epochs]
    ledger.backfill_batches[stream] = [file for file in files if file.epoch not in epochs]
    if gone:
        ledger.backfill_start[stream] = max(gone if floor is None else [floor, *gone])
