"""Run the work of a partition's hosts in one batch: derive, build, probe, ship, report.

A task serves the hosts h with ``h % partitions`` equal to its partition. Files are named by task
attempt. A file exists only if a report names it to the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from braid.core.batch_report import MatchCount, TaskReport
from braid.core.query_waiting import add_waiting_counts
from braid.core.shedding_plan import SheddingOutcome
from braid.execution.asof_probing import RELEASED, ReleaseProber
from braid.execution.fresh_blocks import FreshBlockBuilder
from braid.execution.host_replicas import ReplicaStore
from braid.execution.path_probing import PathProber
from braid.execution.probe_pools import Place
from braid.execution.tuple_answers import AnswerWriter
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.join_spec import BatchSpec
from braid.kernels.match_marks import Bits, pack_match_bits
from braid.kernels.shedding_sampler import PairSampler
from braid.storage.block_files import ResultFileWriter
from braid.storage.irregular_files import IrregularRowWriter
from braid.storage.task_file_access import TaskFiles
from braid.util.clock_and_threads import current_environment


class HostTask:
    """One task attempt of any stage."""

    def __init__(self, batch: BatchSpec, partition: int) -> None:
        self.batch, self.partition = batch, partition
        spec = batch.spec
        stem = f"{batch.batch:06d}-{partition}-{current_environment().make_token()}"
        self.copies = TaskFiles(batch)
        self.sampler: PairSampler | None = None
        if batch.shedding is not None and spec.utility_rule is not None:
            self.sampler = PairSampler(batch.shedding, spec.utility_rule, len(spec.columns))
        self.replicas = ReplicaStore(batch, partition, stem, self.copies)
        typed = self.sampler is not None and self.sampler.utility_rule.typed
        self.irregular = IrregularRowWriter(spec, batch.batch, self.copies.folder, stem)
        self.cutter = FreshBlockBuilder(batch, self.replicas.files, typed, self.irregular)
        self.results = ResultFileWriter(spec, self.copies.folder / "staging", stem)
        self.probing = PathProber(self.replicas, self.results, self.sampler)
        self.answers = AnswerWriter(self.replicas, self.results)
        self.releasing = ReleaseProber(
            self.replicas, self.results, self.probing.joiner, self.answers
        )

    def prepare_blocks(self) -> None:
        """Answer the tuples of stored blocks that are due, then derive blocks."""
        self.answers.settle_tuples()
        self.answers.write_new_matches()
        self.answers.write_unmatched_arrivals()
        self.releasing.run_release_stage(0)
        self.replicas.derive_blocks()

    def build_fresh_blocks(
        self, arrived: dict[int, list[pa.RecordBatch]]
    ) -> dict[tuple[int, int], BlockRows]:
        """Sort the tuples routed here into fresh blocks, and store those placed here.

        Returns them by (block, host).
        """
        is_local = self.replicas.is_local_host
        routes = [
            r for r in self.batch.routes if r.is_fresh and any(map(is_local, r.reading_hosts()))
        ]
        return self.replicas.store_fresh(self.cutter.build_blocks(arrived, routes, is_local))

    def shipments(self) -> Iterator[tuple[list[int], Place, PartialMatches]]:
        """Yield the rows that leave this task, with their partitions and place in the plan."""
        yield from self.probing.shipments()
        yield from self.releasing.shipments()

    def receive(self, place: Place, rows: PartialMatches) -> None:
        """Take rows that another task sent."""
        _, path, _ = place
        arrived = self.releasing.arrived if path == RELEASED else self.probing.pending
        arrived.setdefault(place, []).append(rows)

    def make_report(self) -> TaskReport:
        """Close all files and return the report for the driver."""
        results, blocks = self.results.close_file(), self.replicas.files.close_files()
        irregular = self.irregular.close_files()
        self.copies.upload(blocks, results, irregular)
        matches = self.probing.matches.items()
        return TaskReport(
            hosts=self.replicas.counts,
            replicas=self.replicas.reports,
            results=[*results],
            files=blocks | results | irregular,
            worker_id=current_environment().find_host_name(),
            matches=[MatchCount(*visit, age, *n) for (visit, age), n in matches],
            key_counts=self.cutter.list_key_counts(),
            shedding=self._make_shedding_outcome(),
            results_by_query=self.results.served,
            step_counts=self.probing.joiner.make_step_counts(),
            marks=_pack_marks(self.probing.marker.collect_marks()),
            merged_marks=_pack_marks(self.replicas.merged_marks),
            answers=self.answers.sum_counts(),
            waiting_changes=self._sum_waiting_changes(),
            irregular=[*irregular],
            late_by=self.irregular.measure_lateness(),
        )

    def _sum_waiting_changes(self) -> dict[int, int]:
        """Return the tuples of queries that came less those that were answered."""
        answered = {key: -tuples for key, tuples in self.answers.by_query.items()}
        return add_waiting_counts(self.cutter.waiting, answered)

    def _make_shedding_outcome(self) -> SheddingOutcome | None:
        """Return the outcome of load shedding in this task; None: nothing is shed."""
        if (r := self.sampler) is None:
            return None
        types = tuple(self.cutter.kinds.get(s, {}) for s in range(len(self.batch.spec.columns)))
        return SheddingOutcome(
            tuple(r.item_yields()),
            types if r.utility_rule.typed else (),
            variance=0.0 if r.has_variance else None,
            probe_seconds=self.probing.seconds,
            terms=tuple(r.weighted_terms()),
            sketches=tuple(tuple(z.tolist()) for z in r.sketches),
        )


def _pack_marks(marks: Mapping[int, Bits]) -> dict[int, bytes]:
    return {birth: pack_match_bits(bits) for birth, bits in marks.items()}
