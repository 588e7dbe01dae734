"""The placement of a shared run: a chain of state slices on one host, or a ring of hosts.

A stream's state is cut by age into slices that end where a query's window does; a merged slice
spans several. Tuples age from slice to slice. Those that no later query needs are cut off on the
way: the routing key of a tuple is the rank of the longest window among the queries whose selection
it passed (7.4), so that a cut is a range of keys. On several hosts each holds a stretch of every
stream's ages, with about the same number of tuples on each (21.3).

A slice is a whole number of blocks: a block moves on once all of its tuples have aged past the
slice's end.

Source: Wang 2008, chapters 5 and 7 (chain), 19 to 21 (ring).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Literal, Self

from msgspec import structs

from braid.core.compaction import count_reached_ages
from braid.core.facts import Facts
from braid.core.placement import Placement, check_hosts
from braid.core.plan import Block, Derivation, Plan
from braid.core.plan_builder import PlanBuilder
from braid.core.query import MOST
from braid.papers.common.route_builders import hopping_routes
from braid.papers.slices.chain_optimizer import (
    StreamPosition,
    chain_cost,
    choose_chain,
    choose_host_ages,
    cpu_chain,
    measure_chain_statistics,
    memory_chain,
)
from braid.papers.slices.run_events import ChainChanged, HostAgeRange, SliceContents
from braid.util.durations import format_duration

Mode = Literal["memory", "cpu", "auto", "given"]
MODES = ("auto", "memory", "cpu")
"""The modes that a user may choose by name."""

_REVIEW = 8
"""Batches between two reviews of the statistics."""
_GAIN = 0.8
"""Maximum relative cost of a new chain, so that noise alone does not rebuild the chain.

The age at which a host hands tuples on must change by as much before state moves.
"""


@dataclass(frozen=True, slots=True)
class ChainState:
    """The state of a chain between batches.

    - ``ends``: by stream, the ages at which slices end, in microseconds.
    - ``host_ages``: by stream, the ages at which the hosts of a ring hand tuples on, in
      microseconds.
    - ``windows``: by stream, the distinct windows that these were made for.
    - ``last_statistics``: where the streams were at the last review.
    - ``reason``: why the ends were changed between two batches; "": they were not.
    """

    mode: Mode
    ends: tuple[tuple[int, ...], ...]
    host_ages: tuple[tuple[int, ...], ...]
    windows: tuple[tuple[int, ...], ...]
    next_id: int = 0
    last_statistics: StreamPosition | None = None
    reason: str = ""


@dataclass(frozen=True)
class Chain(Placement):
    """State slices for the queries of a shared run. Supports any condition and number of streams.

    Parameters
    ----------
    mode
        "memory" (Mem-Opt, 7.1): a slice for each distinct window. "cpu" (CPU-Opt, 7.2): the fewest
        comparisons by measured rates and selectivities. "auto": CPU-Opt if its state is at most a
        tenth larger, else Mem-Opt. "given": ``ends``.
    ends
        For "given": by stream, the ages in microseconds at which slices end; the longest window is
        added.
    hosts
        J, the nodes of the ring; 1 is a chain on one host.
    slice_overhead
        C_sys: the cost of a slice for every tuple that passes it, in comparisons. See
        ``calibrate.measure_slice_overhead``.
    """

    State = ChainState
    label = "State slices (chain or shared ring)"
    shares_queries = True

    mode: Mode = "memory"
    ends: tuple[tuple[int, ...], ...] = ()
    hosts: int = 1
    slice_overhead: float = 1.0

    def __post_init__(self) -> None:
        check_hosts(self.hosts)
        if not 0 <= self.slice_overhead < inf:
            raise ValueError(
                f"slice_overhead is {self.slice_overhead}; it must be comparisons, 0 or more"
            )

    @property
    def key_space_size(self) -> int:
        return MOST

    @classmethod
    def example_instances(cls) -> tuple[Self, ...]:
        return cls(), cls("cpu", hosts=3)

    def initial_state(self, streams: int) -> ChainState:
        none: tuple[tuple[int, ...], ...] = ((),) * streams
        return ChainState(self.mode, self.ends or none, none, none)

    def merge_boundaries(self, state: ChainState) -> tuple[tuple[int, ...], ...]:
        """Return the ages across which compaction merges nothing: ends of slices and of hosts."""
        ages = tuple(
            tuple(sorted({*ends, *nodes}))
            for ends, nodes in zip(state.ends, state.host_ages, strict=True)
        )
        return ages if all(ages) else ()

    def plan_batch(self, facts: Facts, state: ChainState) -> Plan:
        return _Planner(self, facts, state).plan_batch()


def split_slice(state: ChainState, age: int, stream: int | None = None) -> ChainState:
    """Return the state with one more end at this age (microseconds).

    It is added to the chain of one stream, or of all that reach so far (Fig. 7.4). Raises
    ValueError if there is nothing to split.
    """
    chosen = [
        s
        for s, ends in enumerate(state.ends)
        if stream in (None, s) and ends and age < ends[-1] and age not in ends
    ]
    if age <= 0 or not chosen:
        raise ValueError(
            f"no slice can be split at {format_duration(age, exact=True)}; slices end at "
            f"{_format_slice_ends(state)}"
        )
    return _set_slice_ends(
        state, {s: tuple(sorted({*state.ends[s], age})) for s in chosen}, "split"
    )


def merge_slices(state: ChainState, age: int, stream: int | None = None) -> ChainState:
    """Return the state without the end at this age: the two slices become one (Fig. 7.5).

    Raises ValueError if no two slices meet there.
    """
    chosen = [s for s, ends in enumerate(state.ends) if stream in (None, s) and age in ends[:-1]]
    if not chosen:
        raise ValueError(
            f"no two slices meet at {format_duration(age, exact=True)}; slices end at "
            f"{_format_slice_ends(state)}, and the last end stays"
        )
    return _set_slice_ends(
        state, {s: tuple(e for e in state.ends[s] if e != age) for s in chosen}, "merged"
    )


def request_rebalance(state: ChainState, mode: Mode) -> ChainState:
    """Return the state in which the next batch chooses the chain again."""
    return replace(state, mode=mode, windows=((),) * len(state.ends))


def _set_slice_ends(state: ChainState, ends: dict[int, tuple[int, ...]], reason: str) -> ChainState:
    changed = tuple(ends.get(s, old) for s, old in enumerate(state.ends))
    return replace(state, mode="given", ends=changed, reason=reason)


def _format_slice_ends(state: ChainState) -> str:
    return "; ".join(
        ", ".join(format_duration(end, exact=True) for end in ends)
        or "no age before the first batch"
        for ends in state.ends
    )


class _Planner:
    """The planning of one batch."""

    def __init__(self, chain: Chain, facts: Facts, state: ChainState) -> None:
        self.chain, self.facts, self.state = chain, facts, state
        self.before = state.ends
        self.draft = PlanBuilder(facts)
        self.streams = range(len(facts.streams))
        self.windows = tuple(
            memory_chain(q.windows[s] for q in facts.queries) for s in self.streams
        )
        self.changed = self.windows != state.windows
        self.reviewing = (
            state.last_statistics is None or facts.batch >= state.last_statistics.batch + _REVIEW
        )
        self.floors = [self._find_lowest_rank(s) for s in self.streams]
        self.events: list[Any] = []

    def plan_batch(self) -> Plan:
        self._choose_chains()
        self._assign_ages_to_hosts()
        self.held: list[list[list[int]]] = [[[] for _ in ends] for ends in self.state.ends]
        live = [self._age_block(b) for b in self.facts.blocks]
        at = {b.id: b.hosts[0] for b in live}
        heads = [self._select_age_host(s, 0) for s in self.streams]
        routes = hopping_routes(self.facts, live, at, heads, (0, MOST), self.draft.ids)
        self._emit_chain_events()
        state = replace(self.state, windows=self.windows, next_id=next(self.draft.ids), reason="")
        return self.draft.make_plan(routes, state, self.events)

    def _choose_chains(self) -> None:
        """Choose the chains: as given, or the best for the queries and recent statistics."""
        mode = self.state.mode
        ends: list[tuple[int, ...]] = []
        for s in self.streams:
            windows, now = self.windows[s], self.state.ends[s]
            if mode == "given":
                ends.append((*(e for e in now if e < windows[-1]), windows[-1]))
            elif mode == "memory":
                ends.append(windows)
            else:
                ends.append(
                    self._choose_best_chain(s, windows, now)
                    if self.reviewing or self.changed
                    else now
                )
        seen = (
            StreamPosition.from_facts(self.facts) if self.reviewing else self.state.last_statistics
        )
        self.state = replace(self.state, ends=tuple(ends), last_statistics=seen)

    def _choose_best_chain(
        self, stream: int, windows: tuple[int, ...], now: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Return the best chain by the statistics; the current one unless another is far better."""
        statistics = measure_chain_statistics(
            self.facts, self.state.last_statistics, stream, self.windows, self.chain.slice_overhead
        )
        if statistics is None:
            return windows if self.changed else now
        ends = (cpu_chain if self.state.mode == "cpu" else choose_chain)(windows, statistics)
        better = self.changed or chain_cost(ends, windows, statistics) < _GAIN * chain_cost(
            now, windows, statistics
        )
        return ends if better else now

    def _assign_ages_to_hosts(self) -> None:
        """Divide the ages of every stream among the hosts (chapter 21).

        This is repeated if the chains have changed or the reviewed statistics give other shares.
        """
        same = not self.changed and self.state.ends == self.before and not self.state.reason
        if same and not self.reviewing:
            return
        shares = tuple(
            choose_host_ages(self.facts, s, self.windows[s], self.chain.hosts) for s in self.streams
        )
        if same and all(map(self._are_ages_similar, self.state.host_ages, shares)):
            return
        self.state = replace(self.state, host_ages=shares)
        reason = self.state.reason or self.state.mode
        for s in self.streams:
            stretches = tuple(
                HostAgeRange(age, self._select_age_host(s, k))
                for k, age in enumerate((*self.state.host_ages[s], self.windows[s][-1]))
            )
            self.events.append(
                ChainChanged(self.facts.batch, s, reason, self.state.ends[s], stretches)
            )

    def _are_ages_similar(self, old: tuple[int, ...], new: tuple[int, ...]) -> bool:
        """Return whether hosts would hand tuples on at about the same ages."""
        return all(min(a, b) >= _GAIN * max(a, b) for a, b in zip(old, new, strict=True))

    def _select_age_host(self, stream: int, place: int) -> int:
        """Return the host of a stretch of ages.

        Streams begin on different hosts, so that new tuples do not all arrive at one.
        """
        return (stream * self.chain.hosts // len(self.streams) + place) % self.chain.hosts

    def _age_block(self, b: Block) -> Block:
        """Return the block on the host of its age, entered in its slice."""
        limit, ends = self.facts.watermarks[b.stream], self.state.ends[b.stream]
        past = count_reached_ages(b, ends, limit)
        aged = self._place_aged_block(b, past)
        self.held[b.stream][min(past, len(ends) - 1)].append(aged.id)
        return aged

    def _place_aged_block(self, b: Block, past: int) -> Block:
        """Return the block on the host of its age, without tuples that no longer window needs.

        ``past`` is the number of slice ends that it has passed. A block that compaction has just
        merged moves one batch later: another host cannot read it from disk yet.
        """
        limit, ends = self.facts.watermarks[b.stream], self.state.ends[b.stream]
        place = min(
            count_reached_ages(b, self.state.host_ages[b.stream], limit), self.chain.hosts - 1
        )
        target = self._select_age_host(b.stream, place) if b.id < self.state.next_id else b.hosts[0]
        first = bisect_right(self.windows[b.stream], ends[past - 1]) if past else 0
        if first > max(b.key_range[0], self.floors[b.stream]):
            return self._cut_block(b, first, target)
        if target != b.hosts[0]:
            self.draft.drop_replicas(
                copied := self.draft.copy_block(b, {target: b.hosts[0]}), b.hosts
            )
            return copied.with_hosts((target,))
        return b

    def _find_lowest_rank(self, stream: int) -> int:
        """Return the lowest rank of a tuple: that of the longest window without a selection."""
        free = [q.windows[stream] for q in self.facts.queries if q.selections[stream] is None]
        return self.windows[stream].index(max(free)) if free else 0

    def _cut_block(self, b: Block, first: int, target: int) -> Block:
        piece = structs.replace(
            b,
            id=next(self.draft.ids),
            key_range=(first, b.key_range[1]),
            hosts=(target,),
            rows=0,
            size_bytes=0,
        )
        self.draft.derivations.append(Derivation(piece, (b.id,), {target: b.hosts[0]}))
        self.draft.drop_replicas(b, b.hosts)
        return piece

    def _emit_chain_events(self) -> None:
        for s, held in enumerate(self.held):
            self.events.append(SliceContents(self.facts.batch, s, tuple(map(tuple, held))))
