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
    judge_reading,
    leave_untested,
)

SETTING = (
    "HotKeys (nothing changes up to {target} times the mean work, of {tuple_us} µs a tuple and "
    "{pair_us} µs a pair; {rate} moves a new tuple, at most {stored} times the stored tuples of a "
    "hash) beside HashPartition on {hosts} hosts; two streams of {rows} tuples, a Zipf skew of "
    "{z} over {keys} values, windows of {window_length}; {batches} batches of a minute, in joins "
    "of tables in this process, seeds {seed}"
)
CLAIMS = ClaimRegistry("Afrati 2015", {"": f"{SETTING}; counted in the last half"})
MIGRATION = ClaimRegistry(
    "Zhou 2019",
    {"": f"{SETTING}; half-way other values become frequent; counted in the last quarter"},
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
    """Return the rows of one placement by z and seed."""
    return table[table["placement"] == name].set_index(["z", "seed"])


def _compare_busiest(table: pd.DataFrame) -> pd.DataFrame:
    """Return by z and seed the busiest host over the mean: columns HashPartition and HotKeys.

    They are the greater of received tuples and compared pairs, so that they bound the work,
    whatever a tuple and a pair cost. Only for z at which the hash is uneven with all seeds.
    """
    counts = ["received", "compared"]
    busiest = pd.DataFrame(
        {
            name: select_placement(table, name)[counts].max(axis=1)
            for name in ("HashPartition", "HotKeys")
        }
    )
    return busiest[busiest.groupby("z")["HashPartition"].transform("min") > SKEWED]


def _format_busiest(busiest: pd.DataFrame) -> str:
    """Return the range over seeds by z, and what counts."""
    by_name = {
        name: ", ".join(
            f"{low:.2f} to {high:.2f} at z = {z:g}"
            for z, low, high in column.groupby("z").agg(["min", "max"]).itertuples()
        )
        for name, column in busiest.items()
    }
    return (
        "the busiest host over the mean, the greater of received tuples and of compared pairs, is "
        f"{by_name['HotKeys']}, under a hash {by_name['HashPartition']}, by seed; up to {EVEN:g} "
        f"counts, where it is more than {SKEWED:g} under a hash"
    )


def _is_even(busiest: pd.DataFrame) -> bool:
    return len(busiest) > 0 and bool((busiest["HotKeys"] <= EVEN).all())


def _tell_skews(finding: Finding, busiest: pd.DataFrame) -> Finding:
    """Return a finding whose setting has the judged z alone, if there are some."""
    z = busiest.index.unique("z")
    return replace(finding, ran={"z": z}) if len(z) else finding


@CLAIMS.claim(
    "Abstract",
    "records of values that appear very frequently are distributed so that skew is avoided",
    is_required=True,
)
def even_work_claim(skews: pd.DataFrame, rows: int) -> Finding:
    """Distributing the tuples of heavy hitters avoids skew."""
    busiest = _compare_busiest(skews)
    result = _format_busiest(busiest)
    if rows < LEAST_ROWS:
        return leave_untested(result, "too few rows")
    more = select_placement(skews, "HotKeys")["stored_over_hash"][busiest.index]
    why = (
        f"by HotKeys, which in the mean of all batches stores {more.min():.2f} to {more.max():.2f} "
        f"times the tuples of a hash, in place of Shares: {result}"
    )
    return _tell_skews(judge_reading(result, _is_even(busiest), why), busiest)


@MIGRATION.claim(
    "Abstract",
    "a tuple migration strategy solves the load imbalance problem in real-time",
    is_required=True,
)
def shift_claim(shifts: pd.DataFrame, rows: int) -> Finding:
    """After the frequent values have changed, work is even again."""
    busiest = _compare_busiest(shifts)
    moved = select_placement(shifts, "HotKeys")["moved"][busiest.index]
    result = _format_busiest(busiest)
    if rows < LEAST_ROWS:
        return leave_untested(result, "too few rows")
    why = (
        f"by the moves of HotKeys, in place of FastJoin's GreedyFit: {result}. Real-time is before "
        "the last quarter, and how lightweight moves are is not judged: of all tuples that came, "
        f"{moved.min():.0%} to {moved.max():.0%} moved"
    )
    holds = _is_even(busiest) and moved.min() > 0
    return _tell_skews(judge_reading(result, holds, why), busiest)


CLAIMS.include_claims(MIGRATION)
