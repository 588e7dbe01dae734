"""Records of the work that the driver gives every task: the join, and a batch of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from braid.condition.predicate import Predicate
from braid.core.plan import Derivation, KeySpace, Route
from braid.core.reserved_columns import ROUTING, make_column_nullable
from braid.core.run_state import FileChecksum, Place, ReplicaAddress
from braid.core.shedding_plan import ResultUtility, SheddingPlan
from braid.kernels.block_rows import take_block_rows
from braid.kernels.generated_columns import GeneratedColumn
from braid.kernels.hashing import xxhash64
from braid.kernels.query_bitmaps import QueryBitmaps


class RoutingHash(NamedTuple):
    """A routing key that the receiver makes as Spark would: the hash of a ``column`` of ``bigint``,
    in [0, ``keys``).
    """

    column: str
    seed: int
    keys: int

    def routing_keys(self, values: pa.Array) -> pa.Array:
        """The routing keys of these values, none of which is null."""
        hashed = xxhash64(self.seed, values.to_numpy())
        if self.keys & self.keys - 1:
            hashed %= self.keys
        else:
            hashed &= self.keys - 1  # the same of a power of two, and faster
        return pa.array(hashed.astype(np.int32))


@dataclass(frozen=True)
class StreamLayout:
    """Where a stream's columns are in the streams' union: ``slots`` (name, column of the union);
    and what the receiver makes of them: ``echoes`` of the user's columns, and the ``routing``
    key, unless that travels.
    """

    column_slots: tuple[tuple[str, str], ...]
    generated_columns: tuple[GeneratedColumn, ...]
    routing: RoutingHash | None = None

    def union_column(self, name: str) -> str:
        """The column of the union that a column comes from."""
        return dict(self.column_slots)[
            {echo.name: echo.source for echo in self.generated_columns}.get(name, name)
        ]

    def extract_rows(self, rows: pa.RecordBatch, at: np.ndarray) -> pa.RecordBatch:
        """The chosen rows of the union, all of this stream: the routing key, and the stream's
        columns by their names.
        """
        return self.add_generated(take_rows(self.stream_columns(rows), at))

    def stream_columns(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """What of the union's rows travelled for this stream."""
        slots = {} if self.routing else {ROUTING: ROUTING}
        slots |= dict(self.column_slots)
        columns = [make_column_nullable(rows.column(slot)) for slot in slots.values()]
        return pa.record_batch(columns, names=[*slots])

    def add_generated(self, came: pa.RecordBatch) -> pa.RecordBatch:
        """The same with what the receiver makes."""
        columns = dict(zip(came.schema.names, came.columns, strict=True))
        columns |= {
            name: columns[source].cast(kind, safe=False)
            for name, source, kind in self.generated_columns
        }
        if self.routing:
            columns = {ROUTING: self.routing.routing_keys(columns[self.routing.column])} | columns
        return pa.record_batch([*columns.values()], names=[*columns])


@dataclass(frozen=True)
class JoinSpec:
    """What stays the same from batch to batch. ``columns`` are the user's column names by stream;
    ``folder`` is the run's; ``worth`` says what results are worth in a run that sheds load;
    ``force``: tasks force what they write to disk before they report it. ``bucket`` is the URL of a
    run that lives in an object store: ``folder`` is its driver's mirror then.
    """

    predicate: Predicate
    columns: tuple[tuple[str, ...], ...]
    layouts: tuple[StreamLayout, ...]
    windows: tuple[int | None, ...]
    folder: str
    partitions: int
    utility_rule: ResultUtility | None = None
    fsync: bool = False
    object_store_url: str = ""

    def generated_columns(self, stream: int) -> Sequence[GeneratedColumn]:
        """The columns of a stream that have the values of others."""
        return self.layouts[stream].generated_columns if self.layouts else ()


@dataclass(frozen=True)
class BatchSpec:
    """What the driver tells every task of one batch. ``space`` has the routing keys of what comes;
    ``clocks`` are those of the streams, and ``ahead`` how far past them a tuple moves
    them by itself (see core.clocks);
    ``ages`` are those of the blocks that may be met (see facts.age; of fresh ones 0);
    ``bitmaps`` says which queries results serve, in a run that serves many; ``harvest`` what share
    of the tuples that set out takes part; ``sizes`` are the bytes of the blocks that derivations
    read; ``files`` are the block files that places name.
    """

    spec: JoinSpec
    batch: int
    key_space: KeySpace
    routes: tuple[Route, ...]
    derivations: tuple[Derivation, ...]
    replica_addresses: Mapping[Place, ReplicaAddress]
    watermarks: tuple[int | None, ...]
    block_ages: Mapping[int, int]
    clocks: tuple[int | None, ...] = ()
    ahead: int | None = None
    bitmaps: QueryBitmaps | None = None
    shedding: SheddingPlan | None = None
    block_sizes: Mapping[int, int] = field(default_factory=dict)
    files: Mapping[str, FileChecksum] = field(default_factory=dict)

    def derived_bytes(self, tasks: int) -> int:
        """The bytes of state that derivations read, once for each of so many tasks that has hosts
        which do.
        """
        return sum(
            sum(self.block_sizes.get(source, 0) for source in d.source_blocks)
            * len({host % tasks for host in d.source_hosts})
            for d in self.derivations
        )

    @property
    def active_hosts(self) -> int:
        """How many hosts have something to do."""
        busy = set(chain.from_iterable(r.reading_hosts() for r in self.routes))
        return len(busy.union(*(d.source_hosts for d in self.derivations)))


def take_rows(rows: pa.RecordBatch, at: np.ndarray) -> pa.RecordBatch:
    """The rows at these positions; the batch itself when that is all of them."""
    return rows if len(at) == rows.num_rows else take_block_rows(rows, at)
