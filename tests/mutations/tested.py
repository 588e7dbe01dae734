"""Faults that break proofs, computations or figures of the papers, each detected by one test.

Claims of studies have their faults in the modules beside this one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from braid_lab.slices import cost, join_tree_costs

from mutations import Broken
from mutations.slices import quartered
from mutations.theta import late, scattered

GRID, THETA = "unit.test_grid.", "unit.test_reference_theta."
CHAIN, SLICES = "unit.test_reference_chain.", "unit.test_slices."
RING, PSP, COST = "unit.test_ring.", "unit.test_reference.", "unit.test_ring_cost."
SHARED, BITS = "unit.test_sharing_costs.", "unit.test_bitmaps."
ATR, CTR = "unit.test_aligned.", "unit.test_coordinated."
SHED, POLICY = "unit.test_reference_shedding.", "unit.test_shedding_policy."


def without(**parts: float) -> Any:
    """Return a cost without these parts."""
    return lambda made: lambda *given: replace(made(*given), **parts)


def lacking(*parts: str) -> Any:
    """Return a sum without these named parts."""
    return lambda made: lambda *given: made(*given) | dict.fromkeys(parts, 0.0)


def doubled(state: Any) -> Any:
    """Send purged tuples to the next slice twice."""

    def fault(self: Any, k: int, copy: Any) -> Any:
        moves = state(self, k, copy)
        if copy.kind == "build" and k + 1 < len(self.slices):
            self.slices[k + 1].queue.append(copy)
        return moves

    return fault


def overtaking(onward: Any) -> Any:
    """Send a probe ahead of the tuples that it has purged."""

    def fault(self: Any, k: int, copy: Any) -> Any:
        moves = onward(self, k, copy)
        if copy.kind == "probe" and k + 1 < len(self.slices):
            self.slices[k + 1].queue.rotate(1)
        return moves

    return fault


def further(onward: Any) -> Any:
    """Let everything pass the selections between slices."""
    return lambda self, k, copy: onward(self, k, replace(copy, reach=float("inf")))


def shorter(onward: Any) -> Any:
    """Stop a tuple at the beginning of its last slice."""
    return lambda self, k, copy: onward(self, k, replace(copy, reach=copy.reach - 1))


def unwaited(merge: Any) -> Any:
    """Merge without waiting for the queue between the slices."""

    def fault(self: Any, k: int) -> None:
        self.slices[k + 1].queue.clear()
        merge(self, k)

    return fault


def carried(split: Any) -> Any:
    """Move the whole state to the older slice in a split."""

    def fault(self: Any, k: int, at: int) -> None:
        split(self, k, at)
        self.slices[k + 1].state = self.slices[k].state
        self.slices[k].state = ([], [])

    return fault


def hurried(send: Any) -> Any:
    """Let END marks overtake the results before them."""

    def fault(self: Any, node: int, m: Any) -> Any:
        move = send(self, node, m)
        if m.end:
            target, mark = self.sending.pop()
            self.queues[target].appendleft(mark)
        return move

    return fault


def lost(purge: Any) -> Any:
    """Lose purged tuples on the way to the next node."""

    def fault(self: Any, node: int, t: Any) -> Any:
        already = len(self.sending)
        moves = purge(self, node, t)
        del self.sending[already:]
        return moves

    return fault


def spread_out(made: Any) -> Any:
    """Return CTR with two copies for each second of a segment."""

    def fault(self: Any) -> None:
        object.__setattr__(self, "max_copies", 2 * self.segment_batches)
        made(self)

    return fault


BROKEN = [
    # Elseidy 2014
    Broken(
        "suppliers of a region in the place of those of two nations",
        "braid_lab.theta.join_inputs._count_supplier_keys",
        lambda counted: lambda scale, where: counted(scale, "r_name = 'AMERICA'"),
        "unit.test_study_theta.test_joins_have_the_results_of_the_original_system",
        "Elseidy 2014, Table 1",
    ),
    Broken(
        "mappings turned the wrong way",
        "braid.papers.theta.mapping.input_load_factor",
        lambda ilf: lambda r, s, n, m: ilf(r, s, m, n),
        GRID + "test_the_papers_figure_2",
        "Elseidy 2014, Fig. 2",
    ),
    Broken(
        "mappings turned the wrong way, in cells",
        "braid.papers.theta.mapping.input_load_factor",
        lambda ilf: lambda r, s, n, m: ilf(r, s, m, n),
        GRID + "test_lemma_4_1_the_sides_of_an_optimal_cell_are_within_a_factor_of_two",
        "Elseidy 2014, Lemma 4.1",
    ),
    Broken(
        "the optimum of other sizes",
        "unit.test_grid.optimal_mapping",
        lambda optimal: lambda r, s, hosts: optimal(s, r, hosts),
        GRID + "test_lemma_4_2_the_optimum_is_at_most_one_step_away",
        "Elseidy 2014, Lemma 4.2",
    ),
    Broken(
        "a trigger three times too late, tuple by tuple",
        "braid.papers.theta.mapping.MappingDecision.is_checkpoint_due",
        late(3),
        GRID + "test_theorem_4_1_tuple_by_tuple_the_ratio_is_at_most_1_25",
        "Elseidy 2014, Lemma 4.3, Theorem 4.1",
    ),
    Broken(
        "a trigger that never waits",
        "braid.papers.theta.mapping.MappingDecision.is_checkpoint_due",
        lambda due: lambda self: True,
        GRID + "test_lemma_4_5_new_tuples_pay_for_migrations",
        "Elseidy 2014, Lemma 4.5",
    ),
    Broken(
        "the grid never changes, under swings",
        "braid.papers.theta.mapping.MappingDecision.is_checkpoint_due",
        lambda due: lambda self: False,
        GRID + "test_theorem_4_4_swinging_streams_stay_within_the_bound",
        "Elseidy 2014, Theorem 4.4",
        {"k": 4, "statistics": "exact"},
    ),
    Broken(
        "parts that are not nested",
        THETA + "next_place",
        lambda stepped: (
            lambda place, before, after: tuple(
                parts - 1 - k for k, parts in zip(stepped(place, before, after), after, strict=True)
            )
        ),
        THETA + "test_a_step_of_a_mapping_keeps_the_parts_nested",
        "Elseidy 2014, Fig. 3",
    ),
    Broken(
        "growth that moves everything",
        "braid.papers.theta.host_groups.HostGroup._with_host_cells",
        scattered,
        GRID + "test_growth_keeps_a_quarter_and_gives_three_away",
        "Elseidy 2014, Fig. 4",
    ),
    Broken(
        "what a partner sends is not joined",
        "braid_lab.theta.reference.ReferenceGrid._select_tuples_to_probe",
        lambda meets: lambda self, joiner, t, to: [] if to == "mu" else meets(self, joiner, t, to),
        THETA + "test_every_result_is_found_once_however_often_the_grid_changes",
        "Elseidy 2014, Definition 4.2, Theorem 4.3, Lemma 4.6, Algorithm 3",
    ),
    Broken(
        "a controller that decides nothing",
        "braid_lab.theta.reference.ReferenceGrid._decide_migration",
        lambda decide: lambda self: None,
        THETA + "test_the_example_shows_every_part_of_the_algorithms",
        "Elseidy 2014, Algorithms 1 and 2",
    ),
    # Gu 2007
    Broken(
        "one host is always the lightest",
        "braid.papers.common.load_balance.LoadBalance.least_loaded_host",
        lambda lightest: lambda self, chosen, last: 0,
        ATR + "test_the_least_loaded_host_is_chosen",
        "Gu 2007, Eq. 1",
    ),
    Broken(
        "slave tuples go to every host, whatever the time",
        "braid.papers.diffusion.alignment.Alignment._find_hosts_in_reach",
        lambda ahead: lambda self, stream: set(range(self.hosts)),
        ATR + "test_segments_are_disjoint_and_slaves_overlap_as_in_figure_3",
        "Gu 2007, Fig. 3",
        {"master": 0},
    ),
    Broken(
        "covers of the heaviest hosts",
        "braid.papers.diffusion.coordinated.greedy_cover",
        lambda greedy: (
            lambda sets, weights, wanted: greedy(sets, [1 / (1 + w) for w in weights], wanted)
        ),
        CTR + "test_the_path_of_figure_5",
        "Gu 2007, Fig. 5",
    ),
    Broken(
        "every batch is a segment of its own",
        "braid.papers.diffusion.coordinated._Planner._route_segment",
        lambda route: lambda self, stream, segment: route(self, stream, None),
        CTR + "test_a_segment_keeps_its_hosts_and_its_join_order",
        "Gu 2007, Fig. 6",
    ),
    Broken(
        "paths that are chosen by Eq. 3 as printed",
        "braid.papers.diffusion.coordinated._Way",
        lambda way: lambda overhead, eq3, order, hops: way(eq3, eq3, order, hops),
        CTR + "test_the_overhead_that_is_estimated_is_the_overhead_that_is_counted",
        "Gu 2007, Eq. 3",
    ),
    Broken(
        "longer segments on more hosts",
        "braid.papers.diffusion.coordinated.Coordinated.__post_init__",
        spread_out,
        CTR + "test_the_segment_length_does_not_change_the_overhead",
        "Gu 2007, Eq. 4",
    ),
    # Wang 2008, Part I
    Broken(
        "a slice that purges a moment too late",
        "braid_lab.slices.reference.ReferenceChain._is_past_end",
        lambda past: lambda self, age, end: age > end + 1,
        CHAIN + "test_results_and_disjoint_states_under_any_scheduling",
        "Wang 2008, Theorems 1 and 2, Definitions 1 to 3, Fig. 5.1, 5.3 to 5.5",
    ),
    Broken(
        "what is purged goes on twice",
        "braid_lab.slices.reference.ReferenceChain._forward_copy",
        doubled,
        CHAIN + "test_results_and_disjoint_states_under_any_scheduling",
        "Wang 2008, Theorem 3, Lemma 2",
    ),
    Broken(
        "a probe that overtakes what it purges",
        "braid_lab.slices.reference.ReferenceChain._forward_copy",
        overtaking,
        CHAIN + "test_lemma_1_a_slice_holds_what_has_its_age_when_it_is_probed",
        "Wang 2008, Lemma 1",
    ),
    Broken(
        "results that no query is given",
        "braid_lab.slices.reference.ReferenceChain._deliver_results",
        lambda serve: lambda self, k, probe, pairs: [],
        CHAIN + "test_table_5_1_line_by_line",
        "Wang 2008, Table 5.1, Fig. 5.2",
    ),
    Broken(
        "selections that stop a tuple too early",
        "braid_lab.slices.reference.ReferenceChain._forward_copy",
        shorter,
        CHAIN + "test_selections_in_the_chain_change_no_result_and_hold_nothing_useless",
        "Wang 2008, Theorem 4, Lemma 3, Fig. 5.6",
    ),
    Broken(
        "selections that let everything through",
        "braid_lab.slices.reference.ReferenceChain._forward_copy",
        further,
        CHAIN + "test_selections_in_the_chain_change_no_result_and_hold_nothing_useless",
        "Wang 2008, Theorem 6, Fig. 7.6",
    ),
    Broken(
        "results leave as they are found",
        "braid_lab.slices.reference.Union.buffer_results",
        lambda take: lambda self, probe, results: self.output.extend(results),
        CHAIN + "test_split_and_merge_in_the_middle_lose_and_double_nothing",
        "Wang 2008, Fig. 5.7",
    ),
    Broken(
        "a merge that does not wait",
        "braid_lab.slices.reference.ReferenceChain.merge_slices",
        unwaited,
        CHAIN + "test_split_and_merge_in_the_middle_lose_and_double_nothing",
        "Wang 2008, Lemma 6, Fig. 7.5",
    ),
    Broken(
        "a split that takes the state along",
        "braid_lab.slices.reference.ReferenceChain.split_slice",
        carried,
        CHAIN + "test_split_and_merge_in_the_middle_lose_and_double_nothing",
        "Wang 2008, Lemma 5, Fig. 7.4",
    ),
    Broken(
        "slices that hold what younger ones hold",
        "braid.papers.slices.chain_optimizer.edge_memory",
        lambda held: lambda i, j, windows, s: held(0, j, windows, s),
        SLICES + "test_without_selections_every_chain_holds_the_longest_window",
        "Wang 2008, Theorem 5",
    ),
    Broken(
        "a chain that is never merged",
        "unit.test_slices.cpu_chain",
        lambda cpu: lambda windows, statistics: windows,
        SLICES + "test_cpu_chain_is_the_cheapest_of_all_chains",
        "Wang 2008, Lemma 4, Fig. 7.3",
    ),
    Broken(
        "probes that go no further than the first slice",
        "braid_lab.slices.reference.ReferenceChain._forward_copy",
        lambda onward: lambda self, k, copy: [] if copy.kind == "probe" else onward(self, k, copy),
        CHAIN + "test_lemma_1_needs_the_probe_to_travel_behind_what_it_purges",
        "Wang 2008, Fig. 2.1",
    ),
    Broken(
        "windows with their end",
        "unit.test_reference.brute_force_join",
        lambda brute: (
            lambda tuples, windows, *theta: brute(tuples, tuple(w + 1 for w in windows), *theta)
        ),
        PSP + "test_brute_force_knows_the_window_is_strict_and_the_condition",
        "Wang 2008, Fig. 3.1 and 3.2",
    ),
    Broken(
        "isolated queries that share",
        "braid_lab.slices.cost.isolated_cost",
        lambda isolated: cost.pull_up_cost,
        SHARED + "test_isolated_queries_hold_most_when_windows_overlap",
        "Wang 2008, Fig. 4.1",
    ),
    Broken(
        "merged slices that route for nothing",
        "braid.papers.slices.chain_optimizer.edge_cost",
        lambda edge: lambda i, j, windows, s: edge(i, j, windows, replace(s, join_selectivity=0.0)),
        SLICES + "test_the_graph_of_figure_7_3",
        "Wang 2008, Fig. 7.1 to 7.3",
    ),
    Broken(
        "a merged slice without what a selection would have stopped",
        "unit.test_slices.edge_memory",
        lambda held: lambda i, j, windows, s: sum(held(k, k + 1, windows, s) for k in range(i, j)),
        SLICES + "test_a_merged_slice_holds_and_probes_what_a_selection_would_have_stopped",
        "Wang 2008, Fig. 7.7",
    ),
    Broken(
        "pull-up that routes for nothing",
        "braid_lab.slices.cost.pull_up_cost",
        without(route=0.0),
        SHARED + "test_the_equations_for_two_queries_as_printed",
        "Wang 2008, Eq. 4.1, Table 4.1, Fig. 4.2",
    ),
    Broken(
        "partition that routes for nothing",
        "braid_lab.slices.cost.partition_cost",
        without(route=0.0),
        SHARED + "test_the_equations_for_two_queries_as_printed",
        "Wang 2008, Eq. 4.2, Fig. 4.3",
    ),
    Broken(
        "a chain whose unions cost nothing",
        "braid_lab.slices.cost.state_slice_cost",
        without(union=0.0),
        SHARED + "test_the_equations_for_two_queries_as_printed",
        "Wang 2008, Eq. 5.1",
    ),
    Broken(
        "a quarter of the savings, as they follow from the costs",
        "braid_lab.slices.cost.chain_savings",
        quartered,
        SHARED + "test_equation_5_2_follows_without_the_terms_linear_in_lambda",
        "Wang 2008, Eq. 5.2",
    ),
    Broken(
        "trees without intermediate states",
        "braid_lab.slices.join_tree_costs._compute_state_sizes",
        lacking("AB"),
        SHARED + "test_memory_of_chapter_6_as_printed",
        "Wang 2008, Eq. 6.1 and 6.2, Table 6.2, Fig. 6.1 and 6.2",
    ),
    Broken(
        "a tree's chains without the state AB3",
        "braid_lab.slices.join_tree_costs.slice_memory",
        lacking("AB3"),
        SHARED + "test_memory_of_chapter_6_as_printed",
        "Wang 2008, Eq. 6.3, Fig. 6.3",
    ),
    Broken(
        "a tree's chains without the state AB3, in ratios",
        "braid_lab.slices.join_tree_costs.slice_memory",
        lacking("AB3"),
        SHARED + "test_equation_6_4_follows_from_the_states_ab_and_windows_of_30_and_30_n",
        "Wang 2008, Eq. 6.4",
        {"m": 0.5, "n": 0.5},
    ),
    Broken(
        "trees that purge for nothing",
        "braid_lab.slices.join_tree_costs._compute_isolated_cpu",
        lacking("probe"),
        SHARED + "test_work_of_chapter_6_as_printed",
        "Wang 2008, Eq. 6.5",
    ),
    Broken(
        "trees pulled up that route for nothing",
        "braid_lab.slices.join_tree_costs.pull_up_cpu",
        lacking("route"),
        SHARED + "test_work_of_chapter_6_as_printed",
        "Wang 2008, Eq. 6.6",
    ),
    Broken(
        "a tree's chains whose AB3 probes nothing",
        "braid_lab.slices.join_tree_costs.slice_cpu",
        lacking("probe AB3"),
        SHARED + "test_work_of_chapter_6_as_printed",
        "Wang 2008, Eq. 6.7",
    ),
    Broken(
        "Eq. 6.8 with the probing by AB3",
        "braid_lab.slices.join_tree_costs.printed_cpu_ratios",
        lambda printed: join_tree_costs.cpu_ratios,
        SHARED + "test_equation_6_8_lacks_the_probing_by_ab3",
        "Wang 2008, Eq. 6.8",
        {"m": 0.5, "n": 0.5},
    ),
    # Wang 2008, Part II
    Broken(
        "what is purged does not arrive",
        "braid_lab.psp.reference._Ring._purge_slices",
        lost,
        PSP + "test_the_ring_finds_what_brute_force_finds_in_any_join_order",
        "Wang 2008, Theorem 8, Fig. 12.1",
    ),
    Broken(
        "nothing is purged from node to node",
        "braid_lab.psp.reference._Ring._purge_slices",
        lambda purge: lambda self, node, t: [],
        PSP + "test_slices_hold_what_their_window_says_when_they_are_probed",
        "Wang 2008, Lemma 7, Definition 4",
    ),
    Broken(
        "nothing is purged, step by step",
        "braid_lab.psp.reference._Ring._purge_slices",
        lambda purge: lambda self, node, t: [],
        PSP + "test_the_first_steps_of_figure_12_4",
        "Wang 2008, Fig. 12.3 and 12.4",
    ),
    Broken(
        "END marks that overtake results",
        "braid_lab.psp.reference._Ring._send_message",
        hurried,
        PSP + "test_state_is_in_one_place_and_the_last_end_mark_finds_an_empty_ring",
        "Wang 2008, Theorem 7, Lemma 8",
    ),
    Broken(
        "results in the order of the older tuple",
        "braid_lab.psp.reference._Ring._join_with_slice",
        lambda meet: lambda self, *given: meet(self, *given)[::-1],
        PSP + "test_lemma_15_2_a_later_result_is_later_in_some_stream",
        "Wang 2008, Lemma 15.2",
    ),
    Broken(
        "a head that stands still",
        "braid.papers.psp.ring.rotate_head",
        lambda turned: lambda slices, state: slices,
        RING + "test_the_head_moves_and_nothing_else",
        "Wang 2008, Fig. 12.6 and 12.7",
    ),
    Broken(
        "heads that stand still, of rings of their own",
        "braid.papers.psp.ring.rotate_head",
        lambda turned: lambda slices, state: slices,
        RING + "test_figure_12_2_rings_of_their_own_lengths_and_orders",
        "Wang 2008, Fig. 12.2",
    ),
    Broken(
        "a stream that ages by its own clock",
        "braid.papers.psp.ring.plan_purges",
        lambda aged: lambda slices, state: aged(slices, replace(state, clock=state.latest)),
        RING + "test_a_silent_stream_holds_back_the_purge_of_the_others",
        "Wang 2008, Lemma 15.1",
    ),
    Broken(
        "state that travels is given up at once, by PSP-I",
        "braid.papers.psp.ring._Planner._relocate_blocks",
        lambda move: (
            lambda self, stream, moves, reason, is_delayed: move(self, stream, moves, reason, False)
        ),
        RING + "test_delayed_purge_keeps_a_block_on_two_nodes_for_one_batch",
        "Wang 2008, Fig. 12.5",
    ),
    Broken(
        "sends that cost nothing",
        "unit.test_ring_cost.ring_work",
        lambda ring: lambda load, nodes: ring(load, 0),
        COST + "test_equations_13_1_and_13_2",
        "Wang 2008, Eq. 13.1 and 13.2, Table 13.1",
    ),
    Broken(
        "a service rate of N nodes",
        "unit.test_ring_cost.service_rate",
        lambda rate: lambda load, nodes: nodes * rate(load, nodes),
        COST + "test_equation_13_3_lacks_the_n_of_13_4",
        "Wang 2008, Eq. 13.3",
    ),
    Broken(
        "an output rate without the sends",
        "unit.test_ring_cost.output_rate",
        lambda rate: lambda load, nodes: nodes * rate(load, 1),
        COST + "test_equation_13_4_grows_with_n_up_to_a_bound",
        "Wang 2008, Eq. 13.4",
    ),
    Broken(
        "a latency without hops",
        "unit.test_ring_cost.mean_latency_seconds",
        lambda latency: lambda load, lengths: latency(replace(load, hop=1e-12), lengths),
        COST + "test_equation_13_5_for_equal_rings",
        "Wang 2008, Eq. 13.5",
    ),
    # Wang 2008, Part III
    # No one fault of the chain does it: a slice gives up what is too old for all queries, and so
    # does compaction. What is broken is what the state is held against.
    Broken(
        "the largest query has half its window",
        BITS + "alone",
        lambda alone: lambda q: alone(replace(q, windows=tuple(w // 2 for w in q.windows))),
        BITS + "test_theorem_10_the_state_of_a_ring_is_that_of_the_largest_query",
        "Wang 2008, Theorem 10",
        {"hosts": 1},
    ),
    Broken(
        "selections stay out of a shared ring",
        "braid.papers.slices.chain._Planner._cut_block",
        lambda cut: lambda self, b, first, target: b,
        BITS + "test_theorem_12_selections_in_the_ring_keep_out_what_no_query_wants",
        "Wang 2008, Theorem 12",
        {"hosts": 1},
    ),
    Broken(
        "every intermediate result is probed with",
        "braid.kernels.query_bitmaps.QueryBitmaps.filter_wanted",
        lambda wanted: lambda self, found, block, stream: found,
        BITS + "test_theorem_13_intermediate_results_are_not_probed_where_no_query_wants_them",
        "Wang 2008, Theorem 13",
        {"hosts": 1},
    ),
    Broken(
        "selections are not pushed into the ring",
        "unit.test_sharing_costs.shared_ring_workload",
        lambda shared: lambda load, passing: load,
        SHARED + "test_equation_21_1_with_selections_is_13_1_with_smaller_states",
        "Wang 2008, Eq. 21.1",
    ),
    Broken(
        "probes for whom nobody asks",
        "braid.kernels.query_bitmaps.QueryBitmaps.filter_wanted",
        lambda wanted: lambda self, found, block, stream: found,
        BITS + "test_probes_are_left_out_only_where_no_query_wants_what_they_could_find",
        "Wang 2008, Lemma 9",
    ),
    Broken(
        "every result is given to every query",
        "braid.kernels.query_bitmaps.QueryBitmaps.result_bitmaps",
        lambda of: lambda self, found: of(self, found) | -1,
        BITS + "test_every_result_and_every_mark_of_the_state_serves_a_query",
        "Wang 2008, Theorem 11",
        {"hosts": 1},
    ),
    Broken(
        "windows of three queries that are alike",
        "braid_lab.slices.experiments.WINDOWS",
        lambda windows: windows | {"uniform": windows["mostly small"]},
        "unit.test_study_sharing.test_table_8_1",
        "Wang 2008, Table 8.1",
    ),
    Broken(
        "windows of another distribution",
        "braid_lab.slices.experiments.SPREADS",
        lambda spreads: spreads | {"uniform": spreads["mostly small"]},
        "unit.test_study_sharing.test_table_8_2",
        "Wang 2008, Table 8.2",
    ),
    # Gedik 2007
    Broken(
        "tuples that never expire",
        "braid_lab.shedding.reference.SheddingJoin._expire_tuples",
        lambda expire: lambda self, stream, now: None,
        SHED + "test_all_of_the_window_is_the_join",
        "Gedik 2007, Fig. 2 and 3",
        {"predicate": "overlap", "order": None},
    ),
    Broken(
        "a merge that does not stop",
        "braid_lab.shedding.set_indexes.InvertedIndex.merge_lists",
        lambda merge: lambda self, query, since=None: merge(self, query),
        SHED + "test_the_index_goes_step_by_step",
        "Gedik 2007, Fig. 4",
    ),
    Broken(
        "a fraction that stays, whatever is left in the input",
        "braid_lab.shedding.paper_algorithms.adapt_fraction",
        lambda adapt: lambda r, beta, boost=1.2: r,
        POLICY + "test_algorithm_1_falls_when_input_is_left_and_rises_by_the_boost_at_most",
        "Gedik 2007, Algorithm 1",
    ),
    Broken(
        "basic windows that are not ranked",
        "braid_lab.shedding.reference.SheddingJoin.adapt_window_ranks",
        lambda adapt: lambda self, now: None,
        SHED + "test_algorithm_2_ranks_basic_windows_by_what_they_gave",
        "Gedik 2007, Algorithm 2",
    ),
    Broken(
        "all of a basic window, whatever the share",
        "braid_lab.shedding.reference.SheddingJoin.probe_basic_window",
        lambda probe: lambda self, t, at, part, share: probe(self, t, at, part, 1.0),
        SHED + "test_algorithm_3_uses_r_of_the_window",
        "Gedik 2007, Algorithm 3",
    ),
    Broken(
        "the less useful window first, for any sizes",
        "unit.test_shedding_policy.split_directions",
        lambda directions: lambda r, windows, o: directions(r, windows, o[::-1]),
        POLICY + "test_algorithm_4_keeps_the_constraint_and_prefers_the_better_window",
        "Gedik 2007, Algorithm 4",
    ),
    Broken(
        "a heap whose top is worth least",
        "unit.test_shedding_policy.fill_by_heap",
        lambda by_heap: lambda lists, *rest: by_heap([[-v for v in some] for some in lists], *rest),
        POLICY + "test_algorithm_5_with_its_heap_takes_what_sorting_takes",
        "Gedik 2007, Algorithm 5",
    ),
]
