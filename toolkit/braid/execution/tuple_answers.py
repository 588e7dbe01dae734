"""Write the answers of tuples: those that were stored and are final, and those never in a pair."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from braid.core.answer_state import AnswerCount, make_mark_key
from braid.core.asof_releases import LEFT
from braid.core.change_types import DELETE, INSERT
from braid.core.join_kinds import JoinKind
from braid.core.plan import Finding, Release, Settle
from braid.core.reserved_columns import MARK, TIME
from braid.execution.host_replicas import ReplicaStore
from braid.kernels.host_block_rows import BlockRows
from braid.kernels.match_marks import Bits, look_up_match_bits
from braid.storage.block_files import ResultFileWriter


class AnswerWriter:
    """Writer of the answers of one task attempt.

    - ``counts``: answered tuples by stream.
    - ``by_query``: answered tuples by ``make_mark_key`` of the stream and the bit of a query.
    """

    def __init__(self, replicas: ReplicaStore, results: ResultFileWriter) -> None:
        self._replicas, self._results = replicas, results
        self._kind = replicas.batch.spec.kind
        self.counts: dict[int, AnswerCount] = {}
        self.by_query: dict[int, int] = {}

    def settle_tuples(self) -> None:
        """Answer the stored tuples of these hosts that are final."""
        for settle in self._replicas.batch.settles:
            if self._replicas.is_local_host(settle.host):
                rows = self._replicas.replica_rows(settle.block, settle.host)
                if rows is not None:
                    self._settle_block(settle, rows)

    def _settle_block(self, settle: Settle, rows: BlockRows) -> None:
        at = rows.row_positions()
        times = rows.numpy_column(TIME)[at]
        is_final = times < settle.until
        if settle.since is not None:
            is_final &= times >= settle.since
        at = select_served_rows(rows.batch, at[is_final], settle.query)
        marks = self._replicas.find_known_marks(settle.block, settle.query)
        unmatched = at[~look_up_match_bits(marks, rows.row_numbers()[at])]
        self._count_answers(settle.stream, len(at), len(unmatched), settle.query)
        if not self._kind.is_early:
            self._write_unmatched(settle.stream, settle.host, rows.batch, unmatched, settle.query)

    def write_new_matches(self) -> None:
        """Write the stored tuples that had their first partner in the last batch.

        Early answers take them back.
        """
        for finding, rows in self._open_findings(self._replicas.batch.findings):
            bits = self._replicas.find_new_marks(finding.block, finding.query)
            self._write_found(finding, rows, bits, DELETE if self._kind.is_early else INSERT)

    def write_unmatched_arrivals(self) -> None:
        """Write the tuples of this batch that have no partner yet, which are early answers."""
        for finding, rows in self._open_findings(self._replicas.batch.arrivals):
            marks = self._replicas.find_known_marks(finding.block)
            numbers = np.arange(int(rows.row_numbers().max(initial=-1)) + 1)
            self._write_found(finding, rows, ~look_up_match_bits(marks, numbers), INSERT)

    def _open_findings(self, findings: Iterable[Finding]) -> Iterator[tuple[Finding, BlockRows]]:
        for finding in findings:
            if self._replicas.is_local_host(finding.host):
                rows = self._replicas.replica_rows(finding.block, finding.host)
                if rows is not None:
                    yield finding, rows

    def _write_found(self, finding: Finding, rows: BlockRows, bits: Bits, change: str) -> None:
        """Write the rows of a block whose numbers are marked."""
        at = rows.row_positions()
        at = at[look_up_match_bits(bits, rows.row_numbers()[at])]
        if len(at):
            self._append_rows(finding.stream, rows.batch, at, finding.query, change)
            self._replicas.host_metrics(finding.host).results += len(at)

    def answer_rejected_tuples(self, arrived: Mapping[int, Iterable[pa.RecordBatch]]) -> None:
        """Answer arrived tuples, by preserved stream, that can be in no pair."""
        bitmaps = self._replicas.batch.bitmaps
        kinds: Mapping[Any, JoinKind] = {None: self._kind}
        if bitmaps is not None:
            kinds = bitmaps.list_rejecting_queries()
        for stream, batch in ((s, batch) for s, several in arrived.items() for batch in several):
            for query, kind in kinds.items():
                if stream in kind.preserved:
                    # They were never among the waiting ones, so they are not counted as answered.
                    at = select_served_rows(batch, np.arange(batch.num_rows), query)
                    self._count_answers(stream, 0, len(at))
                    self._write_unmatched(stream, 0, batch, at, query)

    def answer_released_tuples(
        self, release: Release, batch: pa.RecordBatch, released: np.ndarray, alone: np.ndarray
    ) -> None:
        """Answer tuples of an as-of join; those at the positions ``alone`` have no partner."""
        self._count_answers(LEFT, len(released), len(alone), release.query)
        if self._find_kind(release.query).preserved:
            self._write_unmatched(LEFT, release.host, batch, alone, release.query)

    def sum_counts(self) -> dict[int, AnswerCount]:
        """Return the answered tuples by stream, with those that left the state as they matched."""
        for stream, count in self._replicas.forgotten.values():
            self._count_answers(stream, count, 0)
        return self.counts

    def _count_answers(
        self, stream: int, answered: int, unmatched: int, query: int | None = None
    ) -> None:
        before = self.counts.get(stream, AnswerCount())
        self.counts[stream] = before.add_counts(AnswerCount(answered, unmatched))
        if query is not None:
            key = make_mark_key(stream, query)
            self.by_query[key] = self.by_query.get(key, 0) + answered

    def _write_unmatched(
        self,
        stream: int,
        host: int,
        batch: pa.RecordBatch,
        at: np.ndarray,
        query: int | None = None,
    ) -> None:
        kind = self._find_kind(query)
        if kind.writes_unmatched and len(at):
            self._append_rows(stream, batch, at, query)
            self._replicas.host_metrics(host).results += len(at)

    def _find_kind(self, query: int | None) -> JoinKind:
        """Return the kind of a query; None: that of the join, which serves none."""
        bitmaps = self._replicas.batch.bitmaps
        if query is None or bitmaps is None:
            return self._kind
        asof = bitmaps.asof_queries.get(query)
        return bitmaps.kinds[query] if asof is None else asof.kind

    def _append_rows(
        self,
        stream: int,
        batch: pa.RecordBatch,
        at: np.ndarray,
        query: int | None,
        change: str = INSERT,
    ) -> None:
        """Append tuples to the results, of the query that they serve if there are several."""
        served = None if query is None else pa.array(np.full(len(at), 1 << query))
        self._results.append_unmatched(stream, batch, at, served, change)


def select_served_rows(batch: pa.RecordBatch, at: np.ndarray, query: int | None) -> np.ndarray:
    """Return the positions of the rows that a query selects; None: there are no queries."""
    if query is None:
        return at
    selected: np.ndarray = at[(batch.column(MARK).to_numpy()[at] >> query & 1).astype(bool)]
    return selected
