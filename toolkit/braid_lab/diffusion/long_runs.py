"""Long runs of Gu 2007, section 5: a thousand seconds and five seeds, as in the paper.

``python -m braid_lab.diffusion.long_runs --minutes 4`` adds missing runs to the cached table, one
after the other, and stops after the minutes. The runs of the notebook's table come first,
then all that notebook 02 asks for with ``full``. Everything in the table is modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import pandas as pd

from braid_lab.common.result_cache import (
    Outcome,
    ResultCache,
    fingerprint_outcomes,
    run_cache_command,
)
from braid_lab.diffusion.experiments import (
    PLACEMENTS,
    READINGS,
    SCANNED,
    VISITED,
    DiffusionSetting,
    OutcomeSource,
    run_and_summarize,
)
from braid_lab.diffusion.figures import (
    EXPERIMENTS,
    first_lengths,
    halved_burstiness,
    segment_length,
    shorter_waits,
)

SECONDS, SEEDS = 1000, 5
WATCHED_SEEDS = 3
"""Seeds of Fig. 7 and 8, drawn second by second, and of Eq. 2 to 4; not cached."""
BESIDE = ("throughput", "work", "mbits", "stored")


def run_key(name: str, setting: DiffusionSetting) -> str:
    """Return the cache key of a run: its placement and all that it depends on; L of CTR only."""
    of = {f.name: getattr(setting, f.name) for f in fields(setting)}
    of["rates"] = "{:g}-{:g}".format(*setting.rates)
    of["probe"] = next((r for r, c in READINGS.items() if c == of["costs"]), str(of["costs"]))
    del of["costs"]
    if not name.startswith("CTR"):
        del of["copies"]
    words = (f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in of.items())
    return f"{name}: {'; '.join(words)}"


def _list_short_runs() -> Iterator[tuple[str, DiffusionSetting]]:
    """Yield short runs in which everything happens that happens in long ones.

    Lengths are searched for, the master is switched, covers are computed, and hosts shed.
    """
    few = DiffusionSetting(3, 4.0, (10.0, 40.0), hosts=6, length=3, sample=4, seconds=32, copies=2)
    for name in PLACEMENTS:
        yield name, few
    for name in ("ATR", "CTR"):
        yield name, replace(few, streams=4, costs=READINGS[SCANNED], burst=1.0, copies=6)


def _fingerprint_code() -> str:
    return fingerprint_outcomes(
        _compute_outcome(name, setting) for name, setting in _list_short_runs()
    )


def _compute_outcome(name: str, setting: DiffusionSetting) -> Outcome:
    return run_and_summarize(name, setting).outcome


CACHE = ResultCache("gu2007-long.csv", BESIDE, _fingerprint_code, run_key, _compute_outcome)


@dataclass(frozen=True)
class LongRun:
    """One run of the table that notebook 02 shows.

    It has the figure, x, the placement by the paper's name, the setting, and the interpretation of
    a probe's cost.
    """

    figure: str
    x: str
    placement: str
    setting: DiffusionSetting
    reading: str = VISITED


def long_runs() -> Iterator[LongRun]:
    """Yield the runs of the table, the most informative first.

    These are Fig. 11 and 12 from a first length that is not the best, and the ends of Fig. 13 and
    15.
    """
    for seed in range(SEEDS):
        s = DiffusionSetting(4, 30.0, hosts=20, length=5, seconds=SECONDS, seed=seed)
        for name in ("ATR", "ATR-unoptimized"):
            yield LongRun("11, 12", "J = 20, T0 = 5", name, s)
    for seed in range(SEEDS):
        for n in (3, 6):
            s = DiffusionSetting(n, 20.0, selectivity=0.15, seconds=SECONDS, seed=seed, copies=15)
            yield from _make_run_pairs("13", f"n = {n}", s)
    for seed in range(SEEDS):
        for sigma in (0.2, 1.0):
            s = DiffusionSetting(3, 30.0, selectivity=sigma, seconds=SECONDS, seed=seed, copies=15)
            yield from _make_run_pairs("15", f"σ = {sigma:g}", s)


def _make_run_pairs(figure: str, x: str, s: DiffusionSetting) -> Iterator[LongRun]:
    """Yield ATR and CTR with L = J/2 under both interpretations of a probe's cost."""
    for reading in (SCANNED, VISITED):
        for name in ("ATR", "CTR"):
            yield LongRun(figure, x, name, replace(s, costs=READINGS[reading]), reading)


def requested_runs() -> dict[str, Callable[[], Outcome]]:
    """Return all runs of the table, by key.

    Those of ``long_runs`` come first, then those that notebook 02 asks for with ``full``.
    """

    def request(source: OutcomeSource) -> None:
        for one in long_runs():
            source(one.placement, one.setting)
        first_lengths(SECONDS, SEEDS, source=source)
        for experiment in EXPERIMENTS.values():
            experiment.run(SECONDS, SEEDS, experiment.values, source)
        segment_length(SECONDS, SEEDS, source=source)
        for run in (halved_burstiness, shorter_waits):
            run(SECONDS, SEEDS, source=source)

    return CACHE.list_requests(request)


def cached_table() -> pd.DataFrame:
    """Return the cached runs of ``long_runs`` for the present code.

    Columns: figure, x, reading, placement, seed, BESIDE, ``date`` (the day on which each was made).
    """
    rows: list[dict[str, Any]] = []
    for one in long_runs():
        if cached := CACHE.cached_rows.get(run_key(one.placement, one.setting)):
            ctr = one.placement.startswith("CTR")
            label = f"{one.placement}, L = {one.setting.copies}" if ctr else one.placement
            what = {"figure": one.figure, "x": one.x, "reading": one.reading, "placement": label}
            row = what | {"seed": one.setting.seed} | dict(cached.outcome) | {"date": cached.date}
            rows.append(row)
    return pd.DataFrame(
        rows, columns=["figure", "x", "reading", "placement", "seed", *BESIDE, "date"]
    )


def summarize_cached() -> pd.DataFrame:
    """Return the mean, least and greatest throughput of the runs in the table, over seeds.

    Throughput is in results per second, modelled. The mean of what is sent (Mbit/s) and the day of
    the last run are included.
    """
    by = cached_table().groupby(["figure", "x", "reading", "placement"], sort=False)
    summary = by["throughput"].agg(["count", "mean", "min", "max"])
    summary.columns = pd.Index(["seeds", "results per second", "least", "most"])
    return summary.assign(**{"Mbit/s": by["mbits"].mean(), "kept": by["date"].max()}).reset_index()


if __name__ == "__main__":
    run_cache_command(CACHE, requested_runs(), __doc__)
