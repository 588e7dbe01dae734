"""Records of the work that the driver sends to every task: columns, the join, one batch of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.condition.predicate import Predicate
from braid.core.answer_state import MatchedRows
from braid.core.horizon import Horizon, Reach
from braid.core.join_kinds import INNER, JoinKind
from braid.core.match_rules import MatchRule
from braid.core.plan import Derivation, Finding, KeySpace, Release, Route, Settle
from braid.core.reserved_columns import ROUTING, make_column_nullable
from braid.core.run_state import FileChecksum, Place, ReplicaAddress
from braid.core.shedding_plan import ResultUtility, SheddingPlan
from braid.kernels.hashing import xxhash64
from braid.kernels.host_block_rows import take_block_rows
from braid.kernels.query_bitmaps import QueryBitmaps


class GeneratedColumn(NamedTuple):
    """A column that has the values of its ``source`` column, as this Arrow type."""

    name: str
    source: str
    arrow_type: str


class RoutingHash(NamedTuple):
    """Routing key that the receiver computes as Spark would: a hash of a ``bigint`` column.

    The keys are in [0, ``keys``).
    """

    column: str
    seed: int
    keys: int

    def routing_keys(self, values: pa.Array) -> pa.Array:
        """Return the routing keys of these values. NULL, of a tuple in no pair, is taken as 0."""
        hashed = xxhash64(self.seed, pc.fill_null(values, 0).to_numpy())
        if self.keys & self.keys - 1:
            hashed %= self.keys
        else:
            hashed &= self.keys - 1  # equal for a power of two, and faster
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
            {copy.name: copy.source for copy in self.generated_columns}.get(name, name)
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

    def add_generated(self, received: pa.RecordBatch) -> pa.RecordBatch:
        """Return the same rows with the columns that the receiver makes."""
        columns = dict(zip(received.schema.names, received.columns, strict=True))
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
    - ``reach``: bounds of event times; they say how long tuples are held.
    - ``folder``: folder of the run; with an object store, the driver's local cache of it.
    - ``utility_rule``: value of results, in a run that sheds load.
    - ``fsync``: whether tasks force files to disk before they report them.
    - ``object_store_url``: URL of a run in an object store; empty: none.
    - ``kind``: kind of the join.
    - ``result_types``: Arrow types of the structs of results by stream, if some may be NULL.
    - ``change_streams``: numbers of the streams whose tuples have signs.
    - ``match``: the rule of an as-of join; None: tuples join with all partners.
    - ``shares_hosts``: whether all tasks are in this process and work for all hosts: each derives
      the blocks of some streams, and probes with a share of the rows.
    """

    predicate: Predicate
    columns: tuple[tuple[str, ...], ...]
    layouts: tuple[StreamLayout, ...]
    reach: Reach
    folder: str
    partitions: int
    utility_rule: ResultUtility | None = None
    fsync: bool = False
    object_store_url: str = ""
    kind: JoinKind = INNER
    result_types: tuple[pa.DataType, ...] = ()
    change_streams: tuple[int, ...] = ()
    match: MatchRule | None = None
    shares_hosts: bool = False


@dataclass(frozen=True)
class BatchSpec:
    """Work of one batch, sent to every task.

    - ``key_space``: routing keys of arriving tuples.
    - ``horizons``: by stream, the event time below which stored tuples have expired.
    - ``block_ages``: ages of the blocks that may be probed; 0 for fresh ones.
    - ``clocks``, ``ahead``: clocks of the streams, and the lead with which one tuple may advance
      them; see ``core.stream_clocks``.
    - ``bitmaps``: queries that results serve, in a run that serves many.
    - ``shedding``: share of the probing tuples that take part.
    - ``block_sizes``: bytes of the blocks that derivations read.
    - ``files``: checksums of the block files that addresses name.
    - ``settles``: stored tuples to answer, before all else.
    - ``findings``: stored tuples of a semi join to write, likewise; of early answers, those to take
      back.
    - ``arrivals``: blocks of the batch whose unmatched tuples are early answers.
    - ``births``: births of the blocks that are not their own (see ``core.answers``).
    - ``matched``: match bitmaps that settles and merges need, by ``make_mark_key``.
    - ``held``: by block with pending pairs, the event time below which its tuples are answered, so
      that they are in no further result; None: none are.
    - ``releases``: stored tuples of an as-of join that take their partners.
    - ``low``: event time below which its left tuples have come late, before the batch; None: none.
    - ``next_low``: the same for the next batch, by which merges forget.
    - ``query_lows``: as ``low``, by the bit of an as-of query, in a run that serves many.
    """

    spec: JoinSpec
    batch: int
    key_space: KeySpace
    routes: tuple[Route, ...]
    derivations: tuple[Derivation, ...]
    replica_addresses: Mapping[Place, ReplicaAddress]
    horizons: tuple[Horizon, ...]
    block_ages: Mapping[int, int]
    clocks: tuple[int | None, ...] = ()
    ahead: int | None = None
    bitmaps: QueryBitmaps | None = None
    shedding: SheddingPlan | None = None
    block_sizes: Mapping[int, int] = field(default_factory=dict)
    files: Mapping[str, FileChecksum] = field(default_factory=dict)
    settles: tuple[Settle, ...] = ()
    findings: tuple[Finding, ...] = ()
    arrivals: tuple[Finding, ...] = ()
    births: Mapping[int, int] = field(default_factory=dict)
    matched: Mapping[int, MatchedRows] = field(default_factory=dict)
    held: Mapping[int, int | None] = field(default_factory=dict)
    releases: tuple[Release, ...] = ()
    low: int | None = None
    next_low: int | None = None
    query_lows: Mapping[int, int | None] = field(default_factory=dict)

    def list_preserved(self) -> dict[int | None, tuple[int, ...]]:
        """Return the preserved streams by the bit of a query, or for None if there are none.

        Those of as-of queries are left out: releases answer their tuples.
        """
        if self.bitmaps is None:
            return {None: self.spec.kind.preserved}
        return {bit: kind.preserved for bit, kind in self.bitmaps.kinds.items()}

    def find_birth(self, block: int) -> int:
        """Return the birth of a block."""
        return self.births.get(block, block)

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
        busy |= {settle.host for settle in self.settles}
        busy |= {finding.host for finding in (*self.findings, *self.arrivals)}
        busy.update(*(release.involved_hosts() for release in self.releases))
        return len(busy.union(*(d.source_hosts for d in self.derivations)))


def take_rows(rows: pa.RecordBatch, at: np.ndarray) -> pa.RecordBatch:
    """Return the rows at these positions; the batch itself if these are all rows."""
    return rows if len(at) == rows.num_rows else take_block_rows(rows, at)
