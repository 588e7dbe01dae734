"""Faults of clocks and ends of streams, each detected by one test."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from mutations import Broken

ENDED, RUNS = "unit.test_ended_streams.", "unit.test_clock_runs."
KINDS, ROWS = "unit.test_kind_runs.", "unit.test_irregular_rows."


def of_all_streams(find: Any) -> Any:
    """Let a stream wait for itself too, as with one watermark for all streams."""

    def fault(clocks: Sequence[Any], lateness: Sequence[int], timeless: Collection[int]) -> Any:
        timed = [s for s in range(len(clocks)) if s not in timeless]
        known = [clocks[s] - lateness[s] for s in timed if clocks[s] is not None]
        least = min(known) if timed and len(known) == len(timed) else None
        return (least,) * len(clocks)

    return fault


def with_its_input(find_ended_streams: Any) -> Any:
    """End every stream with the last batch, as if ``availableNow`` ended it."""
    return lambda rules, ended, epoch: (True,) * len(ended)


def waited_for(advance: Any) -> Any:
    """Wait for a stream however long it is silent."""
    return lambda clocks, idle, timeless: advance(clocks, None, timeless)


def forgotten(restore: Any) -> Any:
    """Forget, at a resume, the times that wait for support."""

    def fault(*given: Any) -> Any:
        state = restore(*given)
        return replace(state, pending=((),) * len(state.pending))

    return fault


def without_answers(is_left: Any) -> Any:
    """Run no batch for the answers that wait when the input has ended."""
    return lambda rules, state: rules.placement.has_pending_pairs(state.placement_state)


def without_early_rows(list_rows: Any) -> Any:
    """Return no rows that are too far ahead."""
    return lambda blocks, sizes, limits, columns: list_rows(
        blocks, sizes, [None] * len(limits), columns
    )


BROKEN = [
    Broken(
        "tuples that are too far ahead are counted, but are no rows",
        "braid.execution.engine.list_early_rows",
        without_early_rows,
        ROWS + "test_rows_have_stream_reason_and_how_far_behind",
        "",
    ),
    Broken(
        "times that wait for support are forgotten at a resume",
        "braid.storage.state_files.state_from_json",
        forgotten,
        RUNS + "test_times_that_wait_for_support_survive_a_resume",
        "",
    ),
    Broken(
        "the closing batch is left out",
        "braid.core.due_answers.needs_closing_batch",
        without_answers,
        KINDS + "test_an_anti_join_has_the_columns_of_its_first_stream",
        "",
    ),
    Broken(
        "a stream waits for its own watermark",
        ENDED + "find_watermarks",
        of_all_streams,
        ENDED + "test_a_watermark_is_the_least_of_the_other_streams_that_have_event_time",
        "",
    ),
    Broken(
        "a stream ends because no more of it is available now",
        "braid.core.batch_work.RunRules.find_ended_streams",
        with_its_input,
        ENDED + "test_only_a_stream_with_a_last_batch_ends_and_it_stays_so",
        "",
    ),
    Broken(
        "a silent stream is waited for whatever idle is",
        "braid.core.batch_work.advance_idle_clocks",
        waited_for,
        RUNS + "test_runs_follow_the_model_of_clocks",
        "",
    ),
]
