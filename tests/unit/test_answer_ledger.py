"""The check of answers: each clause has a plan that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from braid.core.answer_ledger import AnswerLedger, check_all_answered
from braid.core.answer_state import LAST, AnswerState, Limit
from braid.core.asof_releases import ReleaseState
from braid.core.join_kinds import parse_kind
from braid.core.plan import Block, Derivation, Plan, Settle
from braid.core.run_state import RunState
from braid.core.stream_clocks import END
from braid.errors import CoverageError
from msgspec import structs

LEFT = parse_kind("left", ["a", "b"])
OLD = Block(1, 0, (0, 8), 0, (0, 1), 10, 100, (0, 50))
NEW = Block(2, 0, (0, 8), 3, (0, 1), 10, 100, (30, 90))
OTHER = Block(3, 1, (0, 8), 3, (0,), 10, 100, (0, 90))
SETTLES = (Settle(1, 0, 1, 20, 40), Settle(2, 0, 0, None, 40))
MERGED = Derivation(Block(4, 0, (0, 8), 0, (0, 1), 20, 200, (0, 90)), (1, 2), {0: 0, 1: 1})
MERGE = Plan(derivations=(MERGED,), drops={1: (0, 1), 2: (0, 1)})


def check(
    settles: tuple[Settle, ...] = SETTLES,
    plan: Plan | None = None,
    horizon: float | None = 40,
    pending: tuple[tuple[int, int], ...] = (),
    limits: dict[int, Limit] | None = None,
) -> dict[int, Limit]:
    """Return the limits after a plan for three blocks; the first one is answered until 20."""
    ledger = AnswerLedger(LEFT, {1: 20} if limits is None else limits)
    blocks = (OLD, NEW, OTHER)
    ledger.check_plan(blocks, pending, settles, plan or Plan(), (horizon, None))
    return ledger.limits


def test_answers_go_on_where_they_ended_and_mergers_inherit_them() -> None:
    assert check() == {1: 40, 2: 40}
    assert check(plan=MERGE) == {4: 40}
    assert check((), horizon=None) == {1: 20}
    assert check((SETTLES[0],), pending=((2, 3),)) == {1: 40}


def test_a_limit_rises_over_a_time_without_tuples() -> None:
    late = (replace_settle(1, since=20, until=60), replace_settle(2, until=60))
    ledger = AnswerLedger(LEFT, check(late, horizon=60))
    ledger.check_plan(
        (OLD, NEW), (), (replace_settle(2, since=60, until=END),), Plan(), (END, None)
    )
    assert ledger.limits == {1: LAST, 2: LAST}


def replace_settle(block: int, **changed: Any) -> Settle:
    return SETTLES[block - 1]._replace(**changed)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check((SETTLES[0],)), "block 2 has final tuples from None until 40"),
        (
            lambda: check(SETTLES * 2),
            "block 1 is answered from 20 on, but it was answered until 40",
        ),
        (
            lambda: check((replace_settle(1, since=25), SETTLES[1])),
            "block 1 is answered from 25 on, but it was answered until 20",
        ),
        (
            lambda: check((SETTLES[0], replace_settle(2, since=35))),
            "block 2 is answered from 35 on, but it was answered until None",
        ),
        (
            lambda: check((replace_settle(1, until=41), SETTLES[1])),
            "block 1 is answered until 41, but tuples from 40 on may get a partner",
        ),
        (lambda: check(horizon=None), "but tuples from None on may get a partner"),
        (lambda: check(pending=((1, 3),)), "block 1 is answered, but a pair is pending"),
        (lambda: check((replace_settle(1, host=5), SETTLES[1])), "on host 5: not there"),
        (
            lambda: check((Settle(3, 0, 0, None, 40), *SETTLES)),
            "block 3 is answered on host 0: not there",
        ),
        (
            lambda: check((), horizon=None, plan=MERGE),
            r"block 4 merges blocks \(1, 2\), which are answered until different times",
        ),
        (
            lambda: check((SETTLES[0],), plan=MERGE, pending=((2, 3),)),
            r"block 4 replaces blocks \[2\], which have pending pairs",
        ),
        (
            lambda: check(plan=Plan(drops={1: (0, 1)})),
            "block 1 is dropped, but its tuples are answered only until 40",
        ),
        (
            lambda: check(
                plan=Plan(
                    derivations=(
                        Derivation(structs.replace(OLD, id=5, key_range=(0, 4)), (1,), {0: 0}),
                    ),
                    drops={1: (0, 1)},
                )
            ),
            "block 1 is dropped, but its tuples are answered only until 40",
        ),
    ],
)
def test_a_plan_that_breaks_a_clause_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(CoverageError, match=message):
        call()


def check_end(limit: Limit, waiting: tuple[int, int] = (0, 0), released: int = 0) -> None:
    state = replace(
        RunState.initial(2, None),
        blocks={1: OLD, 3: OTHER},
        answers=AnswerState(waiting=waiting, checked={1: limit}),
        releases=ReleaseState(waiting=released),
    )
    check_all_answered(LEFT, ("a", "b"), state)


def test_at_the_end_every_block_is_answered_and_no_tuple_waits() -> None:
    check_end(LAST)
    with pytest.raises(CoverageError, match=r"not answered: \{'a': 2\}"):
        check_end(LAST, waiting=(2, 0))
    with pytest.raises(CoverageError, match="block 1 is answered only until 40"):
        check_end(40)
    with pytest.raises(CoverageError, match=r"not answered: \{'a': 1\}"):
        check_all_answered(
            parse_kind("inner", ["a", "b"]),
            ("a", "b"),
            replace(RunState.initial(2, None), releases=ReleaseState(waiting=1)),
        )
