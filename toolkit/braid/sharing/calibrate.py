"""C_sys, the system overhead of a slice (Wang 2008, section 7.2), measured on this machine by the
kernels themselves.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pyarrow as pa

from braid.condition.predicate import Link, Predicate, windowed
from braid.core.columns import MARK, ROUTING, TIME
from braid.core.query import Query
from braid.local.bitmaps import QueryBitmaps
from braid.local.build import build
from braid.local.probe import Joiner
from braid.local.rows import Partial, Rows

_PROBES, _STORED, _SLICES, _ROUNDS = 4096, 65536, 8, 5


def measure() -> float:
    """What one more slice costs for each tuple that passes it, in comparisons.

    The same tuples probe the same state, in one block and in several; the difference is what slices
    cost, and one comparison is what a pair costs that the index finds. The quickest of a few rounds
    counts. Takes a tenth of a second or so.
    """
    window = 1 << 40
    links = (Link((0, "k"), (1, "k"), 0, 0),)
    predicate = windowed(
        Predicate(("a", "b"), (None, None), ({}, {}), ({}, {}), links, ()), (window, window)
    )
    bitmaps = QueryBitmaps.of([Query("q", (window, window), (None, None))])
    joiner = Joiner(predicate, (window, window), (None, None), bitmaps)
    stored, probes = _rows(_STORED, 0), _rows(_PROBES, _STORED)
    whole = [Rows(build(stored, ["k"]))]
    sliced = [
        Rows(build(stored.slice(at, _STORED // _SLICES), ["k"]))
        for at in range(0, _STORED, _STORED // _SLICES)
    ]
    fresh = Rows(build(probes, ["k"]))
    one, pairs = _seconds(joiner, fresh, whole)
    several, _ = _seconds(joiner, fresh, sliced)
    return max(0.0, several - one) / (_SLICES - 1) / _PROBES / (one / pairs)


def spread(times: int = 9) -> tuple[float, float, float]:
    """``measure`` so many times: the lower quartile, the median, the upper quartile. Other work
    on the machine makes all of them larger.
    """
    low, middle, high = np.quantile([measure() for _ in range(times)], (0.25, 0.5, 0.75))
    return float(low), float(middle), float(high)


def _rows(count: int, since: int) -> pa.RecordBatch:
    numbers = np.arange(count)
    columns = {
        "k": numbers * 7919 % 8192,
        TIME: since + numbers,
        ROUTING: np.zeros(count, np.int32),
    }
    columns[MARK] = np.ones(count, np.int64)
    return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})


def _seconds(joiner: Joiner, fresh: Rows, blocks: list[Rows]) -> tuple[float, int]:
    """Seconds that a probe of all blocks takes, and the pairs that it compares."""
    best, count = np.inf, SimpleNamespace(compared=0)
    for _ in range(_ROUNDS):
        count.compared = 0
        began = time.perf_counter()
        for rows in blocks:
            start = Partial({0: (fresh, fresh.places())})
            for _found in joiner.probe(start, rows, 1, False, count):
                pass
        best = min(best, time.perf_counter() - began)
    return best, int(np.sum(count.compared))
