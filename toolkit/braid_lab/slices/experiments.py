"""The experiments on state slices: Wang 2008, Fig. 5.8 to 5.10, 6.4 to 6.7, 8.1 to 8.3.

All is counted or modelled. Columns that end in ``_modelled`` are closed forms of
``braid.papers.slices``. Those that end in ``_counted`` are numbers of tuples and comparisons of the
chain placement itself, run over Poisson arrivals of two streams without tuples
(``chain_counting.ChainExperiment``). Results are those of a tuple by tuple count
(``counting.TupleCounts``), where pairs match by a seeded draw, as in section 8.1.

The book measures a service rate, results per second of a machine. Here it is results per 1000
comparisons, each result counted once for every query that it serves. If running one more slice
costs something, C_sys, it is part of the comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

import pandas as pd
from braid.papers.slices import chain_optimizer as slices
from braid.papers.slices.chain_optimizer import Chain

from braid_lab.common.recorded_settings import record_values, records_arguments
from braid_lab.slices import cost as costs
from braid_lab.slices import join_tree_costs as tree_costs
from braid_lab.slices.cost import SharedLoad, unfiltered_statistics
from braid_lab.slices.counted_chains import ChainExperiment
from braid_lab.slices.counted_plans import plan_joins

WINDOWS = {
    "mostly small": (5.0, 10.0, 30.0),
    "uniform": (10.0, 20.0, 30.0),
    "mostly large": (20.0, 25.0, 30.0),
}
"""Table 8.1: windows of three queries, in seconds."""

SIGMAS = (0.2, 0.5, 0.8)
"""Table 8.1: selectivities of the selection."""

JOINS = (0.025, 0.1, 0.4)
"""Table 8.1: selectivities of the join."""

RATES = (20.0, 40.0, 60.0, 80.0)
"""Tuples per second and stream, as in all of chapter 8."""

ROUTERS = {"compares": False, "looks up": True}
"""Whether a router looks a result up once (a router of ours).

Otherwise it compares the result with each window of its slice.
"""

STEP = 0.5
"""Seconds of a micro-batch of the chain."""

SPARING = 0.9
"""Part of the C_sys that merges uniform windows, which are left alone with it."""

GRID = tuple(round(0.05 * k, 2) for k in range(1, 20))
"""Ratios and selectivities of the surfaces."""


SPREADS = {
    "uniform": ((0, 30, 12),),
    "mostly small": ((0, 10, 10), (10, 30, 2)),
    "small large": ((0, 6, 6), (24, 30, 6)),
}
"""Table 8.2: ranges of windows, (from, to, how many of 12 queries), in seconds."""


def window_distribution(distribution: str, queries: int = 12) -> Chain:
    """Return the windows of Table 8.2 in seconds, for any multiple of 12 queries.

    For more than 12 the same ranges are cut finer. Raises ValueError for another distribution or
    number.
    """
    if distribution not in SPREADS or queries < 12 or queries % 12:
        names = ", ".join(SPREADS)
        raise ValueError(
            f"{distribution!r} for {queries} queries; there are {names}, for 12 queries or a "
            "multiple of it"
        )
    more = queries // 12
    steps = [(low, (high - low) / (n * more), n * more) for low, high, n in SPREADS[distribution]]
    return tuple(low + k * step for low, step, n in steps for k in range(1, n + 1))


@records_arguments
def memory_savings(grid: Sequence[float] = GRID) -> pd.DataFrame:
    """Return Fig. 5.8: rho, sigma, against, saved_modelled.

    The latter is the saved fraction of the other strategy's state, Eq. 5.2.
    """
    rows = []
    for rho, sigma in product(grid, repeat=2):
        s = costs.chain_savings(rho, sigma, 0.1)
        rows += [
            (rho, sigma, "pull-up", s.memory_pull_up),
            (rho, sigma, "partition", s.memory_partition),
        ]
    return pd.DataFrame(rows, columns=["rho", "sigma", "against", "saved_modelled"])


@records_arguments
def cpu_savings(grid: Sequence[float] = GRID, joins: Sequence[float] = JOINS) -> pd.DataFrame:
    """Return Fig. 5.9 and 5.10: rho, sigma, join, against, saved_modelled.

    The latter is the saved fraction of the other strategy's comparisons, Eq. 5.2.
    """
    rows = []
    for rho, sigma, join in product(grid, grid, joins):
        s = costs.chain_savings(rho, sigma, join)
        rows += [
            (rho, sigma, join, "pull-up", s.cpu_pull_up),
            (rho, sigma, join, "partition", s.cpu_partition),
        ]
    return pd.DataFrame(rows, columns=["rho", "sigma", "join", "against", "saved_modelled"])


@records_arguments
def tree_ratios(grid: Sequence[float] = GRID) -> pd.DataFrame:
    """Return Fig. 6.4 to 6.7: m, n, resource, against, ratio_modelled, printed_modelled.

    Ratios are the chains' costs over those of the other strategy. ``printed_modelled`` is Eq. 6.4
    and 6.8 as printed; for CPU they differ (``join_tree_costs``).
    """
    rows = []
    for m, n in product(grid, repeat=2):
        memory, work, printed = (
            tree_costs.memory_ratios(m, n),
            tree_costs.cpu_ratios(m, n),
            tree_costs.printed_cpu_ratios(m, n),
        )
        for k, against in enumerate(("isolated", "pull-up")):
            rows += [
                (m, n, "memory", against, memory[k], memory[k]),
                (m, n, "CPU", against, work[k], printed[k]),
            ]
    return pd.DataFrame(
        rows, columns=["m", "n", "resource", "against", "ratio_modelled", "printed_modelled"]
    )


def printed_ratios(trees: pd.DataFrame) -> pd.DataFrame:
    """Return the CPU ratios of ``tree_ratios`` by Eq. 6.8 as printed (Fig. 6.6 and 6.7)."""
    work = trees[trees["resource"] == "CPU"]
    return work.assign(
        against=work["against"] + ", as printed", ratio_modelled=work["printed_modelled"]
    )


STRATEGIES = {
    "state-slice": costs.state_slice_cost,
    "pull-up": costs.pull_up_cost,
    "partition": costs.partition_cost,
}


@records_arguments
def strategy_counts(
    windows: Iterable[str] = tuple(WINDOWS),
    sigmas: Sequence[float] = SIGMAS,
    joins: Sequence[float] = JOINS,
    rates: Sequence[float] = RATES,
    seconds: float = 90.0,
    seeds: Sequence[int] = (0,),
    step: float = STEP,
) -> pd.DataFrame:
    """Return Fig. 8.1 and 8.2, all 27 settings of Table 8.1.

    Columns: windows, sigma, join, rate, seed, strategy, state_counted and state_modelled (tuples,
    when the longest window is full), service_counted and service_modelled (results per 1000
    comparisons), compared_counted (comparisons) and passed_counted (tuples, each at every join that
    it passes). The first query has no selection, the second and third have one. The modelled rate
    is that of full windows, the counted one is of a run that starts with empty states, as in the
    book. ``step`` is a micro-batch of the chain, in seconds.
    """
    rows = []
    for name, sigma, rate, seed, join in product(windows, sigmas, rates, seeds, joins):
        q = SharedLoad(rate, WINDOWS[name], sigma, join)
        run = ChainExperiment(q, seconds, step, seed)
        for strategy, model in STRATEGIES.items():
            cost, state = model(q), run.stored_tuples(strategy)
            compared = run.comparisons(strategy)
            figures = (
                state,
                cost.state_tuples,
                1e3 * run.tuple_counts.delivered_results / compared,
                1e3 * _compute_throughput(q) / cost.comparisons,
                compared,
                run.tuple_counts.probing_tuples(plan_joins(q, strategy)),
            )
            rows.append((name, sigma, join, rate, seed, strategy, *figures))
    names = ["windows", "sigma", "join", "rate", "seed", "strategy"]
    counts = ["state_counted", "state_modelled", "service_counted", "service_modelled"]
    return pd.DataFrame(rows, columns=[*names, *counts, "compared_counted", "passed_counted"])


def _compute_throughput(q: SharedLoad) -> float:
    """Return the results per unit of time over all queries."""
    return q.join_selectivity * sum(
        q.compared_pairs(w, 1 if k < q.unselected_queries else q.selection_selectivity)
        for k, w in enumerate(q.windows)
    )


@records_arguments
def chain_counts(
    queries: Sequence[int] = (12, 24, 36),
    rates: Sequence[float] = RATES,
    overhead: float | None = None,
    join: float = 0.025,
    seconds: float = 90.0,
    seeds: Sequence[int] = (0,),
    step: float = STEP,
    router: str = "looks up",
) -> pd.DataFrame:
    """Return Fig. 8.3: service rates of the chains.

    Columns: windows, queries, rate, seed, chain, slices, compared_counted, service_modelled
    (results per 1000 comparisons). The service rate includes ``overhead``, C_sys, modelled
    comparisons added for each tuple and slice; default: ``overhead_keeping_uniform``. All else is
    counted on the chain. ``router`` is one of ROUTERS.
    """
    rows, lookup = [], ROUTERS[router]
    for name, n, rate, seed in product(SPREADS, queries, rates, seeds):
        windows = window_distribution(name, n)
        q = SharedLoad(rate, windows, join_selectivity=join, unselected_queries=n)
        run = ChainExperiment(q, seconds, step, seed)
        c_sys = overhead_keeping_uniform(rate, join, router) if overhead is None else overhead
        statistics = unfiltered_statistics((rate, rate), join, c_sys, n, lookup)
        best = slices.cpu_chain(windows, statistics)
        for label, chain in (("Mem-Opt", windows), ("CPU-Opt", best)):
            passed = run.tuple_counts.probing_tuples(plan_joins(q, "state-slice", chain))
            compared = run.comparisons("state-slice", chain, lookup)
            service = 1e3 * run.tuple_counts.delivered_results / (compared + c_sys * passed)
            rows.append((name, n, rate, seed, label, len(chain), compared, service))
    names = ["windows", "queries", "rate", "seed", "chain", "slices"]
    counts = pd.DataFrame(rows, columns=[*names, "compared_counted", "service_modelled"])
    return record_values(counts, part=SPARING, even=len(window_distribution("uniform")))


def overhead_keeping_uniform(rate: float, join: float = 0.025, router: str = "looks up") -> float:
    """Return a C_sys that leaves the 12 uniform windows of Table 8.2 unmerged, as in Fig. 8.3(a).

    It is SPARING of the largest that does. The book prints none.
    """
    even = window_distribution("uniform")
    return SPARING * overhead_range(even, even, rate, join, ROUTERS[router])[1]


def printed_chains(distribution: str, queries: int = 12) -> dict[str, Chain]:
    """Return the CPU-Opt chains that section 8.3 describes.

    It is one chain or, for the skewed windows, several interpretations. Raises ValueError as
    ``window_distribution`` does.
    """
    windows = window_distribution(distribution, queries)
    if distribution == "uniform":
        return {"every window": windows}
    half = queries // 2
    if distribution == "small large":
        small, first, last = windows[half - 1], windows[half], windows[-1]
        return {"two slices": (small, last), "small, between, large": (small, first, last)}
    large = windows[10 * queries // 12 - 1 :]
    return {"small ones merged": large, "small ones merged, large ones too": (large[0], large[-1])}


def overhead_ranges(
    queries: Sequence[int] = (12, 24, 36),
    rates: Sequence[float] = RATES,
    join: float = 0.025,
    routers: Iterable[str] = ("compares",),
) -> pd.DataFrame:
    """Return the C_sys with which section 8.3's chains are CPU-Opt.

    Columns: router, windows, queries, rate, said, low_modelled, high_modelled, exists. If there is
    no such C_sys, ``exists`` is False, and high is below low or below 0.
    """
    rows = []
    for router, name, n, rate in product(routers, SPREADS, queries, rates):
        for what, chain in printed_chains(name, n).items():
            low, high = overhead_range(
                window_distribution(name, n), chain, rate, join, ROUTERS[router]
            )
            rows.append((router, name, n, rate, what, low, high, low <= high))
    names = ["router", "windows", "queries", "rate", "said"]
    return pd.DataFrame(rows, columns=[*names, "low_modelled", "high_modelled", "exists"])


def overhead_range(
    windows: Chain, chain: Chain, rate: float, join: float, lookup: bool = False
) -> tuple[float, float]:
    """Return the least and greatest C_sys with which no chain is cheaper than this one.

    If there is no such C_sys, the first is the greater. With k slices the least cost is R_k + k
    C_sys lambda, so each other k bounds C_sys from one side; the own one must be R_k.
    """
    s = unfiltered_statistics((rate, rate), join, 0.0, len(windows), lookup)
    least, chain_total = (
        _find_least_cost_by_slices(windows, s),
        slices.chain_cost(chain, windows, s),
    )
    k = len(chain)
    if chain_total > least[k] * (1 + 1e-9):
        return float("inf"), float("-inf")
    low = max(((chain_total - least[j]) / (j - k) for j in least if j > k), default=0.0)
    high = min(((least[j] - chain_total) / (k - j) for j in least if j < k), default=float("inf"))
    return max(low / rate, 0.0), high / rate


def _find_least_cost_by_slices(windows: Chain, s: slices.ChainStatistics) -> dict[int, float]:
    """Return, by number of slices, the cost of the cheapest chain."""
    n = len(windows)
    length = {(i, j): cost for i, j, cost in slices.merge_graph(windows, s)}
    best = {0: {0: 0.0}}
    for k in range(1, n + 1):
        before = best[k - 1]
        best[k] = {
            j: min(before[i] + length[i, j] for i in before if i < j) for j in range(k, n + 1)
        }
    return {k: best[k][n] for k in range(1, n + 1)}


def merged_savings(windows: Chain, s: slices.ChainStatistics) -> float:
    """Return the share of Mem-Opt's comparisons that CPU-Opt saves (modelled)."""
    best = slices.chain_cost(slices.cpu_chain(windows, s), windows, s)
    return 1 - best / slices.chain_cost(windows, windows, s)
