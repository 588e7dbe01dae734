"""Compaction of the block store: drop expired blocks, merge small ones.

It is the same for every placement.

Merging works as in a log-structured merge tree. The blocks of one stream on the same hosts are
grouped into tiers by size; each tier is four times the one below. Four blocks of a tier whose key
ranges touch are merged. Size is rows per key, so the pieces of a cut block stay in its tier and can
merge again. The number of blocks that a probe enters grows with the logarithm of the history, and
each tuple is rewritten a logarithmic number of times. Blocks are not merged into one of more than
``MOST_BYTES``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import NamedTuple

from braid.core.horizon import Horizon
from braid.core.plan import Block, Derivation, Keys, Plan
from braid.core.stream_clocks import Clock

FANOUT = 4
_SMALLEST = 4096
"""Tuples. All smaller blocks belong to the lowest tier."""
MOST_BYTES = (1 << 31) // 3
"""Maximum size of a merged block. A column of text cannot reach 2^31 bytes, and a block can be up
to three times the size in its facts: the size of a cut block with at least a third of its file's
rows is estimated from its share.
"""
_Times = tuple[int, int]
"""(earliest, latest) event time."""


def plan_compaction(
    blocks: Iterable[Block],
    next_id: int,
    pinned: Collection[int],
    retention: Retention,
    slices: Sequence[Sequence[int]] = (),
) -> Plan:
    """Return the drops and merges that are due before a batch.

    A block has expired if all of its tuples are below the horizon of its stream. ``slices`` has, by
    stream, the ages across which blocks are not merged; the last is the window.
    """
    drops: dict[int, tuple[int, ...]] = {}
    groups: dict[tuple[int, tuple[int, ...], int], list[Block]] = {}
    slices = slices or tuple(() if w is None else (w,) for w in retention.windows)
    has_ages, horizons = [*map(bool, slices)], retention.horizons
    for b in blocks:
        stream, hosts = b.stream, b.hosts
        if b.id in pinned:
            continue
        if (horizon := horizons[stream]) is not None and has_expired(b, horizon):
            drops[b.id] = hosts
            continue
        limit, reached = retention.watermarks[stream], 0
        if has_ages[stream]:
            reached = count_reached_ages(b, slices[stream], limit)
        groups.setdefault((stream, hosts, reached), []).append(b)
    derivations: list[Derivation] = []
    for (stream, _, at), group in groups.items():
        if len(group) < FANOUT:
            continue
        spans = _limit_spans(retention, stream, _slice_length(slices[stream], at))
        for few in (
            few for tier in _group_by_tier(group) for few in _find_mergeable_runs(tier, spans)
        ):
            derivations.append(_make_merge_derivation(few, next_id + len(derivations)))
            drops |= {b.id: b.hosts for b in few}
    return Plan(derivations=tuple(derivations), drops=drops)


class Retention(NamedTuple):
    """How long tuples are held, by stream, in microseconds.

    - ``windows``: W_i; None: full history.
    - ``watermarks``: the earliest event time still expected of the other streams.
    - ``horizons``: tuples below it have expired.
    - ``waits``: how long a tuple waits for the partners that come first; None: no limit.
    """

    windows: Sequence[int | None]
    watermarks: Sequence[Clock]
    horizons: Sequence[Horizon]
    waits: Sequence[int | None]


def has_expired(b: Block, horizon: Horizon) -> bool:
    """Return whether all tuples of a block are below the horizon of its stream."""
    if horizon is None:
        return False
    return horizon == inf or (b.event_time_range is not None and b.event_time_range[1] < horizon)


class _SpanLimit(NamedTuple):
    """Maximum span of a merged block: a quarter of the time that it is held.

    That time is ``held``, or more if its tuples are further ahead of ``since``, because another
    stream is behind. Microseconds; ``since`` None: unknown.
    """

    held: int
    since: float | None

    def admits_span(self, span: _Times) -> bool:
        held = self.held if self.since is None else max(self.held, span[0] - self.since)
        return span[1] - span[0] <= held // FANOUT


def _limit_spans(retention: Retention, stream: int, slice_length: int | None) -> _SpanLimit | None:
    """Return the maximum span of merged blocks of a stream; None: any."""
    wait, window = retention.waits[stream], retention.windows[stream]
    if slice_length is None and wait is None:
        return None
    lengths = (slice_length, None if wait is None else wait + 1)
    held = min((length for length in lengths if length), default=0)  # a slice may have no length
    horizon = retention.horizons[stream]
    if horizon is None or window is None:
        return _SpanLimit(held, None)
    return _SpanLimit(held, horizon + window)


def count_reached_ages(b: Block, ages: Sequence[int], watermark: Clock) -> int:
    """Return how many of the ages (ascending, microseconds) all tuples of a block have reached.

    Age is relative to every tuple that may still arrive.
    """
    return (
        0
        if watermark is None or b.event_time_range is None
        else bisect_right(ages, watermark - b.event_time_range[1])
    )


def _slice_length(ages: Sequence[int], at: int) -> int | None:
    """Return the length of the slice between two ages; ages past the last count as the last."""
    at = min(at, len(ages) - 1)
    return ages[at] - (ages[at - 1] if at > 0 else 0) if ages else None


def _group_by_tier(group: list[Block]) -> list[list[Block]]:
    """Return the blocks by tier.

    A block that is not small counts with the rows it would have over all keys of the group.
    """
    if all(b.rows < _SMALLEST * FANOUT for b in group):
        return [group]
    lo, hi = _union_key_ranges(group)
    tiers: dict[int, list[Block]] = {}
    for b in group:
        rows = b.rows * (hi - lo) // (b.key_range[1] - b.key_range[0])
        tiers.setdefault(_choose_tier(rows) if _choose_tier(b.rows) else 0, []).append(b)
    return list(tiers.values())


def _choose_tier(rows: int) -> int:
    tier = 0
    while rows >= _SMALLEST * FANOUT ** (tier + 1):
        tier += 1
    return tier


def _find_mergeable_runs(tier: list[Block], limit: _SpanLimit | None) -> list[list[Block]]:
    """Return runs of four or more blocks to merge, oldest first; blocks of one batch by key."""
    if len(tier) < FANOUT:
        return []
    ordered = sorted(tier, key=lambda b: (b.batch, b.key_range, b.id))
    if limit is None and _have_same_keys(tier) and sum(b.size_bytes for b in tier) <= MOST_BYTES:
        return [ordered[n : n + FANOUT] for n in range(0, len(tier) - FANOUT + 1, FANOUT)]
    due: list[list[Block]] = []
    runs: list[_Run] = []
    for b in ordered:
        run = _Run([b], b.key_range, b.event_time_range, b.size_bytes)
        merged: set[int] = set()
        for other in runs:
            # Most runs are of other keys: a call for each would take most of the time.
            touches = other.keys[0] <= run.keys[1] and run.keys[0] <= other.keys[1]
            if touches and _can_merge(other, run, limit):
                run = other.append_run(run)
                merged.add(id(other))
        if merged:
            runs = [other for other in runs if id(other) not in merged]
        if len(run.blocks) < FANOUT:
            runs.append(run)
        else:
            due.append(run.blocks)
    return due


def _have_same_keys(tier: list[Block]) -> bool:
    keys = tier[0].key_range
    return all(b.key_range == keys for b in tier)


class _Run(NamedTuple):
    """Blocks whose keys touch, with their key range, event times and bytes."""

    blocks: list[Block]
    keys: Keys
    span: _Times | None
    bytes: int

    def append_run(self, later: _Run) -> _Run:
        (lo, hi), (low, high) = self.keys, later.keys
        keys, size = (min(lo, low), max(hi, high)), self.bytes + later.bytes
        return _Run(self.blocks + later.blocks, keys, _union_spans(self.span, later.span), size)


def _can_merge(a: _Run, b: _Run, limit: _SpanLimit | None) -> bool:
    """Return whether the total size and span of two runs whose keys touch are allowed."""
    if a.bytes + b.bytes > MOST_BYTES:
        return False
    if limit is None:
        return True
    span = _union_spans(a.span, b.span)
    return span is None or limit.admits_span(span)


def _union_spans(a: _Times | None, b: _Times | None) -> _Times | None:
    """Return the smallest span that contains both."""
    if not (a and b):
        return a or b
    return (a[0] if a[0] < b[0] else b[0]), (a[1] if a[1] > b[1] else b[1])


def _union_key_ranges(blocks: list[Block]) -> Keys:
    return min(b.key_range[0] for b in blocks), max(b.key_range[1] for b in blocks)


def _make_merge_derivation(few: list[Block], id: int) -> Derivation:
    first = few[0]
    (low, high), batch, span = first.key_range, first.batch, first.event_time_range
    rows = size = 0
    for b in few:
        rows, size, batch = rows + b.rows, size + b.size_bytes, min(batch, b.batch)
        low, high = min(low, b.key_range[0]), max(high, b.key_range[1])
        span = _union_spans(span, b.event_time_range)
    block = Block(id, first.stream, (low, high), batch, first.hosts, rows, size, span)
    return Derivation(block, tuple(b.id for b in few), {h: h for h in first.hosts})
