"""HotKeys: hash partitioning in which the tuples of frequent values are shared out over hosts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import Self

from braid.core.facts import Facts
from braid.core.frequent_values import OTHERS
from braid.core.placement import MOST_KEYS, Placement, check_hosts
from braid.core.plan import Block, Keys, Plan
from braid.core.plan_builder import PlanBuilder
from braid.papers.common.route_builders import local_routes
from braid.papers.hotkeys.block_moves import (
    estimate_moving_tuples,
    find_stray_blocks,
    move_stray_blocks,
)
from braid.papers.hotkeys.hot_routes import make_routes
from braid.papers.hotkeys.run_events import SpreadChanged, SpreadValue
from braid.papers.hotkeys.spread import (
    SharedValue,
    Spread,
    ValueRanges,
    busiest_over_mean,
    choose_kept_streams,
    drop_cooled_values,
    host_micros,
    make_tile_tables,
    pack_values,
)
from braid.papers.hotkeys.value_work import ValueShares, estimate_value_work
from braid.util.validation import check_int

MOST_KEYS_PER_VALUE = 1024
"""Maximum number of routing keys of a value."""
WORTHWHILE = 0.95
"""Maximum work of the busiest host after a change, relative to the work before it."""


@dataclass(frozen=True, slots=True)
class HotKeysState:
    """The state of ``HotKeys``.

    - ``spread``: frequent values, ascending.
    - ``is_settled``: whether all stored tuples are where the spread has them.
    """

    spread: tuple[SharedValue, ...] = ()
    is_settled: bool = True


@dataclass(frozen=True)
class HotKeys(Placement):
    """Hash partitioning on the join value, with frequent values shared out over hosts.

    A tuple is stored and joined on the host of its join value's hash. The tuples of a frequent
    value are shared out over several hosts by a hash of the whole tuple; each is stored once and
    probes all of them. If all streams but one rarely have the value, all of its hosts store their
    tuples, and those of the one stream probe on their own host only. Frequent values and rates are
    counted while the join runs, and change with the streams. Stored tuples then move in the
    background; meanwhile they are probed where they are. It needs an equality that connects all
    streams. Supports any number of streams.

    - ``hosts``: number of hosts.
    - ``target``: busiest host over mean work up to which nothing changes. Default: 1.12.
    - ``every``: batches between two looks. Default: 1.
    - ``rate``: stored tuples that a host takes in from others in a batch, for each new tuple of its
      share in the last batch. Default: 2.
    - ``values``: number of hash values of the join value. At least ``hosts`` are used. Default:
      16,384.
    - ``stored``: most tuples stored, relative to a hash; 1: each is stored once. Default: 1.3.

    Sources: Afrati et al. 2015 (a frequent value has hosts of its own); Lin et al. 2015 (a tuple is
    stored once and probes all of them); Xu et al. 2008 (tuples of the rare side are on all hosts).

    Raises ValueError for hosts < 1, target not in (1, 2], every < 1, rate <= 0, values < 1 or
    stored < 1.
    """

    State = HotKeysState
    routing_key_source = "join"
    label = "Hot keys (hash; frequent values shared out)"

    hosts: int
    target: float = 1.12
    every: int = 1
    rate: float = 2.0
    values: int = 1 << 14
    stored: float = 1.3

    def __post_init__(self) -> None:
        check_hosts(self.hosts)
        check_int(self.every, "every", 1)
        check_int(self.values, "values", 1, MOST_KEYS)
        if not 1 < self.target <= 2:
            raise ValueError(
                f"target is {self.target!r}; it must be a number greater than 1, at most 2"
            )
        if not self.rate > 0:
            raise ValueError(f"rate is {self.rate!r}; it must be a number greater than 0")
        if not 1 <= self.stored < inf:
            raise ValueError(f"stored is {self.stored!r}; it must be a number, 1 or more")

    @property
    def value_ranges(self) -> ValueRanges:
        """The values of each host."""
        values, keys_per_value = max(self.values, self.hosts), 256
        while keys_per_value < MOST_KEYS_PER_VALUE and keys_per_value < 4 * self.hosts:
            keys_per_value *= 2
        while keys_per_value * values > MOST_KEYS:
            keys_per_value //= 2
        return ValueRanges(self.hosts, values, keys_per_value)

    @property
    def keys_per_value(self) -> int:
        return self.value_ranges.keys_per_value

    @property
    def key_space_size(self) -> int:
        return self.value_ranges.values * self.value_ranges.keys_per_value

    @classmethod
    def example_instances(cls) -> tuple[Self, ...]:
        return cls(5, values=12), cls(3, every=1, target=1.01, values=6, stored=9.0)

    def initial_state(self, streams: int) -> HotKeysState:
        return HotKeysState()

    def plan_batch(self, facts: Facts, state: HotKeysState) -> Plan:
        spread: Spread = {shared.value: shared for shared in state.spread}
        builder = PlanBuilder(facts)
        shares = ValueShares(
            facts.key_counts, self.value_ranges.values, self.value_ranges.keys_per_value
        )
        change = None
        if due := self._find_change(facts, spread, shares):
            spread, change = due
        elif not spread and state.is_settled:
            return builder.make_plan(local_routes(facts, self._list_home_key_ranges()), state)
        tables = make_tile_tables(self.value_ranges, spread, len(facts.streams))
        waiting: list[Block] = []
        if change is not None or not state.is_settled:
            strays = find_stray_blocks(facts.blocks, tables)
            budget = self.rate * sum(facts.previous_received) / self.hosts
            waiting = move_stray_blocks(builder, strays, tables, shares, budget)
            if change is not None:
                each = (estimate_moving_tuples(b, tables[b.stream], shares) for b in strays)
                change = replace(change, tuples_to_move=round(sum(sum(m.values()) for m in each)))
        return builder.make_plan(
            make_routes(builder, tables),
            HotKeysState(tuple(spread[v] for v in sorted(spread)), not waiting),
            () if change is None else (change,),
            (b.id for b in waiting),
        )

    def _list_home_key_ranges(self) -> list[tuple[Keys, int]]:
        """Return the routing keys of each host if no value is shared out."""
        ranges = self.value_ranges
        starts = (ranges.first_value(h) * ranges.keys_per_value for h in range(self.hosts + 1))
        return [(keys, host) for host, keys in enumerate(pairwise(starts))]

    def _find_change(
        self, facts: Facts, present: Spread, shares: ValueShares
    ) -> tuple[Spread, SpreadChanged] | None:
        """Return the spread that is due in a batch, and the change; None: there is none."""
        is_due = self.hosts > 1 and facts.batch > 0 and facts.batch % self.every == 0
        has_frequent = any(counts.keys() - {OTHERS} for counts in facts.key_counts)
        if not is_due or not (present or has_frequent):
            return None
        ranges, work = self.value_ranges, estimate_value_work(facts, shares)
        now = host_micros(work, present, ranges)
        copies = (self.stored - 1) * work.stored
        spread = drop_cooled_values(present, work, ranges)
        spread = choose_kept_streams(work, spread, copies)
        if busiest_over_mean(host_micros(work, spread, ranges)) > self.target:
            packed = pack_values(work, spread, ranges, copies)
            if max(host_micros(work, packed, ranges)) < WORTHWHILE * max(now):
                spread = packed
        if spread == present:
            return None
        after = busiest_over_mean(host_micros(work, spread, ranges))
        return spread, SpreadChanged(
            facts.batch, _list_spread(spread, facts), busiest_over_mean(now), after, 0
        )


def _list_spread(spread: Spread, facts: Facts) -> tuple[SpreadValue, ...]:
    """Return the frequent values, the most frequent first."""
    total = sum(sum(counts.values()) for counts in facts.key_counts) or 1.0
    listed = []
    for value, hosts, kept_stream in spread.values():
        share = [counts.get(value, 0.0) / total for counts in facts.key_counts]
        copied = [s for s in range(len(share)) if kept_stream not in (None, s)]
        names = tuple(facts.streams[s] for s in copied)
        of_copied = round(sum((share[s] for s in copied), 0.0), 4)
        listed.append(SpreadValue(value, hosts, round(sum(share), 4), names, of_copied))
    return tuple(sorted(listed, key=lambda each: (-each.share, each.value)))
