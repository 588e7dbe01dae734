"""What a placement may know when it plans a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from braid.core.plan import Block
from braid.core.query import Query


class HostUsage(msgspec.Struct, frozen=True):
    """What one host did in the last committed batch, and what it holds now: counts only, so that a
    plan repeats exactly.

    ``received`` tuples; ``arrived`` intermediate results from other hosts; ``sent`` intermediate
    results, once for each host that they went to; ``probed`` tuples and intermediate results that
    met something here, once for each hop; ``compared`` candidate pairs; ``stored`` tuples and
    ``stored_bytes``; ``network_bytes`` that came in: tuples, intermediate results and moved blocks.
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
"""A step of a join order: the streams visited so far (sorted), and the next one."""

Matches = dict[Visit, tuple[float, float]]
"""By step, the pairs (intermediate result, tuple) that were considered and those that matched."""

AgedMatches = dict[tuple[Visit, int], tuple[float, float]]
"""The same by step and age of the met block: see ``age``."""

AGES = 16
"""The parts of a window that ages are counted in."""


def block_age(b: Block, batch: int, window: int | None, clocks: Sequence[int | None]) -> int:
    """The age of a block when a batch begins: the part of its stream's window, of AGES, that the
    middle of its event times lies in, the youngest is 0.

    What ages a stream is the greatest clock of the others. With full history, or as long as the
    others are silent: how many times the number of batches since its first has doubled.
    """
    return _age_class(b, batch, window, _latest_other_clock(b.stream, clocks))


def block_ages(
    blocks: Iterable[Block],
    batch: int,
    windows: Sequence[int | None],
    clocks: Sequence[int | None],
) -> dict[int, int]:
    """The ages of blocks, by id; windows and clocks are by stream."""
    now = [_latest_other_clock(s, clocks) for s in range(len(windows))]
    return {b.id: _age_class(b, batch, windows[b.stream], now[b.stream]) for b in blocks}


def _latest_other_clock(stream: int, clocks: Sequence[int | None]) -> int | None:
    """The greatest clock of the other streams."""
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
    """All that a placement may know when it plans batch number ``batch``: no tuple, no clock.

    ``blocks`` are live, after compaction; new ids start at ``next_id``; ``received`` and
    ``received_bytes`` count, by stream, the tuples of all committed batches; ``last_received``
    those of the last one. By stream, ``windows`` are W_i and ``clocks`` how far event time is, in
    microseconds; None stands for full history and for a stream that has been silent. ``usage`` is
    by host and may be shorter than the hosts are many. ``matches`` measures selectivity, recent
    batches counting most: see Matches; ``matches_by_age`` has them by age as well.
    ``watermarks`` is, by stream, the earliest event time still expected of the others. A run that
    serves many queries names them, and how many tuples had each routing key, by stream, recent
    batches counting most (``key_counts``). ``merged`` are the blocks that compaction makes in this
    batch: no other host can read them before the next.
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
    watermarks: tuple[int | None, ...] = ()
    queries: tuple[Query, ...] = ()
    key_counts: tuple[Mapping[int, float], ...] = ()
    match_counts_by_age: AgedMatches = field(default_factory=dict)
    compacted_blocks: frozenset[int] = frozenset()
