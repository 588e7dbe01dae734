"""What travels: the work that the driver gives every task, and the rows that tasks send each other.

Rows between tasks have one schema, whatever the streams: (partition, kind, body). "tuples" are an
Arrow stream of one stream's tuples on the way to a partition whose hosts need them; a "report" is
JSON for the driver; a "partial" is an Arrow stream of partial results on the way to the next hop's
host.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from braid.condition.predicate import Predicate
from braid.core.plan import Derivation, KeySpace, Route
from braid.core.reserved_columns import COIN, MARK, ROUTING, TIME, WEIGHT, make_column_nullable
from braid.core.run_state import FileChecksum, Place, ReplicaAddress
from braid.core.shedding_plan import ResultUtility, SheddingPlan
from braid.kernels.block_builder import replace_column
from braid.kernels.block_rows import BlockRows, PartialMatches, take_block_rows
from braid.kernels.generated_columns import GeneratedColumn
from braid.kernels.hashing import xxhash64
from braid.kernels.pair_sampling import sample_arrivals
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


def count_shuffles(batch: BatchSpec) -> int:
    """How many times some path of the plan leaves its partition."""
    most, partitions = 0, batch.spec.partitions
    for route in batch.routes:
        for path in route.paths:
            jumps = sum(
                len({h % partitions for h in (*a.blocks_by_host, *b.blocks_by_host)}) > 1
                for a, b in pairwise(path)
            )
            most = max(most, jumps)
    return most


def split_by_stream(
    rows: pa.RecordBatch, batch: BatchSpec, untimed: Counter[int]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of the streams' union, stream for stream, as they come in."""
    for s, came in split_columns_by_stream(rows, batch):
        yield s, complete_tuples(came, s, batch, untimed)


def split_columns_by_stream(
    rows: pa.RecordBatch, batch: BatchSpec
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """What travelled of the streams' union, stream for stream."""
    stream = rows.column("__stream").to_numpy()
    single = len(stream) > 0 and bool((stream == stream[0]).all())  # as in most of Spark's batches
    for s in [int(stream[0])] if single else np.flatnonzero(np.bincount(stream)).tolist():
        mine = batch.spec.layouts[s].stream_columns(rows)
        yield s, mine if single else take_rows(mine, np.flatnonzero(stream == s))


def complete_tuples(
    came: pa.RecordBatch, stream: int, batch: BatchSpec, untimed: Counter[int]
) -> pa.RecordBatch:
    """The tuples of a stream as they come in; in a run that serves many queries their marks give
    the routing keys.
    """
    flat = batch.spec.layouts[stream].add_generated(came)
    if batch.bitmaps is not None:
        rank = batch.bitmaps.longest_window_rank(stream, flat.column(MARK).to_numpy())
        flat = replace_column(flat, ROUTING, pa.array(rank))
    return select_arrivals(flat, stream, batch, untimed)


def select_arrivals(
    rows: pa.RecordBatch, stream: int, batch: BatchSpec, untimed: Counter[int]
) -> pa.RecordBatch:
    """The tuples of a stream that come in, with the routing keys of the batch: all that have an
    event time, unless the harvest leaves some out. Those that have none are counted as ``untimed``.
    """
    time = rows.column(TIME)
    if time.null_count:
        untimed[stream] += time.null_count
        rows = rows.filter(time.is_valid())
    if batch.key_space.divisor:
        key = batch.key_space.routing_keys(rows.column(ROUTING).to_numpy())
        rows = replace_column(rows, ROUTING, pa.array(key, pa.int32()))
    if batch.shedding is None or not batch.shedding.keep_shares:
        return rows
    return sample_arrivals(rows, batch.shedding.keep_shares[stream])


def filter_by_key(rows: pa.RecordBatch, mask: np.ndarray) -> pa.RecordBatch:
    """The rows whose routing keys the mask has."""
    return take_rows(rows, np.flatnonzero(mask[rows.column(ROUTING).to_numpy()]))


def key_masks_by_partition(batch: BatchSpec) -> list[list[np.ndarray]]:
    """By stream and partition, the mask of routing keys that some host of the partition needs."""
    partitions = range(batch.spec.partitions)
    need = [
        [np.zeros(batch.key_space.key_end, bool) for _ in partitions] for _ in batch.spec.columns
    ]
    for route in batch.routes:
        if route.is_fresh:
            for p in {host % batch.spec.partitions for host in route.reading_hosts()}:
                need[route.block.stream][p][slice(*route.block.key_range)] = True
    return need


def take_rows(rows: pa.RecordBatch, at: np.ndarray) -> pa.RecordBatch:
    """The rows at these positions; the batch itself when that is all of them."""
    return rows if len(at) == rows.num_rows else take_block_rows(rows, at)


def encode_arrow(rows: pa.RecordBatch) -> bytes:
    """A record batch as the bytes of an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


def encode_partials(partial: PartialMatches, place: tuple[int, int, int]) -> bytes:
    """Partial results as one Arrow stream: a struct column for each visited stream, and where they
    are in the plan.
    """
    names, columns = [], []
    for stream, (rows, at) in partial.parts.items():
        taken = take_block_rows(rows.batch, at)
        names.append(str(stream))
        columns.append(pa.StructArray.from_arrays(taken.columns, fields=list(taken.schema)))
    if partial.weights is not None:
        names, columns = [*names, WEIGHT], [*columns, pa.array(partial.weights)]
    if partial.sampling_hashes is not None:
        names, columns = [*names, COIN], [*columns, pa.array(partial.sampling_hashes)]
    schema = pa.schema(
        zip(names, (c.type for c in columns), strict=True), metadata={"place": json.dumps(place)}
    )
    return encode_arrow(pa.record_batch(columns, schema=schema))


def decode_partials(body: bytes) -> tuple[PartialMatches, tuple[int, int, int]]:
    """The partial results that ``pack`` wrote, and where they are in the plan."""
    reader = pa.ipc.open_stream(body)
    place = tuple(json.loads(reader.schema.metadata[b"place"]))
    batch = reader.read_next_batch()
    at = np.arange(batch.num_rows)
    parts, weights, coins = {}, None, None
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if name == WEIGHT:
            weights = column.to_numpy()
        elif name == COIN:
            coins = column.to_numpy()
        else:
            parts[int(name)] = (BlockRows(pa.RecordBatch.from_struct_array(column)), at)
    return PartialMatches(parts, weights=weights, sampling_hashes=coins), (
        place[0],
        place[1],
        place[2],
    )


def make_shipment(rows: list[tuple[int, str, bytes]]) -> pa.RecordBatch:
    """Rows of (partition, kind, body) as Spark moves them."""
    partitions, kinds, bodies = zip(*rows, strict=True)
    return pa.record_batch(
        [
            pa.array(partitions, pa.int32()),
            pa.array(kinds, pa.string()),
            pa.array(bodies, pa.binary()),
        ],
        names=["partition", "kind", "body"],
    )
