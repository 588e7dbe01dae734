"""Faults that are known and not yet mended: what shows one of them is counted, and not reported.
The list shrinks to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from fuzz.cases import Case

FAULTS: dict[str, Callable[[Case, str], bool]] = {
    "Spark's own errors": lambda case, wrong: (
        "UNRESOLVED_ROUTINE" in wrong or "INTERNAL_ERR" in wrong
    ),
    "NULL of a struct with required fields": lambda case, wrong: "non-nullable" in wrong,
}
"""By name, whether a case and what is wrong with its answer show the fault."""


STATEMENT_FAULTS: dict[str, str] = {
    "words of a star": r"EXCEPT \(|REPLACE \(|RENAME \(",
    "methods of joins": r"ASOF|NATURAL|POSITIONAL|APPLY",
    "samples": r"TABLESAMPLE|AS OF",
    "names of columns": r"\w\(id",
}
"""By name, a pattern of the statements that show the fault."""


def statement_fault_of(statement: str) -> str | None:
    """The known fault that a statement shows; None if it shows none."""
    return next((n for n, p in STATEMENT_FAULTS.items() if re.search(p, statement)), None)


def fault_of(case: Case, wrong: str) -> str | None:
    """The known fault that a case shows; None if it shows another one."""
    return next((name for name, shows in FAULTS.items() if shows(case, wrong)), None)


UNMENDED: frozenset[str] = frozenset(
    {
        *("like_all", "unresolved_call", "null_struct_with_required_field"),
        *("clock_of_one_broken_timestamp",),
        *("hub_alias_columns", "hub_asof", "hub_except", "hub_except_of_all"),
        *("hub_natural", "hub_replace", "hub_sample"),
    }
)
"""Cases of the corpus that are still answered wrongly."""
