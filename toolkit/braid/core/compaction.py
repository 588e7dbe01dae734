"""Upkeep of the block store, the same for every placement: expired blocks are dropped, small blocks
merged.

Merging works as in a log-structured merge tree: the blocks of one stream on the same hosts are
grouped in tiers by size, each tier four times the one below; four of a tier whose ranges of routing
keys touch become one. Size is rows per key, so that the pieces of a block that was cut lie in its
tier, and grow together again. The number of blocks that a probe enters grows with the logarithm of
the history, and each tuple is rewritten a logarithmic number of times. Blocks that would become one
of more than ``MOST_BYTES`` are left apart.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from typing import NamedTuple

from braid.core.plan import Block, Derivation, Keys, Plan

FANOUT = 4
_SMALLEST = 4096
"""Tuples: all smaller blocks are of the lowest tier."""
MOST_BYTES = (1 << 31) // 3
"""Of a merged block. A column of text cannot have 2^31, and blocks may have up to thrice what their
facts say: of one that was cut, whose rows are a third of a file's or more, it is their share.
"""
_Times = tuple[int, int]
"""The earliest event time and the latest."""


def plan_compaction(
    blocks: Iterable[Block],
    next_id: int,
    pinned: Collection[int],
    windows: Sequence[int | None],
    watermarks: Sequence[int | None],
    slices: Sequence[Sequence[int]] = (),
) -> Plan:
    """What is due before a batch: drops of expired blocks, and merges. ``windows`` and
    ``watermarks`` are in microseconds.

    A block has expired when now - t_max >= W for every tuple that may still come. ``slices`` are,
    by stream, ages across which nothing is merged, the window the last of them.
    """
    drops: dict[int, tuple[int, ...]] = {}
    groups: dict[tuple[int, tuple[int, ...], int], list[Block]] = {}
    slices = slices or tuple(() if w is None else (w,) for w in windows)
    for b in blocks:
        window, limit = windows[b.stream], watermarks[b.stream]
        if (
            window is not None
            and limit is not None
            and b.event_time_range is not None
            and b.event_time_range[1] + window <= limit
        ):
            if b.id not in pinned:
                drops[b.id] = b.hosts
        elif b.id not in pinned:
            groups.setdefault(
                (b.stream, b.hosts, count_reached_ages(b, slices[b.stream], limit)), []
            ).append(b)
    derivations: list[Derivation] = []
    for (stream, _, at), group in groups.items():
        if len(group) < FANOUT:
            continue
        width = _slice_length(slices[stream], at)
        for few in (
            few for tier in _group_by_tier(group) for few in _find_mergeable_runs(tier, width)
        ):
            derivations.append(_make_merge_derivation(few, next_id + len(derivations)))
            drops |= {b.id: b.hosts for b in few}
    return Plan(derivations=tuple(derivations), drops=drops)


def count_reached_ages(b: Block, ages: Sequence[int], watermark: int | None) -> int:
    """How many of the ages (rising, microseconds) all tuples of a block have reached, for every
    tuple that may still come.
    """
    return (
        0
        if watermark is None or b.event_time_range is None
        else bisect_right(ages, watermark - b.event_time_range[1])
    )


def _slice_length(ages: Sequence[int], at: int) -> int | None:
    """The length of the slice that lies between two ages; what is past the last is of the last."""
    at = min(at, len(ages) - 1)
    return ages[at] - (ages[at - 1] if at > 0 else 0) if ages else None


def _group_by_tier(group: list[Block]) -> list[list[Block]]:
    """The blocks by tier. One that is not small counts with the rows that it would have if it held
    all keys of the group.
    """
    lo, hi = _union_key_ranges(group)
    tiers: dict[int, list[Block]] = {}
    for b in group:
        whole = b.rows * (hi - lo) // (b.key_range[1] - b.key_range[0])
        tiers.setdefault(_choose_tier(whole) if _choose_tier(b.rows) else 0, []).append(b)
    return list(tiers.values())


def _choose_tier(rows: int) -> int:
    tier = 0
    while rows >= _SMALLEST * FANOUT ** (tier + 1):
        tier += 1
    return tier


def _find_mergeable_runs(tier: list[Block], window: int | None) -> list[list[Block]]:
    """Runs of four blocks or more to merge, oldest first, and what was born together by its
    keys.
    """
    if len(tier) < FANOUT:
        return []
    due: list[list[Block]] = []
    runs: list[_Run] = []
    for b in sorted(tier, key=lambda b: (b.batch, b.key_range, b.id)):
        run, apart = _Run([b], b.key_range, b.event_time_range, b.size_bytes), []
        for other in runs:
            if _can_merge(other, run, window):
                run = other.append_run(run)
            else:
                apart.append(other)
        if len(run.blocks) < FANOUT:
            runs = [*apart, run]
        else:
            runs = apart
            due.append(run.blocks)
    return due


class _Run(NamedTuple):
    """Blocks whose keys touch, the keys and the event time that they span, and their bytes."""

    blocks: list[Block]
    keys: Keys
    span: _Times | None
    bytes: int

    def append_run(self, later: _Run) -> _Run:
        (lo, hi), (low, high) = self.keys, later.keys
        keys, size = (min(lo, low), max(hi, high)), self.bytes + later.bytes
        return _Run(self.blocks + later.blocks, keys, _union_spans(self.span, later.span), size)


def _can_merge(a: _Run, b: _Run, window: int | None) -> bool:
    """Whether the keys of two runs touch, and they are not too large together. In a window or
    slice, a run spans a quarter of it at most, so that it leaves in time.
    """
    (lo, hi), (low, high) = a.keys, b.keys
    if lo > high or low > hi or a.bytes + b.bytes > MOST_BYTES:
        return False
    span = None if window is None else _union_spans(a.span, b.span)
    return window is None or span is None or span[1] - span[0] <= window // FANOUT


def _union_spans(a: _Times | None, b: _Times | None) -> _Times | None:
    """The least that holds both."""
    return (min(a[0], b[0]), max(a[1], b[1])) if a and b else a or b


def _union_key_ranges(blocks: list[Block]) -> Keys:
    return min(b.key_range[0] for b in blocks), max(b.key_range[1] for b in blocks)


def _union_block_spans(blocks: list[Block]) -> _Times | None:
    return reduce(_union_spans, (b.event_time_range for b in blocks))


def _make_merge_derivation(few: list[Block], id: int) -> Derivation:
    first = few[0]
    rows, size = sum(b.rows for b in few), sum(b.size_bytes for b in few)
    block = Block(
        id,
        first.stream,
        _union_key_ranges(few),
        min(b.batch for b in few),
        first.hosts,
        rows,
        size,
        _union_block_spans(few),
    )
    return Derivation(block, tuple(b.id for b in few), {h: h for h in first.hosts})
