"""Rows that are too far ahead of their stream's clock, which is known after the batch only.

At most seven tuples of a stream wait for support. So a task reports the rows with the eight latest
event times of a block, and the driver chooses among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from braid.core.batch_report import BlockSize
from braid.core.plan import Block
from braid.core.reserved_columns import TIME
from braid.core.stream_clocks import SUPPORT
from braid.kernels.host_block_rows import BlockRows, take_block_rows


def encode_latest_rows(rows: BlockRows, columns: Sequence[str]) -> bytes:
    """Return the rows with the latest event times, with these columns, as an Arrow stream."""
    latest = np.argsort(rows.numpy_column(TIME), kind="stable")[-SUPPORT:]
    chosen = take_block_rows(rows.batch.select(list(dict.fromkeys([*columns, TIME]))), latest)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, chosen.schema) as writer:
        writer.write_batch(chosen)
    return bytes(sink.getvalue())


def list_early_rows(
    blocks: Iterable[Block],
    sizes: Mapping[int, BlockSize],
    limits: Sequence[int | None],
    columns: Sequence[Sequence[str]],
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the early rows of fresh blocks, with their stream.

    ``limits``: by stream, the event time past which a row is early; None: none is. ``columns``:
    the columns of each stream.
    """
    for block in blocks:
        limit, size = limits[block.stream], sizes.get(block.id)
        if limit is None or size is None or not size.latest_rows:
            continue
        rows = pa.ipc.open_stream(size.latest_rows).read_next_batch()
        early = rows.filter(pa.array(rows.column(TIME).to_numpy() > limit))
        if early.num_rows:
            yield block.stream, early.select(list(columns[block.stream]))
