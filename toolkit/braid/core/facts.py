"""Facts: the input that a placement plans a batch from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from braid.core.plan import Block
from braid.core.query import Query
from braid.core.stream_clocks import Clock


class HostUsage(msgspec.Struct, frozen=True, gc=False):
    """Work of one host in the last committed batch, and what it holds after it.

    Counts only, no times, so that a plan is reproducible.

    - ``received_tuples``: tuples sent to the host.
    - ``received_partials``: intermediate results that arrived from other hosts.
    - ``sent_partials``: intermediate results sent, counted once for each receiving host.
    - ``probes``: tuples and intermediate results that probed blocks here, counted once for each
      hop.
    - ``compared_pairs``: candidate pairs.
    - ``stored_tuples``, ``stored_bytes``: tuples held.
    - ``network_bytes``: incoming bytes of tuples, intermediate results and migrated blocks.
    """

    received_tuples: int = 0
    received_partials: int = 0
    sent_partials: int = 0
    probes: int = 0
    compared_pairs: int = 0
    stored_tuples: int = 0
    stored_bytes: int = 0
    network_bytes: int = 0


Visit = tuple[tuple[int, ...], int]
"""A step of a join order: the streams joined so far (sorted), and the next one."""

Matches = dict[Visit, tuple[float, float]]
"""By step, the compared pairs (intermediate result, tuple) and those that matched."""

AgedMatches = dict[tuple[Visit, int], tuple[float, float]]
"""The same by step and age of the probed block; see ``block_ages``."""

AGES = 16
"""Number of parts of a window by which ages are counted."""


def block_ages(
    blocks: Iterable[Block],
    batch: int,
    windows: Sequence[int | None],
    clocks: Sequence[int | None],
) -> dict[int, int]:
    """Return the ages of blocks at the start of a batch, by id: 0 for the youngest.

    Windows and clocks are by stream. The window of a stream is divided into AGES parts; the age is
    the part that contains the middle of the block's event times, at most AGES - 1. The time now is
    the greatest clock of the other streams. With full history, or while the other streams are
    silent, the age is the number of times that the batches since the block's first have doubled.
    """
    now = [_latest_other_clock(s, clocks) for s in range(len(windows))]
    return {b.id: _age_class(b, batch, windows[b.stream], now[b.stream]) for b in blocks}


def _latest_other_clock(stream: int, clocks: Sequence[int | None]) -> int | None:
    """Return the greatest clock of the other streams."""
    return max((t for s, t in enumerate(clocks) if s != stream and t is not None), default=None)


def _age_class(b: Block, batch: int, window: int | None, now: int | None) -> int:
    if window is None or b.event_time_range is None or now is None:
        return (batch - b.batch).bit_length()
    return min(
        AGES - 1,
        max(0, (now - (b.event_time_range[0] + b.event_time_range[1]) // 2) * AGES // window),
    )


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts that a placement plans batch number ``batch`` from.

    They contain no tuple and no time of day.

    - ``streams``: names of the streams. Fields by stream follow this order.
    - ``blocks``: live blocks, after compaction.
    - ``next_id``: first free block id.
    - ``received``, ``received_bytes``: by stream, tuples of all committed batches.
    - ``previous_received``: by stream, tuples of the last batch.
    - ``windows``: by stream, microseconds; None: full history.
    - ``clocks``: by stream, event time in microseconds; None: no tuple has arrived.
    - ``host_usage``: by host; may be shorter than the number of hosts.
    - ``match_counts``: measured selectivity; recent batches weigh most (see ``Matches``).
    - ``watermarks``: by stream, the earliest event time still expected of the other streams;
      ``END``: they have ended; None: unknown.
    - ``queries``: queries of a shared run.
    - ``key_counts``: by stream, tuples by number; recent batches weigh most. In a shared run the
      number is the routing key; if join values have several keys, it is one of the most frequent
      values, and ``frequent_values.OTHERS`` stands for all others. Otherwise empty.
    - ``match_counts_by_age``: ``match_counts`` by age as well.
    - ``compacted_blocks``: blocks that compaction makes in this batch. Other hosts cannot read them
      before the next batch.
    """

    batch: int
    streams: tuple[str, ...]
    blocks: tuple[Block, ...]
    next_id: int
    received: tuple[int, ...]
    received_bytes: tuple[int, ...]
    previous_received: tuple[int, ...]
    windows: tuple[int | None, ...] = ()
    clocks: tuple[int | None, ...] = ()
    host_usage: tuple[HostUsage, ...] = ()
    match_counts: Matches = field(default_factory=dict)
    watermarks: tuple[Clock, ...] = ()
    queries: tuple[Query, ...] = ()
    key_counts: tuple[Mapping[int, float], ...] = ()
    match_counts_by_age: AgedMatches = field(default_factory=dict)
    compacted_blocks: frozenset[int] = frozenset()
