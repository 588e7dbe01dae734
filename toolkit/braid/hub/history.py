"""The tuples that came last, as they came: what operators are built from while a hub runs."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from braid.core.columns import TIME
from braid.engine.files import parquet
from braid.hub.ledger import Ledger


class History:
    """A file for each stream and batch, in ``folder``/STREAM; the ledger says which there are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def _file(self, stream: str, epoch: int) -> Path:
        return self.folder / stream / f"{epoch:06d}.parquet"

    def keep(self, stream: str, epoch: int, rows: pa.Table) -> None:
        """Write what came of a stream, its event time in microseconds besides."""
        file = self._file(stream, epoch)
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(f".{file.name}.{uuid.uuid4().hex[:8]}")
        plain: dict[str, Any] = dict(use_dictionary=False, write_statistics=False)
        pq.write_table(rows, temporary, compression="lz4", **plain)  # it is read once, if at all
        os.replace(temporary, file)

    def rows(self, ledger: Ledger, stream: str, after: int | None = None) -> pa.Table | None:
        """What came of a stream and is kept, if it is later than ``after`` (microseconds); None if
        there is nothing.
        """
        files = [
            self._file(stream, epoch)
            for epoch, latest in ledger.history.get(stream, [])
            if latest is not None and (after is None or latest > after)
        ]
        if not files:
            return None
        whole = pa.concat_tables([parquet(f) for f in files])
        if after is not None:
            whole = whole.filter(pc.greater(whole[TIME], after))
        return whole.drop_columns([TIME]) if whole.num_rows else None

    def sample(self, ledger: Ledger, stream: str, most: int) -> pa.Table | None:
        """The last tuples that came of a stream."""
        for epoch, latest in reversed(ledger.history.get(stream, [])):
            if latest is not None:
                found = parquet(self._file(stream, epoch)).drop_columns([TIME])
                return found.slice(max(0, found.num_rows - most))
        return None

    def tidy(self, ledger: Ledger) -> None:
        """Remove the files that the ledger does not name."""
        for folder in self.folder.iterdir() if self.folder.exists() else ():
            named = {f"{epoch:06d}.parquet" for epoch, _ in ledger.history.get(folder.name, [])}
            for file in folder.iterdir():
                if file.name not in named:
                    file.unlink()


def trim(ledger: Ledger, need: Mapping[str, int | None]) -> None:
    """Have the ledger name the batches no longer whose tuples are all earlier than what is needed
    of their stream; None: all are.
    """
    for stream, since in need.items():
        kept: list[tuple[int, int | None]] = []
        for epoch, latest in ledger.history.get(stream, []):
            if since is None or (latest is not None and latest >= since):
                kept.append((epoch, latest))
            elif latest is not None:
                ledger.floor[stream] = max(latest + 1, ledger.floor.get(stream) or latest + 1)
        ledger.history[stream] = kept
