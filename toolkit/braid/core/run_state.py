"""The state of a run between batches: the input of facts, and the addresses of replicas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from braid.core.answer_state import AnswerState
from braid.core.asof_releases import NOTHING_RELEASED, ReleaseState
from braid.core.facts import AgedMatches, HostUsage
from braid.core.plan import Block, Keys
from braid.core.query import Query
from braid.core.shedding_plan import SheddingOutcome
from braid.core.step_counts import ComparisonHistory
from braid.core.stream_clocks import IrregularCounts
from braid.util.garbage_collection import pause_garbage_collection
from braid.util.json_codec import from_plain

VERSION = 1
"""Version of the folder of a run or hub. Other versions are refused."""

Place = tuple[int, int]
"""(block, host)."""


class ReplicaAddress(NamedTuple):
    """The address of a host's replica of a block.

    - ``file``: name of the block file.
    - ``record_batch``: index of the record batch in it: a segment, which may hold many blocks.
    - ``key_range``: routing keys of the replica; None: all.
    - ``rows``: the rows of the block in the segment, half-open; None: all.
    """

    file: str
    record_batch: int
    key_range: Keys | None = None
    rows: tuple[int, int] | None = None


class FileChecksum(NamedTuple):
    """The size and crc32 of a file, to verify that it is complete and unchanged."""

    size_bytes: int
    crc32: int


@dataclass(frozen=True, slots=True)
class RunState:
    """The state after batch number ``batch``. Tuples of numbers are by stream."""

    batch: int = -1
    epoch: int = -1
    """Number of the source's last micro-batch. A batch that only settles pending pairs has none."""
    blocks: Mapping[int, Block] = field(default_factory=dict)
    replica_addresses: Mapping[Place, ReplicaAddress] = field(default_factory=dict)
    block_files: Mapping[str, FileChecksum] = field(default_factory=dict)
    """The block files that ``replica_addresses`` refers to."""
    next_id: int = 0
    placement_state: Any = None
    """The placement's own state."""
    received: tuple[int, ...] = ()
    """Tuples since the start."""
    received_bytes: tuple[int, ...] = ()
    previous_received: tuple[int, ...] = ()
    """Tuples of the last batch."""
    clocks: tuple[int | None, ...] = ()
    """Event time reached, in microseconds; None: no tuple has arrived."""
    pending: tuple[tuple[int, ...], ...] = ()
    """Event times too far ahead of the clock to advance it by themselves, in microseconds."""
    ended: tuple[bool, ...] = ()
    """Whether the stream has ended, so that it sends no more tuples."""
    is_closed: bool = False
    """Whether the run was closed, so that it takes no more tuples and cannot be resumed."""
    irregular: IrregularCounts = field(default_factory=IrregularCounts)
    """Late, untimed and early tuples, and jumps of clocks, since the start."""
    pinned_blocks: frozenset[int] = frozenset()
    pending_pairs: frozenset[tuple[int, int]] = frozenset()
    """Deferred pairs of blocks that are not settled. Recorded if plans are checked, and if the join
    is not inner."""
    answers: AnswerState = field(default_factory=AnswerState)
    """Answers of a join that is not inner."""
    releases: ReleaseState = NOTHING_RELEASED
    """Releases of an as-of join."""
    query_releases: Mapping[int, ReleaseState] = field(default_factory=dict)
    """Releases by the bit of an as-of query, in a run that serves many."""
    waiting_by_query: Mapping[int, int] = field(default_factory=dict)
    """Stored tuples that are not final, by stream and query; see ``core.query_waiting``."""
    unreleased_blocks: frozenset[int] = frozenset()
    """Blocks that came in the last batch before the queries or slices changed, if no batch has
    released and answered their tuples since."""
    host_usage: tuple[HostUsage, ...] = ()
    match_counts: AgedMatches = field(default_factory=dict)
    queries: tuple[Query, ...] = ()
    key_counts: tuple[Mapping[int, float], ...] = ()
    shedder_state: Any = None
    """The shedder's own state."""
    last_shedding: SheddingOutcome | None = None
    """Outcome of the last batch's shedding."""
    comparisons: ComparisonHistory = field(default_factory=ComparisonHistory)
    """Candidate pairs and matches of recent batches."""

    @classmethod
    def initial(
        cls, streams: int, policy: Any, queries: tuple[Query, ...] = (), shedding: Any = None
    ) -> RunState:
        """Return the state before the first batch."""
        none = (0,) * streams
        return cls(
            placement_state=policy,
            received=none,
            received_bytes=none,
            previous_received=none,
            clocks=(None,) * streams,
            pending=((),) * streams,
            ended=(False,) * streams,
            irregular=IrregularCounts(none, none, none, none),
            answers=AnswerState((None,) * streams, waiting=none),
            queries=queries,
            shedder_state=shedding,
        )


_Replica = tuple[int, int, int, int, Keys | None, tuple[int, int] | None]
"""Block, host, number of the file, record batch, routing keys, and rows of a replica."""


class _Matched(NamedTuple):
    visited: tuple[int, ...]
    stream: int
    age: int
    pairs: float
    matches: float


class _Stored(msgspec.Struct):
    """The stored form of a state. Mappings whose keys JSON cannot express are lists."""

    format_version: int
    state: RunState
    blocks: list[Block]
    files: list[tuple[str, FileChecksum]]
    replicas: list[_Replica]
    matches: list[_Matched]


@pause_garbage_collection()
def state_to_json(state: RunState) -> bytes:
    """Return a state as JSON."""
    files = sorted(state.block_files.items())
    number = {name: i for i, (name, _) in enumerate(files)}
    stored = _Stored(
        VERSION,
        replace(state, blocks={}, replica_addresses={}, block_files={}, match_counts={}),
        [*state.blocks.values()],
        files,
        [
            (id, host, number[file], segment, keys, rows)
            for (id, host), (file, segment, keys, rows) in state.replica_addresses.items()
        ],
        [_Matched(*visit, age, *n) for (visit, age), n in state.match_counts.items()],
    )
    return msgspec.json.encode(stored)


def state_from_json(body: bytes, policy: type = object, shedding: type = object) -> RunState:
    """Return the state from its JSON.

    ``policy`` and ``shedding`` are the types of the placement's and the shedder's own state.
    Without them these states stay plain values.

    Raises ValueError for another version or type.
    """
    check_version(msgspec.json.decode(body).get("format_version"), "a state")
    stored = msgspec.json.decode(body, type=_Stored)
    return replace(
        stored.state,
        placement_state=from_plain(
            stored.state.placement_state, policy, "the stored state of the placement"
        ),
        shedder_state=from_plain(
            stored.state.shedder_state, shedding, "the stored state of the shedder"
        ),
        blocks={b.id: b for b in stored.blocks},
        replica_addresses={
            (id, host): ReplicaAddress(stored.files[file][0], segment, keys, rows)
            for id, host, file, segment, keys, rows in stored.replicas
        },
        block_files=dict(stored.files),
        match_counts={((m.visited, m.stream), m.age): (m.pairs, m.matches) for m in stored.matches},
    )


def check_version(version: Any, what: str) -> None:
    """Raise ValueError unless stored data have the supported version."""
    if version != VERSION:
        raise ValueError(
            f"{what} is of version {version!r}; this version of Braid reads version {VERSION}"
        )
