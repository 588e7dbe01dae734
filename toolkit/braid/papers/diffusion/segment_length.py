"""The segment length of aligned tuple routing: its overhead in closed form, and its tuning.

Windows and lengths share one unit of time; rates are tuples per that unit. None stands for full
history.

Source: Gu, Yu and Wang, "Adaptive Load Diffusion for Multiway Windowed Stream Joins", ICDE 2007,
section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

Windows = Sequence[float | None]


def atr_overhead(
    rates: Sequence[float], windows: Windows, master: int, length: float, hosts: int | None = None
) -> float:
    """Return O_ATR: extra tuples per unit of time for segments of ``length`` T (Eq. 2).

    A tuple has at most one copy per host, which the equation leaves out. With ``hosts``, J, each
    slave tuple counts for at most J - 1 extra ones. Without it, full history costs infinity.
    """
    most = inf if hosts is None else hosts - 1
    return sum(
        min(_combine_windows(windows, i, master) / length, most) * r
        for i, r in enumerate(rates)
        if i != master
    )


def _combine_windows(windows: Windows, slave: int, master: int) -> float:
    a, b = windows[slave], windows[master]
    return inf if a is None or b is None else a + b


BETTER = 0.05
"""A length is better than another if it costs less by more than this fraction: less is noise."""
DRIFT = 0.25
"""An ended search begins again if its measured cost has changed by this fraction."""


@dataclass(frozen=True, slots=True)
class LengthSearch:
    """A hill climb over segment lengths, one sample each; lengths are in batches.

    - ``first_length``: the length that the search began with.
    - ``best_length``: the best so far; ``cost`` is its cost, None before the first sample.
    - ``length``: the one under test (T).
    - ``direction``: +1 while lengths grow, -1 while they shrink, 0 when the search has ended.
    - ``max_host_load``, ``completed_work``, ``batches``: sums of the current sample.
    """

    first_length: int
    best_length: int
    length: int
    cost: float | None = None
    direction: int = 1
    max_host_load: float = 0.0
    completed_work: float = 0.0
    batches: int = 0

    @staticmethod
    def start_at(length: int) -> LengthSearch:
        """Return a search that begins with this length."""
        return LengthSearch(length, length, length)

    def add_sample(self, busy: float, done: float) -> LengthSearch:
        """Return the search with one more batch in the sample.

        ``busy`` is the load of the busiest host, ``done`` the work of all hosts.
        """
        return replace(
            self,
            max_host_load=self.max_host_load + busy,
            completed_work=self.completed_work + done,
            batches=self.batches + 1,
        )

    def next_length(self, step: int) -> LengthSearch:
        """Return the search after a whole sample with work done; ``step`` is Delta T.

        The cost is the load of the busiest host for the work done. A host that has more to do than
        time is fully loaded at any length. Then the cost falls if more work is done, which is
        performance. If all work is done, it falls if the work spreads more evenly or less is
        copied. Longer segments are tried first and kept while each is better than the one before.
        If the first longer one is not better, shorter ones are tried in the same way.
        """
        cost, best = self.max_host_load / self.completed_work, self.cost
        if best is None or (not self.direction and abs(cost - best) > DRIFT * best):
            return replace(LengthSearch.start_at(self.best_length), cost=cost)._try_length(1, step)
        if not self.direction:
            return replace(LengthSearch.start_at(self.best_length), cost=best, direction=0)
        if cost < (1 - BETTER) * best:
            return LengthSearch(self.first_length, self.length, self.length, cost)._try_length(
                self.direction, step
            )
        unmoved = self.direction > 0 and self.best_length == self.first_length
        return LengthSearch(
            self.first_length, self.best_length, self.best_length, best
        )._try_length(-1 if unmoved else 0, step)

    def _try_length(self, way: int, step: int) -> LengthSearch:
        length = self.best_length + way * step
        return (
            replace(self, length=length, direction=way)
            if length >= 1
            else replace(self, length=self.best_length, direction=0)
        )
