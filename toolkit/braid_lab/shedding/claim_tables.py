"""Tables of figures that several claims of load shedding compare. Source: Gedik 2007."""

from __future__ import annotations

import numpy as np
import pandas as pd

from braid_lab.common.claims import Finding, judge, judge_reading

UNSAID = "which the paper does not give"


def index_drops(drops: pd.DataFrame) -> pd.Series:
    """Return the dropped share of tuples by index, rate and window."""
    return drops.set_index(["index", "rate", "window"])["dropped_modelled"]


def select_phase(runs: pd.DataFrame, phase: str, method: str) -> pd.DataFrame:
    """Return the runs of a method in a phase."""
    return runs[(runs["phase"] == phase) & (runs["method"] == method)]


def number_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """Return runs with their seed; 0 if they have none."""
    return runs if "seed" in runs else runs.assign(seed=0)


def compute_output_gain(runs: pd.DataFrame, method: str, *by: str) -> pd.Series:
    """Return the gain in results over random dropping, by phase, kappa and other columns."""
    keys = ["phase", "kappa", *by]
    recall = runs.groupby(["method", *keys])["recall_counted"].mean()
    return recall[method] / recall["drop"] - 1


def average_recall(runs: pd.DataFrame, phase: str = "burst", *by: str) -> pd.DataFrame:
    """Return recall by kappa and other columns in a phase, a column for each method."""
    rows = runs[runs["phase"] == phase]
    return rows.groupby(["kappa", *by, "method"])["recall_counted"].mean().unstack()


def compute_added_recall(
    runs: pd.DataFrame, phase: str = "burst", *by: str
) -> tuple[pd.Series, pd.Series]:
    """Return what time correlation adds to rate adaptation, and direction to that."""
    recall = average_recall(runs, phase, *by)
    return recall["time"] / recall["partial"] - 1, recall["direction"] / recall["time"] - 1


def judge_runs(result: str, in_mean: object, each: pd.Series | pd.DataFrame, why: str) -> Finding:
    """Return whether a claim holds in each run by kappa and seed; a reading, if in their mean.

    ``why`` has the figures.
    """
    if in_mean and bool(each.all(axis=None)):
        return judge(result, True, f"at each kappa and seed; {why}")
    cells = f"{int(each.to_numpy().sum())} of {each.size}"
    return judge_reading(result, in_mean, f"in the mean of seeds, and in {cells} runs; {why}")


def format_percents(values: pd.Series, spec: str = ".0%") -> str:
    """Return shares by x as text: "23% at 0.4, 41% at 0.6"."""
    return ", ".join(f"{value:{spec}} at {x:g}" for x, value in values.items())


def format_span(values: pd.Series | pd.DataFrame, spec: str = "+.0%") -> str:
    """Return the least and the greatest value as text, once if they are alike."""
    least, most = (f"{end(values.to_numpy()):{spec}}" for end in (np.min, np.max))
    return least if least == most else f"{least} to {most}"


def compare_indexes(basic_windows: pd.DataFrame) -> pd.DataFrame:
    """Return recall by the number of basic windows, a column for each index."""
    return basic_windows.set_index(["index", "parts"])["recall_modelled"].unstack("index")


def compare_joins(gains: pd.DataFrame) -> pd.DataFrame:
    """Return the gain over dropping by rate, a column for each join."""
    return gains.groupby(["rate", "join"])["gain_counted"].mean().unstack()


def compare_frequencies(utility: pd.DataFrame) -> pd.DataFrame:
    """Return the gain by kappa, seed and skew, a column for each kind of frequencies."""
    keys = ["kappa", "seed", "skew", "frequencies"]
    return number_seeds(utility).set_index(keys)["gain_counted"].unstack()


def compare_factors(types: pd.DataFrame) -> pd.DataFrame:
    """Return the gain by kappa, seed and factor, a column for each number of types."""
    return types.set_index(["kappa", "seed", "factor", "types"])["gain_counted"].unstack()


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
