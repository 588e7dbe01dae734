"""Estimates of HotKeys: the work of frequent values, and the stored tuples that are to move."""

from __future__ import annotations

import pytest
from braid.core.facts import Facts
from braid.core.frequent_values import OTHERS
from braid.core.plan import Block
from braid.core.plan_builder import PlanBuilder
from braid.papers.hotkeys.block_moves import estimate_moving_tuples, move_stray_blocks
from braid.papers.hotkeys.spread import TileTable, ValueRanges, host_micros, pack_values
from braid.papers.hotkeys.value_work import (
    PAIR,
    TUPLE,
    ValueShares,
    ValueWork,
    estimate_value_work,
)

pytestmark = pytest.mark.unit
RANGES = ValueRanges(4, 8, 4)
UNKNOWN = ValueShares(({}, {}), 8, 4)
"""No value has been counted yet."""


def make_facts(batch: int, blocks: tuple[Block, ...] = ()) -> Facts:
    counts = ({5: 300.0, OTHERS: 100.0}, {5: 100.0, OTHERS: 300.0})
    return Facts(batch, ("r", "s"), blocks, 100, (), (), (), key_counts=counts)


def test_a_range_of_a_value_that_is_not_counted_has_its_part_of_the_others() -> None:
    shares = ValueShares(({3: 30.0, 5: 10.0, OTHERS: 60.0},), values=10, keys_per_value=4)
    assert shares.key_share(0, (16, 18)) == pytest.approx(0.03)
    assert UNKNOWN.key_share(0, (0, 8)) == 0


def test_the_work_of_a_value_is_that_of_its_tuples_and_pairs_in_a_batch() -> None:
    facts = make_facts(1, (Block(0, 1, (20, 24), 0, (2,), 200),))
    work = estimate_value_work(facts, ValueShares(facts.key_counts, 8, 4))
    fresh = (300 + 100 / 8, 100 + 300 / 8)
    assert work.tuples[5] == pytest.approx(TUPLE * sum(fresh))
    assert work.pairs[5] == pytest.approx(PAIR * fresh[0] * 200)
    assert work.value_micros(5) == work.tuples[5] + work.pairs[5]
    assert work.value_micros(6) == 0


def test_tuples_of_a_block_move_by_its_range_where_nothing_is_counted() -> None:
    block = Block(0, 0, (8, 24), 0, (1,), 80)
    assert estimate_moving_tuples(block, TileTable(RANGES, {}), UNKNOWN) == {2: 40.0}


def test_a_host_takes_in_blocks_until_their_sum_is_above_the_budget() -> None:
    blocks = [Block(n, 0, (16, 24), 0, (0,), 50) for n in range(4)]
    builder = PlanBuilder(make_facts(8))
    waiting = move_stray_blocks(builder, blocks, [TileTable(RANGES, {})], UNKNOWN, 60.0)
    assert waiting == blocks[2:]


def test_values_of_equal_work_are_shared_out_over_different_hosts() -> None:
    work = ValueWork({0: 20.0, 1: 20.0}, {0: 80.0, 1: 80.0}, 0.0)
    packed = pack_values(work, {}, ValueRanges(4, 8, 16))
    assert sorted(packed[0].hosts + packed[1].hosts) == [0, 1, 2, 3]
    assert host_micros(work, packed, ValueRanges(4, 8, 16)) == [60.0] * 4
