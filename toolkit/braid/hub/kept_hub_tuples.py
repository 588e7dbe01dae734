"""Find the tuples that a hub on Spark keeps of streams that do not end.

They are those of recent batches, from which operators are built, and late, untimed and early ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import pyarrow as pa

from braid.errors import DamagedRunError, QueryError
from braid.hub.arrow_backend import ArrowStreamReader
from braid.hub.hub_state import HubState
from braid.papers.reuse.query_definition import Column
from braid.storage import durable_files
from braid.storage.block_files import read_parquet
from braid.storage.hub_files import HISTORY, read_last_hub_state
from braid.storage.run_store import RunStore

BATCH = "__batch"
"""Column with the batch of a tuple."""


class StoredSparkReader(ArrowStreamReader):
    """Reader of what a hub on Spark has stored, without Spark."""

    def compute_in_spark(
        self, rows: pa.Table, columns: Mapping[str, Column], wanted: Mapping[str, str]
    ) -> NoReturn:
        """Raise QueryError: only Spark computes them."""
        raise QueryError("only Spark evaluates a filter of the query as Spark does")


def read_last_state(
    store: RunStore, settings: Mapping[str, Any]
) -> tuple[HubState, dict[str, pa.Table]]:
    """Return the last state of a hub, which another process may be changing, and kept tuples.

    Raises DamagedRunError.
    """
    while True:
        body = read_last_hub_state(store)
        state = HubState.from_json(body)
        try:
            return state, read_kept_tuples(store, settings, state)
        except (DamagedRunError, FileNotFoundError):
            if read_last_hub_state(store) == body:
                raise
            # The hub has committed meanwhile, and has removed a file that this state names.


def read_kept_tuples(
    store: RunStore, settings: Mapping[str, Any], ledger: HubState
) -> dict[str, pa.Table]:
    """Return the kept tuples of each stream that does not end, each with its batch.

    Streams without a kept tuple are left out. Raises DamagedRunError.
    """
    endless = [stream for stream in settings["hub"] if stream not in settings["last_batches"]]
    if not endless:
        return {}
    tables = {s: [*_read_recent_tuples(store, s, ledger)] for s in endless}
    streams = [*settings["at"]]  # in the order in which files of irregular rows number them
    for file in store.irregular.list_committed():
        stream, path = streams[file.stream], store.irregular.find_file(file, False)
        if path is not None and stream in tables:
            tables[stream].append(_flatten_irregular_rows(read_parquet(str(path))))
    return {s: pa.concat_tables(t, promote_options="default") for s, t in tables.items() if t}


def _read_recent_tuples(store: RunStore, stream: str, ledger: HubState) -> Iterator[pa.Table]:
    for file in ledger.backfill_batches.get(stream, []):
        path = store.path / HISTORY / file.name
        durable_files.check_file(path, file.checksum)
        rows = read_parquet(str(path))
        yield _add_batch(rows, pa.repeat(pa.scalar(file.epoch, pa.int64()), rows.num_rows))


def _flatten_irregular_rows(rows: pa.Table) -> pa.Table:
    members = rows["row"].combine_chunks()
    plain = pa.Table.from_arrays(members.flatten(), names=[f.name for f in members.type])
    return _add_batch(plain, rows["batch"].cast(pa.int64()))


def _add_batch(rows: pa.Table, batches: Any) -> pa.Table:
    names = [name for name in rows.column_names if not name.startswith("__")]
    return rows.select(names).append_column(BATCH, batches)
