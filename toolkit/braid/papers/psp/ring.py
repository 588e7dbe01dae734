"""Pipelined state partitioning (PSP): a ring of hosts holds slices of the windows.

Every tuple is stored once. A stream's window is cut by age into slices, one for each node of the
stream's ring; the head holds the newest. A new tuple probes the rings of all other streams, one
after the other. Matches of one ring go to every node of the next. The number of sends is the same
as if they were passed round, for any join order. The barrier at the end of a batch replaces the END
tuples that tell the head that nothing is left in the ring (12.2.3). All of a stream's tuples of one
batch use one join order, the one with the fewest intermediate results (11.1) by the selectivities
measured so far; the book would let every node choose its own.

A slice boundary falls on a block boundary: a slice is a whole number of micro-batches, and a block
belongs to the slice that contains the middle of its event times. So a window of fewer batches than
nodes leaves nodes empty, and one of fewer than five times as many leaves them uneven. Blocks are
not merged across the ends of slices. In full history, where merged blocks grow without limit,
slices that stay are uneven. None of this affects results: a block is probed wherever it is.

Semi-ordered input (15.2): streams may run ahead of one another, so a stream's state is purged by
the slowest of the *other* streams, never by one of them alone. That is the lazy purge (Lemma
15.1). The engine drops blocks by the same rule; its ``lateness`` keeps them that much longer, which
admits input that is out of order within a stream too. Such tuples stay in the tail.

Source: Wang 2008, Part II: chapter 12 (Definition 4; the ring of Fig. 12.1 and its three forms),
13.4 and 14 (balance, relocation), 15.2 (order of input).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from braid.core.facts import Facts
from braid.core.placement import Placement, check_hosts
from braid.core.plan import Plan, ReplicaCopy, Route
from braid.core.plan_builder import PlanBuilder
from braid.papers.common.route_builders import hopping_routes
from braid.papers.psp.run_events import (
    HeadMoved,
    RingResized,
    SliceTableChanged,
    StateRelocated,
    TailMoved,
)
from braid.papers.psp.slice_table import (
    BlockMove,
    SliceTable,
    StreamState,
    newest_first_key,
    oldest_first_key,
    plan_purges,
    plan_relocation,
    rotate_head,
)
from braid.util.validation import check_choice

_FADING = 0.75
"""Weight of the earlier mean when a batch's load is added.

A burst of a batch or two then does not resize the ring.
"""

_REST = 8
"""Batches between two resizes by load: frequent relocation should be avoided (14.2)."""


@dataclass(frozen=True, slots=True)
class RingState:
    """The state of a ring between batches.

    - ``nodes``, ``target_nodes``: nodes in use, and those for the next batch.
    - ``slices``: the slice table of every stream.
    - ``load``: mean load in pairs per batch.
    - ``resized_in``: the batch of the last resize.
    - ``next_id``: the next block id to expect.
    """

    nodes: int
    target_nodes: int
    slices: tuple[SliceTable, ...]
    load: float = 0.0
    resized_in: int = -_REST
    next_id: int = 0


@dataclass(frozen=True)
class Ring(Placement):
    """PSP in its three forms. Supports any condition and any number of streams.

    Parameters
    ----------
    hosts
        N, the nodes at the start.
    form
        "basic": slices stay and tuples age from node to node, so each moves N - 1 times in its life
        (12.2, 12.3). "interleaved" (PSP-I, 12.4): the same with delayed purge. A block that has
        aged is probed at its old node while its copy travels, and is deleted there one batch later,
        so that no probe waits for a move. "dynamic" (PSP-D, 12.5): only the head moves, against the
        direction of the ring, once its slice is full; the tail follows by expiry. All tuples of a
        batch are in flight together and nothing is purged under them, as in 12.6 and Fig. 12.7.
    rings
        By stream, its nodes in the direction of the ring, head first (Fig. 12.2: lengths and orders
        may differ). Default: all hosts in order. See ``cost.initial_lengths`` and
        ``cost.lay_out_rings``.
    slicing
        "time": slices of W / N. "count" (14.1): slices with the tuples of W / N at the mean rate
        over the live window, so that bursts do not overload one node; only the tail is cut by
        time. A stream in full history is always sliced by counts.
    max_tuples_in_flight
        Only for "interleaved": the maximum number of state tuples in transit, and so on two nodes,
        in one batch; None: no limit. A larger block travels alone. The book bounds the tuples
        processed at once, in order to bound this duplicated state. Here the tuples of one batch are
        processed at once and their number depends on the source, so only the state can be bounded.
    resize
        (batch, nodes) pairs: the number of nodes from that batch on. Nodes are added and removed at
        the high numbers, in the ring of every stream.
    max_pairs_per_node
        Candidate pairs that a node should compare in a batch. The number of nodes follows the
        measured pairs, from ``hosts`` to ``max_hosts``. Excludes ``resize``.
    max_hosts
        Maximum number of nodes. Default: the largest number in ``hosts`` and ``resize``.
    relocation
        "passive" (14.2): only new slices have the new length; a removed node empties by expiry (so
        never, in full history). "aggressive": blocks move at once; new nodes are inserted where
        little has to move (Eq. 14.1). In the forms whose slices stay, new lengths purge at once in
        either case.

    Raises ValueError for settings out of range.
    """

    State = RingState
    label = "PSP (ring of state slices)"
    adjustable_settings = ("hosts",)

    hosts: int
    form: Literal["basic", "interleaved", "dynamic"] = "dynamic"
    rings: tuple[tuple[int, ...], ...] = ()
    slicing: Literal["time", "count"] = "time"
    max_tuples_in_flight: int | None = None
    resize: tuple[tuple[int, int], ...] = ()
    max_pairs_per_node: int | None = None
    max_hosts: int = 0
    relocation: Literal["passive", "aggressive"] = "aggressive"

    def __post_init__(self) -> None:
        check_hosts(self.hosts)
        check_choice(self.form, "form", ("basic", "interleaved", "dynamic"))
        check_choice(self.slicing, "slicing", ("time", "count"))
        check_choice(self.relocation, "relocation", ("passive", "aggressive"))
        if self.max_tuples_in_flight is not None and (
            self.form != "interleaved" or self.max_tuples_in_flight < 1
        ):
            raise ValueError(
                f"max_tuples_in_flight is {self.max_tuples_in_flight} in form {self.form!r}; it "
                "takes 'interleaved', and 1 tuple or more"
            )
        most = max([self.hosts, *(nodes for _, nodes in self.resize)])
        object.__setattr__(self, "max_hosts", self.max_hosts or most)
        self._check_growth()
        self._check_rings()

    def _replace_setting(self, name: str, value: Any, batch: int) -> Placement:
        resize, most = {**dict(self.resize), max(1, batch): value}, max(self.max_hosts, value)
        return replace(self, resize=tuple(sorted(resize.items())), max_hosts=most)

    def read_setting(self, name: str, state: RingState) -> int:
        return state.nodes

    def _check_growth(self) -> None:
        batches = [batch for batch, _ in self.resize]
        if batches != sorted(set(batches)) or any(
            batch < 1 or not 1 <= n <= self.max_hosts for batch, n in self.resize
        ):
            raise ValueError(
                f"resize is {self.resize}; it must be (batch, nodes) pairs, batches rising from 1 "
                f"or more, nodes from 1 to max_hosts, {self.max_hosts}"
            )
        if self.max_hosts < self.hosts:
            raise ValueError(
                f"max_hosts is {self.max_hosts}; it must be no less than hosts, {self.hosts}"
            )
        if self.max_pairs_per_node is not None and (
            self.max_pairs_per_node < 1 or self.resize or self.max_hosts == self.hosts
        ):
            raise ValueError(
                f"max_pairs_per_node is {self.max_pairs_per_node}, max_hosts {self.max_hosts} "
                f"with {self.hosts} hosts; it must be 1 pair or more, max_hosts above hosts, and "
                "no resize given beside it"
            )

    def _check_rings(self) -> None:
        fewest = min([self.hosts, *(nodes for _, nodes in self.resize)])
        for stream, ring in enumerate(self.rings):
            if (
                len(set(ring)) != len(ring)
                or not set(ring) <= set(range(self.hosts))
                or min(ring, default=fewest) >= fewest
            ):
                raise ValueError(
                    f"the ring of stream {stream} is {ring}; it must name different hosts from 0 "
                    f"to {self.hosts - 1}, one of them below {fewest}, the fewest nodes that there "
                    "will be"
                )

    @classmethod
    def example_instances(cls) -> tuple[Self, ...]:
        return (
            cls(5),
            cls(3, form="basic"),
            cls(4, form="interleaved", max_tuples_in_flight=50),
            cls(3, slicing="count", resize=((2, 5), (4, 2))),
        )

    def initial_state(self, streams: int) -> RingState:
        if self.rings and len(self.rings) != streams:
            raise ValueError(
                f"rings has {len(self.rings)} rings; the join has {streams} streams, and each "
                "needs one"
            )
        rings = self.rings or (tuple(range(self.hosts)),) * streams
        tables = tuple(SliceTable(ring, (None,) * len(ring)) for ring in rings)
        return RingState(self.hosts, self.hosts, tables)

    def merge_boundaries(self, state: RingState) -> tuple[tuple[int, ...], ...]:
        """Return the ages at which slices end.

        A block merged across an end would be on one node as a whole, and leave another with less
        (13.4).
        """
        return tuple(s.slice_ends() for s in state.slices)

    def plan_batch(self, facts: Facts, state: RingState) -> Plan:
        return _Planner(self, facts, state).plan_batch()


class _Planner:
    """The planning of one batch: the state of the ring, and where each block is probed (``at``)."""

    def __init__(self, ring: Ring, facts: Facts, state: RingState) -> None:
        self.ring, self.facts, self.before = ring, facts, state
        self.draft = PlanBuilder(facts)
        self.events: list[Any] = []
        self.streams = range(len(facts.streams))
        self.slices = list(state.slices)
        self.states = [self._make_stream_state(s) for s in self.streams]
        self.at = {b.id: b.hosts[0] for b in facts.blocks}

    def _make_stream_state(self, stream: int) -> StreamState:
        window = self.facts.windows[stream] if self.facts.windows else None
        latest: Sequence[int | None] = self.facts.clocks or (None,) * len(self.streams)
        others = [t for s, t in enumerate(latest) if s != stream]
        clocks = [t for t in others if t is not None]
        clock = min(clocks) if clocks and len(clocks) == len(others) else None
        blocks = sorted(
            (b for b in self.facts.blocks if b.stream == stream), key=newest_first_key, reverse=True
        )
        counted = window is None or self.ring.slicing == "count"
        received, last = self.facts.received[stream], self.facts.previous_received[stream]
        return StreamState(tuple(blocks), window, latest[stream], clock, received, last, counted)

    def plan_batch(self) -> Plan:
        before = tuple(self.slices)
        nodes = self._resize_rings()
        resized = nodes != self.before.nodes
        if self.ring.form == "dynamic":
            self._rotate_heads(resized and self.ring.relocation == "aggressive")
        else:
            self._move_aged_blocks()
        routes = self._make_routes()
        self._emit_table_events(before)
        resized_in = self.facts.batch if resized else self.before.resized_in
        load, wanted = self._choose_node_count(nodes, resized_in)
        pinned = (*self.facts.blocks, *(r.block for r in routes)) if wanted != nodes else ()
        next_id = next(self.draft.ids)
        state = RingState(nodes, wanted, tuple(self.slices), load, resized_in, next_id)
        return self.draft.make_plan(routes, state, self.events, (b.id for b in pinned))

    def _choose_node_count(self, nodes: int, resized_in: int) -> tuple[float, int]:
        """Return the mean load in pairs per batch, and the nodes for the next one.

        A change is announced one batch ahead, so that blocks can be pinned: a block that has just
        been merged cannot move at once.
        """
        load = _FADING * self.before.load + (1 - _FADING) * sum(
            u.compared_pairs for u in self.facts.host_usage
        )
        if self.ring.max_pairs_per_node is None:
            return load, [
                self.ring.hosts,
                *(n for batch, n in self.ring.resize if batch <= self.facts.batch + 1),
            ][-1]
        needed = min(
            max(-(-int(load) // self.ring.max_pairs_per_node), self.ring.hosts), self.ring.max_hosts
        )
        rested = self.facts.batch >= resized_in + _REST
        return load, needed if rested and (needed > nodes or needed < 0.75 * nodes) else nodes

    def _resize_rings(self) -> int:
        """Add or remove nodes in every stream's ring (14.2). Return the new number of nodes."""
        nodes, wanted = self.before.nodes, self.before.target_nodes
        if wanted != nodes:
            aggressive = self.ring.relocation == "aggressive"
            self.slices = [
                s.resize(wanted, tuple(range(nodes, wanted)), aggressive) for s in self.slices
            ]
            reason = "scheduled" if self.ring.max_pairs_per_node is None else "load"
            self.events.append(
                RingResized(self.facts.batch, nodes, wanted, reason, self.ring.relocation)
            )
        return wanted

    def _rotate_heads(self, relocate: bool) -> None:
        """Move heads and tails of the dynamic form."""
        for s in self.streams:
            if relocate:
                self.slices[s], moves = plan_relocation(self.slices[s], self.states[s])
                self._relocate_blocks(s, moves, "resized", is_delayed=False)
            self.slices[s] = rotate_head(self.slices[s], self.states[s])

    def _move_aged_blocks(self) -> None:
        """Move aged blocks to later slices, oldest first, up to the number that may be in flight.

        Excluded are blocks on two nodes, whose delayed purge is due now, and blocks that compaction
        has just merged.
        """
        arrived = {b.id for b in self.facts.blocks if len(b.hosts) > 1}
        due: list[BlockMove] = []
        for s in self.streams:
            self._purge_replicas(s)
            self.slices[s], moves = plan_purges(self.slices[s], self.states[s])
            due += [
                m for m in moves if m.block.id not in arrived and m.block.id < self.before.next_id
            ]
        going: list[BlockMove] = []
        left = self.ring.max_tuples_in_flight
        for m in sorted(due, key=lambda m: newest_first_key(m.block)):
            if left is None or m.block.rows <= left or not going:
                going.append(m)
                left = None if left is None else left - m.block.rows
        for s in self.streams:
            self._relocate_blocks(
                s,
                [m for m in going if m.block.stream == s],
                "aged",
                is_delayed=self.ring.form == "interleaved",
            )

    def _purge_replicas(self, stream: int) -> None:
        """Apply the delayed purge: a block on two nodes stays on the one nearer the tail."""
        place = {n: k for k, n in enumerate(self.slices[stream].nodes)}
        for b in self.states[stream].blocks:
            self.at[b.id] = max(b.hosts, key=lambda h: place.get(h, -1))
            self.draft.drop_replicas(b, set(b.hosts) - {self.at[b.id]})

    def _relocate_blocks(
        self, stream: int, moves: Sequence[BlockMove], reason: str, is_delayed: bool
    ) -> None:
        """Copy blocks to other nodes.

        Unless the old node keeps its replica for this batch, they are probed on the new one.
        """
        for m in moves:
            copied = self.draft.copy_block(m.block, {m.target: m.source})
            if not is_delayed:
                self.draft.drop_replicas(copied, (m.source,))
                self.at[m.block.id] = m.target
        if moves:
            copies = tuple(ReplicaCopy(m.block.id, m.source, m.target) for m in moves)
            self.events.append(
                StateRelocated(
                    self.facts.batch,
                    stream,
                    reason,
                    copies,
                    sum(m.block.rows for m in moves),
                    is_delayed,
                )
            )

    def _emit_table_events(self, before: Sequence[SliceTable]) -> None:
        """Emit events of changes in the tables. The tail is the node with the oldest block."""
        batch = self.facts.batch
        for s, (old, new, state) in enumerate(zip(before, self.slices, self.states, strict=True)):
            if old.nodes[0] != new.nodes[0]:
                self.events.append(HeadMoved(batch, s, old.nodes[0], new.nodes[0]))
            tail = self.at[min(state.blocks, key=oldest_first_key).id] if state.blocks else None
            if tail != old.tail:
                self.events.append(TailMoved(batch, s, old.tail, tail))
                self.slices[s] = replace(new, tail=tail)
            if batch == 0 or (old.nodes, old.lengths) != (new.nodes, new.lengths):
                bound = round(state.slice_width(len(new.nodes))) if state.is_counted else None
                self.events.append(SliceTableChanged(batch, s, new.nodes, new.lengths, bound))

    def _make_routes(self) -> tuple[Route, ...]:
        """Return one route for each stream: a fresh block, stored on the stream's head.

        It visits the rings of the other streams in the best join order.
        """
        heads = [s.nodes[0] for s in self.slices]
        return hopping_routes(self.facts, self.facts.blocks, self.at, heads, (0, 1), self.draft.ids)
