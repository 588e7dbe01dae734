"""The gain of the chain by rate, in the mean of eight seeds (Wang 2008, Fig. 8.2).

Which tuples pass the selection in one run of 90 seconds changes the gain by more than the rates do,
so that one run cannot decide whether it grows with them.

``python -m braid_lab.slices.mean_gains --minutes 4`` adds missing runs to the cached table and
stops after the minutes. All is counted on the chain placement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import pandas as pd

from braid_lab.common.recorded_settings import record_values
from braid_lab.common.result_cache import (
    CachedOutcome,
    Outcome,
    ResultCache,
    fingerprint_outcomes,
    run_cache_command,
)
from braid_lab.slices.experiments import RATES, SIGMAS, STEP, STRATEGIES, WINDOWS, strategy_counts

SEEDS = tuple(range(8))
JOIN = 0.1
"""The selectivity of the join, S⋈."""
SECONDS = 90.0
"""Duration of a run, as in the book."""
ENDS = (min(RATES), max(RATES))
"""The rates that are compared, in tuples a second."""


def _make_key(windows: str, sigma: float, rate: float, seed: int) -> str:
    return f"windows={windows}; sigma={sigma:g}; join={JOIN:g}; rate={rate:g}; seed={seed}"


def _count_service(windows: str, sigma: float, rate: float, seed: int) -> Outcome:
    return _count_service_for(windows, sigma, rate, seed, SECONDS)


def _count_service_for(
    windows: str, sigma: float, rate: float, seed: int, seconds: float
) -> dict[str, float]:
    """Return the results per 1000 comparisons of each strategy."""
    counts = strategy_counts((windows,), (sigma,), (JOIN,), (rate,), seconds, (seed,))
    return dict(zip(counts["strategy"], counts["service_counted"], strict=True))


def _fingerprint_code() -> str:
    return fingerprint_outcomes(
        _count_service_for(windows, SIGMAS[0], ENDS[0], 0, 8.0) for windows in WINDOWS
    )


CACHE = ResultCache(
    "wang2008-gains.csv", tuple(STRATEGIES), _fingerprint_code, _make_key, _count_service
)


def gain_by_rate(
    outcome_source: Callable[[str, float, float, int], CachedOutcome] | None = None,
    seeds: Sequence[int] = SEEDS,
    settings: Sequence[tuple[str, float]] = tuple(product(WINDOWS, SIGMAS)),
) -> pd.DataFrame:
    """Return the gain over the next best strategy: windows, sigma, rate, seed, gain_counted.

    ``settings`` are windows and selectivities of the selection.
    """
    source = outcome_source or CACHE.make_source()
    rows = []
    for (windows, sigma), rate, seed in product(settings, ENDS, seeds):
        served = source(windows, sigma, rate, seed).outcome
        gain = served["state-slice"] / max(served["pull-up"], served["partition"]) - 1
        rows.append((windows, sigma, rate, seed, gain))
    gains = pd.DataFrame(rows, columns=["windows", "sigma", "rate", "seed", "gain_counted"])
    ran = {"join": JOIN, "rates": ENDS, "seconds": SECONDS, "step": STEP}
    return record_values(gains, **ran, seeds=seeds, settings=settings)


def requested_runs() -> dict[str, Callable[[], Outcome]]:
    """Return all runs of the table, by key."""
    return CACHE.list_requests(lambda outcome_source: gain_by_rate(outcome_source))


if __name__ == "__main__":
    run_cache_command(CACHE, requested_runs(), __doc__)
