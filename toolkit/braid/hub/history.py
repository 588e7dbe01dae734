"""The tuples that came last, as they came: what operators are built from while a hub runs."""

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

from braid.core.columns import TIME
from braid.core.state import Seal
from braid.engine import durable
from braid.engine.disk import disk
from braid.engine.durable import Damaged
from braid.engine.files import parquet
from braid.hub.ledger import HistoryFile, Ledger


@dataclass
class LostTuples(Exception):
    """A file of history is missing or damaged."""

    stream: str
    file: HistoryFile
    error: Damaged


@dataclass(frozen=True)
class Writing:
    """Files of a batch that are being forced to disk, by stream, and the names in their folder."""

    seals: Mapping[str, Future[Seal]]
    names: Future[None] | None

    def finish(self) -> dict[str, Seal]:
        """Wait until all is on disk; return the seals by stream."""
        if self.names is not None:
            self.names.result()
        return {stream: seal.result() for stream, seal in self.seals.items()}


class History:
    """A file for each stream and batch in a folder; the ledger says which there are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _file(self, stream: str, epoch: int) -> Path:
        return self.folder / _name_file(stream, epoch)

    def write_batch(self, epoch: int, batch: Mapping[str, pa.Table]) -> Writing:
        """Write the tuples of a batch by stream, their event times in microseconds besides, and
        begin to force the files to disk. A stream without event times has no file.
        """
        seals: dict[str, Future[Seal]] = {}
        for stream, rows in batch.items():
            if rows[TIME].null_count < rows.num_rows:
                file = self._file(stream, epoch)
                self._write(file, rows)
                seals[stream] = durable.beside(partial(durable.seal, file, True))
        names = durable.beside(partial(durable.sync, self.folder)) if seals else None
        return Writing(seals, names)

    def _write(self, file: Path, rows: pa.Table) -> None:
        plain: dict[str, Any] = dict(use_dictionary=False, write_statistics=False)
        with disk().sink(file) as sink:  # it is read once, if at all
            pq.write_table(rows, sink, compression="lz4", **plain)

    def rows(self, ledger: Ledger, stream: str, after: int | None = None) -> pa.Table | None:
        """What came of a stream and is kept, if it is later than ``after`` (microseconds); None if
        there is nothing. Raises LostTuples for a file that is not what was written.
        """
        files = [f for f in ledger.history.get(stream, []) if after is None or f.latest > after]
        if not files:
            return None
        whole = pa.concat_tables([self._read(stream, file) for file in files])
        if after is not None:
            whole = whole.filter(pc.greater(whole[TIME], after))
        return whole.drop_columns([TIME]) if whole.num_rows else None

    def sample(self, ledger: Ledger, stream: str, most: int) -> pa.Table | None:
        """The last tuples that came of a stream. Raises LostTuples."""
        for file in reversed(ledger.history.get(stream, [])):
            found = self._read(stream, file).drop_columns([TIME])
            return found.slice(max(0, found.num_rows - most))
        return None

    def _read(self, stream: str, file: HistoryFile) -> pa.Table:
        path = self._file(stream, file.epoch)
        try:
            durable.check(path, file.seal)
        except Damaged as damaged:
            raise LostTuples(stream, file, damaged) from damaged
        return parquet(path)

    def tidy(self, ledger: Ledger) -> None:
        """Remove the files that the ledger does not name."""
        named = {_name_file(s, f.epoch) for s, files in ledger.history.items() for f in files}
        for file in disk().find(self.folder):
            if file.name not in named:
                disk().unlink(file)


def _name_file(stream: str, epoch: int) -> str:
    return f"{epoch:06d}-{stream}.parquet"


def trim(ledger: Ledger, need: Mapping[str, int | None]) -> None:
    """Have the ledger name the files no longer whose tuples are all earlier than what is needed of
    their stream; None: all are.
    """
    for stream, since in need.items():
        if since is not None:
            files = ledger.history.get(stream, [])
            _let_go(ledger, stream, {file.epoch for file in files if file.latest < since})


def forget_lost(ledger: Ledger, lost: LostTuples) -> None:
    """Have the ledger name a file no longer that is lost."""
    _let_go(ledger, lost.stream, {lost.file.epoch})


def _let_go(ledger: Ledger, stream: str, epochs: Collection[int]) -> None:
    files, floor = ledger.history.get(stream, []), ledger.floor.get(stream)
    gone = [file.latest + 1 for file in files if file.epoch in epochs]
    ledger.history[stream] = [file for file in files if file.epoch not in epochs]
    if gone:
        ledger.floor[stream] = max(gone if floor is None else [floor, *gone])
