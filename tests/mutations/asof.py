"""Faults of as-of joins, each detected by one test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from braid.papers.slices.chain import Chain
from msgspec import structs

from mutations import Broken

RULES, SHARED = "unit.test_asof_rules.", "unit.test_shared_asof."


def by_arrival(rank: Any) -> Any:
    """Let the order of rows in a block decide between partners of equal order."""
    return lambda columns, size: np.zeros(size, np.int64)


def at_low(find: Any) -> Any:
    """Drop a tuple for one at ``low``, which does not serve a tuple at ``low`` if equals count
    not.
    """
    return lambda ordered, low, is_strict: find(ordered, low, False)


def a_tick_early(limit: Any) -> Any:
    """Release tuples at the watermark, too."""

    def fault(*given: Any) -> Any:
        retention = limit(*given)
        until, horizon = retention.horizons
        return retention._replace(horizons=(None if until is None else until + 1, horizon))

    return fault


def without_waiting(limit: Any) -> Any:
    """Forget partners by the clock of the first stream alone, whatever waits."""

    def fault(retention: Any, reach: Any, state: Any) -> Any:
        later = retention._replace(horizons=(float("inf"), None))
        limited = limit(later, reach, state)
        return limited._replace(horizons=(retention.horizons[0], limited.horizons[1]))

    return fault


def never(drop: Any) -> Any:
    """Forget no dominated tuple."""
    return lambda batch, *_: batch


def by_each_host(drop: Any) -> Any:
    """Keep partners that are after a late tuple."""
    return lambda joiner, left, partners, blocks: partners


def with_deferred_pairs(remove: Any) -> Any:
    """Keep the pairs that a placement defers, which no route of an as-of join settles."""

    def fault(plan: Any) -> Any:
        deferred = {
            route.block.id: route.deferred_blocks for route in plan.routes if route.is_fresh
        }
        routes = remove(plan).routes
        return replace(
            remove(plan),
            routes=tuple(structs.replace(r, deferred_blocks=deferred[r.block.id]) for r in routes),
        )

    return fault


def by_windows_alone(find: Any) -> Any:
    """Forget partners by the clocks, whatever waits."""
    return lambda engine: tuple(engine.rules.find_state_watermarks(engine.state))


def as_all_select(find: Any) -> Any:
    """Take partners that the query does not select."""

    def fault(joiner: Any, rows: Any) -> Any:
        query, joiner.query = joiner.query, None
        live = find(joiner, rows)
        joiner.query = query
        return live

    return fault


def with_all_queries(make: Any) -> Any:
    """Let as-of queries take part in probes."""

    def fault(queries: Any) -> Any:
        bitmaps = make(queries)
        return replace(bitmaps, probe_mask=-1, pair_mask=-1)

    return fault


BROKEN = [
    Broken(
        "ties are decided by arrival",
        "braid.kernels.asof_join.rank_rows",
        by_arrival,
        RULES + "test_ties_are_decided_by_columns_and_null_is_the_least",
        "",
    ),
    Broken(
        "a dominated row is dropped for one at a time equal to low",
        RULES + "find_dominated_rows",
        at_low,
        RULES + "test_a_row_at_the_least_time_that_counts_dominates_unless_equals_are_left_out",
        "",
    ),
    Broken(
        "a tuple is released a tick early",
        "braid.core.batch_work.limit_asof_retention",
        a_tick_early,
        RULES + "test_a_tuple_waits_until_the_watermark_has_passed_it",
        "",
    ),
    Broken(
        "the times of waiting tuples are forgotten at eviction",
        "braid.core.batch_work.limit_asof_retention",
        without_waiting,
        RULES + "test_partners_of_tuples_that_wait_are_held",
        "",
    ),
    Broken(
        "dominated tuples are held for ever",
        "braid.execution.host_replicas.drop_dominated_rows",
        never,
        RULES + "test_the_latest_without_tolerance_holds_a_tuple_for_each_key",
        "",
        {"hosts": 1},
    ),
    Broken(
        "a late tuple takes a partner that is after it",
        "braid.kernels.asof_join.AsOfJoiner.drop_later_partners",
        by_each_host,
        RULES + "test_a_late_tuple_takes_no_partner_that_is_after_it_or_forgotten",
        "",
    ),
    Broken(
        "pairs that a placement defers are pending in an as-of join",
        "braid.core.batch_step.remove_planned_probes",
        with_deferred_pairs,
        RULES + "test_a_placement_that_changes_defers_no_pairs_of_an_as_of_join",
        "",
    ),
    Broken(
        "a shared run forgets partners of tuples that wait",
        "braid.core.batch_work.retain_for_releases",
        lambda retain: lambda retention, several: retention,
        SHARED + "test_partners_stay_for_tuples_that_wait_for_a_stream_behind",
        "",
        {"chain": Chain()},
    ),
    Broken(
        "a change of queries forgets partners of tuples that wait",
        "braid.shared.block_marking._find_limits",
        by_windows_alone,
        SHARED + "test_partners_stay_for_tuples_that_wait_when_a_query_goes",
        "",
    ),
    Broken(
        "late tuples of the batch before a change of queries are not released",
        "braid.core.changed_queries.find_unreleased_blocks",
        lambda find: lambda state, blocks: frozenset(),
        SHARED + "test_a_late_tuple_of_the_batch_before_a_change_is_answered",
        "",
    ),
    Broken(
        "an as-of query takes partners that other queries select",
        "braid.kernels.asof_join.AsOfJoiner._find_live",
        as_all_select,
        SHARED + "test_partners_are_selected_by_the_query",
        "",
    ),
    Broken(
        "as-of queries get pairs",
        "braid.execution.engine.QueryBitmaps.from_queries",
        with_all_queries,
        SHARED + "test_partners_are_selected_by_the_query",
        "",
    ),
]
