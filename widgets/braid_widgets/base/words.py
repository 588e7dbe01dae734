"""Words that several views use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from braid.core.events import RunStarted
from braid.core.plan import Block

MODELLED = "modelled run"
MOST = 12
"""Blocks that are told one by one, the largest."""


def origin(start: RunStarted) -> str:
    """Where the numbers of a run come from: "modelled run" or "measured on Spark"."""
    return MODELLED if start.clock == "modelled" else "measured on Spark"


def held(blocks: Sequence[Block], told: Callable[[Block], str] = lambda block: "") -> str:
    """The tuples of some blocks, and the largest of them, with what is ``told`` of each."""
    if not blocks:
        return "no block"
    largest = sorted(blocks, key=lambda b: (-b.rows, b.id))
    each = [f"block {b.id} ({b.rows:,}{told(b)})" for b in largest[:MOST]]
    more = [f"{len(blocks) - MOST} smaller ones"] if len(blocks) > MOST else []
    return f"{sum(b.rows for b in blocks):,} tuples in {', '.join([*each, *more])}"
