"""Reports of a batch's work: by task as they are sent, and merged on the driver."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from braid.core.answer_state import AnswerCount, MatchedRows
from braid.core.facts import AgedMatches, Visit
from braid.core.plan import Block
from braid.core.query_waiting import add_waiting_counts
from braid.core.run_state import FileChecksum, Place, ReplicaAddress
from braid.core.shedding_plan import SheddingOutcome, merge_outcomes
from braid.core.step_counts import StepCounts, sum_step_counts
from braid.core.stream_clocks import TimeSpread


class HostMetrics(msgspec.Struct, omit_defaults=True, gc=False):
    """Work of one host in a batch, and what it holds after it. Bytes are those of Arrow buffers.

    Tasks count their work in it; the commit fills in what is stored and discarded. JSON omits
    zeros.
    """

    received_tuples: int = 0
    """Tuples sent to the host."""
    received_bytes: int = 0
    stored_tuples: int = 0
    """Tuples held after the batch: the host's input load."""
    stored_bytes: int = 0
    migrated_tuples: int = 0
    """Tuples read from other hosts (migration)."""
    migrated_bytes: int = 0
    discarded_tuples: int = 0
    """Tuples dropped."""
    compared_pairs: int = 0
    """Candidate pairs: those that all conditions of an index admit, however it finds them."""
    probes: int = 0
    """Tuples and intermediate results that probed a block, counted once for each hop."""
    sent_partials: int = 0
    """Intermediate results sent, counted once for each receiving host."""
    received_partials: int = 0
    """Intermediate results received."""
    received_partial_bytes: int = 0
    results: int = 0
    seconds: float = 0.0
    """Seconds of derivations, builds and probes.

    Those of a pool are shared among its hosts by probes and compared pairs.
    """
    skipped_pairs: int = 0
    """Pairs (probing tuple, row of a block) skipped by load shedding."""
    considered_pairs: int = 0
    """Pairs of the same kind that were not skipped, in runs that shed load."""

    @property
    def met_pairs(self) -> int:
        """Pairs compared, counted in the unit of ``skipped_pairs`` if load is shed."""
        return self.considered_pairs or self.compared_pairs

    def add_counts(self, other: HostMetrics) -> None:
        """Add the counts of another task for this host."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class BlockSize(NamedTuple):
    """The size and event times of one replica of a new block.

    - ``event_time_range``: (earliest, latest) event time in microseconds.
    - ``late_tuples``: tuples behind the watermark.
    - ``spread``: event times of a fresh block, if the clock needs more than their range.
    - ``order_checksum``: checksum of the order of the rows of a fresh block that several tasks
      number; 0: one task does.
    - ``latest_rows``: its rows with the latest event times, as an Arrow stream, if there is a
      spread.
    """

    rows: int
    size_bytes: int
    event_time_range: tuple[int, int]
    late_tuples: int = 0
    spread: TimeSpread | None = None
    order_checksum: int = 0
    latest_rows: bytes = b""


class ReplicaReport(msgspec.Struct, frozen=True, gc=False):
    """A replica that a host made in a batch."""

    block: int
    host: int
    address: ReplicaAddress
    size: BlockSize


class MatchCount(NamedTuple):
    """Pairs of one step and one age of the probed block: those compared, and those that matched."""

    joined_streams: tuple[int, ...]
    stream: int
    age: int
    compared_pairs: float
    matched_pairs: float


class KeyCount(NamedTuple):
    """Fresh tuples of a stream with one number (see ``Facts.key_counts``)."""

    stream: int
    key: int
    tuples: int


class TaskReport(msgspec.Struct):
    """The report of one task.

    - ``hosts``: metrics of its hosts.
    - ``replicas``: replicas that they made.
    - ``results``: result files.
    - ``matches``: pairs compared and matched.
    - ``key_counts``: fresh tuples by stream and number.
    - ``stage``: stage of the batch, from 0.
    - ``source_seconds``: seconds that it waited for the source.
    - ``kernel_seconds``: seconds that its hosts worked in this stage.
    - ``shedding``: outcome of load shedding; None: no load was shed.
    - ``source_bytes``: bytes read from the source, before tuples were skipped.
    - ``files``: block files that it wrote.
    - ``worker_id``: machine that it ran on.
    - ``results_by_query``: results by the query's bit.
    - ``untimed``: by stream, tuples skipped because they have no event time.
    - ``step_counts``: pairs of each probe step.
    - ``marks``: by birth, a bitmap of rows that are in some result, lowest bit first.
    - ``merged_marks``: the same for merged blocks, from the bitmaps of their sources.
    - ``answers``: answered tuples by stream.
    - ``waiting_changes``: changes of the tuples that wait; see ``core.query_waiting``.
    - ``irregular``: files of irregular rows.
    - ``late_by``: see ``core.batch_symptoms``.
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
    step_counts: list[StepCounts] = []
    marks: dict[int, bytes] = {}
    merged_marks: dict[int, bytes] = {}
    answers: dict[int, AnswerCount] = {}
    waiting_changes: dict[int, int] = {}
    irregular: list[str] = []
    late_by: dict[int, int] = {}

    def to_json(self) -> bytes:
        """Return the report as JSON."""
        return msgspec.json.encode(self)


def report_from_json(body: bytes) -> TaskReport:
    """Return a task's report from its JSON."""
    return msgspec.json.decode(body, type=TaskReport)


@dataclass
class BatchReport:
    """The merged report of a batch.

    - ``block_sizes``: sizes of new blocks, by id.
    - ``replica_addresses``: addresses of their replicas.
    - ``hosts``: metrics by host.
    - ``results``: result files.
    - ``matches``: pairs compared and matched.
    - ``key_counts``: fresh tuples by stream and number.
    - ``source_seconds``: of the task that waited longest for the source.
    - ``kernel_seconds``: of the slowest task of each stage, summed.
    - ``shedding``: outcome of load shedding; None: no load was shed.
    - ``source_bytes``: bytes read from the source.
    - ``tasks``: tasks of the first stage whose hosts had work.
    - ``files``: block files that were written.
    - ``workers``: by file, the worker that wrote it.
    - ``results_by_query``: results by the query's bit; None: unknown.
    - ``untimed``: by stream, tuples without an event time.
    - ``step_counts``: pairs of each probe step.
    - ``marks``: by birth, bitmaps of rows that are in some result, of one or more tasks.
    - ``merged_marks``: by merged block, the bitmap of rows that matched before.
    - ``matched``: match bitmaps that the batch changed, as written.
    - ``answers``: answered tuples by stream.
    - ``waiting_changes``: changes of the tuples that wait; see ``core.query_waiting``.
    - ``irregular``: files of irregular rows.
    - ``late_by``: see ``core.batch_symptoms``.
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
    step_counts: tuple[StepCounts, ...] = ()
    marks: dict[int, list[bytes]] = field(default_factory=dict)
    merged_marks: dict[int, bytes] = field(default_factory=dict)
    matched: dict[int, MatchedRows] = field(default_factory=dict)
    answers: dict[int, AnswerCount] = field(default_factory=dict)
    waiting_changes: dict[int, int] = field(default_factory=dict)
    irregular: list[str] = field(default_factory=list)
    late_by: dict[int, int] = field(default_factory=dict)


def merge_reports(reports: Iterable[TaskReport], streams: int) -> BatchReport:
    """Merge the reports of all tasks. Raises RuntimeError if replicas of a block differ in rows."""
    outcome, keys = BatchReport(), tuple[dict[int, int], ...]({} for _ in range(streams))
    stages: dict[int, float] = {}
    harvested: list[SheddingOutcome] = []
    served = outcome.results_by_query = dict[int, int]()
    counted: list[StepCounts] = []
    for report in reports:
        harvested += [] if report.shedding is None else [report.shedding]
        outcome.source_seconds = max(outcome.source_seconds, report.source_seconds)
        outcome.source_bytes += report.source_bytes
        outcome.tasks += report.stage == 0 and bool(report.hosts)
        stages[report.stage] = max(stages.get(report.stage, 0.0), report.kernel_seconds)
        outcome.results += report.results
        outcome.irregular += report.irregular
        counted += report.step_counts
        _add_replica_report(outcome, report)
        for host, counts in report.hosts.items():
            if host in outcome.hosts:
                outcome.hosts[host].add_counts(counts)
            else:
                outcome.hosts[host] = copy(counts)
        for m in report.matches:
            at: tuple[Visit, int] = ((m.joined_streams, m.stream), m.age)
            pairs, matched = outcome.matches.get(at, (0, 0))
            outcome.matches[at] = (pairs + m.compared_pairs, matched + m.matched_pairs)
        for stream, key, tuples in report.key_counts:
            keys[stream][key] = keys[stream].get(key, 0) + tuples
        for bit, results in report.results_by_query.items():
            served[bit] = served.get(bit, 0) + results
        for stream, tuples in report.untimed.items():
            outcome.untimed[stream] = outcome.untimed.get(stream, 0) + tuples
        for stream, behind in report.late_by.items():
            outcome.late_by[stream] = max(behind, outcome.late_by.get(stream, 0))
        _add_answers(outcome, report)
    outcome.key_counts, outcome.kernel_seconds = keys, sum(stages.values())
    outcome.step_counts = sum_step_counts(counted)
    outcome.shedding = merge_outcomes(harvested) if harvested else None
    return outcome


def _add_answers(outcome: BatchReport, report: TaskReport) -> None:
    outcome.merged_marks |= report.merged_marks
    for birth, bits in report.marks.items():
        outcome.marks.setdefault(birth, []).append(bits)
    for stream, more in report.answers.items():
        outcome.answers[stream] = outcome.answers.get(stream, AnswerCount()).add_counts(more)


def merge_replica_reports(reports: Iterable[TaskReport]) -> BatchReport:
    """Merge reports that contain replicas only.

    Raises RuntimeError if replicas of a block differ in rows.
    """
    outcome = BatchReport()
    for report in reports:
        _add_replica_report(outcome, report)
    return outcome


def _add_replica_report(outcome: BatchReport, report: TaskReport) -> None:
    outcome.waiting_changes = add_waiting_counts(outcome.waiting_changes, report.waiting_changes)
    outcome.files |= report.files
    outcome.workers |= dict.fromkeys(report.files, report.worker_id)
    for r in report.replicas:
        size = outcome.block_sizes.setdefault(r.block, r.size)
        if size.rows != r.size.rows:
            raise RuntimeError(
                f"replicas of block {r.block} differ: host {r.host} has {r.size.rows} rows, "
                f"another {size.rows}"
            )
        if size.order_checksum != r.size.order_checksum:
            raise RuntimeError(
                f"replicas of block {r.block} have their rows in different orders; "
                f"that of host {r.host} differs, so that rows that matched would be confused"
            )
        outcome.replica_addresses[r.block, r.host] = r.address


def with_reported_size(b: Block, sizes: Mapping[int, BlockSize]) -> Block:
    """Return a block with its reported size; unchanged if none was reported."""
    if (size := sizes.get(b.id)) is None:
        return b
    return b.with_contents(size.rows, size.size_bytes, size.event_time_range)


def locate_replicas(
    blocks: Iterable[Block],
    old: Mapping[Place, ReplicaAddress],
    new: Mapping[Place, ReplicaAddress],
) -> dict[Place, ReplicaAddress]:
    """Return the address of each block's replicas; empty if none are stored (in a simulation).

    Raises RuntimeError if a host lacks a replica that it should have.
    """
    if not old and not new:
        return {}
    hosts = {b.id: b.hosts for b in blocks}
    addresses = {**old, **new}
    replicas = {at: addresses[at] for at in addresses if at[0] in hosts and at[1] in hosts[at[0]]}
    if len(replicas) < sum(map(len, hosts.values())):
        id, host = next((id, h) for id in hosts for h in hosts[id] if (id, h) not in replicas)
        raise RuntimeError(f"block {id} was to be stored on host {host}, which has no replica")
    return replicas


def referenced_files(
    places: Mapping[Place, ReplicaAddress],
    old: Mapping[str, FileChecksum],
    new: Mapping[str, FileChecksum],
) -> dict[str, FileChecksum]:
    """Return the files that replica addresses refer to."""
    return {f: new[f] if f in new else old[f] for f in {a.file for a in places.values()}}
