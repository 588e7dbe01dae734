"""A placement that changes at run time: the result of "auto" for joins that may profit.

It begins with a hash of the join value. It changes to an adaptive grid once the facts of committed
batches show that frequent values make the grid clearly cheaper, including the cost of the change.

Plans refer to blocks, so state is not rebuilt. The routing keys of each placement have their own
range (``KeySpace``). Blocks stored under an earlier placement are **older**: each is on one host,
and every fresh block probes it there, whatever its key. At a change, older blocks move as a whole,
so that no host has much more than its share. With windows they expire.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from typing import Any, Self

import numpy as np

from braid.core.batch_work import RunRules
from braid.core.facts import Facts
from braid.core.horizon import reach_of_windows
from braid.core.placement import Placement, check_hosts
from braid.core.plan import Block, Derivation, Hop, Ids, KeySpace, Plan, Route
from braid.core.plan_builder import PlanBuilder
from braid.core.run_events import PlacementChanged
from braid.core.run_state import RunState
from braid.simulation.placement_comparison import modelled_work
from braid.simulation.simulated_run import SimulatedRun
from braid.util.json_codec import from_plain, to_plain

FIRST, THEN = "HashPartition", "AdaptiveGrid"
"""The initial placement, and the one that it may change to."""
MOST = 64
"""Maximum number of hosts. With more, a review takes seconds."""
FINENESS = 16
"""Values of a tuple's hash for each host, as in the adaptive grid."""
LOOKS = 3
"""Batches of a placement before the first review."""
SELDOM = 48
"""Batches between two reviews in the long run."""
AHEAD = (4, 16)
"""Minimum and maximum number of batches to model ahead. Between them it is the number of past
batches.
"""
CLEARLY = 0.9
"""Maximum modelled work after a change, including its cost, relative to the work without it."""
CHANCE = 4.0
"""Standard deviations of the fullest host's tuples that are attributed to chance."""


@dataclass(frozen=True, slots=True)
class AutoState:
    """The state of ``Auto``.

    - ``placement``: name of the active placement.
    - ``placement_state``: its state as plain data.
    - ``since_batch``: its first batch.
    - ``first_key``: its first routing key.
    """

    placement: str = FIRST
    placement_state: Any = None
    since_batch: int = 0
    first_key: int = 0


@dataclass(frozen=True)
class Auto(Placement):
    """HashPartition until frequent values make AdaptiveGrid clearly cheaper.

    Both use the same number of hosts.

    After LOOKS batches, and then at growing intervals, the work of both is modelled from the
    current state. The model uses the measured rows by batch, stream and host, the measured matches,
    and the cost of moving blocks. It joins two streams that an equality links.

    - ``hosts``: number of hosts, 1 to MOST.
    - ``compared_share``: share of the meeting pairs that are compared. Default: 0, as with an
      equality.
    - ``has_remote_hosts``: whether hosts are on several machines. Default: False.
    - ``reviews_placement``: whether the placement may change. Default: True.

    Raises ValueError for hosts < 1 or more than MOST.
    """

    State = AutoState
    routing_key_source = "both"
    label = "Auto (hash, then grid where values are frequent)"

    hosts: int
    compared_share: float = 0.0
    has_remote_hosts: bool = False
    reviews_placement: bool = True

    def __post_init__(self) -> None:
        check_hosts(self.hosts)
        if self.hosts > MOST:
            raise ValueError(f"hosts is {self.hosts}; Auto takes at most {MOST}")

    @property
    def key_space_size(self) -> int:
        return FINENESS * self.hosts * self.hosts

    @classmethod
    def example_instances(cls) -> tuple[Self, ...]:
        return cls(4), cls(3, has_remote_hosts=True)

    def initial_state(self, streams: int) -> AutoState:
        if streams != 2:
            raise ValueError(f"Auto joins two streams that an equality links; got {streams}")
        return AutoState()

    def has_pending_pairs(self, state: AutoState) -> bool:
        placement = _make_placement(state.placement, self.hosts)
        return placement.has_pending_pairs(from_plain(state.placement_state, placement.State))

    def key_space(self, state: AutoState) -> KeySpace:
        placement = _make_placement(state.placement, self.hosts)
        divide = self.hosts if placement.routing_key_source == "tuple" else 1
        return KeySpace(
            placement.routing_key_source, placement.key_space_size, state.first_key, divide
        )

    def plan_batch(self, facts: Facts, state: AutoState) -> Plan:
        better = self._find_better_placement(facts, state)
        if better is None:
            return self._prepare_for_change(facts, state, self.plan_with_older_blocks(facts, state))
        plan = self.plan_with_older_blocks(facts, self.switch_to(facts, state, THEN))
        moved = sum(d.block.rows * len(d.source_hosts) for d in plan.derivations)
        changed = replace(better, moved_tuples=moved)
        return replace(plan, events=(changed, *plan.events))

    def _may_change_at(self, batch: int, state: AutoState) -> bool:
        """Return whether a batch may change the placement in this state."""
        able = self.reviews_placement and self.hosts > 1 and state.placement == FIRST
        return able and _is_review_due(batch - state.since_batch)

    def _prepare_for_change(self, facts: Facts, state: AutoState, plan: Plan) -> Plan:
        """Return the plan, with all blocks pinned if the next batch may change the placement.

        Blocks that the next batch merged could not move in it.
        """
        if not self._may_change_at(facts.batch + 1, state):
            return plan
        fresh = (r.block.id for r in plan.routes if r.is_fresh)
        return replace(
            plan, pinned_blocks=plan.pinned_blocks.union(fresh, (b.id for b in facts.blocks))
        )

    def switch_to(self, facts: Facts, state: AutoState, name: str) -> AutoState:
        """Return the state in which another placement begins with this batch."""
        initial_state = to_plain(
            _make_placement(name, self.hosts).initial_state(len(facts.streams))
        )
        return AutoState(name, initial_state, facts.batch, self.key_space(state).key_end + 1)

    def plan_with_older_blocks(self, facts: Facts, state: AutoState) -> Plan:
        """Return the plan of the active placement, with the moves and probes of older blocks."""
        placement, draft = _make_placement(state.placement, self.hosts), PlanBuilder(facts)
        if facts.batch == state.since_batch:
            _spread_older_blocks(
                draft, [b for b in facts.blocks if b.key_range[0] < state.first_key], self.hosts
            )
        older = _group_by_stream(b for b in draft.live_blocks() if b.key_range[0] < state.first_key)
        current_blocks = tuple(
            _shift_block_keys(b, -state.first_key)
            for b in facts.blocks
            if b.key_range[0] >= state.first_key
        )
        plan = placement.plan_batch(
            replace(facts, blocks=current_blocks),
            from_plain(state.placement_state, placement.State),
        )
        return replace(
            plan,
            routes=tuple(_add_path_to_older_blocks(r, state.first_key, older) for r in plan.routes),
            derivations=(
                *draft.derivations,
                *(_shift_derivation_keys(d, state.first_key) for d in plan.derivations),
            ),
            drops={**draft.drops, **plan.drops},
            state=replace(state, placement_state=to_plain(plan.state)),
        )

    def _find_better_placement(self, facts: Facts, state: AutoState) -> PlacementChanged | None:
        """Return the change that saves clearly more than it costs; None: there is none."""
        if not self._may_change_at(facts.batch, state):
            return None
        shares = _measure_host_shares(facts, self.hosts)
        if shares is None:
            return None
        alike = float(np.prod(shares, axis=0).sum())
        pairs = sum(considered for considered, _ in facts.match_counts.values())
        rate = sum(matches for _, matches in facts.match_counts.values()) / max(1.0, pairs)
        then = self._estimate_future_micros(
            facts, self.switch_to(facts, state, THEN), shares, rate * alike
        )
        now = self._estimate_future_micros(facts, state, shares, rate)
        if then > CLEARLY * now:
            return None
        fullest = float(max(share.max() for share in shares))
        return PlacementChanged(facts.batch, FIRST, THEN, fullest, 1 / self.hosts, then / now, 0)

    def _estimate_future_micros(
        self, facts: Facts, state: AutoState, shares: Sequence[Any], matches: float
    ) -> float:
        """Return the modelled microseconds of future batches, assumed to be like the past ones."""
        held = replace(self, reviews_placement=False)
        rules = RunRules(
            held, facts.streams, reach_of_windows(facts.windows), checks_coverage=False
        )
        now = RunState(
            facts.batch - 1,
            blocks={b.id: b for b in facts.blocks},
            next_id=facts.next_id,
            placement_state=state,
            received=facts.received,
            received_bytes=facts.received_bytes,
            previous_received=facts.previous_received,
            clocks=facts.clocks,
            pending=((),) * len(facts.clocks),
            pinned_blocks=frozenset(b.id for b in facts.blocks),  # compaction has run already
            host_usage=facts.host_usage,
        )
        raw = [
            np.outer(np.full(FINENESS * self.hosts, 1 / (FINENESS * self.hosts)), s).ravel()
            for s in shares
        ]
        zero = np.zeros((len(facts.streams),) * 2)
        draw = np.random.default_rng(facts.batch)
        sizes = (1,) * len(facts.streams)
        model = SimulatedRun(
            rules, now, sizes, draw, _predict_batch_starts(facts), raw, zero, "pair"
        )
        for b in facts.blocks:
            model.add_block(b)
        batches = min(max(facts.batch, AHEAD[0]), AHEAD[1])
        each = [round(n / facts.batch) for n in facts.received]
        events = (e for _ in range(batches) for e in model.run_batch(each))
        return modelled_work(events, self.compared_share, self.has_remote_hosts, matches)


@cache
def _make_placement(name: str, hosts: int) -> Placement:
    return Placement.class_by_name(name).from_settings({"hosts": hosts})


def _is_review_due(batches: int) -> bool:
    """Return whether a placement is reviewed after this number of batches."""
    turn, rest = divmod(batches, LOOKS)
    if rest or not turn:
        return False
    return batches % SELDOM == 0 or (batches < SELDOM and turn & (turn - 1) == 0)


def _measure_host_shares(facts: Facts, hosts: int) -> list[Any] | None:
    """Return, by stream, the share of held tuples with each host's hash.

    None: the surplus of the fullest host may be chance.
    """
    held = np.zeros((len(facts.streams), hosts))
    for b in facts.blocks:
        held[b.stream, b.hosts[0]] += b.rows
    even = held.sum(axis=1) / hosts
    if not all(even) or not np.any(held.max(axis=1) > even + CHANCE * np.sqrt(even)):
        return None
    return [each / each.sum() for each in held]


def _predict_batch_starts(facts: Facts) -> Iterator[int]:
    """Yield the event times at which future batches begin, at the past pace."""
    spans = [b.event_time_range for b in facts.blocks if b.event_time_range is not None]
    now = max((t for t in facts.clocks if t is not None), default=0)
    since = min((first for first, _ in spans), default=now)
    batches = facts.batch - min((b.batch for b in facts.blocks), default=0)
    return count(now + 1, max(1, (now - since) // max(1, batches)))


def _spread_older_blocks(draft: PlanBuilder, older: Sequence[Block], hosts: int) -> None:
    """Keep one replica of each older block.

    It stays on its host, unless that host has more than its share of a stream; then the block moves
    to the least loaded one. Blocks merged in this batch stay.
    """
    totals = [sum(b.rows for b in older if b.stream == s) for s in (0, 1)]
    load = np.zeros((2, hosts))
    for b in sorted(older, key=lambda b: (-b.rows, b.id)):
        there = load[b.stream]
        home = min(b.hosts, key=lambda h: (there[h], h))
        much = there[home] + b.rows > 1.1 * max(totals[b.stream] / hosts, b.rows)
        if much and b.id not in draft.facts.compacted_blocks:
            home = int(there.argmin())
        there[home] += b.rows
        if home not in b.hosts:
            b = draft.copy_block(b, {home: b.hosts[0]})
        draft.drop_replicas(b, set(b.hosts) - {home})


def _group_by_stream(older: Iterable[Block]) -> tuple[dict[int, Ids], ...]:
    by_stream: tuple[dict[int, Ids], ...] = ({}, {})
    for b in older:
        at = by_stream[b.stream]
        at[b.hosts[0]] = (*at.get(b.hosts[0], ()), b.id)
    return by_stream


def _shift_block_keys(b: Block, by: int) -> Block:
    """Return a block with its keys shifted."""
    return replace(b, key_range=(b.key_range[0] + by, b.key_range[1] + by)) if by else b


def _shift_derivation_keys(d: Derivation, by: int) -> Derivation:
    return replace(d, block=_shift_block_keys(d.block, by))


def _add_path_to_older_blocks(route: Route, first: int, older: Sequence[dict[int, Ids]]) -> Route:
    """Return a route with a path to the older blocks of the other stream, if its block is fresh."""
    b, there = route.block, older[1 - route.block.stream]
    more = ((Hop(1 - b.stream, there),),) if route.is_fresh and there else ()
    return replace(route, block=_shift_block_keys(b, first), paths=(*route.paths, *more))
