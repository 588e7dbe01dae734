"""The experiments of Gu 2007, section 5: Fig. 4, 7, 8 and 11 to 16, modelled.

Each returns one row for each x, placement and seed: ``figure`` (of the paper), ``x``,
``placement``, ``seed``, and the outcomes of ``experiments.summarize``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from braid.core.cluster_model import CostParameters
from braid.core.run_events import BatchCommitted

from braid_lab.common.recorded_settings import concat_runs
from braid_lab.diffusion.experiments import (
    ALIGNED_OR_COORDINATED,
    READINGS,
    RIVALS,
    VISITED,
    VISITING,
    Competitor,
    DiffusionSetting,
    OutcomeSource,
    format_rates,
    make_placement,
    record_settings,
    run_and_summarize,
    run_sweep,
    seed_means,
    simulate_setting,
)


def segment_length(
    seconds: int,
    seeds: int,
    lengths: Sequence[float] = (0.25, 0.5, 1, 2, 4, 9),
    patience: float = 10.0,
    source: OutcomeSource = run_and_summarize,
) -> pd.DataFrame:
    """Return Fig. 4: throughput of ATR by T, for two operators.

    x is T in seconds, of a whole number or one over it; ``streams`` distinguishes the operators.
    The paper does not name its two. A two-way join of fast streams spends its time on copies, a
    three-way join on results. How much work may wait (``patience``) is not in the paper either.
    """
    operators = (
        DiffusionSetting(2, 10.0, (100.0, 200.0), seconds=seconds, patience=patience),
        DiffusionSetting(3, 10.0, (20.0, 40.0), seconds=seconds, patience=patience),
    )
    fixed = {"ATR, T fixed": Competitor("ATR-unoptimized")}
    runs = [
        run_sweep("4", {t: _set_length(s, t) for t in lengths}, fixed, seeds, source).assign(
            streams=s.streams, rates=format_rates(s)
        )
        for s in operators
    ]
    rows = pd.concat(runs, ignore_index=True)
    rows = rows.assign(throughput=rows["throughput"] * rows["x"].map(_count_parts))
    batches = [1 / _count_parts(t) for t in lengths]
    ran = dict(length=lengths, batch=batches, seed=range(seeds))
    return record_settings(rows, operators, fixed, **ran)


def _count_parts(length: float) -> int:
    """Return into how many micro-batches a second is cut, so that a segment has whole ones."""
    return max(1, round(1 / length))


def _set_length(s: DiffusionSetting, length: float) -> DiffusionSetting:
    """Return the setting with segments of ``length`` seconds.

    A length below a second becomes the unit of time: of rates, windows, costs and the run.
    """
    parts = _count_parts(length)
    costs = CostParameters(*(parts * cost for cost in astuple(s.costs)))
    return replace(
        s,
        length=round(length * parts),
        window=s.window * parts,
        rates=(s.rates[0] / parts, s.rates[1] / parts),
        seconds=s.seconds * parts,
        patience=s.patience * parts,
        costs=costs if parts > 1 else s.costs,
    )


SCALED = DiffusionSetting(4, 30.0)
"""The join of Fig. 11 and 12."""
HOSTS = (10, 20, 40, 80)


def first_lengths(
    seconds: int,
    seeds: int,
    hosts: Sequence[int] = HOSTS,
    starts: Sequence[int] = (1, 5),
    setting: DiffusionSetting = SCALED,
    source: OutcomeSource = run_and_summarize,
) -> pd.DataFrame:
    """Return Fig. 11 and 12 for ATR and ATR-unoptimized from the same first length.

    x is J, ``start`` is T0 in seconds; the paper names none.
    """
    rivals = {name: RIVALS[name] for name in ("ATR", "ATR-unoptimized")}
    runs = []
    for t in starts:
        settings = {j: replace(setting, hosts=j, length=t, seconds=seconds) for j in hosts}
        runs.append(run_sweep("11, 12", settings, rivals, seeds, source).assign(start=t))
    return concat_runs(runs)


WATCHED_RATES = ((2.0, 8.0), (1.0, 4.0), (4.0, 16.0))
"""In place of the paper's videos, whose rates it does not state; the first are those drawn."""


def total_results(
    window: float,
    seconds: int,
    seeds: int = 1,
    every_rates: Sequence[tuple[float, float]] = WATCHED_RATES[:1],
) -> pd.DataFrame:
    """Return Fig. 7 (W = 60) and 8 (W = 120): results since the start, by second.

    There are three streams on six hosts. The paper's news videos are not available; streams of
    ``every_rates``, selectivity 0.1, replace them. Columns: second, placement, results, rates,
    seed.
    """
    baselines = {name: RIVALS[name] for name in ("Semantics-unaware", "Centralized")}
    rivals = {**VISITING, **baselines}
    del rivals["CTR, L = √J"]  # the same as J/2 for six hosts
    base = DiffusionSetting(3, window, hosts=6, seconds=seconds)
    drawn = product(every_rates, range(seeds))
    settings, rows = [replace(base, rates=rates, seed=seed) for rates, seed in drawn], []
    for s, (label, rival) in product(settings, rivals.items()):
        total, chosen = 0, replace(s, copies=rival.max_copies(s.hosts))
        for e in simulate_setting(make_placement(rival.placement, chosen), chosen):
            if isinstance(e, BatchCommitted):
                total += e.results
                rows.append((e.batch, label, total, format_rates(s), s.seed))
    frame = pd.DataFrame(rows, columns=["second", "placement", "results", "rates", "seed"])
    return record_settings(frame, settings, rivals)


def host_scalability(
    seconds: int,
    seeds: int,
    hosts: Sequence[int] = HOSTS,
    source: OutcomeSource = run_and_summarize,
) -> pd.DataFrame:
    """Return Fig. 11 (throughput) and 12 (Mbit/s) by J.

    Four streams, W = 30, rates from 5 to 20, sigma = 0.1.
    """
    settings = {j: replace(SCALED, hosts=j, seconds=seconds) for j in hosts}
    return run_sweep("11, 12", settings, RIVALS, seeds, source)


def compare_interpretations(
    figure: str,
    settings: Mapping[Any, DiffusionSetting],
    seeds: int,
    source: OutcomeSource = run_and_summarize,
) -> pd.DataFrame:
    """Return the outcomes of ATR and CTR under both interpretations of a probe's cost.

    CTR without a bound is among them under one. The column ``reading`` has the interpretation.
    """
    runs = []
    for reading, costs in READINGS.items():
        priced = {x: replace(s, costs=costs) for x, s in settings.items()}
        rivals = VISITING if reading == VISITED else ALIGNED_OR_COORDINATED
        runs.append(run_sweep(figure, priced, rivals, seeds, source).assign(reading=reading))
    return concat_runs(runs)


def stream_number(
    seconds: int,
    seeds: int,
    streams: Sequence[int] = (2, 3, 4, 5, 6),
    source: OutcomeSource = run_and_summarize,
) -> pd.DataFrame:
    """Return Fig. 13: W = 20 on 30 hosts; x is the number of streams.

    The paper names no sigma here. With the 0.1 of its Fig. 11, six streams have less than one
    result in ten seconds (15 pairs have to match); with 0.15 they have a few in a second.
    """
    runs = {n: DiffusionSetting(n, 20.0, selectivity=0.15, seconds=seconds) for n in streams}
    return compare_interpretations("13", runs, seeds, source)


def window_size(
    seconds: int,
    seeds: int,
    windows: Sequence[int] = (10, 20, 30, 40, 50),
    source: OutcomeSource = run_and_summarize,
) -> pd.DataFrame:
    """Return Fig. 14: three streams on 30 hosts; x is W in seconds."""
    return compare_interpretations(
        "14", {w: DiffusionSetting(3, float(w), seconds=seconds) for w in windows}, seeds, source
    )


def shorter_waits(
    seconds: int,
    seeds: int,
    waits: Sequence[float] = (0.0, 2.0, 10.0),
    source: OutcomeSource = run_and_summarize,
) -> pd.DataFrame:
    """Return Fig. 14 at W = 50 by the seconds of work that may wait at a host, which are ours."""
    s = DiffusionSetting(3, 50.0, seconds=seconds)
    by = {p: replace(s, patience=p) for p in waits}
    return run_sweep("14, wait", by, VISITING, seeds, source)


def join_selectivity(
    seconds: int,
    seeds: int,
    sigmas: Sequence[float] = (0.2, 0.4, 0.6, 1.0),
    source: OutcomeSource = run_and_summarize,
) -> pd.DataFrame:
    """Return Fig. 15: three streams, W = 30, on 30 hosts; x is sigma, in the paper's range."""
    runs = {v: DiffusionSetting(3, 30.0, selectivity=v, seconds=seconds) for v in sigmas}
    return compare_interpretations("15", runs, seeds, source)


def arrival_burstiness(
    seconds: int,
    seeds: int,
    thetas: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0),
    source: OutcomeSource = run_and_summarize,
) -> pd.DataFrame:
    """Return Fig. 16: three streams, W = 30, on 30 hosts; x is the bursty ratio theta.

    Mean rates are those of the other figures.
    """
    rates = (10.0, 40.0)  # in bursts the mean is half of these
    runs = {t: DiffusionSetting(3, 30.0, rates, burst=t, seconds=seconds) for t in thetas}
    return compare_interpretations("16", runs, seeds, source)


def halved_burstiness(
    seconds: int,
    seeds: int,
    thetas: Sequence[float] = (1.0,),
    source: OutcomeSource = run_and_summarize,
) -> pd.DataFrame:
    """Return Fig. 16 with r_i from 5 to 20, as printed, so that the mean is half of r_i."""
    runs = {t: DiffusionSetting(3, 30.0, burst=t, seconds=seconds) for t in thetas}
    return compare_interpretations("16, r_i", runs, seeds, source)


@dataclass(frozen=True)
class FigureExperiment:
    """One of the experiments of Fig. 11 to 16.

    - ``run``: the function that runs it (seconds, seeds, values of x, source of outcomes).
    - ``x``: the name of x; ``values``: its values.
    - ``other_columns``: the outcome that is shown beside throughput.
    """

    run: Callable[[int, int, Sequence[Any], OutcomeSource], pd.DataFrame]
    x: str
    values: tuple[float, ...]
    other_columns: str = "work"
    log: bool = False

    def sample_values(self, points: int) -> list[float]:
        """Return ``points`` values of x, including the first and the last."""
        at = np.linspace(0, len(self.values) - 1, min(points, len(self.values)))
        return [self.values[k] for k in at.round().astype(int)]


EXPERIMENTS = {
    "11, 12": FigureExperiment(host_scalability, "hosts J", HOSTS, "mbits", True),
    "13": FigureExperiment(stream_number, "streams n", (2, 3, 4, 5, 6), log=True),
    "14": FigureExperiment(window_size, "W (s)", (10, 20, 30, 40, 50)),
    "15": FigureExperiment(join_selectivity, "selectivity σ", (0.2, 0.4, 0.6, 1.0), log=True),
    "16": FigureExperiment(arrival_burstiness, "bursty ratio θ", (0.0, 0.25, 0.5, 0.75, 1.0)),
}
"""The experiments by the paper's figure."""

UNITS = {"mbits": "Mbit/s to hosts", "work": "CPU seconds per second"}
"""Titles, with units, of the outcomes that are shown beside throughput."""


def figure_curves(outcomes: pd.DataFrame, experiment: FigureExperiment) -> dict[str, pd.DataFrame]:
    """Return the curves of an experiment's figure, by name with unit: means by x and placement.

    On a logarithmic axis zeros are left out.
    """
    if "reading" in outcomes:
        return {
            f"results per second, a probe {reading}": _hide_zeros_on_log_axis(
                seed_means(rows), experiment
            )
            for reading, rows in outcomes.groupby("reading", sort=False)
        }
    return {
        "results per second": _hide_zeros_on_log_axis(seed_means(outcomes), experiment),
        UNITS[experiment.other_columns]: seed_means(outcomes, experiment.other_columns),
    }


def _hide_zeros_on_log_axis(through: pd.DataFrame, experiment: FigureExperiment) -> pd.DataFrame:
    return through.replace(0, np.nan) if experiment.log else through
