"""GeneratedStream: a stream of random tuples, stored as the settings from which they follow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from braid.util.validation import check_int, format_value

START = 1_767_225_600_000_000
"""Event time of the first batch: 1 January 2026, 0:00 UTC, in microseconds."""
MOST_ROWS, MOST_SKEW, MOST_KEYS = 1_000_000, 4.0, 1_000_000
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "ts": pa.timestamp("us", "UTC"),
        "k": pa.int64(),
        "x": pa.float64(),
    }
)
"""Columns: the number of the tuple, its event time, a key from 0, and a number from 0 to 1."""


def zipf_probabilities(size: int, z: float) -> npt.NDArray[np.float64]:
    """Return probabilities of ranks 1 to ``size``: P(rank) proportional to 1 / rank**z.

    They are uniform for z = 0. Raises ValueError if z is negative or not finite.
    """
    if not 0 <= z < np.inf:
        raise ValueError(f"skew z is {z}; it must be a number of at least 0")
    weights: npt.NDArray[np.float64] = np.arange(1, size + 1, dtype=float) ** -z
    return weights / np.sum(weights)


class SourceChange(NamedTuple):
    """Rate and skew of a generated stream from a micro-batch on."""

    batch: int
    rate: float
    skew: float


@dataclass(frozen=True)
class GeneratedStream:
    """A stream of random tuples whose rate and skew can change while a run reads it.

    Columns: ``id``, ``ts`` (event time), ``k`` (a key from 0), ``x`` (a number from 0 to 1). A
    micro-batch is a function of the settings, so a run that is resumed or checked has equal tuples.

    Parameters
    ----------
    rate
        Tuples in a micro-batch; with the greatest factor, at most a million. Default: 200.
    skew
        Zipf parameter z of ``k``; key 0 is the most frequent. Default: 0, all are as frequent.
    keys
        Number of keys. Default: 100.
    seconds
        Event time of a micro-batch. Default: 1.
    profile
        Factors of the rate by micro-batch, repeated. Default: 1.
    seed
        Seed of the tuples. Streams of one join need different ones. Default: 0.
    changes
        Rates and skews that apply from later micro-batches on, in order. Default: none.

    Raises ValueError for a setting out of range.
    """

    rate: float = 200.0
    skew: float = 0.0
    keys: int = 100
    seconds: float = 1.0
    profile: tuple[float, ...] = (1.0,)
    seed: int = 0
    changes: tuple[SourceChange, ...] = ()

    def __post_init__(self) -> None:
        for name, accepted in (("profile", "numbers"), ("changes", "SourceChange records")):
            if not isinstance(given := getattr(self, name), list | tuple):
                raise ValueError(f"{name} is {format_value(given)}; it must list {accepted}")
            object.__setattr__(self, name, tuple(given))
        for each in (SourceChange(0, self.rate, self.skew), *self.changes):
            if not isinstance(each, SourceChange):
                raise ValueError(f"a change is {format_value(each)}; it must be a SourceChange")
            _check_number(each.rate, "rate", 0, MOST_ROWS, "tuples in a micro-batch")
            _check_number(each.skew, "skew", 0, MOST_SKEW, "the Zipf parameter z")
        check_int(self.keys, "keys", 1, MOST_KEYS)
        check_int(self.seed, "seed", 0)
        _check_number(self.seconds, "seconds", 1e-3, 86_400, "event time of a micro-batch")
        for factor in self.profile or (None,):
            _check_number(factor, "a factor in profile", 0, 1000, "times the rate")
        fastest = max(c.rate for c in (SourceChange(0, self.rate, self.skew), *self.changes))
        if fastest > self.highest_rate:
            raise ValueError(
                f"rate is {fastest:g} and a factor in profile {max(self.profile):g}; a micro-batch "
                f"has at most {MOST_ROWS:,} tuples, so the rate is at most {self.highest_rate:g}"
            )

    def settings_at(self, batch: int) -> SourceChange:
        """Return rate and skew in a micro-batch."""
        first = SourceChange(0, self.rate, self.skew)
        return [first, *(c for c in self.changes if c.batch <= batch)][-1]

    @property
    def highest_rate(self) -> float:
        """The rate at which the greatest factor of the profile gives the most tuples accepted."""
        return MOST_ROWS / max(1.0, *self.profile)

    @property
    def last_settings(self) -> SourceChange:
        """Rate and skew after all changes."""
        return self.settings_at(self.changes[-1].batch if self.changes else 0)

    def with_settings(
        self, batch: int, rate: float | None = None, skew: float | None = None
    ) -> GeneratedStream:
        """Return the stream with another rate or skew from a micro-batch on. Raises ValueError."""
        now = self.settings_at(batch)
        changed = SourceChange(
            batch, now.rate if rate is None else rate, now.skew if skew is None else skew
        )
        earlier = (c for c in self.changes if c.batch < batch)
        return replace(self, changes=(*earlier, changed))

    def on_spark(self, session: Any) -> GeneratedFrame:
        """Return the stream for a join that Spark runs. Without this, this process runs it."""
        return GeneratedFrame(self, session)

    def count_tuples(self, batches: int) -> npt.NDArray[np.int64]:
        """Return the number of tuples in each of the first micro-batches."""
        numbers = np.arange(batches)
        begins = [c.batch for c in self.changes]
        rates = np.array([self.rate, *(c.rate for c in self.changes)], dtype=float)
        means = rates[np.searchsorted(begins, numbers, side="right")]
        return _round_means(means * np.resize(self.profile, batches))

    def _count_tuples_before(self, batch: int) -> int:
        """Return the number of tuples in all earlier micro-batches, in a time that depends only on
        the numbers of changes and factors.
        """
        begins = [0, *(min(c.batch, batch) for c in self.changes), batch]
        total = 0
        for rate, span in zip(
            (self.rate, *(c.rate for c in self.changes)), pairwise(begins), strict=True
        ):
            sums = [0, *np.cumsum(_round_means(rate * np.array(self.profile, float))).tolist()]
            first, end = (
                n // len(self.profile) * sums[-1] + sums[n % len(self.profile)] for n in span
            )
            total += end - first
        return total

    def make_batch(self, number: int) -> pa.Table:
        """Return the tuples of a micro-batch, from 0.

        NumPy guarantees the raw numbers of a bit generator for all its versions.
        """
        first = self._count_tuples_before(number)
        rows = self._count_tuples_before(number + 1) - first
        raw = np.random.PCG64([self.seed, number]).random_raw(3 * rows)
        draws = ((np.asarray(raw, np.uint64) >> np.uint64(11)) * 2.0**-53).reshape(rows, 3)
        edges = np.cumsum(zipf_probabilities(self.keys, self.settings_at(number).skew))
        keys = np.searchsorted(edges, draws[:, 1], side="right")
        times = START + ((number + np.sort(draws[:, 0])) * self.seconds * 1e6).astype(np.int64)
        columns = [
            pa.array(np.arange(first, first + rows)),
            pa.array(times).cast(SCHEMA.field("ts").type),
            pa.array(np.minimum(keys, self.keys - 1)),
            pa.array(draws[:, 2]),
        ]
        return pa.Table.from_arrays(columns, schema=SCHEMA)

    def make_batches(self, batches: int) -> pa.Table:
        """Return the tuples of the first micro-batches."""
        tables = [self.make_batch(n) for n in range(batches)]
        return pa.concat_tables([*tables, SCHEMA.empty_table()])


def _round_means(means: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return mean numbers of tuples as whole numbers, at least 1 unless a mean is 0."""
    return np.where(means > 0, np.maximum(1, np.rint(means)), 0).astype(np.int64)


class GeneratedFrame(NamedTuple):
    """A generated stream that a session of Spark reads."""

    stream: GeneratedStream
    session: Any


def _check_number(value: Any, name: str, low: float, high: float, what: str) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isfinite(value) or not low <= value <= high:
        raise ValueError(
            f"{name} is {format_value(value)}; it is a number from {low:g} to {high:g}, {what}"
        )
