"""All tables behind the claims of Elseidy 2014: ``figures``, and ranges of what is not printed.

The paper does not print how many values the skewed key has, how long a result takes, or how much
slower disk is. Claims that depend on one of them are judged over a range of it. The ratio of
Fig. 5k is judged in fine batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pandas as pd
from braid.papers.theta.grid import AdaptiveGrid
from braid.simulation.simulator import iter_simulation

from braid_lab.common.recorded_settings import concat_runs, record_values, records_arguments
from braid_lab.theta.cluster_model import EPSILON, JOINER, ModelledMachine
from braid_lab.theta.dynamics import ratio_by_batch
from braid_lab.theta.figures import (
    FEW,
    FEW_VALUES,
    START_RATIO,
    final_batches,
    fluctuation_batches,
    fluctuation_progress,
    mapping_curves,
    overflow_runs,
    performance_runs,
    progress_runs,
    table_2,
    weak_scaling,
)

VALUES = (10, 25, 50, 100, 1000)
"""Numbers of values of the skewed key, from fewer than nations to a hundredth of the suppliers."""
OVERFLOW_VALUES = VALUES[:-1]
"""Those with which a memory is full at some skew."""
DISKS = (10.0, JOINER.disk)
"""Factors of a tuple's time on disk: the paper says an order of magnitude."""
RESULT_US = (0.1, 0.3, 1.0, 3.0)
"""Microseconds to make a result; a tuple takes 21."""
FINEST = 0.01
"""Size of a batch of Fig. 5k relative to the smaller stream, with which the bound is 1.258."""


def all_figures(
    full: bool = False, scale: float = 0.1, values: int = FEW_VALUES, ranges: bool = False
) -> dict[str, pd.DataFrame]:
    """Return all tables, by the fields of ``claims.ThetaFigures``.

    Parameters
    ----------
    full
        Whether there are five seeds, all of the paper's machines, and finer batches.
    scale
        The scale factor of the TPC-H data that is counted.
    values
        The number of values of the foreign key under FEW.
    ranges
        Whether the key also has all VALUES, and Fig. 5k is made in batches of FINEST.
    """
    seeds, batches = (5, 40) if full else (1, 16)
    hosts = (16, 32, 64, 128) if full or ranges else (16, 32, 64)
    tables = {
        "times": table_2(scale, seeds, batches=batches, values=values),
        "few_overflows": overflow_runs(scale, OVERFLOW_VALUES if ranges else (values,)),
        "runs": performance_runs(scale, seeds, batches=batches, values=values),
        "hash_ranges": vary_key_values(scale, batches, VALUES if ranges else (values,)),
        "result_ranges": vary_result_seconds(scale, batches),
        "mapping_runs": mapping_curves(batches=batches, scale=scale),
        "scaling_runs": weak_scaling(hosts, batches, scale),
        "disk": vary_disk(hosts, batches, scale),
        "fluctuation_runs": fluctuation_progress(),
    }
    return tables | ({"ratios": ratio_runs()} if ranges else {})


def vary_key_values(
    scale: float = 0.1, batches: int = 20, values: Sequence[int] = VALUES, hosts: int = 64
) -> pd.DataFrame:
    """Return EQ5 at Z4 under FEW by the number of values of its key, and by the factor of disk.

    A row for each seed, with the columns of ``final_batches``, values and disk.
    """
    frames = (
        final_batches(
            progress_runs(
                ("EQ5",),
                "Z4",
                hosts,
                scale,
                1,
                batches,
                (FEW,),
                joiner=ModelledMachine(disk=disk),
                values=each,
            )
        ).assign(values=each, disk=disk)
        for each, disk in product(values, DISKS)
    )
    return record_values(concat_runs(frames), key_values=values)


def vary_result_seconds(
    scale: float = 0.1, batches: int = 20, hosts: int = 64, result_us: Sequence[float] = RESULT_US
) -> pd.DataFrame:
    """Return Fig. 5d of BCI under StaticMid and Dynamic by the time that a result takes.

    A row for each of both, with the columns of ``final_batches`` and result_us.
    """
    both = ("StaticMid", "Dynamic")
    frames = (
        final_batches(
            progress_runs(
                ("BCI",),
                "Z0",
                hosts,
                scale,
                1,
                batches,
                both,
                joiner=ModelledMachine(result_us=each),
            )
        ).assign(result_us=each)
        for each in result_us
    )
    return concat_runs(frames)


def vary_disk(hosts: Sequence[int], batches: int = 20, scale: float = 0.1) -> pd.DataFrame:
    """Return ``weak_scaling`` out of core, by the factor of disk: a column disk."""
    return concat_runs(
        weak_scaling(hosts, batches, scale, ModelledMachine(memory_mb=0.0, disk=each)).assign(
            disk=each
        )
        for each in DISKS
    )


@records_arguments
def ratio_runs(
    ks: Sequence[float] = (2, 4, 6, 8),
    hosts: int = 64,
    growth: float = 64,
    gb: float = 8.0,
    fine: float = FINEST,
) -> pd.DataFrame:
    """Return Fig. 5k: ``ratio_by_batch`` of Dynamic on ``fluctuation_batches`` of every k."""
    frames = (
        ratio_by_batch(
            iter_simulation(
                AdaptiveGrid(hosts, epsilon=EPSILON), fluctuation_batches(k, growth, gb, fine)
            )
        ).assign(k=k)
        for k in ks
    )
    table = pd.concat(frames, ignore_index=True)
    by = table.groupby("k")
    ran = {"batches": by.size().tolist(), "begun": by["live"].first().map(sum).tolist()}
    return record_values(table, **ran, start=START_RATIO, epsilon=EPSILON)
