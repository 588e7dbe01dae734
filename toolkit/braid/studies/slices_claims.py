"""The claims of Wang 2008, Part I, chapters 5 to 8, against the figures of ``studies.slices``.

Counted or modelled, nothing is measured but the answers of a run on Spark. Claims that hold
robustly are checked (``must``).
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from braid.papers.slices import cost as costs
from braid.papers.slices import cuts as slices
from braid.papers.slices.cost import Shared
from braid.studies.claim import Claim, verdict
from braid.studies.counted import Run, plan
from braid.studies.slices import RATES, SPREADS, overhead_range, overheads, spread

PAPER = "Wang 2008, I"
KEYS = ["windows", "sigma", "join", "rate"]
RIVALS = ["pull-up", "partition"]

SQUARE = (
    "the book does not say over which settings it averages; over the whole square one of the two "
    "rivals is always outside the range"
)


def _claim(where: str, says: str, found: str, holds: object, reason: str = "") -> Claim:
    """A claim that is told, with the likely reason when it does not hold."""
    return Claim(PAPER, where, says, found, verdict(holds), "" if holds else reason)


def _check(where: str, says: str, found: str, holds: object) -> Claim:
    """A claim that must hold."""
    return Claim(PAPER, where, says, found, verdict(holds), must=True)


def _percent(low: float, high: float) -> str:
    return f"{low:.1%} to {high:.1%}"


def _named(values: pd.Series) -> str:
    return ", ".join(f"{v:.1%} against {k}" for k, v in values.items())


# Fig. 5.8 to 5.10: ``slices.memory_savings`` and ``cpu_savings``


def positive_claim(saved: pd.DataFrame, where: str, what: str) -> Claim:
    """Fig. 5.8 to 5.10: the chain always needs least."""
    least = saved["saved_modelled"].min()
    return _check(where, f"all {what} savings are positive", f"{least:.2%} and more", least > 0)


def average_claim(saved: pd.DataFrame, where: str, what: str, low: float, high: float) -> Claim:
    """Fig. 5.8 to 5.10: so much is saved on average."""
    mean = saved.groupby("against")["saved_modelled"].mean()
    says = f"{low:.0%} to {high:.0%} of {what} saved on average"
    return _claim(where, says, _named(mean), mean.between(low, high).all(), SQUARE)


def most_memory_claim() -> Claim:
    """Fig. 5.8: memory savings reach about 50 %."""
    most = costs.savings(0.001, 0.001, 0.4).memory_pull_up
    return _check("5.8", "memory savings reach about 50%", f"{most:.1%}", most > 0.45)


def most_cpu_claim() -> Claim:
    """Fig. 5.9: CPU savings reach about 100 %."""
    most = costs.savings(0.001, 0.001, 0.4).cpu_pull_up
    return _claim("5.9", "CPU savings reach about 100%", f"{most:.1%}", most > 0.95)


def one_state_claim(rate: float = 20.0) -> Claim:
    """Section 5.1: without selections the chain holds the state of the largest query alone, by the
    model and counted.
    """
    alike = Shared(rate, (5.0, 15.0, 30.0), plain=3)
    largest = costs.isolated(Shared(rate, alike.windows[-1:])).memory
    run = Run(alike, 60.0)
    model = abs(costs.state_slice(alike).memory - largest)
    count = abs(run.stored(plan(alike, "state-slice")) - run.state.sum())
    says = "without selections the chain holds the state of the largest query alone"
    found = f"{largest:,.0f} tuples (modelled), {run.state.sum():,.0f} (counted)"
    return _check("5.1", says, found, max(model, count) < 1e-6)


# Fig. 6.4 to 6.7: ``slices.tree_ratios``


def tree_memory_claim(trees: pd.DataFrame) -> Claim:
    """Fig. 6.4, 6.5: the chains hold least."""
    most = trees.loc[trees["resource"] == "memory", "ratio_modelled"].max()
    says = "the chains hold least for all m, n"
    return _check("6.4, 6.5", says, f"at most {most:.1%}", most <= 1)


def tree_average_claim(trees: pd.DataFrame) -> Claim:
    """Fig. 6.4, 6.5: 20 % to 30 % of memory saved on average."""
    memory = trees[trees["resource"] == "memory"]
    mean = 1 - memory.groupby("against")["ratio_modelled"].mean()
    says, holds = "20% to 30% of memory saved on average", mean.between(0.2, 0.3).all()
    return _claim("6.4, 6.5", says, _named(mean), holds, SQUARE)


def tree_cpu_claim(trees: pd.DataFrame) -> Claim:
    """Fig. 6.6, 6.7: the chains compare less for most m, n."""
    work = trees[trees["resource"] == "CPU"]
    share, printed = (
        work[ratio].lt(1).groupby(work["against"]).mean()
        for ratio in ("ratio_modelled", "printed_modelled")
    )
    found = f"{_named(share)}; as printed {_named(printed)}"
    why = "with the whole of Eq. 6.7 the chains compare more than isolated execution"
    says = "the chains compare less for most m, n"
    return _claim("6.6, 6.7", says, found, share.min() > 0.5, why)


def tree_pull_up_claim(trees: pd.DataFrame) -> Claim:
    """Eq. 6.7 whole: the chains compare less than pull-up, and more than isolated execution."""
    by = trees[trees["resource"] == "CPU"].groupby("against")["ratio_modelled"]
    low, high = by.min(), by.max()
    says = "by the whole of Eq. 6.7 the chains compare less than pull-up, more than isolated joins"
    found = f"at most {high['pull-up']:.1%}, at least {low['isolated']:.1%}"
    return _check("6.6, 6.7", says, found, high["pull-up"] < 1 < low["isolated"])


# Fig. 8.1 and 8.2: ``slices.strategies``


def _by_strategy(found: pd.DataFrame, value: str) -> pd.DataFrame:
    return found.pivot(index=KEYS, columns="strategy", values=f"{value}_counted")


def _saved(found: pd.DataFrame) -> pd.Series:
    """What the chain holds less than the next best."""
    state = _by_strategy(found, "state")
    return 1 - state["state-slice"] / state[RIVALS].min(axis=1)


def _gain(found: pd.DataFrame) -> pd.Series:
    """The chain's service rate over the next best, less 1."""
    service = _by_strategy(found, "service")
    return service["state-slice"] / service[RIVALS].max(axis=1) - 1


def least_claim(found: pd.DataFrame) -> Claim:
    """Fig. 8.1: the chain always holds least."""
    saved = _saved(found).min()
    return _check("8.1", "the chain always holds least", f"{saved:.1%} less and more", saved > 0)


def next_best_claim(found: pd.DataFrame) -> Claim:
    """Fig. 8.1: the chain holds 20 % to 30 % less than the next best."""
    saved = _saved(found)
    why = (
        "by Eq. 5.2 what is saved against pull-up vanishes as the selection passes more, and "
        "against partition as the windows without selection get shorter"
    )
    text, holds = _percent(saved.min(), saved.max()), saved.between(0.2, 0.3).all()
    return _claim("8.1", "20% to 30% less than the next best", text, holds, why)


def join_claim(found: pd.DataFrame) -> Claim:
    """Fig. 8.1: the join's selectivity has no effect on the state."""
    by = _by_strategy(found, "state")["state-slice"].unstack("join")
    apart = (by.max(axis=1) - by.min(axis=1)).max()
    says = "S_join has no effect on the state"
    return _check("8.1", says, f"differs by {apart:.0f} tuples", apart == 0)


def service_claim(found: pd.DataFrame) -> Claim:
    """Fig. 8.2: the chain always has the highest service rate."""
    gain = _gain(found).min()
    says = "the chain always has the highest service rate"
    return _check("8.2", says, f"{gain:.1%} more and better", gain > 0)


def rates_claim(found: pd.DataFrame) -> Claim:
    """Fig. 8.2: the gain grows with the rates."""
    by = _gain(found).unstack("rate")
    more = by[max(by)] - by[min(by)]
    text = f"in {more.gt(0).mean():.0%} of 27 settings"
    return _claim("8.2", "its gain grows with the rates", text, more.gt(0).all())


def forty_claim(found: pd.DataFrame) -> Claim:
    """Fig. 8.2: the gain reaches 40 %."""
    most = _gain(found).max()
    return _claim("8.2", "its gain reaches 40%", f"{most:.1%}", most >= 0.4)


# Fig. 8.3: ``slices.chains`` and ``overheads``


def _chain_gain(many: pd.DataFrame) -> pd.DataFrame:
    """CPU-Opt's service rate over that of Mem-Opt, less 1, by number of queries."""
    by = many.pivot(
        index=["windows", "queries", "rate"], columns="chain", values="service_modelled"
    )
    return (by["CPU-Opt"] / by["Mem-Opt"] - 1).unstack("queries")


def queries_claim(many: pd.DataFrame) -> Claim:
    """Fig. 8.3(d), (e): the gain of CPU-Opt grows with the number of queries."""
    gain = _chain_gain(many)
    text = "; ".join(f"{n}: {_percent(gain[n].min(), gain[n].max())}" for n in gain)
    says = "the gain of CPU-Opt grows with the number of queries"
    grows = (gain.diff(axis=1).iloc[:, 1:] > 0).all(axis=None)
    return _check("8.3(d), (e)", says, text, grows)


def gains_claim(many: pd.DataFrame) -> Claim:
    """Fig. 8.3: CPU-Opt gains in every setting."""
    least = _chain_gain(many).min(axis=None)
    return _check("8.3", "CPU-Opt always gains", f"{least:.1%} and more", least > 0)


def two_slices_claim() -> Claim:
    """Fig. 8.3(c): with a costly slice two are best for Small-Large windows."""
    windows = spread("small large")
    costly = slices.unfiltered((20.0, 20.0), 0.025, 60.0, len(windows))
    number = len(slices.cpu_chain(windows, costly))
    says = "two slices are best for Small-Large windows at 20 tuples/s, with C_sys = 60"
    return _check("8.3(c)", says, f"{number} slices", number == 2)


_SAID = {
    "every window": "8.3(a)",
    "small ones merged": "8.3(b)",
    "small ones merged, large ones too": "8.3(b)",
    "two slices": "8.3(c)",
}
"""Which panel shows what section 8.3 says (``slices.said``)."""


def chain_claim(said: str) -> Claim:
    """Fig. 8.3(a) to (c): one C_sys gives the chain that the text describes at all rates."""
    ranges = overheads((12,)).query("said == @said")
    low, high = ranges["low_modelled"], ranges["high_modelled"]
    each = ", ".join(f"{lo:.3g} to {hi:.3g}" for lo, hi in zip(low, high, strict=True))
    rates = ", ".join(f"{rate:.0f}" for rate in ranges["rate"])
    some = ranges["exists"].any()
    found = f"for C_sys {each} at {rates} tuples/s" if some else "for no C_sys"
    says = f"CPU-Opt has {said} for 12 queries, with one C_sys at all rates"
    why = "no single C_sys gives it at all rates" if some else "it is no shortest path for any"
    return _claim(_SAID[said], says, found, low.max() <= high.min(), why)


def skewed_claim(queries: int = 12, join: float = 0.025) -> Claim:
    """Fig. 8.3: with a C_sys half-way to where CPU-Opt starts to merge uniform windows, it merges
    skewed ones.
    """
    told, holds, even = [], True, spread("uniform", queries)
    for rate in RATES:
        overhead = overhead_range(even, even, rate, join)[1] / 2
        s = slices.unfiltered((rate, rate), join, overhead, queries)
        cuts = {name: len(slices.cpu_chain(spread(name, queries), s)) for name in SPREADS}
        numbers = ", ".join(map(str, cuts.values()))
        told.append(f"{numbers} at {rate:.0f} tuples/s (C_sys {overhead:.3g})")
        holds &= cuts.pop("uniform") == queries and max(cuts.values()) < queries
    says = (
        f"slices of CPU-Opt for {queries} queries: all of them for uniform, fewer for skewed "
        f"windows ({', '.join(SPREADS)})"
    )
    return _check("8.3", says, "; ".join(told), holds)


@dataclass(frozen=True)
class Figures:
    """The tidy frames that the claims are about: of ``slices.memory_savings``, ``cpu_savings``,
    ``tree_ratios``, ``strategies`` and ``chains``.
    """

    memory: pd.DataFrame
    cpu: pd.DataFrame
    trees: pd.DataFrame
    three: pd.DataFrame
    many: pd.DataFrame


def claims(f: Figures) -> list[Claim]:
    """All of them, in the order of the figures."""
    trees = (tree_memory_claim, tree_average_claim, tree_cpu_claim, tree_pull_up_claim)
    three = (least_claim, next_best_claim, join_claim, service_claim, rates_claim, forty_claim)
    return [
        one_state_claim(),
        positive_claim(f.memory, "5.8", "memory"),
        average_claim(f.memory, "5.8", "memory", 0.2, 0.3),
        most_memory_claim(),
        positive_claim(f.cpu, "5.9, 5.10", "CPU"),
        average_claim(f.cpu, "5.9, 5.10", "CPU", 0.1, 0.4),
        most_cpu_claim(),
        *(claim(f.trees) for claim in trees),
        *(claim(f.three) for claim in three),
        *map(chain_claim, _SAID),
        two_slices_claim(),
        skewed_claim(),
        gains_claim(f.many),
        queries_claim(f.many),
    ]
