"""Faults of shared chains and of the figures computed from them (Wang 2008, Part I)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pandas as pd
from braid.core.compaction import count_reached_ages
from braid.papers.slices.chain_optimizer import ChainStatistics
from braid_lab.common.result_cache import CachedOutcome
from braid_lab.slices import chain_claims, mean_gains
from braid_lab.slices import claims as paper
from braid_lab.slices import experiments as slices_experiments
from braid_lab.slices import join_tree_costs as tree
from braid_lab.slices.cost import Savings

from mutations import Mutation, Tries


def of(counted: Callable[[], pd.DataFrame], *claims: Callable[[pd.DataFrame], Any]) -> Tries:
    """Return claims about one figure, which is counted once."""
    figure = cache(counted)
    return [lambda claim=claim: claim(figure()) for claim in claims]


def three() -> Tries:
    """Return Fig. 8.1 and 8.2, in a part of their settings."""
    state = (chain_claims.least_state_claim, chain_claims.state_savings_claim)
    each = (*state, chain_claims.service_claim, chain_claims.forty_percent_gain_claim)
    some = dict(joins=(0.025, 0.4), rates=(20.0,), seconds=45.0, step=1.0)
    return of(lambda: slices_experiments.strategy_counts(**some), *each)


def measured() -> Tries:
    """Return Fig. 8.1 by S_join, in a short run."""
    return [partial(chain_claims.join_claim, 40.0, ("mostly small",), (0,))]


def faster() -> Tries:
    """Return Fig. 8.2 by rate, in one setting and for one seed."""

    def counted(*run: Any) -> CachedOutcome:
        return CachedOutcome(mean_gains._count_service_for(*run, 45.0))

    one = (("mostly large", 0.8),)
    return of(lambda: mean_gains.gain_by_rate(counted, (0,), one), chain_claims.rates_claim)


def many() -> Tries:
    """Return Fig. 8.3."""
    each = (chain_claims.skewed_gain_claim, chain_claims.queries_claim)
    figures = of(lambda: slices_experiments.chain_counts((12, 24), (20.0,), seconds=40.0), *each)
    return [*figures, *merged(), chain_claims.uniform_claim]


def closed() -> Tries:
    """Return Fig. 5.8 to 5.10."""
    memory = of(
        slices_experiments.memory_savings,
        partial(paper.always_saves_claim, where="Fig. 5.8, section 5.3", what="memory"),
        paper.memory_average_claim,
    )
    cpu = of(
        slices_experiments.cpu_savings,
        partial(paper.always_saves_claim, where="Fig. 5.9, 5.10, section 5.3", what="CPU"),
        paper.cpu_average_claim,
    )
    return [*memory, paper.most_memory_claim, *cpu, paper.most_cpu_claim]


def trees() -> Tries:
    """Return Fig. 6.4 to 6.7."""
    each = (
        paper.tree_memory_claim,
        paper.tree_average_claim,
        paper.tree_cpu_claim,
    )
    figures = of(slices_experiments.tree_ratios, *each)
    return [*figures, paper.tree_example_claim]


def whole() -> Tries:
    """Return Theorem 5."""
    return [paper.one_state_claim]


def saved() -> Tries:
    """Return Eq. 5.2 beside the chain, in one setting."""
    return [partial(paper.counted_savings_claim, ((0.5, 0.5),), (0,))]


def merged() -> Tries:
    """Return Fig. 8.3(b): which slices are merged, by the costs of section 7.2 alone."""
    return [chain_claims.merged_small_windows_claim]


def free(edge: Any) -> Any:
    """Make slices free to run."""

    def fault(i: int, j: int, windows: Any, s: ChainStatistics) -> Any:
        return edge(i, j, windows, replace(s, slice_overhead=0.0))

    return fault


def quartered(savings: Any) -> Any:
    """Return a chain that saves a quarter as much."""

    def fault(*given: float) -> Any:
        return Savings(*(part / 4 for part in vars(savings(*given)).values()))

    return fault


def dearer(savings: Any) -> Any:
    """Return a chain with a twentieth of its rivals' comparisons added."""

    def fault(*given: float) -> Any:
        s = savings(*given)
        return replace(s, cpu_pull_up=s.cpu_pull_up - 0.05, cpu_partition=s.cpu_partition - 0.05)

    return fault


def unselective(ratios: Any) -> Any:
    """Return chains of a tree that keep what only the other query selects (Eq. 6.3)."""

    def fault(m: float, n: float) -> Any:
        t = tree.ratio_tree(m, n)
        states = tree.slice_memory(replace(t, per_query=t.either))
        held = sum(tuples for state, tuples in states.items() if state.startswith("AB"))
        alone = sum(query["AB"] for query in tree.isolated_memory(t))
        return tree.CostRatios(held / alone, held / tree.pull_up_memory(t)["AB"])

    return fault


def lossy(plan_batch: Any) -> Any:
    """Give up tuples that leave the first slice."""

    def fault(self: Any) -> Any:
        limits, ends = self.facts.watermarks, self.state.ends
        lost = {
            b.id: b
            for b in self.facts.blocks
            if count_reached_ages(b, ends[b.stream], limits[b.stream])
        }
        for b in lost.values():
            self.draft.drop_replicas(b, b.hosts)
        kept = tuple(b for b in self.facts.blocks if b.id not in lost)
        self.facts = replace(self.facts, blocks=kept)
        return plan_batch(self)

    return fault


def comparing(edge: Any) -> Any:
    """Compare each result with every window that ends in its slice."""

    def fault(i: int, j: int, windows: Any, s: ChainStatistics) -> Any:
        return edge(i, j, windows, replace(s, lookup_cost=False))

    return fault


def undivided(choose: Any) -> Any:
    """Choose a chain of one slice."""

    def fault(self: Any) -> None:
        choose(self)
        self.state = replace(self.state, ends=tuple(ends[-1:] for ends in self.state.ends))

    return fault


def cheapest(initial: Any) -> Any:
    """Begin with CPU-Opt's chain, of slices that cost 300 comparisons a tuple."""

    def fault(self: Any, streams: int) -> Any:
        object.__setattr__(self, "slice_overhead", 300.0)
        return replace(initial(self, streams), mode="cpu")

    return fault


MUTATIONS = [
    Mutation(
        "tuples that leave the first slice are lost",
        "braid.papers.slices.chain._Planner.plan_batch",
        lossy,
        whole,
        ("without selections a Mem-Opt chain holds the state",),
    ),
    Mutation(
        "selections are not pushed into the chain",
        "braid.papers.slices.chain._Planner._cut_block",
        lambda cut: lambda self, b, first, target: b,
        three,
        (
            "the chain always holds least",
            "the chain always has the highest service rate",
            "memory savings range from 20% to 30%",
        ),
    ),
    Mutation(
        "selections are not pushed into the chain of two queries",
        "braid.papers.slices.chain._Planner._cut_block",
        lambda cut: lambda self, b, first, target: b,
        saved,
        ("the chain itself saves the state of Eq. 5.2",),
    ),
    Mutation(
        "a chain of one slice",
        "braid.papers.slices.chain._Planner._choose_chains",
        undivided,
        three,
        ("the chain always has the highest service rate", "with large join selectivities"),
    ),
    Mutation(
        "selections are not pushed into the chain where blocks have more than 20 tuples",
        "braid.papers.slices.chain._Planner._cut_block",
        lambda cut: lambda self, b, *given: b if b.rows > 20 else cut(self, b, *given),
        faster,
        ("the chain's gain in service rate grows",),
    ),
    Mutation(
        "Mem-Opt merges slices as CPU-Opt does, where they are dear",
        "braid.papers.slices.chain.Chain.initial_state",
        cheapest,
        measured,
        ("S_join has no effect on the chain's state",),
    ),
    Mutation(
        "an unmerged chain: CPU-Opt merges nothing",
        "braid.papers.slices.chain_optimizer.cpu_chain",
        lambda cpu: lambda windows, statistics: windows,
        many,
        ("CPU-Opt has fewer slices", "the gain of CPU-Opt grows"),
        runs=(),
    ),
    Mutation(
        "a chain merged to one slice",
        "braid.papers.slices.chain_optimizer.cpu_chain",
        lambda cpu: lambda windows, statistics: windows[-1:],
        many,
        ("CPU-Opt of 12 uniform windows",),
        runs=(),
    ),
    Mutation(
        "slices that cost nothing to run",
        "braid.papers.slices.chain_optimizer.edge_cost",
        free,
        merged,
        ("all small windows are merged together",),
        runs=(),
    ),
    Mutation(
        "a quarter of the savings of Eq. 5.2",
        "braid_lab.slices.cost.chain_savings",
        quartered,
        closed,
        (
            "20% to 30% of memory saved on average",
            "10% to 40% of CPU saved on average",
            "memory savings reach about 50%",
            "CPU savings reach about 100%",
        ),
    ),
    Mutation(
        "selections are not pushed into the chain, in Eq. 5.2",
        "braid_lab.slices.cost.chain_savings",
        lambda savings: lambda rho, sigma, join: savings(rho, 1.0, join),
        closed,
        ("all memory savings are positive", "memory savings reach about 50%"),
    ),
    Mutation(
        "a chain that compares a twentieth more",
        "braid_lab.slices.cost.chain_savings",
        dearer,
        closed,
        ("all CPU savings are positive",),
    ),
    Mutation(
        "selections are not pushed into the chains of a tree",
        "braid_lab.slices.join_tree_costs.memory_ratios",
        unselective,
        trees,
        ("the chains hold least for all m, n", "20% to 30% of a tree's memory saved"),
    ),
    Mutation(
        "Eq. 6.7 without the probing of C3 by AB3, as Eq. 6.8 is printed",
        "braid_lab.slices.join_tree_costs.slice_cpu",
        lambda work: lambda t: work(t) | {"probe AB3": 0.0},
        trees,
        ("at Table 6.2 the chains compare little more",),
    ),
    Mutation(
        "Eq. 6.8 with the probing of C3 by AB3",
        "braid_lab.slices.join_tree_costs.printed_cpu_ratios",
        lambda printed: tree.cpu_ratios,
        trees,
        ("the chains compare less for most m, n",),
    ),
    Mutation(
        "a router that compares each result with all windows",
        "braid.papers.slices.chain_optimizer.edge_cost",
        comparing,
        merged,
        ("all small windows are merged together",),
        runs=(),
    ),
]
