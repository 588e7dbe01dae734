"""Claims about frequent join values, against counted joins of tables in this process.

Of SharesSkew and FastJoin only the abstracts are quoted.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from braid_lab.common.claims import ClaimRegistry, Finding, format_range, judge, leave_untested

SETTING = (
    "HotKeys beside HashPartition on 8 hosts; two streams of 12,000 tuples, Zipf skews of 0 and "
    "1.2, windows of a third of the run; 24 batches, counted"
)
CLAIMS = ClaimRegistry("Afrati 2015", {"": SETTING})
LEAST_ROWS = 6000
"""Rows of each stream from which the work of 16 hosts can be even to that degree; below, a host's
part of a value varies by chance.
"""
EVEN = 1.2
"""Busiest host over mean at which hosts count as evenly loaded."""


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


@CLAIMS.claim(
    "Abstract",
    "Tuples of values that appear very frequently are distributed so that no host is overloaded",
    is_required=True,
)
def even_work_claim(skews: pd.DataFrame, rows: int) -> Finding:
    """Distributing the tuples of heavy hitters avoids skew."""
    hot, hashed = (select_placement(skews, n)["work"] for n in ("HotKeys", "HashPartition"))
    result = f"busiest host over mean: {hot.max():.2f} at most, by a hash {hashed.max():.1f}"
    if rows < LEAST_ROWS:
        return leave_untested(result, "too few rows")
    return judge(result, (hot <= EVEN).all() and hashed.max() > 2)


@CLAIMS.claim(
    "Zhou 2019, abstract",
    "A lightweight migration of tuples solves the imbalance while the join runs",
    is_required=True,
)
def shift_claim(shifts: pd.DataFrame, rows: int) -> Finding:
    """After the frequent values have changed, work is even again."""
    hot = select_placement(shifts, "HotKeys")
    moved = format_range(hot["moved"].min(), hot["moved"].max())
    result = f"busiest host over mean {hot['work'].max():.2f} at most; {moved} of the tuples moved"
    if rows < LEAST_ROWS:
        return leave_untested(result, "too few rows")
    return judge(result, (hot["work"] <= EVEN).all() and hot["moved"].max() > 0)
