"""The state map for any run: the blocks that each host holds, by age."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, TypedDict

from braid.core.plan import Block
from braid.core.run_events import RunStarted
from braid.util.durations import format_duration

from braid_widgets.base.columnar import Columns
from braid_widgets.base.state_maps import StateMap


class BlockBar(NamedTuple):
    """One replica of a block: its host, stream and number of tuples.

    ``first`` and ``last`` are its ends on the age axis (0: the oldest block held, 1: the youngest).
    """

    block: int
    host: int
    stream: int
    first: float
    last: float
    rows: int


class BlockMapFrame(TypedDict):
    """Blocks by host, stream and age.

    - ``stored``: tuples by host.
    - ``scale_max``: tuples of a full bar.
    - ``ends``: labels of the two ends of the age axis.
    """

    title: str
    note: str
    hosts: int
    streams: list[str]
    ends: list[str]
    blocks: Columns[BlockBar]
    stored: list[int]
    scale_max: int


class BlockMap(StateMap):
    """The fallback map, for runs without a more specific one."""

    name = "blocks"
    rank = 0

    @classmethod
    def can_show(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        return True

    def make_frame(self) -> BlockMapFrame:
        scene, blocks = self.scene, list(self.scene.blocks.values())
        stored = self.list_by_host("stored_tuples")
        timed = all(b.event_time_range is not None for b in blocks)
        spans = [_get_block_interval(b, timed) for b in blocks]
        low = min((first for first, _ in spans), default=0)
        high = max(low + 1, max((last for _, last in spans), default=1))
        long = high - low
        held = [
            BlockBar(
                b.id, h, b.stream, round((a - low) / long, 4), round((z - low) / long, 4), b.rows
            )
            for b, (a, z) in zip(blocks, spans, strict=True)
            for h in b.hosts
        ]
        is_dated = timed and bool(blocks)
        oldest = f"{format_duration(round(long))} older" if is_dated else "oldest batch"
        return {
            "title": "State of each host, by age",
            "note": "one row a host, one lane a stream · a block on several hosts is a replica",
            "hosts": max(len(stored), scene.start.hosts if scene.start else 1),
            "streams": list(scene.stream_aliases),
            "ends": [oldest, "newest"],
            "blocks": Columns.from_records(BlockBar, sorted(held)),
            "stored": stored,
            "scale_max": max(stored, default=0),
        }


def _get_block_interval(block: Block, timed: bool) -> tuple[float, float]:
    """Return a block's event-time interval in microseconds; its batch if it has no time."""
    if timed and block.event_time_range is not None:
        return block.event_time_range
    return block.batch, block.batch + 1
