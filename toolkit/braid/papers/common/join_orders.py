"""Join orders, and how many intermediate results they make, from measured selectivities.

Source: Gu, Yu and Wang, "Adaptive Load Diffusion for Multiway Windowed Stream Joins", ICDE 2007,
section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest

from braid.core.facts import Matches

TRIED = 8
"""Join orders that placements follow at a time while they seek the best one."""
Order = tuple[int, ...]
"""The other streams, in the order in which they are visited."""


@dataclass(frozen=True)
class IntermediateGrowth:
    """How many intermediate results one becomes when it probes the next stream: sigma * r * W of
    Eq. 3.

    ``matches`` give sigma, between all streams visited so far and the next one; a step that was
    never taken has the mean of those that were, or 1. ``rows`` are the live tuples by stream, which
    is what r * W stands for.
    """

    matches: Matches
    rows: Sequence[int]

    def growth_factor(self, visited: Order, stream: int) -> float:
        """Results per probe of ``stream`` after ``visited``: the share that matched so far, times
        its rows.
        """
        return self._compute_growth_factor(tuple(sorted(visited)), stream)

    def _compute_growth_factor(self, visited: Order, stream: int) -> float:
        considered, found = self.matches.get((visited, stream), (0.0, 0.0))
        return (found / considered if considered else self._mean_selectivity) * self.rows[stream]

    @cached_property
    def _mean_selectivity(self) -> float:
        considered = sum(pairs for pairs, _ in self.matches.values())
        return (
            sum(matched for _, matched in self.matches.values()) / considered if considered else 1.0
        )

    def intermediate_counts(self, stream: int, order: Order) -> list[float]:
        """What one tuple of a stream becomes: 1, and its intermediate results after each hop but
        the last.
        """
        sizes = [1.0]
        for k, other in enumerate(order[:-1]):
            sizes.append(sizes[-1] * self.growth_factor((stream, *order[:k]), other))
        return sizes

    def best_join_orders(self, stream: int, most: int) -> list[Order]:
        """The orders with the fewest intermediate results, found hop by hop, keeping the best
        (footnote 7).
        """
        partial: list[tuple[float, float, Order]] = [(0.0, 1.0, ())]
        for hop in range(1, len(self.rows)):
            sent_on = hop < len(self.rows) - 1
            longer = []
            for total, chi, order in partial:
                visited = tuple(sorted((stream, *order)))
                for other in range(len(self.rows)):
                    if other not in visited:
                        more = chi * self._compute_growth_factor(visited, other)
                        longer.append((total + more * sent_on, more, (*order, other)))
            partial = nsmallest(most, longer)
        return [order for _, _, order in partial]
