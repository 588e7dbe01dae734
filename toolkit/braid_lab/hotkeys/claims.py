"""Claims about frequent join values, against counted joins of tables in this process.

Of SharesSkew and FastJoin only the abstracts are at hand, and HotKeys is neither: both claims are
judged under that reading.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd

from braid_lab.common.claims import (
    ClaimRegistry,
    Finding,
    format_values,
    judge_reading,
    leave_untested,
)

SETTING = (
    "HotKeys beside HashPartition on {hosts} hosts; two streams of {rows} tuples, a Zipf skew of "
    "{z}, windows of {window_length}; {batches} batches of a minute, seed {seed}, counted"
)
CLAIMS = ClaimRegistry("Afrati 2015", {"": f"{SETTING}; the last half"})
MIGRATION = ClaimRegistry(
    "Zhou 2019",
    {"": f"{SETTING}; half-way other values become frequent; the last quarter"},
)
LEAST_ROWS = 6000
"""Rows of each stream from which the work of 16 hosts can be even to that degree; below, a host's
part of a value varies by chance.
"""
EVEN = 1.2
"""Busiest host over mean at which hosts count as evenly loaded."""
SKEWED = 2.0
"""Busiest host over mean under a hash from which there is an imbalance to solve."""


@dataclass(frozen=True)
class SkewFigures:
    """The figures of the study.

    - ``skews``: figures of ``compare_placements`` without a shift.
    - ``shifts``: the same with one.
    - ``rows``: rows of each stream.
    """

    skews: pd.DataFrame
    shifts: pd.DataFrame
    rows: int


def select_placement(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the rows of one placement by z."""
    return table[table["placement"] == name].set_index("z")


def _compare_busiest(table: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Return by z the busiest host over the mean of a hash, and of HotKeys.

    They are the greater of received tuples and compared pairs, so that they bound the work,
    whatever a tuple and a pair cost. Only for z at which the hash is uneven.
    """
    counts = ["received", "compared"]
    hashed, hot = (
        select_placement(table, name)[counts].max(axis=1) for name in ("HashPartition", "HotKeys")
    )
    uneven = hashed[hashed > SKEWED]
    return uneven, hot[uneven.index]


def _tell_skews(finding: Finding, uneven: pd.Series) -> Finding:
    """Return a finding whose setting has the judged z alone, if there are some."""
    return replace(finding, ran={"z": uneven.index}) if len(uneven) else finding


@CLAIMS.claim(
    "Abstract",
    "records of values that appear very frequently are distributed so that skew is avoided",
    is_required=True,
)
def even_work_claim(skews: pd.DataFrame, rows: int) -> Finding:
    """Distributing the tuples of heavy hitters avoids skew."""
    hashed, hot = _compare_busiest(skews)
    result = f"busiest host over mean, by z {format_values(hot)}; by a hash {format_values(hashed)}"
    if rows < LEAST_ROWS:
        return leave_untested(result, "too few rows")
    why = (
        "by HotKeys, which stores a tuple once and probes all hosts of its value, in place of "
        f"Shares; avoided: at most {EVEN:g} times the mean of received tuples and of compared pairs"
    )
    finding = judge_reading(result, len(hot) > 0 and (hot <= EVEN).all(), why)
    return _tell_skews(finding, hot)


@MIGRATION.claim(
    "Abstract",
    "a tuple migration strategy solves the load imbalance problem in real-time",
    is_required=True,
)
def shift_claim(shifts: pd.DataFrame, rows: int) -> Finding:
    """After the frequent values have changed, work is even again."""
    hashed, hot = _compare_busiest(shifts)
    moved = select_placement(shifts, "HotKeys")["moved"][hot.index]
    result = (
        f"busiest host over mean, by z {format_values(hot)}; by a hash {format_values(hashed)}; "
        f"tuples moved over those that came {format_values(moved)}"
    )
    if rows < LEAST_ROWS:
        return leave_untested(result, "too few rows")
    why = (
        f"by the moves of HotKeys, in place of FastJoin's GreedyFit; solved: at most {EVEN:g} "
        "times the mean of received tuples and of compared pairs. How lightweight moves are is not "
        f"judged: of all tuples that came, {moved.max():.0%} moved"
    )
    holds = len(hot) > 0 and (hot <= EVEN).all() and moved.max() > 0
    return _tell_skews(judge_reading(result, holds, why), hot)


CLAIMS.include_claims(MIGRATION)
