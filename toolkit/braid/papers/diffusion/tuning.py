"""The search for the best segment length by sampling. Source: Gu, Yu and Wang, ICDE 2007, section
3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

BETTER = 0.05
"""A length is better than another when it costs less by more than this fraction: less is noise."""
DRIFT = 0.25
"""A search that has ended begins again when what is measured has changed by this fraction."""


@dataclass(frozen=True, slots=True)
class Search:
    """A climb from length to length, one sample each; lengths are in batches.

    ``first`` is the length that the search began with, ``best`` the best so far, ``length`` the one
    that is being tried (T). ``cost`` is that of the best, None before the first sample. ``way`` is
    +1 while lengths grow, -1 while they shrink, 0 when the search has ended. ``busy``, ``done`` and
    ``batches`` add up the sample that is being taken.
    """

    first: int
    best: int
    length: int
    cost: float | None = None
    way: int = 1
    busy: float = 0.0
    done: float = 0.0
    batches: int = 0

    @staticmethod
    def at(length: int) -> Search:
        """A search that begins with this length."""
        return Search(length, length, length)

    def observe(self, busy: float, done: float) -> Search:
        """One more batch in the sample: the load of the busiest host, and the work that all hosts
        did.
        """
        return replace(self, busy=self.busy + busy, done=self.done + done, batches=self.batches + 1)

    def decide(self, step: int) -> Search:
        """What to try after a whole sample with ``done`` > 0; ``step`` is Delta T.

        The cost is the load of the busiest host for the work done. A host that has more to do than
        time is fully loaded, whatever the length; then the cost falls when more work is done, which
        is performance. Where all work is done it falls when the work spreads more evenly or less is
        copied. Longer segments are tried first and kept while each is better than the one before;
        when already the first is not, shorter ones are tried the same way.
        """
        cost, best = self.busy / self.done, self.cost
        if best is None or (not self.way and abs(cost - best) > DRIFT * best):
            return replace(Search.at(self.best), cost=cost)._try(1, step)
        if not self.way:
            return replace(Search.at(self.best), cost=best, way=0)
        if cost < (1 - BETTER) * best:
            return Search(self.first, self.length, self.length, cost)._try(self.way, step)
        unmoved = self.way > 0 and self.best == self.first
        return Search(self.first, self.best, self.best, best)._try(-1 if unmoved else 0, step)

    def _try(self, way: int, step: int) -> Search:
        length = self.best + way * step
        return (
            replace(self, length=length, way=way)
            if length >= 1
            else replace(self, length=self.best, way=0)
        )
