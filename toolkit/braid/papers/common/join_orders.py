"""Join orders, and estimates of their intermediate results from measured selectivities.

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
"""Number of partial join orders that a search keeps at each step."""
Order = tuple[int, ...]
"""The other streams, in the order in which they are visited."""


@dataclass(frozen=True)
class IntermediateGrowth:
    """The growth of an intermediate result when it probes the next stream: sigma * r * W of Eq. 3.

    ``matches`` give sigma, between all streams visited so far and the next one. A step that was
    never taken has the mean of those that were, or 1. ``rows`` are the live tuples by stream, which
    stand for r * W.
    """

    matches: Matches
    rows: Sequence[int]

    def growth_factor(self, visited: Order, stream: int) -> float:
        """Return the results per probe of ``stream`` after ``visited``.

        This is the fraction that has matched so far, times the rows of the stream.
        """
        return self._compute_growth_factor(tuple(sorted(visited)), stream)

    def _compute_growth_factor(self, visited: Order, stream: int) -> float:
        considered, matched = self.matches.get((visited, stream), (0.0, 0.0))
        return (matched / considered if considered else self._mean_selectivity) * self.rows[stream]

    @cached_property
    def _mean_selectivity(self) -> float:
        considered = sum(pairs for pairs, _ in self.matches.values())
        return (
            sum(matched for _, matched in self.matches.values()) / considered if considered else 1.0
        )

    def intermediate_counts(self, stream: int, order: Order) -> list[float]:
        """Return the intermediate results of one tuple: 1, then those of each hop but the last."""
        sizes = [1.0]
        for k, other in enumerate(order[:-1]):
            sizes.append(sizes[-1] * self.growth_factor((stream, *order[:k]), other))
        return sizes

    def best_join_orders(self, stream: int, most: int) -> list[Order]:
        """Return the orders with the fewest intermediate results, by a beam search (footnote 7)."""
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
