"""Write the trace of a batch: the tuples of its fresh blocks, for ``why``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from braid.core.batch_report import BatchReport
from braid.core.batch_step import BatchStep
from braid.core.batch_work import BatchWork
from braid.storage.block_readers import read_replica_tuples
from braid.storage.run_store import RunStore


def add_trace(
    after: BatchStep,
    store: RunStore,
    work: BatchWork,
    outcome: BatchReport,
    last_epochs: Sequence[int | None],
) -> BatchStep:
    """Write the tuples that endless streams sent in a batch, and add the event that names them.

    ``last_epochs``: see ``Engine``. Nothing is written in a run that is started without ``trace=``.
    """
    limit = store.trace.limit
    if limit is None:
        return after
    tuples: dict[int, list[pa.RecordBatch]] = {}
    for stream, rows in _read_fresh_tuples(store, work, outcome):
        if last_epochs[stream] is None:
            tuples.setdefault(stream, []).append(rows)
    if not tuples:
        return after
    *happened, committed = after.events
    written = store.trace.write_batch(after.state.batch, tuples, limit)
    return after._replace(events=(*happened, written, committed))


def _read_fresh_tuples(
    store: RunStore, work: BatchWork, outcome: BatchReport
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield the stream and the tuples of each fresh block."""
    streams = {route.block.id: route.block.stream for route in work.plan.routes if route.is_fresh}
    addresses = [
        (streams[id], address)
        for (id, _), address in outcome.replica_addresses.items()
        if id in streams
    ]
    for stream in {*streams.values()}:
        several = [address for each, address in addresses if each == stream]
        files = {address.file: outcome.files[address.file] for address in several}
        if store.remote:  # tasks on other machines have uploaded them
            store.remote.prefetch_files({f"blocks/{name}": f"blocks/{name}" for name in files})
        for rows in read_replica_tuples(store.blocks.folder, several, files).values():
            yield stream, rows
