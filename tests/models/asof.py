"""The model of as-of joins, tuple by tuple: the partner of each left tuple, and its batch.

A left tuple waits until no better partner may come. Then it takes the best of the right tuples that
came in earlier batches and were not forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from models.clocks import (
    END,
    Clock,
    Time,
    find_effective_clocks,
    find_watermarks,
)
from models.kinds import Tuple

LEFT, RIGHT = 0, 1


@dataclass(frozen=True)
class AsOfRules:
    """The rules of an as-of join of two streams.

    - ``match``: latest (at or before), first (at or after) or nearest.
    - ``condition``: whether a left and a right tuple may be partners, without the order.
    - ``key``: the value of a tuple that the condition compares; within it a right tuple is
      dominated.
    - ``ties``: what is greatest in the partner among equally near ones.
    - ``order``: what is compared; None: the event time. A tuple without it has no partner.
    - ``window``: for another order than event time, the window of both streams: greatest distance
      of two event times, excluded. A left tuple waits as long; None: until the right stream ends.
    - ``tolerance``: greatest distance in the order; None: any.
    - ``is_strict``: whether a partner at distance 0 is none.
    - ``keeps_left``: whether a left tuple without partner is a result.
    - ``forgets_dominated``: whether a right tuple with a later one of its key, at or before every
      time that still matters, is forgotten.
    - ``lateness``, ``ahead``, ``idle``, ``ends``, ``closes``: as in ``kinds.JoinRules``.
    """

    match: str
    condition: Callable[[Tuple, Tuple], bool] = lambda left, right: True
    key: Callable[[Tuple], Any] = lambda each: None
    ties: Callable[[Tuple], Any] = lambda right: 0
    order: Callable[[Tuple], Any] | None = None
    window: int | None = None
    tolerance: Any = None
    is_strict: bool = False
    keeps_left: bool = True
    forgets_dominated: bool = True
    lateness: tuple[int, int] = (0, 0)
    ahead: int | None = None
    idle: int | None = None
    ends: tuple[int | None, int | None] = (None, None)
    closes: bool = True

    def read_order(self, each: Tuple) -> Any:
        """Return what is compared of a tuple; None: it has no partner."""
        return each.time if self.order is None else self.order(each)


class AsOfAnswer(NamedTuple):
    """The answer of a left tuple, its batch, and the id of its partner; None: it has none."""

    batch: int
    left: int
    right: int | None


def rank_partner(left: Tuple, right: Tuple, rules: AsOfRules) -> Any:
    """Return the rank of a right tuple for a left one, greatest best; None: it is no partner."""
    at, other = rules.read_order(left), rules.read_order(right)
    if at is None or other is None or not rules.condition(left, right):
        return None
    distance = max(at, other) - min(at, other)
    if rules.window is not None and abs(left.time - right.time) >= rules.window:
        return None
    if (
        (rules.match == "latest" and other > at)
        or (rules.match == "first" and other < at)
        or (rules.tolerance is not None and distance > rules.tolerance)
        or (rules.is_strict and other == at)
    ):
        return None
    return -distance, other > at, rules.ties(right)


def choose_partner(left: Tuple, rights: Sequence[Tuple], rules: AsOfRules) -> Tuple | None:
    """Return the best partner of a left tuple; None: it has none."""
    ranked = [(rank_partner(left, right, rules), right) for right in rights]
    partners = [each for each in ranked if each[0] is not None]
    return max(partners, key=lambda each: each[0])[1] if partners else None


def run_asof(tuples: Sequence[Tuple], rules: AsOfRules) -> list[AsOfAnswer]:
    """Return the answers of an as-of join, in order of their batches."""
    run = _Run(rules)
    last = max([t.batch for t in tuples], default=-1)
    for batch in range(last + 1):
        run.take_batch([t for t in tuples if t.batch == batch])
    run.is_closed = run.is_closed or rules.closes
    if all(clock == END for clock in run.find_clocks()) and run.waiting:
        run.take_batch([])
    return run.answers


class _Run:
    def __init__(self, rules: AsOfRules) -> None:
        self.rules, self.answers = rules, list[AsOfAnswer]()
        self.ticking = [Clock(rules.ahead), Clock(rules.ahead)]
        self.waiting, self.rights = list[Tuple](), list[Tuple]()
        self.batch, self.is_closed = -1, False

    def find_clocks(self) -> list[Time]:
        """Return the clocks as they stand after ``batch``."""
        ends = [end is not None and self.batch >= end for end in self.rules.ends]
        ended = [self.is_closed or each for each in ends]
        times = [clock.time for clock in self.ticking]
        return find_effective_clocks(times, ended, self.rules.idle)

    def take_batch(self, tuples: Sequence[Tuple]) -> None:
        """Answer the left tuples that are due, then take the new tuples."""
        rules, clocks = self.rules, self.find_clocks()
        self.batch += 1
        watermarks = find_watermarks(clocks, rules.lateness)
        limit = self._find_limit(watermarks[LEFT])
        due = [t for t in self.waiting if limit is not None and t.time < limit]
        for left in due:
            self._add_answer(left, choose_partner(left, self.rights, rules))
        self.waiting = [t for t in self.waiting if t not in due]
        for each in tuples:
            if not each.meets or each.time is None or rules.read_order(each) is None:
                if each.stream == LEFT:
                    self._add_answer(each, None)
            else:
                (self.waiting if each.stream == LEFT else self.rights).append(each)
        self._forget_useless_tuples(watermarks[RIGHT], limit)
        for stream in (LEFT, RIGHT):
            usable = [t for t in tuples if t.stream == stream and t.meets and t.time is not None]
            self.ticking[stream].take_batch([t.time for t in usable])

    def _find_limit(self, watermark: Time) -> Time:
        """Return the time below which no better partner of a left tuple may come any more."""
        rules = self.rules
        if watermark in (None, END):
            return watermark
        if rules.order is not None:
            return None if rules.window is None else watermark - rules.window + 1
        if rules.match == "latest":
            return watermark
        return None if rules.tolerance is None else watermark - rules.tolerance

    def _add_answer(self, left: Tuple, partner: Tuple | None) -> None:
        if partner is not None or self.rules.keeps_left:
            right = None if partner is None else partner.id
            self.answers.append(AsOfAnswer(self.batch, left.id, right))

    def _forget_useless_tuples(self, expected: Time, limit: Time) -> None:
        """Forget the right tuples that no left tuple can take, unless it comes late.

        Parameters
        ----------
        expected
            The earliest time still expected of the left stream.
        limit
            The time below which left tuples are answered.
        """
        rules = self.rules
        if expected is None or limit is None:
            return
        low = min(expected, limit)
        if rules.order is not None:
            reach = None if rules.window is None else rules.window - 1
        else:
            reach = 0 if rules.match == "first" else rules.tolerance
        if reach is not None:
            self.rights = [t for t in self.rights if t.time + reach >= low]
        if rules.match == "latest" and rules.order is None and rules.forgets_dominated:
            self.rights = [t for t in self.rights if not self._is_dominated(t, low)]

    def _is_dominated(self, right: Tuple, low: Time) -> bool:
        """Return whether a better tuple of its key is at or before all times that still matter.

        One that is strictly before ``low`` serves where equal times are left out, too.
        """
        rules = self.rules
        rank = right.time, rules.ties(right)
        return any(
            rules.key(other) == rules.key(right)
            and (other.time, rules.ties(other)) > rank
            and (other.time < low if rules.is_strict else other.time <= low)
            for other in self.rights
        )
