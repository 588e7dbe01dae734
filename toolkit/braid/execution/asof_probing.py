"""Release stored tuples of an as-of join: they take their best partners, on one host or several.

The host that reads the tuples searches its own blocks of partners. If others have more, the tuples
are sent there, each partition sends back the best partners that it has, and the first host takes
the best of them. This takes three stages; a stage reads nothing that another has in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa

from braid.condition.predicate import with_windows
from braid.core.asof_releases import LEFT, RIGHT, find_partner_horizon
from braid.core.horizon import reach_of_windows
from braid.core.match_rules import MatchRule
from braid.core.plan import Release
from braid.core.reserved_columns import PLACE, TIME
from braid.execution.host_replicas import ReplicaStore
from braid.execution.tuple_answers import AnswerWriter, select_served_rows
from braid.kernels.asof_join import AsOfJoiner, Partners, rank_partners
from braid.kernels.asof_search import BestRows
from braid.kernels.block_builder import replace_column
from braid.kernels.block_orders import drop_order_columns
from braid.kernels.host_block_rows import BlockRows, PartialMatches, take_block_rows
from braid.kernels.join_spec import BatchSpec
from braid.kernels.partner_choice import choose_best_rows
from braid.kernels.probe import BlockJoiner
from braid.storage.block_files import ResultFileWriter
from braid.util.clock_and_threads import current_environment

Place = tuple[int, int, int]
"""Position of shipped rows: number of the release, RELEASED, and the next stage."""
RELEASED = -1
"""The number of a path for rows that belong to a release."""


def count_release_stages(batch: BatchSpec) -> int:
    """Return the number of further stages: 2 if some release takes several partitions, else 0."""
    return 2 * any(len(list_partitions(release, batch)) > 1 for release in batch.releases)


def list_partitions(release: Release, batch: BatchSpec) -> set[int]:
    """Return the partitions of the hosts that take part in a release."""
    return {host % batch.spec.partitions for host in release.involved_hosts()}


class ReleaseProber:
    """Releases of the hosts of one task attempt.

    - ``arrived``: rows that other tasks sent, by place.
    - ``leaving``: rows for other tasks, by place and partition.
    """

    def __init__(
        self,
        replicas: ReplicaStore,
        results: ResultFileWriter,
        joiner: BlockJoiner,
        answers: AnswerWriter,
    ) -> None:
        self.replicas, self.results = replicas, results
        self.joiner, self.answers = joiner, answers
        self.batch = replicas.batch
        self.arrived: dict[Place, list[PartialMatches]] = {}
        self.leaving: list[tuple[int, Place, PartialMatches]] = []

    def run_release_stage(self, stage: int) -> None:
        """Run a stage of all releases in which these hosts take part."""
        run = (self._start_release, self._continue_release, self._finish_release)[stage]
        for query, several in groupby(enumerate(self.batch.releases), lambda each: each[1].query):
            self.asof = self._make_joiner(query)
            began = current_environment().read_clock()
            for number, release in several:
                run(number, release, list_partitions(release, self.batch))
            self.asof.tally.seconds += current_environment().read_clock() - began

    def _make_joiner(self, query: int | None) -> AsOfJoiner:
        """Return the joiner of the run's own releases, or of those of an as-of query."""
        batch, joiner = self.batch, self.joiner
        if query is None or batch.bitmaps is None:
            assert batch.spec.match is not None, "releases are those of an as-of join"
            horizon = find_partner_horizon(batch.low, batch.spec.reach)
            return AsOfJoiner(joiner, batch.spec.match, batch.low, horizon)
        asof, low = batch.bitmaps.asof_queries[query], batch.query_lows.get(query)
        predicate = with_windows(joiner.predicate, asof.windows)
        horizon = find_partner_horizon(low, reach_of_windows(asof.windows))
        alone = BlockJoiner(predicate, joiner.horizons, None, joiner.batch_number)
        return AsOfJoiner(alone, asof.rule, low, horizon, query)

    @property
    def _rule(self) -> MatchRule:
        return self.asof.rule

    def shipments(self) -> Iterator[tuple[list[int], Place, PartialMatches]]:
        """Yield the rows that leave, with their partition and place."""
        for partition, place, rows in self.leaving:
            yield [partition], place, rows

    def _start_release(self, number: int, release: Release, partitions: set[int]) -> None:
        """Release tuples of a local host, or send them to all that take part."""
        if not self.replicas.is_local_host(release.host):
            return
        if partitions == {self.replicas.partition}:
            left = self._read_released(release)
            if len(left):
                blocks = self._open_partners(release)
                self._write_partners(
                    release, left, self.asof.find_best_partners(left, blocks), blocks
                )
            return
        place = (number, RELEASED, 1)
        for partition in partitions - {self.replicas.partition}:
            self.leaving.append((partition, place, self._read_compared(release)))

    def _continue_release(self, number: int, release: Release, partitions: set[int]) -> None:
        """Search the partners on these hosts, and send back the best of them."""
        is_involved = len(partitions) > 1 and self.replicas.partition in partitions
        blocks = self._open_partners(release) if is_involved else []
        if not blocks:
            return
        sent = self.arrived.pop((number, RELEASED, 1), [])
        left = sent[0] if sent else self._read_released(release)
        candidates = self.asof.find_best_partners(left, blocks)
        place, home = (number, RELEASED, 2), release.host % self.batch.spec.partitions
        for n, rows in enumerate(blocks):
            at = np.flatnonzero(candidates.blocks == n)
            for batch in self._take_partners(rows, candidates, at) if len(at) else ():
                chosen = PartialMatches({RIGHT: (BlockRows(batch), np.arange(batch.num_rows))})
                self.leaving.append((home, place, chosen))

    def _take_partners(
        self, rows: BlockRows, candidates: Partners, at: np.ndarray
    ) -> Iterator[pa.RecordBatch]:
        """Yield partners from a block, with the numbers of their tuples, in bounded pieces."""
        partners, done = PartialMatches({RIGHT: (rows, candidates.rows[at])}), 0
        for _, piece in self.joiner.split_for_output(0, partners):
            some = at[done : done + len(piece)]
            batch = take_block_rows(rows.batch.select(self._list_sent()), candidates.rows[some])
            yield replace_column(batch, PLACE, pa.array(candidates.probes[some]))
            done += len(piece)

    def _finish_release(self, number: int, release: Release, partitions: set[int]) -> None:
        """Take the best of the partners of all hosts."""
        if len(partitions) == 1 or not self.replicas.is_local_host(release.host):
            return
        left = self._read_released(release)
        sent = self.arrived.pop((number, RELEASED, 2), [])
        blocks = [partial.parts[RIGHT][0] for partial in sent]
        if len(left):
            self._write_partners(release, left, self._choose_sent(left, blocks), blocks)

    def _choose_sent(self, left: PartialMatches, blocks: Sequence[BlockRows]) -> Partners:
        if not blocks:
            return Partners.empty()
        key = self._rule.order_keys[RIGHT]
        candidates = [
            BestRows(b.numpy_column(PLACE), np.arange(b.batch.num_rows), b.numpy_column(key))
            for b in blocks
        ]
        every = Partners(
            np.concatenate([each.probes for each in candidates]),
            np.repeat(np.arange(len(candidates)), [len(each.rows) for each in candidates]),
            np.concatenate([each.rows for each in candidates]),
        )
        best = choose_best_rows(
            candidates,
            left.column_values(LEFT, self._rule.order_keys[LEFT]),
            self._rule,
            lambda at: rank_partners(Partners(*(e[at] for e in every)), blocks, self._rule),
        )
        return Partners(*(each[best] for each in every))

    def _read_released(self, release: Release) -> PartialMatches:
        """Return the tuples of a release, as this host has them."""
        rows = self.replicas.replica_rows(release.block.id, release.host)
        if rows is None:
            nothing = BlockRows(pa.RecordBatch.from_pylist([], pa.schema([])))
            return PartialMatches({LEFT: (nothing, np.zeros(0, np.int64))})
        times, due = rows.numpy_column(TIME), rows.key_mask()
        first, last = rows.event_time_range()
        if release.since is not None and first < release.since:
            is_after = times >= release.since
            due = is_after if due is None else due & is_after
        if last >= release.until:
            is_before = times < release.until
            due = is_before if due is None else due & is_before
        at = np.arange(len(times)) if due is None else np.flatnonzero(due)
        at = select_served_rows(rows.batch, at, release.query)
        return PartialMatches({LEFT: (rows, at)})

    def _read_compared(self, release: Release) -> PartialMatches:
        """Return the columns that are compared of the tuples of a release."""
        rows, at = self._read_released(release).parts[LEFT]
        every = drop_order_columns(rows.batch)
        names = [n for n in every.schema.names if n.startswith("__") or n in self._compared]
        batch = take_block_rows(every.select(names), at)
        return PartialMatches({LEFT: (BlockRows(batch), np.arange(len(at)))})

    @property
    def _compared(self) -> set[str]:
        """The columns of left tuples that conditions compare."""
        read = [r.columns for r in self.joiner.predicate.residuals]
        read += [c.ends for c in self.joiner.predicate.index_conditions]
        measured = (m.left for r in self.joiner.predicate.residuals for m in r.measures)
        measured_right = (m.right for r in self.joiner.predicate.residuals for m in r.measures)
        ends = (*(end for columns in read for end in columns), *measured, *measured_right)
        return {name for stream, name in ends if stream == LEFT}

    def _list_sent(self) -> list[str]:
        """Return the columns of partners that are sent back."""
        key, wanted = self._rule.order_keys[RIGHT], self.batch.spec.columns[RIGHT]
        return [*dict.fromkeys([*wanted, key])]

    def _open_partners(self, release: Release) -> list[BlockRows]:
        """Return the blocks of partners on these hosts."""
        by_host: Iterable[tuple[int, tuple[int, ...]]] = release.partners.blocks_by_host.items()
        replicas = (
            self.replicas.replica_rows(block, host)
            for host, blocks in by_host
            if self.replicas.is_local_host(host)
            for block in blocks
        )
        return [rows for rows in replicas if rows is not None]

    def _write_partners(
        self,
        release: Release,
        left: PartialMatches,
        partners: Partners,
        blocks: Sequence[BlockRows],
    ) -> None:
        """Write the released tuples with their partners."""
        partners = self.asof.drop_later_partners(left, partners, blocks)
        rows, at = left.parts[LEFT]
        for number, other in enumerate(blocks):
            some = np.flatnonzero(partners.blocks == number)
            if len(some):
                chosen = {
                    LEFT: (rows, at[partners.probes[some]]),
                    RIGHT: (other, partners.rows[some]),
                }
                served = self._mark_served(release, len(some))
                matches = PartialMatches(chosen, served)
                for _, piece in self.joiner.split_for_output(number, matches):
                    self.results.append_results(piece)
        metrics = self.replicas.host_metrics(release.host)
        metrics.results += len(partners.probes)
        metrics.probes += len(at)
        alone = np.ones(len(at), bool)
        alone[partners.probes] = False
        self.answers.answer_released_tuples(release, rows.batch, at, at[alone])

    def _mark_served(self, release: Release, results: int) -> np.ndarray | None:
        """Return the query that results serve as bitmaps; None: the run serves none."""
        return None if release.query is None else np.full(results, 1 << release.query, np.int64)
