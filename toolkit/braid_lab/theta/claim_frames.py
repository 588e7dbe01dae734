"""The data frames behind the claims about the modelled cluster of Elseidy 2014."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from braid_lab.common.claims import Finding
from braid_lab.common.recorded_settings import format_recorded
from braid_lab.theta.figures import MB, final_batches


@dataclass(frozen=True)
class ThetaFigures:
    """The tables behind the claims.

    ``times`` are of ``table_2``, ``few_overflows`` of ``overflow_runs``, ``runs`` of
    ``performance_runs``, ``mapping_runs`` of ``mapping_curves``, ``scaling_runs`` of
    ``weak_scaling``, and ``fluctuation_runs`` of ``fluctuation_progress``. The rest are of
    ``figure_tables``: ``hash_ranges`` of ``vary_key_values``, ``result_ranges`` of
    ``vary_result_seconds``, ``disk`` of ``vary_disk``, and ``ratios`` of ``ratio_runs``; None: no
    fine batches.
    """

    times: pd.DataFrame
    few_overflows: pd.DataFrame
    runs: pd.DataFrame
    mapping_runs: pd.DataFrame
    scaling_runs: pd.DataFrame
    disk: pd.DataFrame
    fluctuation_runs: pd.DataFrame
    hash_ranges: pd.DataFrame
    result_ranges: pd.DataFrame
    ratios: pd.DataFrame | None = None


def column_by_query(runs: pd.DataFrame, operator: str, column: str) -> pd.Series:
    """Return Fig. 5b, 5d to 5f: a number of an operator at the end, mean over seeds, by query."""
    final = final_batches(runs)
    return final[final["operator"] == operator].groupby("query", sort=False)[column].mean()


def values_by_skew(times: pd.DataFrame, query: str, operator: str, column: str) -> pd.Series:
    """Return Table 2: by skew the seconds, or the share of seeds in which a memory is full."""
    rows = times[(times["query"] == query) & (times["operator"] == operator)]
    return rows.set_index("skew")[column]


def seconds_by_skew(times: pd.DataFrame, query: str, operator: str) -> pd.Series:
    """Return Table 2: seconds by skew."""
    return values_by_skew(times, query, operator, "seconds_modelled")


def load_per_percent(runs: pd.DataFrame, operator: str) -> float:
    """Return Fig. 5a: MB on the fullest machine for each percent of the input, EQ5."""
    rows = runs[(runs["query"] == "EQ5") & (runs["operator"] == operator)]
    return float(np.polyfit(rows["percent"], rows["stored_max"] * MB, 1)[0])


def name_full_memories(finding: Finding, runs: pd.DataFrame, rows: pd.DataFrame) -> Finding:
    """Return a finding on some rows of runs, with what its setting says of full memories.

    That is how many times as long a tuple takes then, or that none is ever full.
    """
    slower = f", {format_recorded(runs, 'disk')} times as long once a memory is full"
    text = slower if rows["overflow"].any() else " (no memory is ever full)"
    return replace(finding, ran={**finding.ran, "once_full": text})


def nonlinearity(rows: pd.DataFrame, column: str) -> float:
    """Return the distance of a curve over percent from the line between its ends.

    It is a share of the curve's rise.
    """
    x, y = rows["percent"].to_numpy() / 100, rows[column].to_numpy()
    return float(np.abs(y / y[-1] - x).max())
