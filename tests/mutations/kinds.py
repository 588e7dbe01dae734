"""Faults of the answers of outer, semi and anti joins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from braid.kernels.host_block_rows import BlockRows
from braid.papers.baselines.centralized import Centralized

from mutations import Broken

RUNS = "unit.test_kind_runs."
SECOND = 1_000_000


def _ignore_pending(find: Callable[..., Any]) -> Callable[..., Any]:
    return lambda kind, state, horizons: find(
        kind, replace(state, pending_pairs=frozenset()), horizons
    )


def _lose_held_start(find: Callable[..., Any]) -> Callable[..., Any]:
    def fault(state: Any, *given: Any) -> Any:
        return find(replace(state, answers=replace(state.answers, held={})), *given)

    return fault


def _start_at_old_limit(find: Callable[..., Any]) -> Callable[..., Any]:
    return lambda state, *given: find(replace(state, batch=-1), *given)


def _settle_early(find: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: tuple(s._replace(until=s.until + SECOND) for s in find(*given))


def _settle_on_all_hosts(find: Callable[..., Any]) -> Callable[..., Any]:
    def fault(kind: Any, state: Any, horizons: Any) -> Any:
        settles = find(kind, state, horizons)
        return tuple(s._replace(host=h) for s in settles for h in state.blocks[s.block].hosts)

    return fault


def _overwrite_bits(read: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given: np.zeros_like(read(*given))


def _take_one_report(union: Callable[..., Any]) -> Callable[..., Any]:
    return lambda several: union([*several][:2])


def _read_whole_file(settle: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, due, rows: settle(self, due, BlockRows(rows.batch, births=rows.births))


def _forget_births(advance: Callable[..., Any]) -> Callable[..., Any]:
    def fault(kind: Any, state: Any, following: Any, *given: Any) -> Any:
        answers = advance(kind, state, following, *given)
        live = {b: m for b, m in answers.matched.items() if b in following.blocks}
        return replace(answers, matched=live)

    return fault


def _merge_without_bits(merge: Callable[..., Any]) -> Callable[..., Any]:
    def fault(sources: Any, orders: Any, bits: Any) -> Any:
        return merge(sources, orders, {query: [None] * len(each) for query, each in bits.items()})

    return fault


def _number_cuts_anew(copied: Callable[..., Any]) -> Callable[..., Any]:
    def fault(*given: Any) -> Any:
        rows = copied(*given)
        return rows.drop_columns(["__row"]) if "__row" in rows.schema.names else rows

    return fault


def _forget_tuple(settle: Callable[..., Any]) -> Callable[..., Any]:
    """Leave the first matched tuple of a task out of the answers: no result shows it."""

    def fault(self: Any, due: Any, rows: Any) -> Any:
        settle(self, due, rows)
        count = self.counts[due.stream]
        if count.answered > count.unmatched:
            self.counts[due.stream] = count._replace(answered=count.answered - 1)

    return fault


def _tell_matched(make: Callable[..., Any]) -> Callable[..., Any]:
    """Tell tuples of a batch as unmatched although they matched in it."""

    def fault(*given: Any) -> Any:
        batch = make(*given)
        fresh = {each.block for each in batch.arrivals} if batch else set()
        return batch and replace(
            batch, matched={birth: m for birth, m in batch.matched.items() if birth not in fresh}
        )

    return fault


def _take_back_again(extend: Callable[..., Any]) -> Callable[..., Any]:
    """Take a row back at each further partner."""

    def fault(*given: Any) -> Any:
        bitmap = extend(*given)
        return bitmap and bitmap._replace(before=np.zeros_like(bitmap.bits))

    return fault


_FAULTS: list[tuple[str, str, Callable[..., Any], int]] = [
    (
        "pending pairs ignored when tuples are answered",
        "braid.core.query_answers.find_due_settles",
        _ignore_pending,
        1002,
    ),
    (
        "the start of a block with pending pairs lost",
        "braid.core.answers.find_answered_limit",
        _lose_held_start,
        1002,
    ),
    (
        "a new block answered from the old limit on",
        "braid.core.answers.find_answered_limit",
        _start_at_old_limit,
        1002,
    ),
    (
        "tuples answered a second early",
        "braid.core.query_answers.find_due_settles",
        _settle_early,
        1008,
    ),
    (
        "tuples answered by each host of a block",
        "braid.core.query_answers.find_due_settles",
        _settle_on_all_hosts,
        1002,
    ),
    (
        "match bitmaps overwritten",
        "braid.storage.match_bitmaps.MatchBitmaps._read_bits",
        _overwrite_bits,
        1001,
    ),
    (
        "marks of one task taken for those of all",
        "braid.storage.match_bitmaps.union_match_bits",
        _take_one_report,
        1002,
    ),
    (
        "answers read beyond the range of a cut block",
        "braid.execution.tuple_answers.AnswerWriter._settle_block",
        _read_whole_file,
        1002,
    ),
    (
        "match bitmaps forgotten when a block is cut",
        "braid.core.batch_step.advance_answer_state",
        _forget_births,
        1002,
    ),
    (
        "match bitmaps lost in a merger",
        "braid.execution.host_replicas.merge_matched_blocks",
        _merge_without_bits,
        1032,
    ),
    (
        "rows of a cut block numbered anew",
        "braid.execution.host_replicas.copy_numbered_block",
        _number_cuts_anew,
        1018,
    ),
    (
        "rejected tuples lost",
        "braid.execution.tuple_answers.AnswerWriter.answer_rejected_tuples",
        lambda answer: lambda *given: None,
        1001,
    ),
    (
        "no closing batch",
        "braid.core.due_answers.find_settles",
        lambda find: lambda *given: (),
        1000,
    ),
    (
        "a final tuple forgotten, which only the check of the end finds",
        "braid.execution.tuple_answers.AnswerWriter._settle_block",
        _forget_tuple,
        1000,
    ),
]

BROKEN = [
    Broken(
        name, at, fault, RUNS + "test_chosen_runs_give_the_rows_of_the_model", "", {"seed": seed}
    )
    for name, at, fault, seed in _FAULTS
]

_EARLY = "unit.test_early_answers."
BROKEN += [
    Broken(name, at, fault, _EARLY + test, "", given)
    for name, at, fault, test, given in [
        (
            "an early answer that is not taken back",
            "braid.execution.early_answers.find_retractions",
            lambda find: lambda *given: (),
            "test_a_tuple_is_inserted_alone_and_deleted_with_its_first_partner",
            {},
        ),
        (
            "an early answer of a tuple that matches in its own batch",
            "braid.execution.engine.make_early_batch",
            _tell_matched,
            "test_a_tuple_is_inserted_alone_and_deleted_with_its_first_partner",
            {},
        ),
        (
            "an early answer taken back at each further partner",
            "braid.storage.match_bitmaps.MatchBitmaps._extend_bitmap",
            _take_back_again,
            "test_a_tuple_is_inserted_alone_and_deleted_with_its_first_partner",
            {},
        ),
    ]
]

_LEAVING = RUNS + "test_matched_tuples_leave_the_state_of_semi_and_anti_joins"
BROKEN += [
    Broken(
        "matched tuples of a semi join are held until they are final",
        "braid.core.join_kinds.JoinKind.forgets_matched",
        lambda forgets: property(lambda kind: False),
        _LEAVING,
        "",
        {"how": "semi", "placement": Centralized()},
    ),
    Broken(
        "matched tuples that leave the state are not counted as answered",
        "braid.execution.host_replicas.ReplicaStore._count_forgotten",
        lambda count: lambda *given: None,
        _LEAVING,
        "",
        {"how": "anti", "placement": Centralized()},
    ),
]
