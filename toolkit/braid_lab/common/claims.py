"""Claims of the papers and their results, as one record for all studies.

A study has a function for each of its claims, and one that returns them all. Notebooks show
``claims_table`` and end with ``check_claims``, so that a report fails if a claim that used to hold
no longer does.
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
    """One claim and its result."""

    paper: str
    """Authors and year of the paper."""
    source: str
    """Figure, table, theorem or section."""
    statement: str
    """The claim of the paper, in a sentence."""
    result: str
    """The result of the study: figures with units."""
    holds: Verdict
    """"under reading": only if the claim is read as ``reason`` says."""
    reason: str = ""
    """Why the claim does not hold, or what qualifies it."""
    is_required: bool = False
    """Whether ``check_claims`` fails if the claim does not hold."""

    def __str__(self) -> str:
        return f"{self.paper}, {self.source}: {self.statement}: {self.result}"


def make_verdict(holds: Any) -> Verdict:
    """Return "yes" or "no" for a truth value, including those of NumPy."""
    return "yes" if holds else "no"


def format_values(values: Mapping[Any, float] | pd.Series) -> str:
    """Return numbers by x as text: "10: 0.98, 20: 1.3"."""
    return ", ".join(f"{x}: {value:.3g}" for x, value in values.items())


def claims_table(claims: Iterable[Claim]) -> pd.DataFrame:
    """Return the claims as a table: where, what the paper says, found here, holds, reason."""
    rows = [(c.source, c.statement, c.result, c.holds, c.reason) for c in claims]
    return pd.DataFrame(rows, columns=["where", "the paper says", "found here", "holds", "reason"])


def check_claims(claims: Iterable[Claim]) -> str:
    """Return, as a sentence, how many claims hold.

    If BRAID_CLAIMS is set, append the claims to the file that it names, one line of JSON each.
    Raises AssertionError, listing them, if claims that must hold do not.
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
