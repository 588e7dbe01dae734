"""Long runs of Gu 2007, section 5: a thousand seconds and five seeds, as in the paper.

``python -m braid_lab.diffusion.long_runs --minutes 4`` adds missing runs to the cached table, one
after the other, and stops after the minutes. The runs of the claims come first, then all
that notebook 02 asks for with ``full``. Everything in the table is modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import pandas as pd

from braid_lab.common.claims import (
    Case,
    ClaimRegistry,
    Finding,
    Verdict,
    format_values,
    judge,
)
from braid_lab.common.result_cache import (
    Outcome,
    ResultCache,
    fingerprint_outcomes,
    run_cache_command,
)
from braid_lab.diffusion.claim_frames import PAPER, QUOTES
from braid_lab.diffusion.experiments import (
    PLACEMENTS,
    READINGS,
    SCANNED,
    VISITED,
    DiffusionSetting,
    OutcomeSource,
    run_and_summarize,
)
from braid_lab.diffusion.figures import EXPERIMENTS, length_tuning, segment_length

SETTINGS = {
    "Fig. 11": "ATR and ATR-unoptimized; four streams of 5 to 20 tuples/s, W = 30 s, 20 hosts, T0 "
    "= 5 s; 1000 s, five seeds",
    "Fig. 12": "ATR and ATR-unoptimized; four streams of 5 to 20 tuples/s, W = 30 s, 20 hosts, T0 "
    "= 5 s; 1000 s, five seeds",
    "Fig. 13": "ATR and CTR (L = J/2); 30 hosts, W = 20 s, σ = 0.15, a probe of 10 ms for each "
    "host visited, and for tuples scanned; 1000 s, five seeds",
    "Fig. 15": "ATR and CTR (L = J/2); 30 hosts, three streams, W = 30 s, a probe of 10 ms for "
    "each host visited, and for tuples scanned; 1000 s, five seeds",
}
CLAIMS = ClaimRegistry(PAPER, SETTINGS)
SECONDS, SEEDS = 1000, 5
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
    """One run of the claims.

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
        length_tuning(SEEDS, source=source)
        for experiment in EXPERIMENTS.values():
            experiment.run(SECONDS, SEEDS, experiment.values, source)
        segment_length(SECONDS, SEEDS, source=source)

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


def _compute_placement_ratio(
    rows: pd.DataFrame, value: str, a: str, b: str, by: list[str]
) -> pd.Series:
    """Return one placement over another, by some columns: the mean of the seeds that both have."""
    keys = [*by, *(["seed"] if "seed" not in by else [])]
    seeds = rows.pivot_table(value, keys, "placement", sort=False)
    table = seeds[[a, b]].dropna().groupby(level=by, sort=False).mean()
    return table[a] / table[b]


def _list_rows(figure: str) -> Callable[[pd.DataFrame], list[Case]]:
    """Return a function of the cached table that returns the rows of a figure, if there are any."""

    def select_rows(cached: pd.DataFrame) -> list[Case]:
        rows = cached[cached["figure"] == figure]
        return [{"rows": rows}] if len(rows) else []

    return select_rows


def _list_compared_rows(figure: str) -> Callable[[pd.DataFrame], list[Case]]:
    """Return the same, if there are runs of CTR and of two values of x."""

    def select_rows(cached: pd.DataFrame) -> list[Case]:
        rows = cached[cached["figure"] == figure]
        if rows.empty or rows["x"].nunique() < 2:
            return []
        return [{"rows": rows, "ctr": n} for n in rows["placement"].unique() if n.startswith("CTR")]

    return select_rows


def _require_if_held(finding: Finding) -> Finding:
    """Return the finding. It is required if it held when the runs were cached."""
    return replace(finding, is_required=finding.holds != "no")


@CLAIMS.claim(
    "Fig. 11",
    f"from T0 = 5 s ATR is above ATR-unoptimized, by seed ({SECONDS} s, kept)",
    cases=_list_rows("11, 12"),
)
def search_gains_claim(rows: pd.DataFrame) -> Finding:
    """Fig. 11: the search for a length finds more results."""
    more = _compute_placement_ratio(rows, "throughput", "ATR", "ATR-unoptimized", ["seed"])
    return _require_if_held(judge(format_values(more), more.min() > 1.01))


@CLAIMS.claim(
    "Fig. 12",
    f"from T0 = 5 s ATR sends less than ATR-unoptimized, by seed ({SECONDS} s, kept)",
    cases=_list_rows("11, 12"),
)
def search_sends_claim(rows: pd.DataFrame) -> Finding:
    """Fig. 12: the search for a length sends less."""
    sent = _compute_placement_ratio(rows, "mbits", "ATR", "ATR-unoptimized", ["seed"])
    why = (
        '"much lower bandwidth cost than their unoptimized versions" (section 5): the search '
        "shortens the segments, which spreads the work and sends more; less is sent only where the "
        "best length is above T0"
    )
    return _require_if_held(judge(format_values(sent), sent.max() < 0.99, failure=why))


def _judge_ends(rows: pd.DataFrame, ctr: str, first: int, figure: str) -> Finding:
    """Return the finding on CTR over ATR at both ends of a figure.

    ``first`` is -1 if CTR is behind first, or 1.
    """
    ratio = _compute_placement_ratio(rows, "throughput", ctr, "ATR", ["reading", "x"])
    held = []
    for reading in ratio.index.unique("reading"):
        a, b = (ratio[reading].iloc[0] - 1) * first, (ratio[reading].iloc[-1] - 1) * first
        held += [str(reading)] if a > 0.01 and b < -0.01 else []
    result = "; ".join(f"{reading}, {x}: {value:.3g}" for (reading, x), value in ratio.items())
    both = ratio.index.unique("reading")
    holds: Verdict = "no" if not held else "yes" if len(held) == len(both) else "under reading"
    why = "; ".join(held) or f"{QUOTES[figure]} (section 5): neither reading has both ends"
    why = "" if holds == "yes" else why
    return _require_if_held(Finding(result, holds, why))


@CLAIMS.claim(
    "Fig. 13",
    f"ATR ahead for 3 streams, CTR for 6: CTR, L = J/2 / ATR ({SECONDS} s, kept)",
    cases=_list_compared_rows("13"),
)
def stream_number_claim(rows: pd.DataFrame, ctr: str) -> Finding:
    """Fig. 13: ATR is ahead for few streams, CTR for many."""
    return _judge_ends(rows, ctr, -1, "13")


@CLAIMS.claim(
    "Fig. 15",
    f"CTR ahead at σ = 0.2, ATR at 1: CTR, L = J/2 / ATR ({SECONDS} s, kept)",
    cases=_list_compared_rows("15"),
)
def selectivity_claim(rows: pd.DataFrame, ctr: str) -> Finding:
    """Fig. 15: CTR is ahead at low selectivity, ATR at high."""
    return _judge_ends(rows, ctr, 1, "15")


if __name__ == "__main__":
    run_cache_command(CACHE, requested_runs(), __doc__)
