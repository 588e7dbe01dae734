"""State of a hub, in one file that is replaced atomically: deployment, queries and progress.

A file of the hub exists only if the state names it.
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
from braid.errors import DamagedRunError
from braid.papers.reuse.deployment import Deployment
from braid.papers.reuse.deployment_codec import deployment_from_plain, deployment_to_plain
from braid.storage import durable_files
from braid.storage.event_log import EventLog, EventPrefix, extend_archive
from braid.util.file_system import current_file_system
from braid.util.json_codec import from_plain


@dataclass
class ServingInterval:
    """Batches in which a query is answered by one demand of one operator.

    - ``bit``: bit of the demand.
    - ``first_epoch``, ``end_epoch``: batches of Spark, end exclusive; None: still answered.
    - ``compensation``: Spark SQL over flat results (see ``flat_results``); None: all results are
      wanted.
    """

    operator: int
    version: int
    bit: int
    first_epoch: int
    end_epoch: int | None = None
    compensation: str | None = None


@dataclass
class RegisteredQuery:
    """A query that is or was served.

    - ``number``: its id.
    - ``start_time``, ``end_time``: event times of its ticks, in microseconds; None: unbounded.
    - ``lifetime``: microseconds of event time; None: until it is withdrawn.
    - ``complete_since``: by stream, the event time from which every usable tuple was held; None:
      all.
    - ``end_epoch``: first batch in which it was not answered any more; None: it is active.
    - ``end_reason``: why it ended.
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
    """File of a stream's tuples in one batch.

    ``latest``: their latest event time, in microseconds.
    """

    epoch: int
    latest: int
    checksum: FileChecksum


@dataclass
class HubState:
    """Complete state of a hub as of its last commit.

    - ``epoch``: last batch that all operators have committed; -1: none.
    - ``clocks``: event-time progress by stream, in microseconds; None: the stream has not begun.
    - ``pending``: event times too far ahead to advance the clock.
    - ``first_event_times``: first event time by stream.
    - ``received_counts``: tuples and bytes by stream.
    - ``backfill_batches``: files of history by stream.
    - ``backfill_start``: event time from which history is complete; None: from the start.
    - ``failed_nodes``: nodes that are down.
    - ``irregular_counts``: irregular tuples, with streams in the order of their names.
    - ``last_events``: events of the last commit.
    - ``archive``: checksum of all events before those.
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
        """Return the hub state in a file; None if there is no file.

        Raises DamagedRunError if the file is damaged, ValueError if another version wrote it.
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
        """Replace the file, which commits all changes and the events in ``happened``.

        Earlier events must be on disk.
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
        """Return a copy that can be changed. The deployment is shared, as it is immutable."""
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
        """Return the active query of this name; None if there is none."""
        return next((q for q in self.queries if q.name == name and q.end_epoch is None), None)

    @property
    def serving_queries(self) -> list[RegisteredQuery]:
        """Queries that are served now."""
        return [q for q in self.queries if q.end_epoch is None]

    def latest_event_times(self, stream: str) -> int | None:
        """Return the latest event time of a stream, plausible or not; None: it has not begun."""
        return max(self.pending.get(stream, ()), default=self.clocks.get(stream))

    def event_time_progress(self, streams: Sequence[str], slack: Mapping[str, int]) -> int | None:
        """Return the event time that all of these streams have passed; None if one has not begun.

        ``slack``: lateness by stream, in microseconds.
        """
        came = [None if (t := self.clocks.get(s)) is None else t - slack[s] for s in streams]
        begun = [t for t in came if t is not None]
        return min(begun) if len(begun) == len(came) else None

    def describe_irregular(self) -> str:
        """Return a description of the irregular tuples; empty if there are none."""
        names = sorted(self.clocks)
        return self.irregular_counts.describe_counts(names, [self.clocks[s] for s in names])


def open_event_log(path: Path, ledger: HubState) -> EventLog:
    """Open the event log in a file and make it hold exactly the events that the hub state names.

    A crash may have come between writing the two. The events are on disk on return, as the next hub
    state relies on that. Raises DamagedRunError if the file is damaged.
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
    """Raise DamagedRunError if the hub state is missing from a folder in which a hub has run."""
    folder = file.parent
    places = [folder / name for name in ("operators", "history", "checkpoint")]
    log = folder / "events.jsonl"
    if any(map(current_file_system().find_files, places)) or (
        current_file_system().exists(log) and current_file_system().read_size(log)
    ):
        raise DamagedRunError(
            f"{file} is missing, without which the hub in {folder} cannot be opened; restore it, "
            "or use a new folder"
        )
