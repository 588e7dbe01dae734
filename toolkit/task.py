"""What a Spark task does for its hosts in one batch: derive blocks, build fresh ones, probe, ship, emit, report.

A task serves the hosts h with ``h % partitions`` equal to its partition. Rows between tasks have one schema, whatever the
streams: (host, kind, body). "tuples" are an Arrow stream of one stream's tuples on the way to a partition whose hosts need them; a
"report" is JSON for the driver; a "partial" is an Arrow stream of partial results on the way to the next hop's host. Files are named by task attempt; only those that a report carries to the driver come into being.
"""

from __future__ import annotations

import gc
import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from toolkit.kernels import ROUTING, Joiner, Partial, Rows, build, merge
from toolkit.plan import Derivation, Keys, Route
from toolkit.plan import Path as Hops
from toolkit.predicate import TIME, Predicate
from toolkit.store import Slot

SHIPPED = "host int, kind string, body binary"
_EMIT_ROWS = 1 << 16


@dataclass(frozen=True)
class Query:
    """What stays the same from batch to batch. ``columns`` are the user's column names by stream; ``folder`` is the run's."""

    predicate: Predicate
    columns: tuple[tuple[str, ...], ...]
    windows: tuple[int | None, ...]
    folder: str
    partitions: int


@dataclass(frozen=True)
class Batch:
    """What the driver tells every task of one batch. ``keys`` is the size of the routing-key space."""

    query: Query
    number: int
    keys: int
    routes: tuple[Route, ...]
    derivations: tuple[Derivation, ...]
    slots: dict[tuple[int, int], Slot]
    horizon: tuple[int | None, ...]


@dataclass
class Counts:
    """What one host did. ``seconds`` go to the host at which a path enters the task."""

    received: int = 0
    received_bytes: int = 0
    moved: int = 0
    moved_bytes: int = 0
    compared: int = 0
    results: int = 0
    seconds: float = 0.0


class _Blocks:
    """Block files written by this task attempt: one per stream, one record batch per block and host."""

    def __init__(self, folder: Path, stem: str) -> None:
        self.folder, self.stem = folder, stem
        self.writers: dict[int, Any] = {}
        self.written: dict[int, int] = {}

    def write(self, stream: int, batch: pa.RecordBatch) -> Slot:
        name = f"{self.stem}-{stream}.arrow"
        if stream not in self.writers:
            self.writers[stream] = pa.ipc.new_file(str(self.folder / name), batch.schema)
        self.writers[stream].write_batch(batch)
        self.written[stream] = self.written.get(stream, 0) + 1
        return Slot(name, self.written[stream] - 1)

    def close(self) -> None:
        for writer in self.writers.values():
            writer.close()


class _Results:
    """The result file of this task attempt: one struct column per alias. Small pieces are gathered before they are written."""

    def __init__(self, query: Query, folder: Path, stem: str) -> None:
        self.query, self.folder, self.name = query, folder, f"{stem}.parquet"
        self.pending: list[pa.RecordBatch] = []
        self.rows, self.writer = 0, None

    def add(self, found: Partial) -> None:
        columns = [self._struct(found, s) for s in range(len(self.query.columns))]
        self.pending.append(pa.record_batch(columns, names=list(self.query.predicate.aliases)))
        self.rows += len(found)
        if self.rows >= _EMIT_ROWS:
            self._flush()

    def _struct(self, found: Partial, stream: int) -> pa.StructArray:
        rows, at = found.parts[stream]
        names = list(self.query.columns[stream])
        taken = rows.batch.select(names).take(pa.array(at))
        return pa.StructArray.from_arrays(taken.columns, fields=list(taken.schema))

    def _flush(self) -> None:
        if not self.pending:
            return
        table = pa.Table.from_batches(self.pending)
        if self.writer is None:
            self.writer = pq.ParquetWriter(
                str(self.folder / self.name), table.schema, compression="lz4", use_dictionary=False, write_statistics=False
            )
        self.writer.write_table(table)
        self.pending, self.rows = [], 0

    def close(self) -> list[str]:
        self._flush()
        if self.writer is None:
            return []
        self.writer.close()
        return [self.name]


@dataclass
class _Task:
    """One task attempt, whatever its stage."""

    batch: Batch
    partition: int
    counts: dict[int, Counts] = field(default_factory=dict)
    made: dict[tuple[int, int], tuple[Slot, Rows]] = field(default_factory=dict)
    reported: list[list[Any]] = field(default_factory=list)
    shipped: list[tuple[int, str, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        query = self.batch.query
        stem = f"{self.batch.number:06d}-{self.partition}-{uuid.uuid4().hex[:8]}"
        folder = Path(query.folder)
        self.blocks = _Blocks(folder / "blocks", stem)
        self.results = _Results(query, folder / "results", stem)
        self.joiner = Joiner(query.predicate, query.windows, self.batch.horizon)
        self.fresh = {r.block.id for r in self.batch.routes if r.fresh}

    def mine(self, host: int) -> bool:
        return host % self.batch.query.partitions == self.partition

    def rows(self, block: int, host: int) -> Rows | None:
        """A host's replica of a block; None when the block turned out to have no rows there."""
        if (block, host) in self.made:
            return self.made[block, host][1]
        slot = self.batch.slots.get((block, host))
        if slot is None:
            return None
        rows = _replica(str(Path(self.batch.query.folder) / "blocks" / slot.file), slot.index, slot.keys)
        self.made[block, host] = (slot, rows)
        return rows

    def derive(self) -> None:
        """Make the derived blocks of these hosts, in the order of the plan. A cut of one's own replica is a view, if it is dense."""
        for d in self.batch.derivations:
            for host, source in d.reads.items():
                if self.mine(host):
                    with _clock(self._count(host)):
                        self._derive(d, host, source)

    def _derive(self, d: Derivation, host: int, source: int) -> None:
        found = [(s, rows) for s in d.sources if (rows := self.rows(s, source)) is not None]
        if not found:
            return
        parts = [Rows(r.batch, _narrow(r.keys, d.block.keys)) for _, r in found]
        if len(parts) == 1 and host == source and _is_dense(parts[0]):
            rows = parts[0]
            slot = self.made[found[0][0], host][0]._replace(keys=rows.keys)
        else:
            rows = Rows(merge(parts, self.batch.query.predicate.indexes(d.block.stream)))
            slot = self.blocks.write(d.block.stream, rows.batch) if rows.batch.num_rows else Slot("", 0)
        if self._keep(d.block.id, host, slot, rows) and host != source:
            count = self._count(host)
            count.moved += self.reported[-1][6]
            count.moved_bytes += self.reported[-1][7]

    def _keep(self, block: int, host: int, slot: Slot, rows: Rows, late: int = 0) -> bool:
        """Note a replica for the report; an empty one does not come into being."""
        chosen = rows.chosen()
        times = rows.numpy(TIME) if chosen is None else rows.numpy(TIME)[chosen]
        if not len(times):
            return False
        size = rows.batch.nbytes * len(times) // rows.batch.num_rows
        self.made[block, host] = (slot, rows)
        self.reported.append(
            [block, host, slot.file, slot.index, slot.keys, late, len(times), size, int(times.min()), int(times.max())]
        )
        return True

    def take_in(self, arrived: dict[int, list[pa.RecordBatch]]) -> dict[tuple[int, int], Rows]:
        """Sort what was routed here into fresh blocks, by (block, host), and store those that are stored here."""
        here: dict[tuple[int, int], Rows] = {}
        for s, batches in arrived.items():
            indexes = self.batch.query.predicate.indexes(s)
            whole = build(pa.concat_batches(batches), indexes[:1])
            key = whole.column(ROUTING).to_numpy()
            routes = [r for r in self.batch.routes if r.fresh and r.block.stream == s]
            for host in sorted(filter(self.mine, set().union(*(r.hosts() for r in routes)))):
                with _clock(self._count(host)):
                    wanted = [r for r in routes if host in r.hosts()]
                    mine = _chosen(whole, np.flatnonzero(_wanted(wanted, self.batch.keys)[key]))
                    self._count(host).received += mine.num_rows
                    self._count(host).received_bytes += mine.nbytes
                    self._split(mine, wanted, host, indexes, here)
        return here

    def _split(
        self, mine: pa.RecordBatch, routes: list[Route], host: int, indexes: tuple[str, ...], here: dict[Any, Rows]
    ) -> None:
        key = mine.column(ROUTING).to_numpy()
        for route in routes:
            part = mine
            if len(routes) > 1:
                low, high = route.block.keys
                part = _chosen(mine, np.flatnonzero((key >= low) & (key < high)))
            if part.num_rows:
                rows = Rows(build(part, indexes, ordered=True))
                here[route.block.id, host] = rows
                if host in route.block.hosts:
                    slot = self.blocks.write(route.block.stream, rows.batch)
                    self._keep(route.block.id, host, slot, rows, self._late(rows, route.block.stream))

    def _late(self, rows: Rows, stream: int) -> int:
        """Rows behind what the other streams' stored tuples were kept for: they may have missed partners."""
        bounds = [
            h for s, (h, w) in enumerate(zip(self.batch.horizon, self.batch.query.windows, strict=True))
            if s != stream and h is not None and w is not None
        ]  # fmt: skip
        return int(np.count_nonzero(rows.numpy(TIME) < max(bounds))) if bounds else 0

    def probe(self, here: dict[tuple[int, int], Rows]) -> None:
        """Send every block of these hosts along its paths, as far as they stay in this task."""
        for number, route in enumerate(self.batch.routes):
            for path_number, path in enumerate(route.paths):
                for host in filter(self.mine, path[0].probes):
                    rows = here.get((route.block.id, host)) if route.fresh else self.rows(route.block.id, host)
                    if rows is not None:
                        chosen = rows.chosen()
                        at = np.arange(rows.batch.num_rows) if chosen is None else np.flatnonzero(chosen)
                        start = Partial({route.block.stream: (rows, at)})
                        with _clock(self._count(host)):
                            self.follow(start, (number, path_number, 0), path, host)

    def follow(self, partial: Partial, place: tuple[int, int, int], path: Hops, host: int) -> None:
        """One hop on one host; then the next, here or on the way to other tasks."""
        route, path_number, hop = place
        count = self._count(host)
        for block in path[hop].probes.get(host, ()):
            rows = self.rows(block, host)
            if rows is None:
                continue
            stored = block not in self.fresh and self.batch.routes[route].fresh
            for found in self.joiner.probe(partial, rows, path[hop].stream, stored, count):
                if hop + 1 < len(path):
                    self._onward(found, (route, path_number, hop + 1), path)
                else:
                    self.results.add(found)
                    count.results += len(found)

    def _onward(self, found: Partial, place: tuple[int, int, int], path: Hops) -> None:
        body = None
        for host in path[place[2]].probes:
            if self.mine(host):
                self.follow(found, place, path, host)
            else:
                body = body or _pack(found, place)
                self.shipped.append((host, "partial", body))

    def _count(self, host: int) -> Counts:
        return self.counts.setdefault(host, Counts())

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The rows that leave this task: its report, then its partial results."""
        self.blocks.close()
        report = {
            "hosts": {h: vars(c) for h, c in self.counts.items()},
            "slots": self.reported,
            "results": self.results.close(),
        }
        yield _shipment([(self.partition, "report", json.dumps(report).encode())])
        for row in self.shipped:
            yield _shipment([row])


class _clock:
    """Adds the wall-clock seconds of a with-block to a host's count."""

    def __init__(self, counts: Counts) -> None:
        self.counts = counts

    def __enter__(self) -> None:
        self.began = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.counts.seconds += time.perf_counter() - self.began


def spread(batch: Batch) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow`` over the streams' union: the reshuffler. Tuples go to the partitions whose hosts need them."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        _quiet_collector()
        need = _partitions_by_key(batch)
        for rows in batches:
            stream = rows.column("__stream").to_numpy()
            for s in np.unique(stream).tolist():
                flat = _flatten(rows, s, batch.query, np.flatnonzero(stream == s))
                key = flat.column(ROUTING).to_numpy()
                for p in range(batch.query.partitions):
                    part = _chosen(flat, np.flatnonzero(need[s][p][key]))
                    if part.num_rows:
                        yield _shipment([(p, f"tuples {s}", _stream(part))])

    return run


def _partitions_by_key(batch: Batch) -> list[list[np.ndarray]]:
    """By stream and partition, the mask of routing keys that some host of the partition needs."""
    partitions = range(batch.query.partitions)
    need = [[np.zeros(batch.keys, bool) for _ in partitions] for _ in batch.query.columns]
    for route in batch.routes:
        if route.fresh:
            for p in {host % batch.query.partitions for host in route.hosts()}:
                need[route.block.stream][p][slice(*route.block.keys)] = True
    return need


def first_stage(batch: Batch) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow`` over what ``spread`` sent: the joiners."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _Task(batch, _partition())
        arrived: dict[int, list[pa.RecordBatch]] = {}
        for rows in batches:
            for kind, body in zip(rows.column("kind").to_pylist(), rows.column("body"), strict=True):
                arrived.setdefault(int(kind.split()[1]), []).extend(pa.ipc.open_stream(body.as_buffer()))
        task.derive()
        task.probe(task.take_in(arrived))
        yield from task.finish()

    return run


def next_stage(batch: Batch) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function for ``mapInArrow`` over what an earlier stage shipped: reports pass through, partial results go on."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = _Task(batch, _partition())
        partials = []
        for rows in (row for b in batches for row in b.to_pylist()):
            if rows["kind"] == "report":
                yield _shipment([(rows["host"], "report", rows["body"])])
                _learn(task, json.loads(rows["body"]))
            else:
                partials.append(rows)
        for row in partials:
            partial, (route, path, hop) = _unpack(row["body"])
            with _clock(task._count(row["host"])):
                task.follow(partial, (route, path, hop), batch.routes[route].paths[path], row["host"])
        yield from task.finish()

    return run


def _learn(task: _Task, report: dict[str, Any]) -> None:
    """Know the blocks that an earlier stage made on this task's hosts."""
    folder = Path(task.batch.query.folder) / "blocks"
    for block, host, file, index, keys, *_ in report["slots"]:
        if task.mine(host):
            keys = None if keys is None else tuple(keys)
            task.made[block, host] = (Slot(file, index, keys), _replica(str(folder / file), index, keys))


def _partition() -> int:
    from pyspark import TaskContext

    _quiet_collector()
    context = TaskContext.get()
    assert context is not None
    return int(context.partitionId())


@cache
def _quiet_collector() -> None:
    """Once per worker: leave the objects of imported modules out of every later garbage collection."""
    gc.collect()
    gc.freeze()


@lru_cache(maxsize=1024)
def _open(path: str) -> Any:
    return pa.ipc.open_file(pa.memory_map(path))


def _replica(path: str, index: int, keys: Keys | None) -> Rows:
    return Rows(_open(path).get_batch(index), keys)


def _is_dense(view: Rows) -> bool:
    """Whether a third of the rows in the file count, so that a half is. A probe of a view searches and filters all of them."""
    chosen = view.chosen()
    return chosen is None or 3 * np.count_nonzero(chosen) >= len(chosen)


def _narrow(a: Keys | None, b: Keys) -> Keys:
    return b if a is None else (max(a[0], b[0]), min(a[1], b[1]))


def _flatten(rows: pa.RecordBatch, s: int, query: Query, at: np.ndarray) -> pa.RecordBatch:
    """The chosen rows of one stream as a flat record batch: the user's columns, then time, routing key and join keys."""
    names, columns = [TIME, ROUTING], [rows.column(TIME), rows.column(ROUTING)]
    for struct_name in (query.predicate.aliases[s], f"__keys{s}"):
        if struct_name in rows.schema.names:
            struct = rows.column(struct_name)
            names += [f.name for f in struct.type]
            columns += struct.flatten()
    return _chosen(pa.record_batch(columns, names=names), at)


def _chosen(rows: pa.RecordBatch, at: np.ndarray) -> pa.RecordBatch:
    return rows if len(at) == rows.num_rows else rows.take(pa.array(at))


def _wanted(routes: list[Route], keys: int) -> np.ndarray:
    """Mask of the routing keys of some routes."""
    mask = np.zeros(keys, bool)
    for route in routes:
        mask[slice(*route.block.keys)] = True
    return mask


def _stream(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return sink.getvalue().to_pybytes()


def _pack(partial: Partial, place: tuple[int, int, int]) -> bytes:
    """Partial results as one Arrow stream: a struct column for each visited stream, and where they are in the plan."""
    names, columns = [], []
    for stream, (rows, at) in partial.parts.items():
        taken = rows.batch.take(pa.array(at))
        names.append(str(stream))
        columns.append(pa.StructArray.from_arrays(taken.columns, fields=list(taken.schema)))
    schema = pa.schema(zip(names, (c.type for c in columns), strict=True), metadata={"place": json.dumps(place)})
    return _stream(pa.record_batch(columns, schema=schema))


def _unpack(body: bytes) -> tuple[Partial, tuple[int, int, int]]:
    reader = pa.ipc.open_stream(body)
    place = tuple(json.loads(reader.schema.metadata[b"place"]))
    batch = reader.read_next_batch()
    at = np.arange(batch.num_rows)
    parts = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        parts[int(name)] = (Rows(pa.RecordBatch.from_struct_array(column)), at)
    return Partial(parts), (place[0], place[1], place[2])


def _shipment(rows: list[tuple[int, str, bytes]]) -> pa.RecordBatch:
    hosts, kinds, bodies = zip(*rows, strict=True)
    return pa.record_batch(
        [pa.array(hosts, pa.int32()), pa.array(kinds, pa.string()), pa.array(bodies, pa.binary())],
        names=["host", "kind", "body"],
    )
