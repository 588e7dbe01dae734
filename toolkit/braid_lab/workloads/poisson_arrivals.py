"""Poisson arrivals, steady, in bursts or with changing rates, and a condition of exact selectivity.

One description gives the numbers of tuples per batch, for ``braid.simulation.simulator``, and the
tuples themselves, for the engine. So a modelled and an executed run can be compared count by count.

Source: Gu, Yu and Wang, ICDE 2007, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from braid_lab.workloads.base import BATCH, Workload

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MODULUS = 1_000_000
"""Selectivities are multiples of one over this."""
EPOCH = 1_704_067_200_000_000
"""Event time of the start: 1 January 2024, 0:00 UTC, in microseconds."""


def draw_rates(
    streams: int, seed: int = 0, low: float = 5.0, high: float = 20.0
) -> tuple[float, ...]:
    """Return mean rates r_i in tuples per second, uniform in [low, high]; the defaults are Gu's."""
    return tuple(np.random.default_rng([seed, 1]).uniform(low, high, streams).tolist())


@dataclass(frozen=True)
class Arrivals:
    """Streams r, s, t, ... of tuples, the same for the same settings.

    Parameters
    ----------
    rates
        r_i of every stream, in tuples per second.
    seconds
        Duration of the arrivals, in event time.
    step
        Seconds of event time in a micro-batch.
    windows
        W_i of every stream in seconds; None: full history. Default: full history.
    sigma
        Selectivity of every pair of streams, from 0 to 1.
    theta
        The bursty ratio: the rate is (1 + theta)/2 r_i in the HIGH half of each period and (1 -
        theta)/2 r_i in its LOW half, so that the mean is r_i / 2 for any theta. None: no bursts,
        and a rate of r_i.
    period
        Seconds of a HIGH and a LOW phase together. The paper names no period; 20 is below its
        windows of 30 seconds, so that a window sees both. Streams begin at random points of their
        periods, so their bursts do not coincide.
    changes
        (second, rates) pairs: the rates from that second on.
    seed
        Seed of everything random.

    Raises ValueError for settings out of range.
    """

    rates: tuple[float, ...]
    seconds: float = 60.0
    step: float = 1.0
    windows: tuple[float | None, ...] = ()
    sigma: float = 0.1
    theta: float | None = None
    period: float = 20.0
    changes: tuple[tuple[float, tuple[float, ...]], ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "windows", tuple(self.windows) or (None,) * len(self.rates))
        widths = {len(self.rates), len(self.windows), *(len(rates) for _, rates in self.changes)}
        if not 2 <= len(self.rates) <= 9 or len(widths) > 1:
            raise ValueError(
                f"rates are {self.rates}; they, windows and the rates of changes must name the "
                "same 2 to 9 streams"
            )
        if any(not 0 <= r < np.inf for _, rates in ((0, self.rates), *self.changes) for r in rates):
            changes = f", changes {self.changes}" if self.changes else ""
            raise ValueError(
                f"rates are {self.rates}{changes}; a rate is 0 or more tuples per second"
            )
        begins = [0.0, *(second for second, _ in self.changes), self.seconds]
        if any(a >= b for a, b in pairwise(begins)) or not min(self.step, self.period) > 0:
            raise ValueError(
                f"seconds is {self.seconds}, step {self.step}, period {self.period}, changes at "
                f"{begins[1:-1]}; the first three "
                "must be greater than 0, and changes rise between 0 and seconds"
            )
        if not 0 <= self.sigma <= 1 or (self.theta is not None and not 0 <= self.theta <= 1):
            raise ValueError(
                f"sigma is {self.sigma} and theta {self.theta}; each must be from 0 to 1"
            )

    @property
    def stream_aliases(self) -> tuple[str, ...]:
        """The aliases, as ``simulate`` has them by default."""
        return tuple("rstuvwxyz"[: len(self.rates)])

    @property
    def condition(self) -> str:
        """A condition with which every pair of streams matches with selectivity sigma.

        Pairs of a group match independently. Stream r has a column u_s for its pair with s, uniform
        in [0, MODULUS), and s has u_r; the pair matches if their sum, modulo MODULUS, is less than
        sigma * MODULUS.
        """
        below = round(self.sigma * MODULUS)
        return " AND ".join(
            f"({a}.u_{b} + {b}.u_{a}) % {MODULUS} < {below}"
            for a, b in combinations(self.stream_aliases, 2)
        )

    def arrival_times(self, stream: int) -> npt.NDArray[np.int64]:
        """Return the arrival times of a stream, ascending, in microseconds since the start."""
        draw = np.random.default_rng([self.seed, 2, stream])
        edges, rates = self._list_rate_phases(stream, draw.uniform(0, self.period))
        numbers = draw.poisson(rates * np.diff(edges))
        seconds = draw.uniform(np.repeat(edges[:-1], numbers), np.repeat(edges[1:], numbers))
        return np.sort((seconds * 1e6).astype(np.int64))

    def _list_rate_phases(
        self, stream: int, offset: float
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return intervals of constant rate: n + 1 edges (s) and n rates (tuples per second)."""
        begins = np.array([0.0, *(second for second, _ in self.changes)])
        rates = np.array([self.rates[stream], *(rates[stream] for _, rates in self.changes)])
        half = self.period / 2
        turns = np.arange(-offset, self.seconds, half) if self.theta is not None else np.array([])
        edges = np.unique(np.concatenate([begins, turns[turns > 0], [self.seconds]]))
        rate = rates[np.searchsorted(begins, edges[:-1], "right") - 1]
        if self.theta is not None:
            middles = (edges[:-1] + edges[1:]) / 2
            high = np.floor((middles + offset) / half).astype(np.int64) % 2 == 0
            rate = rate * np.where(high, 1 + self.theta, 1 - self.theta) / 2
        return edges, rate

    @property
    def micro_batch_count(self) -> int:
        """Number of micro-batches."""
        return int(np.ceil(self.seconds / self.step - 1e-9))

    def _assign_batches(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        ends = np.rint(np.arange(1, self.micro_batch_count) * self.step * 1e6)
        return np.searchsorted(ends, times, "right")

    def batch_counts(self) -> list[tuple[int, ...]]:
        """Return the number of new tuples of every stream by batch, as ``simulate`` takes them."""
        columns = [
            np.bincount(
                self._assign_batches(self.arrival_times(s)), minlength=self.micro_batch_count
            )
            for s in range(len(self.rates))
        ]
        return [tuple(batch) for batch in np.stack(columns, axis=1).tolist()]

    def make_tables(self) -> dict[str, pa.Table]:
        """Return the tuples by alias, in the order of arrival.

        Columns: ``id`` (unique in its stream), ``ts`` (event time, UTC), ``batch``, and the columns
        of the condition.
        """
        return {alias: self._make_table(s) for s, alias in enumerate(self.stream_aliases)}

    def _make_table(self, stream: int) -> pa.Table:
        times = self.arrival_times(stream)
        draw = np.random.default_rng([self.seed, 3, stream])
        columns = {
            "id": pa.array(np.arange(len(times)), pa.int64()),
            "ts": pa.array(times + EPOCH, pa.timestamp("us", tz="UTC")),
            BATCH: pa.array(self._assign_batches(times), pa.int32()),
        }
        for other in self.stream_aliases:
            if other != self.stream_aliases[stream]:
                columns[f"u_{other}"] = pa.array(draw.integers(0, MODULUS, len(times)), pa.int64())
        return pa.table(columns)

    def count_results(self) -> int:
        """Return how many results the join has, by looking at all combinations of tuples."""
        rows = np.arange(len(self.arrival_times(0)))[:, None]
        for b in range(1, len(self.rates)):
            matches = [self._match_pairs(a, b)[rows[:, a]] for a in range(b)]
            kept_rows, new = np.nonzero(np.logical_and.reduce(matches))
            rows = np.column_stack([rows[kept_rows], new])
        return len(rows)

    def _match_pairs(self, a: int, b: int) -> npt.NDArray[np.bool_]:
        """Return which tuples of two streams match, each within the window of the earlier one."""
        one, other = self.stream_aliases[a], self.stream_aliases[b]
        drawn: npt.NDArray[np.int64] = np.add.outer(
            self._make_table(a)[f"u_{other}"].to_numpy(), self._make_table(b)[f"u_{one}"].to_numpy()
        )
        later = np.subtract.outer(self.arrival_times(b), self.arrival_times(a)).T
        first, second = (
            np.inf if w is None else 1e6 * w for w in (self.windows[a], self.windows[b])
        )
        near = (later <= first) & (-later <= second)
        return np.logical_and(near, drawn % MODULUS < round(self.sigma * MODULUS))

    def window_texts(self) -> dict[str, str]:
        """Return the windows as StreamJoin takes them."""
        return {
            a: f"{w} seconds"
            for a, w in zip(self.stream_aliases, self.windows, strict=True)
            if w is not None
        }

    def make_workload(self, spark: SparkSession) -> Workload:
        """Return the same tuples as static DataFrames, numbered by micro-batch."""
        frames = {a: spark.createDataFrame(table) for a, table in self.make_tables().items()}
        return Workload("Arrivals", frames, self.condition, "ts", self.window_texts())


def gu_streams(
    spark: SparkSession,
    rates: Sequence[float] = (),
    streams: int = 3,
    seconds: float = 60.0,
    batches: int = 20,
    window: float | None = 30.0,
    sigma: float = 0.1,
    theta: float | None = None,
    seed: int = 0,
) -> Workload:
    """Return Gu's synthetic streams by plain settings.

    ``rates`` are in tuples per second; default: drawn from [5, 20] for ``streams`` streams. All
    streams have one window in seconds. ``seconds`` of event time are divided into ``batches`` equal
    micro-batches. Raises ValueError for settings out of range.
    """
    if batches < 1:
        raise ValueError(f"batches is {batches}; a replay has at least 1 micro-batch")
    rates = tuple(rates) or draw_rates(streams, seed)
    windows = (window,) * len(rates)
    return Arrivals(
        rates, seconds, seconds / batches, windows, sigma, theta, seed=seed
    ).make_workload(spark)
