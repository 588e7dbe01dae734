"""The pages for teachers: lessons of 45 minutes, links that open the right cell, true answers.

Each question of a page has a test here, which finds the answer that the page gives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from braid.core.run_events import BatchCommitted
from braid.papers.baselines.hash_partition import HashPartition
from braid.papers.common.join_orders import IntermediateGrowth
from braid.papers.diffusion.aligned import Aligned
from braid.papers.diffusion.segment_length import atr_overhead
from braid.papers.hotkeys.hot_keys import HotKeys
from braid.papers.hotkeys.run_events import SpreadChanged
from braid.papers.hypercube.cells import CubeCells
from braid.papers.hypercube.hypercube import HyperCube
from braid.papers.hypercube.run_events import SharesChosen
from braid.papers.hypercube.shares import (
    CubeSize,
    count_copies,
    count_received_tuples,
    find_best_shares,
)
from braid.papers.psp.ring import Ring
from braid.papers.psp.run_events import RingResized
from braid.papers.reuse.query_definition import may_reuse
from braid.papers.shedding.shed import Shed
from braid.papers.slices.chain_optimizer import ChainStatistics, edge_cost, memory_chain
from braid.papers.theta.grid import StaticGrid
from braid.papers.theta.host_groups import make_groups
from braid.papers.theta.mapping import input_load_factor, optimal_mapping, square_mapping
from braid.simulation.simulator import simulate
from braid_lab.common.tuple_models import brute_force_join, parse_tuples
from braid_lab.hotkeys.experiments import SkewSetting, run_skewed_join
from braid_lab.hypercube import experiments as cubes
from braid_lab.hypercube.claims import CHAIN
from braid_lab.psp import experiments as ring_runs
from braid_lab.psp import reference as rings
from braid_lab.psp.scheme_properties import relocation_table
from braid_lab.reuse import experiments as study
from braid_lab.reuse.claims import plan_figure_1
from braid_lab.reuse.pair_steps import PART_OF_Q1, explain_typed
from braid_lab.reuse.paper_example import Q2
from braid_lab.shedding import policy_figures
from braid_lab.shedding.policy_runs import PolicyRun, SetTuples
from braid_lab.slices import reference as chains
from braid_lab.theta import reference as grids
from braid_lab.workloads.set_streams import SetStreams
from mutations.shedding import results
from reuse_cases import figure1_queries

pytestmark = pytest.mark.unit
ROOT = Path(__file__).parents[2]
PAGES = ("theta", "diffusion", "ring", "slices", "shedding", "reuse", "hotkeys", "hypercube")
ANSWERS: dict[tuple[str, int], Callable[[], None]] = {}


def answer(page: str, question: int) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register the test of a page's question."""

    def register(test: Callable[[], None]) -> Callable[[], None]:
        ANSWERS[page, question] = test
        return test

    return register


def page_text(page: str) -> str:
    return (ROOT / "docs" / "teaching" / f"{page}.md").read_text(encoding="utf-8")


def questions(page: str) -> list[str]:
    """Return the questions of a page with their answers, in order."""
    part = page_text(page).split("## Predict, then press")[1].split("\n## ")[0]
    return [" ".join(q.split()) for q in re.split(r"^\d+\. ", part, flags=re.M)[1:]]


@pytest.mark.parametrize("page", PAGES)
def test_a_lesson_takes_45_minutes_and_its_links_open_headings_of_notebooks(page: str) -> None:
    lesson = page_text(page).split("## One lesson")[1].split("\n## ")[0]
    assert sum(map(int, re.findall(r"^\| (\d+) \|", lesson, flags=re.M))) == 45
    links = re.findall(r"/lab/tree/(\w+)\.ipynb#(\S+)\) \|", lesson)
    assert len(links) >= 3
    for notebook, anchor in links:
        cells = json.loads((ROOT / "notebooks" / f"{notebook}.ipynb").read_text())["cells"]
        lines = "".join("".join(c["source"]) + "\n" for c in cells if c["cell_type"] == "markdown")
        headings = re.findall(r"^#+ (.*)$", lines, flags=re.M)
        assert anchor in {h.replace(" ", "-") for h in headings}, (notebook, anchor)


@pytest.mark.parametrize("page", PAGES)
def test_each_question_of_a_page_has_an_answer_and_a_test_of_it(page: str) -> None:
    asked = questions(page)
    assert len(asked) >= 3 and all("?" in q and q.endswith(")") for q in asked)
    assert {k for p, k in ANSWERS if p == page} == set(range(1, len(asked) + 1))


def test_the_answers_that_the_pages_give_are_found() -> None:
    for found in dict.fromkeys(ANSWERS.values()):
        found()


@answer("theta", 1)
def when_the_grid_changes() -> None:
    steps = grids.run_typed("a b b b b b b b b b a b").steps
    decided = [s.text for s in steps if s.line and s.line.algorithm == "Algorithm 2"]
    first, second = decided
    assert "ILF 3 under (2, 2) stays the least" in first
    assert "ILF 5 under (2, 2), 4 under (1, 4): migrate" in second


@answer("theta", 2)
def what_a_joiner_keeps() -> None:
    assert optimal_mapping(1, 4, 4, (2, 2)) == (1, 4)
    (before,) = make_groups(4, [(2, 2)], 4)
    after = before.with_mapping((1, 4))
    for host, (row, column) in before.cells_by_host().items():
        (new_row, new_column) = after.cells_by_host()[host]
        old_s, new_s = before.partition_keys(1, column), after.partition_keys(1, new_column)
        assert old_s[0] <= new_s[0] < new_s[1] <= old_s[1], "half of its part of S"
        partner = next(
            h for h, (r, c) in before.cells_by_host().items() if c == column and r != row
        )
        old_r = [before.partition_keys(0, before.cells_by_host()[h][0]) for h in (host, partner)]
        whole = after.partition_keys(0, new_row)
        assert (min(k[0] for k in old_r), max(k[1] for k in old_r)) == whole


@answer("theta", 3)
def what_an_old_tuple_meets() -> None:
    """It meets what is stored at its old place, except new tuples that do not remain there."""
    draw = np.random.default_rng(0)
    old = []
    for _ in range(12):
        text = " ".join(draw.choice(["a", "b"], 16, p=[0.2, 0.8]))
        trace = grids.run_typed(text)
        tuples = parse_tuples(text)
        assert sorted(trace.all_results) == brute_force_join(tuples, (99, 99)), "each found once"
        old += [s for s in trace.steps if re.search(r" of Δ meets ", s.text)]
    assert len(old) > 20
    for step in old:
        met = set(step.text.split(" meets ")[1].split(", ")) - {"nothing"}
        assert step.node is not None
        other = step.stored[step.node]["ba".index(step.arrival[0])]
        kept = {name for name in other if not name.endswith(("Δ′", "μ"))}
        assert {name.split()[0] for name in kept} <= met
        assert met <= {name.split()[0] for name in other if not name.endswith("μ")}


@answer("theta", 4)
def why_no_result_is_found_twice() -> None:
    (group,) = make_groups(16, [(4, 4)])
    for i, j in product(range(4), range(4)):
        assert len({*group.partition_hosts(0, i)} & {*group.partition_hosts(1, j)}) == 1


@answer("theta", 5)
def what_a_grid_costs_that_never_changes() -> None:
    assert input_load_factor(1, 16, *square_mapping(16)) == 4.25
    assert input_load_factor(1, 16, *optimal_mapping(1, 16, 16)) == 2


@answer("diffusion", 1)
def why_a_tuple_is_sent_twice() -> None:
    """A tuple of each stream a second, segments of 10 s: W_M before a change to W_i after it."""
    for window in (2, 4):
        placement = Aligned(4, segment_batches=10, adaptive=False, master=0)
        run = simulate(placement, [(1, 1)] * 50, windows=(window, window))
        commits = [e for e in run if isinstance(e, BatchCommitted)]
        sent = {e.batch: e.total_host_metrics.received_tuples for e in commits if e.batch >= 10}
        changes = (10, 20, 30, 40, 50)
        spans = {k for c in changes for k in range(c - window - 1, c + window)}
        assert sent == {batch: 3 if batch in spans else 2 for batch in sent}


@answer("diffusion", 2)
def which_master_is_the_best() -> None:
    rates, windows = (5, 20, 10), (10, 20, 40)
    assert [atr_overhead(rates, windows, m, 5) for m in range(3)] == [220, 150, 290]
    level = [atr_overhead((9, 9, 9), windows, m, 5) for m in range(3)]
    assert level == sorted(level)


@answer("diffusion", 3)
def whether_the_order_matters() -> None:
    """A tuple has 10 partners in stream 1 and 2 in stream 2: its best path visits 2 first."""
    growth = IntermediateGrowth({((0,), 1): (100, 10), ((0,), 2): (100, 2)}, [1, 100, 100])
    assert growth.best_join_orders(0, 1) == [(2, 1)]
    assert growth.intermediate_counts(0, (2, 1)) == [1, 2]
    assert growth.intermediate_counts(0, (1, 2)) == [1, 10]


@answer("ring", 1)
def what_a_node_keeps() -> None:
    """A block that moves on is on both nodes for one batch, in which probes are on their way."""
    live: dict[int, tuple[int, ...]] = {}
    both = []
    for e in simulate(Ring(4, "interleaved"), [(5, 5)] * 30, windows=(8, 8)):
        if isinstance(e, BatchCommitted):
            live |= {b.id: b.hosts for b in e.changed_blocks}
            live = {id: hosts for id, hosts in live.items() if id not in e.dropped_block_ids}
            both.append({(id, hosts) for id, hosts in live.items() if len(hosts) == 2})
    assert any(both) and all(not a & b for a, b in pairwise(both))


@answer("ring", 2)
def which_typed_tuples_join() -> None:
    assert len(rings.run_typed("b c a").all_results) == 1
    assert not rings.run_typed("b - - - - - - - - - - - - - - - - a c").all_results


@answer("ring", 3)
def what_moves_when_a_ring_grows() -> None:
    moves = relocation_table(((3, 1),))
    assert list(moves["moved_modelled"]) == pytest.approx([1 / 3, 2 / 3, 1])
    ring = Ring(3, resize=((24, 4),), relocation="passive")
    run = list(simulate(ring, [(10, 10)] * 40, windows=(12, 12)))
    passed = [e.total_host_metrics.migrated_tuples for e in run if isinstance(e, BatchCommitted)]
    assert len(passed) == 40 and not any(passed)
    assert [e.nodes for e in run if isinstance(e, RingResized)] == [4]


@answer("ring", 4)
def what_a_longer_ring_costs() -> None:
    """By the policy: the busiest node's state, pairs and time for a tuple, and then hops of 1 ms."""
    setting = ring_runs.RingSetting(rate=20.0, seconds=12.0)
    most = []
    for n in (2, 6, 18):
        given = ring_runs.with_fine_batches(setting, n)
        batches = ring_runs.steady_batches(given.simulate_placement(Ring(n)), given)
        hosts = [(h.stored_tuples, h.compared_pairs) for b in batches for h in b.host_metrics]
        state, pairs = (max(counts) for counts in zip(*hosts, strict=True))
        busy, hops = ring_runs.busiest_seconds(batches, given), (setting.streams - 1) * n / 2
        most.append((state, pairs, busy, -hops, busy + 1e-3 * hops))
    few, some, many = most
    assert all(a > b > c for a, b, c in list(zip(few, some, many, strict=True))[:4])
    assert few[-1] > some[-1] < many[-1]


@answer("slices", 1)
def which_slices_two_queries_have() -> None:
    assert memory_chain([60, 10]) == (10, 60)
    chain = chains.ReferenceChain([10, 60])
    for t in parse_tuples("a - - - - b - - - - - - - - - - - - - - - b"):
        chain.process_tuple(t)
        chain.run_until_empty()
    short, long = chain.results_by_query
    assert len(short) == 1 and len(long) == 2, "b2 is 16 s after b1"


@answer("slices", 2)
def which_tuples_find_a1() -> None:
    steps = chains.run_typed("a - b - b - b").steps
    found = [(s.arrival, s.node) for s in steps if s.results]
    assert found == [("b1", 1)]
    assert any("b2ᵖ purges a1" in s.text and "J2" in s.text for s in steps)


@answer("slices", 3)
def why_a_purge_is_enough() -> None:
    """Whatever is found in slice k is younger than its end, though no age is compared."""
    text = "a b a b - - a b b a - - - b a"
    for step in chains.run_typed(text).steps:
        for a, b in step.results:
            assert step.node is not None and abs(a.time - b.time) < 2 * (step.node + 1)


@answer("slices", 4)
def what_a_merged_slice_saves() -> None:
    ones = ((1.0, 1.0),) * 2
    one = ChainStatistics((1.0, 1.0), 0.0, ones, 0.5, (1, 1))
    apart = edge_cost(0, 1, (10, 60), one) + edge_cost(1, 2, (10, 60), one)
    assert apart - edge_cost(0, 2, (10, 60), one) == pytest.approx(1.5), "a purge and a visit"
    matching = ChainStatistics((1.0, 1.0), 0.1, ones, 0.5, (1, 1))
    routed = edge_cost(0, 2, (10, 60), matching) - edge_cost(0, 2, (10, 60), one)
    assert routed == pytest.approx(0.1 * 60), "each result's age"


def shed_by_age(fraction: float, seconds: float, **sets: float) -> tuple[SetTuples, PolicyRun]:
    """Return the tuples of two streams, and a run of the policy, which learns by age."""
    tuples = SetTuples(SetStreams((60.0, 60.0), seconds, **sets), (20.0, 20.0))  # type: ignore[arg-type]
    shed = Shed(fraction=fraction, method="time", sample=0.1, basic_window="1 second")
    return tuples, PolicyRun(tuples, shed)


@answer("shedding", 1)
def which_ages_are_worth_a_probe() -> None:
    """Items come back after 40 s, and in one stream 6 s later: the policy learns to probe there."""
    _, run = shed_by_age(0.2, 40.0, kappa=0.8, shift=6 / 40)
    items = [item for item in run.run_batches()[-1].items if item.window == 0]
    assert len(items) == 20
    best = max(items, key=lambda item: item.expected_matches)
    whole = {item.basic_window for item in items if item.shares[0] > 0.99}
    assert best.basic_window in (5, 6) and {5, 6} <= whole <= {3, 4, 5, 6, 7, 8}


@answer("shedding", 2)
def what_half_of_the_pairs_finds() -> None:
    found = {}
    for kappa in (0.0, 2.0):
        tuples, run = shed_by_age(0.5, 45.0, kappa=kappa)
        full, done = tuples.count_all()[25:].sum(), run.run_batches()[25:]
        found[kappa] = sum(batch.results for batch in done) / full
    assert found[0.0] == pytest.approx(0.5, abs=0.06) and found[2.0] > 0.99


@answer("shedding", 3)
def what_learning_costs() -> None:
    """For sharp peaks the policy finds less than with true densities in every phase of a burst."""
    runs = policy_figures.burst_runs((0.4, 0.8), methods=("time",), scale=0.1)
    found = (runs["recall_counted"] / runs["recall_modelled"]).groupby(runs["kappa"])
    assert found.size()[0.8] > 4 and found.max()[0.8] < 1
    flat, sharp = found.last()
    assert sharp < flat - 0.05, "over the whole run"


@answer("shedding", 4)
def how_skipped_pairs_are_estimated() -> None:
    """The policy processes a quarter of all pairs; the weights of its results tell the rest."""
    whole, part = results(None), results("selective")
    assert part["found"] < 0.9 * whole["found"]
    assert abs(part["estimated"] - whole["found"]) < 2 * part["error"] < whole["found"]


@answer("reuse", 1)
def whether_a_longer_window_can_be_served() -> None:
    tables = {s.parts: s.table for s in explain_typed(PART_OF_Q1, Q2).steps}
    assert ("checkins: RANGE", "5 min") in tables["windows",]
    assert ("RANGE of checkins", "5 min", "1 min") in tables["the first query",]


@answer("reuse", 2)
def whether_reuse_pays_far_away() -> None:
    _, plans = plan_figure_1()
    assert type(plans["SINK4"].tree).__name__ == "ReusedOperator"
    assert type(plans["SINK1"].tree).__name__ == "NewOperator"


@answer("reuse", 3)
def what_is_never_relaxed() -> None:
    q1, q2 = figure1_queries()
    assert not may_reuse(q1, q2), "other streams"
    part = q1.restrict_to(["flights", "checkins"])
    assert may_reuse(part, q2)
    joined = replace(part, joins=part.joins | q1.joins)
    assert joined.joins > q2.joins and not may_reuse(joined, q2), "a join condition more"
    by_gate, by_both = (
        frozenset(("flights", name) for name in names) for names in (["gate"], ["gate", "num"])
    )
    grouped, wanted = replace(part, groups=by_gate), replace(q2, groups=by_both)
    assert not may_reuse(grouped, wanted) and not may_reuse(grouped, q2), "groups more"
    assert may_reuse(replace(part, groups=by_both), replace(q2, groups=by_gate))


@answer("reuse", 4)
def what_reuse_saves_of_joins_that_emit_much() -> None:
    surface = study.savings_surface("enterprise", [60], selectivities=(1.0, 0.0005))
    much, little = surface.to_dict("records")
    assert much["output"] > 3 > 1 > little["output"]
    assert much["work"] > 1 > 0.5 > little["work"]


def one_value_in_most(tuples: int = 1200, batches: int = 6) -> dict[str, pa.Table]:
    """Return two streams; 60 % of their tuples have the same value."""
    draw = np.random.default_rng(0)
    at = np.arange(tuples)
    columns = {
        "ts": pa.array(at * batches * 60 * 10**6 // tuples, pa.timestamp("us")),
        "batch": pa.array(at * batches // tuples, pa.int32()),
    }
    return {
        alias: pa.table(
            columns
            | {"k": np.where(draw.random(tuples) < 0.6, 0, draw.integers(1, 500, tuples)), "n": at}
        )
        for alias in "ab"
    }


@answer("hotkeys", 1)
@answer("hotkeys", 2)
def who_shares_a_value_that_most_tuples_have() -> None:
    setting = SkewSetting(rows=1200, batches=6, hosts=16, window_share=1.0)
    events = run_skewed_join(HotKeys(16), setting, one_value_in_most())
    first = [e for e in events if isinstance(e, SpreadChanged)][-1].spread[0]
    assert first.hosts == tuple(range(16)) and first.share == pytest.approx(0.6, abs=0.03)
    last = [e for e in events if isinstance(e, BatchCommitted)][-1]
    assert last.total_host_metrics.stored_tuples == sum(last.total_received_tuples), "once"
    sent = last.total_host_metrics.received_tuples / sum(last.received_tuples)
    assert sent == pytest.approx(0.6 * 16 + 0.4, abs=0.5)
    grid = run_skewed_join(StaticGrid(16), setting, one_value_in_most())
    last = [e for e in grid if isinstance(e, BatchCommitted)][-1]
    assert last.total_host_metrics.stored_tuples == 4 * sum(last.total_received_tuples)


@answer("hotkeys", 3)
def which_tuples_move_later() -> None:
    """With a small budget, those of a change move over several batches, and none is lost."""
    setting = SkewSetting(rows=2000, batches=10, hosts=4, shift=True, window_share=1.0)
    events = run_skewed_join(HotKeys(4, rate=0.2), setting)
    change = next(e for e in events if isinstance(e, SpreadChanged))
    moved = {
        e.batch: e.total_host_metrics.migrated_tuples
        for e in events
        if isinstance(e, BatchCommitted)
    }
    assert 0 < moved[change.batch] < sum(moved.values())
    assert sum(count > 0 for count in moved.values()) > 1
    hashed = run_skewed_join(HashPartition(4), setting)
    assert count_results(events) == count_results(hashed)


@answer("hotkeys", 4)
def what_values_of_one_hash_do() -> None:
    setting = SkewSetting(rows=1200, batches=6, hosts=4)
    few, many = (run_skewed_join(HotKeys(4, values=n), setting) for n in (4, 1 << 14))
    assert any(isinstance(e, SpreadChanged) for e in few)
    assert count_results(few) == count_results(many)


def count_results(events: list[Any]) -> int:
    return sum(e.results for e in events if isinstance(e, BatchCommitted))


@answer("hypercube", 1)
def on_how_many_hosts_a_tuple_is() -> None:
    assert [count_copies((4, 4), CHAIN, stream) for stream in range(3)] == [4, 1, 4]


@answer("hypercube", 2)
def where_a_result_is_found() -> None:
    """The policy's cells: a is on a row, b in one cell, c on a column, which meet on one host."""
    cube = HyperCube(16, CHAIN)
    state = cube.initial_state(3)
    boxes = cube.key_space(state).boxes
    assert boxes is not None and state.shares == (4, 4)
    a, b, c = (CubeCells(boxes, state.hosts).hosts_by_part(stream) for stream in range(3))
    found = [(*{*a[x,]} & {*b[x, y]} & {*c[y,]},) for x, y in product(range(4), range(4))]
    assert sorted(found) == [(host,) for host in range(16)]


@answer("hypercube", 3)
def which_shares_send_least() -> None:
    rates = (160, 20, 20)
    assert find_best_shares(CubeSize(16, 16), CHAIN, rates) == (8, 2)
    sent = {s: count_received_tuples(s, CHAIN, rates) / 200 for s in ((8, 2), (16, 1), (4, 4))}
    assert sent == {(8, 2): 2.5, (16, 1): 2.5, (4, 4): 3.7}


@answer("hypercube", 4)
def what_moves_when_rates_are_exchanged() -> None:
    events = cubes.run_chain_join(HyperCube(16), cubes.ChainSetting())
    chosen = {e.batch: e.shares for e in events if isinstance(e, SharesChosen)}
    assert list(chosen.values())[-3:] == [(8, 2), (4, 4), (2, 8)]
    moving = {
        e.batch
        for e in events
        if isinstance(e, BatchCommitted) and e.total_host_metrics.migrated_tuples
    }
    assert moving == chosen.keys() - {0}
