"""The data frames behind the claims about the modelled cluster of Elseidy 2014."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from braid_lab.theta.cluster_model import JOINER
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

    @cached_property
    def final_rows(self) -> pd.DataFrame:
        """Fig. 5b, 5d to 5f: the runs at their end, the mean over seeds, by query and operator."""
        numbers = ["stored_mean", "stored_max", "seconds_modelled", "latency_ms_modelled"]
        return final_batches(self.runs).groupby(["query", "operator"], sort=False)[numbers].mean()

    def column_by_query(self, operator: str, column: str) -> pd.Series:
        """Return Fig. 5b, 5d to 5f: one number of one operator, by query."""
        return self.final_rows[column].xs(operator, level="operator")

    def values_by_skew(self, query: str, operator: str, column: str) -> pd.Series:
        """Return Table 2: by skew the seconds, or the share of seeds in which a memory is full."""
        rows = self.times[(self.times["query"] == query) & (self.times["operator"] == operator)]
        return rows.set_index("skew")[column]

    def seconds_by_skew(self, query: str, operator: str) -> pd.Series:
        """Return Table 2: seconds by skew."""
        return self.values_by_skew(query, operator, "seconds_modelled")

    def mean_by_values(self, column: str) -> pd.Series:
        """Return a number of SHJ, EQ5 at Z4, by the number of values of its key."""
        rows = self.hash_ranges[self.hash_ranges["disk"] == JOINER.disk]
        return rows.groupby("values")[column].mean()

    def load_per_percent(self, operator: str) -> float:
        """Return Fig. 5a: MB on the fullest machine for each percent of the input, EQ5."""
        rows = self.runs[(self.runs["query"] == "EQ5") & (self.runs["operator"] == operator)]
        return float(np.polyfit(rows["percent"], rows["stored_max"] * MB, 1)[0])


def nonlinearity(rows: pd.DataFrame, column: str) -> float:
    """Return the distance of a curve over percent from the line between its ends.

    It is a share of the curve's rise.
    """
    x, y = rows["percent"].to_numpy() / 100, rows[column].to_numpy()
    return float(np.abs(y / y[-1] - x).max())
