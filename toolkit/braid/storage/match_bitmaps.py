"""Match bitmaps of a run, which the driver writes: one bit for each stored tuple to be answered.

A file has a record batch for each birth that changed in a batch (see ``core.answers``). The state
names the files, as it names those of blocks, and they are in the same folder.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from braid.core.answer_state import MatchedRows, split_mark_key
from braid.core.batch_report import BatchReport
from braid.core.reserved_columns import MATCHED, MATCHED_NOW
from braid.core.run_state import FileChecksum, ReplicaAddress, RunState
from braid.kernels.match_marks import Bits, union_match_bits, unpack_match_bits
from braid.storage.block_readers import open_replica
from braid.storage.remote_medium import RemoteMedium
from braid.storage.run_medium import RunMedium
from braid.util.clock_and_threads import current_environment

_MOST_FILES = 16
"""Files of bitmaps above which all are written to a new one."""


class _Bitmap(NamedTuple):
    """A bitmap to write, by ``make_mark_key``.

    ``before``: that before the batch; None: nothing new is to be known.
    """

    key: int
    bits: Bits
    matches: int
    before: Bits | None = None

    @property
    def new_matches(self) -> int:
        """Number of rows that matched first in this batch, if that is to be known."""
        return 0 if self.before is None else self.matches - int(np.count_nonzero(self.before))


class MatchBitmaps:
    """Match bitmaps in files of a run's folder ``blocks``."""

    def __init__(self, medium: RunMedium) -> None:
        self._medium = medium

    def write_changed(self, state: RunState, outcome: BatchReport, keeps_new: bool = False) -> None:
        """Write the bitmaps that the reports of a batch change, and add them to its outcome.

        ``keeps_new``: also write which rows matched first in this batch.
        """
        births, is_shared = _count_rows(state, outcome), bool(state.queries)
        changed = {}

        def count_rows(key: int) -> int:
            return births[split_mark_key(key, is_shared)[0]]

        for key in outcome.marks.keys() | outcome.merged_marks.keys():
            bitmap = self._extend_bitmap(state, key, count_rows(key), outcome)
            if bitmap is not None:
                changed[key] = bitmap if keeps_new else bitmap._replace(before=None)
        if len(state.answers.bitmap_files()) >= _MOST_FILES:
            changed = self._read_unchanged(state, changed) | changed
        for key, bitmap in changed.items():
            counts = count_rows(key), bitmap.matches
            outcome.matched[key] = MatchedRows(*counts, new_matches=bitmap.new_matches)
        needed = [b for b in changed.values() if b.matches < count_rows(b.key) or b.new_matches]
        if needed:
            self._write_file(state.batch + 1, needed, outcome)

    def _extend_bitmap(
        self, state: RunState, key: int, rows: int, outcome: BatchReport
    ) -> _Bitmap | None:
        """Return the bitmap of a birth with the reported marks; None: it does not change."""
        matched = state.answers.matched.get(key)
        if matched is not None and matched.is_full:
            return None
        start = np.zeros(rows, bool) if matched is None else self._read_bits(state, matched)
        if key in outcome.merged_marks:
            merged = unpack_match_bits(outcome.merged_marks[key])[:rows]
            start = union_match_bits([start, merged])
        more = (unpack_match_bits(body)[:rows] for body in outcome.marks.get(key, ()))
        bits = union_match_bits(chain([start], more))
        matches = int(np.count_nonzero(bits))
        if matched is not None and matches == matched.matches:
            return None
        return _Bitmap(key, bits, matches, start)

    def _read_unchanged(
        self, state: RunState, changed: Mapping[int, _Bitmap]
    ) -> dict[int, _Bitmap]:
        return {
            key: _Bitmap(key, self._read_bits(state, matched), matched.matches)
            for key, matched in state.answers.matched.items()
            if key not in changed and matched.file
        }

    def _read_bits(self, state: RunState, matched: MatchedRows) -> Bits:
        path = self._medium.fetch_file(f"blocks/{matched.file}")
        checksum = state.block_files[matched.file]
        address = ReplicaAddress(matched.file, matched.record_batch)
        rows = open_replica(str(path), address, checksum)
        return rows.numpy_column(MATCHED)

    def _write_file(self, batch: int, bitmaps: list[_Bitmap], outcome: BatchReport) -> None:
        name = f"{batch:06d}-{current_environment().make_token()}-0.arrow"
        sink = pa.BufferOutputStream()
        names = [MATCHED] if all(b.before is None for b in bitmaps) else [MATCHED, MATCHED_NOW]
        with pa.ipc.new_file(sink, pa.schema([(n, pa.bool_()) for n in names])) as writer:
            for number, bitmap in enumerate(bitmaps):
                before = bitmap.bits if bitmap.before is None else bitmap.before
                columns = [pa.array(bitmap.bits), pa.array(bitmap.bits & ~before)]
                writer.write_batch(pa.record_batch(columns[: len(names)], names=names))
                written = outcome.matched[bitmap.key]
                outcome.matched[bitmap.key] = written._replace(file=name, record_batch=number)
        body = sink.getvalue().to_pybytes()
        self._medium.put_unique(f"blocks/{name}", body)
        if isinstance(self._medium, RemoteMedium):
            self._medium.blocks |= {name}
        outcome.files[name] = FileChecksum(len(body), zlib.crc32(body))


def _count_rows(state: RunState, outcome: BatchReport) -> dict[int, int]:
    """Return the rows of all births of the blocks before a batch and of those that it made."""
    rows = {id: block.rows for id, block in state.blocks.items()}
    for key, matched in state.answers.matched.items():
        rows[split_mark_key(key, bool(state.queries))[0]] = matched.rows
    # Last, since rows of a block may have been dropped when the queries changed.
    rows |= {origin.birth: origin.rows for origin in state.answers.origins.values()}
    return rows | {id: size.rows for id, size in outcome.block_sizes.items()}
