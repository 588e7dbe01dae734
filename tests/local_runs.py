"""Runs by the product's own executor in this process, on batches that Spark has prepared once.

All of Braid runs as it does on Spark, including files and commits. Only Spark's streaming and its
shuffles are left out: batches alternate between threads and the stages of Spark tasks. A run takes
milliseconds, so every placement can be tested with every kind of join.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from braid.condition.spark_type_checker import make_arrow_schema
from braid.core.placement import Placement
from braid.core.reserved_columns import make_nullable
from braid.execution.engine import Engine
from braid.execution.spark_to_arrow import collect_batch
from braid.kernels.block_builder import replace_column
from braid.storage.block_files import read_parquet
from braid.storage.run_store import RunStore
from braid.stream_join import StreamJoin
from oracle import Ids
from stages import AlternatingExecutor


class LocalRun:
    """A run of static streams, split by their column "batch" as in StreamJoin.start and resume.

    Spark prepares ``join`` once; its placement may be replaced by others.
    """

    def __init__(self, join: StreamJoin) -> None:
        self.join = join
        whole, where = join.source.union_streams(join._join, join.streams)
        schema = make_arrow_schema(whole.schema)
        rows = pa.Table.from_batches(collect_batch(whole) or [_make_empty(schema)])
        rows = rows.cast(make_nullable(rows.schema)).combine_chunks()
        self.rows = rows.to_batches()[0] if rows.num_rows else _make_empty(rows.schema)
        stream = self.rows.column("__stream").to_numpy()
        slots = [
            self.rows.column(layout.union_column("batch")).to_numpy(zero_copy_only=False)
            for layout in where
        ]
        self.where = tuple(
            replace(w, column_slots=tuple(s for s in w.column_slots if s[0] != "batch"))
            for w in where
        )
        self.batch = np.choose(stream, slots).astype(int)
        hashed = np.random.default_rng(0).integers(0, 1 << 31, self.rows.num_rows)
        self.hashed = {"tuple": hashed, "join": self.rows.column("__key").to_numpy()}

    def run(
        self, placement: Placement, folder: Path, stops: tuple[int, ...] = ()
    ) -> tuple[Ids, list[Any]]:
        """Return results by id, and the events. After the batches in ``stops`` another engine
        continues.
        """
        RunStore(folder).create_run({})
        happened: list[Any] = []
        engine = self._make_engine(placement, folder, happened)
        rows = replace_column(
            self.rows, "__key", pa.array(self._route_rows(placement).astype(np.int32))
        )
        for b in range(self.batch.max(initial=0) + 1):
            chosen = rows.take(pa.array(np.flatnonzero(self.batch == b)))
            engine.run_batch(pa.Table.from_batches([chosen]), b)
            if b in stops:
                engine = self._make_engine(placement, folder, happened)
        engine.drain(lambda: pa.Table.from_batches([rows.slice(0, 0)]), lambda: False)
        return self._read_ids(engine.store), happened

    def _route_rows(self, placement: Placement) -> np.ndarray:
        """Return the routing key of each tuple."""
        keys_per_value = placement.keys_per_value
        values = placement.key_space_size // keys_per_value
        key = self.hashed[placement.routing_key_source] % values
        if keys_per_value == 1:
            return key
        return key * keys_per_value + self.hashed["tuple"] % keys_per_value

    def _make_engine(self, placement: Placement, folder: Path, happened: list[Any]) -> Engine:
        join = self.join
        columns = tuple(tuple(c for c in f.columns if c != "batch") for f in join.streams.values())
        store, frames = RunStore(folder), {a: f.drop("batch") for a, f in join.streams.items()}
        types = join.source.find_result_types(frames)
        spec = join._join.make_spec(columns, self.where, store, types)
        return Engine(
            replace(spec, partitions=min(2, placement.hosts)),
            placement,
            store,
            join.config.lateness_microseconds,
            join.config.checks_coverage,
            happened.extend,
            AlternatingExecutor(),
            ahead=join.config.ahead_microseconds,
            last_epochs=self._find_last_epochs(),
        )

    def _find_last_epochs(self) -> tuple[int | None, ...]:
        """Return the last batch of each stream, if tuples wait for it."""
        if self.join.config.kind.is_inner and self.join.config.match is None:
            return ()
        stream = self.rows.column("__stream").to_numpy()
        streams = range(len(self.join.streams))
        return tuple(int(self.batch[stream == s].max(initial=-1)) for s in streams)

    def _read_ids(self, store: RunStore) -> Ids:
        found = Ids()
        for file in store.results.result_files():
            table = read_parquet(file)
            aliases = [a for a in self.join.streams if a in table.column_names]
            ids = [pc.struct_field(table[a], "id").to_pylist() for a in aliases]
            found.update(zip(*ids, strict=True))
        return found


def _make_empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema)
