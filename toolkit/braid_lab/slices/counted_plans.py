"""Shared plans over Poisson arrivals of two streams, counted tuple by tuple. No Spark.

Source: Wang 2008, sections 8.1 and 8.2.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from braid.papers.slices.chain_optimizer import Chain

from braid_lab.slices.cost import SharedLoad
from braid_lab.workloads.poisson_arrivals import Arrivals

Side = tuple[int, ...]
PASS, FAIL, ALL = (0,), (1,), (0, 1)
"""The tuples of A in a join: those that pass the selection, those that fail it, or all."""


@dataclass(frozen=True)
class PlanJoin:
    """One join of a shared plan: ages from w_low to w_high (indices, w_0 = 0) for some of A.

    ``routed_windows`` is the number of windows that each result is compared with, and
    ``is_filtered`` whether it is filtered too.
    """

    low: int
    high: int
    side: Side = ALL
    routed_windows: int = 0
    is_filtered: bool = False


def plan_joins(q: SharedLoad, strategy: str, chain: Chain = ()) -> list[PlanJoin]:
    """Return the joins of "pull-up", "partition" or "state-slice".

    The last has a chain, by default Mem-Opt. Raises ValueError for another strategy.
    """
    n = len(q.windows)
    nodes = [0, *(q.windows.index(w) + 1 for w in chain or q.windows)]
    plans = {
        "pull-up": [PlanJoin(0, n, ALL, n - 1, q.has_selection)],
        "partition": [
            PlanJoin(0, q.unselected_queries, FAIL, q.unselected_queries - 1),
            PlanJoin(0, n, PASS, n - 1),
        ],
        "state-slice": [
            PlanJoin(
                i,
                j,
                PASS if i >= q.unselected_queries else ALL,
                j - i - 1,
                q.has_selection and i < q.unselected_queries,
            )
            for i, j in pairwise(nodes)
        ],
    }
    if strategy not in plans:
        raise ValueError(f"strategy is {strategy!r}; it must be one of {', '.join(plans)}")
    return plans[strategy]


@dataclass(frozen=True)
class TupleCounts:
    """Counts of two Poisson streams for ``seconds`` (the book's 90), from empty states.

    Arrays are by side of A (passes, fails) and by band of age (w_(k-1) to w_k).
    """

    queries: SharedLoad
    seconds: float = 90.0
    seed: int = 0

    @cached_property
    def a_times_micros(self) -> list[npt.NDArray[np.floating]]:
        """Times of A, in microseconds: those that pass the selection, those that fail.

        No tuple of B has the time of one of A.
        """
        times = self._poisson_arrivals.arrival_times(0) - 0.5
        passes = (
            np.random.default_rng([self.seed, 4]).random(len(times))
            < self.queries.selection_selectivity
        )
        return [times[passes], times[~passes]]

    @cached_property
    def b_times_micros(self) -> npt.NDArray[np.int64]:
        """Event times of B, in microseconds."""
        return self._poisson_arrivals.arrival_times(1)

    @property
    def _poisson_arrivals(self) -> Arrivals:
        return Arrivals((self.queries.rate,) * 2, self.seconds, seed=self.seed)

    @cached_property
    def pair_counts(self) -> npt.NDArray[np.int64]:
        """Pairs of tuples by their difference in time, (2, N)."""
        return np.array(
            [
                self._count_band_tuples(a, self.b_times_micros).sum(axis=1)
                + self._count_band_tuples(self.b_times_micros, a).sum(axis=1)
                for a in self.a_times_micros
            ]
        )

    @cached_property
    def match_counts(self) -> npt.NDArray[np.int64]:
        """Matching pairs by their difference in time, (2, N)."""
        return np.random.default_rng([self.seed, 5]).binomial(
            self.pair_counts, self.queries.join_selectivity
        )

    @cached_property
    def band_tuples(self) -> npt.NDArray[np.float64]:
        """Tuples in each band, of A's sides and of B, (3, N).

        They are means over the seconds after the longest window.
        """
        samples = np.arange(self.queries.windows[-1], self.seconds) * 1e6
        return np.array(
            [
                self._count_band_tuples(stored, samples).mean(axis=1)
                for stored in (*self.a_times_micros, self.b_times_micros)
            ]
        )

    def _count_band_tuples(
        self, stored: npt.NDArray[Any], moments: npt.NDArray[Any]
    ) -> npt.NDArray[np.int64]:
        """Return the number of tuples in each band at each moment, (N, moments)."""
        edges = np.array([0.0, *self.queries.windows]) * 1e6
        younger = np.searchsorted(stored, moments[None, :] - edges[:, None], "right")
        return younger[:-1] - younger[1:]

    @property
    def delivered_results(self) -> int:
        """Results, each counted once for every query that it serves."""
        plain = self.queries.unselected_queries
        each = [
            self.match_counts[ALL if k < plain else PASS, : k + 1].sum()
            for k in range(len(self.queries.windows))
        ]
        return int(sum(each))

    def stored_tuples(self, parts: Iterable[PlanJoin]) -> float:
        """Return the tuples in the states of a plan."""
        return float(
            sum(
                self.band_tuples[p.side, p.low : p.high].sum()
                + self.band_tuples[2, p.low : p.high].sum()
                for p in parts
            )
        )

    def probing_tuples(self, parts: Iterable[PlanJoin]) -> int:
        """Return the probing tuples, each counted at each join."""
        return sum(self._count_input_tuples(p.side) for p in parts)

    def _count_input_tuples(self, side: Side) -> int:
        return len(self.b_times_micros) + sum(len(self.a_times_micros[k]) for k in side)

    def comparisons(self, strategy: str, chain: Chain = ()) -> int:
        """Return the comparisons of a plan.

        They are those to probe, purge, route and filter results, select or split A, and unite
        results.
        """
        parts = plan_joins(self.queries, strategy, chain)
        joins = sum(
            self.pair_counts[p.side, p.low : p.high].sum()
            + self.match_counts[p.side, p.low : p.high].sum() * (p.routed_windows + p.is_filtered)
            for p in parts
        )
        selects = (
            sum(map(len, self.a_times_micros))
            if self.queries.has_selection and strategy != "pull-up"
            else 0
        )
        return int(joins + self.probing_tuples(parts) + selects + self.union_comparisons(strategy))

    def union_comparisons(self, strategy: str) -> int:
        """Return the comparisons of union operators.

        A chain has one for each punctuation of every query but the first; a partition has one for
        each result of its two joins.
        """
        plain, n = self.queries.unselected_queries, len(self.queries.windows)
        if strategy == "state-slice":
            return (plain - 1) * self._count_input_tuples(ALL) + (
                n - plain
            ) * self._count_input_tuples(PASS)
        return (
            int(sum(self.match_counts[:, :k].sum() for k in range(1, plain + 1)))
            if strategy == "partition"
            else 0
        )
