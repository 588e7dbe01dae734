"""Upkeep: expired blocks are dropped, small ones merged, and nothing else changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from math import ceil, log

import pytest
from braid.core import compaction
from braid.core.compaction import FANOUT, Retention
from braid.core.coverage import CoverageChecker
from braid.core.plan import Block, Plan, apply_derivations_and_drops
from braid.core.stream_clocks import find_watermarks
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

FULL = (None, None)


def plan_compaction(
    blocks: Iterable[Block],
    next_id: int,
    pinned: Collection[int],
    windows: Sequence[int | None],
    watermarks: Sequence[int | None],
    slices: Sequence[Sequence[int]] = (),
) -> Plan:
    """Return the compaction for windows W_i and watermarks by stream."""
    pairs = [*zip(windows, watermarks, strict=True)]
    horizons = tuple(None if w is None or t is None else t - w + 1 for w, t in pairs)
    waits = tuple(None if w is None else w - 1 for w in windows)
    held = Retention(windows, watermarks, horizons, waits)
    return compaction.plan_compaction(blocks, next_id, pinned, held, slices)


def block(id: int, rows: int = 10, span: tuple[int, int] = (0, 0), **more: object) -> Block:
    fields: dict[str, object] = {
        "stream": 0,
        "key_range": (0, 8),
        "batch": id,
        "hosts": (0,),
        "rows": rows,
        "size_bytes": 8 * rows,
    }
    fields["event_time_range"] = span
    return Block(id, **(fields | more))  # type: ignore[arg-type]


def test_the_watermark_is_what_the_other_streams_may_still_send() -> None:
    """Clocks at 100, 70 and 90, with a lateness of 5.

    a waits for b (65), b for c (85), c for b (65).
    """
    assert find_watermarks((100, 70, 90), (5, 5, 5)) == (65, 85, 65)
    assert find_watermarks((100, 70, 90), (50, 0, 5)) == (70, 50, 50)


def test_a_silent_stream_keeps_the_others_alive() -> None:
    assert find_watermarks((100, None), (0, 0)) == (None, 100)
    assert find_watermarks((None, None), (0, 0)) == (None, None)


def test_a_block_expires_when_its_last_tuple_is_a_window_old() -> None:
    """W = 50; partners are expected from 100 on, and now - t < W is strict.

    time      0        49  50  51            100
    block 1   |---------|                     |   49 + 50 <= 100  gone
    block 2   |-------------|                 |   50 + 50 <= 100  gone
    block 3   |-----------------|             |   51 + 50 >  100  alive
    """
    blocks = (
        block(1, event_time_range=(0, 49)),
        block(2, event_time_range=(0, 50)),
        block(3, event_time_range=(0, 51)),
    )
    assert plan_compaction(blocks, 9, (), (50, None), (100, None)).drops == {1: (0,), 2: (0,)}


def test_full_history_and_pinned_blocks_stay() -> None:
    old = block(1, event_time_range=(0, 0))
    assert plan_compaction((old,), 9, (), FULL, (10**12, 10**12)) == Plan()
    assert plan_compaction((old,), 9, (1,), (50, 50), (100, 100)) == Plan()
    assert plan_compaction((old,), 9, (), (50, 50), (None, None)) == Plan()


def test_four_of_a_tier_become_one() -> None:
    """Tiers: below 16384 tuples, below 65536, ...; blocks 1 to 4 are of the lowest, 5 to 7 of the
    next.
    """
    small = [block(i, 100, (i, i + 5)) for i in (1, 2, 3, 4)]
    large = [block(i, 20_000) for i in (5, 6, 7)]
    plan = plan_compaction([*small, *large], 8, (), FULL, FULL)
    (merge,) = plan.derivations
    assert merge.block == Block(8, 0, (0, 8), 1, (0,), 400, 3200, (1, 9))
    assert (merge.source_blocks, merge.source_hosts, set(plan.drops)) == (
        (1, 2, 3, 4),
        {0: 0},
        {1, 2, 3, 4},
    )


def test_pieces_of_a_cut_grow_together_again_where_their_keys_touch() -> None:
    """Pieces whose keys touch are merged again.

    keys      0   2   4   6   8
    block 1     |---|                 4 pieces that touch, in pairs of two batches
    block 2         |---|
    block 3     |---|
    block 4         |---|
    block 5                 |---|     apart
    """
    pieces = [
        block(i, key_range=keys)
        for i, keys in enumerate([(0, 2), (2, 4), (0, 2), (2, 4), (6, 8)], 1)
    ]
    (merge,) = plan_compaction(pieces, 9, (), FULL, FULL).derivations
    assert (merge.source_blocks, merge.block.key_range) == ((1, 2, 3, 4), (0, 4))


def test_in_a_window_a_merged_block_spans_a_quarter_at_most() -> None:
    """W = 400, so that runs may span 100.

    time     0    30   60   90  120  150  180  210
    blocks   1    2    3    4    5    6    7    8
             |---- 90 -----|    |----- 90 ----|
    """
    blocks = [block(i, event_time_range=(30 * (i - 1), 30 * (i - 1))) for i in range(1, 9)]
    plan = plan_compaction(blocks, 9, (), (400, 400), (0, 0))
    assert [d.source_blocks for d in plan.derivations] == [(1, 2, 3, 4), (5, 6, 7, 8)]
    wide = [
        structs.replace(b, event_time_range=(b.event_time_range[0] * 2, b.event_time_range[1] * 2))
        for b in blocks
        if b.event_time_range
    ]
    assert plan_compaction(wide, 9, (), (400, 400), (0, 0)) == Plan()


def test_blocks_that_would_be_too_large_together_are_left_apart(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tuples have 8 bytes; a block may have 2,500.

    block    1     2     3     4     5    6
    bytes    800   800   800   800   40   40
             |---------------|     |              2,400, and with block 4 too much
             |---------------|          |----|    2,440 with block 5: four are one
                                   |         |    wait for others
    """
    blocks = [block(i, 100) for i in (1, 2, 3, 4)] + [block(i, 5) for i in (5, 6)]
    assert [
        d.source_blocks for d in plan_compaction(blocks[:4], 9, (), FULL, FULL).derivations
    ] == [(1, 2, 3, 4)]
    monkeypatch.setattr(compaction, "MOST_BYTES", 2_500)
    assert plan_compaction(blocks[:4], 9, (), FULL, FULL) == Plan()
    plan = plan_compaction(blocks, 9, (), FULL, FULL)
    assert [d.source_blocks for d in plan.derivations] == [(1, 2, 3, 5)]
    assert plan == plan_compaction(blocks, 9, (), FULL, FULL)
    left = list(apply_derivations_and_drops(blocks, plan))
    assert plan_compaction(left, 10, (), FULL, FULL) == Plan()


BLOCKS = st.lists(
    st.builds(
        lambda stream, key_range, hosts, rows, start, length: block(
            0, rows, (start, start + length), stream=stream, key_range=key_range, hosts=hosts
        ),
        st.integers(0, 1),
        st.sampled_from([(0, 2), (1, 4), (5, 8), (0, 4), (6, 7)]),
        st.sampled_from([(0,), (1, 2)]),
        st.sampled_from([1, 50, 30_000]),
        st.integers(0, 300),
        st.integers(0, 50),
    ),
    max_size=40,
)


def hull(blocks: list[Block]) -> tuple[int, int]:
    return min(b.key_range[0] for b in blocks), max(b.key_range[1] for b in blocks)


def touching(blocks: list[Block]) -> list[list[Block]]:
    """Return the blocks in sets whose keys have no gap, each in its given form."""
    sets: list[list[Block]] = []
    for b in sorted(blocks, key=lambda b: b.key_range):
        if sets and b.key_range[0] <= hull(sets[-1])[1]:
            sets[-1].append(b)
        else:
            sets.append([b])
    return [[b for b in blocks if b in some] for some in sets]


def settled(blocks: list[Block], pinned: set[int]) -> list[Block]:
    """Return the blocks that compaction leaves when nothing remains to be done."""
    while (
        plan := plan_compaction(blocks, 1 + max(b.id for b in blocks), pinned, FULL, FULL)
    ) != Plan():
        CoverageChecker(2).check_plan(blocks, plan)
        blocks = list(apply_derivations_and_drops(blocks, plan))
    return blocks


@given(BLOCKS.filter(len), st.sets(st.integers(0, 39), max_size=8))
def test_fewer_than_four_small_blocks_that_touch_are_left(
    blocks: list[Block], pinned: set[int]
) -> None:
    """All blocks here are of the lowest tier or, with 30,000 rows, of a higher one."""
    pinned = {p for p in pinned if p < len(blocks)}
    left = settled([structs.replace(b, id=i) for i, b in enumerate(blocks)], pinned)
    for stream, hosts in {(b.stream, b.hosts) for b in left}:
        small = [
            b
            for b in left
            if (b.stream, b.hosts) == (stream, hosts) and b.id not in pinned and b.rows < 16_384
        ]
        assert all(len(some) < FANOUT for some in touching(small))


@given(st.integers(0, 4), st.integers(1, 60_000), st.sets(st.integers(0, 15)))
def test_the_pieces_of_a_cut_block_grow_together(cuts: int, rows: int, pinned: set[int]) -> None:
    """Not over a gap, and not with pinned pieces that have still to move. In each tier three are
    left.
    """
    width = 16 >> cuts
    pieces = [
        block(k, rows, batch=5, key_range=(k * width, (k + 1) * width)) for k in range(1 << cuts)
    ]
    pinned = {p for p in pinned if p < len(pieces)}
    left = [b for b in settled(pieces, pinned) if b.id not in pinned]
    assert sum(b.rows for b in left) == rows * sum(b.id not in pinned for b in pieces)
    runs = touching(left)
    assert all(len(run) <= 2 * (FANOUT - 1) for run in runs)
    assert [hull(run) for run in runs] == [
        hull(run) for run in touching([b for b in pieces if b.id not in pinned])
    ]


@given(
    BLOCKS,
    st.sets(st.integers(0, 39), max_size=8),
    st.sampled_from([None, 100, 400]),
    st.integers(0, 400),
)
def test_compaction_keeps_every_live_tuple_where_it_was(
    blocks: list[Block], pinned: set[int], window: int | None, now: int
) -> None:
    blocks = [structs.replace(b, id=i) for i, b in enumerate(blocks)]
    plan = plan_compaction(blocks, len(blocks), pinned, (window, window), (now, now))
    CoverageChecker(2).check_plan(blocks, plan)
    known = {b.id: b for b in blocks}
    for d in plan.derivations:
        sources = [known[s] for s in d.source_blocks]
        assert len({(b.stream, b.hosts) for b in (*sources, d.block)}) == 1
        assert (runs := touching(sources)) == [sources] and d.block.key_range == hull(*runs)
        assert d.block.rows == sum(b.rows for b in sources)
        assert not pinned.intersection(d.source_blocks)
        start, end = d.block.event_time_range or (0, 0)
        assert window is None or end - start <= max(
            window // 4,
            *(b.event_time_range[1] - b.event_time_range[0] for b in sources if b.event_time_range),
        )
    left = apply_derivations_and_drops(blocks, plan)
    assert pinned & known.keys() <= {b.id for b in left}
    gone = [
        b
        for b in blocks
        if b.id in plan.drops and not any(b.id in d.source_blocks for d in plan.derivations)
    ]
    assert all(
        window is not None and b.event_time_range and b.event_time_range[1] + window <= now
        for b in gone
    )

    def held(some: list[Block] | tuple[Block, ...]) -> Counter[object]:
        return sum((Counter({(b.stream, b.hosts): b.rows}) for b in some), Counter())

    assert held(left) == held([b for b in blocks if b not in gone])


@given(st.lists(st.integers(1, 40_000), min_size=1, max_size=300))
def test_the_number_of_blocks_grows_with_the_logarithm_of_the_history(sizes: list[int]) -> None:
    live: tuple[Block, ...] = ()
    rewritten = 0
    for batch, rows in enumerate(sizes):
        plan = plan_compaction(live, 2 * batch, (), FULL, FULL)
        rewritten += sum(d.block.rows for d in plan.derivations)
        live = (*apply_derivations_and_drops(live, plan), block(10_000 + batch, rows))
    tiers = 1 + max(0, ceil(log(sum(sizes) / 4096, FANOUT)))
    assert sum(b.rows for b in live) == sum(sizes)
    assert len(live) <= FANOUT * tiers + 1
    # above the lowest tier each tuple is rewritten once a tier; below it, at most 16384 tuples at a
    # time
    assert rewritten <= sum(sizes) * (tiers + 1) + 16_384 * len(sizes)


@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=200), st.sampled_from([900, 3_000, 9_000])
)
def test_merges_end_at_the_limit_and_leave_few_blocks_more_than_it_takes(
    sizes: list[int], most: int
) -> None:
    """Runs of at most three wait for others, and two of them would be too large together."""
    live: tuple[Block, ...] = ()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compaction, "MOST_BYTES", most)
        for batch, rows in enumerate(sizes):
            plan = plan_compaction(live, 2 * batch, (), FULL, FULL)
            assert all(d.block.size_bytes <= most for d in plan.derivations)
            live = (*apply_derivations_and_drops(live, plan), block(10_000 + batch, rows))
        left = settled(list(live), set())
    assert sum(b.rows for b in left) == sum(sizes)
    assert len(left) <= (FANOUT - 1) * (2 * 8 * sum(sizes) / most + 1)
