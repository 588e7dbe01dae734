"""The data frames behind the claims of Gu, Yu and Wang 2007, section 5.

The frames are those of ``figures`` and ``planning_costs``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from braid_lab.diffusion.experiments import ALIGNED_OR_COORDINATED, READINGS, seed_means

PAPER = "Gu 2007"
TWO, ROOT, HALF, ALL = (name for name in ALIGNED_OR_COORDINATED if name != "ATR")
UNOPTIMIZED = "CTR-unoptimized, L = 2"
UNAWARE, CENTRALIZED = "Semantics-unaware", "Centralized"
EVEN = "even: no host has more to do than it can"
NONE = "for no bound L on copies and neither reading of what a probe costs"
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


@dataclass(frozen=True)
class DiffusionFigures:
    """The tidy frames behind the claims.

    - ``lengths``: from ``segment_length``.
    - ``totals``: from ``total_results``, by W in seconds.
    - ``routing``: from ``routing_time``, by W in seconds.
    - ``outcomes``: of the other experiments, by the paper's figure ("11, 12", "13", "14", "15",
      "16"), and "13, Eq. 3" from ``stream_number_per_hop``.
    - ``covers``: from ``greedy_cover_ratios``.
    - ``tuned``: from ``length_tuning``.
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

    @cached_property
    def throughput_by_hosts(self) -> pd.DataFrame:
        """Fig. 11: results per second by J and placement."""
        return seed_means(self.outcomes["11, 12"])

    @cached_property
    def mbits_by_hosts(self) -> pd.DataFrame:
        """Fig. 12: Mbit/s to hosts by J and placement."""
        return seed_means(self.outcomes["11, 12"], "mbits")

    def final_results(self, window: float) -> pd.Series:
        """Return Fig. 7, 8: results at the end, by placement."""
        return self.totals[window].groupby("placement", sort=False)["results"].last()

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
            for label in (TWO, ROOT, HALF, ALL)
            if (label, reading) in ran
        }
