"""What a hub remembers, in one file that is replaced whole: what is deployed, its queries, how far
it is. The file is the truth: what it does not name does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import msgspec

from braid.core import event_io, events
from braid.core.run_state import VERSION, FileChecksum
from braid.core.stream_clocks import IrregularCounts
from braid.papers.reuse.deployment import Deployment
from braid.papers.reuse.deployment_codec import deployment_from_plain, deployment_to_plain
from braid.storage import durable_files
from braid.storage.durable_files import DamagedRunError
from braid.storage.event_log import EventLog, EventPrefix, extend_archive
from braid.util.file_system import current_file_system
from braid.util.json_codec import from_plain


@dataclass
class ServingInterval:
    """By which demand of which operator a query is answered: in the batches of Spark from ``first``
    up to, not with, ``end``; None: still. ``where`` is the compensation: Spark SQL over a plain
    table of results (flat.py).
    """

    operator: int
    version: int
    bit: int
    first_epoch: int
    end_epoch: int | None = None
    compensation: str | None = None


@dataclass
class RegisteredQuery:
    """A query that is or was served; ``number`` is its own. ``since`` and ``until`` are event times
    (microseconds) between which its ticks are; ``lifetime`` in microseconds of event time.
    ``complete`` says by stream from which event time on all tuples that it can use were held; None:
    all. ``end`` is the batch from which on it is answered no longer, and ``reason`` says why.
    """

    number: int
    name: str
    sql: str
    windows: Any
    slide: str | None
    sink: str
    reuse_kind: str
    serving_intervals: list[ServingInterval]
    complete_since: dict[str, int | None]
    lifetime: int | None = None
    start_time: int | None = None
    end_time: int | None = None
    end_epoch: int | None = None
    end_reason: str = ""


@dataclass(frozen=True)
class HistoryFile:
    """The file of a stream's tuples in a batch: their ``latest`` event time, and its seal."""

    epoch: int
    latest: int
    checksum: FileChecksum


@dataclass
class HubState:
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
    first_event_times: dict[str, int | None] = field(default_factory=dict)
    received_counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    backfill_batches: dict[str, list[HistoryFile]] = field(default_factory=dict)
    backfill_start: dict[str, int | None] = field(default_factory=dict)
    queries: list[RegisteredQuery] = field(default_factory=list)
    failed_nodes: list[str] = field(default_factory=list)
    irregular_counts: IrregularCounts = field(default_factory=IrregularCounts)
    last_events: list[dict[str, Any]] = field(default_factory=list)
    archive: EventPrefix = field(default_factory=lambda: EventPrefix(0, 0, 0, []))
    deployment: Deployment = field(default_factory=lambda: Deployment({}))

    @classmethod
    def read_state(cls, path: Path) -> HubState | None:
        """Return the ledger in a file; None if there is no file. Raises Damaged for a file that is
        not what was written, and ValueError for another version's.
        """
        if not current_file_system().exists(path):
            return None
        what = f"the hub in {path.parent}"
        stored = msgspec.json.decode(
            durable_files.read_checksummed(path, what), type=dict[str, Any]
        )
        deployment = deployment_from_plain(stored.pop("deployment", {}))
        values = {k: v for k, v in stored.items() if k not in ("v", "crc")}
        ledger = from_plain({**values, "deployment": {"stream_nodes": {}}}, cls, what)
        ledger.deployment = deployment
        return ledger

    def write_state(self, path: Path, happened: Sequence[events.Event] = ()) -> None:
        """Replace the file: that is the commit of whatever changed, and of what happened. The
        events before must be on disk.
        """
        self.archive = extend_archive(self.archive, self.encode_last_events())
        self.last_events = [event_io.event_to_dict(e) for e in happened]
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        body = {"v": VERSION, **values, "deployment": deployment_to_plain(self.deployment)}
        durable_files.write_atomically(path, durable_files.encode_checksummed(body), force=True)

    def encode_last_events(self) -> list[bytes]:
        """Return the events of the last commit as lines of JSON."""
        return [msgspec.json.encode(event) + b"\n" for event in self.last_events]

    def copy_mutable(self) -> HubState:
        """One that can be changed by itself; what is deployed is shared, as it never changes."""
        return replace(
            self,
            clocks=dict(self.clocks),
            pending=dict(self.pending),
            first_event_times=dict(self.first_event_times),
            received_counts=dict(self.received_counts),
            backfill_batches={stream: list(kept) for stream, kept in self.backfill_batches.items()},
            backfill_start=dict(self.backfill_start),
            queries=[
                replace(q, serving_intervals=list(map(replace, q.serving_intervals)))
                for q in self.queries
            ],
            failed_nodes=list(self.failed_nodes),
        )

    def find_serving(self, name: str) -> RegisteredQuery | None:
        """The query of that name that is served now."""
        return next((q for q in self.queries if q.name == name and q.end_epoch is None), None)

    @property
    def serving_queries(self) -> list[RegisteredQuery]:
        """The queries that are served now."""
        return [q for q in self.queries if q.end_epoch is None]

    def latest_event_times(self, stream: str) -> int | None:
        """Return the latest event time of a stream, right or wrong; None: it has not begun."""
        return max(self.pending.get(stream, ()), default=self.clocks.get(stream))

    def event_time_progress(self, streams: Sequence[str], slack: Mapping[str, int]) -> int | None:
        """The event time up to which all of these streams have come; None: some has not begun.
        ``slack``: how late their tuples may be, by stream.
        """
        came = [None if (t := self.clocks.get(s)) is None else t - slack[s] for s in streams]
        begun = [t for t in came if t is not None]
        return min(begun) if len(begun) == len(came) else None

    def describe_irregular(self) -> str:
        """Return in words which tuples did not come at their time; empty if all did."""
        names = sorted(self.clocks)
        return self.irregular_counts.describe_counts(names, [self.clocks[s] for s in names])


def open_event_log(path: Path, ledger: HubState) -> EventLog:
    """Return the events in a file, which then has those that the ledger names and no others: a
    crash may come between the two. They are on disk, as the next ledger relies on that. Raises
    Damaged for a file that is not what was written.
    """
    log = EventLog(path)
    if ledger.archive.event_count:
        log.open_prefix(ledger.archive, and_cut=True)
        log.check_prefix(ledger.archive)
    else:
        current_file_system().write_file(path, b"")
    log.append_encoded([line.rstrip(b"\n") for line in ledger.encode_last_events()])
    durable_files.fsync_path(path)
    return log


def check_no_earlier_hub(file: Path) -> None:
    """Raise Damaged if a ledger is missing where a hub has been."""
    folder = file.parent
    places = [folder / name for name in ("operators", "history", "checkpoint")]
    log = folder / "events.jsonl"
    if any(map(current_file_system().find_files, places)) or (
        current_file_system().exists(log) and current_file_system().read_size(log)
    ):
        raise DamagedRunError(
            f"{file} is missing, which alone says what the hub in {folder} has; restore it, or use "
            "a new folder"
        )
