"""What a paper says and what is found here: one record for the claims of all studies.

A study has a function for each of its claims, and ``claims`` that returns them all. Notebooks show
``table`` and end with ``check``, so that a report fails when a claim that held no longer does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import pandas as pd

Verdict = Literal["yes", "no", "under reading", "not tried"]


@dataclass(frozen=True)
class Claim:
    """One claim, and what became of it."""

    paper: str
    """Its authors and year."""
    source: str
    """Figure, table, theorem or section."""
    statement: str
    """What the paper says, in a sentence."""
    result: str
    """What is found here: figures with units."""
    holds: Verdict
    """"under reading": only if the claim is read as ``reason`` says."""
    reason: str = ""
    """Why it does not hold, or what qualifies it."""
    is_required: bool = False
    """Whether ``check`` refuses it when it does not hold."""

    def __str__(self) -> str:
        return f"{self.paper}, {self.source}: {self.statement}: {self.result}"


def make_verdict(holds: Any) -> Verdict:
    """ "yes" or "no" for a truth value, NumPy's among them."""
    return "yes" if holds else "no"


def format_values(values: Mapping[Any, float] | pd.Series) -> str:
    """Numbers by x, as text: "10: 0.98, 20: 1.3"."""
    return ", ".join(f"{x}: {value:.3g}" for x, value in values.items())


def claims_table(claims: Iterable[Claim]) -> pd.DataFrame:
    """The claims for a reader: where, what the paper says, found here, holds, reason."""
    rows = [(c.source, c.statement, c.result, c.holds, c.reason) for c in claims]
    return pd.DataFrame(rows, columns=["where", "the paper says", "found here", "holds", "reason"])


def check_claims(claims: Iterable[Claim]) -> str:
    """How many claims hold, in a sentence. Raises AssertionError with each claim that must hold and
    does not.

    With BRAID_CLAIMS set, they are added to the file that it names, a line of JSON each.
    """
    claims = list(claims)
    if kept := os.environ.get("BRAID_CLAIMS"):
        with open(kept, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(c)) + "\n" for c in claims)
    if failed := [str(c) for c in claims if c.is_required and c.holds == "no"]:
        raise AssertionError("\n".join(failed))
    held = sum(c.holds == "yes" for c in claims)
    must = sum(c.is_required for c in claims)
    return f"{len(claims)} claims, {held} hold here; all checks passed ({must} must hold)."
