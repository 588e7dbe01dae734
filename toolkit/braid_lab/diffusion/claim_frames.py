"""The data frames behind the claims of Gu, Yu and Wang 2007, section 5.

The frames are those of ``figures`` and ``planning_costs``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from braid_lab.common.claims import Finding, Verdict
from braid_lab.common.recorded_settings import RECORDED, concat_runs
from braid_lab.diffusion.experiments import ALIGNED_OR_COORDINATED, READINGS, seed_means

PAPER = "Gu 2007"
TWO, ROOT, HALF, ALL = (name for name in ALIGNED_OR_COORDINATED if name != "ATR")
PRINTED = "CTR, no bound"
BOUNDS = (TWO, ROOT, HALF, PRINTED)
"""CTR of Fig. 11 and 12; CTR-unoptimized has the same bounds."""
UNBOUND = "L; Wang 2008, 15.1, says L = 2"
"""Note on a value that the paper leaves open and the later book names."""
UNAWARE, CENTRALIZED = "Semantics-unaware", "Centralized"
POLICIES, PLAIN = "{policies} (bound L on copies: {bounds})", "{policies}"
JOIN = (
    "J = {hosts} hosts drawn as in section 5, {streams} Poisson streams of {rates} tuples/s, W = "
    "{window} s, σ = {selectivity} for each {selects}"
)
LOADS = (
    "modelled in batches of {batch} s, tuples of {tuple_bytes} bytes, weights of {weights} in Eq. 1"
)
COSTS = (
    f"{LOADS}; at {{mips}} MIPS {{transfer_ms}} ms to receive a tuple and as much to send it, a "
    "probe of {probe:readings}, {patience} s of work may wait before a host sheds"
)
SEGMENTS = "segments of {length} s"
ADAPTED = (
    "ATR tries lengths {step} s apart for {sample} s each and switches the master to save {gain} "
    "by Eq. 2"
)
STARTED = f"{SEGMENTS}, under ATR the first; {ADAPTED}"
AHEAD = "leads in results of up to {margin} do not count"
MARGIN = 0.01
"""Share by which a policy that is ahead has more results; less is even."""
EVEN = "the two are even here, which decides nothing: CTR / ATR"
NONE = "for none of these L and neither reading of what a probe costs"
QUOTES = {
    "13": '"ATR has better performance for 2-way and 3-way join queries while CTR works better for '
    'larger stream numbers"',
    "14": '"ATR works better under small sliding windows while CTR works better under large '
    'sliding windows"',
    "15": '"CTR works better under low join selectivity while ATR becomes better under high join '
    'selectivity"',
    "16": '"CTR can achieve better performance under bursty stream environments"',
}
"""What section 5 says of the figures that compare ATR with CTR, word by word."""


def is_growing(by: pd.Series) -> bool:
    """Return whether values grow with every step of x, and x has a step."""
    return len(by) > 1 and bool((by.diff().iloc[1:] > 0).all())


def is_ahead(by: pd.Series, margin: float = MARGIN) -> bool:
    """Return whether there are ratios, all above one by more than the margin."""
    return len(by) > 0 and bool((by > 1 + margin).all())


def is_behind(by: pd.Series) -> bool:
    """Return whether there are ratios, all below one by more than the margin."""
    return len(by) > 0 and bool((by < 1 - MARGIN).all())


Ratios = Mapping[str, pd.Series]
"""Ratios by x, for each interpretation."""
Shape = Callable[[pd.Series], object]
"""A test of whether a ratio, by x, has the shape of a claim."""


def judge_readings(
    ratios: Ratios, shape: Shape, refusal: str, own_choice: str = "", unnamed: str = ""
) -> Finding:
    """Return the finding on ratios; it names the interpretations under which it holds.

    Each is followed by its ratios. ``refusal`` is the reason if it holds under none. ``own_choice``
    says which choice of this study all of them share: with it, no claim holds unconditionally.
    ``unnamed`` is what the paper does not name, so that there are several.
    """
    held = {name: by for name, by in ratios.items() if shape(by)}
    others = {name: by for name, by in ratios.items() if name not in held}
    is_general = not others and not own_choice
    every = format_ratios(held | others)
    holds: Verdict = "yes" if is_general else "under reading" if held else "no"
    some = f"for {len(held)} of {len(ratios)} readings: {format_ratios(held)}"
    some = f"{some}; not for {format_ratios(others)}" if others else some
    some = "; ".join(filter(None, (some, own_choice, unnamed and f"the paper names no {unnamed}")))
    why = every if is_general else some if held else f"{refusal}: {format_ratios(others)}"
    return Finding(every, holds, why)


def format_ratios(ratios: Ratios) -> str:
    """Return the ratios of each interpretation as text, in the order of x."""
    return "; ".join(f"{name} ({', '.join(map(_format_ratio, by))})" for name, by in ratios.items())


def _format_ratio(ratio: float) -> str:
    return f"{ratio:.3g}" if ratio < 1 else f"{ratio:.4g}"


def name_runs(finding: Finding, *frames: pd.DataFrame, **more: object) -> Finding:
    """Return a finding with the recorded values of the runs that it is of, and ``more``."""
    ran = {"margin": f"{100 * MARGIN:g} %"} | concat_runs(frames).attrs[RECORDED]
    return replace(finding, ran=ran | more)


@dataclass(frozen=True)
class DiffusionFigures:
    """The tidy frames behind the claims.

    - ``lengths``: from ``segment_length``.
    - ``totals``: from ``total_results``, by W in seconds.
    - ``routing``: from ``routing_time``, by W in seconds.
    - ``outcomes``: of the other experiments, by the paper's figure ("11, 12", "13", "14", "15",
      "16"), "16, r_i" from ``halved_burstiness``, and "14, wait" from ``shorter_waits``.
    - ``covers``: from ``greedy_cover_ratios``.
    - ``tuned``: from ``first_lengths``.
    """

    lengths: pd.DataFrame
    totals: Mapping[float, pd.DataFrame]
    routing: Mapping[float, pd.DataFrame]
    outcomes: Mapping[str, pd.DataFrame]
    covers: pd.DataFrame
    tuned: pd.DataFrame

    def throughput_by_length(self, streams: int) -> pd.Series:
        """Return Fig. 4: mean throughput by T."""
        rows = self.lengths[self.lengths["streams"] == streams]
        return rows.groupby("x")["throughput"].mean()

    def ratios_by_first_length(self, of: str) -> dict[str, pd.Series]:
        """Return Fig. 11, 12: ATR over ATR-unoptimized by J, for each T0."""
        tables = {t: seed_means(rows, of) for t, rows in self.tuned.groupby("start")}
        return {f"T0 = {t:g} s": by["ATR"] / by["ATR-unoptimized"] for t, by in tables.items()}

    def gains_by_hosts(self) -> dict[str, pd.Series]:
        """Return Fig. 11: what optimizations gain by J, in results per second and as a share."""
        by_start = {t: seed_means(rows) for t, rows in self.tuned.groupby("start")}
        pairs = {
            f"ATR, T0 = {t:g} s": (by["ATR"], by["ATR-unoptimized"]) for t, by in by_start.items()
        }
        by = self.throughput_by_hosts
        pairs |= {name: (by[name], by[_name_unoptimized(name)]) for name in BOUNDS}
        gains = {f"{name}, in results/s": a - b for name, (a, b) in pairs.items()}
        return gains | {f"{name}, as a share": a / b - 1 for name, (a, b) in pairs.items()}

    def scaling_ratio(self, name: str) -> pd.Series:
        """Return Fig. 11: growth from each J to the next, over that of existing schemes."""
        grown = (self.throughput_by_hosts / self.throughput_by_hosts.shift(1)).iloc[1:]
        return grown[name] / grown[[UNAWARE, CENTRALIZED]].max(axis=1)

    def ratios_by_bound(self, by: pd.DataFrame) -> dict[str, pd.Series]:
        """Return CTR over CTR-unoptimized by J, for each bound L, of the columns of a table."""
        return {
            name.removeprefix("CTR, "): by[name] / by[_name_unoptimized(name)] for name in BOUNDS
        }

    @cached_property
    def throughput_by_hosts(self) -> pd.DataFrame:
        """Fig. 11: results per second by J and placement."""
        return seed_means(self.outcomes["11, 12"])

    @cached_property
    def mbits_by_hosts(self) -> pd.DataFrame:
        """Fig. 12: Mbit/s to hosts by J and placement."""
        return seed_means(self.outcomes["11, 12"], "mbits")

    def final_results(self, window: float) -> pd.DataFrame:
        """Return Fig. 7, 8: results at the end, by rates and seed, and by placement."""
        keys = ["rates", "seed", "placement"]
        return self.totals[window].groupby(keys, sort=False)["results"].last().unstack()

    def throughput_ratio(
        self, number: str, a: str, b: str, reading: str | None = None
    ) -> pd.Series:
        """Return the throughput of one placement over that of another, by x.

        ``reading`` selects one interpretation of the cost of a probe, if there are several.
        """
        outcomes = self.outcomes[number]
        table = seed_means(
            outcomes if reading is None else outcomes[outcomes["reading"] == reading]
        )
        return (table[a] / table[b]).replace([np.inf, -np.inf], np.nan).dropna()

    def ratios_by_interpretation(self, number: str) -> dict[str, pd.Series]:
        """Return CTR over ATR by x, for each tried bound L and interpretation of a probe's cost."""
        rows = self.outcomes[number]
        ran = set(rows[["placement", "reading"]].itertuples(index=False, name=None))
        return {
            f"{label.removeprefix('CTR, ')}, {reading}": self.throughput_ratio(
                number, label, "ATR", reading
            )
            for reading in READINGS
            for label in (TWO, ROOT, HALF, ALL, PRINTED)
            if (label, reading) in ran
        }


def _name_unoptimized(name: str) -> str:
    return name.replace("CTR", "CTR-unoptimized")
