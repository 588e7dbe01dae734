"""Encode the rows that tasks exchange, and prepare arriving tuples.

All rows between tasks have the schema (partition, kind, body).

- "tuples": an Arrow stream of one stream's tuples, for a partition whose hosts need them.
- "report": JSON for the driver.
- "partial": an Arrow stream of partial results, for the host of the next hop.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.core.irregular_rows import UNTIMED
from braid.core.plan import Keys
from braid.core.reserved_columns import MARK, MEETS, NO_TIME, ROUTING, SAMPLING_HASH, TIME, WEIGHT
from braid.kernels.block_builder import replace_column
from braid.kernels.host_block_rows import BlockRows, PartialMatches, take_known_rows
from braid.kernels.join_spec import BatchSpec, take_rows
from braid.kernels.shedding_sampler import sample_arrivals
from braid.storage.irregular_files import IrregularRowWriter


@dataclass
class ExcludedTuples:
    """Arrived tuples that do not enter the join.

    - ``untimed``: by stream, the number of those without event time. They enter the join if it
      needs none.
    - ``untimed_rows``: these tuples.
    - ``rejected``: by preserved stream, those that can be in no pair, and are answered at once.
    """

    untimed: Counter[int] = field(default_factory=Counter)
    untimed_rows: dict[int, list[pa.RecordBatch]] = field(default_factory=dict)
    rejected: dict[int, list[pa.RecordBatch]] = field(default_factory=dict)

    def write_untimed_rows(self, writer: IrregularRowWriter) -> None:
        """Write the tuples without event time that have come since the last call."""
        for stream, batches in self.untimed_rows.items():
            for rows in batches:
                writer.append_rows(stream, rows, UNTIMED)
        self.untimed_rows = {}


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
    rows: pa.RecordBatch, batch: BatchSpec, excluded: ExcludedTuples
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield each stream's arrived tuples from rows of the streams' union."""
    for s, stream_rows in split_columns_by_stream(rows, batch):
        yield s, complete_tuples(stream_rows, s, batch, excluded)


def split_columns_by_stream(
    rows: pa.RecordBatch, batch: BatchSpec
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield each stream's columns as sent, from rows of the streams' union."""
    stream = rows.column("__stream").to_numpy()
    # True for most of Spark's batches.
    single = len(stream) > 0 and bool((stream == stream[0]).all())
    for s in [int(stream[0])] if single else np.flatnonzero(np.bincount(stream)).tolist():
        stream_columns = batch.spec.layouts[s].stream_columns(rows)
        yield (
            s,
            stream_columns if single else take_rows(stream_columns, np.flatnonzero(stream == s)),
        )


def complete_tuples(
    received: pa.RecordBatch, stream: int, batch: BatchSpec, excluded: ExcludedTuples
) -> pa.RecordBatch:
    """Return the arrived tuples of a stream.

    In a run that serves many queries, the query bitmaps determine the routing keys.
    """
    flat = batch.spec.layouts[stream].add_generated(_split_rejected(received, stream, excluded))
    if batch.bitmaps is not None:
        rank = batch.bitmaps.longest_window_rank(stream, flat.column(MARK).to_numpy())
        flat = replace_column(flat, ROUTING, pa.array(rank))
    return select_arrivals(flat, stream, batch, excluded)


def select_arrivals(
    rows: pa.RecordBatch, stream: int, batch: BatchSpec, excluded: ExcludedTuples
) -> pa.RecordBatch:
    """Return the tuples that enter the join, with the routing keys of the batch.

    Tuples without event time are left out if the join needs it. Load shedding may leave out more.
    """
    rows = _fill_times(_split_rejected(rows, stream, excluded), stream, batch, excluded)
    time = rows.column(TIME)
    if time.null_count:
        excluded.untimed[stream] += time.null_count
        untimed = rows.filter(time.is_null())
        excluded.untimed_rows.setdefault(stream, []).append(untimed)
        if stream in batch.spec.kind.preserved:
            excluded.rejected.setdefault(stream, []).append(untimed)
        rows = rows.filter(time.is_valid())
    if batch.key_space.renumbers:
        key = batch.key_space.routing_keys(rows.column(ROUTING).to_numpy(), stream)
        rows = replace_column(rows, ROUTING, pa.array(key, pa.int32()))
    if batch.shedding is None or not batch.shedding.keep_shares:
        return rows
    return sample_arrivals(rows, batch.shedding.keep_shares[stream])


def _fill_times(
    rows: pa.RecordBatch, stream: int, batch: BatchSpec, excluded: ExcludedTuples
) -> pa.RecordBatch:
    """Return the tuples with an event time also for those that need none to be joined.

    These are counted, and get the time of their stream's clock, which they do not move. Before the
    clock has started, it is the least time that came with them.
    """
    if rows.column(TIME).null_count:
        return rows
    times = rows.column(TIME).to_numpy()
    if not (is_missing := times == NO_TIME).any():
        return rows
    excluded.untimed[stream] += int(np.count_nonzero(is_missing))
    excluded.untimed_rows.setdefault(stream, []).append(rows.filter(pa.array(is_missing)))
    clock = batch.clocks[stream] if batch.clocks else None
    if clock is None:
        clock = 0 if is_missing.all() else int(times.min())
    return replace_column(rows, TIME, pa.array(np.where(is_missing, clock, times)))


def _split_rejected(rows: pa.RecordBatch, stream: int, excluded: ExcludedTuples) -> pa.RecordBatch:
    """Return the tuples that can be in a pair, without the column that states it."""
    if (at := rows.schema.get_field_index(MEETS)) < 0:
        return rows
    meets, rows = rows.column(at), rows.remove_column(at)
    if pc.all(meets).as_py() is not False:
        return rows
    excluded.rejected.setdefault(stream, []).append(rows.filter(pc.invert(meets)))
    return rows.filter(meets)


class NeededKeys:
    """The routing keys of one stream that the hosts of a partition need."""

    def __init__(self, ranges: Iterable[Keys]) -> None:
        joined: list[int] = []
        for low, high in sorted(ranges):
            if joined and joined[-1] == low:
                joined[-1] = high
            else:
                joined += [low, high]
        self.bounds = np.array(joined, np.int32)

    def filter_rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows whose routing keys are needed."""
        key = rows.column(ROUTING).to_numpy()
        # Below the n-th bound: an odd n is inside of a range.
        return take_rows(rows, np.flatnonzero(self.bounds.searchsorted(key, "right") & 1))


def find_needed_keys(batch: BatchSpec) -> list[list[NeededKeys]]:
    """Return the routing keys needed by the hosts of each partition, by stream."""
    partitions = range(batch.spec.partitions)
    ranges: list[list[list[Keys]]] = [[[] for _ in partitions] for _ in batch.spec.columns]
    for route in batch.routes:
        if route.is_fresh:
            for p in {host % batch.spec.partitions for host in route.reading_hosts()}:
                ranges[route.block.stream][p].append(route.block.key_range)
    return [[NeededKeys(each) for each in stream] for stream in ranges]


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
        taken = take_known_rows(rows, at)
        names.append(str(stream))
        columns.append(pa.StructArray.from_arrays(taken.columns, fields=list(taken.schema)))
    if partial.weights is not None:
        names, columns = [*names, WEIGHT], [*columns, pa.array(partial.weights)]
    if partial.sampling_hashes is not None:
        names, columns = [*names, SAMPLING_HASH], [*columns, pa.array(partial.sampling_hashes)]
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
        elif name == SAMPLING_HASH:
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
