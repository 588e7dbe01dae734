"""Faults of indexes and of bounds of event time, each detected by one test.

They are of no paper.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from mutations import Broken

ORDERS, HORIZON = "unit.test_order_search.", "unit.test_horizon."
SOME_TREES = {"size": 300, "most": 50, "ties": 5}


def checks_no_part(search_below: Any) -> Any:
    """Leave out the nodes that a range cuts and that have many matching ranks."""

    def fault(*given: Any) -> Any:
        yield from ()

    return fault


def covers_by_wide_nodes(choose_levels: Any) -> Any:
    """Cover ranges by nodes of 16 times the rows, so that more rows are outside of them."""

    def fault(widths: np.ndarray) -> Any:
        return choose_levels(16 * widths)

    return fault


def expands_one_node_less(expand_nodes: Any) -> Any:
    """Leave out the last node of each range of more than one."""

    def fault(probes: np.ndarray, first: np.ndarray, last: np.ndarray) -> Any:
        return expand_nodes(probes, first, np.where(last - first > 1, last - 1, last))

    return fault


def keeps_equal_pairs(sort_distinct: Any) -> Any:
    """Return pairs as often as branches find them."""
    return np.sort


def takes_null_for_zero(find_valid_keys: Any) -> Any:
    """Do not tell NULL from the 0 that stands for it."""

    def fault(rows: Any, name: str) -> None:
        return None

    return fault


def waits_for_the_last(find_horizon: Any) -> Any:
    """Forget a tuple once one of the other streams is past it."""

    def fault(stream: int, clocks: Any, lateness: Any, row: Any, ended: Any) -> Any:
        waits = [
            clocks[j] - lateness[j] - most
            for j, most in enumerate(row)
            if j != stream and not ended[j] and most is not None and clocks[j] is not None
        ]
        return max(waits, default=inf)

    return fault


def takes_its_own_lateness(find_horizon: Any) -> Any:
    """Wait as long for another stream as the waiting stream may be late itself."""

    def fault(stream: int, clocks: Any, lateness: Sequence[int], row: Any, ended: Any) -> Any:
        return find_horizon(stream, clocks, (lateness[stream],) * len(lateness), row, ended)

    return fault


def leaves_bounds_open(close_reach: Any) -> Any:
    """Do not add up the bounds along a chain of streams."""

    def fault(reach: Any) -> Any:
        return None if close_reach(reach) is None else reach

    return fault


BROKEN = [
    Broken(
        "nodes that a range cuts are not searched below",
        "braid.kernels.merge_sort_tree.MergeSortTree._search_nodes_below",
        checks_no_part,
        ORDERS + "test_trees_find_what_a_mask_finds",
        "",
        SOME_TREES,
    ),
    Broken(
        "the last node of a range is left out",
        "braid.kernels.merge_sort_tree.expand_nodes",
        expands_one_node_less,
        ORDERS + "test_trees_find_what_a_mask_finds",
        "",
        SOME_TREES,
    ),
    Broken(
        "ranges are covered by wide nodes",
        "braid.kernels.merge_sort_tree._choose_levels",
        covers_by_wide_nodes,
        ORDERS + "test_narrow_ranges_are_covered_by_few_nodes_and_rows",
        "",
    ),
    Broken(
        "a pair comes from each branch of an OR that finds it",
        "braid.kernels.range_union.sort_distinct",
        keeps_equal_pairs,
        "unit.test_disjunctions.test_each_pair_of_some_branch_is_found_once",
        "",
    ),
    Broken(
        "a NULL key of a branch equals 0",
        "braid.kernels.disjunction_pairs._find_valid_keys",
        takes_null_for_zero,
        "unit.test_disjunctions.test_each_pair_of_some_branch_is_found_once",
        "",
    ),
    Broken(
        "a tuple is forgotten once one stream is past it",
        "braid.core.horizon._find_horizon",
        waits_for_the_last,
        HORIZON + "test_the_horizon_is_the_least_over_the_other_streams",
        "",
    ),
    Broken(
        "the lateness is that of the waiting stream",
        "braid.core.horizon._find_horizon",
        takes_its_own_lateness,
        HORIZON + "test_the_lateness_is_that_of_the_stream_that_is_waited_for",
        "",
    ),
    Broken(
        "bounds of event time are not added up along streams",
        "braid.core.horizon.close_reach",
        leaves_bounds_open,
        "unit.test_horizon.test_the_intersection_admits_what_both_admit",
        "",
    ),
]
