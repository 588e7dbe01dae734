"""Faults of the papers' policies that a recomputation in a few lines of its own detects."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from msgspec import structs

from mutations import Broken

THETA, DIFFUSION = "unit.test_recomputed_theta.", "unit.test_recomputed_diffusion."
SLICES, REUSE = "unit.test_recomputed_slices.", "unit.test_recomputed_reuse."
SHEDDING = "unit.test_recomputed_shedding."
HOT_KEYS, CUBE = "unit.test_recomputed_hotkeys.", "unit.test_recomputed_hypercube."
GEDIK, SESHADRI = "Gedik 2007, Algorithm ", "Seshadri 2008, Fig. 2"


def of_full_windows(live: Any) -> Any:
    """Return live blocks as if each second had brought 100 tuples."""
    return lambda blocks, plan: tuple(structs.replace(b, rows=100) for b in live(blocks, plan))


def of_old_sizes(at_checkpoint: Any) -> Any:
    """Return a checkpoint whose mapping is chosen without the new tuples."""

    def fault(self: Any, r: float, s: float) -> Any:
        before = at_checkpoint(self, r - self.delta_r, s - self.delta_s)
        return replace(before, r=r, s=s)

    return fault


def not_normalized(utility: Any) -> Any:
    """Return the utility of a pair, not over the matches of a pair."""

    def fault(self: Any, stream: int, window: int, types: tuple[int, ...]) -> Any:
        seen = [s for s in self.parts if s[:2] == (stream, window)]
        mean = sum(s.output for s in seen) / sum(s.pairs for s in seen) if seen else 1.0
        return tuple(mean * u for u in utility(self, stream, window, types))

    return fault


def without_cascade(cost: Any) -> Any:
    """Return what a relaxation adds to the operator itself."""

    def fault(self: Any, deployment: Any, operator: Any, *given: Any) -> float:
        alone = replace(operator, inputs=operator.definition.streams)
        return float(cost(self, deployment, alone, *given))

    return fault


BROKEN = [
    Broken(
        "a mapping that is never changed, on 24 hosts",
        "braid.papers.theta.mapping.MappingDecision.is_checkpoint_due",
        lambda due: lambda self: False,
        THETA + "test_with_any_number_of_joiners_storage_is_within_3_75",
        "Elseidy 2014, Fig. 4",
        {"hosts": 24},
    ),
    Broken(
        "a mapping for the sizes before the new tuples, as line 3 is printed",
        "braid.papers.theta.mapping.MappingDecision.at_checkpoint",
        of_old_sizes,
        THETA + "test_algorithm_2_of_the_project_chooses_as_the_updated_sums_do",
        "Elseidy 2014, Algorithm 2",
    ),
    Broken(
        "copies without the master's window",
        "braid.papers.diffusion.segment_length._combine_windows",
        lambda both: lambda windows, slave, master: windows[slave],
        DIFFUSION + "test_equation_2_counts_the_copies_tuple_by_tuple",
        "Gu 2007, Eq. 2",
        {"master": 0, "costs": 220},
    ),
    Broken(
        "a master that is elected by its rate alone",
        "braid.papers.diffusion.aligned.atr_overhead",
        lambda cost: lambda rates, windows, master, length, hosts=None: rates[master],
        DIFFUSION + "test_the_master_that_is_elected_has_the_fewest_copies",
        "Gu 2007, Eq. 2",
    ),
    Broken(
        "a cover that takes the heaviest host first",
        "unit.test_recomputed_diffusion.greedy_cover",
        lambda cover: lambda sets, weights, wanted: cover(sets, [1 / w for w in weights], wanted),
        DIFFUSION + "test_the_cover_is_the_greedy_one_of_section_4_1",
        "Gu 2007, Fig. 6",
        {"seed": 4},
    ),
    Broken(
        "a chain that is cut at every window",
        "unit.test_recomputed_slices.cpu_chain",
        lambda chain: lambda windows, statistics: windows,
        SLICES + "test_cpu_opt_is_the_cheapest_of_all_cuts",
        "Wang 2008, Fig. 7.3",
        {"seed": 3},
    ),
    Broken(
        "a ring of least latency that ignores hops",
        "unit.test_recomputed_slices.optimal_length",
        lambda length: lambda load: length(replace(load, hop=load.hop / 9)),
        SLICES + "test_theorem_9_is_near_the_least_latency_of_all_lengths",
        "Wang 2008, Theorem 9",
    ),
    Broken(
        "every result is given to every query, of two streams",
        "braid.kernels.query_bitmaps.QueryBitmaps.result_bitmaps",
        lambda of: lambda self, found: of(self, found) | -1,
        SLICES + "test_theorem_2_the_policy_s_chain_gives_each_query_its_first_slices",
        "Wang 2008, Theorem 2",
        {"seed": 0, "mode": "memory"},
    ),
    Broken(
        "selections stay out of a ring that is recomputed",
        "braid.papers.slices.chain._Planner._cut_block",
        lambda cut: lambda self, b, first, target: b,
        SLICES + "test_theorems_11_and_12_of_a_shared_ring_of_joins_of_three_streams",
        "Wang 2008, Theorems 11 and 12",
        {"hosts": 1},
    ),
    Broken(
        "nothing that was learned fades",
        "braid.papers.shedding.productivity_profile.EARLIER_WEIGHT",
        lambda weight: 1.0,
        "unit.test_shedding_policy.test_half_of_what_was_learned_is_gone_after_seven_batches",
        GEDIK + "2",
    ),
    Broken(
        "basic windows that are ranked by matches, not by matches over pairs",
        "braid.papers.shedding.productivity_profile._smooth_productivity",
        lambda smooth: lambda seen, mean, one: seen.output if seen else 0.0,
        SHEDDING + "test_algorithm_2_orders_basic_windows_by_matches_over_pairs",
        GEDIK + "2",
        {"seed": 0},
    ),
    Broken(
        "a state that is assumed to be full",
        "braid.papers.shedding.shed.apply_derivations_and_drops",
        of_full_windows,
        SHEDDING + "test_a_window_that_is_not_full_yet_counts_what_it_holds",
        GEDIK + "3",
    ),
    Broken(
        "the worth of a type without its normalization",
        "braid.papers.shedding.productivity_profile.ProductivityProfile.utility_per_pair",
        not_normalized,
        SHEDDING + "test_the_utility_of_a_type_is_relative_to_a_match_of_its_direction",
        GEDIK + "5",
    ),
    Broken(
        "the worth of a type without its normalization, across directions",
        "braid.papers.shedding.productivity_profile.ProductivityProfile.utility_per_pair",
        not_normalized,
        SHEDDING + "test_utility_is_compared_across_directions_by_what_a_pair_gives",
        GEDIK + "5",
    ),
    Broken(
        "a window that contains another whatever their slides",
        "unit.test_recomputed_reuse.windows_contain",
        lambda contain: lambda a, b: all(r >= q for r, q in zip(a[0], b[0], strict=True)),
        REUSE + "test_figure_2_a_window_contains_another_if_its_answers_hold_the_other_s",
        SESHADRI,
        {"a": (5, 2)},
    ),
    Broken(
        "windows that are not relaxed",
        "braid.papers.reuse.relaxation.STEPS",
        lambda steps: steps[:2],
        REUSE + "test_section_3_1_one_relaxed_operator_answers_both_queries",
        "",
        {"seed": 1},
    ),
    Broken(
        "cascading relaxations that cost nothing",
        "braid.papers.reuse.cost.CostModel.relaxed_cost",
        without_cascade,
        "unit.test_reuse_cascade."
        "test_a_relaxation_costs_what_it_adds_to_all_operators_that_it_reaches",
        "",
    ),
    Broken(
        "frequent values that are never shared out",
        "braid.papers.hotkeys.hot_keys.pack_values",
        lambda pack: lambda work, present, ranges, copies: present,
        HOT_KEYS + "test_a_hash_gives_its_busiest_host_the_pairs_of_the_first_value",
        "",
    ),
    Broken(
        "tuples of a rare stream that are stored once",
        "braid.papers.hotkeys.spread._choose_kept_stream",
        lambda choose: lambda work, shared, present, copies: shared,
        HOT_KEYS + "test_a_rare_stream_is_stored_on_all_hosts_and_a_frequent_one_sent_once",
        "",
    ),
    Broken(
        "shares of the dimensions that a stream has",
        "braid.papers.hypercube.shares.count_copies",
        lambda copies: (
            lambda shares, dimensions, stream: prod(shares) // copies(shares, dimensions, stream)
        ),
        CUBE + "test_the_best_shares_receive_least_of_all_factorizations",
        "",
        {"seed": 0},
    ),
]
