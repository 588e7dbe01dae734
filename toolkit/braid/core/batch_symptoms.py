"""Symptoms of a batch, measured when it is committed, from which a run is diagnosed."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

SPREAD = 8
"""Number of parts of a window by which matches are counted."""


class FrequentValue(NamedTuple):
    """The most frequent join value of a batch and the batches before.

    - ``stream``: the stream that has it.
    - ``value``: its number, a hash.
    - ``share``: share of the stream's recent tuples.
    """

    stream: int
    value: int
    share: float


class BatchSymptoms(msgspec.Struct, frozen=True, omit_defaults=True):
    """Figures of a batch for a diagnosis, besides counts and seconds. JSON omits unknown ones.

    - ``late_by``: by stream with late tuples, the 95th percentile of their distance behind the
      watermark, in microseconds; of the task in which it is greatest.
    - ``spread``: by stream with a window, matches with its stored tuples by their age, the youngest
      eighth of the window first.
    - ``frequent``: only if the placement counts values.
    """

    late_by: dict[int, int] = {}
    spread: dict[int, tuple[int, ...]] = {}
    frequent: FrequentValue | None = None
