"""What a hub remembers, in one file that is replaced whole: what is deployed, its queries, how far
it is. The file is the truth: what it does not name does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import msgspec

from braid.core import events, jsonl
from braid.core.clocks import Irregular
from braid.core.codec import typed
from braid.core.state import VERSION, Seal
from braid.engine import durable
from braid.engine.disk import disk
from braid.engine.durable import Damaged
from braid.engine.told import Archive, Told, extend_archive
from braid.papers.reuse.deployment import Deployment
from braid.papers.reuse.stored import from_plain, to_plain


@dataclass
class Span:
    """By which demand of which operator a query is answered: in the batches of Spark from ``first``
    up to, not with, ``end``; None: still. ``where`` is the compensation: Spark SQL over a plain
    table of results (flat.py).
    """

    operator: int
    version: int
    bit: int
    first: int
    end: int | None = None
    where: str | None = None


@dataclass
class Served:
    """A query that is or was served; ``number`` is its own. ``since`` and ``until`` are event times
    (microseconds) between which its ticks are; ``lifetime`` in microseconds of event time.
    ``complete`` says by stream from which event time on all tuples that it can use were held; None:
    all. ``end`` is the batch from which on it is answered no longer, and ``reason`` says why.
    """

    number: int
    name: str
    sql: str
    windows: Any
    every: str | None
    sink: str
    match: str
    spans: list[Span]
    complete: dict[str, int | None]
    lifetime: int | None = None
    since: int | None = None
    until: int | None = None
    end: int | None = None
    reason: str = ""


@dataclass(frozen=True)
class HistoryFile:
    """The file of a stream's tuples in a batch: their ``latest`` event time, and its seal."""

    epoch: int
    latest: int
    seal: Seal


@dataclass
class Ledger:
    """All that a hub remembers. ``epoch`` is the last batch that all operators have. By stream:
    ``clocks`` (how far event time has come) with the times ``pending`` that are too far ahead to
    move them, ``first`` event times, ``counted`` tuples and bytes, the files that ``history`` has,
    and ``floor``, the event time from which on history has all; None: it has all. ``down`` are the
    nodes that have failed. ``irregular`` counts the tuples that did not come at their time, by
    stream in the order of their names. ``told`` are the events of the last commit, and ``archive``
    seals all those before them.
    """

    epoch: int = -1
    clocks: dict[str, int | None] = field(default_factory=dict)
    pending: dict[str, tuple[int, ...]] = field(default_factory=dict)
    first: dict[str, int | None] = field(default_factory=dict)
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    history: dict[str, list[HistoryFile]] = field(default_factory=dict)
    floor: dict[str, int | None] = field(default_factory=dict)
    queries: list[Served] = field(default_factory=list)
    down: list[str] = field(default_factory=list)
    irregular: Irregular = field(default_factory=Irregular)
    told: list[dict[str, Any]] = field(default_factory=list)
    archive: Archive = field(default_factory=lambda: Archive(0, 0, 0, []))
    deployment: Deployment = field(default_factory=lambda: Deployment({}))

    @classmethod
    def read(cls, path: Path) -> Ledger | None:
        """Return the ledger in a file; None if there is no file. Raises Damaged for a file that is
        not what was written, and ValueError for another version's.
        """
        if not disk().exists(path):
            return None
        what = f"the hub in {path.parent}"
        stored = msgspec.json.decode(durable.opened(path, what), type=dict[str, Any])
        deployment = from_plain(stored.pop("deployment", {}))
        values = {k: v for k, v in stored.items() if k not in ("v", "crc")}
        ledger = typed({**values, "deployment": {"at": {}}}, cls, what)
        ledger.deployment = deployment
        return ledger

    def write(self, path: Path, happened: Sequence[events.Event] = ()) -> None:
        """Replace the file: that is the commit of whatever changed, and of what happened. The
        events before must be on disk.
        """
        self.archive = extend_archive(self.archive, self.last_lines())
        self.told = [jsonl.to_dict(e) for e in happened]
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        body = {"v": VERSION, **values, "deployment": to_plain(self.deployment)}
        durable.put(path, durable.sealed(body), force=True)

    def last_lines(self) -> list[bytes]:
        """Return the events of the last commit as lines of JSON."""
        return [msgspec.json.encode(event) + b"\n" for event in self.told]

    def copy(self) -> Ledger:
        """One that can be changed by itself; what is deployed is shared, as it never changes."""
        return replace(
            self,
            clocks=dict(self.clocks),
            pending=dict(self.pending),
            first=dict(self.first),
            counted=dict(self.counted),
            history={stream: list(kept) for stream, kept in self.history.items()},
            floor=dict(self.floor),
            queries=[replace(q, spans=list(map(replace, q.spans))) for q in self.queries],
            down=list(self.down),
        )

    def serving(self, name: str) -> Served | None:
        """The query of that name that is served now."""
        return next((q for q in self.queries if q.name == name and q.end is None), None)

    @property
    def served(self) -> list[Served]:
        """The queries that are served now."""
        return [q for q in self.queries if q.end is None]

    def latest(self, stream: str) -> int | None:
        """Return the latest event time of a stream, right or wrong; None: it has not begun."""
        return max(self.pending.get(stream, ()), default=self.clocks.get(stream))

    def progress(self, streams: Sequence[str], slack: Mapping[str, int]) -> int | None:
        """The event time up to which all of these streams have come; None: some has not begun.
        ``slack``: how late their tuples may be, by stream.
        """
        came = [None if (t := self.clocks.get(s)) is None else t - slack[s] for s in streams]
        begun = [t for t in came if t is not None]
        return min(begun) if len(begun) == len(came) else None

    def describe_irregular(self) -> str:
        """Return in words which tuples did not come at their time; empty if all did."""
        names = sorted(self.clocks)
        return self.irregular.describe(names, [self.clocks[s] for s in names])


def open_event_log(path: Path, ledger: Ledger) -> Told:
    """Return the events in a file, which then has those that the ledger names and no others: a
    crash may come between the two. They are on disk, as the next ledger relies on that. Raises
    Damaged for a file that is not what was written.
    """
    log = Told(path)
    if ledger.archive.events:
        log.look(ledger.archive, and_cut=True)
        log.check(ledger.archive)
    else:
        disk().write(path, b"")
    log.again([line.rstrip(b"\n") for line in ledger.last_lines()])
    durable.sync(path)
    return log


def check_nothing_is_left(file: Path) -> None:
    """Raise Damaged if a ledger is missing where a hub has been."""
    folder = file.parent
    places = [folder / name for name in ("operators", "history", "checkpoint")]
    log = folder / "events.jsonl"
    if any(map(disk().find, places)) or (disk().exists(log) and disk().size(log)):
        raise Damaged(
            f"{file} is missing, which alone says what the hub in {folder} has; restore it, or use "
            "a new folder"
        )
