"""What happened, typed and in order: the only thing that views read.

Each event is one frozen dataclass and one JSON line. ``read`` and ``write`` keep the format's
version in every line, so that a recording made today can be told from one made by a later version.
Lists of events are what a live run, a replay and a report have in common.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

VERSION = 1


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The settings of a run. ``clock`` is "measured" for a run on Spark and "modelled" for a
    simulated one.

    ``batches`` is the number of micro-batches when it is known beforehand (static input), else
    None.
    """

    streams: tuple[str, ...]
    on: str
    windows: Mapping[str, str]
    placement: str
    settings: Mapping[str, Any]
    hosts: int
    keys: int
    batches: int | None
    clock: str = "measured"


@dataclass(frozen=True, slots=True)
class BatchPlanned:
    """The plan of a batch as plain lists.

    ``routes``: [block id, stream, [lo, hi], stored on, [path, ...], fresh, deferred ids] where a
    path is [[stream, {host: [block ids]}], ...]. ``derivations``: [block id, [lo, hi], [source
    ids], {host: host it reads}]. ``drops``: {block id: [hosts that give it up]}.
    """

    batch: int
    routes: list[list[Any]]
    derivations: list[list[Any]]
    drops: Mapping[str, list[int]]


@dataclass(frozen=True, slots=True)
class BatchCommitted:
    """What a batch did, as counted by the hosts. Lists named ``host_*`` have one number per host.

    ``received``: tuples of the batch by stream, each once. ``total``: the same, summed since the
    start. ``live``: tuples held, each once, by stream. ``blocks``: [id, stream, [lo, hi], batch,
    [hosts], rows, bytes] of every block that is new or whose hosts changed. ``dropped``: ids of
    blocks that are gone. ``host_received``: tuples sent to the host. ``host_stored``: tuples held
    by the host after the batch (its input load). ``host_moved``: tuples read from other hosts
    (migration). ``host_discarded``: tuples given up. ``host_compared``: candidate pairs looked at.
    ``host_probed``: tuples and intermediate results that met a block, once for each hop.
    ``host_sent``: intermediate results that left, once for each host that they went to;
    ``host_arrived``: those that came in. Bytes are of Arrow buffers. ``seconds``: wall-clock of the
    steps ("plan", "execute", "commit", "total"). ``late``: tuples behind the watermark.
    """

    batch: int
    received: list[int]
    total: list[int]
    live: list[int]
    results: int
    seconds: Mapping[str, float]
    blocks: list[list[Any]]
    dropped: list[int]
    host_received: list[int]
    host_received_bytes: list[int]
    host_stored: list[int]
    host_stored_bytes: list[int]
    host_moved: list[int]
    host_moved_bytes: list[int]
    host_discarded: list[int]
    host_compared: list[int]
    host_results: list[int]
    host_seconds: list[float]
    late: int = 0
    host_probed: list[int] = field(default_factory=list)
    host_sent: list[int] = field(default_factory=list)
    host_arrived: list[int] = field(default_factory=list)
    host_arrived_bytes: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class MappingChanged:
    """The grid of a group of hosts changes from (n, m) to (n', m'); Elseidy 2014, section 4.2.

    ``cells`` lists [host, row, column] of the group under the new mapping.
    """

    batch: int
    group: int
    before: tuple[int, int]
    after: tuple[int, int]
    cells: list[list[int]]
    estimate: list[int]
    """The controller's estimates of (|R|, |S|), in unit tuples."""


@dataclass(frozen=True, slots=True)
class MigrationStarted:
    """Blocks start to be exchanged: ``tuples`` to copy in all, over all hosts; ``discarded`` tuples
    given up at once.
    """

    batch: int
    group: int
    tuples: int
    discarded: int


@dataclass(frozen=True, slots=True)
class MigrationAdvanced:
    """One batch's share of a migration. ``copies`` lists [block id, from host, to host]; ``left``
    tuples wait.
    """

    batch: int
    group: int
    copies: list[list[int]]
    moved: int
    left: int


@dataclass(frozen=True, slots=True)
class MigrationEnded:
    batch: int
    group: int


@dataclass(frozen=True, slots=True)
class SlicesSet:
    """The state slice table of a stream on a ring; Wang 2008, sections 12.5 and 14.1.

    ``nodes`` are the hosts from head to tail, in the direction of the ring; ``lengths`` the window
    length of each slice in microseconds (None: full history). ``bound`` is the number of tuples
    that a slice takes when slices are cut by counts.
    """

    batch: int
    stream: int
    nodes: list[int]
    lengths: list[int | None]
    bound: int | None


@dataclass(frozen=True, slots=True)
class HeadMoved:
    """New tuples of a stream are stored on host ``new`` from this batch on; Wang 2008, section
    12.5.
    """

    batch: int
    stream: int
    old: int
    new: int


@dataclass(frozen=True, slots=True)
class TailMoved:
    """The oldest tuples of a stream are now those of host ``new``; None when there are none."""

    batch: int
    stream: int
    old: int | None
    new: int | None


@dataclass(frozen=True, slots=True)
class Relocated:
    """State moves between nodes of a ring: ``moves`` lists [block id, from host, to host],
    ``tuples`` counts them.

    ``reason`` is "aged" (purged from one slice to a later one; Wang 2008, section 12.2) or
    "resized" (aggressive state relocation, section 14.2). ``kept`` says that the old node keeps its
    replica for this batch (delayed purge, section 12.4).
    """

    batch: int
    stream: int
    reason: str
    moves: list[list[int]]
    tuples: int
    kept: bool


@dataclass(frozen=True, slots=True)
class RingResized:
    """The ring goes from ``old`` to ``new`` nodes; ``reason`` is "scheduled" or "load". Wang 2008,
    section 14.2.
    """

    batch: int
    old: int
    new: int
    reason: str
    relocation: str


@dataclass(frozen=True, slots=True)
class SegmentPlaced:
    """A segment of the master stream begins and goes to ``host`` for ``length`` batches; Gu 2007,
    section 3.

    ``ahead``: the host was chosen before, so that slave tuples could be sent there as they came.
    ``copied``: slave tuples that had to be copied there nevertheless.
    """

    batch: int
    master: int
    host: int
    length: int
    ahead: bool
    copied: int


@dataclass(frozen=True, slots=True)
class MasterSwitched:
    """Stream ``new`` becomes the master in place of ``old``, from this batch, t_s, on; Gu 2007,
    section 3.

    ``host`` has the last segment of the old master. ``costs`` are the overheads (Eq. 2) in tuples
    per batch with the old and with the new master.
    """

    batch: int
    old: int
    new: int
    host: int
    costs: list[float]


@dataclass(frozen=True, slots=True)
class SegmentLengthTuned:
    """Segments that are planned from now on have ``new`` batches instead of ``old``; Gu 2007,
    section 3.

    ``cost`` was measured with the old length: the load of the busiest host for each tuple, more
    when hosts shed work.
    """

    batch: int
    old: int
    new: int
    cost: float


@dataclass(frozen=True, slots=True)
class PathChosen:
    """The routing path of a new segment, which begins with ``block``, was chosen among several join
    orders; Gu 2007, section 4.

    ``orders`` lists [[streams in the order of the hops], overhead, Eq. 3], the chosen one first.
    Both estimate what is sent for one tuple beyond one copy of it, in tuples and intermediate
    results; Eq. 3 counts nothing for a host that two hops in a row share, the overhead counts what
    that host lacks. ``loads`` are the weights w_i (Eq. 1) of the hosts on the path.
    """

    batch: int
    block: int
    stream: int
    orders: list[list[Any]]
    loads: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class QueryAdded:
    """A shared run serves one more query, from the next batch on. By alias, ``windows`` are in
    microseconds and ``where`` the selection, or None. ``complete`` gives, by alias, the event time
    (microseconds) from which on the state held every tuple that the query can use: results whose
    members came later or are no older are complete. None: all are.
    """

    batch: int
    name: str
    bit: int
    windows: Mapping[str, int]
    where: Mapping[str, str | None]
    complete: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class QueryRemoved:
    batch: int
    name: str


@dataclass(frozen=True, slots=True)
class ChainSet:
    """The chain of a stream: the ages (microseconds, rising) at which its slices end; Wang 2008,
    chapter 7.

    ``reason`` is "memory" or "cpu" (the optimum that it is), "split", "merged" or "given".
    ``nodes`` lists [age at which it ends, host], the stretches of age that hosts hold (chapter 21).
    """

    batch: int
    stream: int
    reason: str
    ends: list[int]
    nodes: list[list[int]]


@dataclass(frozen=True, slots=True)
class ChainFilled:
    """What the slices of a stream hold as a batch begins: ``blocks`` are lists of block ids, one
    for each slice, youngest first.
    """

    batch: int
    stream: int
    blocks: list[list[int]]


@dataclass(frozen=True, slots=True)
class RunEnded:
    """``reason`` is "completed", "stopped" or "failed"; ``error`` is empty unless it failed."""

    batch: int
    reason: str
    error: str = ""


KINDS: dict[str, type] = {
    k.__name__: k
    for k in (
        RunStarted,
        BatchPlanned,
        BatchCommitted,
        MappingChanged,
        MigrationStarted,
        MigrationAdvanced,
        MigrationEnded,
        SlicesSet,
        HeadMoved,
        TailMoved,
        Relocated,
        RingResized,
        SegmentPlaced,
        MasterSwitched,
        SegmentLengthTuned,
        PathChosen,
        QueryAdded,
        QueryRemoved,
        ChainSet,
        ChainFilled,
        RunEnded,
    )
}
_TUPLES = {"streams", "before", "after"}


def to_dict(event: Any) -> dict[str, Any]:
    return {"v": VERSION, "kind": type(event).__name__, **asdict(event)}


def from_dict(data: Mapping[str, Any]) -> Any:
    """Raises ValueError when the line has another version or an unknown kind."""
    if data.get("v") != VERSION or data.get("kind") not in KINDS:
        raise ValueError(
            f"event of kind {data.get('kind')!r}, version {data.get('v')!r}; "
            f"this version of Braid reads version {VERSION} of {', '.join(KINDS)}"
        )
    fields = {k: tuple(v) if k in _TUPLES else v for k, v in data.items() if k not in ("v", "kind")}
    return KINDS[data["kind"]](**fields)


def write(path: str | Path, events: Iterable[Any], append: bool = False) -> None:
    """Write events as JSON lines, whole or appended."""
    text = "".join(json.dumps(to_dict(e), separators=(",", ":")) + "\n" for e in events)
    with open(path, "a" if append else "w") as f:
        f.write(text)


def read(path: str | Path) -> list[Any]:
    """The events of a JSONL file, in order."""
    with open(path) as f:
        return [from_dict(json.loads(line)) for line in f if line.strip()]
