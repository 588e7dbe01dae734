"""Faults of joins of changes, each detected by one test. They are of no paper."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from braid.core.reserved_columns import SIGN
from braid.papers.baselines.centralized import Centralized

from mutations import Broken

CHANGES = "unit.test_changes."
NET = CHANGES + "test_the_net_of_the_results_is_the_join_of_what_exists"


def signed_by_the_last(make: Any) -> Any:
    """Give a result the sign of its last member of a stream of changes."""

    def fault(self: Any, found: Any) -> pa.Array:
        signs = found.column_values(self.spec.change_streams[-1], SIGN)
        return pa.array(["insert" if sign > 0 else "delete" for sign in signs])

    return fault


BROKEN = [
    Broken(
        "a result has the sign of one member",
        "braid.storage.block_files.ResultFileWriter._make_change_types",
        signed_by_the_last,
        NET,
        "",
        {"name": "Centralized()", "aliases": "ab"},
    ),
    Broken(
        "a row before an update is an insertion",
        "braid.condition.change_columns.SIGNS",
        lambda signs: {**signs, "update_preimage": 1},
        NET,
        "",
        {"name": "Centralized()", "aliases": "ab"},
    ),
    Broken(
        "changes are held for ever",
        "braid.execution.host_replicas.drop_cancelled_rows",
        lambda drop: lambda rows, *given: rows,
        CHANGES + "test_a_row_that_is_updated_again_and_again_is_held_about_once",
        "",
        {"placement": Centralized()},
    ),
    Broken(
        "the check of answers takes every sign for an insertion",
        "braid.answer_check_text.SIGNS",
        lambda signs: dict.fromkeys(signs, 1),
        CHANGES + "test_a_killed_run_goes_on_with_the_same_changes",
        "",
    ),
]
