"""The budget of a shedder: the fraction r of all pairs to process, and the work that fills it.

An item is the work of a class of tuples against a basic window. Its volume counts pairs; its value
is the output of a pair. The share to take of each item is a fractional knapsack, for which the
greedy choice is optimal.

Source: Gedik 2007, sections 4.1 (r), 5.2 (Algorithm 4) and 5.3 (Algorithm 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Literal

import numpy as np
import numpy.typing as npt

Kind = Literal["fraction", "pairs", "seconds", "speed"]
KINDS: tuple[Kind, ...] = ("fraction", "pairs", "seconds", "speed")
MARGIN = 0.9
"""Fraction of the allowance to plan for, so that noise seldom exceeds it."""
LEAST = 1e-3
"""Minimum fraction; less probing does not help."""


def affordable_pairs(allowance: float, overhead: float, cost: float) -> float:
    """Return the pairs that fit a batch.

    ``allowance`` and ``overhead`` are seconds for each batch, ``cost`` is seconds for each pair. 0
    if the overhead exceeds the allowance.
    """
    return max(0.0, MARGIN * allowance - overhead) / cost


@dataclass(frozen=True, slots=True)
class Budget:
    """The limit on processing in a batch, of one ``kind``.

    A "fraction" of all pairs, a number of "pairs", "seconds", or the "speed" of event time relative
    to the clock.
    """

    kind: Kind
    amount: float

    @staticmethod
    def from_options(
        fraction: float | None = None,
        pairs: float | None = None,
        seconds: float | None = None,
        speed: float | None = None,
    ) -> Budget:
        """Return the budget that is given; a speed of 1 if none is.

        Raises ValueError for two, and for amounts out of range.
        """
        named = dict(zip(KINDS, (fraction, pairs, seconds, speed), strict=True))
        given = {kind: amount for kind, amount in named.items() if amount is not None}
        if len(given) > 1:
            raise ValueError(
                f"{' and '.join(given)} are given; a budget is one of {', '.join(KINDS)}"
            )
        for kind, amount in given.items():
            _check_budget(kind, amount)
            return Budget(kind, float(amount))
        return Budget("speed", 1.0)

    def allowed_seconds(self, event_time: int) -> float | None:
        """Return the seconds that a batch may take; None: no clock decides, or none was seen.

        ``event_time`` passed in the last batch, in microseconds.
        """
        if self.kind == "seconds":
            return self.amount
        return event_time / 1e6 / self.amount or None if self.kind == "speed" else None

    def affordable_pairs(
        self, allowance: float | None, cost: float, overhead: float, settled: float
    ) -> float | None:
        """Return the pairs that fit the budget.

        ``settled`` are pairs that cannot be shed. None: the budget does not limit the pairs, or
        nothing has been measured yet.
        """
        if self.kind == "pairs":
            return max(0.0, self.amount - settled)
        if allowance is None or not cost:
            return None
        return max(0.0, affordable_pairs(allowance, overhead, cost) - settled)

    def choose_fraction(
        self, volume: float, fits: float | None, current: float
    ) -> tuple[float, bool]:
        """Return r, and whether it is enough to keep to the budget.

        ``volume`` are all pairs, ``fits`` those that fit. ``current`` is r while that is unknown.
        """
        if self.kind == "fraction":
            return self.amount, True
        if fits is None:
            return current, True
        r = min(1.0, fits / volume) if volume else 1.0
        return max(r, LEAST), r >= LEAST

    def __str__(self) -> str:
        return f"{self.kind} {self.amount:g}"


def _check_budget(kind: Kind, amount: float) -> None:
    number = isinstance(amount, (int, float)) and not isinstance(amount, bool)
    if kind == "fraction":
        fits, accepted = number and 0 < amount <= 1, "greater than 0 and at most 1"
    elif kind == "pairs":
        fits, accepted = number and isfinite(amount) and amount >= 1, "a number of at least 1"
    else:
        fits, accepted = number and isfinite(amount) and amount > 0, "a number greater than 0"
    if not fits:
        raise ValueError(f"{kind} is {amount!r}; it must be {accepted}")


Floats = npt.NDArray[np.float64]


def fill_budget(values: Floats, volumes: Floats, budget: float, floor: float = 0.0) -> Floats:
    """Return shares in [floor, 1], one for each item, that use the budget and have the most value.

    ``values`` are by pair, ``volumes`` and ``budget`` in pairs. Of equal values the first is taken
    first. A budget below the volume of the floor gets the floor; one above all volumes gets 1.

    >>> fill_budget(np.array([1.0, 5.0, 2.0]), np.array([10.0, 10.0, 20.0]), 20.0).tolist()
    [0.0, 1.0, 0.5]
    """
    order = np.argsort(-values, kind="stable")
    room = (1 - floor) * volumes[order]
    left = budget - floor * volumes.sum()
    taken = np.clip(left - (np.cumsum(room) - room), 0.0, room)
    shares = np.full(len(values), floor)
    shares[order] += np.divide(
        taken, volumes[order], out=np.zeros(len(values)), where=volumes[order] > 0
    )
    return np.asarray(np.minimum(shares, 1.0))
