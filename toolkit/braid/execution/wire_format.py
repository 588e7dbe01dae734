"""Encode the work that the driver sends to tasks and the rows that tasks exchange.

All rows between tasks have the schema (partition, kind, body).

- "tuples": an Arrow stream of one stream's tuples, for a partition whose hosts need them.
- "report": JSON for the driver.
- "partial": an Arrow stream of partial results, for the host of the next hop.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from braid.core.reserved_columns import COIN, MARK, ROUTING, TIME, WEIGHT
from braid.kernels.block_builder import replace_column
from braid.kernels.block_rows import BlockRows, PartialMatches, take_block_rows
from braid.kernels.join_spec import BatchSpec, take_rows
from braid.kernels.pair_sampling import sample_arrivals
<<<<<<< Updated upstream
=======
from braid.kernels.query_bitmaps import QueryBitmaps


class RoutingHash(NamedTuple):
    """Routing key that the receiver computes as Spark would: a hash of a ``bigint`` column.

    The keys are in [0, ``keys``).
    """

    column: str
    seed: int
    keys: int

    def routing_keys(self, values: pa.Array) -> pa.Array:
        """Return the routing keys of these values, which must not be null."""
        hashed = xxhash64(self.seed, values.to_numpy())
        if self.keys & self.keys - 1:
            hashed %= self.keys
        else:
            hashed &= self.keys - 1  # the same of a power of two, and faster
        return pa.array(hashed.astype(np.int32))


@dataclass(frozen=True)
class StreamLayout:
    """Positions of a stream's columns in the streams' union.

    - ``column_slots``: pairs of a column's name and its column of the union.
    - ``generated_columns``: copies of the user's columns, made by the receiver.
    - ``routing``: routing key computed by the receiver; None: it is sent.
    """

    column_slots: tuple[tuple[str, str], ...]
    generated_columns: tuple[GeneratedColumn, ...]
    routing: RoutingHash | None = None

    def union_column(self, name: str) -> str:
        """Return the column of the union from which a column is read."""
        return dict(self.column_slots)[
            {echo.name: echo.source for echo in self.generated_columns}.get(name, name)
        ]

    def extract_rows(self, rows: pa.RecordBatch, at: np.ndarray) -> pa.RecordBatch:
        """Return the rows of this stream at these positions: routing key and named columns."""
        return self.add_generated(take_rows(self.stream_columns(rows), at))

    def stream_columns(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the columns of the union that were sent for this stream."""
        slots = {} if self.routing else {ROUTING: ROUTING}
        slots |= dict(self.column_slots)
        columns = [make_column_nullable(rows.column(slot)) for slot in slots.values()]
        return pa.record_batch(columns, names=[*slots])

    def add_generated(self, came: pa.RecordBatch) -> pa.RecordBatch:
        """Return the same rows with the columns that the receiver makes."""
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
    """Constant settings of a join, sent to every task.

    - ``columns``: the user's column names by stream.
    - ``folder``: folder of the run; with an object store, the driver's mirror of it.
    - ``utility_rule``: value of results, in a run that sheds load.
    - ``fsync``: whether tasks force files to disk before they report them.
    - ``object_store_url``: URL of a run in an object store; empty: none.
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
        """Return the columns of a stream that copy others."""
        return self.layouts[stream].generated_columns if self.layouts else ()


@dataclass(frozen=True)
class BatchSpec:
    """Work of one batch, sent to every task.

    - ``key_space``: routing keys of arriving tuples.
    - ``block_ages``: ages of the blocks that may be probed; 0 for fresh ones.
    - ``clocks``, ``ahead``: clocks of the streams, and the lead with which one tuple may advance
      them; see ``core.stream_clocks``.
    - ``bitmaps``: queries that results serve, in a run that serves many.
    - ``shedding``: share of the probing tuples that take part.
    - ``block_sizes``: bytes of the blocks that derivations read.
    - ``files``: checksums of the block files that addresses name.
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
        """Return the bytes of state that derivations read, once for each task that reads them."""
        return sum(
            sum(self.block_sizes.get(source, 0) for source in d.source_blocks)
            * len({host % tasks for host in d.source_hosts})
            for d in self.derivations
        )

    @property
    def active_hosts(self) -> int:
        """Number of hosts that have work."""
        busy = set(chain.from_iterable(r.reading_hosts() for r in self.routes))
        return len(busy.union(*(d.source_hosts for d in self.derivations)))
>>>>>>> Stashed changes


def count_shuffles(batch: BatchSpec) -> int:
    """Return the largest number of times that a path of the plan leaves its partition."""
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
    """Yield each stream's arrived tuples from rows of the streams' union."""
    for s, came in split_columns_by_stream(rows, batch):
        yield s, complete_tuples(came, s, batch, untimed)


def split_columns_by_stream(
    rows: pa.RecordBatch, batch: BatchSpec
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield each stream's columns as sent, from rows of the streams' union."""
    stream = rows.column("__stream").to_numpy()
    single = len(stream) > 0 and bool((stream == stream[0]).all())  # as in most of Spark's batches
    for s in [int(stream[0])] if single else np.flatnonzero(np.bincount(stream)).tolist():
        mine = batch.spec.layouts[s].stream_columns(rows)
        yield s, mine if single else take_rows(mine, np.flatnonzero(stream == s))


def complete_tuples(
    came: pa.RecordBatch, stream: int, batch: BatchSpec, untimed: Counter[int]
) -> pa.RecordBatch:
    """Return the arrived tuples of a stream.

    In a run that serves many queries, the query bitmaps determine the routing keys.
    """
    flat = batch.spec.layouts[stream].add_generated(came)
    if batch.bitmaps is not None:
        rank = batch.bitmaps.longest_window_rank(stream, flat.column(MARK).to_numpy())
        flat = replace_column(flat, ROUTING, pa.array(rank))
    return select_arrivals(flat, stream, batch, untimed)


def select_arrivals(
    rows: pa.RecordBatch, stream: int, batch: BatchSpec, untimed: Counter[int]
) -> pa.RecordBatch:
    """Return the tuples that enter the join, with the routing keys of the batch.

    Tuples without event time are left out and counted in ``untimed``. Load shedding may leave out
    more.
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
    """Return the rows whose routing keys are in the mask."""
    return take_rows(rows, np.flatnonzero(mask[rows.column(ROUTING).to_numpy()]))


def key_masks_by_partition(batch: BatchSpec) -> list[list[np.ndarray]]:
    """Return the mask of routing keys needed by the hosts of each partition, by stream."""
    partitions = range(batch.spec.partitions)
    need = [
        [np.zeros(batch.key_space.key_end, bool) for _ in partitions] for _ in batch.spec.columns
    ]
    for route in batch.routes:
        if route.is_fresh:
            for p in {host % batch.spec.partitions for host in route.reading_hosts()}:
                need[route.block.stream][p][slice(*route.block.key_range)] = True
    return need


<<<<<<< Updated upstream
=======
def take_rows(rows: pa.RecordBatch, at: np.ndarray) -> pa.RecordBatch:
    """Return the rows at these positions; the batch itself if these are all rows."""
    return rows if len(at) == rows.num_rows else take_block_rows(rows, at)


>>>>>>> Stashed changes
def encode_arrow(rows: pa.RecordBatch) -> bytes:
    """Return a record batch as the bytes of an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


def encode_partials(partial: PartialMatches, place: tuple[int, int, int]) -> bytes:
    """Return partial results as one Arrow stream: a struct column per stream, and the place."""
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
    """Return the partial results and the place that ``encode_partials`` wrote."""
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
    """Return rows of (partition, kind, body) as a record batch that Spark can move."""
    partitions, kinds, bodies = zip(*rows, strict=True)
    return pa.record_batch(
        [
            pa.array(partitions, pa.int32()),
            pa.array(kinds, pa.string()),
            pa.array(bodies, pa.binary()),
        ],
        names=["partition", "kind", "body"],
    )
