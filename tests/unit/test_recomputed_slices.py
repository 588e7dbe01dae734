"""Wang 2008, recomputed in a few lines that follow the text: chains, their cost, and the ring."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations, product
from pathlib import Path

import pytest
from braid.core.query import Query
from braid.core.reserved_columns import QUERIES
from braid.core.run_events import BatchCommitted
from braid.papers.psp.ring import Ring
from braid.papers.slices.chain import Chain, Mode
from braid.papers.slices.chain_optimizer import ChainStatistics, cpu_chain
from braid.simulation.simulator import simulate
from braid_lab.psp.cost import Workload, optimal_length
from pyarrow.parquet import read_table
from unit.test_sharing import Shared

pytestmark = pytest.mark.unit
Pair = tuple[int, int]


def chain_of_slices(ends: list[int], tuples: list[tuple[int, str]]) -> list[Counter[Pair]]:
    """Return the results of each slice by Fig. 5.2 and 5.4, of streams a and b, by times.

    A new tuple probes slice by slice, and purges first what has reached a slice's end.
    """
    states: list[dict[str, list[int]]] = [{"a": [], "b": []} for _ in ends]
    found: list[Counter[Pair]] = [Counter() for _ in ends]
    for t, side in tuples:
        other, fallen = "b" if side == "a" else "a", []
        for k, end in enumerate(ends):
            states[k][other] += fallen
            fallen = [u for u in states[k][other] if t - u >= end]
            states[k][other] = [u for u in states[k][other] if t - u < end]
            found[k].update((t, u) if side == "a" else (u, t) for u in states[k][other])
        states[0][side].append(t)
    return found


@pytest.mark.parametrize(("seed", "mode"), [(0, "memory"), (1, "memory"), (0, "cpu")])
def test_theorem_2_the_policy_s_chain_gives_each_query_its_first_slices(
    seed: int, mode: Mode, tmp_path: Path
) -> None:
    """Chain, on the engine, with one tuple a second: the join with the window where they end."""
    draw = random.Random(seed)
    ends = sorted(draw.sample(range(2, 30), 3))
    tuples = [(t, draw.choice("ab")) for t in range(60)]
    found = chain_of_slices(ends, tuples)
    run = Shared(str(tmp_path / "run"), 2, Chain(mode), ask([(w, w) for w in ends]))
    for n in range(0, 60, 3):
        run.batch([("ab".index(side), 0, 0, 1) for _, side in tuples[n : n + 3]])
    for k, asked in enumerate(run.first):
        joined = {
            (t, u) if side == "a" else (u, t)
            for (t, side), (u, other) in product(tuples, tuples)
            if side != other and 0 < t - u < ends[k]
        }
        assert list_results(run, asked) == sum(found[: k + 1], Counter()) == Counter(joined)


def ask(
    windows: list[tuple[int, ...]], where: list[tuple[str | None, ...]] | None = None
) -> tuple[Query, ...]:
    """Return queries with these windows and selections by stream."""
    none = [(None,) * len(windows[0])] * len(windows)
    return tuple(
        Query(f"q{n}", spans, texts, n, (None,) * len(spans))
        for n, (spans, texts) in enumerate(zip(windows, where or none, strict=True))
    )


def list_results(run: Shared, asked: Query) -> Counter[tuple[int, ...]]:
    """Return a query's results as the numbers of their tuples, by arrival from 0."""
    found: Counter[tuple[int, ...]] = Counter()
    for file in run.engine.store.results.result_files(0, None):
        for row in read_table(file).to_pylist():
            if row[QUERIES] >> asked.bitmap_position & 1:
                found[tuple(row[a]["id"] for a in "abc"[: run.streams])] += 1
    return found


PASSES = {None: range(10), "v < 3": range(3), "v >= 5": range(5, 10)}
"""By selection, the values that pass."""


def joins_of_the_text(
    windows: tuple[int, ...], where: tuple[str | None, ...], tuples: list[tuple[int, int, int, int]]
) -> Counter[tuple[int, ...]]:
    """Return the m-way join of section 12.1: T - T_i < W_i, keys are equal, all are selected."""
    by_stream = [
        [t for t in tuples if t[0] == s and t[2] in PASSES[text]] for s, text in enumerate(where)
    ]
    return Counter(
        tuple(tuples.index(t) for t in group)
        for group in product(*by_stream)
        if len({key for _, key, _, _ in group}) == 1
        and all(max(u[3] for u in group) - t[3] < w for t, w in zip(group, windows, strict=True))
    )


@pytest.mark.parametrize("hosts", [1, 3])
def test_theorems_11_and_12_of_a_shared_ring_of_joins_of_three_streams(
    hosts: int, tmp_path: Path
) -> None:
    """Pushed selections change no answer; each tuple is held once, while some query can use it.

    A tuple leaves with the others of its block, up to three batches later.
    """
    draw = random.Random(4)
    windows = [(6, 12, 20), (20, 6, 12), (12, 20, 6)]
    where: list[tuple[str | None, ...]] = [
        ("v < 3", None, None), (None, "v >= 5", None), ("v >= 5", "v < 3", None),
    ]  # fmt: skip
    tuples = [(draw.randrange(3), draw.randrange(2), draw.randrange(10), t) for t in range(1, 73)]
    run = Shared(str(tmp_path / "run"), 3, Chain("memory", hosts=hosts), ask(windows, where))
    for n in range(0, 72, 3):
        run.batch([(s, key, value, 1) for s, key, value, _ in tuples[n : n + 3]])
        came, now = tuples[: n + 3], n + 3
        lives = [
            max(w[s] for w, texts in zip(windows, where, strict=True) if v in PASSES[texts[s]])
            if any(v in PASSES[texts[s]] for texts in where)
            else 0
            for s, _, v, _ in came
        ]
        least, most = (
            sum(
                bool(life) and now - t[3] < life + more for t, life in zip(came, lives, strict=True)
            )
            for more in (0, 9)
        )
        assert least <= sum(block.rows for block in run.engine.state.blocks.values()) <= most
    for asked in run.first:
        joined = joins_of_the_text(asked.windows, asked.selections, tuples)
        assert list_results(run, asked) == joined and joined


def test_theorem_3_the_policy_s_chain_stores_each_tuple_once() -> None:
    """However many queries: 10 tuples for each second of the longest window, and of one batch."""
    asked = tuple(Query.parse(f"q{w}", ("r", "s"), f"{w} seconds") for w in (4, 9, 20))
    run = simulate(Chain(), [(5, 5)] * 60, windows=(20, 20), queries=asked)
    stored = [e.total_host_metrics.stored_tuples for e in run if isinstance(e, BatchCommitted)]
    assert stored == [10 * min(second, 21) for second in range(1, 61)]


def cost_by_the_text(
    cuts: tuple[int, ...], windows: list[int], rates: tuple[float, float], join: float, sys: float
) -> float:
    """Return section 7.2's work of a chain without selections, for one stream's state.

    A probing tuple of each slice: one comparison to purge, one for each tuple in the state, C_sys,
    and for each result one for every window that ends inside the slice.
    """
    total, before = 0.0, 0
    for end in cuts:
        state = rates[0] * (end - before)
        inside = sum(before < w < end for w in windows)
        total += rates[1] * (1 + sys + state + state * join * inside)
        before = end
    return total


@pytest.mark.parametrize("seed", range(40))
def test_cpu_opt_is_the_cheapest_of_all_cuts(seed: int) -> None:
    """Section 7.2: Dijkstra's path costs what the best of the 2^(N-1) chains costs."""
    draw = random.Random(seed)
    windows = sorted(draw.sample(range(1, 60), draw.randint(1, 7)))
    rates, join, sys = (
        (draw.uniform(0.1, 5), draw.uniform(0.1, 5)),
        draw.random(),
        40 * draw.random(),
    )
    ones = (1.0,) * len(windows)
    statistics = ChainStatistics(rates, join, (ones, ones), sys, (1,) * len(windows))
    chains = [
        (*inner, windows[-1])
        for n in range(len(windows))
        for inner in combinations(windows[:-1], n)
    ]
    costs = {c: cost_by_the_text(c, windows, rates, join, sys) for c in chains}
    assert costs[cpu_chain(tuple(windows), statistics)] == pytest.approx(min(costs.values()))


def test_theorem_9_is_near_the_least_latency_of_all_lengths() -> None:
    """Eq. 13.5 by hand for two equal streams: a tuple probes once, is sent once, and goes round."""
    rate, window, pairs_us, send, hop = 50.0, 20.0, 2e-6, 1e-4, 2e-3
    work = pairs_us * rate * window

    def latency(n: int) -> float:
        return (n - 1) / 2 * hop + max(work / n + send, 2 * n * hop)

    for more in (1.0, 20.0, 400.0):
        work = more * pairs_us * rate * window
        load = Workload((rate,) * 2, (window,) * 2, (0.01,) * 2, more * pairs_us, send, hop)
        best = min(range(1, 200), key=latency)
        assert abs(max(1.0, optimal_length(load)) - best) <= 1.5


@pytest.mark.parametrize("nodes", [1, 3, 5])
def test_a_ring_stores_each_tuple_once_and_fills_before_it_is_full(nodes: int) -> None:
    """Lemma 7: node k holds ages k W / N to (k + 1) W / N; while young, the far nodes are empty."""
    run = simulate(Ring(nodes), [(10, 10)] * 40, windows=(20, 20))
    stored = {
        e.batch: [h.stored_tuples for h in e.host_metrics]
        for e in run
        if isinstance(e, BatchCommitted)
    }
    assert sum(stored[9]) == 10 * 2 * 10, "ten of twenty seconds have come"
    assert abs(sum(stored[39]) - 20 * 2 * 10) <= 3 * 2 * 10, "up to three batches expire together"
