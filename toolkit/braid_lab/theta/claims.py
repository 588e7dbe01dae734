"""The claims of Elseidy 2014, section 5, against the tables of ``figure_tables``: Table 2, Fig. 5.

Times, throughput and latency are modelled. Claims about runs are in ``dynamics``, those about SHJ
in ``hash_claims``, those about more machines in ``scaling_claims``.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from braid_lab.common.claims import (
    ClaimRegistry,
    Finding,
    format_values,
    judge,
    judge_reading,
)
from braid_lab.theta import claim_settings as settings
from braid_lab.theta import compared_operators, dynamics, hash_claims, scaling_claims
from braid_lab.theta.claim_frames import ThetaFigures as ThetaFigures
from braid_lab.theta.claim_frames import (
    column_by_query,
    load_per_percent,
    name_full_memories,
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
CLAIMS.include_claims(scaling_claims.CLAIMS)
LEAST_RESULT_US = 0.3
"""Microseconds of a result from which BCI is judged as bound by its results."""
COMPETITIVE = 1.25
"""The greatest ILF/ILF* of Theorem 4.4."""
STRAIGHT = 0.1
"""Greatest distance from the line between its ends of a linear curve, as a share of its rise."""
LINE = "the line between zero and the end, as shares of the rise"
SLOWER, SAME, SMALL_GAP = 1.05, 1.1, (1.0, 1.5)
"""Ratios of seconds that count as slower, as roughly the same, and as a gap that is not large."""
PAIR = ("Dynamic", "StaticMid")
STORED_MORE = (3, 7)
"""How many times as much StaticMid stores, as printed."""
FAR, CLOSE, CLOSED = 2.0, 0.05, 1.01
"""A gap that closes: the ratio before, how far from one that of loads ends, and that of seconds."""


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
    result = (
        f"{format_values(ratio)} times the seconds of Dynamic, at the skew with the least; "
        f"{SLOWER:g} times counts as slower"
    )
    rows = times[times["operator"].isin(PAIR) & times["query"].isin(TIMED)]
    return name_full_memories(judge(result, min(ratio.values()) >= SLOWER), times, rows)


@CLAIMS.claim(
    "Table 2",
    "on 16 machines EQ5 overflows under StaticMid and never under Dynamic, at any skew",
    is_required=True,
    setting=settings.FULL_MEMORY,
)
def overflow_check(times: pd.DataFrame) -> Finding:
    """Table 2: on 16 machines EQ5 overflows under StaticMid, and not under Dynamic."""
    rows = times[times["query"] == "EQ5"].set_index(["operator", "skew"])["overflow"]
    square, dynamic = rows["StaticMid"], rows["Dynamic"]
    result = (
        f"a memory is full in a share of runs of {format_values(square)} under StaticMid, and of "
        f"{format_values(dynamic)} under Dynamic"
    )
    return judge(result, square.min() == 1 and dynamic.max() == 0, result)


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
        f"if a tuple has {JOINER.tuple_bytes} bytes, which the paper does not print, and which are "
        f"chosen for StaticMid's {GROWTH['StaticMid']:g} MB: {result}, of the fullest machine; "
        "agreement in whole MB counts"
    )
    return judge_reading(result, all(round(mb) == GROWTH[n] for n, mb in growth.items()), why)


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
    result = (
        f"distances from {LINE}: {format_values(bends)}, the greater of load and time in any seed; "
        f"less than {STRAIGHT:g} counts"
    )
    return name_full_memories(judge(result, bends.max() < STRAIGHT), runs, rows)


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
    rows = runs[~runs["operator"].isin(HASHED)]
    bends = _find_greatest_bends(rows, "query", ("seconds_modelled",))
    result = format_values(bends)
    why = (
        f'"The other join queries are similar in behavior" (section 5.2): distances from '
        f"{LINE}, of the operator that is farthest: {result}; less than {STRAIGHT:g} counts"
    )
    return name_full_memories(judge(result, bends.max() < STRAIGHT, why), runs, rows)


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
    ends = zip((ratio.min(), ratio.max()), STORED_MORE, strict=True)
    holds = all(abs(end / printed - 1) < 0.2 for end, printed in ends)
    least, most = STORED_MORE
    result = (
        f"{format_values(ratio)} times, in the mean of machines; that the least is within a fifth "
        f"of {least} and the greatest within a fifth of {most} counts"
    )
    return judge(result, holds, result)


@CLAIMS.claim(
    "Fig. 5b, 5d, section 5.2",
    "Dynamic behaves roughly the same as StaticOpt: input load and time",
    is_required=True,
    setting=settings.ORACLE,
)
def oracle_check(runs: pd.DataFrame) -> Finding:
    """Fig. 5b, 5d: Dynamic is close to the oracle's grid; a tenth counts as close."""
    load, seconds = (
        column_by_query(runs, "Dynamic", column) / column_by_query(runs, "StaticOpt", column)
        for column in ("stored_mean", "seconds_modelled")
    )
    result = (
        f"{format_values(load)} times the load in the mean of machines, {format_values(seconds)} "
        f"times the seconds; up to {SAME:g} times counts as roughly the same"
    )
    finding = judge(result, max(load.max(), seconds.max()) <= SAME)
    return name_full_memories(finding, runs, runs[runs["operator"].isin(("Dynamic", "StaticOpt"))])


@CLAIMS.claim(
    "Fig. 5e",
    "Dynamic has at least twice the throughput of StaticMid, but for BCI",
    is_required=True,
    setting=settings.TIMED_PAIR,
)
def throughput_check(runs: pd.DataFrame) -> Finding:
    """Fig. 5e: as stated; the same tuples take as many times the seconds."""
    ratio = column_by_query(runs, "StaticMid", "seconds_modelled") / column_by_query(
        runs, "Dynamic", "seconds_modelled"
    )
    result = f"{format_values(ratio)} times; two times counts for all but BCI"
    finding = judge(result, ratio.drop("BCI", errors="ignore").min() >= 2)
    return name_full_memories(finding, runs, runs[runs["operator"].isin(PAIR)])


@CLAIMS.claim(
    "Fig. 5d, section 5.2",
    "the gap between StaticMid and Dynamic is not large for BCI",
    is_required=True,
    setting=settings.RESULT_RANGES,
)
def result_bound_check(result_ranges: pd.DataFrame) -> Finding:
    """Section 5.2: the gap is not large as the join is bound by results; up to a half counts."""
    by = result_ranges.pivot(index="result_us", columns="operator", values="seconds_modelled")
    ratio = by["StaticMid"] / by["Dynamic"]
    last = result_ranges.iloc[-1]
    result = (
        f"seconds of StaticMid / Dynamic by microseconds of a result {format_values(ratio)}, with "
        f"{last['results_modelled'] / last['tuples']:,.0f} results for each of "
        f"{last['tuples'] / 1e6:.1f} million tuples"
    )
    why = (
        f"if a result takes {LEAST_RESULT_US:g} µs at least, which the paper does not print: "
        f"{result}; {SMALL_GAP[0]:g} to {SMALL_GAP[1]:g} counts as not large"
    )
    holds = ratio[ratio.index >= LEAST_RESULT_US].between(*SMALL_GAP).all()
    return name_full_memories(judge_reading(result, holds, why), result_ranges, result_ranges)


@CLAIMS.claim(
    "Fig. 5f, section 5.5",
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
        f"that migrate, without the hop that they add: {result} more than under StaticMid, of "
        f'"as little as 5ms and at most 20ms" (section 5.5)'
    )
    finding = judge_reading(result, more.max() <= 20, why)
    return name_full_memories(finding, runs, runs[runs["operator"].isin(PAIR)])


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
    holds = gap.is_monotonic_decreasing and gap.iloc[0] >= FAR and abs(gap.iloc[-1] - 1) <= CLOSE
    result = (
        "tuples stored at the end, StaticMid / Dynamic in the mean of machines, by best mapping "
        f"{format_values(gap)}; that it falls from {FAR:g} at least to one within {CLOSE:.0%} "
        "counts"
    )
    return judge(result, holds, result)


@CLAIMS.claim(
    "Fig. 5h",
    "the gap in time closes as the best mapping nears the square one",
    is_required=True,
    setting=settings.TIMED_MAPPINGS,
)
def mapping_times_check(mapping_runs: pd.DataFrame) -> Finding:
    """Fig. 5h: the gap in time closes too; in the square Dynamic is no better."""
    by = mapping_runs.pivot(index="optimum", columns="operator", values="seconds_modelled")
    gap = (by["StaticMid"] / by["Dynamic"]).loc[mapping_runs["optimum"].unique()]
    holds = gap.is_monotonic_decreasing and gap.iloc[0] >= FAR and gap.iloc[-1] <= CLOSED
    result = (
        f"seconds, StaticMid / Dynamic by best mapping {format_values(gap)}; that it falls from "
        f"{FAR:g} at least to {CLOSED:g} at most counts"
    )
    return judge(result, holds, result)


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
        f"to two decimals, as {COMPETITIVE} is printed, of a controller that sees batches, with "
        "the ILF of a mapping by its formula from the decision on, not from the end of its "
        "migration: "
        f"ILF/ILF* is above {COMPETITIVE} in {over:,} of {len(ratios):,} batches; {result}"
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
    each = ", ".join(f"k = {k:g}: {share.max():.0%}" for k, share in spent.items())
    still = [f"k = {k:g}" for k, share in spent.items() if not share.any()]
    none = f"; with {', '.join(still)} nothing migrates" if still else ""
    result = (
        f"tuples moved over tuples sent, replicas included, up to any time {each} at most{none}"
    )
    return judge(result, 0 < max(share.max() for share in spent.values()) < 1, result)


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
    still = [k for k, rows in by_k.items() if not rows["moved"].any()]
    none = f". With {', '.join(still)} nothing migrates" if still else ""
    most = max(ratio.max() for ratio in longer.values())
    result = (
        f"distances from {LINE}: {format_values(bends)}, the oracle's {format_values(oracle)}; "
        f"{most:.2f} times the oracle's seconds at most"
    )
    why = (
        "beside the oracle of Fig. 5k, which has the best mapping at all times and moves nothing: "
        f"{result}. Less than {STRAIGHT:g} more than its distance, and less than twice its "
        f"seconds, count as linear{none}"
    )
    excess = max(bends[k] - oracle[k] for k in by_k)
    return judge_reading(result, excess < STRAIGHT and most < 2, why)
