"""CTR, coordinated tuple routing: every segment chooses its own path to all that it must meet.

A segment is what arrives on one stream in T consecutive micro-batches. Its path V_1 -> ... ->
V_{n-1} visits the other streams in some order; the hosts of hop k together hold all live blocks of
the k-th. The routing table is built from the facts about blocks and hosts. So it is exact after
expiry, mergers and restarts, and no separate table is stored.

Source: Gu, Yu and Wang, "Adaptive Load Diffusion for Multiway Windowed Stream Joins", ICDE 2007,
section 4; the bound on copies answers Wang, "State-Slice", 2008, section 15.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import isqrt
from random import Random
from typing import Self

from braid.core.cluster_model import check_cluster, check_weights
from braid.core.facts import Facts, HostUsage
from braid.core.placement import Placement, check_hosts
from braid.core.plan import Block, Plan, Route
from braid.papers.common.join_orders import IntermediateGrowth, Order
from braid.papers.common.load_balance import (
    GU_PRICES,
    Floats,
    Prices,
    compute_loads,
    stack_capacities,
    stack_usage,
)
from braid.papers.diffusion.routing_table import (
    Probes,
    RoutingTable,
    Sets,
    greedy_cover,
    random_cover,
)
from braid.papers.diffusion.run_events import JoinOrder, PathChosen

EARLIER_WEIGHT = 0.75
"""Weight of a host's earlier loads beside that of the last batch."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment in progress.

    It has the hosts that store it, its join order, and by hop the hosts that it has used. The order
    is empty until a path is chosen.
    """

    storing_hosts: tuple[int, ...]
    join_order: Order = ()
    hop_hosts: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class CoordinatedState:
    """The state of CTR between batches.

    ``loads`` are by host, averaged over batches. ``latest`` is the latest event time of any stream.
    ``segments`` has the segment in progress of each stream.
    """

    loads: tuple[float, ...]
    segments: tuple[Segment | None, ...]
    latest: int | None = None


@dataclass(frozen=True)
class Coordinated(Placement):
    """CTR for any number of streams and hosts.

    Parameters
    ----------
    hosts
        J, the number of logical hosts.
    segment_batches
        T, the length of a segment in batches. A segment keeps the hosts that store it, its join
        order and, if they suffice, the hosts of its hops.
    optimize
        False is CTR-unoptimized: hosts are drawn at random, to cover and to store, and only one
        join order is considered.
    max_copies
        L, the bound on the copies of a tuple. Default (0): ceil(sqrt(J)). None: a segment is stored
        on all of V_1, as in the paper.
    max_join_orders
        Number of join orders to compare, those with the fewest intermediate results. With up to 4
        streams, 6 are all of them.
    warmup_hosts
        Without a bound, the number of hosts that V_1 gets by load alone while some hosts hold
        nothing (the paper's footnote 6).
    host_capacities
        (memory in MB, speed in MIPS, bandwidth in Mbit/s) by host. Default: equal hosts.
    load_weights
        omega_1 to omega_3 of Eq. 1: CPU, memory, bandwidth.
    cost_parameters
        Prices of CPU time, as for ``Aligned``.
    seed
        Seed of random choices: ties, and all hosts of CTR-unoptimized.

    Why a bound, and which. If segments are stored on all of V_1, the placement of tuples is a
    by-product of covers: with few copies everything may end up on one host, with many the memory is
    multiplied. With a bound, hosts form disjoint sets of at most L and a segment is stored on one
    whole set. Then any one host of each set is a cover: later covers have at most ceil(J/L) hosts,
    the greedy cover is exact, and no host is indispensable. The cost of a tuple, L copies and J/L
    hosts to probe, is least at sqrt(J).

    Raises ValueError for settings out of range.
    """

    State = CoordinatedState
    label = "CTR (coordinated tuple routing)"

    hosts: int
    segment_batches: int = 1
    optimize: bool = True
    max_copies: int | None = 0
    max_join_orders: int = 6
    warmup_hosts: int = 5
    host_capacities: tuple[tuple[float, float, float], ...] = ()
    load_weights: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3)
    cost_parameters: Prices = GU_PRICES
    seed: int = 0

    def __post_init__(self) -> None:
        check_hosts(self.hosts)
        for name, least in (("segment_batches", 1), ("max_join_orders", 1), ("warmup_hosts", 0)):
            if (value := getattr(self, name)) < least:
                raise ValueError(f"{name} is {value}; it must be a whole number, {least} or more")
        if self.max_copies == 0:
            object.__setattr__(self, "max_copies", isqrt(self.hosts - 1) + 1)
        if self.max_copies is not None and not 0 < self.max_copies <= self.hosts:
            raise ValueError(
                f"max_copies is {self.max_copies}; it must be from 1 to hosts, {self.hosts}, or "
                "None for no bound"
            )
        check_weights(self.load_weights)
        check_cluster(self.host_capacities, self.hosts)

    @classmethod
    def example_instances(cls) -> tuple[Self, ...]:
        return cls(5, segment_batches=2), cls(5, max_copies=None)

    def initial_state(self, streams: int) -> CoordinatedState:
        return CoordinatedState((0.0,) * self.hosts, (None,) * streams)

    def plan_batch(self, facts: Facts, state: CoordinatedState) -> Plan:
        return _Planner(self, facts, state).plan_batch()


def initial_cover_problems(
    settings: Coordinated, facts: Facts, state: CoordinatedState
) -> list[tuple[Sets, list[float], int, list[int]]]:
    """Return the initial cover problems of a plan, each with the hosts that it chooses.

    There is one for each stream that a segment of the first stream may visit first. Each is (sets,
    weights, wanted, hosts), the first three as ``greedy_cover`` takes them.
    """
    planner = _Planner(settings, facts, state)
    others = range(1, len(facts.streams))
    return [
        (sets, planner.weights, wanted, planner._choose_covering_hosts(sets, wanted))
        for s in others
        for sets, wanted in [(planner.table.sets[s], planner.table.stream_mask(s))]
        if planner.table.ids[s]
    ]


@dataclass(frozen=True)
class _Way:
    """A routing path P for one join order, and the cost of one tuple of the segment.

    The cost is |V_1| - 1 copies, and intermediate results. ``eq3`` is Eq. 3 as printed: a host that
    is in two consecutive hops gets nothing. But such a host has only its own share of the
    intermediate results; ``overhead`` counts the rest, 1 - 1/|V_{k-1}| of them, which this engine
    sends. If consecutive hops have the same hosts, as with a bound on copies, Eq. 3 sees no
    difference between join orders.
    """

    overhead: float
    eq3: float
    order: Order
    hops: tuple[Probes, ...]


class _Planner:
    """The planning of one batch.

    Streams are routed in the order of their index, so that each finds the fresh blocks that it must
    meet.
    """

    def __init__(self, settings: Coordinated, facts: Facts, state: CoordinatedState) -> None:
        self.settings, self.facts, self.state = settings, facts, state
        self.table = RoutingTable(len(facts.streams), facts.blocks)
        self.growth = IntermediateGrowth(facts.match_counts, self.table.rows)
        self.draw = Random(settings.seed * 1_000_003 + facts.batch)
        self.machines = stack_capacities(settings.host_capacities, settings.hosts)
        self.latest = max((t for t in facts.clocks if t is not None), default=None)
        self.seconds = self._measure_batch_seconds()
        self.loads = self._average_loads()
        tie = 1e-3 * (sum(self.loads) / len(self.loads) or 1.0)
        self.weights = [w + tie * (1 + self.draw.random()) for w in self.loads]
        self.events: list[PathChosen] = []

    def _measure_batch_seconds(self) -> float:
        """Return the event time that the last batch covered, in seconds; 1 if unknown."""
        before = self.state.latest
        if before is None or self.latest is None or self.latest <= before:
            return 1.0
        return (self.latest - before) / 1e6

    def _average_loads(self) -> list[float]:
        """Return w_i (Eq. 1), averaged over batches.

        In a single batch a segment keeps some hosts busy and leaves all others idle.
        """
        measured = self._compute_loads(stack_usage(self.facts.host_usage, self.settings.hosts))
        pairs = zip(self.state.loads, measured.tolist(), strict=True)
        return [EARLIER_WEIGHT * old + (1 - EARLIER_WEIGHT) * new for old, new in pairs]

    def _compute_loads(self, usage: HostUsage) -> Floats:
        settings = self.settings
        return compute_loads(
            usage, self.machines, settings.load_weights, self.seconds, settings.cost_parameters
        )

    def plan_batch(self) -> Plan:
        planned = [self._route_segment(*each) for each in enumerate(self.state.segments)]
        ends = (self.facts.batch + 1) % self.settings.segment_batches == 0
        state = CoordinatedState(
            tuple(round(w, 9) for w in self.loads),
            tuple(None if ends else segment for _, segment in planned),
            self.latest,
        )
        return Plan(tuple(route for route, _ in planned), state=state, events=tuple(self.events))

    def _route_segment(self, stream: int, segment: Segment | None) -> tuple[Route, Segment]:
        """Route a segment in the four steps of section 4.

        Look up what must be met, choose the path, annotate it, and enter the segment in the table.
        ``segment`` is the one in progress, None for a new one. If it has no path yet, it gets one
        now.
        """
        going = segment if segment is not None and segment.join_order else None
        ways = self._list_routing_paths(stream, going)
        way = min(ways, key=lambda w: w.overhead, default=_Way(0.0, 0.0, (), ()))
        stored = (
            segment.storing_hosts
            if segment
            else self._choose_storing_hosts(way.hops[0] if way.hops else ())
        )
        block = Block(self.facts.next_id + stream, stream, (0, 1), self.facts.batch, stored)
        if ways and not going:
            self._emit_path_chosen(block, way, ways)
        path = tuple(
            self.table.make_hop(other, probes)
            for other, probes in zip(way.order, way.hops, strict=True)
        )
        self._charge_expected_load(stream, way, stored)
        self.table.add_block(block, self.facts.previous_received[stream])
        used = going.hop_hosts if going and ways else ((),) * len(way.hops)
        hops = tuple(tuple(sorted({*old, *new})) for old, new in zip(used, way.hops, strict=True))
        return Route(block, (path,) if ways else ()), Segment(stored, way.order, hops)

    def _list_routing_paths(self, stream: int, segment: Segment | None) -> list[_Way]:
        """Return a path for each join order to compare, or for the order of the segment.

        The list is empty while another stream has no live block.
        """
        if not all(ids for other, ids in enumerate(self.table.ids) if other != stream):
            return []
        if segment:
            return [self._make_routing_path(stream, segment.join_order, segment.hop_hosts, {})]
        orders = self.growth.best_join_orders(
            stream, self.settings.max_join_orders if self.settings.optimize else 1
        )
        probes_by_order: dict[Order, Probes] = {}
        return [
            self._make_routing_path(stream, order, [()] * len(order), probes_by_order)
            for order in orders
        ]

    def _make_routing_path(
        self,
        stream: int,
        order: Order,
        used_hosts: Sequence[Collection[int]],
        known_hops: dict[Order, Probes],
    ) -> _Way:
        """Return the path for an order; ``known_hops``: of orders with the same prefix."""
        hops: list[Probes] = []
        overhead = eq3 = -1.0
        for other, chi, stream_hosts in zip(
            order, self.growth.intermediate_counts(stream, order), used_hosts, strict=True
        ):
            before = hops[-1] if hops else {}
            begun = order[: len(hops) + 1]
            hop = known_hops[begun] = known_hops.get(begun) or self._choose_hop_hosts(
                other, stream_hosts, before
            )
            both = len(hop.keys() & before.keys())
            eq3 += chi * (len(hop) - both)
            overhead += chi * (len(hop) - both / max(len(before), 1))
            hops.append(hop)
        return _Way(overhead, eq3, order, tuple(hops))

    def _choose_hop_hosts(
        self, stream: int, used_hosts: Collection[int], before: Collection[int]
    ) -> Probes:
        """Return V_k: hosts that hold all blocks of a stream.

        Hosts that the segment has used come first, then those of the hop before. Of the latter,
        only those that are needed to cover their blocks are taken. If several hosts of V_k hold a
        block, the least loaded one is asked; for the others it is void (step 3).
        """
        sets, wanted = self.table.sets[stream], self.table.stream_mask(stream)
        hosts: list[int] = []
        for near in (used_hosts, before) if self.settings.optimize else (used_hosts,):
            close = {h: sets[h] for h in near if h in sets}
            reach = 0
            for mask in close.values():
                reach |= mask
            hosts += self._choose_covering_hosts(close, wanted & reach)
            wanted &= ~reach
        hosts += self._choose_covering_hosts(sets, wanted)
        return self._assign_blocks_to_hosts(sets, hosts, self.table.stream_mask(stream))

    def _choose_covering_hosts(self, sets: dict[int, int], wanted: int) -> list[int]:
        if not wanted:
            return []
        if self.settings.optimize:
            return greedy_cover(sets, self.weights, wanted)
        return random_cover(sets, self.draw, wanted)

    def _assign_blocks_to_hosts(
        self, sets: dict[int, int], hosts: Collection[int], left: int
    ) -> Probes:
        probes = {}
        for host in sorted(hosts, key=self.weights.__getitem__):
            if mask := sets[host] & left:
                probes[host] = mask
                left &= ~mask
        return probes

    def _choose_storing_hosts(self, first: Iterable[int]) -> tuple[int, ...]:
        """Return the hosts that store a new segment whose V_1 is ``first``.

        While some hosts hold nothing (warm-up), they are chosen by load alone.
        """
        bound, hosts = self.settings.max_copies, self.settings.hosts
        idle = sorted(self.table.idle_hosts(hosts), key=self.weights.__getitem__)
        if bound is None:
            least = min(range(hosts), key=self.weights.__getitem__)
            filled = {*first, *idle[: self.settings.warmup_hosts]} or {least}
        elif not self.settings.optimize:
            filled = set(self.draw.sample(range(hosts), bound))
        elif idle:
            sets_to_come = -(-len(idle) // bound)
            filled = set(idle[: -(-len(idle) // sets_to_come)])
        else:
            place = min(
                self.table.places,
                key=lambda hosts: sum(self.weights[h] for h in hosts) / len(hosts),
            )
            filled = set(place)
        return tuple(sorted(filled))

    def _charge_expected_load(self, stream: int, way: _Way, stored: Collection[int]) -> None:
        """Add the expected load of a segment, so that the next one sees it.

        The measured loads of the last batch do not include this segment.
        """
        tuples = self.facts.previous_received[stream]
        first = way.hops[0] if way.hops else ()
        self._add_load({*stored, *first}, HostUsage(received_tuples=tuples))
        for k, (chi, probes) in enumerate(
            zip(self.growth.intermediate_counts(stream, way.order), way.hops, strict=False)
        ):
            entering = round(tuples * chi)
            met = self.table.rows[way.order[k]] // max(len(probes), 1)
            partials = entering if k else 0
            pairs = entering * met
            usage = HostUsage(received_partials=partials, probes=entering, compared_pairs=pairs)
            self._add_load(probes, usage)

    def _add_load(self, hosts: Iterable[int], usage: HostUsage) -> None:
        more = ((1 - EARLIER_WEIGHT) * self._compute_loads(usage)).tolist()
        for host in hosts:
            self.weights[host] += more[host]

    def _emit_path_chosen(self, block: Block, way: _Way, ways: list[_Way]) -> None:
        alternatives = (way, *(w for w in ways if w is not way))
        orders = tuple(JoinOrder(tuple(w.order), w.overhead, w.eq3) for w in alternatives)
        hosts = sorted({h for hop in way.hops for h in hop})
        loads = {h: self.weights[h] for h in hosts}
        self.events.append(PathChosen(self.facts.batch, block.id, block.stream, orders, loads))
