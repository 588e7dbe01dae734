"""A simulated run, batch by batch: counts by routing key stand for tuples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import numpy.typing as npt

from braid.core import batch_step
from braid.core.batch_history import count_hosts
from braid.core.batch_report import BatchReport, BlockSize, HostMetrics, with_reported_size
from braid.core.batch_work import BatchWork, RunRules
from braid.core.frequent_values import select_frequent_values
from braid.core.plan import Block, KeySpace, Plan
from braid.core.run_events import BatchCommitted, Event
from braid.core.run_state import RunState
from braid.simulation.expected_work import ExpectedSampling, ExpectedWork, PathCounts, Selects
from braid.simulation.keyed_tuples import Ints, KeyedTuples
from braid.simulation.simulated_answers import SimulatedAnswers
from braid.util.cancellation import check_cancelled

Floats = npt.NDArray[np.float64]


class SimulatedRun:
    """A simulated run.

    - ``tuples``: by live block, its tuples by routing key.
    - ``rows``: by live block, its number of tuples.
    """

    def __init__(
        self,
        rules: RunRules,
        state: RunState,
        sizes: tuple[int, ...],
        draw: np.random.Generator,
        ends: Iterator[int],
        shares: list[Floats],
        sigma: np.ndarray,
        selects: Selects,
    ) -> None:
        self.rules, self.state, self.sizes, self.draw = rules, state, sizes, draw
        self.ends, self.shares, self.sigma = ends, shares, sigma
        self.selects: Selects = selects
        self.begun = next(ends)
        has_answers = rules.match is not None or not rules.kind.is_inner
        self.answers = SimulatedAnswers(rules, sigma) if has_answers else None
        self.tuples: dict[int, KeyedTuples] = {}
        self.rows: dict[int, int] = {}
        self.results = 0.0

    def add_block(self, b: Block) -> None:
        """Add an existing block, whose tuples are spread over its routing keys."""
        low, high = b.key_range
        counts = np.diff(np.linspace(0, b.rows, 1 + high - low).round()).astype(np.int64)
        self._set_block_tuples(b, KeyedTuples.from_dense(counts, low))

    def run_batch(self, counts: Sequence[int]) -> list[Event]:
        """Run one batch and return its events.

        Can be cancelled before it starts (``util.cancellation``).
        """
        check_cancelled()
        ends = next(self.ends)
        span, self.begun, self.seconds = (self.begun, ends - 1), ends, (ends - self.begun) / 1e6
        work = batch_step.plan_batch(self.rules, self.state)
        outcome = BatchReport()
        if self.answers is not None:
            outcome.answers = self.answers.count_answers(work, self.state)
        outcome.key_counts = self._store_blocks(work.combined_plan, counts)
        if self.answers is not None:
            self.answers.store_blocks(work, self.tuples, (span[0], ends))
        self._record_block_sizes(work, outcome, span)
        seconds = self._record_host_work(work, outcome)
        epoch = self.state.epoch + 1 if self.rules.last_epochs else None
        self.state, (*happened, committed) = batch_step.commit_batch(
            self.rules, self.state, work, outcome, epoch
        )
        self.tuples = {id: self.tuples[id] for id in self.state.blocks}
        self.rows = {id: self.rows[id] for id in self.state.blocks}
        if self.answers is not None:
            self.answers.keep_only(self.state.blocks)
        assert isinstance(committed, BatchCommitted)
        return [*happened, replace(committed, seconds_by_phase=seconds)]

    def _store_blocks(self, plan: Plan, counts: Sequence[int]) -> tuple[dict[int, int], ...]:
        """Create the derived and the fresh blocks.

        Return, by stream, the new tuples of each routing key for a run with queries, or those of
        frequent join values if values have several keys; otherwise an empty tuple.
        """
        for d in plan.derivations:
            sources = [self.tuples[source] for source in d.source_blocks]
            self._set_block_tuples(d.block, KeyedTuples.add_parts(sources))
        drawn = [self.draw.multinomial(n, p) for n, p in zip(counts, self.shares, strict=True)]
        space = self.rules.placement.key_space(plan.state)
        arrivals = [self._draw_keys(each, space, s) for s, each in enumerate(drawn)]
        for b in (r.block for r in plan.routes if r.is_fresh):
            self._set_block_tuples(b, arrivals[b.stream])
        if space.keys_per_value > 1:
            return tuple(map(select_frequent_values, drawn))
        if not self.state.queries:
            return ()
        return tuple({k: n for k, n in enumerate(each.tolist()) if n} for each in drawn)

    def _draw_keys(self, drawn: Ints, space: KeySpace, stream: int) -> KeyedTuples:
        """Return new tuples of a stream by routing key, from the numbers that they arrive with.

        If values have several keys, they arrive with a value, and one of its keys is drawn.
        """
        if space.renumbers:
            numbers = np.flatnonzero(drawn)
            keys, at = np.unique(space.routing_keys(numbers, stream), return_inverse=True)
            return KeyedTuples(keys, np.bincount(at, drawn[numbers], len(keys)).astype(np.int64))
        if space.keys_per_value == 1:
            return KeyedTuples.from_dense(drawn)
        values = np.repeat(np.arange(len(drawn)), drawn)
        parts = self.draw.integers(space.keys_per_value, size=len(values))
        return KeyedTuples(*np.unique(values * space.keys_per_value + parts, return_counts=True))

    def _set_block_tuples(self, b: Block, tuples: KeyedTuples) -> None:
        """Store those of the tuples in a block that have its routing keys."""
        selected = tuples.select_range(b.key_range)
        self.tuples[b.id], self.rows[b.id] = selected, int(selected.counts.sum())

    def _record_block_sizes(
        self, work: BatchWork, outcome: BatchReport, span: tuple[int, int]
    ) -> None:
        """Record the sizes of the new blocks."""
        fresh = (r.block for r in work.plan.routes if r.is_fresh)
        new = [b.with_contents(b.rows, b.size_bytes, span) for b in fresh]
        for b in (*new, *(d.block for d in work.combined_plan.derivations)):
            if rows := self.rows[b.id]:
                assert b.event_time_range is not None
                outcome.block_sizes[b.id] = BlockSize(
                    rows, rows * self.sizes[b.stream], b.event_time_range
                )

    def _record_host_work(self, work: BatchWork, outcome: BatchReport) -> dict[str, float]:
        """Record the work of the hosts, and return the modelled seconds of the batch."""
        fresh = [r.block for r in work.plan.routes if r.is_fresh]
        there = {b.id: b for b in (*work.live_blocks, *fresh)}
        routed = (r.block for r in work.plan.routes)
        blocks = chain(self.state.blocks.values(), routed, there.values())
        hosts = max(self.rules.placement.hosts, count_hosts(blocks))
        received = self._sum_received_by_host(
            ((r.block, r.reading_hosts()) for r in work.plan.routes if r.is_fresh), hosts
        )
        copies = (
            (d.block, [to for to, source in d.source_hosts.items() if to != source])
            for d in work.combined_plan.derivations
        )
        moved = self._sum_received_by_host(copies, hosts)
        live = {id: b for id, b in there.items() if self.rows[id]}
        live |= {
            id: with_reported_size(live[id], outcome.block_sizes)
            for id in outcome.block_sizes
            if id in live
        }
        expected, busy, seconds = self._model_work(work, live, received[0])
        outcome.matches = expected.match_counts
        if (harvested := expected.harvested) is not None:
            outcome.shedding = replace(harvested, utility=float(expected.results.sum()))
        self._record_host_counts(outcome, received, moved, expected, busy)
        return seconds

    def _model_work(
        self, work: BatchWork, live: Mapping[int, Block], received: np.ndarray
    ) -> tuple[ExpectedWork, Floats, dict[str, float]]:
        """Return the expected work, and the modelled seconds by host and by phase.

        Hosts take no time here.
        """
        paths = self._trace_paths(work, live)
        expected = ExpectedWork(paths, np.ones(len(received)))
        self._add_harvest(work, paths, expected)
        return expected, np.zeros(len(received)), {}

    def _sum_received_by_host(
        self, places: Iterable[tuple[Block, Collection[int]]], hosts: int
    ) -> np.ndarray:
        """Return the tuples and bytes that hosts receive for some blocks."""
        places = list(places)
        at = np.fromiter(chain.from_iterable(there for _, there in places), np.int64)
        rows = [self.rows[b.id] for b, _ in places]
        size = [n * self.sizes[b.stream] for n, (b, _) in zip(rows, places, strict=True)]
        times = [len(there) for _, there in places]
        sums = [np.bincount(at, np.repeat(each, times), hosts) for each in (rows, size)]
        return np.array(sums).astype(np.int64)

    def _record_host_counts(
        self,
        outcome: BatchReport,
        received: np.ndarray,
        moved: np.ndarray,
        expected: ExpectedWork,
        busy: np.ndarray,
    ) -> None:
        """Record the counts of every host. Results and intermediate results are rounded."""
        arrived, sent, probed, compared = np.rint(np.sum(expected.stages, axis=0)).astype(np.int64)
        ends = np.floor(self.results + np.cumsum([0.0, *expected.results]))
        self.results = (self.results + float(expected.results.sum())) % 1
        width = sum(self.sizes) / len(self.sizes)
        columns = {
            "received_tuples": received[0],
            "received_bytes": received[1],
            "migrated_tuples": moved[0],
            "migrated_bytes": moved[1],
            "compared_pairs": compared,
            "skipped_pairs": np.rint(expected.shed).astype(np.int64),
            "probes": probed,
            "sent_partials": sent,
            "received_partials": arrived,
            "received_partial_bytes": np.rint(arrived * width).astype(np.int64),
            "results": np.diff(ends).astype(np.int64),
            "seconds": busy,
        }
        usages = zip(*(each.tolist() for each in columns.values()), strict=True)
        outcome.hosts = {
            h: HostMetrics(**dict(zip(columns, n, strict=True))) for h, n in enumerate(usages)
        }

    def _trace_paths(self, work: BatchWork, live: Mapping[int, Block]) -> PathCounts:
        """Return the counts along the paths of a batch.

        Raises ValueError for a plan that leaves out tuples by their values.
        """
        harvest = work.plan.shedding
        if harvest is not None and harvest.keep_shares:
            raise ValueError("tuples have no values in a simulation; none can be left out by them")
        drawn = None if harvest is None else ExpectedSampling(harvest)
        windows, ages = self.rules.windows, work.block_ages
        return PathCounts(work.plan.routes, live, self.sigma, windows, ages, self.selects, drawn)

    def _add_harvest(self, work: BatchWork, paths: PathCounts, expected: ExpectedWork) -> None:
        """Set the outcome of load shedding, if the batch sheds load."""
        if paths.drawn is not None:
            expected.harvested = paths.drawn.shedding_outcome(paths, work.plan.routes, self.sigma)
