"""The map of any run: which blocks each host holds, by age."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple, TypedDict

from braid.core.events import RunStarted
from braid.core.plan import Block
from braid.core.spans import text

from braid_widgets.base.columns import Columns
from braid_widgets.base.maps import Map


class HeldBlock(NamedTuple):
    """A replica: its host, stream and tuples; from ``first`` to ``last`` of the axis (0: the oldest
    that is held, 1: the youngest).
    """

    block: int
    host: int
    stream: int
    first: float
    last: float
    rows: int


class HeldFrame(TypedDict):
    """Blocks by host, stream and age. ``stored`` are tuples by host, a full bar is ``top``;
    ``ends`` name the ends of the axis.
    """

    title: str
    note: str
    hosts: int
    streams: list[str]
    ends: list[str]
    blocks: Columns[HeldBlock]
    stored: list[int]
    top: int


class HeldMap(Map):
    """For runs of which no other map knows more."""

    name = "held"
    rank = 0

    @classmethod
    def suits(cls, start: RunStarted, kinds: Collection[type]) -> bool:
        return True

    def frame(self) -> HeldFrame:
        """The picture after the last commit."""
        scene, blocks = self.scene, list(self.scene.blocks.values())
        stored = [did.stored for did in scene.last.hosts] if scene.last else []
        timed = all(b.span is not None for b in blocks)
        low, high = _range([_reach(b, timed) for b in blocks])
        held = [
            HeldBlock(b.id, h, b.stream, *_share(_reach(b, timed), low, high), b.rows)
            for b in blocks
            for h in b.hosts
        ]
        oldest = text(round(high - low)) + " older" if timed and blocks else "oldest batch"
        return {
            "title": "What each host holds, by age",
            "note": "one row a host, one lane a stream · a block on several hosts is a replica",
            "hosts": max(len(stored), scene.start.hosts if scene.start else 1),
            "streams": list(scene.streams),
            "ends": [oldest, "newest"],
            "blocks": Columns.of(HeldBlock, sorted(held)),
            "stored": stored,
            "top": max(stored, default=0),
        }


def _reach(block: Block, timed: bool) -> tuple[float, float]:
    """A block's event times in microseconds; without time its batch."""
    if timed and block.span is not None:
        return block.span
    return block.batch, block.batch + 1


def _range(reaches: list[tuple[float, float]]) -> tuple[float, float]:
    low, high = min((a for a, _ in reaches), default=0), max((b for _, b in reaches), default=1)
    return low, max(high, low + 1)


def _share(reach: tuple[float, float], low: float, high: float) -> tuple[Any, Any]:
    return tuple(round((t - low) / (high - low), 4) for t in reach)  # type: ignore[return-value]
