"""The claims of Wang 2008, Part I, chapters 5 and 6, against ``braid_lab.slices.experiments``.

Those of chapter 8 are in ``chain_claims``. All is counted or modelled, except the answers of a run
on Spark, which are measured. Claims that hold robustly are required.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import pandas as pd

from braid_lab.common.claims import (
    ClaimRegistry,
    Finding,
    format_shares,
    judge,
    judge_reading,
)
from braid_lab.slices import chain_claims, live_chain
from braid_lab.slices import cost as costs
from braid_lab.slices import join_tree_costs as tree_costs
from braid_lab.slices.chain_claims import SEEDS
from braid_lab.slices.claim_settings import EXTREME, SAVINGS, SETTINGS
from braid_lab.slices.cost import SharedLoad
from braid_lab.slices.counted_chains import ChainExperiment
from braid_lab.slices.experiments import JOINS

CLAIMS = ClaimRegistry("Wang 2008, I", SETTINGS)
"""All claims of Part I."""
NEAR_0 = 0.001
"""A ratio and a selectivity at which savings by Eq. 5.2 are about the greatest."""
ABOUT = 0.05
"""How far a saving may be from what the book prints with "about"."""
LITTLE, FIVE, MOST = 0.2, (4, 6), 0.5
"""What "little more", "about 5 times" and "most" are taken for."""
POINTS = ((0.1, 0.1), (0.1, 0.9), (0.5, 0.5), (0.9, 0.1), (0.9, 0.9))
"""Pairs of ρ and Sσ: the corners of a square, and its middle."""

# Fig. 5.8 to 5.10: ``experiments.memory_savings`` and ``cpu_savings``


@CLAIMS.claim(
    "{where}",
    "all {what} savings are positive",
    is_required=True,
    cases=lambda memory, cpu: [
        {"saved": memory, "where": "Fig. 5.8, Eq. 5.2, section 5.3", "what": "memory"},
        {"saved": cpu, "where": "Fig. 5.9, 5.10, Eq. 5.2, section 5.3", "what": "CPU"},
    ],
)
def always_saves_claim(saved: pd.DataFrame, where: str, what: str) -> Finding:
    """Fig. 5.8 to 5.10: the chain always needs least."""
    least, most = saved["saved_modelled"].agg(["min", "max"])
    text = f"{least:.2%} to {most:.1%}"
    return judge(text, least > 0, text)


@CLAIMS.claim("Fig. 5.8, section 5.3", "20% to 30% of memory saved on average", is_required=True)
def memory_average_claim(memory: pd.DataFrame) -> Finding:
    """Fig. 5.8: 20 % to 30 % of memory saved on average."""
    return _judge_mean_saving_of_dearer_rival(
        memory, ["rho", "sigma"], (0.2, 0.3), "the whole square"
    )


@CLAIMS.claim("Fig. 5.9, 5.10, section 5.3", "10% to 40% of CPU saved on average", is_required=True)
def cpu_average_claim(cpu: pd.DataFrame) -> Finding:
    """Fig. 5.9, 5.10: 10 % to 40 % of comparisons saved on average."""
    where = "the whole square and the three S⋈ of Table 8.1"
    return _judge_mean_saving_of_dearer_rival(cpu, ["rho", "sigma", "join"], (0.1, 0.4), where)


def _judge_mean_saving_of_dearer_rival(
    saved: pd.DataFrame, keys: list[str], printed: tuple[float, float], where: str
) -> Finding:
    """Return whether the mean saving against the dearer rival is in the printed range."""
    mean = float(saved.groupby(keys)["saved_modelled"].max().mean())
    each = saved.groupby("against")["saved_modelled"].mean()
    reading = (
        f"against the rival that needs more, in the mean over {where}: {mean:.1%} "
        f"({format_shares(each)}); the book says neither over which settings nor against which "
        "rival"
    )
    return judge_reading(f"{mean:.1%}", printed[0] <= mean <= printed[1], reading)


@CLAIMS.claim(
    "Fig. 5.8, section 5.3", "memory savings reach about 50%", is_required=True, setting=EXTREME
)
def most_memory_claim() -> Finding:
    """Fig. 5.8: memory savings reach about 50 %."""
    most = costs.chain_savings(NEAR_0, NEAR_0, 0.4).memory_pull_up
    reason = f"{most:.1%} against pull-up (about: within {100 * ABOUT:.0f} points)"
    finding = judge(f"{most:.1%}", abs(most - 0.5) < ABOUT, reason)
    return replace(finding, ran={"rho": NEAR_0, "sigma": NEAR_0})


@CLAIMS.claim(
    "Fig. 5.9, section 5.3",
    "CPU savings reach about 100%",
    setting=f"{EXTREME}, S⋈ = {{joins}}",
)
def most_cpu_claim() -> Finding:
    """Fig. 5.9: CPU savings reach about 100 %, whatever the selectivity of the join."""
    most = {join: costs.chain_savings(NEAR_0, NEAR_0, join).cpu_pull_up for join in (0.0, *JOINS)}
    result = ", ".join(f"{saved:.1%} at S⋈ = {join:g}" for join, saved in most.items())
    reason = f"against pull-up, {result} (about: within {100 * ABOUT:.0f} points)"
    finding = judge(result, min(most.values()) > 1 - ABOUT, reason)
    return replace(finding, ran={"rho": NEAR_0, "sigma": NEAR_0, "joins": tuple(most)})


@CLAIMS.claim(
    "beyond the paper",
    "the chain itself saves the state of Eq. 5.2 within 2 points, and the comparisons within 7",
    is_required=True,
    setting=SAVINGS,
)
def counted_savings_claim(
    points: tuple[tuple[float, float], ...] = POINTS, seeds: tuple[int, ...] = SEEDS
) -> Finding:
    """Eq. 5.2 beside the chain: the figures that the book computes, counted."""
    runs = [_make_savings_run(*at, seed) for at, seed in product(points, seeds)]
    off = pd.DataFrame([_compare_savings(run) for run in runs])
    state, work = off["state"].max(), off["comparisons"].max()
    result = f"at most {100 * state:.1f} points off in state, {100 * work:.1f} in comparisons"
    ran = {**runs[0].list_settings(), "points": points, "seeds": seeds}
    return replace(judge(result, state < 0.02 and work < 0.07, result), ran=ran)


def _make_savings_run(rho: float, sigma: float, seed: int) -> ChainExperiment:
    return ChainExperiment(SharedLoad(80.0, (30 * rho, 30.0), sigma, 0.1), 75.0, 1.0, seed)


def _compare_savings(run: ChainExperiment) -> dict[str, float]:
    """Return how far counted savings of state and comparisons are at most from Eq. 5.2."""
    q = run.queries
    rho = q.windows[0] / q.windows[1]
    printed = costs.chain_savings(rho, q.selection_selectivity, q.join_selectivity)
    state, work = run.stored_tuples("state-slice"), run.comparisons("state-slice")
    rivals = (
        ("pull-up", printed.memory_pull_up, printed.cpu_pull_up),
        ("partition", printed.memory_partition, printed.cpu_partition),
    )
    return {
        "state": max(abs(1 - state / run.stored_tuples(r) - saved) for r, saved, _ in rivals),
        "comparisons": max(abs(1 - work / run.comparisons(r) - saved) for r, _, saved in rivals),
    }


@CLAIMS.claim(
    "Theorem 5",
    "without selections a Mem-Opt chain holds the state of one join with the longest window",
    is_required=True,
)
def one_state_claim(rate: float = 20.0, seeds: tuple[int, ...] = SEEDS) -> Finding:
    """Theorem 5: without selections the chain holds the state of one join.

    A chain of one slice is that join.
    """
    load = SharedLoad(rate, (5.0, 15.0, 30.0), unselected_queries=3)
    runs = [ChainExperiment(load, 60.0, 1.0, seed) for seed in seeds]
    longest = load.windows[-1:]
    held = pd.DataFrame(
        [(r.stored_tuples("state-slice"), r.stored_tuples("state-slice", longest)) for r in runs]
    )
    three, one = (", ".join(f"{n:,.0f}" for n in held[k]) for k in held)
    result = (
        f"{three} tuples in {len(load.windows)} slices and {one} in one, by seed; "
        f"(λ_A + λ_B) w_N is {2 * rate * longest[0]:,.0f}"
    )
    is_same = ((held[0] - held[1]).abs() < 1e-6).all()
    return replace(judge(result, is_same, result), ran=runs[0].list_settings() | {"seeds": seeds})


# Fig. 6.4 to 6.7: ``experiments.tree_ratios``


@CLAIMS.claim(
    "Fig. 6.4, 6.5, Eq. 6.4, section 6.3.4", "the chains hold least for all m, n", is_required=True
)
def tree_memory_claim(trees: pd.DataFrame) -> Finding:
    """Fig. 6.4, 6.5: the chains hold the least state."""
    most = trees[trees["resource"] == "memory"].groupby("against")["ratio_modelled"].max()
    result = ", ".join(
        f"at most {ratio:.1%} of the state of {name}" for name, ratio in most.items()
    )
    return judge(result, most.max() < 1, result)


@CLAIMS.claim(
    "Fig. 6.4, 6.5, section 6.3.4",
    "20% to 30% of a tree's memory saved on average",
    is_required=True,
)
def tree_average_claim(trees: pd.DataFrame) -> Finding:
    """Fig. 6.4, 6.5: 20 % to 30 % of memory saved on average."""
    memory = trees[trees["resource"] == "memory"]
    each = 1 - memory.groupby("against")["ratio_modelled"].mean()
    most = 1 - memory.groupby(["m", "n"])["ratio_modelled"].min().mean()
    reading = (
        f"in the mean of both rivals, over the whole square: {each.mean():.1%} "
        f"({format_shares(each)}); against the rival that holds more {most:.1%}"
    )
    return judge_reading(f"{each.mean():.1%}", 0.2 <= each.mean() <= 0.3, reading)


@CLAIMS.claim("Fig. 6.6, 6.7, Eq. 6.8, section 6.4.4", "the chains compare less for most m, n")
def tree_cpu_claim(trees: pd.DataFrame) -> Finding:
    """Fig. 6.6, 6.7: the chains compare less for most m, n, by Eq. 6.8 as printed."""
    work = trees[trees["resource"] == "CPU"]
    by_parts, printed = (
        work[ratio].lt(1).groupby(work["against"]).mean()
        for ratio in ("ratio_modelled", "printed_modelled")
    )
    reading = (
        f"by Eq. 6.8 as printed, for {format_shares(printed)} of all m, n; it lacks the probing of "
        "C3 by AB3, which 6.4.4 says dominates. By the whole of Eq. 6.7, for "
        f"{format_shares(by_parts)}"
    )
    reading += f"; most is read as more than {MOST:.0%}, against either"
    return judge_reading(f"as printed {format_shares(printed)}", printed.min() > MOST, reading)


@CLAIMS.claim(
    "6.4.4",
    "at Table 6.2 the chains compare little more than isolated joins, and pull-up about 5 times as "
    "much",
    is_required=True,
)
def tree_example_claim() -> Finding:
    """Section 6.4.4: the three sums that are printed."""
    t = tree_costs.JoinTree()
    isolated = sum(map(_sum_costs, tree_costs.isolated_cpu(t)))
    pull_up, chains = _sum_costs(tree_costs.pull_up_cpu(t)), _sum_costs(tree_costs.slice_cpu(t))
    more, times = chains / isolated - 1, (pull_up / isolated, pull_up / chains)
    result = (
        f"millions of comparisons a minute: isolated {isolated / 1e6:,.2f}, the chains "
        f"{chains / 1e6:,.2f}, {more:.0%} more (little: up to {LITTLE:.0%}), pull-up "
        f"{pull_up / 1e6:,.2f}, {times[0]:.1f} and {times[1]:.1f} times these two (about: "
        f"{FIVE[0]} to {FIVE[1]})"
    )
    holds = 0 < more < LITTLE and all(FIVE[0] < k < FIVE[1] for k in times)
    return replace(judge(result, holds, result), ran={"ab": t.ab, "bc": t.bc})


def _sum_costs(parts: Mapping[str, float]) -> float:
    """Return the comparisons for all purposes."""
    return sum(parts.values())


@dataclass(frozen=True)
class SliceFigures:
    """The tidy frames behind the claims.

    They are from ``memory_savings``, ``cpu_savings``, ``tree_ratios``, ``strategy_counts`` and
    ``chain_counts``; ``gains`` of ``mean_gains.gain_by_rate``.
    """

    memory: pd.DataFrame
    cpu: pd.DataFrame
    trees: pd.DataFrame
    three: pd.DataFrame
    many: pd.DataFrame
    gains: pd.DataFrame


CLAIMS.include_claims(chain_claims.CLAIMS)
CLAIMS.include_claims(live_chain.CLAIMS)
