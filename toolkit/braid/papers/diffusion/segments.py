"""Segments of the master stream, and the alignment of ATR as boxes of blocks.

Source: Gu, Yu and Wang, "Adaptive Load Diffusion for Multiway Windowed Stream Joins", ICDE 2007,
section 3.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from braid.core.plan import Block, Ids

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
    live, ``previous_master`` is S_M, the master until then, and ``last_old_batch`` the host of its
    last segment.
    """

    master: int
    since_batch: int = 0
    previous_master: int | None = None
    last_old_batch: int = 0


class BlockRoles:
    """The blocks by role, and which host joins which combinations.

    Without a switch, the host of a master segment joins it with all of every slave stream. In the
    transition after a switch, a combination belongs to the segment of its old-master tuple if that
    arrived before t_s; else to the segment of its new-master tuple if that arrived since; else to
    the last old segment. The paper's marked tuples, * and #, are the copies that the last two cases
    need. A merged block counts by its earliest tuples; this is correct because of the hosts that it
    is on.
    """

    def __init__(self, streams: int, reign: MasterTenure, segments: list[Segment]) -> None:
        self.reign, self.segments = reign, segments
        self.starts = [s.start for s in segments]
        self.all: list[Ids] = [()] * streams
        self.old: dict[int, Ids] = {}
        self.new: dict[int, Ids] = {}
        self.marked: list[Ids] = [()] * streams
        """Of the old master, the blocks since t_s; of the new one, those before. Only in a
        transition.
        """

    def add_block(self, b: Block) -> None:
        """Enter a block under its role during the transition."""
        reign, early = self.reign, b.batch < self.reign.since_batch
        self.all[b.stream] += (b.id,)
        if b.stream == reign.master and not early:
            self._assign_to_segment_host(self.new, b)
        elif b.stream == reign.previous_master and early:
            self._assign_to_segment_host(self.old, b)
        elif b.stream in (reign.master, reign.previous_master):
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
        reign, everything = self.reign, dict(enumerate(self.all))
        if reign.previous_master is None:
            return [(h, everything | {reign.master: ids}) for h, ids in self.new.items()]
        late = self.marked[reign.previous_master]
        made = [(h, everything | {reign.previous_master: ids}) for h, ids in self.old.items()]
        made += [
            (h, everything | {reign.previous_master: late, reign.master: ids})
            for h, ids in self.new.items()
        ]
        if early := self.marked[reign.master]:
            made.append(
                (
                    reign.last_old_batch,
                    everything | {reign.previous_master: late, reign.master: early},
                )
            )
        return made
