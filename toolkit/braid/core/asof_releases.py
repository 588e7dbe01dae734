"""Releases of an as-of join: when stored tuples take their partners, and what is forgotten.

A tuple of the first stream (the *left* one) does not probe when it comes. It waits until no better
partner may come, that is, until it is below the horizon of its stream. The next batch *releases*
it: it takes the best of the tuples of the second stream that earlier batches stored. So it meets
each block of the second stream once, and these tuples never probe.

The releases of a batch follow from the state before it. All placements therefore release a tuple in
the same batch. In a run that serves many queries, each as-of query has releases of its own. The
functions are pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from braid.core.plan import Block, Hop, Keys, Plan, Release

if TYPE_CHECKING:
    from braid.core.compaction import Retention
    from braid.core.horizon import Horizon, Reach

LEFT, RIGHT = 0, 1
"""The streams of an as-of join."""
AFTER_ALL = (1 << 63) - 1
"""Limit that is after all event times, as JSON has no infinity."""

MayJoin = Callable[[Block, Block], bool]
"""Returns whether the routing keys of two blocks allow their tuples to join."""


class ReleaseState(NamedTuple):
    """The progress of the releases of a run.

    - ``until``: event time in microseconds below which the left tuples of older blocks are
      released; None: none are.
    - ``low``: event time of left tuples, in microseconds, for which partners are kept. A tuple
      below it has come late. It never falls; None: all are kept.
    - ``waiting``: left tuples that are not released.
    """

    until: int | None = None
    low: int | None = None
    waiting: int = 0

    def advance_with_retention(self, retention: Retention) -> ReleaseState:
        """Return the state after a batch with this retention."""
        until, low = retention.horizons[LEFT], retention.watermarks[RIGHT]
        return ReleaseState(to_limit(until), to_limit(low), self.waiting)

    def count_waiting(self, received: int, released: int) -> ReleaseState:
        """Return the state with the left tuples that a batch received, without those released."""
        return self._replace(waiting=self.waiting + received - released)


NOTHING_RELEASED = ReleaseState()
"""The state before the first batch."""


def to_limit(time: float | None) -> int | None:
    """Return an event time, or END, as a whole number of microseconds."""
    return None if time is None else int(min(time, AFTER_ALL))


def limit_asof_retention(retention: Retention, reach: Reach, state: ReleaseState) -> Retention:
    """Return how long an as-of join holds its tuples.

    Parameters
    ----------
    retention
        How long an inner join of the same bounds holds them.
    reach
        Bounds of event times.
    state
        The state before the batch.

    Left tuples are held until they are released. The others are held for all left tuples that
    may still come or that wait: none of these is below the limit of the batch's releases.
    """
    expected, until = retention.watermarks[RIGHT], retention.horizons[LEFT]
    low: float | None = state.low
    if expected is not None and until is not None:
        now = min(expected, until)
        low = now if low is None else max(low, now)
    return retention._replace(
        watermarks=(retention.watermarks[LEFT], low),
        horizons=(until, find_partner_horizon(low, reach)),
    )


def retain_for_releases(retention: Retention, several: Iterable[Retention]) -> Retention:
    """Return how long a run holds tuples that also wait for as-of queries, or are their partners.

    ``several``: how long each of these queries alone holds them.
    """
    limits = [*several]
    lows = [retention.watermarks[RIGHT], *(each.watermarks[RIGHT] for each in limits)]
    horizons = [retention.horizons, *(each.horizons for each in limits)]
    return (
        retention._replace(
            watermarks=(retention.watermarks[LEFT], find_least(lows)),
            horizons=tuple(find_least(each) for each in zip(*horizons, strict=True)),
        )
        if limits
        else retention
    )


def find_least(times: Sequence[float | None]) -> float | None:
    """Return the least of some times; None: one of them is before all."""
    return None if None in times else min(time for time in times if time is not None)


def find_partner_horizon(low: float | None, reach: Reach) -> Horizon:
    """Return the event time below which tuples of the second stream have expired.

    ``low``: as of a ``ReleaseState``.
    """
    most = reach[RIGHT][LEFT]
    return None if low is None or most is None else low - most


def remove_planned_probes(plan: Plan) -> Plan:
    """Return a placement's plan without probes: fresh blocks are stored only."""
    return replace(
        plan,
        routes=tuple(
            structs.replace(route, paths=(), deferred_blocks=())
            for route in plan.routes
            if route.is_fresh
        ),
    )


class ReleaseFacts(NamedTuple):
    """The facts that releases are planned from.

    - ``blocks``: live blocks of the state before the batch.
    - ``batch``: number of the last batch.
    - ``state``: what was released before.
    - ``until``: the horizon of the left stream; None: nothing is released.
    - ``reach``: bounds of event times.
    - ``joinable``: see ``MayJoin``.
    - ``looks_beyond``: whether a late tuple is searched as if it came in time, so that what has
      been forgotten does not depend on merges.
    - ``query``: bit of the query that tuples are released for; None: the run serves none.
    - ``floor``: event time below which the query answers no tuple; None: it answers all.
    - ``unreleased``: older blocks whose tuples no batch has released yet, as the queries were
      changed after the batch in which they came.
    """

    blocks: Iterable[Block]
    batch: int
    state: ReleaseState
    until: int | None
    reach: Reach
    joinable: MayJoin
    looks_beyond: bool
    query: int | None = None
    floor: int | None = None
    unreleased: Collection[int] = ()

    def find_released_limit(self, block: Block) -> int | None:
        """Return the event time below which a block's tuples are released; None: none are.

        A block of the last batch may hold tuples that came later than all that were released.
        """
        if block.batch == self.batch or block.id in self.unreleased or self.state.until is None:
            return self.floor
        return self.state.until if self.floor is None else max(self.floor, self.state.until)

    def find_due_interval(self, block: Block) -> tuple[float, float] | None:
        """Return the earliest and the latest event time of a block's tuples that are due."""
        if self.until is None or block.event_time_range is None:
            return None
        since, (first, last) = self.find_released_limit(block), block.event_time_range
        first = first if since is None else max(first, since)
        return (first, min(last, self.until - 1)) if first <= last and first < self.until else None

    def find_partner_blocks(
        self, interval: tuple[float, float], joinable: Iterable[Block]
    ) -> list[Block]:
        """Return those blocks in which tuples with these event times may have partners.

        ``joinable``: the blocks of partners that the routing keys allow.
        """
        first, last = interval
        if self.looks_beyond and self.state.low is not None:
            last = max(last, self.state.low)
        after, before = self.reach[LEFT][RIGHT], self.reach[RIGHT][LEFT]
        latest = None if after is None else last + after
        earliest = None if before is None else first - before
        return [other for other in joinable if _overlaps(other, earliest, latest)]

    def list_joinable(self, block: Block) -> list[Block]:
        """Return the blocks of the second stream that the routing keys allow to join with one."""
        return [b for b in self.blocks if b.stream == RIGHT and self.joinable(block, b)]


def _overlaps(block: Block, earliest: float | None, latest: float | None) -> bool:
    if (span := block.event_time_range) is None:
        return True
    return (latest is None or span[0] <= latest) and (earliest is None or span[1] >= earliest)


def plan_releases(facts: ReleaseFacts) -> tuple[Release, ...]:
    """Return the releases of a batch: one for each block with tuples that are due."""
    return tuple(_find_releases(facts))


class _PartnersByKeys:
    """Blocks of the second stream by the routing keys of a block that they may join with.

    Many blocks have the same routing keys, which are compared once.
    """

    def __init__(self, facts: ReleaseFacts) -> None:
        self._facts = facts
        self._groups: dict[Keys, list[Block]] = {}
        for block in facts.blocks:
            if block.stream == RIGHT:
                self._groups.setdefault(block.key_range, []).append(block)
        self._joinable: dict[Keys, list[Block]] = {}

    def list_joinable(self, block: Block) -> list[Block]:
        if block.key_range not in self._joinable:
            groups = self._groups.values()
            joinable = [each for each in groups if self._facts.joinable(block, each[0])]
            self._joinable[block.key_range] = [b for each in joinable for b in each]
        return self._joinable[block.key_range]


def _find_releases(facts: ReleaseFacts) -> Iterator[Release]:
    partners_by_keys = _PartnersByKeys(facts)
    for block in facts.blocks:
        interval = facts.find_due_interval(block) if block.stream == LEFT else None
        if interval is None or facts.until is None:
            continue
        partners = facts.find_partner_blocks(interval, partners_by_keys.list_joinable(block))
        host = block.hosts[block.id % len(block.hosts)]
        hop = Hop(RIGHT, _assign_partners(block, host, partners))
        since = facts.find_released_limit(block)
        yield Release(block, host, since, facts.until, hop, facts.query)


def _assign_partners(
    block: Block, host: int, partners: Sequence[Block]
) -> dict[int, tuple[int, ...]]:
    """Return the partners by the host that searches them.

    It is the host that reads the block if it has them; else one that has both; else any.
    """
    by_host: dict[int, list[int]] = {}
    for other in partners:
        at = host
        if host not in other.hosts:
            both = [each for each in other.hosts if each in block.hosts] or other.hosts
            at = both[other.id % len(both)]
        by_host.setdefault(at, []).append(other.id)
    return {at: tuple(ids) for at, ids in by_host.items()}
