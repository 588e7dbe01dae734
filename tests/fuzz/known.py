"""Faults that are known and not yet mended: what shows one of them is counted, and not reported.
The list shrinks to nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from fuzz.cases import Case

FAULTS: dict[str, Callable[[Case, str], bool]] = {}
"""By name, whether a case and what is wrong with its answer show the fault."""


def fault_of(case: Case, wrong: str) -> str | None:
    """The known fault that a case shows; None if it shows another one."""
    return next((name for name, shows in FAULTS.items() if shows(case, wrong)), None)


UNMENDED: frozenset[str] = frozenset()
"""Cases of the corpus that are still answered wrongly, by name."""
