"""The claims of Elseidy 2014, section 5, against the tables of ``figure_tables``: Table 2, Fig. 5.

Times, throughput and latency are modelled. Claims about runs are in ``dynamics``, those about SHJ
in ``hash_claims``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from braid_lab.common.claims import (
    ClaimRegistry,
    Finding,
    format_values,
    judge,
    judge_reading,
)
from braid_lab.theta import claim_settings as settings
from braid_lab.theta import compared_operators, dynamics, hash_claims
from braid_lab.theta.claim_frames import ThetaFigures as ThetaFigures
from braid_lab.theta.claim_frames import (
    column_by_query,
    load_per_percent,
    nonlinearity,
    seconds_by_skew,
)
from braid_lab.theta.cluster_model import JOINER
from braid_lab.theta.figures import FEW, HASHED, TIMED
from braid_lab.theta.printed import GROWTH

CLAIMS = ClaimRegistry(compared_operators.PAPER)
"""All claims: of one run, of the competitors, and of the modelled cluster."""
CLAIMS.include_claims(compared_operators.CLAIMS)
CLAIMS.include_claims(dynamics.CLAIMS)
CLAIMS.include_claims(hash_claims.CLAIMS)
LEAST_RESULT_US = 0.3
"""Microseconds of a result from which BCI is judged as bound by its results."""
ALMOST = 0.15
"""By how much the time may grow where scalability is "almost perfect"."""
COMPETITIVE = 1.25
"""The greatest ILF/ILF* of Theorem 4.4."""


@CLAIMS.claim(
    "Table 2",
    "StaticMid is slower than Dynamic at any skew: least ratio",
    is_required=True,
    setting=settings.SQUARE,
)
def square_check(times: pd.DataFrame) -> Finding:
    """Table 2: StaticMid is slower than Dynamic, at any skew."""
    ratio = {
        q: (seconds_by_skew(times, q, "StaticMid") / seconds_by_skew(times, q, "Dynamic")).min()
        for q in TIMED
    }
    return judge(format_values(ratio), min(ratio.values()) > 1.05)


@CLAIMS.claim(
    "Table 2",
    "on 16 machines EQ5 overflows under StaticMid and never under Dynamic: share of runs",
    is_required=True,
    setting=settings.FULL_MEMORY,
)
def overflow_check(times: pd.DataFrame) -> Finding:
    """Table 2: on 16 machines EQ5 overflows under StaticMid, and not under Dynamic."""
    rows = times[(times["query"] == "EQ5") & ~times["operator"].isin(HASHED)].groupby("operator")[
        "overflow"
    ]
    result = format_values(rows.mean())
    holds = rows.min()["StaticMid"] == 1 and rows.max()["Dynamic"] == 0
    return judge(result, holds)


@CLAIMS.claim(
    "Fig. 5a",
    "MB a percent of the input: 14 under StaticMid, 2 under Dynamic",
    is_required=True,
    setting=settings.GROWTHS,
)
def growth_check(runs: pd.DataFrame) -> Finding:
    """Fig. 5a: the input load grows by a printed number of MB for each percent of the input."""
    growth = {name: load_per_percent(runs, name) for name in ("StaticMid", "Dynamic")}
    result = ", ".join(f"{n} {mb:.1f} (printed {GROWTH[n]:g})" for n, mb in growth.items())
    why = (
        f"a tuple has {JOINER.tuple_bytes} bytes, by StaticMid's {GROWTH['StaticMid']:g} MB; "
        f"Dynamic's {GROWTH['Dynamic']:g} follows"
    )
    return judge(result, all(round(mb) == GROWTH[n] for n, mb in growth.items()), why)


@CLAIMS.claim(
    "Fig. 5a, 5c",
    "input load and time of EQ5 are linear in the input: greatest distance from the line",
    is_required=True,
    setting=settings.LINES,
)
def linear_check(runs: pd.DataFrame) -> Finding:
    """Fig. 5a, 5c: input load and time grow linearly; a tenth of the rise counts as none."""
    rows = runs[(runs["query"] == "EQ5") & (runs["operator"] != FEW)]
    bends = _find_greatest_bends(rows, "operator", ("stored_max", "seconds_modelled"))
    result = format_values(bends)
    why = f"{result}, as shares of the rise; less than a tenth counts. Dynamic begins in the square"
    return judge(result, bends.max() < 0.1, why)


def _find_greatest_bends(rows: pd.DataFrame, by: str, columns: Sequence[str]) -> pd.Series:
    """Return by a column the greatest nonlinearity of any column of any run."""
    runs = rows.groupby(["query", "operator", "seed"], sort=False)
    bends = [
        {by: run[by].iloc[0], "bend": max(nonlinearity(run, column) for column in columns)}
        for _, run in runs
    ]
    return pd.DataFrame(bends).groupby(by, sort=False)["bend"].max()


@CLAIMS.claim(
    "Section 5.2",
    "the other joins behave as EQ5: time is linear in the input, distance from the line",
    setting=settings.OTHER_LINES,
)
def other_lines_claim(runs: pd.DataFrame) -> Finding:
    """Section 5.2: the times of all joins are linear."""
    bends = _find_greatest_bends(
        runs[~runs["operator"].isin(HASHED)], "query", ("seconds_modelled",)
    )
    result = format_values(bends)
    why = (
        '"The other join queries are similar in behavior" (section 5.2): shares of the rise, '
        f"{result}; less than a tenth counts. BCI is bound by its results, and half of both "
        "streams has a quarter of the pairs"
    )
    return judge(result, bends.max() < 0.1, failure=why)


@CLAIMS.claim(
    "Fig. 5b",
    "StaticMid stores about 3 to 7 times what Dynamic does",
    is_required=True,
    setting=settings.PAIRED,
)
def load_claim(runs: pd.DataFrame) -> Finding:
    """Fig. 5b: StaticMid stores three to seven times as much as Dynamic; within a fifth counts."""
    ratio = column_by_query(runs, "StaticMid", "stored_mean") / column_by_query(
        runs, "Dynamic", "stored_mean"
    )
    ends = zip((ratio.min(), ratio.max()), (3, 7), strict=True)
    holds = all(abs(end / printed - 1) < 0.2 for end, printed in ends)
    result = format_values(ratio)
    return judge(result, holds, f"within a fifth of both ends: {result}")


@CLAIMS.claim(
    "Fig. 5b, 5d, 5e",
    "Dynamic behaves roughly the same as StaticOpt: input load and time",
    is_required=True,
    setting=settings.ORACLE,
)
def oracle_check(runs: pd.DataFrame) -> Finding:
    """Fig. 5b, 5d, 5e: Dynamic is close to the oracle's grid; a tenth counts as close."""
    load, seconds = (
        column_by_query(runs, "Dynamic", column) / column_by_query(runs, "StaticOpt", column)
        for column in ("stored_max", "seconds_modelled")
    )
    result = f"load {format_values(load)}; seconds {format_values(seconds)}"
    why = f"a tenth more counts as roughly the same: {result}"
    return judge(result, max(load.max(), seconds.max()) <= 1.1, why)


@CLAIMS.claim(
    "Fig. 5d, 5e",
    "Dynamic has at least twice the throughput of StaticMid, but for BCI",
    is_required=True,
    setting=settings.TIMED_PAIR,
)
def throughput_check(runs: pd.DataFrame) -> Finding:
    """Fig. 5d, 5e: as stated; the same tuples take as many times the seconds."""
    ratio = column_by_query(runs, "StaticMid", "seconds_modelled") / column_by_query(
        runs, "Dynamic", "seconds_modelled"
    )
    return judge(format_values(ratio), ratio.drop("BCI", errors="ignore").min() >= 2)


@CLAIMS.claim(
    "Fig. 5d",
    "the gap between StaticMid and Dynamic is small for BCI",
    is_required=True,
    setting=settings.RESULT_RANGES,
)
def result_bound_check(result_ranges: pd.DataFrame) -> Finding:
    """Fig. 5d: the gap is small if the join is bound by its results; less than a half counts."""
    by = result_ranges.pivot(index="result_us", columns="operator", values="seconds_modelled")
    ratio = by["StaticMid"] / by["Dynamic"]
    result = f"StaticMid / Dynamic by microseconds of a result {format_values(ratio)}"
    why = (
        f"if a result takes {LEAST_RESULT_US:g} µs at least, which the paper does not print: "
        f"{result}"
    )
    holds = ratio[ratio.index >= LEAST_RESULT_US].between(1, 1.5).all()
    return judge_reading(result, holds, why)


@CLAIMS.claim(
    "Fig. 5f",
    "adaptivity adds at most 20 ms to the mean latency",
    is_required=True,
    setting=settings.LATENCIES,
)
def latency_check(runs: pd.DataFrame) -> Finding:
    """Fig. 5f: as stated."""
    more = column_by_query(runs, "Dynamic", "latency_ms_modelled") - column_by_query(
        runs, "StaticMid", "latency_ms_modelled"
    )
    result = f"{format_values(more)} ms"
    why = (
        "of a modelled latency: two hops, a joiner's time for a tuple, and the wait for tuples "
        f'that migrate, without the hop that they add: {result}, less than "as little as 5ms and '
        'at most 20ms" (section 5.5)'
    )
    return judge_reading(result, more.max() <= 20, why)


@CLAIMS.claim(
    "Fig. 5g",
    "the gap in input load closes as the best mapping nears the square one",
    is_required=True,
    setting=settings.MAPPINGS,
)
def mappings_check(mapping_runs: pd.DataFrame) -> Finding:
    """Fig. 5g, 5h: the gap closes as the best mapping nears the square."""
    by = mapping_runs.pivot(index="optimum", columns="operator", values="stored_mean")
    order = mapping_runs["optimum"].unique()
    gap = (by["StaticMid"] / by["Dynamic"]).loc[order]
    holds = gap.is_monotonic_decreasing and gap.iloc[0] > 2 and abs(gap.iloc[-1] - 1) < 0.05
    return judge(format_values(gap), holds)


@CLAIMS.claim(
    "Fig. 5h", "the gap in time closes with it", is_required=True, setting=settings.TIMED_MAPPINGS
)
def mapping_times_check(mapping_runs: pd.DataFrame) -> Finding:
    """Fig. 5h: the gap in time closes too; in the square Dynamic is no better."""
    by = mapping_runs.pivot(index="optimum", columns="operator", values="seconds_modelled")
    gap = (by["StaticMid"] / by["Dynamic"]).loc[mapping_runs["optimum"].unique()]
    holds = gap.is_monotonic_decreasing and gap.iloc[0] > 2 and gap.iloc[-1] <= 1.01
    return judge(format_values(gap), holds)


@CLAIMS.claim(
    "Fig. 5i, 5j",
    "EQ5 and EQ7 take as long on more machines with as much more data",
    is_required=True,
    setting=settings.TIMED_SCALING,
)
def scaling_check(scaling_runs: pd.DataFrame) -> Finding:
    """Fig. 5i, 5j: perfect scalability is the same time; up to 15 % more counts as almost."""
    longer = _compare_with_fewest(scaling_runs)
    result = f"{format_values(longer)} times the seconds"
    why = f'"almost perfect scalability" (section 5.3): up to {ALMOST:.0%} more counts: {result}'
    return judge(result, longer.max() <= 1 + ALMOST, why)


def _compare_with_fewest(rows: pd.DataFrame) -> pd.Series:
    """Return the seconds of EQ5 and EQ7 over those on the fewest machines, the most by query."""
    by = rows.set_index(["hosts", "query"])["seconds_modelled"].unstack()[list(TIMED)]
    return (by / by.iloc[0]).max()


@CLAIMS.claim(
    "Fig. 5i",
    "BNCI's input load grows by 42 % from 32 to 64 machines, that of the others by at most 9 %",
    is_required=True,
    setting=settings.SCALING,
)
def replicated_load_check(scaling_runs: pd.DataFrame) -> Finding:
    """Fig. 5i: BNCI's input load, printed as 1.61 and 2.29 million tuples."""
    loads = scaling_runs.set_index(["query", "hosts"])["stored_mean"] / 1e6
    first, last = loads["BNCI", 32], loads["BNCI", 64]
    others = {q: loads[q, 64] / loads[q, 32] for q in TIMED}
    result = (
        f"{first:.2f} to {last:.2f} million tuples a machine (printed 1.61 to 2.29); "
        f"{format_values(others)} times"
    )
    holds = abs(last / first - 1.42) < 0.03 and abs(first - 1.61) < 0.1
    finding = judge(result, holds and max(others.values()) <= 1.09)
    gb = scaling_runs[scaling_runs["hosts"].isin((32, 64))]["gb"]
    return replace(finding, ran={"hosts": (32, 64), "gb": gb})


@CLAIMS.claim(
    "Fig. 5i, 5j",
    "out of core the same scaling, an order of magnitude slower",
    is_required=True,
    setting=settings.OUT_OF_CORE,
)
def storage_claim(scaling_runs: pd.DataFrame, disk: pd.DataFrame) -> Finding:
    """Fig. 5i, 5j: out of core everything scales alike, an order of magnitude slower."""
    memory = scaling_runs.set_index(["hosts", "query"])["seconds_modelled"]
    slower, longer = {}, {}
    for factor, rows in disk.groupby("disk"):
        ratio = rows.set_index(["hosts", "query"])["seconds_modelled"] / memory
        slower[factor], longer[factor] = ratio.min(), _compare_with_fewest(rows).max()
    times = ", ".join(f"{least:.1f} with {factor:g}" for factor, least in slower.items())
    result = f"{times}; EQ5 and EQ7 grow {max(longer.values()):.3g} times"
    why = (
        "of a model that multiplies a tuple's time by a factor of ours, at least that much as a "
        f"whole: {times}"
    )
    holds = max(longer.values()) <= 1 + ALMOST and min(slower.values()) > 9
    return replace(judge_reading(result, holds, why), ran={"disk": list(slower)})


@CLAIMS.claim(
    "Fig. 5k",
    "ILF/ILF* never exceeds 1.25, at all times, under k = 2, 4, 6 and 8",
    is_required=True,
    setting=settings.SWINGS,
)
def never_exceeded_claim(ratios: pd.DataFrame) -> Finding:
    """Fig. 5k: the ratio in all batches, to the two decimals that are printed."""
    most = ratios.groupby("k")["ratio"].max()
    over = int((ratios["ratio"] > COMPETITIVE).sum())
    result = f"at most, by k, {', '.join(f'{k:g}: {x:.4f}' for k, x in most.items())}"
    why = (
        f"to two decimals, as printed: the controller sees batches, and {over} of {len(ratios)} "
        f"exceed {COMPETITIVE}, by {max(0.0, most.max() - COMPETITIVE):.4f} at most"
    )
    if not over:
        return judge(result, True)
    return judge_reading(result, round(most.max(), 2) <= COMPETITIVE, why)


@CLAIMS.claim(
    "Fig. 5l, Lemma 4.5",
    "all migration costs are amortized: under every k fewer tuples move than are sent",
    is_required=True,
    setting=settings.SWINGS,
)
def amortised_check(fluctuation_runs: pd.DataFrame) -> Finding:
    """Fig. 5l, Lemma 4.5: under fluctuations migrations cost less than the tuples themselves."""
    spent = {k: _compute_migration_shares(rows) for k, rows in fluctuation_runs.groupby("k")}
    result = ", ".join(f"k = {k:g}: {share.max():.0%}" for k, share in spent.items())
    why = (
        f"tuples moved over tuples sent up to any time, {result} at most; the six units of Lemma "
        "4.5 allow three times as many as are sent"
    )
    return judge(result, 0 < max(share.max() for share in spent.values()) < 1, why)


def _compute_migration_shares(rows: pd.DataFrame) -> pd.Series:
    """Return by batch the tuples that migrations moved over those sent, replicas included."""
    return rows["moved"].cumsum() / rows["sent"].cumsum()


@CLAIMS.claim(
    "Fig. 5l",
    "under every k the time is linear, as all migrations are amortized: distance from the line",
    setting=settings.TIMED_SWINGS,
)
def progress_claim(fluctuation_runs: pd.DataFrame) -> Finding:
    """Fig. 5l: the curves are as straight as an oracle's, who migrates nothing."""
    by_k = {f"k = {k:g}": rows for k, rows in fluctuation_runs.groupby("k")}
    bends, oracle = (
        {k: nonlinearity(rows, column) for k, rows in by_k.items()}
        for column in ("seconds_modelled", "oracle_seconds")
    )
    longer = {k: rows["seconds_modelled"] / rows["oracle_seconds"] for k, rows in by_k.items()}
    most = max(ratio.max() for ratio in longer.values())
    result = (
        f"{format_values(bends)}; an oracle's {format_values(oracle)}; {most:.2f} times his seconds"
    )
    why = (
        "beside the oracle of Fig. 5k, who has the best mapping at all times and moves nothing: "
        "his curve is no line either, since a tuple of the smaller stream is copied more and a "
        f"swing changes which one that is: {result} at most. Less than a tenth and less than twice "
        "count as linear"
    )
    excess = max(bends[k] - oracle[k] for k in by_k)
    return judge_reading(result, excess < 0.1 and most < 2, why)
