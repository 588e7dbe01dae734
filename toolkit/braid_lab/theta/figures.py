"""Table 2 and Fig. 5a to 5j, 5l of Elseidy 2014: tables for each, by ``cluster_model``.

Loads are counts of the real policies for the paper's data sizes; times, throughput and latency are
modelled. Tuples and results are counted in TPC-H data of ``scale``, which represents the paper's
larger data. The foreign key has all values of the paper's size: 100,000 suppliers for 10 GB. Under
FEW it has a small number of them. Seeds vary the values, the hash of SHJ and the routing keys of
the grids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import ceil, log

import numpy as np
import pandas as pd
from braid.papers.theta.mapping import input_load_factor, optimal_mapping

from braid_lab.common.recorded_settings import (
    RECORDED,
    concat_runs,
    record_values,
    records_arguments,
)
from braid_lab.theta.cluster_model import (
    EPSILON,
    GB,
    JOINER,
    OPERATORS,
    Floats,
    ModelledMachine,
    simulate_progress,
)
from braid_lab.theta.dynamics import FINE, alternating_batches
from braid_lab.theta.join_inputs import QUERIES, SKEWS, JoinInput, count_input, spread_keys

PRINTED = {
    ("EQ5", "SHJ"): (79, 79, 2742, 4268, 5704),
    ("EQ5", "Dynamic"): (168, 176, 158, 212, 203),
    ("EQ5", "StaticMid"): (838, 851, 1425, 2367, 2849),
    ("EQ7", "SHJ"): (98, 159, 191, 5462, 6385),
    ("EQ7", "Dynamic"): (192, 183, 369, 334, 415),
    ("EQ7", "StaticMid"): (210, 301, 462, 2610, 3502),
}
"""Table 2 as printed: seconds, for Z0 to Z4."""
TIMED = ("EQ5", "EQ7")
FEW = "SHJ, few values"
"""SHJ under a reading: the generator gives the foreign key few values, not one for each supplier.

The paper does not say how many. About 25, as TPC-H has nations, lead to its seconds and loads.
"""
FEW_VALUES = 25
HASH_SEEDS = 3
"""Seeds of SHJ, at least: which values share a host differs from one to the next."""
HASHED = ("SHJ", FEW)
ROOMY = ModelledMachine(memory_mb=1e6)
"""A joiner on which everything fits in memory."""
MB = JOINER.tuple_bytes / 1e6
"""Megabytes of a stored tuple."""
START = (39_800, 40_000)
"""Tuples with which the streams of Fig. 5k and 5l begin, before they are scaled."""
START_RATIO = START[0] / START[1]
BUSIEST = ["busiest", "busiest_least", "busiest_most"]
"""The columns of Table 2 about the fullest machine."""
LAST = ["query", "operator", "skew", "hosts", "gb", "seed"]


def final_batches(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the last batch of each run, with its mean latency by result: a row for each run."""
    final = (
        runs.groupby(LAST, sort=False)["results_modelled"].diff().fillna(runs["results_modelled"])
    )
    weighed = runs.assign(latency_ms_modelled=runs["latency_ms_modelled"] * final, made=final)
    sums = weighed.groupby(LAST, sort=False)[["latency_ms_modelled", "made"]].sum()
    over = runs.groupby(LAST, sort=False)["overflow"].any()
    last = runs.groupby(LAST, sort=False).last().assign(overflow=over)
    ends = last.assign(latency_ms_modelled=sums["latency_ms_modelled"] / sums["made"])
    return record_values(ends.reset_index(), **runs.attrs.get(RECORDED, {}))


@records_arguments
def progress_runs(
    queries: Sequence[str],
    skew: str,
    hosts: int,
    scale: float = 0.1,
    seeds: int = 1,
    batches: int = 20,
    operators: Sequence[str] = (*OPERATORS, FEW),
    gb: float = GB,
    joiner: ModelledMachine = JOINER,
    values: int = FEW_VALUES,
) -> pd.DataFrame:
    """Return ``simulate_progress`` of operators and joins as one frame with the columns LAST.

    SHJ only joins on equalities; under FEW their foreign key has ``values`` values. Band joins have
    no foreign key, so no skew (Z0).
    """
    frames, hash_seeds = [], max(seeds, HASH_SEEDS)
    suppliers: set[int] = set()
    for query, name in product(queries, operators):
        z = skew if query in TIMED else "Z0"
        if name in HASHED and query not in TIMED:
            continue
        of, few = count_input(query, 0.0, scale), values if name == FEW else None
        for seed in range(hash_seeds if name in HASHED else seeds):
            joined, times = of, gb / scale
            if query in TIMED:
                joined, times = spread_keys(of, gb / scale, SKEWS[z], few, seed), 1.0
            suppliers |= {len(joined.values[0])} if joined.values else set()
            progress = simulate_progress(
                "SHJ" if name == FEW else name,
                joined,
                times,
                hosts,
                batches,
                joiner,
                seed,
            )
            frames.append(
                progress.assign(**dict(zip(LAST, (query, name, z, hosts, gb, seed), strict=True)))
            )
    return record_values(
        pd.concat(frames, ignore_index=True),
        hash_seeds=hash_seeds,
        suppliers=suppliers,
        memory_gb=joiner.memory_mb / 1000,
        tuple_bytes=joiner.tuple_bytes,
        epsilon=EPSILON,
        **joiner.prices,
    )


def table_2(
    scale: float = 0.1,
    seeds: int = 1,
    skews: Sequence[str] = tuple(SKEWS),
    batches: int = 20,
    values: int = FEW_VALUES,
) -> pd.DataFrame:
    """Return Table 2.

    Columns: query, operator, skew, seconds_modelled (the mean over seeds), least_modelled and
    most_modelled (over seeds), overflow (the share of seeds in which a memory is full), busiest,
    busiest_least and busiest_most (the same of the fullest machine's tuples over the mean), printed
    (seconds). SHJ is shown twice, also under FEW.
    """
    names = (*HASHED, "Dynamic", "StaticMid")
    rows = concat_runs(
        final_batches(progress_runs(TIMED, z, 16, scale, seeds, batches, names, values=values))
        for z in skews
    )
    rows["busiest"] = rows["stored_max"] / rows["stored_mean"]
    by = rows.groupby(["query", "operator", "skew"], sort=False)
    table = by["seconds_modelled"].agg(["mean", "min", "max"])
    table.columns = pd.Index(["seconds_modelled", "least_modelled", "most_modelled"])
    table["overflow"] = by["overflow"].mean()
    table[BUSIEST] = by["busiest"].agg(["mean", "min", "max"])
    at = [PRINTED[q, name.split(",")[0]][list(SKEWS).index(z)] for q, name, z in table.index]
    return record_values(table.assign(printed=at).reset_index(), **rows.attrs[RECORDED])


def overflow_runs(
    scale: float = 0.1, values: Sequence[int] = (FEW_VALUES,), seeds: int = 20
) -> pd.DataFrame:
    """Return Table 2's stars of EQ5 under FEW: whether a memory is full.

    A row for each number of values of the foreign key and each seed, a column for each skew. The
    input is one batch, in fifths.
    """
    frames = [
        final_batches(progress_runs(("EQ5",), z, 16, scale, seeds, 1, (FEW,), values=each)).assign(
            values=each
        )
        for each, z in product(values, SKEWS)
    ]
    full = pd.concat(frames).set_index(["values", "seed", "skew"])["overflow"].unstack("skew")
    return record_values(full[list(SKEWS)], overflow_values=values, overflow_seeds=seeds)


def format_table_2(times: pd.DataFrame) -> pd.DataFrame:
    """Return Table 2 for a reader, without the range over seeds if there is only one."""
    names = {
        "seconds_modelled": "seconds (modelled)",
        "least_modelled": "least",
        "most_modelled": "most",
        "overflow": "memory full, of runs",
        "printed": "seconds (printed)",
    }
    table = times.drop(columns=BUSIEST, errors="ignore").rename(columns=names)
    table["memory full, of runs"] = times["overflow"].map("{:.0%}".format)
    if (times["least_modelled"] == times["most_modelled"]).all():
        table = table.drop(columns=["least", "most"])
    return table


def performance_runs(
    scale: float = 0.1,
    seeds: int = 1,
    hosts: int = 64,
    batches: int = 20,
    values: int = FEW_VALUES,
) -> pd.DataFrame:
    """Return Fig. 5a to 5f: the four joins on 64 machines, EQ5 and EQ7 at Z4, band joins at Z0."""
    return progress_runs(QUERIES, "Z4", hosts, scale, seeds, batches, values=values)


def mapping_curves(
    hosts: int = 64, batches: int = 20, gb: float = GB, scale: float = 0.1
) -> pd.DataFrame:
    """Return Fig. 5g, 5h: EQ5 with a growing smaller stream.

    The optimal mapping then goes from (1, J) to the square one. A row for each: optimum, operator,
    and the columns of ``final_batches``.
    """
    of = count_input("EQ5", 0.0, scale)
    return mapping_curves_for(of, hosts, batches, gb / scale)


@records_arguments
def mapping_curves_for(of: JoinInput, hosts: int, batches: int, times: float) -> pd.DataFrame:
    """Return the mapping curves of any input, ``times`` as large as counted."""
    rows, n = [], 1
    while n * n <= hosts:
        grown = replace(of, r_tuples=of.s_tuples * n * n // hosts)
        for name in ("StaticMid", "Dynamic"):
            final = simulate_progress(name, grown, times, hosts, batches, ROOMY).iloc[-1]
            rows.append({"optimum": f"({n}, {hosts // n})", "operator": name, **final})
        n *= 2
    s_tuples = round(of.s_tuples * times)
    ran = ROOMY.prices | {"of": of.query, "s_tuples": s_tuples, "epsilon": EPSILON}
    return record_values(pd.DataFrame(rows), **ran)


def weak_scaling(
    hosts: Sequence[int] = (16, 32, 64),
    batches: int = 20,
    scale: float = 0.1,
    joiner: ModelledMachine = JOINER,
) -> pd.DataFrame:
    """Return Fig. 5i, 5j: Dynamic on 10 GB for 16 machines, 20 GB for 32, and so on.

    A row for each join and number of machines, with the columns of ``final_batches``, and
    tuples_s_modelled (throughput).
    """
    queries = ("EQ5", "EQ7", "BNCI")
    table = concat_runs(
        final_batches(
            progress_runs(queries, "Z0", j, scale, 1, batches, ("Dynamic",), GB * j / 16, joiner)
        )
        for j in hosts
    )
    inputs = table["query"].map(lambda query: count_input(query, 0.0, scale))
    tuples = inputs.map(lambda of: of.r_tuples + of.s_tuples) * (table["gb"] / scale)
    return table.assign(tuples_s_modelled=tuples / table["seconds_modelled"])


@records_arguments
def fluctuation_progress(
    ks: Sequence[float] = (2, 4, 6, 8), hosts: int = 64, growth: float = 64, gb: float = 8.0
) -> pd.DataFrame:
    """Return Fig. 5l: progress of Dynamic on ``fluctuation_batches`` of every k.

    All tuples fit in memory. Columns: k, those of ``simulate_progress``, and oracle_seconds: with
    the best mapping at all times, and no migration.
    """
    frames, swings = [], [fluctuation_batches(k, growth, gb) for k in ks]
    for k, batches in zip(ks, swings, strict=True):
        r, s = (sum(side) for side in zip(*batches, strict=True))
        of = JoinInput("Fluct-Join", r, s, min(r, s))
        progress = simulate_progress("Dynamic", of, 1.0, hosts, batches, ROOMY)
        results = progress["results_modelled"] / hosts * ROOMY.result_us / 1e6
        padded = [*batches, *[(0, 0)] * (len(progress) - len(batches))]  # the last migration ends
        seconds = _receive_at_best(padded, hosts) * ROOMY.tuple_us / 1e6 + results
        frames.append(progress.assign(k=k, oracle_seconds=seconds))
    return record_values(
        pd.concat(frames, ignore_index=True),
        fine=FINE,
        batches=list(map(len, swings)),
        begun=[sum(batches[0]) for batches in swings],
        start=START_RATIO,
        epsilon=EPSILON,
        **ROOMY.prices,
    )


def fluctuation_batches(
    k: float, growth: float = 64, gb: float = 8.0, fine: float = FINE
) -> list[tuple[int, int]]:
    """Return ``alternating_batches`` until a stream has grown at least ``growth`` times.

    They have the number of tuples of lineitem and orders in ``gb``. R begins a little smaller than
    S: when R has doubled, the first mapping is still the best, and serves until R is nearly four
    times S (the worst case of Lemma 4.3). From equal sizes chance decides that.
    """
    swung = alternating_batches(k, ceil(log(growth, k) - 1e-9), START, fine)
    times = gb * 7.5e6 / sum(map(sum, swung))
    return [(round(r * times), round(s * times)) for r, s in swung]


def _receive_at_best(batches: Sequence[tuple[int, int]], hosts: int) -> Floats:
    """Return by batch the tuples that a machine has received if each met the best mapping."""
    r = s = 0
    received = []
    for more_r, more_s in batches:
        r, s = r + more_r, s + more_s
        received.append(input_load_factor(more_r, more_s, *optimal_mapping(r, s, hosts)))
    return np.cumsum(received)


def figure_curves(
    tables: Mapping[str, pd.DataFrame],
) -> dict[str, tuple[str, dict[str, pd.DataFrame]]]:
    """Return the curves of Fig. 5 from ``figure_tables.all_figures``.

    By title: the meaning of x, and by name with unit a table with a row for each x and a column for
    each series.
    """
    of = tables["runs"]
    eq5 = of[(of["query"] == "EQ5") & (of["seed"] == 0)]
    load = eq5.assign(mb=eq5["stored_max"] * MB)
    mapped, scaled, disk = tables["mapping_runs"], tables["scaling_runs"], tables["disk"]
    disk = disk[disk["disk"] == JOINER.disk]
    return {
        "Fig. 5a, 5c: EQ5 at Z4 (modelled)": (
            "% of the input",
            {
                "MB on the fullest machine": _pivot_series(load, "percent", "operator", "mb"),
                "seconds": _pivot_series(load, "percent", "operator", "seconds_modelled"),
            },
        ),
        "Fig. 5g, 5h: nearer to the square (modelled)": (
            "optimal mapping",
            {
                "tuples on a machine": _pivot_series(mapped, "optimum", "operator", "stored_mean"),
                "seconds": _pivot_series(mapped, "optimum", "operator", "seconds_modelled"),
            },
        ),
        "Fig. 5i, 5j: data and machines grow together (modelled)": (
            "machines",
            {
                "seconds, in memory": _pivot_series(scaled, "hosts", "query", "seconds_modelled"),
                "tuples per second": _pivot_series(scaled, "hosts", "query", "tuples_s_modelled"),
                "seconds, out of core": _pivot_series(disk, "hosts", "query", "seconds_modelled"),
            },
        ),
        "Fig. 5l: under fluctuations (modelled)": (
            "% of the input",
            {"seconds": _sample_every_two_percent(tables["fluctuation_runs"])},
        ),
    }


def _sample_every_two_percent(swung: pd.DataFrame) -> pd.DataFrame:
    """Return Fig. 5l: seconds by percent of the input, for each k Dynamic's and the oracle's."""
    at = np.arange(0.0, 101.0, 2.0)
    curves = {
        f"k = {k:g}{whose}": np.interp(at, rows["percent"], rows[column])
        for k, rows in swung.groupby("k")
        for whose, column in (("", "seconds_modelled"), (", oracle", "oracle_seconds"))
    }
    return pd.DataFrame(curves, index=at)


def _pivot_series(rows: pd.DataFrame, x: str, series: str, value: str) -> pd.DataFrame:
    table = rows.pivot_table(value, x, series, sort=False)
    return (table.sort_index() if x == "percent" else table).rename_axis(columns=None)


def figure_bars(tables: Mapping[str, pd.DataFrame]) -> dict[str, tuple[str, pd.DataFrame]]:
    """Return Fig. 5b, 5d to 5f, by title: the unit, and rows of query, operator and value.

    Values are means over seeds.
    """
    ends = final_batches(tables["runs"])
    columns = {
        "Fig. 5b: input load of the fullest machine": ("MB", ends["stored_max"] * MB),
        "Fig. 5b: storage of the cluster": ("GB", ends["stored_mean"] * ends["hosts"] * MB / 1e3),
        "Fig. 5d: execution time": ("seconds", ends["seconds_modelled"]),
        "Fig. 5e: throughput": ("tuples per second", ends["tuples"] / ends["seconds_modelled"]),
        "Fig. 5f: latency": ("ms", ends["latency_ms_modelled"]),
    }
    return {
        f"{title} (modelled)": (
            unit,
            ends.assign(value=value)
            .groupby(["query", "operator"], sort=False)["value"]
            .mean()
            .reset_index(),
        )
        for title, (unit, value) in columns.items()
    }
