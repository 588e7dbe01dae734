"""What a batch leaves to the next: everything that facts are made of, and where replicas lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import msgspec

from braid.core.facts import AgedMatches, HostUsage
from braid.core.plan import Block, Keys
from braid.core.query import Query
from braid.core.shedding_plan import SheddingOutcome
from braid.core.stream_clocks import IrregularCounts
from braid.util.json_codec import from_plain

VERSION = 5
"""The version of the stored form. There is no reader of other versions."""

Place = tuple[int, int]
"""(block, host)."""


class ReplicaAddress(NamedTuple):
    """Where a host finds its replica of a block: a record batch of a block file, and the routing
    keys that count there (None: all).
    """

    file: str
    record_batch: int
    key_range: Keys | None = None


class FileChecksum(NamedTuple):
    """What tells that a file is whole and the one that is meant: its bytes, and their crc32."""

    size_bytes: int
    crc32: int


@dataclass(frozen=True, slots=True)
class RunState:
    """The state after batch number ``batch``; by stream where there is a number for each."""

    batch: int = -1
    epoch: int = -1
    """The number of the source's last micro-batch; a batch that only settles what is owed has
    none."""
    blocks: Mapping[int, Block] = field(default_factory=dict)
    replica_addresses: Mapping[Place, ReplicaAddress] = field(default_factory=dict)
    block_files: Mapping[str, FileChecksum] = field(default_factory=dict)
    """The block files that places name."""
    next_id: int = 0
    placement_state: Any = None
    """The placement's own state."""
    received: tuple[int, ...] = ()
    """Tuples since the start."""
    received_bytes: tuple[int, ...] = ()
    previous_received: tuple[int, ...] = ()
    """Tuples of the last batch."""
    clocks: tuple[int | None, ...] = ()
    """How far event time has come, in microseconds; None: no tuple has come."""
    pending: tuple[tuple[int, ...], ...] = ()
    """Event times too far ahead of the clock to move it by themselves, in microseconds."""
    irregular: IrregularCounts = field(default_factory=IrregularCounts)
    """Tuples since the start that did not come at their time."""
    pinned_blocks: frozenset[int] = frozenset()
    pending_pairs: frozenset[tuple[int, int]] = frozenset()
    """The cover ledger's account, kept when plans are checked."""
    host_usage: tuple[HostUsage, ...] = ()
    match_counts: AgedMatches = field(default_factory=dict)
    queries: tuple[Query, ...] = ()
    key_counts: tuple[Mapping[int, float], ...] = ()
    shedder_state: Any = None
    """The shedder's own state."""
    last_shedding: SheddingOutcome | None = None
    """What came of the last batch's harvest."""

    @classmethod
    def initial(
        cls, streams: int, policy: Any, queries: tuple[Query, ...] = (), shedding: Any = None
    ) -> RunState:
        """The state before the first batch."""
        none = (0,) * streams
        return cls(
            placement_state=policy,
            received=none,
            received_bytes=none,
            previous_received=none,
            clocks=(None,) * streams,
            pending=((),) * streams,
            irregular=IrregularCounts(none, none, none, none),
            queries=queries,
            shedder_state=shedding,
        )


class _Replica(NamedTuple):
    """A replica, its file by number."""

    block: int
    host: int
    file: int
    part: int
    keys: Keys | None


class _Matched(NamedTuple):
    visited: tuple[int, ...]
    stream: int
    age: int
    pairs: float
    found: float


class _Stored(msgspec.Struct):
    """A state as it is stored: what JSON has no keys for is listed."""

    v: int
    state: RunState
    blocks: list[Block]
    files: list[tuple[str, FileChecksum]]
    replicas: list[_Replica]
    matches: list[_Matched]


def state_to_json(state: RunState) -> bytes:
    """A state as JSON."""
    files = sorted(state.block_files.items())
    number = {name: i for i, (name, _) in enumerate(files)}
    stored = _Stored(
        VERSION,
        replace(state, blocks={}, replica_addresses={}, block_files={}, match_counts={}),
        [*state.blocks.values()],
        files,
        [
            _Replica(*at, number[a.file], a.record_batch, a.key_range)
            for at, a in state.replica_addresses.items()
        ],
        [_Matched(*visit, age, *n) for (visit, age), n in state.match_counts.items()],
    )
    return msgspec.json.encode(stored)


def state_from_json(body: bytes, policy: type = object, shedding: type = object) -> RunState:
    """The state that was encoded; ``policy`` is the type of the placement's own state, ``shedding``
    that of the shedder's, which are left as they are stored without it. Raises ValueError for
    another version or type.
    """
    check_version(msgspec.json.decode(body).get("v"), "a state")
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
            (r.block, r.host): ReplicaAddress(stored.files[r.file][0], r.part, r.keys)
            for r in stored.replicas
        },
        block_files=dict(stored.files),
        match_counts={((m.visited, m.stream), m.age): (m.pairs, m.found) for m in stored.matches},
    )


def check_version(version: Any, what: str, read: int = VERSION) -> None:
    """Raise ValueError, with one sentence, unless stored data are of the version that is read."""
    if version != read:
        raise ValueError(
            f"{what} is of version {version!r}; this version of Braid reads version {read}"
        )
