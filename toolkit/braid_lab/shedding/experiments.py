"""The experiments of Gedik 2007, section 6, as tidy frames; all modelled.

Work is counted in pairs. The workload's sets determine the probability that a new tuple matches one
of any age (``SetStreams.match_density``). So the output of a shedding method for a budget of pairs
follows from the part of each window that it processes. ``CAPACITY`` is the number of pairs a second
that a machine can compare; it fits the paper's joins without an index (Fig. 7, first claim, and the
rates of Fig. 9 to 13). For joins with an index the paper's figures differ by a factor of five in
pairs, so nothing is calibrated on those.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from braid.papers.shedding.budget import fill_budget

from braid_lab.common.recorded_settings import record_values, records_arguments
from braid_lab.shedding import paper_algorithms
from braid_lab.workloads import set_streams
from braid_lab.workloads.set_streams import SetStreams

Floats = npt.NDArray[np.float64]
CAPACITY = 200_000.0
PROCESSED, INDEXED = 20.0, 200.0
"""Windows in seconds, of joins without an index and with one."""
CHEAPER, CHEAPEST = 35.0, 105.0
"""How many times as cheap a pair is with an index: as Fig. 7 has it, and as Fig. 15 asks for."""
LOOKUP_PAIRS = 5
"""Pairs that a unit of ``lookup`` costs."""
LOOKUP = 20.0
"""Units that the lookup of the lists of a basic window costs."""
SINGLE: dict[str, Any] = dict(theta=1, size=1.0, deviation=0.0, items=5000)
"""Section 6.1's streams of single values."""
METHODS = ("drop", "partial", "time", "direction", "selective")
"""Random dropping; rate adaptation alone; with time correlation; and with direction.

The last two are Algorithm 4 and Algorithm 5 with one type.
"""


def bell_density(deviation: float, middle: float = 0.5, steps: int = 2000) -> Floats:
    """Return a density of matches by age: a bell over the window.

    ``deviation`` is a fraction of the window.
    """
    age = (np.arange(steps) + 0.5) / steps
    return np.asarray(np.exp(-((age - middle) ** 2) / (2 * deviation**2)))


@records_arguments
def window_reduction(
    shares: Sequence[float] = (0.1, 0.2, 0.3, 0.5),
    deviation: float = 0.15,
    middles: tuple[float, float] = (0.1, 0.8),
) -> pd.DataFrame:
    """Return Fig. 1: the output of the newest ``share`` of a window, and of the best.

    Case I has an early peak, case II a late one.
    """
    bells = [bell_density(deviation, middle) for middle in middles]
    rows = [
        (
            case,
            share,
            paper_algorithms.newest_output_share(f, share),
            paper_algorithms.best_output_share(f, share),
        )
        for case, f in zip(("early", "late"), bells, strict=True)
        for share in shares
    ]
    return pd.DataFrame(rows, columns=["peak", "share", "newest_modelled", "best_modelled"])


@records_arguments
def optimality_table(
    deviations: Sequence[float] = (0.2, 0.05),
    basics: Sequence[float] = (0.02, 0.05, 0.1, 0.2, 0.5),
    shares: Sequence[float] = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0, 1.3),
) -> pd.DataFrame:
    """Return Fig. 5: phi by ``basic`` (b / w) and ``share`` (r'), for bells of each deviation."""
    rows = [
        (
            deviation,
            basic,
            share,
            paper_algorithms.output_optimality(bell_density(deviation), basic, share),
        )
        for deviation in deviations
        for basic in basics
        for share in shares
    ]
    return pd.DataFrame(rows, columns=["deviation", "basic", "share", "optimality_modelled"])


@records_arguments
def density_curves(
    kappas: Sequence[float] = (0.6, 0.8), steps: int = 100, seed: int = 0
) -> pd.DataFrame:
    """Return Fig. 6: f of either window by ``age`` (fraction of the window) and kappa."""
    frames = []
    for kappa in kappas:
        sets = SetStreams(kappa=kappa, seed=seed)
        for window in (0, 1):
            f = sets.match_density(window, steps)
            age = (np.arange(steps) + 0.5) / steps
            frames.append(
                pd.DataFrame({"kappa": kappa, "window": window, "age": age, "f_modelled": f})
            )
    curves = pd.concat(frames, ignore_index=True)
    cycle = sets.cycle_seconds / sets.window
    ran = {"drawn": set_streams.DRAWN, "theta": sets.theta, "shift": sets.shift, "cycle": cycle}
    return record_values(curves, **ran)


@records_arguments
def drop_rates(
    rates: Sequence[float] = (50.0, 100.0, 200.0),
    windows: Sequence[float] = (25.0, 125.0, 625.0),
    cheaper: float = CHEAPER,
) -> pd.DataFrame:
    """Return Fig. 7: the fraction of tuples that is dropped by a full join of the rest.

    Rows are by ``rate`` and ``window`` (s), with an index (a pair costs one ``cheaper``-th of a
    comparison) and without. The budget limits the 2 rate^2 w pairs a second.
    """
    rows = [
        (index, r, w, 1 - retained_share(CAPACITY * factor / (2 * r * r * w)))
        for index, factor in ((False, 1.0), (True, cheaper))
        for r in rates
        for w in windows
    ]
    frame = pd.DataFrame(rows, columns=["index", "rate", "window", "dropped_modelled"])
    return record_values(frame, capacity=CAPACITY)


def retained_share(fits: float) -> float:
    """Return the kept fraction of both streams if a fraction ``fits`` of all pairs is affordable.

    The square of the kept fraction is the remaining fraction of pairs.
    """
    return sqrt(min(1.0, fits))


def adaptation_curves(window: float = 20.0, boost: float = 1.2) -> pd.DataFrame:
    """Return Fig. 8: r by second for rates of 100, 500, 300 and 100 tuples/s.

    Rows are by Algorithm 1 and by the feed-forward rule. ``load`` is the duration of each second's
    work over the allowed one. One stream has a window, as in section 6.3. Algorithm 1 learns from
    the input that was left.
    """
    rates = np.concatenate(
        [np.full(60, 100.0), np.full(15, 500.0), np.full(30, 300.0), np.full(25, 100.0)]
    )
    rows = []
    for rule in ("Algorithm 1", "forward"):
        r = 1.0
        for second, lam in enumerate(rates):
            stored = rates[max(0, second - int(window)) : second].sum()
            if rule == "forward":
                expected_pairs = rates[max(0, second - 1)] * stored
                r = paper_algorithms.affordable_fraction(
                    1.0, 0.0, 1 / CAPACITY, float(expected_pairs)
                )
            load = r * lam * stored / CAPACITY
            rows.append((rule, second, lam, r, load))
            if rule == "Algorithm 1":
                r = paper_algorithms.adapt_fraction(r, min(1.0, 1 / load) if load else 1.0, boost)
    names = ["rule", "second", "rate", "fraction_modelled", "load_modelled"]
    return record_values(pd.DataFrame(rows, columns=names), boost=boost)


def compute_recall(sets: SetStreams, r: float, method: str) -> float:
    """Return the fraction of all results that a method finds with r of all pairs."""
    f = [sets.match_density(window) for window in (0, 1)]
    total = float(f[0].sum() + f[1].sum())
    if method == "drop":
        return r
    flat, volumes = np.concatenate(f), np.ones(2 * len(f[0]))
    if method == "selective":
        shares = fill_budget(flat, volumes, r * len(flat))
        return float(shares @ flat) / total
    part = np.array([r, r])
    if method == "direction":
        part = paper_algorithms.split_directions(
            r, (1.0, 1.0), (float(f[0].mean()), float(f[1].mean()))
        )
    newest, best = paper_algorithms.newest_output_share, paper_algorithms.best_output_share
    used = newest if method == "partial" else best
    return sum(used(g, share) * float(g.sum()) for g, share in zip(f, part, strict=True)) / total


def affordable_fraction(rate_: float, window: float, sides: int) -> float:
    """Return r for an equal rate of both streams if ``sides`` of them have windows."""
    return min(1.0, CAPACITY / (sides * rate_ * rate_ * window))


def recall_table(
    kappas: Sequence[float] = (0.2, 0.4, 0.6, 0.8),
    rates: Sequence[float] = (300.0, 500.0),
    theta: int = 3,
    shift: float = 5 / 8,
    window: float = 20.0,
) -> pd.DataFrame:
    """Return Fig. 9 to 13: the recall of each method, and its gain over random dropping.

    Rows are by kappa and rate.
    """
    rows = []
    for kappa in kappas:
        sets = SetStreams(kappa=kappa, theta=theta, shift=shift, window=window)
        for lam in rates:
            r = affordable_fraction(lam, window, 1)
            for method in METHODS:
                recall = compute_recall(sets, r, method)
                rows.append((kappa, lam, window, r, method, recall, recall / r - 1))
    names = ["kappa", "rate", "window", "fraction", "method", "recall_modelled", "gain_modelled"]
    return pd.DataFrame(rows, columns=names)


def recall_by_window(
    windows: Sequence[float] = (10.0, 20.0, 40.0), kappas: Sequence[float] = (0.6,)
) -> pd.DataFrame:
    """Return Fig. 10: recall by the ``window`` (s), if the newest tuples match."""
    frames = [recall_table(kappas, shift=0.0, window=window) for window in windows]
    return pd.concat(frames, ignore_index=True)


def direction_shares(
    kappa: float = 0.6, shares: Sequence[float] = (0.9, 0.7, 0.5, 0.3, 0.1)
) -> pd.DataFrame:
    """Return Fig. 11: r_1 and r_2 as r falls, by Algorithm 4."""
    sets = SetStreams(kappa=kappa)
    o = (float(sets.match_density(0).mean()), float(sets.match_density(1).mean()))
    rows = [(r, *paper_algorithms.split_directions(r, (1.0, 1.0), o), *o) for r in shares]
    return pd.DataFrame(rows, columns=["fraction", "r1", "r2", "o1_modelled", "o2_modelled"])


@records_arguments
def recall_by_basic_windows(
    parts_: Sequence[int] = (1, 2, 5, 10, 20, 50, 200, 1000),
    kappa: float = 0.8,
    rate_: float = 500.0,
    lookup: float = LOOKUP,
    cheaper: float = CHEAPER,
) -> pd.DataFrame:
    """Return Fig. 14: recall by the number of basic windows, without an index and with one.

    Both windows are probed: of 20 seconds, or of 200 with an index. That is ordered by time or by
    identifier, a pair costs a ``cheaper``-th of a comparison, and each basic window that is used
    costs five times ``lookup`` (in pairs). Lists by identifier cannot stop within a basic window,
    so that a part of it costs as much as all.
    """
    rows, sets = [], SetStreams(kappa=kappa)
    f = [sets.match_density(window, 1000) for window in (0, 1)]
    for n in parts_:
        pieces = [piece.sum() for g in f for piece in np.array_split(g, n)]
        ranked = np.sort(pieces)[::-1] / sum(pieces)
        for index, window in (("none", PROCESSED), ("time", INDEXED), ("identifier", INDEXED)):
            pairs = rate_ * window / n
            budget = CAPACITY * (cheaper if index != "none" else 1.0) / rate_
            cost = pairs + (lookup * LOOKUP_PAIRS if index != "none" else 0.0)
            rows.append((index, n, processed_output(ranked, budget / cost, index != "identifier")))
    frame = pd.DataFrame(rows, columns=["index", "parts", "recall_modelled"])
    cycle, basic = sets.cycle_seconds / sets.window, [INDEXED / n for n in parts_]
    ran = {"theta": sets.theta, "shift": sets.shift, "cycle": cycle, "basic": basic}
    ran |= {"drawn": set_streams.DRAWN, "seed": sets.seed}
    return record_values(frame, rate=rate_, capacity=CAPACITY, window=INDEXED, **ran)


def processed_output(ranked: Floats, fits: float, parted: bool) -> float:
    """Return the output of the best basic windows that fit.

    Of the last one only the fitting part is used if basic windows can be ``parted``, else nothing.
    """
    full_windows = min(len(ranked), int(fits))
    rest = fits - full_windows if full_windows < len(ranked) and parted else 0.0
    return float(
        ranked[:full_windows].sum()
        + (rest * ranked[full_windows] if full_windows < len(ranked) else 0.0)
    )


def gain_over_dropping(
    rates: Sequence[float] = (100.0, 200.0, 300.0, 400.0, 500.0),
) -> pd.DataFrame:
    """Return Fig. 15: the gain of selective processing over random dropping, by rate.

    Rows are with an index and without. Probing a hash index takes as long for any part of the
    window, so an indexed equality has r = 1 or nothing to gain.
    """
    overlap, equal = SetStreams(kappa=0.6), SetStreams(kappa=0.6, **SINGLE)
    rows = []
    for lam in rates:
        for name, sets, factor, window in (
            ("overlap", overlap, 1.0, PROCESSED),
            ("equality", equal, 4.0, PROCESSED),
            ("overlap, indexed", overlap, CHEAPEST, INDEXED),
        ):
            r = min(1.0, factor * CAPACITY / (2 * lam * lam * window))
            rows.append((lam, name, r, compute_recall(sets, r, "selective") / r - 1))
        rows.append((lam, "equality, indexed", 1.0, compute_recall(equal, 1.0, "selective") - 1))
    return pd.DataFrame(rows, columns=["rate", "join", "fraction", "gain_modelled"])


OVERLAP = "overlap, kappa = "
"""Begins the names of overlaps whose items have another skew."""


def equality_gain(r: float = 0.02, kappa: float = 0.6) -> float:
    """Return the gain of the equality in Fig. 15 if its pairs are as dear as the overlap's."""
    return compute_recall(SetStreams(kappa=kappa, **SINGLE), r, "selective") / r - 1


def _compute_utility(
    sets: SetStreams, r: float, values: Floats, frequency: Floats, typed: bool
) -> float:
    """Return the utility of the results found with r of all pairs.

    A result is worth its more valuable member. ``typed``: types are distinguished.
    """
    worth = np.maximum(values[:, None], values[None]) @ frequency
    f = np.concatenate([sets.match_density(window) for window in (0, 1)])
    value = (f[:, None] * worth[None] * frequency[None]).ravel()
    volume = np.broadcast_to(frequency, (len(f), len(values))).ravel()
    by = (f[:, None] * (worth[None] if typed else np.ones((1, len(values))))).ravel()
    return float(fill_budget(by, volume, r * float(volume.sum())) @ value)


def utility_by_skew(
    skews: Sequence[float] = (0.0, 1.0, 2.0, 3.0), r: float = 0.04, kappa: float = 0.6
) -> pd.DataFrame:
    """Return Fig. 16: the gain in utility of three types worth 1, 2^-k, 3^-k, by k.

    Frequencies are equal, inverse to values, or proportional to them.
    """
    sets, rows = SetStreams(kappa=kappa), []
    for k in skews:
        values = np.array([1.0, 2.0**-k, 3.0**-k])
        for name, weights in (("uniform", np.ones(3)), ("inverse", 1 / values), ("direct", values)):
            frequency = weights / weights.sum()
            utilities = (
                _compute_utility(sets, r, values, frequency, typed) for typed in (True, False)
            )
            rows.append((name, k, next(utilities) / next(utilities) - 1))
    return pd.DataFrame(rows, columns=["frequencies", "skew", "gain_modelled"])


def utility_by_types(
    types: Sequence[int] = (2, 3, 5, 10, 20, 40),
    factors: Sequence[float] = (5.0, 10.0),
    r: float = 0.1,
    kappa: float = 0.6,
) -> pd.DataFrame:
    """Return Fig. 17: the gain by the number of types.

    The most valuable is worth ``factor`` times the least; values follow Zipf's law, and frequencies
    are inverse to them.
    """
    sets, rows = SetStreams(kappa=kappa), []
    for factor in factors:
        for n in types:
            values = np.arange(1, n + 1.0) ** -(log(factor) / log(n))
            frequency = (1 / values) / (1 / values).sum()
            utilities = (
                _compute_utility(sets, r, values, frequency, typed) for typed in (True, False)
            )
            rows.append((factor, n, next(utilities) / next(utilities) - 1))
    return pd.DataFrame(rows, columns=["factor", "types", "gain_modelled"])
