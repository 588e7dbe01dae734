"""Streams of sets whose most popular items change with time.

So the probability that two tuples match depends on their difference in age. Source: Gedik 2007,
section 6.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from braid_lab.workloads.base import BATCH, Workload
from braid_lab.workloads.poisson_arrivals import EPOCH, Arrivals
from braid_lab.workloads.zipf_skew import zipf_probabilities

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Floats = npt.NDArray[np.float64]
DRAWN = 800
"""Number of sets of each kind from which a density is estimated."""
_ROWS = 1000
"""Number of sets that are drawn at a time."""


def draw_items(
    draw: np.random.Generator, popularity: Floats, sizes: npt.NDArray[np.int64]
) -> list[npt.NDArray[np.int64]]:
    """Return sets of distinct ranks, of these sizes, each rank as likely as its popularity.

    Gumbel's trick: the greatest of log p + noise are a sample without replacement.
    """
    chances, ranks = np.log(popularity), []
    for first in range(0, len(sizes), _ROWS):
        some = sizes[first : first + _ROWS]
        scores = chances + draw.gumbel(size=(len(some), len(popularity)))
        if (some == 1).all():
            ranks += list(np.argmax(scores, axis=1)[:, None])
        else:
            ranks += [row[:n] for row, n in zip(np.argsort(-scores, axis=1), some, strict=True)]
    return ranks


def draw_sizes(
    draw: np.random.Generator, size: float, deviation: float, most: int, rows: int
) -> npt.NDArray[np.int64]:
    """Return the number of items of each set: normal, at least 1 and at most ``most``."""
    return np.clip(np.rint(draw.normal(size, deviation, rows)), 1, most).astype(np.int64)


@lru_cache(maxsize=64)
def overlap_probabilities(
    items: int, size: float, deviation: float, kappa: float, theta: int, seed: int
) -> Floats:
    """Return the probability that two sets share ``theta`` items, by the shift of their ranks.

    It is estimated from random sets, so modelled. For sets of one item it is known exactly: the
    probability that two ranks are that far apart.
    """
    if size == theta == 1 and not deviation:
        spectrum = np.fft.rfft(zipf_probabilities(items, kappa))
        return np.asarray(np.fft.irfft(np.abs(spectrum) ** 2, items), float)
    draw = np.random.default_rng([seed, 9])
    probabilities = []
    for _ in range(2):
        matrix = np.zeros((DRAWN, items), np.float32)
        sizes = draw_sizes(draw, size, deviation, items, DRAWN)
        for row, ranks in enumerate(draw_items(draw, zipf_probabilities(items, kappa), sizes)):
            matrix[row, ranks] = 1
        probabilities.append(matrix)
    x, y = probabilities
    both = [np.count_nonzero(x @ np.roll(y, d, axis=1).T >= theta - 0.5) for d in range(items)]
    return np.array(both, float) / DRAWN**2


@dataclass(frozen=True)
class SetStreams:
    """Two streams, n and m, of sets of items 1 to ``items``, the same for the same settings.

    Parameters
    ----------
    rates, seconds, step, changes, seed
        As for Arrivals.
    window
        w of both streams, in seconds.
    kappa
        The Zipf parameter of items' popularity.
    theta
        Number of items that two sets must share.
    items
        L, the number of items.
    size, deviation
        mu and sigma of a set's size; at least one item.
    cycle
        Seconds in which the most popular item goes through all. Default: two windows.
    shift
        tau, as a fraction of the cycle: stream m has the popularity that n had this long before.
        The paper's formula then puts the peak in the window of m, its figures in that of n.
    dear
        Fraction of tuples that are worth ten times as much as the others.
    """

    rates: tuple[float, float] = (100.0, 100.0)
    seconds: float = 40.0
    step: float = 1.0
    window: float = 20.0
    kappa: float = 0.6
    theta: int = 3
    items: int = 100
    size: float = 5.0
    deviation: float = 1.0
    cycle: float | None = None
    shift: float = 5 / 8
    dear: float = 0.1
    changes: tuple[tuple[float, tuple[float, float]], ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if self.items < 1 or self.theta < 1 or not self.size > 0 or not 0 <= self.dear <= 1:
            raise ValueError(
                f"items is {self.items}, theta {self.theta}, size {self.size}, dear {self.dear}; "
                "the first three must be above 0, and dear from 0 to 1"
            )

    @property
    def condition(self) -> str:
        """The join condition."""
        return f"size(array_intersect(n.items, m.items)) >= {self.theta}"

    @property
    def make_arrivals(self) -> Arrivals:
        """The arrivals of the tuples."""
        windows = (self.window, self.window)
        return Arrivals(
            self.rates, self.seconds, self.step, windows, changes=self.changes, seed=self.seed
        )

    @property
    def every_rate(self) -> tuple[float, ...]:
        """The rates at the start and after each change."""
        return (*self.rates, *(rate for _, rates in self.changes for rate in rates))

    @property
    def cycle_seconds(self) -> float:
        """The cycle, in seconds."""
        return self.cycle or 2 * self.window

    def match_density(self, window: int, steps: int = 400) -> Floats:
        """Return f_i of window 0 (of n) or 1 (of m), modelled.

        It is the probability that a new tuple of the other stream matches a tuple of each age, at
        the middle of equal steps from the newest to the oldest.
        """
        age = (np.arange(steps) + 0.5) / steps * self.window
        shift = self.shift * self.cycle_seconds
        behind = age + shift if window == 1 else age - shift
        overlaps = overlap_probabilities(
            self.items, self.size, self.deviation, self.kappa, self.theta, self.seed
        )
        at = np.rint(self.items * behind / self.cycle_seconds).astype(int) % self.items
        return np.asarray(overlaps[at], np.float64)

    def make_tables(self) -> dict[str, pa.Table]:
        """Return the tuples by alias: ``id``, ``ts``, ``batch``, ``items`` and ``worth``."""
        return {alias: self._make_table(s) for s, alias in enumerate("nm")}

    def _make_table(self, stream: int) -> pa.Table:
        times = self.make_arrivals.arrival_times(stream)
        draw = np.random.default_rng([self.seed, 8, stream])
        sizes = draw_sizes(draw, self.size, self.deviation, self.items, len(times))
        ranks = draw_items(draw, zipf_probabilities(self.items, self.kappa), sizes)
        at = times / 1e6 - (self.shift * self.cycle_seconds if stream == 1 else 0.0)
        first = np.floor(self.items * (at % self.cycle_seconds) / self.cycle_seconds).astype(
            np.int64
        )
        sets = [((row + a) % self.items + 1).tolist() for row, a in zip(ranks, first, strict=True)]
        ends = np.rint(np.arange(1, self.make_arrivals.micro_batch_count) * self.step * 1e6)
        return pa.table(
            {
                "id": pa.array(np.arange(len(times)), pa.int64()),
                "ts": pa.array(times + EPOCH, pa.timestamp("us", tz="UTC")),
                BATCH: pa.array(np.searchsorted(ends, times, "right"), pa.int32()),
                "items": pa.array(sets, pa.list_(pa.int32())),
                "worth": pa.array(np.where(draw.random(len(times)) < self.dear, 10.0, 1.0)),
            }
        )

    def make_workload(self, spark: SparkSession) -> Workload:
        """Return the same tuples as static DataFrames, numbered by micro-batch."""
        frames = {a: spark.createDataFrame(table) for a, table in self.make_tables().items()}
        spans = dict.fromkeys(frames, f"{self.window} seconds")
        return Workload("Sets", frames, self.condition, "ts", spans)


def burst_rates(
    low: float = 100.0, high: float = 500.0, middle: float = 300.0
) -> dict[str, object]:
    """Return the rates of Gedik 2007, Fig. 8: 60 s low, 15 s high, 30 s middle, then low."""
    rates = ((60.0, (high, high)), (75.0, (middle, middle)), (105.0, (low, low)))
    return {"rates": (low, low), "seconds": 130.0, "changes": rates}
