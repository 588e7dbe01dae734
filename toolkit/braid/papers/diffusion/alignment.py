"""Segments of the master stream, and the alignment of a batch's blocks with them.

The alignment decides which blocks are copied to hosts that need them, and where fresh blocks go.

Source: Gu, Yu and Wang, "Adaptive Load Diffusion for Multiway Windowed Stream Joins", ICDE 2007,
section 3.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from braid.core.facts import Facts
from braid.core.plan import Block, Hop, Ids, Route
from braid.core.plan_builder import PlanBuilder
from braid.papers.common.join_orders import IntermediateGrowth, Order
from braid.papers.diffusion.run_events import SegmentPlaced

Box = tuple[int, dict[int, Ids]]
"""A host, and by stream the blocks whose every combination it joins. Boxes do not overlap."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment: ``length`` batches from ``start`` on, whose master tuples go to ``host``.

    ``planned_in`` is the batch in which the host was chosen; it may be earlier than ``start``.
    """

    start: int
    length: int
    host: int
    planned_in: int

    @property
    def end_batch(self) -> int:
        """The first batch after the segment."""
        return self.start + self.length


@dataclass(frozen=True, slots=True)
class MasterTenure:
    """The tenure of a master stream.

    ``master`` is S_N, the master since batch ``since_batch``, t_s. While tuples from before t_s are
    live, ``previous_master`` is S_M, the master until then, and ``previous_last_host`` the host of
    its last segment.
    """

    master: int
    since_batch: int = 0
    previous_master: int | None = None
    previous_last_host: int = 0


class BlockRoles:
    """The blocks by role, and which host joins which combinations.

    Without a switch, the host of a master segment joins it with all of every slave stream. In the
    transition after a switch, a combination belongs to the segment of its old-master tuple if that
    arrived before t_s; else to the segment of its new-master tuple if that arrived since; else to
    the last old segment. The paper's marked tuples, * and #, are the copies that the last two cases
    need. A merged block counts by its earliest tuples; this is correct because of the hosts that it
    is on.
    """

    def __init__(self, streams: int, tenure: MasterTenure, segments: list[Segment]) -> None:
        self.tenure, self.segments = tenure, segments
        self.starts = [s.start for s in segments]
        self.all: list[Ids] = [()] * streams
        self.old: dict[int, Ids] = {}
        self.new: dict[int, Ids] = {}
        self.marked: list[Ids] = [()] * streams
        """Blocks of the old master since t_s, and of the new master before it. Only in a
        transition.
        """

    def add_block(self, b: Block) -> None:
        """Enter a block under its role during the transition."""
        tenure, early = self.tenure, b.batch < self.tenure.since_batch
        self.all[b.stream] += (b.id,)
        if b.stream == tenure.master and not early:
            self._assign_to_segment_host(self.new, b)
        elif b.stream == tenure.previous_master and early:
            self._assign_to_segment_host(self.old, b)
        elif b.stream in (tenure.master, tenure.previous_master):
            self.marked[b.stream] += (b.id,)

    def begin_segment(self, batch: int) -> None:
        """Include the segment of this batch from now on."""
        self.new.setdefault(self.segment_at(batch).host, ())

    def _assign_to_segment_host(self, owned: dict[int, Ids], b: Block) -> None:
        host = self.segment_at(b.batch).host
        owned[host] = (*owned.get(host, ()), b.id)

    def segment_at(self, batch: int) -> Segment:
        """Return the segment of a batch."""
        return self.segments[bisect_right(self.starts, batch) - 1]

    def host_boxes(self) -> list[Box]:
        """Return the boxes of all hosts, for the known blocks."""
        tenure, everything = self.tenure, dict(enumerate(self.all))
        if tenure.previous_master is None:
            return [(h, everything | {tenure.master: ids}) for h, ids in self.new.items()]
        late = self.marked[tenure.previous_master]
        boxes = [(h, everything | {tenure.previous_master: ids}) for h, ids in self.old.items()]
        boxes += [
            (h, everything | {tenure.previous_master: late, tenure.master: ids})
            for h, ids in self.new.items()
        ]
        if early := self.marked[tenure.master]:
            boxes.append(
                (
                    tenure.previous_last_host,
                    everything | {tenure.previous_master: late, tenure.master: early},
                )
            )
        return boxes


class Alignment:
    """The alignment of one batch.

    - ``hosts``: number of hosts.
    - ``tenure``: the current master.
    - ``segments``: segments that have begun or are planned. They are changed if the segment of this
      batch cannot begin yet.
    - ``reach``: by stream, for how many batches a tuple is met; None: it goes to every host.
    - ``committed``: blocks with a smaller id are committed; others cannot be copied.
    """

    def __init__(
        self,
        facts: Facts,
        hosts: int,
        tenure: MasterTenure,
        segments: list[Segment],
        reach: Sequence[int | None],
        committed: int,
    ) -> None:
        self.facts, self.batch, self.hosts = facts, facts.batch, hosts
        self.tenure, self.segments, self.reach = tenure, segments, reach
        self._find_missing_blocks()
        if any(id >= committed for id in self.missing):
            self._extend_previous_segment()
            self._find_missing_blocks()

    def _find_missing_blocks(self) -> None:
        """Compute, by block, the hosts that join it (``needed``) and that lack it (``missing``)."""
        self.roles = BlockRoles(len(self.facts.streams), self.tenure, self.segments)
        for b in self.facts.blocks:
            self.roles.add_block(b)
        self.roles.begin_segment(self.batch)
        joining: dict[Ids, set[int]] = {}
        for host, box in self.roles.host_boxes():
            for ids in box.values():
                joining.setdefault(ids, set()).add(host)
        self.needed: dict[int, set[int]] = {b.id: set() for b in self.facts.blocks}
        for ids, hosts in joining.items():
            for id in ids:
                self.needed[id] |= hosts
        missing = {b.id: sorted(self.needed[b.id] - set(b.hosts)) for b in self.facts.blocks}
        self.missing = {id: hosts for id, hosts in missing.items() if hosts}

    def _extend_previous_segment(self) -> None:
        """Extend the previous segment, whose host has all it needs, by one batch.

        A block that has just been merged can only be copied after the next commit.
        """
        k = next(k for k, s in enumerate(self.segments) if s.start == self.batch)
        before, begins = self.segments[k - 1], self.segments[k]
        rest = replace(begins, start=self.batch + 1, length=begins.length - 1)
        self.segments[k - 1 : k + 1] = [
            replace(before, length=before.length + 1),
            *([rest] if rest.length else []),
        ]

    def migrate_blocks(self, draft: PlanBuilder) -> None:
        """Copy blocks to the hosts that join them, and drop other replicas."""
        to_come = {s.host for s in self.segments if s.end_batch > self.batch}
        for b in self.facts.blocks:
            if b.id in self.missing:
                draft.copy_block(b, dict.fromkeys(self.missing[b.id], b.hosts[0]))
            elif b.stream == self.tenure.master:
                draft.drop_replicas(b, set(b.hosts) - self.needed[b.id])
            elif self.reach[b.stream] is not None:
                draft.drop_replicas(b, set(b.hosts) - self.needed[b.id] - to_come)

    def segment_events(self) -> list[SegmentPlaced]:
        """Return the event of the segment that begins in this batch, if one does."""
        here = self.roles.segment_at(self.batch)
        if here.start != self.batch:
            return []
        rows = {b.id: b.rows for b in self.facts.blocks}
        copied = sum(rows[id] * len(hosts) for id, hosts in self.missing.items())
        ahead = here.planned_in < self.batch
        return [
            SegmentPlaced(self.batch, self.tenure.master, here.host, here.length, ahead, copied)
        ]

    def fresh_routes(self, rates: Sequence[float]) -> tuple[Route, ...]:
        """Return the routes of the fresh blocks.

        A block goes to the hosts of its boxes and, if it is of a slave, of the segments that it
        will meet. It has one path for each box. ``rates`` are tuples per batch, by stream.
        """
        rows = {b.id: b.rows for b in self.facts.blocks}
        routes = []
        for stream in range(len(self.facts.streams)):
            block = Block(self.facts.next_id + stream, stream, (0, 1), self.batch, ())
            self.roles.add_block(block)
            rows[block.id] = round(rates[stream])
            boxes = [
                (host, box) for host, box in self.roles.host_boxes() if block.id in box[stream]
            ]
            hosts = {host for host, _ in boxes} | (
                set() if stream == self.tenure.master else self._find_hosts_in_reach(stream)
            )
            order = self._choose_join_order(stream, [box for _, box in boxes], rows)
            paths = tuple(
                tuple(Hop(s, {host: box[s]}) for s in order)
                for host, box in boxes
                if all(box.values())
            )
            routes.append(Route(block.with_hosts(tuple(sorted(hosts))), paths))
        return tuple(routes)

    def _find_hosts_in_reach(self, stream: int) -> set[int]:
        reach = self.reach[stream]
        if reach is None:
            return set(range(self.hosts))
        return {
            s.host
            for s in self.segments
            if s.start <= self.batch + reach and s.end_batch > self.batch
        }

    def _choose_join_order(
        self, stream: int, boxes: list[dict[int, Ids]], rows: dict[int, int]
    ) -> Order:
        """Return the hop order, all on one host, with the fewest expected intermediate results."""
        streams = range(len(self.facts.streams))
        alike = [Counter(box[s] for box in boxes) for s in streams]
        sizes = [
            sum(n * sum(rows[id] for id in ids) for ids, n in times.items()) for times in alike
        ]
        return IntermediateGrowth(self.facts.match_counts, sizes).best_join_orders(stream, 1)[0]
