"""Shared plans over Poisson arrivals of two streams, counted tuple by tuple: Wang 2008, sections
8.1 and 8.2. No Spark.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from braid.papers.slices.cost import Shared
from braid.papers.slices.cuts import Chain
from braid.workloads.arrivals import Arrivals

Side = tuple[int, ...]
PASS, FAIL, ALL = (0,), (1,), (0, 1)
"""The tuples of A that a join sees: those that pass the selection, that fail it, or all."""


@dataclass(frozen=True)
class Part:
    """One join of a shared plan: ages from w_low to w_high (indices, w_0 = 0) for some of A.

    ``routed`` windows are compared with each result, and ``filtered`` says whether it is filtered
    too.
    """

    low: int
    high: int
    side: Side = ALL
    routed: int = 0
    filtered: bool = False


def plan(q: Shared, strategy: str, chain: Chain = ()) -> list[Part]:
    """The joins of "pull-up", "partition" or "state-slice" (with a chain, by default Mem-Opt).
    KeyError for another strategy.
    """
    n = len(q.windows)
    nodes = [0, *(q.windows.index(w) + 1 for w in chain or q.windows)]
    return {
        "pull-up": [Part(0, n, ALL, n - 1, q.selective)],
        "partition": [Part(0, q.plain, FAIL, q.plain - 1), Part(0, n, PASS, n - 1)],
        "state-slice": [
            Part(i, j, PASS if i >= q.plain else ALL, j - i - 1, q.selective and i < q.plain)
            for i, j in pairwise(nodes)
        ],
    }[strategy]


@dataclass(frozen=True)
class Run:
    """Two Poisson streams that run for ``seconds`` (the book's 90), from empty states, and what
    queries over them find.

    Arrays are by side of A (passes, fails) and by band of age (w_(k-1) to w_k).
    """

    queries: Shared
    seconds: float = 90.0
    seed: int = 0

    @cached_property
    def a(self) -> list[npt.NDArray[np.floating]]:
        """Times of A, in microseconds: those that pass the selection, those that fail. No tuple of
        B has the time of one of A.
        """
        times = self._arrivals.times(0) - 0.5
        passes = np.random.default_rng([self.seed, 4]).random(len(times)) < self.queries.sigma
        return [times[passes], times[~passes]]

    @cached_property
    def b(self) -> npt.NDArray[np.int64]:
        """Event times of stream b."""
        return self._arrivals.times(1)

    @property
    def _arrivals(self) -> Arrivals:
        return Arrivals((self.queries.rate,) * 2, self.seconds, seed=self.seed)

    @cached_property
    def pairs(self) -> npt.NDArray[np.int64]:
        """Pairs of tuples by their difference in time, (2, N)."""
        return np.array(
            [self._held(a, self.b).sum(axis=1) + self._held(self.b, a).sum(axis=1) for a in self.a]
        )

    @cached_property
    def matches(self) -> npt.NDArray[np.int64]:
        """Those of them that match, (2, N)."""
        return np.random.default_rng([self.seed, 5]).binomial(self.pairs, self.queries.join)

    @cached_property
    def state(self) -> npt.NDArray[np.float64]:
        """Tuples in each band, the mean over the seconds after the longest window; of A's sides and
        of B, (3, N).
        """
        samples = np.arange(self.queries.windows[-1], self.seconds) * 1e6
        return np.array([self._held(stored, samples).mean(axis=1) for stored in (*self.a, self.b)])

    def _held(self, stored: npt.NDArray[Any], moments: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """How many tuples each band has at each moment, (N, moments)."""
        edges = np.array([0.0, *self.queries.windows]) * 1e6
        younger = np.searchsorted(stored, moments[None, :] - edges[:, None], "right")
        return younger[:-1] - younger[1:]

    @property
    def delivered(self) -> int:
        """Results, once for every query that they are for."""
        plain = self.queries.plain
        each = [
            self.matches[ALL if k < plain else PASS, : k + 1].sum()
            for k in range(len(self.queries.windows))
        ]
        return int(sum(each))

    def stored(self, parts: Iterable[Part]) -> float:
        """Tuples in the states of a plan."""
        return float(
            sum(
                self.state[p.side, p.low : p.high].sum() + self.state[2, p.low : p.high].sum()
                for p in parts
            )
        )

    def passed(self, parts: Iterable[Part]) -> int:
        """Tuples that come to probe, each counted at each join."""
        return sum(self._tuples(p.side) for p in parts)

    def _tuples(self, side: Side) -> int:
        return len(self.b) + sum(len(self.a[k]) for k in side)

    def compared(self, strategy: str, chain: Chain = ()) -> int:
        """Comparisons of a plan: to probe, purge, route and filter results, select or split A, and
        unite results.
        """
        parts = plan(self.queries, strategy, chain)
        joins = sum(
            self.pairs[p.side, p.low : p.high].sum()
            + self.matches[p.side, p.low : p.high].sum() * (p.routed + p.filtered)
            for p in parts
        )
        selects = sum(map(len, self.a)) if self.queries.selective and strategy != "pull-up" else 0
        return int(joins + self.passed(parts) + selects + self.unite(strategy))

    def unite(self, strategy: str) -> int:
        """Comparisons of union operators. A chain: one for each punctuation of every query but the
        first. A partition: one for each result of its two joins.
        """
        plain, n = self.queries.plain, len(self.queries.windows)
        if strategy == "state-slice":
            return (plain - 1) * self._tuples(ALL) + (n - plain) * self._tuples(PASS)
        return (
            int(sum(self.matches[:, :k].sum() for k in range(1, plain + 1)))
            if strategy == "partition"
            else 0
        )
