"""Faults of probes that are pooled for many hosts, each detected by one test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from braid.kernels.host_block_rows import BlockRows

from mutations import Broken

PAIRS = "unit.test_probe_pools.test_a_pair_belongs_to_the_meeting_of_its_arrival_and_its_block"


def as_if_due(make: Any) -> Any:
    """Read -1, that an arrival and a block do not meet, as the first meeting."""

    def fault(*given: Any) -> Any:
        made = make(*given)
        return replace(made, numbers=np.maximum(made.numbers, 0))

    return staticmethod(fault)


def one_further(gather: Any) -> Any:
    """Number the blocks from the second one."""

    def fault(sources: Any, *more: Any) -> BlockRows:
        rows: BlockRows = gather(sources, *more)
        assert rows.sources is not None
        rows.sources = (rows.sources + 1) % len(sources)
        return rows

    return fault


def of_the_first(take: Any) -> Any:
    """Forget from which arrivals partial results come."""

    def fault(several: Any) -> Any:
        joined = take(several)
        joined.origins = np.zeros_like(joined.origins)
        return joined

    return staticmethod(fault)


BROKEN = [
    Broken(
        "pairs that are not due are found",
        "braid.kernels.meetings.Meetings.from_pairs",
        as_if_due,
        PAIRS,
        "",
    ),
    Broken(
        "the number of a gathered block is off by one",
        "unit.test_probe_pools.gather_blocks",
        one_further,
        PAIRS,
        "",
    ),
    Broken(
        "partial results that are put together belong to one arrival",
        "braid.kernels.host_block_rows.PartialMatches.concat_all",
        of_the_first,
        PAIRS,
        "",
    ),
]
