"""Frames of a comparison of schemes, by which ``contest_claims`` are judged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from braid_lab.psp.experiments import HOPS
from braid_lab.psp.scheme_comparison import add_response_times


@dataclass(frozen=True)
class Contest:
    """A comparison of schemes, with each seed.

    Frames have rows by streams, sigma, join, seed and nodes, and a column for each scheme.
    """

    runs: pd.DataFrame

    def _pivot_by_scheme(self, runs: pd.DataFrame, value: str, *by: str) -> pd.DataFrame:
        keys = [*by, "streams", "sigma", "join", "seed", "nodes"]
        return runs.pivot(index=keys, columns="scheme", values=f"{value}_modelled")

    @cached_property
    def live_tuples(self) -> pd.DataFrame:
        """Live tuples, with their copies."""
        return self._pivot_by_scheme(self.runs, "stored")

    @cached_property
    def busiest_seconds(self) -> pd.DataFrame:
        """Seconds of the busiest node for one tuple."""
        return self._pivot_by_scheme(self.runs, "busy")

    @cached_property
    def response_seconds(self) -> pd.DataFrame:
        """Seconds of response, at each of HOPS."""
        return self._pivot_by_scheme(add_response_times(self.runs, HOPS), "response", "hop")

    @cached_property
    def hop_counts(self) -> pd.DataFrame:
        """Hops of a tuple, of any join."""
        return self._pivot_by_scheme(self.runs, "hops").xs("small", level="join")

    @property
    def least_streams(self) -> int:
        """The least number of streams."""
        return int(self.runs["streams"].min())

    @property
    def min_nodes(self) -> int:
        """The least number of nodes."""
        return int(self.runs["nodes"].min())

    @property
    def max_nodes(self) -> int:
        """The largest number of nodes."""
        return int(self.runs["nodes"].max())

    def measure_state_range(self, *schemes: str) -> float:
        """Return the largest ratio of a scheme's most state to its least, with the same streams."""
        by = self.live_tuples[list(schemes)].groupby("streams")
        return float((by.max() / by.min()).max(axis=None))
