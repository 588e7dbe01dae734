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

from braid.core.answer_state import MatchedRows
from braid.core.batch_report import BatchReport
from braid.core.reserved_columns import MATCHED
from braid.core.run_state import FileChecksum, RunState
from braid.kernels.match_marks import Bits, union_match_bits, unpack_match_bits
from braid.storage.block_files import open_replica
from braid.storage.remote_medium import RemoteMedium
from braid.storage.run_medium import RunMedium
from braid.util.clock_and_threads import current_environment

_MOST_FILES = 16
"""Files of bitmaps above which all are written to a new one."""


class _Bitmap(NamedTuple):
    birth: int
    bits: Bits
    matches: int


class MatchBitmaps:
    """Match bitmaps in files of a run's folder ``blocks``."""

    def __init__(self, medium: RunMedium) -> None:
        self._medium = medium

    def write_changed(self, state: RunState, outcome: BatchReport) -> None:
        """Write the bitmaps that the reports of a batch change, and add them to its outcome."""
        rows = _count_rows(state, outcome)
        changed = {}
        for birth, marks in outcome.marks.items():
            bitmap = self._extend_bitmap(state, birth, rows[birth], marks)
            if bitmap is not None:
                changed[birth] = bitmap
        if len(state.answers.bitmap_files()) >= _MOST_FILES:
            changed = self._read_unchanged(state, changed) | changed
        for birth, bitmap in changed.items():
            outcome.matched[birth] = MatchedRows(rows[birth], bitmap.matches)
        partial = [bitmap for bitmap in changed.values() if bitmap.matches < rows[bitmap.birth]]
        if partial:
            self._write_file(state.batch + 1, partial, outcome)

    def _extend_bitmap(
        self, state: RunState, birth: int, rows: int, marks: list[bytes]
    ) -> _Bitmap | None:
        """Return the bitmap of a birth with these marks added; None: it does not change."""
        before = state.answers.matched.get(birth)
        if before is not None and before.is_full:
            return None
        start = np.zeros(rows, bool) if before is None else self._read_bits(state, before)
        more = (unpack_match_bits(body)[:rows] for body in marks)
        bits = union_match_bits(chain([start], more))
        matches = int(np.count_nonzero(bits))
        is_unchanged = before is not None and matches == before.matches
        return None if is_unchanged else _Bitmap(birth, bits, matches)

    def _read_unchanged(
        self, state: RunState, changed: Mapping[int, _Bitmap]
    ) -> dict[int, _Bitmap]:
        return {
            birth: _Bitmap(birth, self._read_bits(state, matched), matched.matches)
            for birth, matched in state.answers.matched.items()
            if birth not in changed and matched.file
        }

    def _read_bits(self, state: RunState, matched: MatchedRows) -> Bits:
        path = self._medium.fetch_file(f"blocks/{matched.file}")
        checksum = state.block_files[matched.file]
        rows = open_replica(str(path), matched.record_batch, None, checksum)
        return rows.numpy_column(MATCHED)

    def _write_file(self, batch: int, bitmaps: list[_Bitmap], outcome: BatchReport) -> None:
        name = f"{batch:06d}-{current_environment().make_token()}-0.arrow"
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, pa.schema([(MATCHED, pa.bool_())])) as writer:
            for number, bitmap in enumerate(bitmaps):
                writer.write_batch(pa.record_batch([pa.array(bitmap.bits)], names=[MATCHED]))
                written = outcome.matched[bitmap.birth]
                outcome.matched[bitmap.birth] = written._replace(file=name, record_batch=number)
        body = sink.getvalue().to_pybytes()
        self._medium.put_unique(f"blocks/{name}", body)
        if isinstance(self._medium, RemoteMedium):
            self._medium.blocks |= {name}
        outcome.files[name] = FileChecksum(len(body), zlib.crc32(body))


def _count_rows(state: RunState, outcome: BatchReport) -> dict[int, int]:
    """Return the rows of all births of the blocks before a batch and of those that it made."""
    rows = {origin.birth: origin.rows for origin in state.answers.origins.values()}
    rows |= {birth: matched.rows for birth, matched in state.answers.matched.items()}
    rows |= {id: block.rows for id, block in state.blocks.items()}
    return rows | {id: size.rows for id, size in outcome.block_sizes.items()}
