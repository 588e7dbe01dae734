"""Fig. 16 and 17 of Gedik 2007 by the real policy: tuples of different utility, counted.

As the figures without utility (``policy_figures``), at the paper's steady rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from math import log
from typing import Any

import numpy as np
import pandas as pd

from braid_lab.common.recorded_settings import record_values, records_arguments
from braid_lab.shedding import experiments
from braid_lab.shedding.experiments import CAPACITY
from braid_lab.shedding.policy_figures import (
    STEADY,
    WINDOW,
    compute_gain,
    make_shed,
    steady_tuples,
    sum_steady,
)
from braid_lab.shedding.policy_runs import Floats, PolicyRun, list_settings

LEFT = CAPACITY / (2 * 500.0**2 * WINDOW)
"""r at 500 tuples/s on two windows: 0.02."""


def _compute_utility_gain(
    values: Floats, frequencies: Floats, rate: float, kappa: float, seed: int
) -> float:
    """Return the gain in utility of a policy that sees the types over one that does not.

    Its budget is that with which r is LEFT at a steady rate.
    """
    shed = make_shed("selective", CAPACITY * (rate / 500.0) ** 2)
    tuples, worth = steady_tuples(rate, kappa, seed), (values.tolist(), frequencies.tolist())
    runs = (PolicyRun(tuples, shed, worth, is_typed, seed) for is_typed in (True, False))
    seen, unseen = (sum_steady(run.run_batches(), "utility") for run in runs)
    return compute_gain(seen, unseen)


@records_arguments
def utility_runs(
    skews: Sequence[float] = (0.0, 1.0, 2.0, 3.0),
    rate: float = 500.0,
    kappas: Sequence[float] = (0.4, 0.6, 0.8),
    seeds: Sequence[int] = (0,),
) -> pd.DataFrame:
    """Return Fig. 16: the gain in utility of three types worth 1, 2^-k, 3^-k.

    Rows are by kappa, seed, k and frequencies.
    """
    rows, bases = [], (1.0, 2.0, 3.0)
    for kappa, seed, k in product(kappas, seeds, skews):
        values = np.array(bases) ** -k
        for name, weights in (("uniform", np.ones(3)), ("inverse", 1 / values), ("direct", values)):
            gain = _compute_utility_gain(values, weights / weights.sum(), rate, kappa, seed)
            rows.append((kappa, seed, k, name, gain))
    keys = ["kappa", "skew", "frequencies"]
    free = (experiments.utility_by_skew(skews, LEFT, kappa).assign(kappa=kappa) for kappa in kappas)
    frame = _add_free(rows, keys, free)
    return record_values(frame, **_list_steady_settings(rate, kappas[0]), bases=bases)


@records_arguments
def type_runs(
    types: Sequence[int] = (2, 3, 5, 10, 20, 40),
    factors: Sequence[float] = (5.0, 10.0),
    rate: float = 500.0,
    kappas: Sequence[float] = (0.4, 0.6, 0.8),
    seeds: Sequence[int] = (0,),
) -> pd.DataFrame:
    """Return Fig. 17: the gain by the number of types, by kappa, seed and factor.

    Values follow Zipf's law, and frequencies are inverse to them.
    """
    rows = []
    for kappa, seed, factor, n in product(kappas, seeds, factors, types):
        values = np.arange(1, n + 1.0) ** -(log(factor) / log(n))
        gain = _compute_utility_gain(values, (1 / values) / (1 / values).sum(), rate, kappa, seed)
        rows.append((kappa, seed, n, factor, gain))
    free = (
        experiments.utility_by_types(types, factors, LEFT, kappa).assign(kappa=kappa)
        for kappa in kappas
    )
    frame = _add_free(rows, ["kappa", "types", "factor"], free)
    return record_values(frame, **_list_steady_settings(rate, kappas[0]))


def _add_free(rows: list[Any], keys: list[str], free: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return gains by kappa, seed and the other keys, beside those by true densities."""
    kappa, *others = keys
    counted = pd.DataFrame(rows, columns=[kappa, "seed", *others, "gain_counted"])
    return counted.merge(pd.concat(free), on=keys)


def _list_steady_settings(rate: float, kappa: float) -> dict[str, Any]:
    shed = make_shed("selective", CAPACITY * (rate / 500.0) ** 2)
    settings = list_settings(steady_tuples(rate, kappa), shed)
    return {**settings, "fraction": LEFT, "counted": STEADY - WINDOW}
