"""Shared plans counted on the chain placement itself: Wang 2008, Fig. 8.1 to 8.3. No Spark.

The simulation runs ``papers.slices.chain.Chain`` over the Poisson arrivals of two streams. The
contents of its slices, and the pairs that its plans let meet, are added up slice by slice. Pull-up
is a chain of one slice (section 7.2). A partition is two of them: one for tuples that pass the
selection, one for those that fail it. A slice is a whole number of micro-batches, so short batches
count finer. ``counted_plans`` counts the same tuple by tuple, without a chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from braid.core.batch_history import LiveBlocks
from braid.core.plan import Block, Route
from braid.core.query import Query
from braid.core.run_events import BatchCommitted, BatchPlanned
from braid.papers.slices import chain as chains
from braid.papers.slices.chain_optimizer import Chain
from braid.papers.slices.run_events import SliceContents
from braid.simulation.simulator import simulate

from braid_lab.slices.cost import SharedLoad
from braid_lab.slices.counted_plans import ALL, FAIL, PASS, PlanJoin, TupleCounts, plan_joins

SECOND = 1_000_000
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _Unmerged(chains.Chain):
    """The chain over blocks of one micro-batch each.

    Merged blocks leave a slice late, and the later the longer they are.
    """

    tick: int = SECOND

    def merge_boundaries(self, state: chains.ChainState) -> tuple[tuple[int, ...], ...]:
        """Return every multiple of ``tick`` microseconds."""
        return tuple(
            tuple(range(self.tick, ends[-1] + self.tick, self.tick)) if ends else ()
            for ends in state.ends
        )


@dataclass(frozen=True)
class SliceCounts:
    """Counts of the slices of a chain, youngest first.

    ``held_tuples`` are tuples of both streams, the mean over batches once the longest window is
    full; ``stored_a`` and ``stored_b`` are pairs compared with stored tuples of A and of B.
    """

    held_tuples: Floats
    stored_a: Floats
    stored_b: Floats


@dataclass(frozen=True)
class ChainExperiment:
    """Queries on chains, for ``seconds`` in micro-batches of ``step`` seconds.

    The arrivals are those of ``counting.TupleCounts``. The selectivity of the join does not
    influence which tuples meet, so the chain gets no results to measure, unless
    ``measures_results``.
    """

    queries: SharedLoad
    seconds: float = 90.0
    step: float = 0.5
    seed: int = 0
    measures_results: bool = False

    @cached_property
    def tuple_counts(self) -> TupleCounts:
        """The same counts tuple by tuple."""
        return TupleCounts(self.queries, self.seconds, self.seed)

    def list_settings(self) -> dict[str, Any]:
        """Return what runs by name, as settings of claims have it."""
        q = self.queries
        named = {"rates": q.rate, "windows": q.windows, "join": q.join_selectivity}
        return {**named, "seconds": self.seconds, "step": self.step, "seeds": self.seed}

    def count_slices(
        self, side: Sequence[int], windows: Chain, ends: Chain, plain: int
    ) -> SliceCounts:
        """Return the counts of a chain with these ends over some sides of A and all of B.

        The queries have these windows; the first ``plain`` have no selection.
        """
        times = (
            np.concatenate([self.tuple_counts.a_times_micros[k] for k in side]),
            self.tuple_counts.b_times_micros.astype(float),
        )
        edges = np.arange(0, self.seconds + self.step / 2, self.step) * 1e6
        counts = np.stack([np.histogram(t, edges)[0] for t in times], axis=1)
        passing = len(self.tuple_counts.a_times_micros[0]) / max(
            1, sum(map(len, self.tuple_counts.a_times_micros))
        )
        share = passing if tuple(side) == ALL else 1.0
        if len(ends) == 1:  # the counts do not depend on the queries: run once
            windows, plain, share = ends, 1, 1.0
        selectivity = self.queries.join_selectivity if self.measures_results else 0.0
        return _simulate_slice_counts(
            tuple(map(tuple, counts.tolist())), self.step, windows, ends, plain, share, selectivity
        )

    def plan_joins(
        self, strategy: str, chain: Chain = ()
    ) -> list[tuple[PlanJoin, SliceCounts, int]]:
        """Return each join of a plan with the counts of its chain and the index of its slice."""
        q, joins = self.queries, []
        if strategy == "state-slice":
            ends = chain or q.windows
            slices = self.count_slices(ALL, q.windows, ends, q.unselected_queries)
            return [(p, slices, k) for k, p in enumerate(plan_joins(q, strategy, chain))]
        for p in plan_joins(q, strategy):
            windows = q.windows[: p.high]
            plain = len(windows) if p.side in (FAIL, PASS) else q.unselected_queries
            joins.append((p, self.count_slices(p.side, windows, windows[-1:], plain), 0))
        return joins

    def stored_tuples(self, strategy: str, chain: Chain = ()) -> float:
        """Return the tuples in the states of a plan."""
        return float(sum(s.held_tuples[k] for _, s, k in self.plan_joins(strategy, chain)))

    def comparisons(self, strategy: str, chain: Chain = (), lookup: bool = False) -> float:
        """Return the comparisons of a plan, as ``counting.TupleCounts.comparisons`` counts them.

        They are those to probe, purge, route and filter results, select or split A, and unite
        results. A router compares a result with every window but the longest; with ``lookup`` it
        looks it up once.
        """
        q, total = self.queries, 0.0
        for p, s, k in self.plan_joins(strategy, chain):
            pairs = float(s.stored_a[k] + s.stored_b[k])
            routed = min(1, p.routed_windows) if lookup else p.routed_windows
            total += pairs * (1 + q.join_selectivity * (routed + p.is_filtered))
        parts = plan_joins(q, strategy, chain)
        selects = (
            sum(map(len, self.tuple_counts.a_times_micros))
            if q.has_selection and strategy != "pull-up"
            else 0
        )
        return (
            total
            + self.tuple_counts.probing_tuples(parts)
            + selects
            + self.tuple_counts.union_comparisons(strategy)
        )


@lru_cache(maxsize=4096)
def _simulate_slice_counts(
    counts: tuple[tuple[int, int], ...],
    step: float,
    windows: Chain,
    ends: Chain,
    plain: int,
    passing: float,
    selectivity: float,
) -> SliceCounts:
    """Return the chain's run, added up by slice; ``passing`` is the fraction of A that passes."""
    micros = [round(w * SECOND) for w in windows]
    boundaries, tick = tuple(round(e * SECOND) for e in ends), round(step * SECOND)
    queries = tuple(
        Query(f"{w:g} s", (t, t), ("passes" if k >= plain else None, None), k)
        for k, (w, t) in enumerate(zip(windows, micros, strict=True))
    )
    ranks = np.eye(len(windows))
    passing = passing if plain < len(windows) else 1.0
    shares = passing * ranks[-1] + (1 - passing) * ranks[plain - 1], ranks[-1]
    memory = boundaries == tuple(micros)
    events = simulate(
        _Unmerged(
            "memory" if memory else "given", () if memory else (boundaries, boundaries), tick=tick
        ),
        counts,
        seconds=step,
        selectivity=selectivity,
        queries=queries,
        key_shares=[tuple(s.tolist()) for s in shares],
    )
    reach = next(k for k, end in enumerate(boundaries) if end >= micros[plain - 1])
    return _sum_slice_counts(events, len(boundaries), windows[-1] / step, reach, passing)


def _sum_slice_counts(
    events: Sequence[Any], slices: int, full: float, reach: int, passing: float
) -> SliceCounts:
    """Return the counts of the slices, with ``held`` from batch ``full`` on.

    A tuple of A that fails the selection probes no slice after ``reach`` (chapter 20).
    """
    live, where = LiveBlocks(), dict[int, int]()
    routes: Sequence[Route] = ()
    held, stored, batches = np.zeros(slices), np.zeros((2, slices)), 0
    for e in events:
        if isinstance(e, BatchPlanned):
            routes, where = e.routes, {}
        elif isinstance(e, SliceContents):
            where |= {id: k for k, ids in enumerate(e.blocks_by_slice) for id in ids}
        elif isinstance(e, BatchCommitted):
            live.apply_commit(e)
            for fresh, met in _iterate_block_pairs(routes, live):
                k = where.get(met.id, 0)
                reached = passing if fresh.stream == 0 and k > reach else 1.0
                stored[met.stream, k] += fresh.rows * met.rows * reached
            if e.batch >= full and any(e.received_tuples):
                batches += 1
                for b in live.values():
                    held[where.get(b.id, 0)] += b.rows
    return SliceCounts(held / max(1, batches), stored[0], stored[1])


def _iterate_block_pairs(
    routes: Sequence[Route], live: LiveBlocks
) -> Iterator[tuple[Block, Block]]:
    """Yield each fresh block with every block that its route meets."""
    for r in routes:
        if fresh := live.get(r.block.id):
            for path in r.paths:
                for hop in path:
                    yield from ((fresh, live[id]) for id in hop.probed_blocks() if id in live)
