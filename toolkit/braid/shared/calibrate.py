"""Measure C_sys, the system overhead of a slice (Wang 2008, section 7.2), with the join kernels."""

from __future__ import annotations

import time
from types import SimpleNamespace

import numpy as np
import pyarrow as pa

from braid.condition.access_paths import IndexCondition, Order
from braid.condition.predicate import Predicate, with_windows
from braid.core.query import Query
from braid.core.reserved_columns import MARK, ROUTING, TIME
from braid.kernels.block_builder import build_block
from braid.kernels.host_block_rows import BlockRows, PartialMatches
from braid.kernels.probe import BlockJoiner
from braid.kernels.query_bitmaps import QueryBitmaps

_PROBES, _STORED, _SLICES, _ROUNDS = 4096, 65536, 8, 5


def measure_slice_overhead() -> float:
    """Return the cost of one more slice for each tuple that passes it, in comparisons.

    The same tuples probe the same state in one block and in several. The difference is the cost of
    the slices; one comparison is the cost of one pair found by the index. The fastest of a few
    rounds counts. Takes about 0.1 seconds.
    """
    window = 1 << 40
    links = (IndexCondition((0, "k"), (1, "k"), 0, 0),)
    predicate = with_windows(
        Predicate(("a", "b"), (None, None), ({}, {}), ({}, {}), links, ()), (window, window)
    )
    bitmaps = QueryBitmaps.from_queries([Query("q", (window, window), (None, None))])
    joiner = BlockJoiner(predicate, (None, None), bitmaps)
    stored, probes = _make_sample_rows(_STORED, 0), _make_sample_rows(_PROBES, _STORED)
    slices = [BlockRows(build_block(stored, [Order("k")]))]
    sliced = [
        BlockRows(build_block(stored.slice(at, _STORED // _SLICES), [Order("k")]))
        for at in range(0, _STORED, _STORED // _SLICES)
    ]
    fresh = BlockRows(build_block(probes, [Order("k")]))
    one, pairs = _time_probes(joiner, fresh, slices)
    several, _ = _time_probes(joiner, fresh, sliced)
    return max(0.0, several - one) / (_SLICES - 1) / _PROBES / (one / pairs)


def _make_sample_rows(count: int, since: int) -> pa.RecordBatch:
    numbers = np.arange(count)
    columns = {
        "k": numbers * 7919 % 8192,
        TIME: since + numbers,
        ROUTING: np.zeros(count, np.int32),
    }
    columns[MARK] = np.ones(count, np.int64)
    return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})


def _time_probes(
    joiner: BlockJoiner, fresh: BlockRows, blocks: list[BlockRows]
) -> tuple[float, int]:
    """Return the seconds to probe all blocks and the number of compared pairs."""
    best, count = np.inf, SimpleNamespace(compared_pairs=0)
    for _ in range(_ROUNDS):
        count.compared_pairs = 0
        began = time.perf_counter()
        for rows in blocks:
            start = PartialMatches({0: (fresh, fresh.row_positions())})
            for _matches in joiner.probe_block(start, rows, 1, False, count):
                pass
        best = min(best, time.perf_counter() - began)
    return best, int(np.sum(count.compared_pairs))
