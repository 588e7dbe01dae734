"""Segments of the master stream, and which host joins what: the alignment of ATR as boxes of
blocks.

Source: Gu, Yu and Wang, "Adaptive Load Diffusion for Multiway Windowed Stream Joins", ICDE 2007,
section 3.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from braid.core.plan import Block, Ids

Box = tuple[int, dict[int, Ids]]
"""A host, and by stream the blocks of which it joins every combination. Boxes do not overlap."""


@dataclass(frozen=True, slots=True)
class Segment:
    """``length`` batches from ``start`` on, whose master tuples go to ``host``; it was ``chosen``
    in that batch, maybe earlier.
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
    """``master`` is S_N, the master stream since batch ``since``, t_s. While tuples from before t_s
    are live, ``old`` is S_M, the master until then, and ``last`` the host of its last segment.
    """

    master: int
    since_batch: int = 0
    previous_master: int | None = None
    last_old_batch: int = 0


class BlockRoles:
    """The blocks by the part they play, and what follows from it: who joins which combinations.

    Without a switch, the host of a master segment joins it with all of every slave stream. In the
    transition after a switch a combination belongs to the segment of its old-master tuple if that
    came before t_s; else to the segment of its new-master tuple if that came since; else to the
    last old segment. The paper's marked tuples, * and #, are the copies that the last two cases
    need. A block that compaction has merged counts by its earliest tuples; the hosts that it is on
    make that no less right.
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
        """Sort a block into the role that it has while the master changes."""
        reign, early = self.reign, b.batch < self.reign.since_batch
        self.all[b.stream] += (b.id,)
        if b.stream == reign.master and not early:
            self._assign_to_segment_host(self.new, b)
        elif b.stream == reign.previous_master and early:
            self._assign_to_segment_host(self.old, b)
        elif b.stream in (reign.master, reign.previous_master):
            self.marked[b.stream] += (b.id,)

    def begin_segment(self, batch: int) -> None:
        """The segment of this batch joins, from now on."""
        self.new.setdefault(self.segment_at(batch).host, ())

    def _assign_to_segment_host(self, owned: dict[int, Ids], b: Block) -> None:
        host = self.segment_at(b.batch).host
        owned[host] = (*owned.get(host, ()), b.id)

    def segment_at(self, batch: int) -> Segment:
        """The segment of a batch."""
        return self.segments[bisect_right(self.starts, batch) - 1]

    def host_boxes(self) -> list[Box]:
        """What each host joins, for the blocks that are known."""
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
