"""Read the last events of a run or a hub without the others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from braid.core.event_jsonl import decode_event
from braid.core.run_events import BatchCommitted, RunEnded
from braid.papers.reuse.hub_events import HubBatchCommitted

_TAIL = 1 << 20
"""Bytes read first from the end of a run's events. A commit takes a few thousand."""


def read_recent_events(file: Path, commits: int = 1) -> tuple[Any, Sequence[Any], RunEnded | None]:
    """Return the first event, the last ones, and the end of the run if it is the last of all.

    - ``file``: ``events.jsonl``.
    - ``commits``: number of commits among the last events, unless there are fewer in all.
    """
    with open(file, "rb") as lines:
        first = decode_event(lines.readline())
        size, tail = os.fstat(lines.fileno()).st_size, _TAIL
        while True:
            lines.seek(max(0, size - tail))
            *complete_lines, _ = lines.read(tail).split(b"\n")
            recent = [decode_event(line) for line in complete_lines[tail < size :] if line]
            count = sum(isinstance(e, BatchCommitted | HubBatchCommitted) for e in recent)
            if count >= commits or tail >= size:
                break
            tail *= 4
    end = recent[-1] if recent and isinstance(recent[-1], RunEnded) else None
    return first, recent, end
