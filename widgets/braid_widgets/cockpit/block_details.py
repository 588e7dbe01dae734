"""Describe in words the blocks that a host holds after a batch, and the history of a block."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from braid.core import narrative
from braid.core.block_history_index import EventIndex, route_meetings
from braid.core.plan_sentences import format_blocks, format_hosts, format_key_range
from braid.core.run_events import BatchCommitted, BatchPlanned

from braid_widgets.base.run_view import RunView
from braid_widgets.base.text import missing_batch_text

MOST = 40
"""Maximum number of blocks described, largest first; the rest are counted."""


def host_details(events: Iterable[Any], number: int, batch: int) -> str:
    """Describe the blocks of a host after a batch, largest first, and what each joined there.

    Batches count from 1. Raises ValueError for a batch that does not exist.
    """
    scene = RunView()
    for event in events:
        scene.apply_event(event)
        if isinstance(event, BatchCommitted) and event.batch == batch - 1:
            return _format_host_details(number, scene, event.batch)
    raise ValueError(missing_batch_text(batch, scene.first_retained_batch))


def block_details(events: Iterable[Any], ids: Sequence[int]) -> str:
    """Describe the history of one block, or why the tuples of two blocks were joined or not.

    Batches count from 1. Raises ValueError for any other number of blocks and for an unknown block.
    """
    if len(ids) not in (1, 2):
        raise ValueError(f"{len(ids)} blocks were asked about; ask about one, or about two")
    describe = narrative.explain_meeting if len(ids) == 2 else narrative.describe_block_history
    return describe(EventIndex.from_events(events), *ids)


def _format_host_details(number: int, scene: RunView, batch: int) -> str:
    plan, met = scene.find_latest(BatchPlanned), defaultdict[int, list[int]](list)
    for route in plan.routes if plan is not None and plan.batch == batch else ():
        for m in route_meetings(batch, route):
            if m.host == number:
                met[m.other].append(m.block)
    held = [block for block in scene.blocks.values() if number in block.hosts]
    rows = sum(b.rows for b in held)
    lines = [f"host {number} after batch {batch + 1}: {len(held):,} blocks, {rows:,} tuples"]
    for b in sorted(held, key=lambda b: (-b.rows, b.id))[:MOST]:
        arrivals = f"; probed by {format_blocks(dict.fromkeys(met[b.id]))}" if b.id in met else ""
        others = [h for h in b.hosts if h != number]
        also = f", also on {format_hosts(others)}" if others else ""
        what = f"{b.rows:,} tuples of {scene.stream_aliases[b.stream]}, keys {format_key_range(b)}"
        lines.append(f"  block {b.id}: {what}, of batch {b.batch + 1}{also}{arrivals}")
    if len(held) > MOST:
        lines.append(f"  and {len(held) - MOST:,} smaller ones")
    return "\n".join(lines)
