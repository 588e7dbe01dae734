"""Describe in words the blocks that a host holds after a batch, and the history of a block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from braid.core import narrative, plan_sentences
from braid.core.batch_history import LiveBlocks
from braid.core.block_history_index import EventIndex, route_meetings
from braid.core.run_events import BatchCommitted, BatchPlanned, EventsTrimmed, RunStarted

from braid_widgets.base.text import missing_batch_text

MOST = 40
"""Maximum number of blocks described, largest first; the rest are counted."""


def host_details(events: Iterable[Any], number: int, batch: int) -> str:
    """Describe the blocks of a host after a batch, largest first, and what each joined there.

    Batches count from 1. Raises ValueError for a batch that does not exist.
    """
    blocks, met = LiveBlocks(), dict[int, list[int]]()
    streams: plan_sentences.Names = ()
    since = 0
    for event in events:
        if isinstance(event, RunStarted):
            streams = event.streams
        elif isinstance(event, EventsTrimmed):
            blocks.apply_changes(event.live_blocks)
            since = event.batch + 1
        elif isinstance(event, BatchPlanned) and event.batch == batch - 1:
            for m in (m for route in event.routes for m in route_meetings(event.batch, route)):
                if m.host == number:
                    met.setdefault(m.other, []).append(m.block)
        elif isinstance(event, BatchCommitted):
            blocks.apply_commit(event)
            if event.batch == batch - 1:
                return _format_host_details(number, batch, blocks, streams, met)
    raise ValueError(missing_batch_text(batch, since))


def block_details(events: Iterable[Any], ids: Sequence[int]) -> str:
    """Describe the history of one block, or why the tuples of two blocks were joined or not.

    Batches count from 1. Raises ValueError for any other number of blocks and for an unknown block.
    """
    if len(ids) not in (1, 2):
        raise ValueError(f"{len(ids)} blocks were asked about; ask about one, or about two")
    run = EventIndex.from_events(events)
    return (
        narrative.describe_block_history(run, *ids)
        if len(ids) == 1
        else narrative.explain_meeting(run, *ids)
    )


def _format_host_details(
    number: int,
    batch: int,
    blocks: LiveBlocks,
    streams: plan_sentences.Names,
    met: dict[int, list[int]],
) -> str:
    held = sorted((b for b in blocks.values() if number in b.hosts), key=lambda b: (-b.rows, b.id))
    rows = sum(b.rows for b in held)
    lines = [f"host {number} after batch {batch}: {len(held):,} blocks, {rows:,} tuples"]
    for b in held[:MOST]:
        arrivals = (
            f"; probed by {plan_sentences.format_blocks(dict.fromkeys(met[b.id]))}"
            if b.id in met
            else ""
        )
        others = [h for h in b.hosts if h != number]
        also = f", also on {plan_sentences.format_hosts(others)}" if others else ""
        lines.append(
            f"  block {b.id}: {b.rows:,} tuples of {streams[b.stream]}, keys "
            f"{plan_sentences.format_key_range(b)}, "
            f"of batch {b.batch + 1}{also}{arrivals}"
        )
    if len(held) > MOST:
        lines.append(f"  and {len(held) - MOST:,} smaller ones")
    return "\n".join(lines)
