"""The claims of Wang 2008, chapter 8, Fig. 8.1 to 8.3, against ``braid_lab.slices.experiments``.

All is counted on the chain placement itself, except C_sys, which is modelled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from braid.papers.slices import chain_optimizer as slices

from braid_lab.common.claims import (
    ClaimRegistry,
    Finding,
    format_range,
    format_shares,
    judge,
    judge_reading,
)
from braid_lab.slices.claim_settings import BY_RATE, LEARNED, MERGED, SETTINGS
from braid_lab.slices.cost import SharedLoad, unfiltered_statistics
from braid_lab.slices.counted_chains import ChainExperiment
from braid_lab.slices.experiments import (
    JOINS,
    RATES,
    ROUTERS,
    SIGMAS,
    SPREADS,
    WINDOWS,
    merged_savings,
    overhead_keeping_uniform,
    overhead_range,
    overhead_ranges,
    printed_chains,
    window_distribution,
)

CLAIMS = ClaimRegistry("Wang 2008, I", SETTINGS)


def judge_average(mean: float, each: pd.Series, reading: str) -> Finding:
    """Return the finding on an average that the book prints as 20 % to 30 %."""
    return judge_reading(f"{mean:.1%} ({format_shares(each)})", 0.2 <= mean <= 0.3, reading)


S_JOIN = 0.025
"""The selectivity of the join in section 8.3."""
QUERIES = 12
"""Number of queries that the planner is asked for."""
PLANNED = {"queries": QUERIES, "join": S_JOIN, "rates": RATES}
"""Values of the settings of what the planner is asked for."""
LARGE_GAIN = 0.4
"""The gain that Fig. 8.2(f) reaches."""
KEYS = ["windows", "sigma", "join", "rate", "seed"]
RIVALS = ["pull-up", "partition"]


# Fig. 8.1 and 8.2: ``experiments.strategy_counts``


def _pivot_by_strategy(table: pd.DataFrame, value: str) -> pd.DataFrame:
    return table.pivot(index=KEYS, columns="strategy", values=f"{value}_counted")


def _compute_saved_state(table: pd.DataFrame) -> pd.Series:
    """Return the fraction of state that the chain saves against the next best strategy."""
    state = _pivot_by_strategy(table, "state")
    return 1 - state["state-slice"] / state[RIVALS].min(axis=1)


def _compute_service_gain(table: pd.DataFrame) -> pd.Series:
    """Return the chain's service rate over the next best, less 1."""
    service = _pivot_by_strategy(table, "service")
    return service["state-slice"] / service[RIVALS].max(axis=1) - 1


@CLAIMS.claim("Fig. 8.1", "the chain always holds least", is_required=True)
def least_state_claim(three: pd.DataFrame) -> Finding:
    """Fig. 8.1: the chain always holds the least state."""
    saved = _compute_saved_state(three).min()
    return judge(f"{saved:.1%} less and more", saved > 0)


@CLAIMS.claim("Fig. 8.1, Table 8.1", "memory savings range from 20% to 30%", is_required=True)
def state_savings_claim(three: pd.DataFrame) -> Finding:
    """Fig. 8.1: the chain holds 20 % to 30 % less state."""
    state = _pivot_by_strategy(three, "state")
    saved = 1 - state["state-slice"] / state[RIVALS].max(axis=1)
    panels = saved.groupby(["windows", "sigma"]).mean()
    each = panels.xs(0.5, level="sigma")
    next_best = _compute_saved_state(three)
    reading = (
        "the mean over Table 8.1, not each of its settings, against the rival that holds more; by "
        "the windows it is "
        f"{format_range(each.min(), each.max())} for half of A selected, setting by setting "
        f"{format_range(panels.min(), panels.max())}, and against the next best "
        f"{format_range(next_best.min(), next_best.max())}"
    )
    return judge_average(panels.mean(), each, reading)


@CLAIMS.claim(
    "Fig. 8.1",
    "S_join has no effect on the state",
    is_required=True,
    setting=LEARNED,
)
def join_claim(
    seconds: float = 90.0, settings: Sequence[tuple[str, float]] = tuple(product(WINDOWS, SIGMAS))
) -> Finding:
    """Fig. 8.1: the join's selectivity has no effect on the state, though the policy knows it."""
    experiments = [[_make_run(seconds, *setting, join) for join in JOINS] for setting in settings]
    held = [[run.stored_tuples("state-slice") for run in runs] for runs in experiments]
    differs = max(max(of) - min(of) for of in held)
    finding = judge(f"differs by at most {differs:.0f} tuples", differs == 0)
    ran = {**experiments[0][0].list_settings(), "settings": len(settings), "joins": JOINS}
    return replace(finding, ran=ran)


def _make_run(seconds: float, windows: str, sigma: float, join: float) -> ChainExperiment:
    load = SharedLoad(20.0, WINDOWS[windows], sigma, join)
    return ChainExperiment(load, seconds, 1.0, measures_results=True)


@CLAIMS.claim("Fig. 8.2", "the chain always has the highest service rate", is_required=True)
def service_claim(three: pd.DataFrame) -> Finding:
    """Fig. 8.2: the chain always has the highest service rate, if its slices cost little."""
    gain = _compute_service_gain(three).min()
    limit = _find_overhead_limit(three)
    reading = (
        "where comparisons are what costs, and one more slice costs each tuple that passes it less "
        f"than {limit:.2g} of them at all rates (C_sys, which the book does not print)"
    )
    return judge_reading(f"{gain:.1%} more and better", gain > 0, reading)


def _find_overhead_limit(three: pd.DataFrame) -> float:
    """Return the C_sys from which on some rival has the higher service rate in some setting.

    Strategies deliver the same results, so that those with fewer comparisons are better.
    """
    cost = _pivot_by_strategy(three, "compared")
    passed = _pivot_by_strategy(three, "passed")
    limits = [
        (cost[rival] - cost["state-slice"]) / (passed["state-slice"] - passed[rival])
        for rival in RIVALS
    ]
    return float(min(limit.min() for limit in limits))


@CLAIMS.claim(
    "Fig. 8.2",
    "its gain grows with the rates",
    setting=BY_RATE,
)
def rates_claim(gains: pd.DataFrame) -> Finding:
    """Fig. 8.2: the gain grows with the rates; ``gains`` are of ``mean_gains.gain_by_rate``."""
    by = gains.pivot_table("gain_counted", ["windows", "sigma", "seed"], "rate")
    more = by[max(by)] - by[min(by)]
    means = more.groupby(level=["windows", "sigma"]).mean()
    seeds = gains["seed"].nunique()
    return judge_reading(
        f"from {min(by):g} to {max(by):g} tuples/s by {means.min():.2%} to {means.max():.2%}, the "
        f"mean of {seeds} seeds",
        (means > 0).all(),
        f"in the mean of {seeds} seeds, in all {len(means)} settings: by "
        f"{100 * more.mean():.2f} points with a standard error of {100 * more.sem():.2f}. In one "
        f"run it grows in {more.gt(0).mean():.0%} of them, since which tuples pass the selection "
        "changes the gain by more",
    )


@CLAIMS.claim(
    "Fig. 8.2(f)", "with large join selectivities and high-volume streams its gain reaches 40%"
)
def forty_percent_gain_claim(three: pd.DataFrame) -> Finding:
    """Fig. 8.2: the gain reaches 40 % where S_join and the rates are those at the upper end."""
    gain = _compute_service_gain(three).xs(max(JOINS), level="join")
    by = gain.groupby(["rate", "windows", "sigma"]).mean()
    slow, fast = by[by.index.levels[0].min()], by[by.index.levels[0].max()]
    middle = "uniform", 0.5
    reading = (
        f"for uniform windows and half of A selected, {fast[middle]:.1%} at S⋈ = {max(JOINS):g} "
        f"and {gain.index.get_level_values('rate').max():g} tuples/s: the text does not say which "
        f"windows and selection (f) has. Over all nine it is {format_range(fast.min(), fast.max())}"
        f", {fast.ge(LARGE_GAIN).sum()} of them from {LARGE_GAIN:.0%}. The rates matter "
        f"little: at the lowest it is {slow[middle]:.1%}"
    )
    finding = judge_reading(f"{fast[middle]:.1%}", fast[middle] >= LARGE_GAIN, reading)
    return replace(finding, ran={"join": max(JOINS)})


# Fig. 8.3: ``experiments.chain_counts`` and ``overhead_ranges``


def _compute_chain_gain(many: pd.DataFrame) -> pd.DataFrame:
    """Return CPU-Opt's service rate over that of Mem-Opt, less 1, by number of queries."""
    keys = ["windows", "queries", "rate", "seed"]
    by = many.pivot(index=keys, columns="chain", values="service_modelled")
    return (by["CPU-Opt"] / by["Mem-Opt"] - 1).unstack("queries")


@CLAIMS.claim("Fig. 8.3(a)", "CPU-Opt of 12 uniform windows is the Mem-Opt chain", is_required=True)
def uniform_claim(many: pd.DataFrame) -> Finding:
    """Fig. 8.3(a): for 12 uniform windows CPU-Opt is Mem-Opt, and it gains nothing."""
    even = many.query("windows == 'uniform' and queries == @QUERIES")
    gain = _compute_chain_gain(many).loc["uniform"].get(QUERIES)
    high = overhead_ranges((QUERIES,), routers=ROUTERS).query("said == 'every window'")
    most = high.groupby("router")["high_modelled"].min()
    limits = ", ".join(f"{v:.2g} where the router {k}" for k, v in most.items())
    result = f"{even['slices'].min()} slices, gain {abs(gain).max():.1%}"
    reading = f"with C_sys below what merges them; one for all rates is {limits}"
    holds = (even["slices"] == QUERIES).all() and abs(gain).max() < 1e-9
    return replace(judge_reading(result, holds, reading), ran={"queries": QUERIES})


@CLAIMS.claim(
    "Fig. 8.3(b), (c)", "CPU-Opt has fewer slices for skewed windows, and gains", is_required=True
)
def skewed_gain_claim(many: pd.DataFrame) -> Finding:
    """Fig. 8.3(b), (c): for skewed windows CPU-Opt has fewer slices and gains."""
    skewed = _compute_chain_gain(many).drop("uniform", level="windows")
    fewer = many.query("windows != 'uniform'").pivot(
        index=["windows", "queries", "rate", "seed"], columns="chain", values="slices"
    )
    result = f"{skewed.min(axis=None):.2%} and more, at most {fewer['CPU-Opt'].max()} slices"
    holds = skewed.min(axis=None) > 0 and (fewer["CPU-Opt"] < fewer["Mem-Opt"]).all()
    least = _find_merging_overheads("looks up")
    reading = (
        "with a C_sys of nine tenths of what merges uniform windows, which the book does not "
        f"print; {QUERIES} skewed windows are merged from {_format_by_rate(least)} on"
    )
    return judge_reading(result, holds, reading)


def _find_merging_overheads(router: str) -> pd.Series:
    """Return, by rate, the C_sys from which 12 skewed windows are merged, whichever they are."""
    rows = [
        (rate, overhead_range(windows, windows, rate, S_JOIN, ROUTERS[router])[1])
        for windows in (window_distribution(name) for name in SPREADS if name != "uniform")
        for rate in RATES
    ]
    return pd.DataFrame(rows, columns=["rate", "limit"]).groupby("rate")["limit"].max().clip(0)


def _format_by_rate(values: pd.Series) -> str:
    """Return numbers by rate as text."""
    numbers = ", ".join(f"{value:.2g}" for value in values)
    return f"{numbers} comparisons at {', '.join(f'{rate:g}' for rate in values.index)} tuples/s"


@CLAIMS.claim(
    "Fig. 8.3(d), (e)", "the gain of CPU-Opt grows with the number of queries", is_required=True
)
def queries_claim(many: pd.DataFrame) -> Finding:
    """Fig. 8.3(d), (e): the gain of CPU-Opt grows with the number of queries."""
    gain = _compute_chain_gain(many).drop("uniform", level="windows")
    text = "; ".join(f"{n}: {format_range(gain[n].min(), gain[n].max())}" for n in gain)
    grows = (gain.diff(axis=1).iloc[:, 1:] > 0).all(axis=None)
    by = {part: _grows_with_queries(part, tuple(gain)) for part in (0.1, 0.3, 1, 3, 10, 30)}
    reading = (
        "with a C_sys of nine tenths of what merges uniform windows, which the book does not "
        f"print; by the model with {', '.join(f'{part:g}' for part, is_so in by.items() if is_so)} "
        f"times it too, of {', '.join(map(str, by))} tried"
    )
    return judge_reading(text, grows, reading)


def _grows_with_queries(part: float, queries: tuple[int, ...]) -> bool:
    """Return whether the modelled gain rises with the queries, with this part of C_sys."""
    gains = []
    for rate, name in product(RATES, SPREADS):
        overhead = part * overhead_keeping_uniform(rate, S_JOIN)
        row = [
            merged_savings(
                window_distribution(name, n),
                unfiltered_statistics((rate, rate), S_JOIN, overhead, n, lookup=True),
            )
            for n in queries
        ]
        gains += [row] if name != "uniform" else []
    return bool((np.diff(gains, axis=1) > 0).all())


@CLAIMS.claim(
    "Fig. 8.3(b)",
    "all small windows are merged together, 12 mostly small ones",
    is_required=True,
    setting=MERGED,
)
def merged_small_windows_claim() -> Finding:
    """Fig. 8.3(b): CPU-Opt merges small windows, while it leaves uniform windows alone."""
    return _judge_merging("mostly small", "small ones merged", "")


@CLAIMS.claim(
    "Fig. 8.3(c)",
    "small and large windows are each merged, 12 Small-Large ones",
    is_required=True,
    setting=MERGED,
)
def merged_ends_claim() -> Finding:
    """Fig. 8.3(c): CPU-Opt merges both ends, while it leaves uniform windows alone."""
    third = "; between the small and the large windows a third slice is left"
    return _judge_merging("small large", "small, between, large", third)


def _judge_merging(name: str, statement: str, remark: str) -> Finding:
    """Return whether some C_sys merges the slices of a statement of section 8.3, and which.

    The planner itself is asked in the middle of the range.
    """
    low, high = _find_range_beside_uniform("looks up", statement)
    planned = [
        _plan_chain(name, rate, c) == printed_chains(name)[statement]
        and len(_plan_chain("uniform", rate, c)) == QUERIES
        for rate, c in ((low + high) / 2).items()
        if low[rate] < high[rate]
    ]
    result = f"planned so at {sum(planned)} of {len(RATES)} rates"
    reading = (
        "with a router that looks each result up once, and a C_sys for each rate: above "
        f"{', '.join(f'{c:.2g}' for c in low)} and below {_format_by_rate(high)}{remark}"
    )
    finding = judge_reading(result, sum(planned) == len(RATES), reading)
    return replace(finding, ran=PLANNED)


def _find_range_beside_uniform(router: str, statement: str) -> tuple[pd.Series, pd.Series]:
    """Return, by rate, the C_sys between which a chain is best and uniform windows stay."""
    ranges = overhead_ranges((QUERIES,), routers=ROUTERS).set_index(["router", "said", "rate"])
    of, most = (ranges.loc[router].loc[k] for k in (statement, "every window"))
    return of["low_modelled"], np.minimum(of["high_modelled"], most["high_modelled"])


def _plan_chain(name: str, rate: float, overhead: float, lookup: bool = True) -> slices.Chain:
    """Return the planner's CPU-Opt chain of 12 windows."""
    s = unfiltered_statistics((rate, rate), S_JOIN, overhead, QUERIES, lookup)
    return slices.cpu_chain(window_distribution(name, QUERIES), s)


@CLAIMS.claim(
    "Fig. 8.3(c)",
    "CPU-Opt has 2 slices for 12 Small-Large windows, with a C_sys that spares uniform ones",
    setting=MERGED,
)
def two_slices_claim() -> Finding:
    """Fig. 8.3(c): two slices for Small-Large windows, while uniform ones are left alone."""
    bounds = {name: _find_range_beside_uniform(name, "two slices") for name in ROUTERS}
    holds = any((low < high).any() for low, high in bounds.values())
    ranges = overhead_ranges((QUERIES,)).groupby("said")
    from_ = ranges["low_modelled"].min()["two slices"]
    to = ranges["high_modelled"].max()["every window"]
    ends = np.array(window_distribution("small large", QUERIES))
    gap = int(np.diff(ends).argmax())
    why = (
        '"the CPU-Opt chain actually will have only 2 sliced joins" (8.3): two slices do without '
        f"the ages from {ends[gap]:g} to {ends[gap + 1]:g} s that no window ends in. Where the "
        f"router compares, a slice must cost at least {from_:.0f} comparisons a tuple for "
        f"that, and uniform windows are merged from {to:.0f} on at the latest; "
        "where it looks up, no C_sys gives two slices"
    )
    result = f"from C_sys = {from_:.0f} on; uniform ones up to {to:.0f}"
    return replace(judge(result, holds, failure=why), ran=PLANNED)


@CLAIMS.claim(
    "Fig. 8.3",
    "slices of CPU-Opt for {queries} queries: all of them for uniform, fewer for skewed windows "
    f"({', '.join(SPREADS)})",
    is_required=True,
    setting=MERGED,
)
def skewed_claim(queries: int = QUERIES) -> Finding:
    """Fig. 8.3: some C_sys leaves uniform windows alone and merges skewed ones.

    This holds with a router that compares, too. The planner is asked at both ends of the range.
    """
    low, results, holds = _find_merging_overheads("compares"), [], True
    high = pd.Series({rate: overhead_keeping_uniform(rate, S_JOIN, "compares") for rate in RATES})
    for rate, part in product(RATES, (0.05, 1.0)):
        overhead = low[rate] + part * (high[rate] - low[rate])
        cuts = {name: len(_plan_chain(name, rate, overhead, lookup=False)) for name in SPREADS}
        results.append(f"{', '.join(map(str, cuts.values()))} (C_sys {overhead:.3g})")
        holds &= cuts.pop("uniform") == queries and max(cuts.values()) < queries
    reading = (
        "with a C_sys for each rate, which the book does not print: where the router compares, "
        f"above {', '.join(f'{c:.2g}' for c in low)} and up to {_format_by_rate(high)}"
    )
    return replace(judge_reading("; ".join(results), holds, reading), ran=PLANNED)
