"""Phrases used by several views."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from braid.core.plan import Block
from braid.core.run_events import RunStarted

MODELLED = "modelled run"
MOST = 12
"""Maximum number of blocks listed, largest first."""


def data_origin(start: RunStarted) -> str:
    """Return the origin of a run's numbers: "modelled run" or "measured on Spark"."""
    return MODELLED if start.time_source == "modelled" else "measured on Spark"


def missing_batch_text(batch: int, since: int) -> str:
    """Return that a run has no such batch, or that its events were trimmed.

    Batches count from 1; the events of the first ``since`` are not retained.
    """
    if 0 < batch <= since:
        return f"events are kept from batch {since + 1} on, not of batch {batch}"
    return f"there is no batch {batch}"


def format_held_blocks(
    blocks: Sequence[Block], describe: Callable[[Block], str] = lambda block: ""
) -> str:
    """Return the number of tuples of some blocks, and the largest blocks, each described."""
    if not blocks:
        return "no block"
    largest = sorted(blocks, key=lambda b: (-b.rows, b.id))
    each = [f"block {b.id} ({b.rows:,}{describe(b)})" for b in largest[:MOST]]
    more = [f"{len(blocks) - MOST} smaller ones"] if len(blocks) > MOST else []
    return f"{sum(b.rows for b in blocks):,} tuples in {', '.join([*each, *more])}"
