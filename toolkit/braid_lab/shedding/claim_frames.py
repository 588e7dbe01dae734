"""The data frames behind the claims of Gedik 2007, computed."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from braid_lab.shedding import experiments


@dataclass(frozen=True)
class SheddingFigures:
    """The tidy frames behind the claims, from the functions of ``experiments``.

    - ``reduction``: Fig. 1.
    - ``optimality``: Fig. 5.
    - ``densities``: Fig. 6.
    - ``drops``: Fig. 7.
    - ``burst``: Fig. 8.
    - ``newest``: Fig. 9, if the newest tuples match.
    - ``wider``: Fig. 10, by the window.
    - ``directions``: Fig. 11.
    - ``recall``: Fig. 12.
    - ``skewed``: Fig. 13, theta of 4.
    - ``basic_windows``: Fig. 14.
    - ``gains``: Fig. 15.
    - ``utility``, ``types``: Fig. 16 and 17.
    """

    reduction: pd.DataFrame
    optimality: pd.DataFrame
    densities: pd.DataFrame
    drops: pd.DataFrame
    burst: pd.DataFrame
    newest: pd.DataFrame
    wider: pd.DataFrame
    directions: pd.DataFrame
    recall: pd.DataFrame
    skewed: pd.DataFrame
    basic_windows: pd.DataFrame
    gains: pd.DataFrame
    utility: pd.DataFrame
    types: pd.DataFrame

    @classmethod
    def compute(cls, kappas: tuple[float, ...] = (0.4, 0.6, 0.8)) -> SheddingFigures:
        """Return the figures, computed for some skews of items."""
        return cls(
            reduction=experiments.window_reduction(),
            optimality=experiments.optimality_table(),
            densities=experiments.density_curves(kappas[-2:]),
            drops=experiments.drop_rates(),
            burst=experiments.adaptation_curves(),
            newest=experiments.recall_table(kappas, shift=0.0),
            wider=experiments.recall_by_window(),
            directions=experiments.direction_shares(),
            recall=experiments.recall_table(kappas),
            skewed=experiments.recall_table(kappas, theta=4),
            basic_windows=experiments.recall_by_basic_windows(),
            gains=experiments.gain_over_dropping(),
            utility=experiments.utility_by_skew(),
            types=experiments.utility_by_types(),
        )
