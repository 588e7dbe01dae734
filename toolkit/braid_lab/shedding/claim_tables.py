"""Tables of figures that several claims of load shedding compare. Source: Gedik 2007."""

from __future__ import annotations

import pandas as pd


def index_drops(drops: pd.DataFrame) -> pd.Series:
    """Return the dropped share of tuples by index, rate and window."""
    return drops.set_index(["index", "rate", "window"])["dropped_modelled"]


def select_phase(runs: pd.DataFrame, phase: str, method: str) -> pd.DataFrame:
    """Return the runs of a method in a phase."""
    return runs[(runs["phase"] == phase) & (runs["method"] == method)]


def compute_output_gain(runs: pd.DataFrame, method: str) -> pd.Series:
    """Return the gain in results over random dropping, by phase and kappa."""
    by = runs.groupby(["method", "phase", "kappa"])["recall_counted"].mean()
    return by[method] / by["drop"] - 1


def average_recall(runs: pd.DataFrame, phase: str = "burst") -> pd.DataFrame:
    """Return recall by kappa in a phase, a column for each method."""
    rows = runs[runs["phase"] == phase]
    return rows.groupby(["kappa", "method"])["recall_counted"].mean().unstack()


def compute_added_recall(runs: pd.DataFrame, phase: str = "burst") -> tuple[pd.Series, pd.Series]:
    """Return what time correlation adds to rate adaptation, and direction to that, by kappa."""
    by = average_recall(runs, phase)
    return by["time"] / by["partial"] - 1, by["direction"] / by["time"] - 1


def compare_indexes(basic_windows: pd.DataFrame) -> pd.DataFrame:
    """Return recall by the number of basic windows, a column for each index."""
    return basic_windows.set_index(["index", "parts"])["recall_modelled"].unstack("index")


def compare_joins(gains: pd.DataFrame) -> pd.DataFrame:
    """Return the gain over dropping by rate, a column for each join."""
    return gains.groupby(["rate", "join"])["gain_counted"].mean().unstack()


def compare_frequencies(utility: pd.DataFrame) -> pd.DataFrame:
    """Return the gain by kappa and skew, a column for each kind of frequencies."""
    return utility.set_index(["kappa", "skew", "frequencies"])["gain_counted"].unstack()


def compare_factors(types: pd.DataFrame) -> pd.DataFrame:
    """Return the gain by the number of types, a column for each factor."""
    return types.set_index(["types", "factor"])["gain_counted"].unstack()


def beside_free(runs: pd.DataFrame, of: str) -> pd.DataFrame:
    """Return the counted and the modelled values of a figure in one column, for a chart.

    ``of`` is "gain" or "recall"; the column ``learning`` is "as it is" or "if it were free". Seeds
    are averaged.
    """
    names = {f"{of}_counted": "as it is", f"{of}_modelled": "if it were free"}
    others = ("seed", "fraction", "results_counted")
    measures = ("recall_counted", "recall_modelled", "gain_counted", "gain_modelled")
    keys = [c for c in runs.columns if c not in (*others, *measures)]
    tall = runs.melt(keys, list(names), var_name="learning", value_name=of)
    tall = tall.groupby([*keys, "learning"], as_index=False, sort=False)[of].mean()
    return tall.replace({"learning": names})
