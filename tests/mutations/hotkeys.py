"""Faults of HotKeys: its counts, its spread, its moves and the cover rule of values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from braid_lab.common.claims import Claim
from braid_lab.hotkeys import claims as paper
from braid_lab.hotkeys import experiments as study

from mutations import Broken, Mutation, Tries

HOT = "unit.test_hot_keys."
QUICK = study.SkewSetting(rows=6000, batches=16, hosts=4, kept_share=50)


def claims() -> Tries:
    """Return claims about short runs by a hash and by HotKeys, without and with a shift."""
    names = ("HashPartition", "HotKeys")

    def tested() -> list[Claim]:
        settings = (QUICK, replace(QUICK, shift=True))
        skews, shifts = (study.compare_placements([s], names) for s in settings)
        return [
            paper.even_work_claim(skews, QUICK.rows),
            paper.shift_claim(shifts, QUICK.rows),
        ]

    return [tested]


def unshared(pack: Callable[..., Any]) -> Callable[..., Any]:
    """Share out no value."""
    return lambda work, present, ranges: {}


MUTATIONS = [
    Mutation(
        "frequent values stay on one host",
        "braid.papers.hotkeys.hot_keys.pack_values",
        unshared,
        claims,
        (
            "records of values that appear very frequently",
            "a tuple migration strategy",
        ),
        runs=("HotKeys",),
    ),
]
BROKEN = [
    Broken(
        "parts ignored in the cover rule",
        "braid.core.coverage.value_range",
        lambda whole: lambda keys, keys_per_value: keys,
        HOT + "test_blocks_with_parts_of_one_value_may_join",
        "",
    ),
    Broken(
        "a tile left out",
        "braid.papers.hotkeys.spread.TileTable._add_group",
        lambda add: lambda self, first, end, hosts: add(self, first, end, hosts[:1]),
        HOT + "test_new_tuples_follow_at_once_and_stored_ones_in_the_background",
        "",
    ),
    Broken(
        "a waiting block that is not pinned",
        "braid.papers.hotkeys.hot_keys.move_stray_blocks",
        lambda move: lambda *given: move(*given) and [],
        HOT + "test_a_block_that_compaction_makes_waits_for_the_next_batch",
        "",
    ),
    Broken(
        "pieces dropped before they are copied",
        "braid.papers.hotkeys.block_moves._move_block",
        lambda move: lambda builder, block, table: builder.drop_replicas(block, block.hosts),
        HOT + "test_new_tuples_follow_at_once_and_stored_ones_in_the_background",
        "",
    ),
    Broken(
        "counts of rare values kept",
        "braid.core.frequent_values.LEAST_TUPLES",
        lambda least: 1,
        HOT + "test_values_that_come_once_or_twice_are_not_counted",
        "",
    ),
    Broken(
        "counts that do not fade",
        "braid.core.batch_history.EARLIER_WEIGHT",
        lambda weight: 1.0,
        HOT + "test_a_value_that_stays_frequent_is_counted_and_no_count_is_too_high",
        "",
    ),
    Broken(
        "values that never cool down",
        "braid.papers.hotkeys.hot_keys.drop_cooled_values",
        lambda drop: lambda spread, work, ranges: spread,
        HOT + "test_values_come_and_go_and_everything_is_at_home_again",
        "",
    ),
]
