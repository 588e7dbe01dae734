"""Faults of HotKeys: its counts, its spread, its moves and the cover rule of values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from braid.papers.hotkeys.spread import TileTable
from braid_lab.common.claims import Claim
from braid_lab.hotkeys import claims as paper
from braid_lab.hotkeys import experiments as study

from mutations import Broken, Mutation, Tries

HOT, RARE = "unit.test_hot_keys.", "unit.test_rare_sides."
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
    return lambda work, present, ranges, copies: {}


def copies_on_all_hosts(choose: Callable[..., Any]) -> Callable[..., Any]:
    """Probe all replicas of a block instead of one."""

    def fault(blocks: Any, near: int | None) -> Any:
        return {
            host: (
                *chosen,
                *(b.id for b in blocks.copied if host in b.hosts and b.id not in chosen),
            )
            for host, chosen in choose(blocks, near).items()
        }

    return fault


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
        lambda add: lambda self, first, end, parts: add(self, first, end, parts[:1]),
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
    Broken(
        "replicas that are probed on all hosts",
        "braid.papers.hotkeys.hot_routes._GroupBlocks.choose_hosts",
        copies_on_all_hosts,
        RARE + "test_every_combination_meets_once_while_values_change_form",
        "",
        {"streams": 2, "most": 10, "seeds": 1},
    ),
    Broken(
        "tuples of a rare stream on one host each",
        "braid.papers.hotkeys.hot_keys.make_tile_tables",
        lambda make: lambda ranges, spread, streams: [TileTable(ranges, spread, 0)] * streams,
        RARE + "test_a_frequent_tuple_probes_on_its_own_host_and_a_rare_one_is_on_all",
        "",
    ),
    Broken(
        "copies that no budget limits",
        "braid.papers.hotkeys.spread.count_copies",
        lambda count: lambda work, shared: 0.0,
        RARE + "test_the_heaviest_values_have_copies_first",
        "",
    ),
    Broken(
        "large blocks moved before those that all hosts are to store",
        "braid.papers.hotkeys.spread.TileTable.is_copied",
        lambda is_copied: lambda self, block: False,
        RARE + "test_blocks_that_all_hosts_are_to_store_are_copied_before_larger_ones",
        "",
    ),
]
