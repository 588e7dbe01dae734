"""The data frames behind the claims of Gedik 2007, computed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd

from braid_lab.shedding import experiments, policy_figures, utility_figures


@dataclass(frozen=True)
class SheddingFigures:
    """The tidy frames behind the claims, of models and of the policy.

    - ``reduction``: Fig. 1.
    - ``optimality``: Fig. 5.
    - ``densities``: Fig. 6.
    - ``drops``: Fig. 7, modelled; ``dropped``: without an index, by the policy.
    - ``burst``: Fig. 8 by Algorithm 1 and fed forward; ``fractions``: by the policy.
    - ``newest``, ``nearer``: Fig. 9, if the newest tuples match; for some skews and two more.
    - ``wider``: Fig. 10, by the window.
    - ``directions``: Fig. 11.
    - ``recall``, ``finer``: Fig. 12, for some skews and four more.
    - ``skewed``: Fig. 13, theta of 4.
    - ``cut_windows``: Fig. 14 without an index; ``basic_windows``: with one, modelled.
    - ``gains``: Fig. 15.
    - ``utility``, ``types``: Fig. 16 and 17.
    """

    reduction: pd.DataFrame
    optimality: pd.DataFrame
    densities: pd.DataFrame
    drops: pd.DataFrame
    dropped: pd.DataFrame
    burst: pd.DataFrame
    fractions: pd.DataFrame
    newest: pd.DataFrame
    nearer: pd.DataFrame
    wider: pd.DataFrame
    directions: pd.DataFrame
    recall: pd.DataFrame
    finer: pd.DataFrame
    skewed: pd.DataFrame
    cut_windows: pd.DataFrame
    basic_windows: pd.DataFrame
    gains: pd.DataFrame
    utility: pd.DataFrame
    types: pd.DataFrame

    @classmethod
    def compute(
        cls,
        kappas: tuple[float, ...] = (0.4, 0.5, 0.6, 0.7, 0.8),
        scale: float = 1.0,
        seed_count: int = 1,
    ) -> SheddingFigures:
        """Return the figures, computed for some skews of items and some seeds.

        ``scale`` is that of ``policy_figures``; below 1 there are fewer rates and numbers of types,
        and its claims may not hold.
        """
        seeds = range(seed_count)
        steady = 500.0 * scale
        pairs = experiments.CAPACITY * scale**2
        rates = (100.0, 200.0, 300.0, 400.0, 500.0) if scale == 1 else (100.0, 500.0)
        numbers = (2, 3, 5, 10, 20, 40) if scale == 1 else (2, 10)
        skews = (0.4, 0.6, 0.8) if scale == 1 else kappas[:1]
        more = (0.42, 0.44, 0.46, 0.48) if scale == 1 else (0.44,)
        return cls(
            reduction=experiments.window_reduction(),
            optimality=experiments.optimality_table(),
            densities=experiments.density_curves(),
            drops=experiments.drop_rates(),
            dropped=policy_figures.drop_runs(seeds=seeds, scale=scale),
            burst=experiments.adaptation_curves(),
            fractions=policy_figures.burst_fractions(seeds=seeds, scale=scale),
            newest=policy_figures.newest_runs(kappas, seeds=seeds, scale=scale),
            nearer=policy_figures.newest_runs((0.52, 0.54), seeds=seeds, scale=scale),
            wider=policy_figures.wider_runs(seeds=seeds, kappas=skews, scale=scale),
            directions=policy_figures.direction_runs(rate=100.0 * scale, seeds=seeds),
            recall=policy_figures.burst_runs(kappas, seeds=seeds, scale=scale),
            finer=policy_figures.burst_runs(
                more, methods=("partial", "time", "direction"), seeds=seeds, scale=scale
            ),
            skewed=policy_figures.burst_runs(skews, theta=4, seeds=seeds, scale=scale),
            cut_windows=policy_figures.basic_window_runs(
                kappas=skews, rate=steady, seeds=seeds, pairs=pairs
            ),
            basic_windows=experiments.recall_by_basic_windows(),
            gains=policy_figures.gain_runs(rates, seeds=seeds, scale=scale),
            utility=utility_figures.utility_runs(rate=steady, kappas=skews, seeds=seeds),
            types=utility_figures.type_runs(numbers, rate=steady, kappas=skews, seeds=seeds),
        )

    def select_models(self) -> SheddingFigures:
        """Return the figures of models alone; those of the policy are None."""
        counted = (
            "dropped",
            "fractions",
            "newest",
            "nearer",
            "wider",
            "directions",
            "recall",
            "finer",
            "skewed",
            "cut_windows",
            "gains",
            "utility",
            "types",
        )
        return replace(self, **dict.fromkeys(counted))
