"""What happened, typed and in order: the only thing that views read.

Each event is one frozen dataclass and one JSON line. ``read`` and ``write`` keep the format's version in every line, so that
a recording made today can be told from one made by a later version. Lists of events are what a live run, a replay and a
report have in common.
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
    """The settings of a run. ``clock`` is "measured" for a run on Spark and "modelled" for a simulated one.

    ``batches`` is the number of micro-batches when it is known beforehand (static input), else None.
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

    ``routes``: [block id, stream, [lo, hi], stored on, [path, ...], fresh, deferred ids] where a path is
    [[stream, {host: [block ids]}], ...].
    ``derivations``: [block id, [lo, hi], [source ids], {host: host it reads}].
    ``drops``: {block id: [hosts that give it up]}.
    """

    batch: int
    routes: list[list[Any]]
    derivations: list[list[Any]]
    drops: Mapping[str, list[int]]


@dataclass(frozen=True, slots=True)
class BatchCommitted:
    """What a batch did, as counted by the hosts. Lists named ``host_*`` have one number per host.

    ``received``: tuples of the batch by stream, each once. ``total``: the same, summed since the start. ``live``: tuples held,
    each once, by stream. ``blocks``: [id, stream, [lo, hi], batch, [hosts], rows, bytes] of every block that is new or whose
    hosts changed. ``dropped``: ids of blocks that are gone. ``host_received``: tuples sent to the host. ``host_stored``: tuples
    held by the host after the batch (its input load). ``host_moved``: tuples read from other hosts (migration).
    ``host_discarded``: tuples given up. ``host_compared``: candidate pairs looked at. ``host_probed``: tuples and intermediate
    results that met a block, once for each hop. ``host_sent``: intermediate results that left, once for each host that they went
    to; ``host_arrived``: those that came in. Bytes are of Arrow buffers.
    ``seconds``: wall-clock of the steps ("plan", "execute", "commit", "total"). ``late``: tuples behind the watermark.
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
    """Blocks start to be exchanged: ``tuples`` to copy in all, over all hosts; ``discarded`` tuples given up at once."""

    batch: int
    group: int
    tuples: int
    discarded: int


@dataclass(frozen=True, slots=True)
class MigrationAdvanced:
    """One batch's share of a migration. ``copies`` lists [block id, from host, to host]; ``left`` tuples wait."""

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
class RunEnded:
    """``reason`` is "completed", "stopped" or "failed"; ``error`` is empty unless it failed."""

    batch: int
    reason: str
    error: str = ""


KINDS: dict[str, type] = {
    k.__name__: k
    for k in (
        RunStarted, BatchPlanned, BatchCommitted, MappingChanged, MigrationStarted, MigrationAdvanced, MigrationEnded, RunEnded,
    )
}  # fmt: skip
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
