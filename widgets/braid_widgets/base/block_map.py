"""The state map for any run: the blocks that each host holds, by age."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, TypedDict

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
        """Return the frame after the last commit."""
        scene, blocks = self.scene, list(self.scene.blocks.values())
        stored = (
            [metrics.stored_tuples for metrics in scene.last.host_metrics] if scene.last else []
        )
        timed = all(b.event_time_range is not None for b in blocks)
        low, high = _find_common_range([_get_block_interval(b, timed) for b in blocks])
        held = [
            BlockBar(
                b.id,
                h,
                b.stream,
                *_scale_to_range(_get_block_interval(b, timed), low, high),
                b.rows,
            )
            for b in blocks
            for h in b.hosts
        ]
        oldest = (
            format_duration(round(high - low)) + " older" if timed and blocks else "oldest batch"
        )
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


def _find_common_range(reaches: list[tuple[float, float]]) -> tuple[float, float]:
    low, high = min((a for a, _ in reaches), default=0), max((b for _, b in reaches), default=1)
    return low, max(high, low + 1)


def _scale_to_range(reach: tuple[float, float], low: float, high: float) -> tuple[Any, Any]:
    return tuple(round((t - low) / (high - low), 4) for t in reach)  # type: ignore[return-value]
