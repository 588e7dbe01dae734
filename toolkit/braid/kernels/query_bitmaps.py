"""Bitmaps of the queries that a tuple, an intermediate result or a result serves. NumPy only.

Each query is one bit. A member of a result serves the queries whose selection it passed and whose
window, on its stream, exceeds its age.

Source: Wang 2008, section 7.4 (a tuple carries a mark of the selections that it passed), chapters
19 and 20 (a result serves the queries in the product of its members' bitmaps; one that serves none
is not probed).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from braid.core.answer_state import make_mark_key
from braid.core.join_kinds import JoinKind
from braid.core.match_rules import MatchRule
from braid.core.query import Query
from braid.core.query_answers import find_answer_floors
from braid.core.reserved_columns import MARK, TIME

if TYPE_CHECKING:
    from braid.kernels.compared_pairs import CandidatePairs
    from braid.kernels.host_block_rows import BlockRows, PartialMatches


class AsOfQuery(NamedTuple):
    """An as-of query: its kind, the rule that chooses partners, and its windows by stream."""

    kind: JoinKind
    rule: MatchRule
    windows: tuple[int, ...]


@dataclass(frozen=True)
class QueryBitmaps:
    """The bitmaps of a batch's queries.

    - ``windows``: by stream, the distinct windows w_1 < ... < w_n in microseconds.
    - ``masks``: by stream; entry k has the queries that a tuple serves once its age has reached w_k
      (w_0 = 0). These are the queries of a slice from w_k on (Lemma 9).
    - ``kinds``: by bit, the kinds of the queries that are outer, semi or anti joins.
    - ``asof_queries``: by bit, the as-of queries, which take no part in probes.
    - ``probe_mask``: the queries that do.
    - ``pair_mask``: those whose results have pairs.
    - ``floors``: by bit of a query and by stream that it answers, the event time below which it
      answers no tuple; None: it answers all.
    - ``horizons``: by bit of such a query and by stream, the event time below which a stored tuple
      is answered, so that it is in no further result of the query.
    """

    windows: tuple[tuple[int, ...], ...]
    masks: tuple[tuple[int, ...], ...]
    kinds: Mapping[int, JoinKind] = field(default_factory=dict)
    pair_mask: int = -1
    probe_mask: int = -1
    asof_queries: Mapping[int, AsOfQuery] = field(default_factory=dict)
    horizons: Mapping[int, tuple[float | None, ...]] = field(default_factory=dict)
    floors: Mapping[int, Mapping[int, int | None]] = field(default_factory=dict)

    @classmethod
    def from_queries(cls, queries: Sequence[Query]) -> QueryBitmaps:
        """Return the bitmaps of these queries, by age."""
        windows, masks = [], []
        for ranges in zip(*(q.windows for q in queries), strict=True):
            bits = [(w, 1 << q.bitmap_position) for w, q in zip(ranges, queries, strict=True)]
            windows.append(tuple(sorted(set(ranges))))
            masks.append(tuple(sum(bit for w, bit in bits if w > age) for age in (0, *windows[-1])))
        kinds = {q.bitmap_position: q.kind for q in queries if q.has_marks}
        asof = {
            q.bitmap_position: AsOfQuery(q.kind, q.match, q.windows)
            for q in queries
            if q.match is not None
        }
        probing = [q for q in queries if q.match is None]
        pairs = sum(1 << q.bitmap_position for q in probing if q.kind.writes_pairs)
        probes = sum(1 << q.bitmap_position for q in probing)
        floors = {q.bitmap_position: _list_floors(q) for q in queries if q.answered_streams}
        return cls(tuple(windows), tuple(masks), kinds, pairs, probes, asof, floors=floors)

    def list_rejecting_queries(self) -> dict[int, JoinKind]:
        """Return the kinds of the queries that answer tuples which can be in no pair."""
        asof = {bit: q.kind for bit, q in self.asof_queries.items() if not q.kind.is_inner}
        return {**self.kinds, **asof}

    def count_waiting(
        self, stream: int, marks: np.ndarray, times: np.ndarray, without: int = 0
    ) -> dict[int, int]:
        """Return the tuples that queries will answer, as ``core.query_waiting`` counts them.

        ``without``: bits of queries that are not counted.
        """
        counts = {}
        for bit, floors in self.floors.items():
            if stream in floors and not without >> bit & 1:
                is_waiting = (marks >> bit & 1).astype(bool)
                if (floor := floors[stream]) is not None:
                    is_waiting &= times >= floor
                counts[make_mark_key(stream, bit)] = int(np.count_nonzero(is_waiting))
        return counts

    def longest_window_rank(self, stream: int, marks: np.ndarray) -> np.ndarray:
        """Return, by tuple, the index of the longest window among the queries in its mark.

        It determines how far the tuple travels in the chain.
        """
        ranks = np.zeros(len(marks), np.int32)
        for k, mask in enumerate(self.masks[stream][1:-1], 1):
            ranks[(marks & mask) != 0] = k
        return ranks

    def lifetimes(self, stream: int) -> np.ndarray:
        """Return, by rank, how long a tuple can serve a query, in microseconds."""
        return np.asarray(self.windows[stream], np.int64)

    def queries_by_age(self, stream: int, ages: Any) -> Any:
        """Return, by age, the queries whose window on the stream exceeds it."""
        reached = np.searchsorted(self.lifetimes(stream), ages, side="right")
        return np.asarray(self.masks[stream], np.int64)[reached]

    def queries_if_constant(self, stream: int, youngest: int, oldest: int) -> int | None:
        """Return the queries for all ages between two; None if a window ends between them."""
        windows, masks = self.windows[stream], self.masks[stream]
        a, b = (masks[bisect_right(windows, age)] for age in (youngest, oldest))
        return a if a == b else None

    def result_bitmaps(self, results: PartialMatches) -> np.ndarray:
        """Return, by (partial) result, the queries that it serves.

        It is the product of its members' bitmaps (section 20.1).

        Ages are not computed for each result if all members of a block are in one slice.
        """
        spans = {s: rows.event_time_range() for s, (rows, _) in results.parts.items()}
        first, last = max(lo for lo, _ in spans.values()), max(hi for _, hi in spans.values())
        queries, now = np.full(len(results), self.probe_mask, np.int64), None
        for s, (lo, hi) in spans.items():
            queries &= results.column_values(s, MARK)
            same = self.queries_if_constant(s, max(0, first - hi), last - lo)
            if same is not None:
                queries &= same
                continue
            now = _latest_member_times(results) if now is None else now
            queries &= self.queries_by_age(s, now - results.column_values(s, TIME))
        return queries

    def drop_answered(self, results: PartialMatches, stream: int) -> np.ndarray:
        """Return the queries of results without those for which a stored member is answered.

        ``stream``: that of the stored member.
        """
        assert results.queries is not None, "results of a run with queries serve some"
        queries, times = results.queries, results.column_values(stream, TIME)
        for bit, horizons in self.horizons.items():
            if (horizon := horizons[stream]) is not None:
                queries = np.where(times < horizon, queries & ~(1 << bit), queries)
        return queries

    def filter_wanted(
        self, partial: PartialMatches, rows: BlockRows, stream: int
    ) -> PartialMatches:
        """Return the partial results with which some query probes a block.

        The age of the block's youngest tuple decides (Lemma 9).
        """
        if partial.queries is None:
            partial.queries = self.result_bitmaps(partial)
        ages = np.maximum(0, _latest_member_times(partial) - rows.event_time_range()[1])
        keep = np.flatnonzero(partial.queries & self.queries_by_age(stream, ages))
        return partial if len(keep) == len(partial) else partial.take_positions(keep)

    def keep_wanted_pairs(self, pairs: CandidatePairs) -> CandidatePairs:
        """Return the pairs of partial results with which some query probes the row's block.

        Of several blocks that are probed at once, each has its own youngest tuple.
        """
        partial, rows = pairs.partial, pairs.rows
        assert partial.queries is not None and rows.sources is not None
        block = rows.sources[pairs.right]
        latest = _latest_member_times(partial)[pairs.left]
        ages = np.maximum(0, latest - _find_latest_times(rows, rows.sources)[block])
        wanted = partial.queries[pairs.left] & self.queries_by_age(pairs.stream, ages)
        return pairs.take_positions(np.flatnonzero(wanted))


def _find_latest_times(rows: BlockRows, sources: np.ndarray) -> np.ndarray:
    """Return the latest event time of each of several blocks, in microseconds.

    ``sources``: by row, the index of its block.
    """

    def find_latest() -> np.ndarray:
        times = rows.numpy_column(TIME)
        latest = np.full(int(sources.max(initial=0)) + 1, times.min(initial=0))
        np.maximum.at(latest, sources, times)
        return latest

    return rows.cached_column("latest time by block", find_latest)


def _list_floors(query: Query) -> dict[int, int | None]:
    floors = find_answer_floors(query)
    return {stream: floors[stream] for stream in query.answered_streams}


def _latest_member_times(partial: PartialMatches) -> np.ndarray:
    return np.asarray(np.maximum.reduce([partial.column_values(s, TIME) for s in partial.parts]))
