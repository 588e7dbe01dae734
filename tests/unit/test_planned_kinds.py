"""A thousand random plans of joins of every kind give the rows of the model of kinds."""

from __future__ import annotations

from collections import Counter

import pytest
from planned_kinds import check_planned_case, draw_planned_case

pytestmark = pytest.mark.unit
CASES = 1_000
"""``make fuzz ARGS=--plans COUNT=20000`` follows more."""


def test_plans_answer_each_tuple_as_the_model_does_in_the_same_batch() -> None:
    seen = Counter[str]()
    for seed in range(CASES):
        case = draw_planned_case(seed)
        cluster = check_planned_case(case)
        seen.update([str(case.how), type(case.placement).__name__])
        seen["migrated"] += cluster.has_settled
        seen["alone"] += any(None in ids for _, ids in cluster.rows)
    assert min(seen[how] for how in ("left", "right", "full", "semi", "anti", "(0, 1, 2)")) > 50
    assert seen["migrated"] > 50 and seen["alone"] > 300
