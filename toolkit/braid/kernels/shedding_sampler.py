"""Sample the tuples that take part if a join sheds load. NumPy only.

A tuple is sampled by a hash of itself and of the block that it would probe, so a retried task
samples the same tuples.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from braid.core.reserved_columns import DRAW, KEPT, WORTH
from braid.core.shedding_plan import (
    LOWEST,
    Item,
    ItemYield,
    ResultUtility,
    SheddingPlan,
    WeightedTerm,
    utility_of_type,
)
from braid.kernels.hashing import Uint64, distinct_hashes, draw_numbers, sampling_hashes
from braid.kernels.host_block_rows import BlockRows, PartialMatches, take_block_rows
from braid.kernels.order_independent_sums import SIGNS, OrderIndependentSum, sketch_values

Floats = npt.NDArray[np.float64]
ARRIVAL = (1 << 64) - 1
"""Block number used to sample whether a tuple is admitted at all."""
_OF_RESULTS: tuple[Literal["estimated", "utility", "estimated_utility"], ...] = (
    "estimated",
    "utility",
    "estimated_utility",
)
"""Sums to which results without weight and of utility 1 contribute."""


def sample_arrivals(rows: pa.RecordBatch, share: float) -> pa.RecordBatch:
    """Return the tuples admitted for a share, with a column that holds the share."""
    numbers = rows.column(DRAW).to_numpy().astype(np.uint64)
    chosen = rows
    if share < 1:
        chosen = take_block_rows(rows, np.flatnonzero(draw_numbers(numbers, ARRIVAL) < share))
    return chosen.append_column(KEPT, pa.array(np.full(chosen.num_rows, share)))


@dataclass
class ItemTally:
    """The counts of an item on the hosts of a task, by type of the fresh tuple."""

    considered_pairs: Floats
    matches: Floats
    value: OrderIndependentSum
    skipped_pairs: float = 0.0

    @staticmethod
    def empty(kinds: int) -> ItemTally:
        """Return a tally of zeros."""
        return ItemTally(np.zeros(kinds), np.zeros(kinds), OrderIndependentSum(kinds))


@dataclass
class SampledMeeting:
    """The probe of a block by a sample of a fresh block.

    - ``partial``: the sample.
    - ``skipped_tuples``: number of tuples not sampled.
    - ``size``: rows of the probed block.
    - ``kinds``: type of each tuple of the fresh block; None: one type.
    - ``matched``: by tuple, matches found so far; None: not weighted.
    """

    partial: PartialMatches
    skipped_tuples: int
    stream: int
    size: int
    kinds: npt.NDArray[np.int64] | None
    tally: ItemTally
    sampler: PairSampler
    matched: Floats | None = None

    def __post_init__(self) -> None:
        rows, at = self.partial.parts[self.stream]
        self.tally.skipped_pairs += self.skipped_tuples * self.size
        self._add_by_type(self.tally.considered_pairs, at, np.full(len(at), float(self.size)))
        if self.partial.weights is not None:
            self.matched = np.zeros(rows.batch.num_rows)

    def count_matches(self, matches: PartialMatches) -> None:
        """Count matches of the first hop."""
        at, served = matches.parts[self.stream][1], _count_served_queries(matches)
        self._add_by_type(self.tally.matches, at, served)
        if self.sampler.utility_rule.typed:
            kinds = None if self.kinds is None else self.kinds[at]
            self.tally.value.add_values(self.sampler.result_utilities(matches), served, kinds)
        if self.matched is not None:
            self.matched += np.bincount(at, served, len(self.matched))

    def finish(self) -> None:
        """Add results^2 (1 - share) / share^2 to the variance for each sampled tuple."""
        if self.matched is not None and self.partial.weights is not None:
            y, w = self.matched[self.partial.parts[self.stream][1]], self.partial.weights
            if self.sampler.streams == 2:
                self.sampler.variance.add_values(w**2 - w, y**2)

    def _add_by_type(self, sums: Floats, at: npt.NDArray[np.int64], amounts: Floats) -> None:
        if self.kinds is None:
            sums[0] += amounts.sum()
        else:
            sums += np.bincount(self.kinds[at], amounts, len(sums))


@dataclass
class PairSampler:
    """A sampler of fresh tuples, by a shedding plan, for the hosts of one task.

    It counts the outcome, and weights complete results.

    If the variance does not follow from the matches of each host alone, it is sketched. Results of
    more than two ``streams`` are sketched by the draw of the first hop. If tuples are skipped at
    arrival, results are sketched by the draws of their members.

    - ``full_pairs``: items of blocks that all tuples probed, with their pairs and matches.
    - ``full_matches``: number of results without weight and of utility 1.
    """

    plan: SheddingPlan
    utility_rule: ResultUtility
    streams: int = 2
    tallies: dict[Item, ItemTally] = field(default_factory=dict)
    full_pairs: list[tuple[Item, float, float]] = field(default_factory=list)
    full_matches: int = 0
    estimated_results: OrderIndependentSum = field(default_factory=OrderIndependentSum)
    variance: OrderIndependentSum = field(default_factory=OrderIndependentSum)
    utility: OrderIndependentSum = field(default_factory=OrderIndependentSum)
    estimated_utility: OrderIndependentSum = field(default_factory=OrderIndependentSum)
    sketches: list[Floats] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.plan.keep_shares:
            number = 1 if self.utility_rule.is_by_value else 2 if self.streams == 2 else 0
        else:
            number = 1 if self.streams > 2 else 0
        self.sketches = [np.zeros(SIGNS) for _ in range(number)]

    @property
    def has_variance(self) -> bool:
        """Whether the variance can be estimated.

        It cannot for three or more streams whose tuples are skipped one by one.
        """
        return not self.plan.keep_shares or self.utility_rule.is_by_value or self.streams == 2

    def sample_pair(
        self,
        partial: PartialMatches,
        stream: int,
        window: int,
        fresh: int,
        block: int,
        rows: BlockRows,
    ) -> SampledMeeting | None:
        """Return the probe of ``block`` by a weighted sample of the block ``fresh``.

        ``window`` is the stream of ``block``.

        None: the plan has no share for them.
        """
        item = self._make_item_key(stream, window, block)
        by_type = self.plan.shares.get(item)
        if by_type is None:
            return None
        part, at = partial.parts[stream]
        kinds, guard = self._find_type_indexes(part, stream), self._limit_share(fresh, part)
        drawn = partial
        if guard * min(by_type) < 1:
            each = np.array(by_type) * guard
            shares = np.full(len(at), each[0]) if kinds is None else each[kinds[at]]
            chosen = np.flatnonzero(draw_numbers(_draw_hashes(part), block)[at] < shares)
            drawn = partial.take_positions(chosen)
            drawn.weights = 1 / shares[chosen]
            if self.streams > 2:
                drawn.sampling_hashes = sampling_hashes(_draw_hashes(part), block)[at[chosen]]
        left, size = len(partial) - len(drawn), rows.batch.num_rows
        return SampledMeeting(
            drawn, left, stream, size, kinds, self._get_tally(item, len(by_type)), self
        )

    def takes_all_tuples(self, rows: BlockRows) -> bool:
        """Return whether all tuples of a fresh block probe all others and have equal utility."""
        return not self.utility_rule.typed and self.plan.is_full_join(rows.batch.num_rows)

    def meets_all(
        self, partial: PartialMatches, stream: int, window: int, fresh: int, block: int
    ) -> bool:
        """Return whether all tuples of a fresh block probe another block and have equal utility.

        Their pairs are then counted by ``count_full_meeting`` and not by tuple.
        """
        if self.utility_rule.typed:
            return False
        by_type = self.plan.shares.get(self._make_item_key(stream, window, block), (1.0,))
        return min(by_type) * self._limit_share(fresh, partial.parts[stream][0]) >= 1

    def count_full_meeting(
        self, stream: int, window: int, block: int, pairs: int, matches: float
    ) -> None:
        """Count the pairs and matches of a block that all tuples probed."""
        item = self._make_item_key(stream, window, block)
        if item in self.plan.shares:
            self.full_pairs.append((item, float(pairs), matches))

    def _make_item_key(self, stream: int, window: int, block: int) -> Item:
        return stream, window, self.plan.basic_windows.get(block, -1)

    def _limit_share(self, fresh: int, rows: BlockRows) -> float:
        """Return the factor for the shares of a fresh block.

        It is below 1 if more tuples arrived than expected.
        """
        expected = self.plan.expected_tuples.get(fresh, 0.0)
        return min(1.0, expected / rows.batch.num_rows) if expected else 1.0

    def _get_tally(self, item: Item, kinds: int) -> ItemTally:
        if item not in self.tallies:
            self.tallies[item] = ItemTally.empty(kinds)
        return self.tallies[item]

    def _find_type_indexes(self, rows: BlockRows, stream: int) -> npt.NDArray[np.int64] | None:
        """Return, by row, the index of its type in the plan; None if there is one type.

        An unknown type counts as the next one of higher utility.
        """
        types = self.plan.types[stream] if self.plan.types else ()
        if len(types) < 2:
            return None
        indexes = np.searchsorted(np.array(types), utility_types(rows))
        return np.minimum(indexes, len(types) - 1)

    def result_utilities(self, results: PartialMatches) -> Floats:
        """Return the utility of each result, from the members that it has so far."""
        if not self.utility_rule.typed:
            return np.ones(len(results))
        members = np.array([_row_utilities(rows)[at] for rows, at in results.parts.values()])
        return np.asarray(
            members.max(axis=0) if self.utility_rule.combine == "max" else members.mean(0)
        )

    def result_weights(self, results: PartialMatches) -> Floats | None:
        """Count complete results and return their weights; None: all are 1."""
        if results.weights is None and not (self.plan.keep_shares or self.utility_rule.typed):
            self.full_matches += (
                len(results)
                if results.queries is None
                else int(_count_served_queries(results).sum())
            )
            return None
        weights = np.ones(len(results)) if results.weights is None else results.weights
        weights = weights * self._arrival_weights(results)
        served, value = _count_served_queries(results), self.result_utilities(results)
        self._add_to_sketches(results, weights, served)
        self.estimated_results.add_values(weights, served)
        self.utility.add_values(value, served)
        self.estimated_utility.add_values(value * weights, served)
        return weights

    def _add_to_sketches(self, results: PartialMatches, weights: Floats, served: Floats) -> None:
        """Add results to the sketches.

        They are sketched by the draw of the first hop, by the join value, or by each of two
        members. A result shares both members with itself, so it is counted in both; the variance is
        corrected for that.
        """
        if not self.sketches:
            return
        alone = np.sqrt(weights**2 - weights) * served
        if not self.plan.keep_shares:
            if results.sampling_hashes is not None:
                self.sketches[0] += sketch_values(results.sampling_hashes, alone)
            return
        thrown = [
            sampling_hashes(rows.numpy_column(DRAW)[at].astype(np.uint64), ARRIVAL)
            for rows, at in results.parts.values()
        ]
        if self.utility_rule.is_by_value:
            self.sketches[0] += sketch_values(thrown[0], alone)
            return
        a, b = 1 / self._arrival_shares(results)
        self.sketches[0] += sketch_values(thrown[0], np.sqrt(a**2 - a) * b * served)
        self.sketches[1] += sketch_values(thrown[1], np.sqrt(b**2 - b) * a * served)
        self.variance.add_values(-a * b * (a - 1) * (b - 1), served**2)

    def _arrival_shares(self, results: PartialMatches) -> Floats:
        """Return, by member, the share of tuples admitted when it arrived; 1 if all were."""
        shares = [
            rows.numpy_column(KEPT)[at] if KEPT in rows.batch.schema.names else np.ones(len(at))
            for rows, at in results.parts.values()
        ]
        return np.array(shares)

    def _arrival_weights(self, results: PartialMatches) -> Floats | float:
        """Return 1 / the probability that all members of a result were admitted."""
        if not self.plan.keep_shares:
            return 1.0
        entered = self._arrival_shares(results)
        chance = entered.min(axis=0) if self.utility_rule.is_by_value else entered.prod(axis=0)
        return np.asarray(1 / chance)

    def item_yields(self) -> list[ItemYield]:
        """Return the yields of the items. Their value is among the terms.

        An item occurs twice if all tuples probed only some of its blocks; ``ItemYield.sum_yields``
        adds them.
        """
        sums: dict[Item, tuple[float, float]] = {}
        for item, pairs, matches in self.full_pairs:
            before = sums.get(item, (0.0, 0.0))
            sums[item] = before[0] + pairs, before[1] + matches
        plain = (self._make_unsampled_yield(item, *each) for item, each in sums.items())
        drawn = (
            ItemYield(
                *item,
                tuple(t.considered_pairs.tolist()),
                tuple(t.matches.tolist()),
                (0.0,) * len(t.matches),
                t.skipped_pairs,
            )
            for item, t in self.tallies.items()
        )
        return [*plain, *drawn]

    def _make_unsampled_yield(self, item: Item, pairs: float, matches: float) -> ItemYield:
        """Return the yield of blocks that all tuples probed.

        Their tuples have one type, the first.
        """
        others = (0.0,) * (len(self.plan.shares[item]) - 1)
        return ItemYield(*item, (pairs, *others), (matches, *others), (0.0, *others), 0.0)

    def weighted_terms(self) -> list[WeightedTerm]:
        """Return the terms of all sums."""
        terms = [
            WeightedTerm(of, None, 0, 1.0, float(self.full_matches))
            for of in _OF_RESULTS
            if self.full_matches
        ]
        terms += [
            *self.estimated_results.weighted_terms("estimated"),
            *self.variance.weighted_terms("variance"),
        ]
        terms += self.utility.weighted_terms("utility")
        terms += self.estimated_utility.weighted_terms("estimated_utility")
        for item, t in sorted(self.tallies.items()):
            terms += t.value.weighted_terms("value", item)
        return terms


def _draw_hashes(rows: BlockRows) -> Uint64:
    """Return the distinct hashes of a block's tuples; cached."""
    return rows.cached_column("drawn by", lambda: distinct_hashes(rows.batch))


def utility_types(rows: BlockRows) -> npt.NDArray[np.int64]:
    """Return, by row, the code of its type: 10 ln V, rounded.

    It is LOWEST unless V is a number above 0.
    """

    return rows.cached_column("of type", lambda: classify_utilities(rows.numpy_column(WORTH)))


def classify_utilities(worth: Floats) -> npt.NDArray[np.int64]:
    """Return the codes of types of tuples with these utilities."""
    counts = (worth > 0) & (worth < np.inf)
    codes = np.rint(10 * np.log(np.where(counts, worth, 1.0)))
    return np.where(counts, codes, LOWEST).astype(np.int64)


def _row_utilities(rows: BlockRows) -> Floats:
    """Return, by row, the utility of its type."""

    def valued() -> Floats:
        distinct, at = np.unique(utility_types(rows), return_inverse=True)
        return np.array([utility_of_type(code) for code in distinct.tolist()])[at]

    return rows.cached_column("of utility", valued)


def _count_served_queries(results: PartialMatches) -> Floats:
    """Return, by result, how often it counts: once, or for each query that it serves."""
    if results.queries is None:
        return np.ones(len(results))
    return np.bitwise_count(results.queries).astype(float)
