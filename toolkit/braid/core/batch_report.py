"""What hosts report of a batch: named, as it travels and as the driver merges it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from braid.core.facts import AgedMatches, Visit
from braid.core.run_state import FileChecksum, Place, ReplicaAddress
from braid.core.shedding_plan import SheddingOutcome, merge_outcomes
from braid.core.stream_clocks import TimeSpread


class HostMetrics(msgspec.Struct, omit_defaults=True):
    """What one host did in a batch, and what it holds after it. Bytes are of Arrow buffers.

    Tasks count in it what they do, and leave what is held to the commit; in an event it stays as it
    is. A line of JSON leaves zeros out.
    """

    received_tuples: int = 0
    """Tuples sent to the host."""
    received_bytes: int = 0
    stored_tuples: int = 0
    """Tuples held after the batch: the host's input load."""
    stored_bytes: int = 0
    migrated_tuples: int = 0
    """Tuples read from other hosts: migration."""
    migrated_bytes: int = 0
    discarded_tuples: int = 0
    """Tuples given up."""
    compared_pairs: int = 0
    """Candidate pairs looked at."""
    probes: int = 0
    """Tuples and intermediate results that met a block, once for each hop."""
    sent_partials: int = 0
    """Intermediate results that left, once for each host that they went to."""
    received_partials: int = 0
    """Intermediate results that came in."""
    received_partial_bytes: int = 0
    results: int = 0
    seconds: float = 0.0
    """Of derivations, builds and probes, at the host at which a path enters a task."""
    skipped_pairs: int = 0
    """Pairs (tuple that set out, row of a block) that did not meet, as load is shed."""

    def add_counts(self, other: HostMetrics) -> None:
        """Count what another task did for this host as well."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class BlockSize(NamedTuple):
    """What a block holds, once it is made: of one replica. ``span`` is (earliest, latest) event
    time in microseconds; ``late`` tuples are behind the watermark; ``spread`` describes the event
    times of a fresh block where a clock needs more than the span.
    """

    rows: int
    size_bytes: int
    event_time_range: tuple[int, int]
    late_tuples: int = 0
    spread: TimeSpread | None = None


class ReplicaReport(msgspec.Struct, frozen=True):
    """A replica that a host made in a batch."""

    block: int
    host: int
    address: ReplicaAddress
    size: BlockSize


class MatchCount(NamedTuple):
    """The pairs of one step and one age of the met block that were considered, and that matched."""

    joined_streams: tuple[int, ...]
    stream: int
    age: int
    compared_pairs: float
    matched_pairs: float


class KeyCount(NamedTuple):
    """Fresh tuples of a stream that have a routing key."""

    stream: int
    key: int
    tuples: int


class TaskReport(msgspec.Struct):
    """What one task reports of its hosts: their counts, the replicas that they made, result files,
    matches, fresh tuples by routing key, and what came of the harvest. And its seconds: how long it
    waited for tuples of the source, and how long its hosts worked in this stage of the batch; and
    the bytes that it took from the source, before any tuple was left out. And the ``files``
    that it wrote, and the machine that it ran on, the ``worker``. ``served`` counts results by the
    bit of the query that they serve, and ``untimed``, by stream, tuples that were left out because
    they have no event time.
    """

    hosts: dict[int, HostMetrics]
    replicas: list[ReplicaReport] = []
    results: list[str] = []
    matches: list[MatchCount] = []
    key_counts: list[KeyCount] = []
    stage: int = 0
    source_seconds: float = 0.0
    kernel_seconds: float = 0.0
    shedding: SheddingOutcome | None = None
    source_bytes: int = 0
    files: dict[str, FileChecksum] = {}
    worker_id: str = ""
    results_by_query: dict[int, int] = {}
    untimed: dict[int, int] = {}

    def to_json(self) -> bytes:
        """The report as JSON."""
        return msgspec.json.encode(self)


def report_from_json(body: bytes) -> TaskReport:
    """The report that a task encoded."""
    return msgspec.json.decode(body, type=TaskReport)


@dataclass
class BatchReport:
    """What all hosts report of a batch, merged: sizes of the blocks that were made, where their
    replicas lie, counts by host, result files, matches, fresh tuples by stream and routing key, and
    what came of the harvest, if there was one. And the seconds of the task that waited longest for
    the source, and of the one that worked longest in each stage, summed; the bytes that came from
    the source; and how many tasks had hosts that did something, in the first stage. And the files
    that were written, and by name the workers that wrote them. ``served`` are results by the bit of
    the query; None: not known. ``untimed`` are, by stream, tuples without an event time.
    """

    block_sizes: dict[int, BlockSize] = field(default_factory=dict)
    replica_addresses: dict[Place, ReplicaAddress] = field(default_factory=dict)
    hosts: dict[int, HostMetrics] = field(default_factory=dict)
    results: list[str] = field(default_factory=list)
    matches: AgedMatches = field(default_factory=dict)
    key_counts: tuple[Mapping[int, int], ...] = ()
    source_seconds: float = 0.0
    kernel_seconds: float = 0.0
    shedding: SheddingOutcome | None = None
    source_bytes: int = 0
    tasks: int = 0
    files: dict[str, FileChecksum] = field(default_factory=dict)
    workers: dict[str, str] = field(default_factory=dict)
    results_by_query: dict[int, int] | None = None
    untimed: dict[int, int] = field(default_factory=dict)


def merge_reports(reports: Iterable[TaskReport], streams: int) -> BatchReport:
    """The reports of all tasks as one. Raises RuntimeError when replicas of a block differ."""
    outcome, keys = BatchReport(), tuple[dict[int, int], ...]({} for _ in range(streams))
    stages: dict[int, float] = {}
    harvested: list[SheddingOutcome] = []
    served = outcome.results_by_query = dict[int, int]()
    for report in reports:
        harvested += [] if report.shedding is None else [report.shedding]
        outcome.source_seconds = max(outcome.source_seconds, report.source_seconds)
        outcome.source_bytes += report.source_bytes
        outcome.tasks += report.stage == 0 and bool(report.hosts)
        stages[report.stage] = max(stages.get(report.stage, 0.0), report.kernel_seconds)
        outcome.results += report.results
        _add_replica_report(outcome, report)
        for host, counts in report.hosts.items():
            outcome.hosts.setdefault(host, HostMetrics()).add_counts(counts)
        for m in report.matches:
            at: tuple[Visit, int] = ((m.joined_streams, m.stream), m.age)
            pairs, found = outcome.matches.get(at, (0, 0))
            outcome.matches[at] = (pairs + m.compared_pairs, found + m.matched_pairs)
        for stream, key, tuples in report.key_counts:
            keys[stream][key] = keys[stream].get(key, 0) + tuples
        for bit, results in report.results_by_query.items():
            served[bit] = served.get(bit, 0) + results
        for stream, tuples in report.untimed.items():
            outcome.untimed[stream] = outcome.untimed.get(stream, 0) + tuples
    outcome.key_counts, outcome.kernel_seconds = keys, sum(stages.values())
    outcome.shedding = merge_outcomes(harvested) if harvested else None
    return outcome


def merge_replica_reports(reports: Iterable[TaskReport]) -> BatchReport:
    """The outcome of making replicas alone. Raises RuntimeError when those of a block differ."""
    outcome = BatchReport()
    for report in reports:
        _add_replica_report(outcome, report)
    return outcome


def _add_replica_report(outcome: BatchReport, report: TaskReport) -> None:
    outcome.files |= report.files
    outcome.workers |= dict.fromkeys(report.files, report.worker_id)
    for r in report.replicas:
        known = outcome.block_sizes.setdefault(r.block, r.size)
        if known.rows != r.size.rows:
            raise RuntimeError(
                f"replicas of block {r.block} differ: host {r.host} has {r.size.rows} rows, "
                f"another {known.rows}"
            )
        outcome.replica_addresses[r.block, r.host] = r.address
